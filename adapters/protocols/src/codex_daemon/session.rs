//! The conversation over one connection: processes messages, and returns messages to send and claims.
//!
//! It uses no socket and no clock. It claims the last reported status of each thread, and withdraws the claims when the
//! connection is lost.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use events::{
    Claim, Confidence, Identity, NewEvent, Origin, Provider, Reason, Repeat, Signal, Source, State, Timestamp,
};

use super::wire::{self, DaemonMessage, DaemonReply, DaemonRequest, Thread, ThreadStatus};

/// The agent whose daemon this is.
pub const PROVIDER: Provider = Provider::Codex;
/// Maximum number of threads remembered.
const THREADS: usize = 1_024;
/// Maximum number of threads read at the start of a connection.
const READS: usize = 128;
/// How long an idle thread counts as waiting, in ms: a thread stays loaded long after its user has left.
const IDLE_MS: i64 = 120_000;

/// The result of a message: messages to send and events.
#[derive(Debug, Default)]
pub(super) struct SessionOutput {
    /// Messages to send, in this order.
    pub(super) send: Vec<String>,
    /// Claims.
    pub(super) events: Vec<NewEvent>,
}

/// A conversation with the daemon.
#[derive(Debug)]
pub(super) struct DaemonSession {
    home: Arc<str>,
    /// When the connection was made; together with the count it forms identities.
    started_at: Timestamp,
    made: u64,
    asked: Option<(u64, PendingReply)>,
    next_id: u64,
    refused: bool,
    to_read: VecDeque<Arc<str>>,
    /// Threads without a rollout.
    hidden: BTreeSet<Arc<str>>,
    /// The last claim of each thread.
    said: BTreeMap<Arc<str>, (ThreadStatus, NewEvent)>,
}

/// The kind of reply that is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingReply {
    Initialize,
    Loaded,
    Thread,
}

impl DaemonSession {
    /// Starts a conversation; also returns the first message to send.
    pub(super) fn begin(home: &str, now: Timestamp) -> (Self, String) {
        let talk = Self {
            home: Arc::from(home),
            started_at: now,
            made: 0,
            asked: Some((1, PendingReply::Initialize)),
            next_id: 2,
            refused: false,
            to_read: VecDeque::new(),
            hidden: BTreeSet::new(),
            said: BTreeMap::new(),
        };
        (talk, DaemonRequest::Initialize.text(1))
    }

    /// Whether a reply is awaited.
    pub(super) fn waits(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether the daemon has not identified itself yet.
    pub(super) fn is_strange(&self) -> bool {
        matches!(self.asked, Some((_, PendingReply::Initialize)))
    }

    /// Whether the daemon refused the connection.
    pub(super) fn refused(&self) -> bool {
        self.refused
    }

    /// Stops waiting for the current states; changes are still processed.
    pub(super) fn stop_waiting(&mut self) {
        self.asked = None;
        self.to_read.clear();
    }

    /// The threads with a current claim.
    pub(super) fn threads(&self) -> impl Iterator<Item = &Arc<str>> {
        self.said.keys()
    }

    /// Processes one message.
    ///
    /// # Errors
    /// If it is not understood; in that case nothing has changed.
    pub(super) fn receive(&mut self, text: &str, now: Timestamp) -> Result<SessionOutput, String> {
        let mut step = SessionOutput::default();
        match wire::read(text).map_err(|error| error.to_string())? {
            DaemonMessage::Changed { thread, status, at } => {
                step.events.extend(self.claim(&thread, status, at.map_or(now, |at| at.min(now)), now));
            }
            DaemonMessage::Began(thread) => step.events.extend(self.apply_thread(thread, now)),
            DaemonMessage::Answered { id, answer } => {
                let Some((_, ask)) = self.asked.filter(|(asked, _)| *asked == id) else { return Ok(step) };
                self.asked = None;
                self.apply_reply(ask, answer, now, &mut step)?;
            }
            DaemonMessage::Asked | DaemonMessage::Other => {}
        }
        Ok(step)
    }

    fn apply_reply(
        &mut self,
        ask: PendingReply,
        answer: DaemonReply,
        now: Timestamp,
        step: &mut SessionOutput,
    ) -> Result<(), String> {
        match (ask, answer) {
            (PendingReply::Initialize, DaemonReply::Refused(why)) => {
                self.refused = true;
                return Err(format!("the daemon refused: {why}"));
            }
            (PendingReply::Initialize, DaemonReply::Loaded(_) | DaemonReply::Thread(_) | DaemonReply::Other) => {
                step.send.push(DaemonRequest::Initialized.text(0));
                step.send.push(self.request(PendingReply::Loaded, &DaemonRequest::LoadedList));
                return Ok(());
            }
            (PendingReply::Loaded, DaemonReply::Loaded(threads)) => {
                self.to_read.extend(threads.into_iter().take(READS))
            }
            (PendingReply::Thread, DaemonReply::Thread(thread)) => step.events.extend(self.apply_thread(thread, now)),
            // The thread was unloaded in the meantime, or the message is of another version.
            (
                PendingReply::Loaded | PendingReply::Thread,
                DaemonReply::Refused(_) | DaemonReply::Other | DaemonReply::Loaded(_) | DaemonReply::Thread(_),
            ) => {}
        }
        while let Some(thread) = self.to_read.pop_front() {
            if !self.hidden.contains(&thread) {
                step.send.push(self.request(PendingReply::Thread, &DaemonRequest::Read(&thread)));
                break;
            }
        }
        Ok(())
    }

    fn request(&mut self, ask: PendingReply, say: &DaemonRequest<'_>) -> String {
        let id = self.next_id;
        self.next_id += 1;
        self.asked = Some((id, ask));
        say.text(id)
    }

    /// Applies the full state of a thread. An idle thread has been idle since its last change.
    fn apply_thread(&mut self, thread: Thread, now: Timestamp) -> Option<NewEvent> {
        if thread.hidden {
            self.said.remove(&thread.id);
            if self.hidden.len() < THREADS {
                self.hidden.insert(thread.id);
            }
            return None;
        }
        let at = match thread.status {
            ThreadStatus::Idle | ThreadStatus::SystemError => thread.updated_at.map_or(now, |at| at.min(now)),
            ThreadStatus::Active
            | ThreadStatus::WaitingOnApproval
            | ThreadStatus::WaitingOnUserInput
            | ThreadStatus::NotLoaded
            | ThreadStatus::Strange => now,
        };
        self.claim(&thread.id, thread.status, at, now)
    }

    fn claim(&mut self, thread: &Arc<str>, status: ThreadStatus, at: Timestamp, now: Timestamp) -> Option<NewEvent> {
        if self.hidden.contains(thread) {
            if status == ThreadStatus::NotLoaded {
                self.hidden.remove(thread);
            }
            return None;
        }
        if status == ThreadStatus::Strange || self.said.get(thread).is_some_and(|(said, _)| *said == status) {
            return None;
        }
        let known = self.said.contains_key(thread);
        if !known && (status == ThreadStatus::NotLoaded || self.said.len() >= THREADS) {
            return None;
        }
        let event = self.event(thread, signal(status, at, now), at, now);
        if status == ThreadStatus::NotLoaded {
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

    /// The current claim of a thread that was unknown when claimed: the same event again.
    pub(super) fn again(&self, thread: &str) -> Option<&NewEvent> {
        self.said.get(thread).map(|(_, event)| event)
    }

    /// Handles a lost connection: withdraws all claims.
    pub(super) fn lost(&mut self, now: Timestamp) -> Vec<NewEvent> {
        let said = std::mem::take(&mut self.said);
        let words = || Some("the Codex daemon is gone".to_owned());
        let gone = || Signal::new(Claim::Withdrawn, Confidence::High, words());
        said.into_keys().map(|thread| self.event(&thread, gone(), now, now)).collect()
    }
}

/// The claim for a status. Its reason is better known from the conversation, except for an approval.
fn signal(status: ThreadStatus, at: Timestamp, now: Timestamp) -> Signal {
    let (state, reason, strength, words) = match status {
        ThreadStatus::Active => (State::Running, None, Confidence::High, "daemon: active"),
        ThreadStatus::WaitingOnApproval => {
            (State::WaitingApproval, Some(Reason::Tool), Confidence::High, "daemon: active, waiting on approval")
        }
        ThreadStatus::WaitingOnUserInput => {
            (State::Waiting, Some(Reason::Question), Confidence::High, "daemon: active, waiting on user input")
        }
        ThreadStatus::Idle => (State::Waiting, None, Confidence::High, "daemon: idle"),
        ThreadStatus::SystemError => (State::Waiting, None, Confidence::Medium, "daemon: system error"),
        ThreadStatus::NotLoaded | ThreadStatus::Strange => {
            return Signal::new(Claim::Withdrawn, Confidence::High, Some("daemon: not loaded".into()));
        }
    };
    let until = matches!(status, ThreadStatus::Idle | ThreadStatus::SystemError).then(|| at.plus_ms(IDLE_MS));
    if until.is_some_and(|until| until <= now) {
        return Signal::new(Claim::Withdrawn, Confidence::High, Some(format!("{words}, for long")));
    }
    let signal = Signal::new(Claim::State { state, reason }, strength, Some(words.into()));
    Signal { valid_until: until, ..signal }
}
