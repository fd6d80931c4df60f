//! The open transaction: the store's writer, what was written since the last commit, and what is to be published after
//! it.
//!
//! It holds whole inputs. A transaction that is rolled back has no effect, and its inputs are applied again.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use events::{Event, Finding, Payload, Provider};
use projections::{Approval, Turn};
use store::{AuditHead, CommitError, LogUse, PackedText, ReadError, ReadFailure, SessionRow, Writer, write_head};

use super::{
    HostedSession, IngestInput,
    activity::{is_progress, needs_somebody},
    checkpoint::CheckpointProgress,
    input::PreparedEvent,
    sessions::Sessions,
};

/// Time between two regular live commits on average; inputs in between share the next one.
const COMMIT_EVERY: Duration = Duration::from_millis(100);
/// Longest time from a commit to the next regular one, however many were made out of turn.
const REGULAR_WAITS: Duration = Duration::from_millis(200);
/// How far commits that a person may act on can run ahead of the regular pace before they take turns with it.
const AHEAD: Duration = Duration::from_millis(400);
/// How long what an agent says and does between two changes of its state may wait for its commit, so that it shares
/// one: it is read again from the transcript when it is lost.
const PROGRESS_WAITS: Duration = Duration::from_secs(1);
/// How long it may wait while a stream with events is open, which gets events when they are committed.
const WATCHED_PROGRESS_WAITS: Duration = Duration::from_millis(200);
/// Number of rows at which a transaction of history is committed.
const BACKFILL_ROWS: usize = 6_000;
/// Size of its texts at which it is committed, bytes.
const BACKFILL_BYTES: usize = 5 << 20;
/// Age at which a transaction of history is committed: on a busy machine a shorter one would be cut into many.
const BACKFILL_AGE: Duration = Duration::from_secs(3);
/// What of the write-ahead log may be left to be moved into the database beside the transactions, bytes.
pub const LARGE_LOG: u64 = 24 << 20;
/// Size from which it is restarted between two transactions if little is left to move, bytes.
const EASY_LOG: u64 = 96 << 20;
/// What counts as little, bytes.
const LITTLE_LOG: u64 = 32 << 20;
/// Size from which it is restarted whatever is left, bytes.
const FULL_LOG: u64 = 160 << 20;
/// Pause in the history after which its open transaction is committed.
const LULL: Duration = Duration::from_millis(50);

/// Why the open transaction has to be given up.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransactionFailure {
    #[error(transparent)]
    Write(#[from] CommitError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl TransactionFailure {
    /// The sort of failure.
    pub(super) fn sort(&self) -> ReadFailure {
        match self {
            Self::Write(error) => error.failure(),
            Self::Read(error) => error.failure(),
        }
    }
}

/// The writer, and what it wrote since the last commit.
pub(super) struct OpenTransaction {
    /// Writes rows. It begins, commits and rolls back only by the methods here.
    pub(super) writer: Writer,
    /// Position of the last event, committed or not.
    position: u64,
    open_since: Option<Instant>,
    pace: Pace,
    /// Rows of the log, and bytes of their texts.
    rows: usize,
    bytes: usize,
    /// How soon what it holds is to be committed.
    urgency: Urgency,
    /// Whether a stream with events is open.
    watched: bool,
    inputs: Vec<IngestInput>,
    /// Turns that changed, to be written with the commit.
    turns: BTreeMap<(SessionRow, u32), Turn>,
    changes: ChangeSet,
}

/// Number of events of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventCount {
    live: usize,
    past: usize,
}

/// When regular commits are due. One that was made out of turn, because somebody waited for it, puts the next regular
/// one off, so that the number of commits stays that of regular ones.
#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    /// From then on a regular commit may be made; at once before the first.
    regular: Option<Instant>,
    /// Until then the pace is used up by the commits made so far.
    used: Option<Instant>,
}

impl Pace {
    /// A commit was made now.
    fn committed(&mut self, now: Instant) {
        let due = self.regular.map_or(now, |due| due.max(now));
        self.regular = Some((due + COMMIT_EVERY).min(now + REGULAR_WAITS));
        let used = self.used.map_or(now, |used| used.max(now)) + COMMIT_EVERY;
        self.used = Some(used.min(now + AHEAD + COMMIT_EVERY));
    }

    /// When something that a person may act on is to be committed if it came `since`: at once, but a number of them
    /// that is larger than the pace shares commits.
    fn soon(&self, since: Instant) -> Instant {
        self.used.and_then(|used| used.checked_sub(AHEAD)).map_or(since, |free| free.max(since))
    }
}

/// How soon something is to be committed; the most urgent of what a transaction holds counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// It is history: when there is much of it.
    #[default]
    History,
    /// What agents say and do between two changes of state: within a second.
    Progress,
    /// It changes what a session is about, or somebody waits for its commit: with the next regular one.
    Regular,
    /// A person may have to act, and no program waits: at once, if that does not happen all the time.
    Soon,
    /// A program waits for it, such as the hook of an agent that goes on after it: at once.
    AtOnce,
}

impl Urgency {
    /// The urgency of a live input that brought these events.
    fn of<'a>(input: &IngestInput, events: impl IntoIterator<Item = &'a Event>) -> Self {
        // Whoever sent anything but lines of a transcript waits for the answer.
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
                if change.from == Some(change.to) && change.reason.is_none_or(is_progress) =>
            {
                Self::Progress
            }
            _ => Self::Regular,
        }
    }
}

/// What a transaction changes, for those who learn of it after the commit.
#[derive(Default)]
pub(super) struct ChangeSet {
    /// Events of the log that were seen as they happened, in the order in which they were written.
    pub(super) events: Vec<Event>,
    /// Those of history, which are not published one by one.
    pub(super) past: PastEvents,
    /// Approvals as they stand now, in the order of their changes.
    pub(super) approvals: Vec<Approval>,
    /// Findings as they stand now, in the order of their changes.
    pub(super) findings: Vec<Finding>,
    /// Sessions that runs host from now on.
    pub(super) hosted: Vec<HostedSession>,
    /// The agents of records that were merged into the event of another one, once for each record.
    pub(super) merged: Vec<Provider>,
    /// The end of the audit record, when it grew.
    audit_head: Option<AuditHead>,
}

/// Events of history that a transaction holds.
#[derive(Default)]
pub(super) struct PastEvents {
    pub(super) count: usize,
    /// The time of the last event of each agent, by the code of its provider: milliseconds since 1970, 0 for none.
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

/// A transaction that is committed.
pub(super) struct Committed {
    pub(super) changes: ChangeSet,
    pub(super) inputs: Vec<IngestInput>,
    /// Whether it held anything but history.
    pub(super) live: bool,
    /// The log goes up to here.
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

    /// Notes whether a stream with events is open.
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

    /// Something happened as it was looked at.
    pub(super) fn mark_live(&mut self) {
        self.urgency = self.urgency.max(Urgency::Regular);
    }

    /// An input was applied whose events begin at `first_event`; says whether there are any.
    pub(super) fn add_input(&mut self, input: IngestInput, live: bool, first: EventCount) -> bool {
        if live {
            self.urgency = self.urgency.max(Urgency::of(&input, &self.changes.events[first.live..]));
            // History that is little is shown at once, so its commit must not be late.
            if self.changes.past.count > first.past {
                self.mark_live();
            }
        }
        self.inputs.push(input);
        self.events() != first
    }

    /// An input could not be applied: it is to be taken again.
    pub(super) fn retain_input(&mut self, input: IngestInput) {
        self.inputs.push(input);
    }

    /// How many events it holds.
    pub(super) fn events(&self) -> EventCount {
        EventCount { live: self.changes.events.len(), past: self.changes.past.count }
    }

    /// The place of the next event in the log.
    pub(super) const fn next_position(&mut self) -> u64 {
        self.position += 1;
        self.position
    }

    /// Writes events into the log, each with its long text and its payload where they are prepared.
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

    /// Stores a turn as it is now. It is written with the commit, however often it changes until then.
    pub(super) fn put_turn(&mut self, row: SessionRow, turn: &Turn) {
        self.turns.insert((row, turn.number), turn.clone());
    }

    /// A record was merged into the event of another one.
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

    /// A run hosts a session once this is committed; gives it back if nothing waits for a commit.
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

    /// The audit record ends here.
    pub(super) fn set_audit_head(&mut self, head: Option<AuditHead>) {
        self.changes.audit_head = head.or(self.changes.audit_head);
    }

    /// When it is to be committed, unless it grows; `None` when none is open.
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

    /// How long the commit can wait, unless an input comes.
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

    /// Commits.
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

    /// After the commit: keeps the write-ahead log small. `checkpoint` asks for a checkpoint beside the transactions.
    ///
    /// The log can be restarted only while nothing is written, and all of it has to be in the database first: ingest
    /// waits as long as the least is left.
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

    /// Gives up what was written; the inputs stay. A removal among them can be withdrawn until it is applied again.
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

    /// After a rollback: the position is the store's again.
    pub(super) fn reload_position(&mut self) -> Result<(), ReadError> {
        self.position = self.writer.position()?;
        Ok(())
    }

    /// Takes the inputs out, to apply them again. They come back by [`Self::restore_inputs`].
    pub(super) fn take_inputs(&mut self) -> Vec<IngestInput> {
        std::mem::take(&mut self.inputs)
    }

    /// Puts the inputs back.
    pub(super) fn restore_inputs(&mut self, inputs: Vec<IngestInput>) {
        self.inputs = inputs;
    }

    /// After the commit: keeps the end of the audit record beside it.
    pub(super) fn write_audit_head(&self, changes: &mut ChangeSet) {
        if let Some(head) = changes.audit_head.take()
            && let Some(data) = self.writer.path().parent()
            && let Err(error) = write_head(data, head)
        {
            tracing::warn!(%error, "cannot write audit.head (the last row of the audit record)");
        }
    }

    /// The next event gets a position that is taken.
    #[cfg(test)]
    pub(super) const fn lose_position(&mut self) {
        self.position = 0;
    }
}

/// What one input adds to the log: folded already, and written together. Its own events go first, then those that
/// follow from them.
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

/// Which of an input's prepared events has the text and the payload of an event, as they are stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct PreparedParts {
    pub(super) text: Option<usize>,
    pub(super) payload: Option<usize>,
}

impl PreparedParts {
    pub(super) const NONE: Self = Self { text: None, payload: None };
}

impl Additions {
    /// With room for the events of an input.
    pub(super) fn with_capacity(events: usize) -> Self {
        Self { events: Vec::with_capacity(events), derived: Vec::new() }
    }

    pub(super) fn push(&mut self, slot: usize, event: Event, prepared: PreparedParts) {
        self.events.push(Addition { slot, event, prepared });
    }

    pub(super) fn push_derived(&mut self, slot: usize, event: Event) {
        self.derived.push((slot, event));
    }

    /// Writes them into the log.
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

    /// The number of commits in ten seconds, while something asks for one at once at this interval in milliseconds
    /// and there is always something for a regular one.
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
    fn commits_out_of_turn_take_the_place_of_regular_ones() {
        assert_eq!(commits_in_ten_seconds(20_000), 100, "only regular ones");
        for every in [7, 30, 80, 110, 150, 170, 300, 1_000] {
            let made = commits_in_ten_seconds(every);
            assert!(made <= 105, "{made} with one at once every {every} ms");
        }
    }

    #[test]
    fn what_a_person_may_act_on_waits_for_one_turn_at_most() {
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
    fn a_regular_commit_is_never_put_off_for_longer_than_its_limit() {
        let start = Instant::now();
        let mut pace = Pace::default();
        for _ in 0..50 {
            pace.committed(start);
        }
        assert_eq!(pace.regular, Some(start + REGULAR_WAITS));
    }
}
