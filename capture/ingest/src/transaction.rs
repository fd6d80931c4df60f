//! The open transaction: the store's writer, the writes since the last commit, and the changes to publish after it.
//!
//! A transaction contains whole inputs. If it is rolled back, it has no effect, and its inputs are applied again.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use events::{Event, Finding, Payload, Provider};
use projections::{Approval, Turn};
use store::{AuditHead, CommitError, LogUse, PackedText, ReadError, ReadFailure, SessionRow, Writer, write_head};

use super::{
    HostedSession, IngestInput, activity::needs_somebody, checkpoint::CheckpointProgress, input::PreparedEvent,
    sessions::Sessions,
};

/// Average time between two regular live commits; inputs in between share the next one.
const COMMIT_EVERY: Duration = Duration::from_millis(100);
/// Longest time from a commit to the next regular one, however many unscheduled commits were made.
const REGULAR_WAITS: Duration = Duration::from_millis(200);
/// How far commits that the user may act on can run ahead of the regular pace before they have to share it.
const AHEAD: Duration = Duration::from_millis(400);
/// How long an agent's output between two state changes may wait for its commit, so that several share one: if lost, it
/// is read again from the transcript.
const PROGRESS_WAITS: Duration = Duration::from_secs(1);
/// How long an agent's output may wait for its commit while a stream with events is open, which gets events when they
/// are committed.
const WATCHED_PROGRESS_WAITS: Duration = Duration::from_millis(200);
/// Number of rows at which a transaction of history is committed.
const BACKFILL_ROWS: usize = 6_000;
/// Total text size at which a transaction of history is committed, bytes.
const BACKFILL_BYTES: usize = 5 << 20;
/// Age at which a transaction of history is committed. With a shorter limit a busy machine would split it into many.
const BACKFILL_AGE: Duration = Duration::from_secs(3);
/// Size of the unmoved part of the write-ahead log from which a checkpoint is requested, bytes.
pub const LARGE_LOG: u64 = 24 << 20;
/// Size from which the log is restarted between two transactions if little is left to move, bytes.
const EASY_LOG: u64 = 96 << 20;
/// Size of the unmoved part that counts as little, bytes.
const LITTLE_LOG: u64 = 32 << 20;
/// Size from which the log is restarted however much is left, bytes.
const FULL_LOG: u64 = 160 << 20;
/// Pause in the history after which its open transaction is committed.
const LULL: Duration = Duration::from_millis(50);

/// Why the open transaction has to be rolled back.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransactionFailure {
    #[error(transparent)]
    Write(#[from] CommitError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl TransactionFailure {
    /// The kind of failure.
    pub(super) fn sort(&self) -> ReadFailure {
        match self {
            Self::Write(error) => error.failure(),
            Self::Read(error) => error.failure(),
        }
    }
}

/// The writer and its writes since the last commit.
pub(super) struct OpenTransaction {
    /// Writes rows. Only the methods of this type may begin, commit and roll back.
    pub(super) writer: Writer,
    /// Position of the last event, committed or not.
    position: u64,
    open_since: Option<Instant>,
    pace: Pace,
    /// Number of log rows, and bytes of their texts.
    rows: usize,
    bytes: usize,
    /// How soon the transaction must be committed.
    urgency: Urgency,
    /// Whether a stream with events is open.
    watched: bool,
    inputs: Vec<IngestInput>,
    /// Changed turns, written with the commit.
    turns: BTreeMap<(SessionRow, u32), Turn>,
    changes: ChangeSet,
}

/// Number of events in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventCount {
    live: usize,
    past: usize,
}

/// When regular commits are due. An unscheduled commit, made because something waited for it, postpones the next
/// regular one, so that the total number of commits stays the same.
#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    /// Earliest time of the next regular commit; `None` before the first.
    regular: Option<Instant>,
    /// Time until which the commits made so far use up the pace.
    used: Option<Instant>,
}

impl Pace {
    /// Records a commit made now.
    fn committed(&mut self, now: Instant) {
        let due = self.regular.map_or(now, |due| due.max(now));
        self.regular = Some((due + COMMIT_EVERY).min(now + REGULAR_WAITS));
        let used = self.used.map_or(now, |used| used.max(now)) + COMMIT_EVERY;
        self.used = Some(used.min(now + AHEAD + COMMIT_EVERY));
    }

    /// When something the user may act on, added at `since`, must be committed: at once, unless such commits exceed the
    /// pace; then they share commits.
    fn soon(&self, since: Instant) -> Instant {
        self.used.and_then(|used| used.checked_sub(AHEAD)).map_or(since, |free| free.max(since))
    }
}

/// How soon something must be committed; the most urgent part of a transaction counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// History: once there is a lot of it.
    #[default]
    History,
    /// Agent output between two state changes: within a second.
    Progress,
    /// The session's description changes, or something waits for the commit: with the next regular one.
    Regular,
    /// The user may have to act, and no program waits: at once, unless this happens too often.
    Soon,
    /// A program waits, such as an agent's hook: at once.
    AtOnce,
}

impl Urgency {
    /// The urgency of a live input with these events.
    fn of<'a>(input: &IngestInput, events: impl IntoIterator<Item = &'a Event>) -> Self {
        // Senders of anything but transcript lines wait for a reply.
        let least = if matches!(input, IngestInput::Batch(_)) { Self::Progress } else { Self::Regular };
        let nobody_waits = matches!(input, IngestInput::Batch(_) | IngestInput::Derived(_));
        let most = if nobody_waits { Self::Soon } else { Self::AtOnce };
        events.into_iter().map(Self::of_event).fold(least, Self::max).min(most)
    }

    fn of_event(event: &Event) -> Self {
        #[expect(clippy::wildcard_enum_match_arm, reason = "whatever is not named here does not wait")]
        match &event.payload {
            _ if needs_somebody(event) => Self::AtOnce,
            Payload::AssistantDelta(_)
            | Payload::AssistantMessage(_)
            | Payload::ToolCall(_)
            | Payload::ToolResult(_)
            | Payload::UsageReported(_)
            | Payload::Heartbeat(_) => Self::Progress,
            Payload::StatusChanged(change)
                if change.from == Some(change.to) && change.reason.is_none_or(|reason| reason.facts().is_progress) =>
            {
                Self::Progress
            }
            _ => Self::Regular,
        }
    }
}

/// The changes of a transaction, to be published after the commit.
#[derive(Default)]
pub(super) struct ChangeSet {
    /// Events seen as they happened, in the order they were written.
    pub(super) events: Vec<Event>,
    /// Events of history, which are not published individually.
    pub(super) past: PastEvents,
    /// Approvals in their current state, in the order of their changes.
    pub(super) approvals: Vec<Approval>,
    /// Findings in their current state, in the order of their changes.
    pub(super) findings: Vec<Finding>,
    /// Sessions that runs now host.
    pub(super) hosted: Vec<HostedSession>,
    /// The agent of each record that was merged into another record's event.
    pub(super) merged: Vec<Provider>,
    /// The end of the audit record, if it grew.
    audit_head: Option<AuditHead>,
}

/// Events of history in a transaction.
#[derive(Default)]
pub(super) struct PastEvents {
    pub(super) count: usize,
    /// Time of each agent's last event, by provider code: milliseconds since 1970, 0 for none.
    pub(super) last_at: [i64; Provider::ALL.len()],
}

impl PastEvents {
    fn add(&mut self, event: &Event) {
        self.count += 1;
        if let Some(last) = self.last_at.get_mut(usize::from(event.provider.code())) {
            *last = (*last).max(event.created_at.as_millisecond());
        }
    }
}

/// A committed transaction.
pub(super) struct Committed {
    pub(super) changes: ChangeSet,
    pub(super) inputs: Vec<IngestInput>,
    /// Whether it contained anything but history.
    pub(super) live: bool,
    /// Position of its last event.
    pub(super) position: u64,
}

impl OpenTransaction {
    pub(super) fn new(writer: Writer) -> Result<Self, ReadError> {
        let position = writer.position()?;
        Ok(Self {
            writer,
            position,
            open_since: None,
            pace: Pace::default(),
            rows: 0,
            bytes: 0,
            urgency: Urgency::History,
            watched: false,
            inputs: Vec::new(),
            turns: BTreeMap::new(),
            changes: ChangeSet::default(),
        })
    }

    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    pub(super) const fn is_open(&self) -> bool {
        self.open_since.is_some()
    }

    pub(super) fn is_live(&self) -> bool {
        self.urgency > Urgency::History
    }

    /// Sets whether a stream with events is open.
    pub(super) const fn set_watched(&mut self, watched: bool) {
        self.watched = watched;
    }

    /// Opens the transaction, if it is not open yet.
    pub(super) fn begin(&mut self) -> Result<(), CommitError> {
        if self.open_since.is_none() {
            self.writer.begin()?;
            self.open_since = Some(Instant::now());
        }
        Ok(())
    }

    /// Marks the transaction as containing live data.
    pub(super) fn mark_live(&mut self) {
        self.urgency = self.urgency.max(Urgency::Regular);
    }

    /// Adds an applied input whose events begin at `first_event`; returns whether it has any.
    pub(super) fn add_input(&mut self, input: IngestInput, live: bool, first: EventCount) -> bool {
        if live {
            self.urgency = self.urgency.max(Urgency::of(&input, &self.changes.events[first.live..]));
            // A small amount of history is shown at once, so its commit must not be late.
            if self.changes.past.count > first.past {
                self.mark_live();
            }
        }
        self.inputs.push(input);
        self.events() != first
    }

    /// Keeps an input that could not be applied, to apply it again.
    pub(super) fn retain_input(&mut self, input: IngestInput) {
        self.inputs.push(input);
    }

    /// The number of events in the transaction.
    pub(super) fn events(&self) -> EventCount {
        EventCount { live: self.changes.events.len(), past: self.changes.past.count }
    }

    /// Allocates the position of the next event in the log.
    pub(super) const fn next_position(&mut self) -> u64 {
        self.position += 1;
        self.position
    }

    /// Writes events into the log, each with its long text and prepared payload, if any.
    pub(super) fn append<'a>(
        &mut self,
        events: impl IntoIterator<Item = (SessionRow, Event, Option<&'a PackedText>, Option<&'a str>)>,
        history: bool,
    ) -> Result<(), CommitError> {
        let mut log = self.writer.appender()?;
        for (row, event, text, payload) in events {
            log.append(row, &event, text, payload)?;
            self.rows += 1;
            self.bytes += event.text.as_ref().map_or(0, String::len) + text.map_or(0, PackedText::stored_bytes);
            if history {
                self.changes.past.add(&event);
            } else {
                self.changes.events.push(event);
            }
        }
        Ok(())
    }

    /// Stores the current state of a turn. It is written once, with the commit, however often it changes until then.
    pub(super) fn put_turn(&mut self, row: SessionRow, turn: &Turn) {
        self.turns.insert((row, turn.number), turn.clone());
    }

    /// Records that a record was merged into another record's event.
    pub(super) fn add_merged(&mut self, provider: Provider) {
        self.changes.merged.push(provider);
    }

    /// Writes the current state of an approval.
    pub(super) fn put_approval(&mut self, row: SessionRow, approval: Approval) -> Result<(), CommitError> {
        self.writer.put_entity(row, &approval)?;
        self.changes.approvals.push(approval);
        Ok(())
    }

    /// Writes the current state of a finding.
    pub(super) fn put_finding(&mut self, row: SessionRow, finding: Finding) -> Result<(), CommitError> {
        self.writer.put_entity(row, &finding)?;
        self.changes.findings.push(finding);
        Ok(())
    }

    /// Publishes a hosted session after the commit; returns it if no transaction is open.
    pub(super) fn put_hosted(&mut self, hosted: HostedSession) -> Option<HostedSession> {
        if !self.is_open() {
            return Some(hosted);
        }
        self.changes.hosted.push(hosted);
        None
    }

    /// Adds a row to the audit record.
    pub(super) fn audit(&mut self, body: &str) -> Result<(), CommitError> {
        self.changes.audit_head = Some(self.writer.audit(body)?);
        Ok(())
    }

    /// Sets the end of the audit record.
    pub(super) fn set_audit_head(&mut self, head: Option<AuditHead>) {
        self.changes.audit_head = head.or(self.changes.audit_head);
    }

    /// When the transaction must be committed unless it grows; `None` if none is open.
    fn due(&self) -> Option<Instant> {
        let since = self.open_since?;
        let regular = self.pace.regular.unwrap_or(since);
        Some(match self.urgency {
            Urgency::AtOnce => since,
            Urgency::Soon => self.pace.soon(since),
            Urgency::Regular => regular,
            Urgency::Progress if self.watched => regular.max(since + WATCHED_PROGRESS_WAITS),
            Urgency::Progress => regular.max(since + PROGRESS_WAITS),
            Urgency::History => since + BACKFILL_AGE,
        })
    }

    /// How long the commit can wait for another input.
    pub(super) fn wait(&self) -> Option<Duration> {
        self.due().map(|due| {
            let due = if self.is_live() { due } else { due.min(Instant::now() + LULL) };
            due.saturating_duration_since(Instant::now())
        })
    }

    pub(super) fn is_due(&self) -> bool {
        let much = self.rows >= BACKFILL_ROWS || self.bytes >= BACKFILL_BYTES;
        self.due().is_some_and(|due| much || Instant::now() >= due)
    }

    /// Commits the transaction.
    pub(super) fn commit(&mut self) -> Result<Committed, CommitError> {
        for ((row, _), turn) in std::mem::take(&mut self.turns) {
            self.writer.put_turn(row, &turn)?;
        }
        self.writer.commit()?;
        self.open_since = None;
        self.pace.committed(Instant::now());
        (self.rows, self.bytes) = (0, 0);
        let urgency = std::mem::take(&mut self.urgency);
        Ok(Committed {
            changes: std::mem::take(&mut self.changes),
            inputs: std::mem::take(&mut self.inputs),
            live: urgency > Urgency::History,
            position: self.position,
        })
    }

    /// After the commit: keeps the write-ahead log small. `checkpoint` requests a checkpoint beside the transactions.
    ///
    /// The log can be restarted only while nothing is written, and only after all of it is in the database. So ingest
    /// restarts it when little is left to move, and waits as briefly as possible.
    pub(super) fn bound_log(&self, progress: &CheckpointProgress, checkpoint: &dyn Fn()) {
        let restart = |log: LogUse| {
            let is_easy = log.written >= EASY_LOG && log.left() <= LITTLE_LOG && !progress.is_running();
            if log.written >= FULL_LOG || is_easy {
                self.writer.restart_log()?;
            } else if log.left() >= LARGE_LOG {
                checkpoint();
            }
            Ok::<_, CommitError>(())
        };
        if let Err(error) = self.writer.log_use().and_then(restart) {
            tracing::debug!(%error, "cannot restart the write-ahead log yet");
        }
    }

    /// Rolls back the writes and keeps the inputs. A removal among them can be withdrawn until it is applied again.
    pub(super) fn roll_back(&mut self) {
        self.writer.rollback();
        for input in &self.inputs {
            if let IngestInput::Remove(request) = input {
                request.ticket.release();
            }
        }
        self.turns.clear();
        self.changes = ChangeSet::default();
        self.open_since = None;
        (self.rows, self.bytes) = (0, 0);
    }

    /// After a rollback: reads the position from the store again.
    pub(super) fn reload_position(&mut self) -> Result<(), ReadError> {
        self.position = self.writer.position()?;
        Ok(())
    }

    /// Removes the inputs to apply them again; return them with [`Self::restore_inputs`].
    pub(super) fn take_inputs(&mut self) -> Vec<IngestInput> {
        std::mem::take(&mut self.inputs)
    }

    /// Puts the inputs back.
    pub(super) fn restore_inputs(&mut self, inputs: Vec<IngestInput>) {
        self.inputs = inputs;
    }

    /// After the commit: stores the end of the audit record beside it.
    pub(super) fn write_audit_head(&self, changes: &mut ChangeSet) {
        if let Some(head) = changes.audit_head.take()
            && let Some(data) = self.writer.path().parent()
            && let Err(error) = write_head(data, head)
        {
            tracing::warn!(%error, "cannot write audit.head (the last row of the audit record)");
        }
    }

    /// Makes the next event get a position that is already used.
    #[cfg(test)]
    pub(super) const fn lose_position(&mut self) {
        self.position = 0;
    }
}

/// The additions of one input to the log, already folded and written together: its own events first, then those derived
/// from them.
#[derive(Default)]
pub(super) struct Additions {
    pub(super) events: Vec<Addition>,
    derived: Vec<(usize, Event)>,
}

/// An event of an input.
pub(super) struct Addition {
    pub(super) slot: usize,
    pub(super) event: Event,
    pub(super) prepared: PreparedParts,
}

/// Indexes of the prepared text and payload of an event among those of its input.
#[derive(Debug, Clone, Copy)]
pub(super) struct PreparedParts {
    pub(super) text: Option<usize>,
    pub(super) payload: Option<usize>,
}

impl PreparedParts {
    pub(super) const NONE: Self = Self { text: None, payload: None };
}

impl Additions {
    /// Additions with capacity for the events of an input.
    pub(super) fn with_capacity(events: usize) -> Self {
        Self { events: Vec::with_capacity(events), derived: Vec::new() }
    }

    pub(super) fn push(&mut self, slot: usize, event: Event, prepared: PreparedParts) {
        self.events.push(Addition { slot, event, prepared });
    }

    pub(super) fn push_derived(&mut self, slot: usize, event: Event) {
        self.derived.push((slot, event));
    }

    /// Writes the events into the log.
    pub(super) fn write(
        self,
        transaction: &mut OpenTransaction,
        sessions: &Sessions,
        prepared: &[PreparedEvent],
        history: bool,
    ) -> Result<(), CommitError> {
        let own = self.events.into_iter().map(|Addition { slot, event, prepared: parts }| {
            let text = parts.text.and_then(|index| prepared.get(index)?.text.as_ref());
            let payload = parts.payload.and_then(|index| prepared.get(index)).map(|event| &*event.payload);
            (sessions.known(slot).row, event, text, payload)
        });
        let derived = self.derived.into_iter().map(|(slot, event)| (sessions.known(slot).row, event, None, None));
        transaction.append(own.chain(derived), history)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of commits in ten seconds, while an immediate commit is requested at this interval in milliseconds
    /// and there is always data for a regular one.
    fn commits_in_ten_seconds(at_once_every: u64) -> usize {
        let start = Instant::now();
        let (mut pace, mut made, mut last) = (Pace::default(), 0, None);
        for now in 0..10_000 {
            let time = start + Duration::from_millis(now);
            let asked = now / at_once_every * at_once_every;
            let waits = last.is_none_or(|last| last < asked);
            if waits && time >= pace.soon(start + Duration::from_millis(asked))
                || pace.regular.is_none_or(|due| time >= due)
            {
                pace.committed(time);
                made += 1;
                last = Some(now);
            }
        }
        made
    }

    #[test]
    fn urgent_commits_replace_regular_ones() {
        assert_eq!(commits_in_ten_seconds(20_000), 100, "only regular ones");
        for every in [7, 30, 80, 110, 150, 170, 300, 1_000] {
            let made = commits_in_ten_seconds(every);
            assert!(made <= 105, "{made} with one at once every {every} ms");
        }
    }

    #[test]
    fn an_urgent_commit_waits_one_interval_at_most() {
        let start = Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.soon(start), start);
        for _ in 0..3 {
            pace.committed(start);
        }
        assert_eq!(pace.soon(start), start, "a few at a time are committed at once");
        for _ in 0..50 {
            pace.committed(start);
        }
        assert_eq!(pace.soon(start), start + COMMIT_EVERY);
    }

    #[test]
    fn a_regular_commit_is_never_delayed_beyond_its_limit() {
        let start = Instant::now();
        let mut pace = Pace::default();
        for _ in 0..50 {
            pace.committed(start);
        }
        assert_eq!(pace.regular, Some(start + REGULAR_WAITS));
    }
}
