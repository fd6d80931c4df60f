//! The single writer of the event log: drops known records, assigns position and sequence, folds the projections,
//! commits, and publishes.
//!
//! One thread owns the store's writer and the reducers. Its inputs arrive over one bounded channel, so a slow disk
//! delays only those inputs. A transaction contains whole inputs: if it fails, it has no effect, its inputs are
//! retried, and files are not read until it succeeds.
//!
//! [`Ingest`] consists of parts that own their data: the table of `sessions` with their deadlines, the open
//! `transaction`, the `publisher`, the `hosts` of runs, and the agents without a session in `processes`. Each kind of
//! input is applied by its own module; all of them end in `fold`.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

mod activity;
mod approvals;
mod batch;
mod checkpoint;
mod counters;
mod deliveries;
mod findings;
mod fold;
mod handle;
pub mod hook_health;
mod hosts;
mod ignored;
mod input;
mod link;
mod message;
mod processes;
mod protocol;
mod publisher;
mod removal;
mod sessions;
mod sleep;
mod start;
pub mod store_health;
mod telemetry;
#[cfg(test)]
mod tests;
mod transaction;

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use events::{Provider, RunId, SessionId, Timestamp};
use live_view::{LiveView, SessionEntry};
use projections::{Session, SessionState};
use store::{CommitError, ReadError, ReadFailure, Writer};

use ignored::Ignored;

use activity::{is_active, is_standing};
pub use approvals::{ApprovalRecord, DecisionCommit, Undecided};
pub use checkpoint::CheckpointProgress;
pub use counters::Counters;
pub use deliveries::HookInput;
pub use findings::{DerivedKind, DerivedRecord};
pub use handle::{IngestHandle, IngestStopped, Inputs, NotSent, channel};
use hosts::Hosts;
pub use hosts::{HostInput, HostedSession};
pub use input::{ChangeReply, IngestInput, Preparation, PreparedBatch, PreparedEvent};
use processes::Unclaimed;
pub use protocol::ProtocolInput;
use publisher::Publisher;
pub use publisher::{CommitObserver, Gauges, NoObserver};
pub use removal::{RemovalRequest, RemovalTicket};
use sessions::Sessions;
pub use sleep::{SleepWatch, Uptime, UptimeClock};
pub use telemetry::{Stored, TelemetryInput};
pub use transaction::LARGE_LOG;
use transaction::{OpenTransaction, TransactionFailure};

/// Capacity of the ingest channel: enough to keep ingest busy while reading threads wake up, and readers busy while
/// ingest commits.
pub const INPUTS: usize = 64;
/// Time after the start, or after the last commit of history, until freed memory is returned to the system.
const IMPORT_ENDED: Duration = Duration::from_secs(2);
/// Interval at which the request to end is checked while the store is failing.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Age in ms, by its own clock, from which a report of a host or hook counts as history.
const LATE_MS: i64 = 2_000;
/// First delay after a failed commit.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Longest delay between retries.
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// Longest delay while another program holds the database lock.
const LOCKED_RETRY: Duration = Duration::from_secs(2);

/// What ingest requests from the process watcher.
pub trait Processes: Send {
    /// Watch a process that runs a session, and report its end.
    fn watch(&mut self, pid: u32, start_ticks: u64);
    /// Look for the process of a live session; at once if the session is `fresh`.
    fn wanted(&mut self, fresh: bool);
    /// The run a process belongs to, according to its environment.
    fn run_of(&mut self, pid: u32) -> Option<RunId>;
    /// Whether a process is still running.
    fn is_alive(&self, pid: u32, start_ticks: u64) -> bool;
    /// Watch the commands below the process of a session that waits for permission; `None` stops watching.
    fn watch_request(&mut self, session: SessionId, request: Option<WatchedRequest>);
}

/// A permission request whose outcome may show among the processes below its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedRequest {
    /// The agent's process id and start time in clock ticks since boot.
    pub agent: (u32, u64),
    /// What to watch for.
    pub asks_for: WatchedAction,
}

/// The action a request asks permission for, if processes can show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchedAction {
    /// This command, if the request names it: if one begins, permission was granted.
    Command(Option<String>),
    /// An action that runs no process, or whose process cannot be attributed to a call. Only the user's hooks are
    /// watched.
    Other,
}

/// Reads the clock; tests supply their own.
pub use notifier::Clock;

/// The ingest thread's state. Each part owns its data; steps that need several parts are implemented here.
pub struct Ingest {
    sessions: Sessions,
    transaction: OpenTransaction,
    publisher: Publisher,
    hosts: Hosts,
    unclaimed: Unclaimed,
    ignored: Ignored,
    processes: Box<dyn Processes>,
    clock: Clock,
    wall: Clock,
    sleep: SleepWatch,
    /// Sessions that a daemon made claims about before they were known, until the claims are answered.
    unmatched: HashSet<Arc<str>>,
    /// Whether current events were applied that lists do not show yet.
    has_news: bool,
    /// When the start, or the import that the last commit belonged to, counts as finished.
    import_ended: Option<Instant>,
    /// Whether secrets are removed before anything is stored.
    redacted_only: bool,
    /// Requests a checkpoint of the store.
    checkpoint: Box<dyn Fn() + Send>,
}

/// Ingest and its channel, for the ingest thread. The channel is dropped first: a blocked sender must not wait for
/// parts that end after ingest.
pub struct IngestLoop {
    inputs: Inputs,
    ingest: Ingest,
}

impl IngestLoop {
    /// Creates a loop over these inputs.
    #[must_use]
    pub const fn new(ingest: Ingest, inputs: Inputs) -> Self {
        Self { inputs, ingest }
    }

    /// Runs until a stop input, or until all senders are gone.
    pub fn run(&mut self) {
        self.ingest.run(&self.inputs);
    }
}

/// The session as published: its status must not lie in the future if the wall clock was set back.
fn shown(state: &mut SessionState, wall: Timestamp) -> Session {
    let mut session = state.view().clone();
    session.status.since = session.status.since.min(wall);
    session
}

/// The parts [`Ingest`] is built from.
pub struct IngestParts {
    /// The store.
    pub writer: Writer,
    /// The live view.
    pub live_view: LiveView,
    /// The metrics.
    pub gauges: Arc<Gauges>,
    /// The process watcher.
    pub processes: Box<dyn Processes>,
    /// The clock.
    pub clock: Clock,
    /// The wall clock, which may be set back.
    pub wall: Clock,
    /// The machine's uptime.
    pub uptime: UptimeClock,
    /// The observer of commits.
    pub onlooker: Box<dyn CommitObserver>,
    /// Limits of the status rules.
    pub rules: projections::StatusRules,
    /// Sessions that begin in or below these directories are not captured.
    pub ignore: Vec<PathBuf>,
    /// Whether secrets are removed before anything is stored.
    pub redacted_only: bool,
    /// Requests a checkpoint of the store; never blocks.
    pub checkpoint: Box<dyn Fn() + Send>,
}

impl Ingest {
    /// Continues from the stored state.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn new(parts: IngestParts) -> Result<Self, ReadError> {
        let IngestParts {
            writer,
            live_view,
            gauges,
            processes,
            clock,
            wall,
            uptime,
            onlooker,
            rules,
            ignore,
            redacted_only,
            checkpoint,
        } = parts;
        gauges.store.opened(writer.path(), writer.reader().damaged());
        let reader = writer.reader();
        let (sessions, views) = Sessions::load(&writer, &reader, rules)?;
        let mut ingest = Self {
            sessions,
            transaction: OpenTransaction::new(writer)?,
            publisher: Publisher { live_view, gauges, onlooker },
            hosts: Hosts::default(),
            unclaimed: Unclaimed::default(),
            ignored: Ignored::new(ignore),
            processes,
            clock,
            wall,
            sleep: SleepWatch::new(uptime),
            unmatched: HashSet::new(),
            has_news: false,
            // The start reads a lot of data that is not needed later.
            import_ended: Some(Instant::now() + IMPORT_ENDED),
            redacted_only,
            checkpoint,
        };
        ingest.load_board(views, &reader)?;
        Ok(ingest)
    }

    /// Runs until a stop input, or until all senders are gone.
    fn run(&mut self, inputs: &Inputs) {
        loop {
            let wait = self.next_wait();
            let wait = self.sleep.begin(wait);
            let Ok(input) = inputs.recv(wait) else { break };
            let slept = self.sleep.end();
            self.note_sleep(slept);
            let lull = input.is_none() && self.transaction.is_open() && !self.transaction.is_live();
            match input {
                Some(IngestInput::Stop) => break,
                Some(IngestInput::Commit(done)) => {
                    self.commit();
                    done.send(()).ok();
                }
                Some(input @ IngestInput::Remove(_)) => {
                    // Earlier inputs are published before the removal, and later ones after it.
                    self.commit_all();
                    self.apply(input);
                    self.commit_all();
                }
                Some(IngestInput::Maintain(work)) => {
                    self.commit();
                    work(&mut self.transaction.writer);
                }
                Some(input) => self.apply(input),
                None => {}
            }
            self.advance();
            self.transaction.set_watched(self.publisher.live_view.wants_events());
            let behind_is_due = self.sessions.behind_due().is_some_and(|due| due.is_zero());
            if self.transaction.is_due() || lull {
                self.commit();
            } else if behind_is_due && !self.transaction.is_open() {
                self.commit_all();
            }
            if self.import_ended.is_some_and(|due| Instant::now() >= due) && !self.transaction.is_open() {
                self.import_ended = None;
                self.transaction.writer.release_memory();
            }
            if self.gave_up() {
                break;
            }
        }
        if !self.gave_up() {
            self.finish();
        }
    }

    /// Commits the open transaction and all rows, before an orderly end.
    pub fn finish(&mut self) {
        self.sessions.settle_at_next_write(self.transaction.position());
        self.commit_all();
    }

    /// Whether the program is ending while the store fails: the uncommitted inputs are read again at the next start.
    fn gave_up(&self) -> bool {
        let gauges = &self.publisher.gauges;
        gauges.stuck.load(Ordering::Relaxed) && gauges.ending.load(Ordering::Relaxed)
    }

    /// How long to wait for an input before something is due.
    fn next_wait(&self) -> Option<Duration> {
        let deadline = self.sessions.next_deadline();
        let deadline = deadline.map(|due| Duration::from_millis(due.since_ms((self.clock)()).max(0) as u64));
        // An open transaction is committed soon anyway, with these rows; memory is released after that.
        let behind = self.sessions.behind_due().filter(|_| !self.transaction.is_open());
        let release = self.import_ended.filter(|_| !self.transaction.is_open());
        let release = release.map(|due| due.saturating_duration_since(Instant::now()));
        self.transaction.wait().into_iter().chain(deadline).chain(behind).chain(release).min()
    }

    /// The reducer of a session.
    fn state(&mut self, slot: usize) -> Result<&mut SessionState, ReadError> {
        self.sessions.state(&self.transaction.writer, slot)
    }

    /// The session with this name; created if it does not exist.
    fn resolve(&mut self, provider: Provider, id: &Arc<str>, first_seen: Timestamp) -> Result<usize, CommitError> {
        self.sessions.resolve(&mut self.transaction.writer, provider, id, first_seen)
    }

    /// Applies an input in the open transaction.
    pub fn apply(&mut self, input: IngestInput) {
        if matches!(&input, IngestInput::Protocol(told) if self.is_moot(told)) {
            return;
        }
        let first_event = self.transaction.events();
        let live = !matches!(&input, IngestInput::Batch(prepared) if prepared.batch.backfill);
        match self.try_apply(&input) {
            Ok(()) => {
                let has_events = self.transaction.add_input(input, live, first_event);
                self.has_news |= live && has_events;
            }
            Err(failure) => {
                self.transaction.retain_input(input);
                self.recover(&failure);
            }
        }
    }

    fn try_apply(&mut self, input: &IngestInput) -> Result<(), TransactionFailure> {
        self.transaction.begin()?;
        match input {
            IngestInput::Batch(prepared) => self.apply_batch(prepared),
            IngestInput::Ended(ended) => self.apply_end(*ended),
            IngestInput::CommandRuns { agent, .. } => self.apply_command(*agent),
            IngestInput::HookDecides { agent, runs } => self.apply_deciding_hook(*agent, *runs),
            IngestInput::Agents(agents) => self.apply_agents(agents),
            // The client has stopped waiting, or got an error: do not carry out its request.
            IngestInput::SetCapture(_, _, reply) | IngestInput::Label(_, _, reply) | IngestInput::Mark(_, _, reply)
                if reply.is_abandoned() =>
            {
                Ok(())
            }
            IngestInput::SetCapture(id, on, _) => self.apply_capture(*id, *on),
            IngestInput::Label(id, labels, reply) => self.apply_labels(*id, labels, reply),
            IngestInput::Mark(id, changes, _) => self.apply_marks(*id, changes),
            IngestInput::Host(told) => self.apply_host(told),
            IngestInput::Delivery(told) => self.apply_delivery(told),
            IngestInput::Telemetry(told) => self.apply_telemetry(&told.events),
            IngestInput::Protocol(told) => self.apply_protocol(told),
            IngestInput::Decide(decide) => self.apply_decide(decide),
            IngestInput::Record(record) => self.apply_record(record),
            IngestInput::Waits(session, approval, on) => self.apply_wait(*session, approval, *on),
            IngestInput::Derived(aside) => self.apply_derived(aside),
            IngestInput::Remove(request) => self.apply_removal(request),
            IngestInput::Maintain(_) | IngestInput::Commit(_) | IngestInput::Stop => Ok(()),
        }
    }

    /// Advances time for the sessions whose deadline has passed, then shows new inputs before their commit.
    pub fn advance(&mut self) {
        let now = (self.clock)();
        while let Some(slot) = self.sessions.take_due(now) {
            if let Err(failure) = self.try_advance(slot, now) {
                self.recover(&failure);
                return;
            }
        }
        // Only after the advance: records just read may be long past.
        if std::mem::take(&mut self.has_news) && self.transaction.is_open() && !self.transaction.is_due() {
            self.publisher.publish_ahead(&mut self.sessions, now, (self.wall)());
        }
    }

    fn try_advance(&mut self, slot: usize, now: Timestamp) -> Result<(), TransactionFailure> {
        let state = self.state(slot)?;
        let reason = state.session.status.reason;
        let conclusions = state.advance(now);
        // The reason may change without an event, for example when a claim of retrying expires.
        if !conclusions.is_empty() || state.session.status.reason != reason {
            self.transaction.begin()?;
            // Conclusions in a session whose history was just read are history too, and wait like history.
            let is_late = conclusions.iter().all(|conclusion| now.since_ms(conclusion.at) > LATE_MS);
            if conclusions.is_empty() || !is_late {
                self.transaction.mark_live();
            }
            let history = is_late && self.sessions.is_past(slot);
            self.conclude(slot, conclusions, now, history)?;
            self.watch_request(slot);
            self.sessions.mark(slot);
        } else if self.sessions.leaves_list(slot, now) {
            self.transaction.begin()?;
            self.transaction.mark_live();
            self.sessions.mark(slot);
        }
        self.sessions.schedule(slot, now);
        Ok(())
    }

    /// Commits the open transaction and publishes it.
    pub fn commit(&mut self) {
        if !self.transaction.is_open() {
            return;
        }
        // History is read only once, so each commit of history writes all rows.
        let all = !self.transaction.is_live();
        match self.try_commit(all) {
            Ok(()) => {
                self.publisher.gauges.works();
                if all {
                    self.import_ended = Some(Instant::now() + IMPORT_ENDED);
                }
            }
            Err(failure) => self.recover(&failure),
        }
    }

    /// Commits the open transaction and all rows that are behind.
    fn commit_all(&mut self) {
        if !self.transaction.is_open() && self.sessions.behind_due().is_none() {
            return;
        }
        let done = self.transaction.begin().map_err(TransactionFailure::from).and_then(|()| self.try_commit(true));
        match done {
            Ok(()) => self.publisher.gauges.works(),
            Err(failure) => self.recover(&failure),
        }
    }

    /// Commits and publishes. Without `all`, rows whose changes can wait are not written.
    fn try_commit(&mut self, all: bool) -> Result<(), TransactionFailure> {
        let (now, wall) = ((self.clock)(), (self.wall)());
        let position = self.transaction.position();
        let entries = self.sessions.write_changed(&mut self.transaction.writer, position, all, (now, wall))?;
        let mut committed = self.transaction.commit()?;
        // Events of history are not published individually.
        let is_past = |id| self.sessions.find(id).is_some_and(|slot| self.sessions.is_past(slot));
        let standing = |entry: &&SessionEntry| is_standing(entry.state) && is_past(entry.id);
        let standing: Vec<SessionId> = entries.iter().filter(standing).map(|entry| entry.id).collect();
        self.publisher.publish(&mut committed, entries);
        if !standing.is_empty() {
            self.publisher.onlooker.standing(&standing);
        }
        self.sessions.settle();
        self.transaction.write_audit_head(&mut committed.changes);
        committed.inputs.into_iter().for_each(|input| self.reply(input));
        self.transaction.bound_log(&self.publisher.gauges.checkpoints, &*self.checkpoint);
        Ok(())
    }

    /// Replies to the sender of a committed input.
    fn reply(&mut self, input: IngestInput) {
        match input {
            IngestInput::SetCapture(id, _, reply)
            | IngestInput::Label(id, _, reply)
            | IngestInput::Mark(id, _, reply) => {
                reply.send(self.sessions.find(id).is_some());
            }
            IngestInput::Host(HostInput::Frame { frame, stored, .. }) => stored(frame.n),
            IngestInput::Delivery(told) => self.delivered(*told),
            IngestInput::Decide(decide) => decide.send_reply(),
            IngestInput::Derived(aside) => (aside.done)(self.sessions.find(aside.session).is_some()),
            IngestInput::Record(record) => drop(record.done.send(())),
            IngestInput::Remove(request) => self.removed(*request),
            IngestInput::Telemetry(told) => (told.stored)(self.strange(&told.events)),
            IngestInput::Protocol(ProtocolInput::Claims { events, stored }) => stored(self.take_unmatched(&events)),
            IngestInput::Protocol(ProtocolInput::Only { .. })
            | IngestInput::Host(HostInput::Hello(_) | HostInput::Lost(_))
            | IngestInput::Batch(_)
            | IngestInput::Ended(_)
            | IngestInput::CommandRuns { .. }
            | IngestInput::HookDecides { .. }
            | IngestInput::Agents(_)
            | IngestInput::Waits(..)
            | IngestInput::Maintain(_)
            | IngestInput::Commit(_)
            | IngestInput::Stop => {}
        }
    }

    /// After a failure: the open transaction has no effect. Its inputs are retried after a delay; until then no other
    /// input is received, so readers wait.
    fn recover(&mut self, failure: &TransactionFailure) {
        let mut wait = RETRY_AFTER;
        let gauges = Arc::clone(&self.publisher.gauges);
        let (mut why, mut failure) = (failure.sort(), failure.to_string());
        tracing::error!(%failure, "cannot write to the database; retrying. Files are not read until it succeeds");
        self.take_back_shown();
        loop {
            gauges.fails(why, &failure);
            self.transaction.roll_back();
            if why == ReadFailure::Damaged {
                // The next start checks the database and rebuilds it if necessary.
                tracing::error!("the database is damaged: the server ends and repairs it at the next start");
                self.transaction.writer.suspect();
                gauges.ending.store(true, Ordering::Relaxed);
                return;
            }
            self.pause(wait);
            if self.gave_up() {
                tracing::error!("stopped before the last records were stored; they are read again at the next start");
                return;
            }
            let longest = if why == ReadFailure::Locked { LOCKED_RETRY } else { LONGEST_RETRY };
            wait = (wait * 2).min(longest);
            match self.replay() {
                Ok(()) => {
                    gauges.works();
                    tracing::info!("writing to the database works again");
                    return;
                }
                Err(again) => {
                    tracing::error!(failure = %again, "writing to the database still fails");
                    (why, failure) = (again.sort(), again.to_string());
                }
            }
        }
    }

    /// Restores the stored state of entries that were shown before their commit failed.
    fn take_back_shown(&self) {
        let view = &self.publisher.live_view;
        let (reader, now) = (self.transaction.writer.reader(), (self.clock)());
        for slot in self.sessions.changed() {
            let id = self.sessions.known(*slot).id;
            match reader.session(id) {
                Ok(Some(session)) => {
                    if let Ok(entry) = SessionEntry::of(&session, is_active(&session, false, now)) {
                        view.put(entry);
                    }
                }
                Ok(None) => view.remove(id),
                Err(error) => tracing::debug!(%error, session = %id, "cannot read what is stored of a session"),
            }
        }
        view.set_committed();
    }

    fn replay(&mut self) -> Result<(), TransactionFailure> {
        self.transaction.reload_position()?;
        self.sessions.reload(&self.transaction.writer, (self.clock)())?;
        self.restore_transcripts()?;
        self.hosts.forget_sessions();
        let inputs = self.transaction.take_inputs();
        let taken = inputs.iter().try_for_each(|input| self.try_apply(input));
        self.transaction.restore_inputs(inputs);
        taken?;
        self.seat_hosts()?;
        if self.transaction.is_open() { self.try_commit(true) } else { Ok(()) }
    }

    /// Waits, but stops when the program is ending.
    fn pause(&self, wait: Duration) {
        let until = Instant::now() + wait;
        while Instant::now() < until && !self.publisher.gauges.ending.load(Ordering::Relaxed) {
            // This channel only serves as a timer.
            crossbeam_channel::after(LOOK_EVERY.min(wait)).recv().ok();
        }
    }
}
