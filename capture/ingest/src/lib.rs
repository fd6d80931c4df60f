//! The single writer of the event log: drops known records, assigns position and sequence, folds the projections,
//! commits, and publishes.
//!
//! One thread owns the store's writer and the reducers. Its inputs arrive over one bounded channel; a slow disk can
//! delay only what waits there. A transaction holds whole inputs: if it fails, it has no effect, its inputs are kept
//! and retried, and files are not read any further meanwhile.
//!
//! [`Ingest`] is made of parts that own what they keep: the table of `sessions` with their clocks, the open
//! `transaction`, the `publisher`, the `hosts` of runs, the agents without a session in `processes`. Each
//! kind of input has a module that applies it; `fold` is what they all end in.

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

/// Inputs that may wait for the ingest thread: as many as it takes in while the threads that read are woken, and as
/// they read while it commits.
pub const INPUTS: usize = 64;
/// Time after the start, or after the last commit of history, until its memory is given back.
const IMPORT_ENDED: Duration = Duration::from_secs(2);
/// While the store does not work, the wish to end is looked for this often.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What a host or a hook told longer ago than this is history: its own clock says when it was, ms.
const LATE_MS: i64 = 2_000;
/// After a failed commit the next try comes this much later.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// and less and less often, up to this;
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// a database that another program holds is tried at least this often.
const LOCKED_RETRY: Duration = Duration::from_secs(2);

/// What ingest asks of the process side.
pub trait Processes: Send {
    /// A process runs a session: tell when it ends.
    fn watch(&mut self, pid: u32, start_ticks: u64);
    /// A live session's process is not known: look for it, at once if the session is `fresh`.
    fn wanted(&mut self, fresh: bool);
    /// The run a process belongs to, as its environment says.
    fn run_of(&mut self, pid: u32) -> Option<RunId>;
    /// Whether a process is there.
    fn is_alive(&self, pid: u32, start_ticks: u64) -> bool;
    /// Looks at the commands below the process of a session that waits for permission; `None` ends the look.
    fn watch_request(&mut self, session: SessionId, request: Option<WatchedRequest>);
}

/// A request for permission, as far as the processes below its agent show what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedRequest {
    /// The agent's process id, and its start in clock ticks since boot.
    pub agent: (u32, u64),
    /// What a command that begins now shows.
    pub asks_for: WatchedAction,
}

/// What a request asks for, as far as it is seen among processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchedAction {
    /// This command, if the request names it: one that begins was granted.
    Command(Option<String>),
    /// Something that runs no process, or it is unknown which call a process belongs to. Only hooks of the user are
    /// looked for.
    Other,
}

/// Reads the clock; the tests give their own.
pub use notifier::Clock;

/// The ingest thread's state. Each part owns what it keeps; what needs several of them is done here.
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
    /// Sessions that a daemon made claims of before they were known, until those are answered.
    unmatched: HashSet<Arc<str>>,
    /// Events of now were taken in that lists do not show yet.
    has_news: bool,
    /// When the start, or the import that the last commit was part of, counts as over.
    import_ended: Option<Instant>,
    /// Nothing is stored before its secrets are taken out.
    redacted_only: bool,
    /// Asks for a checkpoint of the store.
    checkpoint: Box<dyn Fn() + Send>,
}

/// Ingest and its channel, for the ingest thread. Whoever waits to send something must not wait for what ends after
/// ingest: the channel is dropped first.
pub struct IngestLoop {
    inputs: Inputs,
    ingest: Ingest,
}

impl IngestLoop {
    /// An ingest that takes these inputs.
    #[must_use]
    pub const fn new(ingest: Ingest, inputs: Inputs) -> Self {
        Self { inputs, ingest }
    }

    /// Runs until told to stop, or until nobody can tell it anything any more.
    pub fn run(&mut self) {
        self.ingest.run(&self.inputs);
    }
}

/// A session as others see it: not in the future where the wall clock was set back.
fn shown(state: &mut SessionState, wall: Timestamp) -> Session {
    let mut session = state.view().clone();
    session.status.since = session.status.since.min(wall);
    session
}

/// What [`Ingest`] works with.
pub struct IngestParts {
    /// The store.
    pub writer: Writer,
    /// What is live.
    pub live_view: LiveView,
    /// Counters.
    pub gauges: Arc<Gauges>,
    /// The process side.
    pub processes: Box<dyn Processes>,
    /// The clock.
    pub clock: Clock,
    /// The wall clock, which may be set back.
    pub wall: Clock,
    /// How long the machine has been up.
    pub uptime: UptimeClock,
    /// Looks on.
    pub onlooker: Box<dyn CommitObserver>,
    /// Limits of the status rules.
    pub rules: projections::StatusRules,
    /// Sessions that begin in or below these directories are not captured.
    pub ignore: Vec<PathBuf>,
    /// Nothing is stored before its secrets are taken out.
    pub redacted_only: bool,
    /// Asks for a checkpoint of the store; never waits.
    pub checkpoint: Box<dyn Fn() + Send>,
}

impl Ingest {
    /// Takes up the store where it was left.
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
            // A start reads much that is not needed later.
            import_ended: Some(Instant::now() + IMPORT_ENDED),
            redacted_only,
            checkpoint,
        };
        ingest.load_board(views, &reader)?;
        Ok(ingest)
    }

    /// Runs until told to stop, or until nobody can tell it anything any more.
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
                    // What was taken in before is published before, and nothing after.
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

    /// Commits what is open and all rows, before an orderly end.
    pub fn finish(&mut self) {
        self.sessions.settle_at_next_write(self.transaction.position());
        self.commit_all();
    }

    /// The program ends while the store does not work: what is open is read again at the next start.
    fn gave_up(&self) -> bool {
        let gauges = &self.publisher.gauges;
        gauges.stuck.load(Ordering::Relaxed) && gauges.ending.load(Ordering::Relaxed)
    }

    /// How long nothing needs to be done, unless an input comes.
    fn next_wait(&self) -> Option<Duration> {
        let deadline = self.sessions.next_deadline();
        let deadline = deadline.map(|due| Duration::from_millis(due.since_ms((self.clock)()).max(0) as u64));
        // What is open is committed soon, and takes them along.
        let behind = self.sessions.behind_due().filter(|_| !self.transaction.is_open());
        let release = self.import_ended.map(|due| due.saturating_duration_since(Instant::now()));
        self.transaction.wait().into_iter().chain(deadline).chain(behind).chain(release).min()
    }

    /// The reducer of a session.
    fn state(&mut self, slot: usize) -> Result<&mut SessionState, ReadError> {
        self.sessions.state(&self.transaction.writer, slot)
    }

    /// The session of this name; made when there is none.
    fn resolve(&mut self, provider: Provider, id: &Arc<str>, first_seen: Timestamp) -> Result<usize, CommitError> {
        self.sessions.resolve(&mut self.transaction.writer, provider, id, first_seen)
    }

    /// Takes an input into the open transaction.
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
            // Its client has stopped waiting, or got an error: it is not carried out.
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

    /// Lets time pass for the sessions whose moment has come, then shows what came in before its commit.
    pub fn advance(&mut self) {
        let now = (self.clock)();
        while let Some(slot) = self.sessions.take_due(now) {
            if let Err(failure) = self.try_advance(slot, now) {
                self.recover(&failure);
                return;
            }
        }
        // Only now: what was just read may be long past.
        if std::mem::take(&mut self.has_news) && self.transaction.is_open() && !self.transaction.is_due() {
            self.publisher.publish_ahead(&mut self.sessions, now, (self.wall)());
        }
    }

    fn try_advance(&mut self, slot: usize, now: Timestamp) -> Result<(), TransactionFailure> {
        let state = self.state(slot)?;
        let reason = state.session.status.reason;
        let conclusions = state.advance(now);
        // Why a session runs may change without an event: a claim that it tries again has ended.
        if !conclusions.is_empty() || state.session.status.reason != reason {
            self.transaction.begin()?;
            // What time brought about in a session whose history was just read is history too: it waits like that.
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

    /// Commits what is open and publishes it.
    pub fn commit(&mut self) {
        if !self.transaction.is_open() {
            return;
        }
        // History is read once: its rows are complete with each commit.
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

    /// Commits what is open, and the rows that are behind.
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

    /// Commits, then tells who is to know. Without `all`, rows of sessions whose change can wait are not written.
    fn try_commit(&mut self, all: bool) -> Result<(), TransactionFailure> {
        let (now, wall) = ((self.clock)(), (self.wall)());
        let position = self.transaction.position();
        let entries = self.sessions.write_changed(&mut self.transaction.writer, position, all, (now, wall))?;
        let mut committed = self.transaction.commit()?;
        // Events of history are not published one by one.
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

    /// An input is committed: answers whoever waits for that.
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

    /// After a failure: nothing of the open transaction happened. Its inputs are taken again,
    /// after a while; until then no other input is taken, so that readers wait.
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
                // The next start checks the database, and rebuilds it if need be.
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

    /// What was shown before its commit, which failed, is shown as the store has it.
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

    /// Waits, but not beyond the wish to end.
    fn pause(&self, wait: Duration) {
        let until = Instant::now() + wait;
        while Instant::now() < until && !self.publisher.gauges.ending.load(Ordering::Relaxed) {
            // Nobody sends on this channel: it is a wait.
            crossbeam_channel::after(LOOK_EVERY.min(wait)).recv().ok();
        }
    }
}
