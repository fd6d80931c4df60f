//! One connection as a conversation: messages in; what is to be sent and what is claimed out.
//!
//! Pure: no socket, no clock. It claims of a thread what the daemon last said of it and takes that
//! back when the connection is lost.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use events::{
    Claim, Confidence, Identity, NewEvent, Origin, Provider, Reason, Repeat, Signal, Source, State, Timestamp,
};

use super::{
    PROVIDER,
    wire::{self, Answer, Heard, Say, Status, Thread},
};

/// At most so many threads are kept in mind.
const THREADS: usize = 1_024;
/// At most so many threads are asked for when a connection begins.
const READS: usize = 128;
/// A thread stays loaded when nobody is at it any more, so that it is idle is news for a while only, ms.
const IDLE_MS: i64 = 120_000;

/// What follows from a message.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// To be sent, in this order.
    pub(super) send: Vec<String>,
    /// Claimed.
    pub(super) events: Vec<NewEvent>,
}

/// A conversation with the daemon.
#[derive(Debug)]
pub(super) struct Talk {
    home: Arc<str>,
    /// When the connection was made; with the count it makes identities.
    started_at: Timestamp,
    made: u64,
    asked: Option<(u64, Ask)>,
    next_id: u64,
    refused: bool,
    to_read: VecDeque<Arc<str>>,
    /// Threads without a rollout.
    hidden: BTreeSet<Arc<str>>,
    /// What was last claimed of each thread.
    said: BTreeMap<Arc<str>, (Status, NewEvent)>,
}

/// What an answer is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Initialize,
    Loaded,
    Thread,
}

impl Talk {
    /// Begins: the first thing to send comes with it.
    pub(super) fn begin(home: &str, now: Timestamp) -> (Self, String) {
        let talk = Self {
            home: Arc::from(home),
            started_at: now,
            made: 0,
            asked: Some((1, Ask::Initialize)),
            next_id: 2,
            refused: false,
            to_read: VecDeque::new(),
            hidden: BTreeSet::new(),
            said: BTreeMap::new(),
        };
        (talk, Say::Initialize.text(1))
    }

    /// Whether an answer is waited for.
    pub(super) fn waits(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether the daemon has not even said who it is.
    pub(super) fn is_strange(&self) -> bool {
        matches!(self.asked, Some((_, Ask::Initialize)))
    }

    /// Whether the daemon does not want us.
    pub(super) fn refused(&self) -> bool {
        self.refused
    }

    /// The present states are not waited for any longer; what changes is heard all the same.
    pub(super) fn give_up_asking(&mut self) {
        self.asked = None;
        self.to_read.clear();
    }

    /// The threads something is claimed of.
    pub(super) fn threads(&self) -> impl Iterator<Item = &Arc<str>> {
        self.said.keys()
    }

    /// Takes one message in.
    ///
    /// # Errors
    /// When it is not understood; nothing has changed then.
    pub(super) fn hears(&mut self, text: &str, now: Timestamp) -> Result<Step, String> {
        let mut step = Step::default();
        match wire::read(text).map_err(|error| error.to_string())? {
            Heard::Changed { thread, status, at } => {
                step.events.extend(self.claim(&thread, status, at.map_or(now, |at| at.min(now)), now));
            }
            Heard::Began(thread) => step.events.extend(self.learn(thread, now)),
            Heard::Answered { id, answer } => {
                let Some((_, ask)) = self.asked.filter(|(asked, _)| *asked == id) else { return Ok(step) };
                self.asked = None;
                self.answered(ask, answer, now, &mut step)?;
            }
            Heard::Asked | Heard::Other => {}
        }
        Ok(step)
    }

    fn answered(&mut self, ask: Ask, answer: Answer, now: Timestamp, step: &mut Step) -> Result<(), String> {
        match (ask, answer) {
            (Ask::Initialize, Answer::Refused(why)) => {
                self.refused = true;
                return Err(format!("the daemon refused: {why}"));
            }
            (Ask::Initialize, Answer::Loaded(_) | Answer::Thread(_) | Answer::Other) => {
                step.send.push(Say::Initialized.text(0));
                step.send.push(self.ask(Ask::Loaded, &Say::LoadedList));
                return Ok(());
            }
            (Ask::Loaded, Answer::Loaded(threads)) => self.to_read.extend(threads.into_iter().take(READS)),
            (Ask::Thread, Answer::Thread(thread)) => step.events.extend(self.learn(thread, now)),
            // One that was unloaded meanwhile, or words of another version.
            (Ask::Loaded | Ask::Thread, Answer::Refused(_) | Answer::Other | Answer::Loaded(_) | Answer::Thread(_)) => {
            }
        }
        while let Some(thread) = self.to_read.pop_front() {
            if !self.hidden.contains(&thread) {
                step.send.push(self.ask(Ask::Thread, &Say::Read(&thread)));
                break;
            }
        }
        Ok(())
    }

    fn ask(&mut self, ask: Ask, say: &Say<'_>) -> String {
        let id = self.next_id;
        self.next_id += 1;
        self.asked = Some((id, ask));
        say.text(id)
    }

    /// A thread as a whole. What is at rest has been so since it last changed.
    fn learn(&mut self, thread: Thread, now: Timestamp) -> Option<NewEvent> {
        if thread.hidden {
            self.said.remove(&thread.id);
            if self.hidden.len() < THREADS {
                self.hidden.insert(thread.id);
            }
            return None;
        }
        let at = match thread.status {
            Status::Idle | Status::SystemError => thread.updated_at.map_or(now, |at| at.min(now)),
            Status::Active
            | Status::WaitingOnApproval
            | Status::WaitingOnUserInput
            | Status::NotLoaded
            | Status::Strange => now,
        };
        self.claim(&thread.id, thread.status, at, now)
    }

    fn claim(&mut self, thread: &Arc<str>, status: Status, at: Timestamp, now: Timestamp) -> Option<NewEvent> {
        if self.hidden.contains(thread) {
            if status == Status::NotLoaded {
                self.hidden.remove(thread);
            }
            return None;
        }
        if status == Status::Strange || self.said.get(thread).is_some_and(|(said, _)| *said == status) {
            return None;
        }
        let known = self.said.contains_key(thread);
        if !known && (status == Status::NotLoaded || self.said.len() >= THREADS) {
            return None;
        }
        let event = self.event(thread, signal(status, at, now), at, now);
        if status == Status::NotLoaded {
            self.said.remove(thread);
        } else {
            self.said.insert(Arc::clone(thread), (status, event.clone()));
        }
        Some(event)
    }

    fn event(&mut self, thread: &Arc<str>, signal: Signal, at: Timestamp, now: Timestamp) -> NewEvent {
        self.made += 1;
        let started_at = self.started_at.as_millisecond();
        let parts: [&[u8]; 3] = [self.home.as_bytes(), &started_at.to_le_bytes(), &self.made.to_le_bytes()];
        NewEvent {
            provider: PROVIDER,
            provider_session_id: Arc::clone(thread),
            identity: Identity::of(Provider::Capture, "codex-daemon", &parts),
            repeat: Repeat::Unique,
            source: Source::Protocol,
            created_at: Some(at),
            observed_at: now,
            parent: None,
            agent_id: None,
            confidence: Confidence::High,
            severity: None,
            text: None,
            payload: signal.into(),
            origin: Origin::Delivery { id: Arc::from(format!("codex-daemon/{started_at}/{}", self.made)) },
        }
    }

    /// What is still so of a thread nobody knew when it was claimed: the same event once more.
    pub(super) fn again(&self, thread: &str) -> Option<&NewEvent> {
        self.said.get(thread).map(|(_, event)| event)
    }

    /// The connection is lost: what was claimed is taken back.
    pub(super) fn lost(&mut self, now: Timestamp) -> Vec<NewEvent> {
        let said = std::mem::take(&mut self.said);
        let words = || Some("the daemon is gone".to_owned());
        let gone = || Signal::new(Claim::Withdrawn, Confidence::High, words());
        said.into_keys().map(|thread| self.event(&thread, gone(), now, now)).collect()
    }
}

/// What a status claims. Why it is so is better known to the conversation, but for an approval.
fn signal(status: Status, at: Timestamp, now: Timestamp) -> Signal {
    let (state, reason, strength, words) = match status {
        Status::Active => (State::Running, None, Confidence::High, "daemon: active"),
        Status::WaitingOnApproval => {
            (State::WaitingApproval, Some(Reason::Tool), Confidence::High, "daemon: active, waiting on approval")
        }
        Status::WaitingOnUserInput => {
            (State::Waiting, Some(Reason::Question), Confidence::High, "daemon: active, waiting on user input")
        }
        Status::Idle => (State::Waiting, None, Confidence::High, "daemon: idle"),
        Status::SystemError => (State::Waiting, None, Confidence::Medium, "daemon: system error"),
        Status::NotLoaded | Status::Strange => {
            return Signal::new(Claim::Withdrawn, Confidence::High, Some("daemon: not loaded".into()));
        }
    };
    let until = matches!(status, Status::Idle | Status::SystemError).then(|| at.plus_ms(IDLE_MS));
    if until.is_some_and(|until| until <= now) {
        return Signal::new(Claim::Withdrawn, Confidence::High, Some(format!("{words}, for long")));
    }
    let signal = Signal::new(Claim::State { state, reason }, strength, Some(words.into()));
    Signal { valid_until: until, ..signal }
}
