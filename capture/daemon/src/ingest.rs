//! The one place where knowledge becomes history: drops what is known, gives position and
//! sequence, folds the projections, commits, and tells the board.
//!
//! One thread owns the store's writer and the reducers. Its inputs come over one bounded channel;
//! what waits there is the only thing a slow disk can delay. A transaction holds whole inputs: if
//! it fails, nothing of it happened, the inputs are kept and tried again, and files are read no
//! further meanwhile.

mod apply;
mod approvals;
mod deliveries;
mod findings;
mod handle;
mod hosts;
mod link;
mod message;
mod processes;
mod protocol;
mod sessions;
mod telemetry;
mod tell;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ::processes::{AgentProcess, Ended};
use events::{Event, Provider, RunId, SessionId, Timestamp};
use server::{Board, Json, SessionEntry};
use store::{CommitError, PackedText, ReadError, Writer};
use tailer::collect::Batch;

use crate::{heard::Heard, ignored::Ignored, redaction};

pub use approvals::{Decide, Record, Undecided};
pub use deliveries::HookInput;
pub use findings::{Aside, Noted};
pub use handle::{IngestHandle, IngestStopped, Inputs, NotSent, channel};
use hosts::Host;
pub use hosts::HostInput;
pub use protocol::ProtocolInput;
use sessions::Sessions;
pub use telemetry::{Stored, TelemetryInput};
use tell::{HOT_VIEWS, is_active, needs_somebody};

/// Inputs that may wait for the ingest thread.
pub const INPUTS: usize = 16;
/// Live commits are at least this far apart; what comes between shares the next one.
const COMMIT_EVERY: Duration = Duration::from_millis(100);
/// A transaction of history is committed when it has so many rows,
const BACKFILL_ROWS: usize = 24_000;
/// or is this old.
const BACKFILL_AGE: Duration = Duration::from_millis(600);
/// When history pauses for so long, what is there of it is committed.
const LULL: Duration = Duration::from_millis(50);
/// While the store does not work, the wish to end is looked for this often.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What a host or a hook told longer ago than this is history: its own clock says when it was, ms.
const LATE_MS: i64 = 2_000;
/// After a failed commit the next try comes this much later.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A batch with its long texts packed, which is done on the reading threads.
#[derive(Debug)]
pub struct Prepared {
    /// The batch; long texts are cut to what an event carries.
    pub batch: Batch,
    /// The packed texts, one slot an event.
    pub texts: Vec<Option<PackedText>>,
}

impl Prepared {
    /// Packs a batch's texts.
    #[must_use]
    pub fn new(mut batch: Batch) -> Self {
        let texts = batch.events.iter_mut().map(|e| e.text.as_mut().and_then(PackedText::split)).collect();
        Self { batch, texts }
    }

    /// Packs a batch's texts without the secrets in them.
    #[must_use]
    pub fn redacted(mut batch: Batch) -> Self {
        for event in &mut batch.events {
            redaction::of_event(&mut event.text, &mut event.payload);
        }
        Self::new(batch)
    }
}

/// What the ingest thread is told.
pub enum Input {
    /// What was read of a file.
    Batch(Box<Prepared>),
    /// A process ended.
    Ended(Ended),
    /// The agents that run now.
    Agents(Vec<AgentProcess>),
    /// Turn capture of a session on or off; the answer says whether there is such a session.
    SetCapture(SessionId, bool, Box<dyn FnOnce(Result<bool, String>) + Send>),
    /// Labels of a session, `key=value` or `key`; the answer says whether there is such a session.
    Label(SessionId, Vec<String>, Box<dyn FnOnce(Result<bool, String>) + Send>),
    /// What the host of a run tells.
    Host(HostInput),
    /// What an agent's hook hands over.
    Delivery(Box<HookInput>),
    /// What an agent tells over OpenTelemetry.
    Telemetry(TelemetryInput),
    /// What an agent's daemon says.
    Protocol(ProtocolInput),
    /// An approval was decided.
    Decide(Box<Decide>),
    /// Something of an approval is to be recorded.
    Record(Box<Record>),
    /// A hook waits for the decision on an approval, and nothing of the agent shows it; or no more.
    Waits(SessionId, String, bool),
    /// A finding, a message that was sent, a prompt that waits.
    Aside(Aside),
    /// Commit and end.
    Stop,
}

/// What others may know of the ingest thread.
#[derive(Debug, Default)]
pub struct Gauges {
    /// Events committed since the start.
    pub events: AtomicU64,
    /// Records that were known already.
    pub repeated: AtomicU64,
    /// Commits.
    pub commits: AtomicU64,
    /// Commits that failed.
    pub failed: AtomicU64,
    /// Whether the last commit failed: nothing is stored until one succeeds.
    pub stuck: AtomicBool,
    /// The program wants to end: a store that does not work is not waited for any more.
    pub ending: AtomicBool,
    /// The last event of each agent, by the code of its provider: milliseconds since 1970, 0 for
    /// none since the start.
    pub last_event_at: [AtomicI64; Provider::ALL.len()],
    /// What is heard of hooks, and what is not.
    pub heard: Heard,
    /// Approvals that were asked for since the start.
    pub approvals_asked: AtomicU64,
    /// How those were closed, by the code of their state.
    pub approvals_closed: [AtomicU64; events::ApprovalState::ALL.len() + 1],
    /// How long they waited, ms.
    pub approvals_waited: AtomicU64,
    /// Findings that were raised since the start, by the code of their kind.
    pub findings: [AtomicU64; events::FindingKind::ALL.len() + 1],
}

/// What ingest asks of the process side.
pub trait Processes: Send {
    /// A process runs a session: tell when it ends.
    fn watch(&mut self, pid: u32, start_ticks: u64);
    /// A live session's process is not known: look for it, at once if the session is `fresh`.
    fn wanted(&mut self, fresh: bool);
    /// The run a process belongs to, as its environment says.
    fn run_of(&mut self, pid: u32) -> Option<RunId>;
}

/// Reads the clock; the tests give their own.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Who looks on: told after the commit, and never to wait.
pub trait Onlooker: Send {
    /// A run hosts a session. Told before the commit.
    fn hosts(&self, _run: RunId, _session: SessionId) {}
    /// An approval was opened or closed.
    fn approval(&self, _approval: projections::Approval) {}
    /// A finding changed.
    fn finding(&self, _finding: events::Finding) {}
    /// The log goes up to this position; what is new in it was seen as it happened.
    fn committed(&self, _position: u64) {}
}

/// Nobody looks on.
pub struct Nobody;

impl Onlooker for Nobody {}

/// The ingest thread's state.
pub struct Ingest {
    writer: Writer,
    sessions: Sessions,
    board: Board,
    gauges: Arc<Gauges>,
    processes: Box<dyn Processes>,
    clock: Clock,
    position: u64,
    /// Inputs of the open transaction.
    open: Vec<Input>,
    open_since: Option<Instant>,
    last_commit: Option<Instant>,
    rows: usize,
    /// Whether the open transaction holds anything but history.
    live: bool,
    /// Whether it holds a request for an approval: somebody is needed, and nobody is to wait for that.
    urgent: bool,
    /// Events of the open transaction, for the streams.
    committed: Vec<(Event, bool)>,
    deadlines: BTreeSet<(Timestamp, usize)>,
    /// Sessions whose clock stands still, by the file whose history is not read to its end yet.
    resting: HashMap<String, BTreeSet<usize>>,
    /// Runs whose hosts are connected.
    hosts: HashMap<RunId, Host>,
    /// Looks on.
    onlooker: Box<dyn Onlooker>,
    /// Approvals the open transaction changes.
    changed_approvals: Vec<projections::Approval>,
    /// Findings the open transaction changes.
    changed_findings: Vec<events::Finding>,
    /// The end of the record, when the open transaction adds to it.
    audited: Option<store::AuditHead>,
    /// Agents that ran without a session when last looked: (pid, start ticks).
    lonely: Vec<(u32, u64)>,
    ignored: Ignored,
    /// Nothing is stored before its secrets are taken out.
    redacted_only: bool,
}

/// Why the open transaction has to be given up.
#[derive(Debug)]
enum Failure {
    Write(CommitError),
    Read(ReadError),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Write(error) => error.fmt(f),
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Self {
        Self::Write(error)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// What [`Ingest`] works with.
pub struct Parts {
    /// The store.
    pub writer: Writer,
    /// What is live.
    pub board: Board,
    /// Counters.
    pub gauges: Arc<Gauges>,
    /// The process side.
    pub processes: Box<dyn Processes>,
    /// The clock.
    pub clock: Clock,
    /// Looks on.
    pub onlooker: Box<dyn Onlooker>,
    /// Limits of the status rules.
    pub rules: projections::Rules,
    /// Sessions that begin in or below these directories are not captured.
    pub ignore: Vec<PathBuf>,
    /// Nothing is stored before its secrets are taken out.
    pub redacted_only: bool,
}

impl Ingest {
    /// Takes up the store where it was left.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn new(parts: Parts) -> Result<Self, ReadError> {
        let Parts { writer, board, gauges, processes, clock, onlooker, rules, ignore, redacted_only } = parts;
        let sessions = Sessions::load(&writer, rules)?;
        let position = writer.position()?;
        let mut ingest = Self {
            writer,
            sessions,
            board,
            gauges,
            processes,
            clock,
            position,
            open: Vec::new(),
            open_since: None,
            last_commit: None,
            rows: 0,
            live: false,
            urgent: false,
            committed: Vec::new(),
            deadlines: BTreeSet::new(),
            resting: HashMap::new(),
            hosts: HashMap::new(),
            onlooker,
            changed_approvals: Vec::new(),
            changed_findings: Vec::new(),
            audited: None,
            lonely: Vec::new(),
            ignored: Ignored::new(ignore),
            redacted_only,
        };
        ingest.load_board()?;
        Ok(ingest)
    }

    /// Puts every known session on the board, and takes up the clocks of those that may change.
    fn load_board(&mut self) -> Result<(), ReadError> {
        let filter = store::SessionFilter { before: None, limit: usize::MAX };
        let views = self.writer.reader().views(&filter)?;
        let now = (self.clock)();
        let mut entries = Vec::with_capacity(views.len());
        for (index, json) in views.into_iter().enumerate() {
            let session: projections::Session = match serde_json::from_str(&json) {
                Ok(session) => session,
                Err(error) => {
                    tracing::warn!(%error, "a damaged session view is left out until its next event");
                    continue;
                }
            };
            let mut entry = SessionEntry::cold(&session, is_active(&session, now));
            if index < HOT_VIEWS {
                entry.json = Json::of(&session).ok();
            }
            // One that rests may still have a process, whose end must not be missed.
            if session.pid.is_some()
                || !matches!(session.status.state, events::State::Exited | events::State::Idle | events::State::Unknown)
            {
                self.sessions.wake(session.id);
            }
            entries.push(entry);
        }
        self.board.load(entries, self.position);
        for slot in self.sessions.woken() {
            self.sessions.state(&self.writer, slot)?;
            self.schedule(slot);
            if let Some((pid, start)) = self.sessions.loaded(slot).and_then(projections::SessionState::process) {
                self.processes.watch(pid, start);
            }
        }
        self.writer.shrink();
        Ok(())
    }

    /// Runs until told to stop, or until nobody can tell it anything any more.
    pub fn run(mut self, inputs: Inputs) {
        loop {
            let Ok(input) = inputs.recv(self.next_wait()) else { break };
            let lull = input.is_none() && !self.live;
            match input {
                Some(Input::Stop) => break,
                Some(input) => self.take(input),
                None => {}
            }
            self.advance();
            if self.commit_is_due() || lull {
                self.commit();
            }
            if self.gave_up() {
                break;
            }
        }
        if !self.gave_up() {
            self.commit();
        }
        // Whoever waits to tell us something must not wait for ever: the channel goes first.
        drop(inputs);
    }

    /// The program ends while the store does not work: what is open is read again at the next start.
    fn gave_up(&self) -> bool {
        self.gauges.stuck.load(Ordering::Relaxed) && self.gauges.ending.load(Ordering::Relaxed)
    }

    /// How long nothing needs to be done, unless an input comes.
    fn next_wait(&self) -> Option<Duration> {
        let commit = self.open_since.map(|since| {
            let due = match (self.live, self.last_commit) {
                (true, Some(last)) => last + COMMIT_EVERY,
                (true, None) => since,
                (false, _) => (since + BACKFILL_AGE).min(Instant::now() + LULL),
            };
            due.saturating_duration_since(Instant::now())
        });
        let deadline =
            self.deadlines.first().map(|(due, _)| Duration::from_millis(due.since_ms((self.clock)()).max(0) as u64));
        commit.into_iter().chain(deadline).min()
    }

    fn commit_is_due(&self) -> bool {
        let Some(since) = self.open_since else { return false };
        if self.live {
            return self.urgent || self.last_commit.is_none_or(|last| last.elapsed() >= COMMIT_EVERY);
        }
        self.rows >= BACKFILL_ROWS || since.elapsed() >= BACKFILL_AGE
    }

    /// Takes an input into the open transaction.
    pub fn take(&mut self, input: Input) {
        if matches!(&input, Input::Protocol(told) if self.is_moot(told)) {
            return;
        }
        let rows_before = self.committed.len();
        let live = !matches!(&input, Input::Batch(prepared) if prepared.batch.backfill);
        match self.try_take(&input) {
            Ok(()) => {
                self.live |= live;
                self.urgent |= live && self.committed[rows_before..].iter().any(|(event, _)| needs_somebody(event));
                self.open.push(input);
                if live && self.committed.len() > rows_before && !self.commit_is_due() {
                    self.tell_ahead();
                }
            }
            Err(failure) => {
                self.open.push(input);
                self.recover(&failure);
            }
        }
    }

    fn try_take(&mut self, input: &Input) -> Result<(), Failure> {
        if self.open_since.is_none() {
            self.writer.begin()?;
            self.open_since = Some(Instant::now());
        }
        match input {
            Input::Batch(prepared) => self.apply_batch(prepared),
            Input::Ended(ended) => self.apply_end(*ended),
            Input::Agents(agents) => self.apply_agents(agents),
            Input::SetCapture(id, on, _) => self.apply_capture(*id, *on),
            Input::Label(id, labels, _) => self.apply_labels(*id, labels),
            Input::Host(told) => self.apply_host(told),
            Input::Delivery(told) => self.apply_delivery(told),
            Input::Telemetry(told) => self.apply_telemetry(&told.events),
            Input::Protocol(told) => self.apply_protocol(told),
            Input::Decide(decide) => self.apply_decide(decide),
            Input::Record(record) => self.apply_record(record),
            Input::Waits(session, approval, on) => self.apply_wait(*session, approval, *on),
            Input::Aside(aside) => self.apply_aside(aside),
            Input::Stop => Ok(()),
        }
    }

    /// Lets time pass for the sessions whose moment has come.
    pub fn advance(&mut self) {
        let now = (self.clock)();
        while let Some((due, slot)) = self.deadlines.first().copied().filter(|(due, _)| *due <= now) {
            self.deadlines.remove(&(due, slot));
            if let Err(failure) = self.try_advance(slot, now) {
                self.recover(&failure);
                return;
            }
        }
    }

    fn try_advance(&mut self, slot: usize, now: Timestamp) -> Result<(), Failure> {
        let state = self.sessions.state(&self.writer, slot)?;
        let reason = state.session.status.reason;
        let conclusions = state.advance(now);
        // Why a session runs may change without an event: a claim that it tries again has ended.
        if !conclusions.is_empty() || state.session.status.reason != reason {
            if self.open_since.is_none() {
                self.writer.begin()?;
                self.open_since = Some(Instant::now());
            }
            self.live = true;
            self.conclude(slot, conclusions, now, false)?;
            self.sessions.mark(slot);
        }
        self.schedule(slot);
        Ok(())
    }

    /// Notes when a session's clock runs out next.
    fn schedule(&mut self, slot: usize) {
        let due = self.sessions.loaded(slot).and_then(projections::SessionState::next_deadline);
        if let Some(old) = self.sessions.swap_deadline(slot, due) {
            self.deadlines.remove(&(old, slot));
        }
        if let Some(due) = due {
            self.deadlines.insert((due, slot));
        }
    }

    /// While the history of a file is read in parts, time must not pass between them: the rest
    /// tells what happened then. The last part lets the clocks run.
    fn rest(&mut self, cursor: &events::Cursor, reads_on: bool, touched: impl Iterator<Item = usize>) {
        if reads_on {
            let resting = self.resting.entry(cursor.path.clone()).or_default();
            for slot in touched {
                resting.insert(slot);
                if let Some(due) = self.sessions.swap_deadline(slot, None) {
                    self.deadlines.remove(&(due, slot));
                }
            }
        } else if let Some(resting) = self.resting.remove(&cursor.path) {
            resting.into_iter().for_each(|slot| self.schedule(slot));
        }
    }

    /// Commits what is open and tells the board.
    pub fn commit(&mut self) {
        if self.open_since.is_none() {
            return;
        }
        match self.try_commit() {
            Ok(entries) => {
                self.gauges.stuck.store(false, Ordering::Relaxed);
                self.close(entries);
            }
            Err(failure) => self.recover(&failure),
        }
    }

    /// The open transaction is committed: tells who is to know, and begins anew.
    fn close(&mut self, entries: Vec<SessionEntry>) {
        self.gauges.commits.fetch_add(1, Ordering::Relaxed);
        self.gauges.events.fetch_add(self.committed.len() as u64, Ordering::Relaxed);
        self.open_since = None;
        self.last_commit = Some(Instant::now());
        self.rows = 0;
        let live = std::mem::take(&mut self.live);
        self.urgent = false;
        self.tell(entries);
        self.committed.clear();
        self.sessions.settle();
        self.tell_approvals();
        self.tell_findings();
        if live {
            self.onlooker.committed(self.position);
        }
        for input in std::mem::take(&mut self.open) {
            match input {
                Input::SetCapture(id, _, reply) | Input::Label(id, _, reply) => {
                    reply(Ok(self.sessions.find(id).is_some()));
                }
                Input::Host(HostInput::Frame { frame, stored, .. }) => stored(frame.n),
                Input::Delivery(told) => self.delivered(*told),
                Input::Decide(decide) => decide.tell(),
                Input::Aside(aside) => (aside.done)(self.sessions.find(aside.session).is_some()),
                Input::Record(record) => (record.done)(),
                Input::Telemetry(told) => (told.stored)(self.strange(&told.events)),
                Input::Protocol(ProtocolInput::Claims { events, stored }) => stored(self.unknown(&events)),
                Input::Protocol(ProtocolInput::Only { .. })
                | Input::Host(HostInput::Hello(_) | HostInput::Lost(_))
                | Input::Batch(_)
                | Input::Ended(_)
                | Input::Agents(_)
                | Input::Waits(..)
                | Input::Stop => {}
            }
        }
    }

    /// Gives the rows of the changed sessions for the board: what is told is what was stored.
    fn try_commit(&mut self) -> Result<Vec<SessionEntry>, Failure> {
        let now = (self.clock)();
        let mut entries = Vec::new();
        for slot in self.sessions.dirty() {
            let Some((row, last_event_at, view, snapshot)) = self.sessions.snapshot(slot) else { continue };
            self.writer.put_session(row, last_event_at, view.as_str(), &snapshot)?;
            if let Some(state) = self.sessions.loaded(slot) {
                let cold = SessionEntry::cold(&state.session, is_active(&state.session, now));
                entries.push(SessionEntry { json: Some(view), ..cold });
            }
        }
        self.writer.commit()?;
        Ok(entries)
    }

    /// After a failure: nothing of the open transaction happened. Its inputs are taken again,
    /// after a while; until then no other input is taken, so that readers wait.
    fn recover(&mut self, failure: &Failure) {
        let mut wait = RETRY_AFTER;
        tracing::error!(%failure, "storing failed; trying again, nothing is read further until it works");
        loop {
            self.gauges.failed.fetch_add(1, Ordering::Relaxed);
            self.gauges.stuck.store(true, Ordering::Relaxed);
            self.writer.rollback();
            self.committed.clear();
            self.changed_approvals.clear();
            self.changed_findings.clear();
            self.audited = None;
            self.open_since = None;
            self.rows = 0;
            self.pause(wait);
            if self.gave_up() {
                tracing::error!("ending without the last records: they are read again at the next start");
                return;
            }
            wait = (wait * 2).min(Duration::from_secs(30));
            match self.replay() {
                Ok(()) => {
                    self.gauges.stuck.store(false, Ordering::Relaxed);
                    tracing::info!("storing works again");
                    return;
                }
                Err(failure) => tracing::error!(%failure, "storing still fails"),
            }
        }
    }

    fn replay(&mut self) -> Result<(), Failure> {
        self.position = self.writer.position()?;
        let slots = self.sessions.forget(&self.writer)?;
        self.deadlines.clear();
        self.resting.clear();
        self.forget_hosts();
        for slot in slots {
            self.schedule(slot);
        }
        let inputs = std::mem::take(&mut self.open);
        for (done, input) in inputs.iter().enumerate() {
            if let Err(failure) = self.try_take(input) {
                tracing::debug!(done, "gave up again");
                self.open = inputs;
                return Err(failure);
            }
        }
        self.open = inputs;
        self.seat_hosts()?;
        if self.open_since.is_some() {
            let entries = self.try_commit()?;
            self.close(entries);
        }
        Ok(())
    }

    /// Waits, but not beyond the wish to end.
    fn pause(&self, wait: Duration) {
        let until = Instant::now() + wait;
        while Instant::now() < until && !self.gauges.ending.load(Ordering::Relaxed) {
            // Nobody sends on this channel: it is a wait.
            crossbeam_channel::after(LOOK_EVERY.min(wait)).recv().ok();
        }
    }
}
