//! The state of a session: what its entries tell, and what only this process knows.

use std::collections::{BTreeMap, VecDeque};

use session_tree::{Json, NewEntry, Object, Tree};

use crate::{
    cache::CacheForecast,
    calls::CallBatch,
    context::SessionFacts,
    effect::EngineActivity,
    ids::{CallId, RequestNumber, Ticket},
    input::{AnswerUsage, CallOutput, ModelChoice, PauseReason, SpendLimits, TurnOutcome, UserMessage},
    limits::{RETRIES, ROUNDS_PER_TURN},
    recorded::{InterruptedCall, RecordedSession},
};

/// What a session begins with.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineSetup {
    /// The session's id.
    pub session: String,
    /// The version of the program.
    pub version: String,
    /// The system prompt of a new session. Must say nothing of the project, the user, the date or the machine.
    pub system: String,
    /// The tools of a new session: `name`, `description`, `parameters`.
    pub tools: Vec<Object>,
    /// The model.
    pub model: ModelChoice,
    /// The limits, unless the session has its own.
    pub limits: SpendLimits,
    /// How long a turn goes on.
    pub turns: TurnSettings,
}

/// How long a turn goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnSettings {
    /// Maximum number of answers of a turn.
    pub rounds: u32,
    /// Maximum number of times a request is repeated after a failure that may pass.
    pub retries: u32,
}

impl Default for TurnSettings {
    fn default() -> Self {
        Self { rounds: ROUNDS_PER_TURN, retries: RETRIES }
    }
}

/// The state of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineState {
    pub(crate) setup: EngineSetup,
    pub(crate) recorded: RecordedSession,
    pub(crate) live: Live,
}

/// What only this process knows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Live {
    pub(crate) is_open: bool,
    pub(crate) tickets: u64,
    /// Entries that are on their way to the file, in their order.
    pub(crate) unwritten: VecDeque<Unwritten>,
    pub(crate) disk: DiskState,
    pub(crate) facts: SessionFacts,
    pub(crate) model: ModelChoice,
    pub(crate) activity: Activity,
    /// How the turn that is not running any more ends.
    pub(crate) ending: Ending,
    pub(crate) pause: Option<PauseReason>,
    /// How often the same was looked for in vain, and how long the next request waits for it, in milliseconds.
    pub(crate) slow: Option<(usize, u64)>,
    /// Whether the commands in the background are those of a process that is gone.
    pub(crate) background_is_lost: bool,
    /// How many of the shares of the context have been told.
    pub(crate) context_told: usize,
    /// Whether queued messages wait for a person, not for the end of the turn.
    pub(crate) is_held: bool,
    /// The highest number given to a request, also to one that was never sent.
    pub(crate) requests: u64,
    /// The hashes of the last request that was sent.
    pub(crate) chain: Vec<u64>,
    pub(crate) long_system_cache: bool,
    pub(crate) clock: TurnClock,
    pub(crate) told: EngineActivity,
    /// Whether a turn began for whoever watches and has not ended.
    pub(crate) is_end_due: bool,
    pub(crate) alarm_ms: Option<u64>,
}

/// Whether the file can be appended to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DiskState {
    Fine,
    /// It could not, for this reason. Entries wait until then.
    RetryAt {
        at_ms: u64,
        error: String,
    },
    /// The entries that waited for this reason are being written again.
    Retrying {
        error: String,
    },
    /// It never will: why.
    Lost(String),
}

/// An entry on its way to the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unwritten {
    pub(crate) ticket: Ticket,
    pub(crate) entry: NewEntry,
    pub(crate) sync: bool,
    pub(crate) then: Then,
}

/// What follows once an entry is in the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Then {
    Nothing,
    /// A message is part of the session.
    Landed(String),
    Queued(String),
    Withdrawn(String),
    Send(RequestNumber),
    Ask(CallId),
    Decided(CallId),
    Run(CallId),
    ResultWritten(CallId),
    TurnEnded(TurnOutcome, Option<String>),
}

/// What is being done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Activity {
    Idle,
    /// A turn is to begin with a message once what the last one left has been cleared up.
    Starting(Box<UserMessage>),
    /// Between tools and requests.
    Boundary,
    /// A request is being encoded.
    Preparing {
        request: RequestNumber,
        retries: u32,
    },
    /// The entry of a request is being written.
    Sending(Box<AnswerInProgress>),
    Answering(Box<AnswerInProgress>),
    Retrying {
        until_ms: u64,
        until_wall_ms: i64,
        retries: u32,
    },
    /// The next request waits, since the last calls waited for something that has not come.
    Slowed {
        until_ms: u64,
        until_wall_ms: i64,
        times: usize,
    },
    Calls(CallBatch),
    /// Paused; with calls that go on afterwards.
    Paused {
        why: PauseReason,
        until_ms: Option<u64>,
        calls: Option<CallBatch>,
    },
}

/// A request and what has come of its answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AnswerInProgress {
    pub(crate) request: RequestNumber,
    pub(crate) retries: u32,
    pub(crate) chain: Vec<u64>,
    pub(crate) forecast: CacheForecast,
    pub(crate) sent_ms: u64,
    pub(crate) first_ms: Option<u64>,
    /// The model that answers, as the provider names it.
    pub(crate) model: Option<String>,
    /// Whole blocks.
    pub(crate) content: Vec<Json>,
    /// The text of a block that is not whole.
    pub(crate) text: String,
    pub(crate) usage: Option<AnswerUsage>,
}

/// How a turn ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ending {
    pub(crate) outcome: TurnOutcome,
    pub(crate) error: Option<String>,
    /// Results that had come when it ended.
    pub(crate) results: BTreeMap<CallId, CallOutput>,
    /// What the calls changed that were running when another process ended.
    pub(crate) changed: BTreeMap<CallId, Vec<String>>,
}

impl Ending {
    pub(crate) fn new(outcome: TurnOutcome, error: Option<String>) -> Self {
        Self { outcome, error, results: BTreeMap::new(), changed: BTreeMap::new() }
    }
}

/// How long a turn has run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TurnClock {
    /// Before the last pause.
    pub(crate) before_ms: u64,
    /// Since when it runs; nothing while it is paused.
    pub(crate) since_ms: Option<u64>,
}

impl TurnClock {
    pub(crate) fn start(&mut self, now_ms: u64) {
        self.since_ms.get_or_insert(now_ms);
    }

    pub(crate) fn stop(&mut self, now_ms: u64) {
        self.before_ms = self.elapsed_ms(now_ms);
        self.since_ms = None;
    }

    pub(crate) fn elapsed_ms(&self, now_ms: u64) -> u64 {
        self.before_ms + self.since_ms.map_or(0, |since| now_ms.saturating_sub(since))
    }
}

impl EngineState {
    /// The state of a session as its file has it. The first input must be
    /// [`Restored`](crate::EngineInput::Restored).
    #[must_use]
    pub fn new(setup: EngineSetup, tree: &Tree) -> Self {
        let recorded = RecordedSession::of(tree);
        let live = Live {
            is_open: false,
            tickets: 0,
            unwritten: VecDeque::new(),
            disk: DiskState::Fine,
            facts: SessionFacts::default(),
            model: setup.model.clone(),
            activity: Activity::Idle,
            ending: Ending::new(TurnOutcome::Interrupted, None),
            pause: None,
            slow: None,
            background_is_lost: true,
            context_told: 0,
            is_held: !recorded.queue.is_empty(),
            requests: recorded.requests,
            chain: Vec::new(),
            long_system_cache: recorded.cache.is_long_cache_cheaper(),
            clock: TurnClock::default(),
            told: EngineActivity::Idle,
            is_end_due: false,
            alarm_ms: None,
        };
        Self { setup, recorded, live }
    }

    /// What the file tells.
    #[must_use]
    pub fn recorded(&self) -> &RecordedSession {
        &self.recorded
    }

    /// The calls that may have taken effect before the process that ran them ended. Whoever opens the session finds
    /// out what they changed, and says so with [`Restored`](crate::EngineInput::Restored).
    #[must_use]
    pub fn interrupted_calls(&self) -> Vec<InterruptedCall> {
        self.recorded.calls.iter().filter_map(crate::recorded::RecordedCall::interrupted).collect()
    }

    /// The limits that apply.
    #[must_use]
    pub fn limits(&self) -> SpendLimits {
        self.recorded.limits.unwrap_or(self.setup.limits)
    }

    /// The model of the next request.
    #[must_use]
    pub fn model(&self) -> &ModelChoice {
        &self.live.model
    }

    /// When a pause ends by itself, on the monotonic clock.
    #[must_use]
    pub fn paused_until_ms(&self) -> Option<u64> {
        if let Activity::Paused { until_ms, .. } = &self.live.activity { *until_ms } else { None }
    }

    /// What the machine is doing.
    #[must_use]
    pub fn activity(&self) -> EngineActivity {
        match &self.live.activity {
            Activity::Idle => EngineActivity::Idle,
            Activity::Starting(_) | Activity::Boundary | Activity::Preparing { .. } | Activity::Sending(_) => {
                EngineActivity::Waiting
            }
            Activity::Answering(answer) if answer.first_ms.is_some() => EngineActivity::Streaming,
            Activity::Answering(_) => EngineActivity::Waiting,
            Activity::Retrying { until_ms, until_wall_ms, .. } => {
                EngineActivity::Retrying { until_mono_ms: *until_ms, until_wall_ms: *until_wall_ms }
            }
            Activity::Slowed { until_ms, until_wall_ms, times } => {
                EngineActivity::Slowed { until_mono_ms: *until_ms, until_wall_ms: *until_wall_ms, times: *times }
            }
            Activity::Calls(calls) => calls.activity(),
            Activity::Paused { why, .. } => EngineActivity::Paused(*why),
        }
    }
}
