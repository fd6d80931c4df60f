//! The state of a session: the part derived from its entries, and the part that exists only in this process.

use std::collections::{BTreeMap, VecDeque};

use session_tree::{Json, NewEntry, Object, Tree};

use crate::{
    cache::CacheForecast,
    calls::CallBatch,
    compaction::CompactionCut,
    context::SessionFacts,
    effect::{CompactionReason, EngineActivity, SummaryForm},
    ids::{CallId, RequestNumber, Ticket},
    input::{AnswerUsage, CallOutput, ModelChoice, PauseReason, SpendLimits, TurnOutcome, UserMessage},
    limits::{RETRIES, ROUNDS_PER_TURN},
    recorded::{InterruptedCall, RecordedSession},
};

/// The initial settings of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineSetup {
    /// The session's id.
    pub session: String,
    /// The version of the program.
    pub version: String,
    /// The system prompt of a new session. Must not mention the project, the user, the date or the machine.
    pub system: String,
    /// The tools of a new session: `name`, `description`, `parameters`.
    pub tools: Vec<Object>,
    /// The model.
    pub model: ModelChoice,
    /// The limits, unless the session has its own.
    pub limits: SpendLimits,
    /// The limits of a turn.
    pub turns: TurnSettings,
}

/// The limits of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnSettings {
    /// Maximum number of answers per turn.
    pub rounds: u32,
    /// Maximum number of retries after a temporary failure.
    pub retries: u32,
    /// Whether the conversation is compacted when the context is almost full.
    pub compacts: bool,
}

impl Default for TurnSettings {
    fn default() -> Self {
        Self { rounds: ROUNDS_PER_TURN, retries: RETRIES, compacts: true }
    }
}

/// The state of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineState {
    pub(crate) setup: EngineSetup,
    pub(crate) recorded: RecordedSession,
    pub(crate) live: Live,
}

/// The state that exists only in this process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Live {
    pub(crate) is_open: bool,
    pub(crate) tickets: u64,
    /// Entries being written to the file, in order.
    pub(crate) unwritten: VecDeque<Unwritten>,
    pub(crate) disk: DiskState,
    pub(crate) facts: SessionFacts,
    pub(crate) model: ModelChoice,
    pub(crate) activity: Activity,
    /// The ending of the turn that no longer runs.
    pub(crate) ending: Ending,
    pub(crate) pause: Option<PauseReason>,
    /// How often the model polled in vain, and the delay before the next request, in milliseconds.
    pub(crate) slow: Option<(usize, u64)>,
    /// Whether the background commands were started by an earlier process and are gone.
    pub(crate) background_is_lost: bool,
    /// How many shares of the context have been reported.
    pub(crate) context_told: usize,
    /// The compaction in progress.
    pub(crate) compaction: Option<Compaction>,
    /// A compaction that was requested and has not begun, with the user's wish for the summary.
    pub(crate) compaction_due: Option<Option<String>>,
    /// Whether a compaction failed in this turn, so that no other one begins by itself.
    pub(crate) compaction_failed: bool,
    /// Whether queued messages wait for the user instead of the end of the turn.
    pub(crate) is_held: bool,
    /// The highest request number assigned, including requests never sent.
    pub(crate) requests: u64,
    /// The chain of the last request sent.
    pub(crate) chain: Vec<u64>,
    pub(crate) long_system_cache: bool,
    pub(crate) clock: TurnClock,
    pub(crate) told: EngineActivity,
    /// Whether the start of a turn was reported to subscribers and its end was not.
    pub(crate) is_end_due: bool,
    pub(crate) alarm_ms: Option<u64>,
}

/// A compaction in progress.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Compaction {
    pub(crate) reason: CompactionReason,
    pub(crate) focus: Option<String>,
    pub(crate) form: SummaryForm,
    /// Whether the model already answered with something else than a summary.
    pub(crate) again: bool,
    /// The provider's message if the conversation no longer fits.
    pub(crate) too_long: Option<String>,
    pub(crate) cut: Option<Box<CompactionCut>>,
}

/// Whether the file can be appended to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DiskState {
    Fine,
    /// Appending failed with this error. Entries wait until this time.
    RetryAt {
        at_ms: u64,
        error: String,
    },
    /// The entries are being written again after this error.
    Retrying {
        error: String,
    },
    /// Appending will never work again, for this reason.
    Lost(String),
}

/// An entry being written to the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unwritten {
    pub(crate) ticket: Ticket,
    pub(crate) entry: NewEntry,
    pub(crate) sync: bool,
    pub(crate) then: Then,
}

/// The action that follows once an entry is in the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Then {
    Nothing,
    /// The message is part of the session.
    Landed(String),
    Queued(String),
    Withdrawn(String),
    Send(RequestNumber),
    Ask(CallId),
    Decided(CallId),
    Run(CallId),
    ResultWritten(CallId),
    TurnEnded(TurnOutcome, Option<String>),
    /// The beginning of the conversation was replaced: why, the tokens before, and those of the summary.
    Compacted(CompactionReason, u64, u64),
}

/// The current activity.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Activity {
    Idle,
    /// A turn will start with this message once the previous turn has been settled.
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
    /// The next request is delayed, since the last calls waited for something that has not happened.
    Slowed {
        until_ms: u64,
        until_wall_ms: i64,
        times: usize,
    },
    Calls(CallBatch),
    /// Paused; `calls` continue afterwards.
    Paused {
        why: PauseReason,
        until_ms: Option<u64>,
        calls: Option<CallBatch>,
    },
}

/// A request and the part of its answer received so far.
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
    /// Complete blocks.
    pub(crate) content: Vec<Json>,
    /// The text of an incomplete block.
    pub(crate) text: String,
    pub(crate) usage: Option<AnswerUsage>,
}

/// How a turn ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ending {
    pub(crate) outcome: TurnOutcome,
    pub(crate) error: Option<String>,
    /// Results that had arrived when the turn ended.
    pub(crate) results: BTreeMap<CallId, CallOutput>,
    /// The files changed by calls that were running when another process ended.
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
    /// Time until the last pause.
    pub(crate) before_ms: u64,
    /// When it last started; `None` while paused.
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
    /// Derives the state of a session from its file. The first input must be
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
            compaction: None,
            compaction_due: None,
            compaction_failed: false,
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

    /// The state derived from the file.
    #[must_use]
    pub fn recorded(&self) -> &RecordedSession {
        &self.recorded
    }

    /// The calls that may have taken effect before their process ended. The executor determines what they changed and
    /// reports it with [`Restored`](crate::EngineInput::Restored).
    #[must_use]
    pub fn interrupted_calls(&self) -> Vec<InterruptedCall> {
        self.recorded.calls.iter().filter_map(crate::recorded::RecordedCall::interrupted).collect()
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> SpendLimits {
        self.recorded.limits.unwrap_or(self.setup.limits)
    }

    /// The model of the next request.
    #[must_use]
    pub fn model(&self) -> &ModelChoice {
        &self.live.model
    }

    /// When a pause ends automatically, on the monotonic clock.
    #[must_use]
    pub fn paused_until_ms(&self) -> Option<u64> {
        if let Activity::Paused { until_ms, .. } = &self.live.activity { *until_ms } else { None }
    }

    /// The current activity.
    #[must_use]
    pub fn activity(&self) -> EngineActivity {
        match &self.live.activity {
            Activity::Preparing { .. } | Activity::Sending(_) | Activity::Answering(_)
                if self.live.compaction.is_some() =>
            {
                EngineActivity::Compacting
            }
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
