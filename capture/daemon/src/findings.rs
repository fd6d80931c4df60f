//! The findings thread: follows the event log, runs the monitor over it, and sends the resulting findings to ingest,
//! which stores and publishes them.
//!
//! It reads only committed events and never blocks ingest: a wake-up only signals that there are new ones. Findings are
//! redacted before they leave the thread. Actions on findings follow the user's own rules.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, select};
use events::{Event, Finding, FindingId, FindingState, Kind, Payload, SessionId, State, Timestamp};
use home::{clock, config::Action};
use ingest::{DerivedKind, DerivedRecord, IngestHandle, IngestInput, SleepWatch};
use live_view::Refusal;
use monitor::Monitor;
use projections::Session;
use store::{EntityFilter, ReadError, Reader, SessionFilter};
use tokio::sync::oneshot;

use crate::{actions::Actions, clocks, supervisor::Supervisor};

/// Name of the thread that follows the log. It is not restarted, because its conclusions since the start exist only in
/// memory.
pub const THREAD: &str = "monitor";
/// Maximum number of pending requests.
const ASKED: usize = 64;
/// Number of events read from the log at a time.
const PAGE: usize = 500;
/// Number of recent events read for a session that the monitor does not know yet.
const LOOK_BACK: usize = 300;
/// Number of the last prompts of a session in which its boundaries are looked for.
pub(crate) const PROMPTS: usize = 300;
/// Maximum number of sessions that are examined again at the start.
const SESSIONS: usize = 500;
/// Maximum number of findings remembered at the start, so that none is raised twice.
const REMEMBERED: usize = 2_000;
/// Delay after the start before findings that still hold are raised, so that ended processes are noticed first.
const AFTER_START: Duration = Duration::from_secs(3);
/// Age of the last activity from which an agent that died before the start raises no finding, ms.
const OLD_NEWS_MS: i64 = 10 * 60 * 1000;
/// Time after the start within which the end of an agent may be noticed, ms.
const NOTICED_MS: i64 = 60_000;
/// Delay before retrying after a read failure.
const AGAIN: Duration = Duration::from_secs(1);
/// Delay of a wake-up from which the machine is assumed to have slept.
const LATE: Duration = Duration::from_secs(3);
/// Time ingest needs to record that the machine slept.
const SLEEP_NOTED: Duration = Duration::from_secs(2);

/// A handle on the thread; clones share it.
#[derive(Clone)]
pub struct Findings {
    news: Sender<()>,
    asks: Sender<MonitorRequest>,
    imported: ImportedSessions,
}

/// Sessions whose history was read and that must still be examined.
type ImportedSessions = Arc<Mutex<BTreeSet<SessionId>>>;

enum MonitorRequest {
    Acknowledge(FindingId, oneshot::Sender<Result<Finding, Refusal>>),
    Configure(Box<monitor::DetectorLimits>, Vec<Action>),
    Stop,
}

/// The parts the thread needs.
pub struct MonitorParts {
    /// Sends inputs to ingest.
    pub inputs: IngestHandle,
    /// Reads the store.
    pub reader: Reader,
    /// The limits of the detectors.
    pub rules: monitor::DetectorLimits,
    /// The user's actions on findings.
    pub actions: Actions,
}

/// The parts of a thread that was not started yet.
pub struct PendingMonitor {
    news: Receiver<()>,
    asks: Receiver<MonitorRequest>,
    imported: ImportedSessions,
}

impl Findings {
    /// A handle on a thread that was not started yet.
    #[must_use]
    pub fn new() -> (Self, PendingMonitor) {
        let (news, told) = bounded(1);
        let (asks, asked) = bounded(ASKED);
        let imported = ImportedSessions::default();
        let pending = PendingMonitor { news: told, asks: asked, imported: Arc::clone(&imported) };
        (Self { news, asks, imported }, pending)
    }

    /// Wakes the thread because the log grew. Never blocks.
    pub fn committed(&self) {
        // One pending wake-up is enough: the thread reads all new events.
        if let Err(TrySendError::Disconnected(())) = self.news.try_send(()) {
            tracing::debug!("the findings thread has ended");
        }
    }

    /// Examines sessions whose history was read: raises findings that are still open, but none that are over.
    pub fn examine(&self, sessions: &[SessionId]) {
        self.imported.lock().unwrap_or_else(PoisonError::into_inner).extend(sessions);
        self.committed();
    }

    /// Acknowledges a finding, so that it is not reported again.
    ///
    /// # Errors
    /// When the finding does not exist or is over, or its session is no longer followed.
    pub async fn acknowledge(&self, id: FindingId) -> Result<Finding, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.asks.try_send(MonitorRequest::Acknowledge(id, reply)).map_err(|_| Refusal::Unavailable)?;
        answer.await.unwrap_or(Err(Refusal::Unavailable))
    }

    /// Applies other limits and actions.
    pub fn configure(&self, rules: monitor::DetectorLimits, actions: Vec<Action>) {
        self.asks.send(MonitorRequest::Configure(Box::new(rules), actions)).ok();
    }

    /// Stops the thread.
    pub fn stop(&self) {
        self.asks.send(MonitorRequest::Stop).ok();
    }
}

impl PendingMonitor {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(self, parts: MonitorParts, supervisor: &Supervisor) -> anyhow::Result<()> {
        let Self { news, asks, imported } = self;
        let monitor = Monitor::new(parts.rules.clone());
        let started_at = clock::now();
        let mut follower = MonitorThread::new(parts, monitor, imported, started_at);
        supervisor.spawn(THREAD, move || follower.run(&news, &asks))
    }
}

fn complain(error: ReadError) {
    tracing::warn!(%error, "cannot read the event log for findings; retrying");
}

struct MonitorThread {
    parts: MonitorParts,
    monitor: Monitor,
    /// Sessions whose history was read in the meantime.
    imported: ImportedSessions,
    /// Position up to which the log was read; `None` until the state was restored.
    position: Option<u64>,
    /// Sessions from before the start that must still be examined.
    unexamined: VecDeque<Session>,
    /// Sessions with new events whose state must still be examined.
    touched: BTreeSet<SessionId>,
    /// Sessions the monitor knows, with the sequence of the last event it has seen.
    known: HashMap<SessionId, u64>,
    started_at: Timestamp,
    sleep: SleepWatch,
    /// Until then the time of the monitor does not advance: the machine slept, which ingest is about to record.
    holds_until: Option<Instant>,
    /// Findings that began before the start, by id, with the time at which they are reported; `None` if they are too
    /// old to report.
    old: BTreeMap<FindingId, (Option<Instant>, Finding)>,
}

impl MonitorThread {
    fn new(parts: MonitorParts, monitor: Monitor, imported: ImportedSessions, started_at: Timestamp) -> Self {
        Self {
            parts,
            monitor,
            imported,
            position: None,
            unexamined: VecDeque::new(),
            touched: BTreeSet::new(),
            known: HashMap::new(),
            started_at,
            sleep: SleepWatch::new(Box::new(clocks::uptime)),
            holds_until: None,
            old: BTreeMap::new(),
        }
    }

    fn run(&mut self, news: &Receiver<()>, asks: &Receiver<MonitorRequest>) {
        self.restore().map_err(complain).ok();
        // The older sessions are examined with the first new event, or a little later, so that they do not delay the
        // first answers after a start.
        let mut again = true;
        loop {
            let wait = if again { AGAIN } else { self.next_wait() };
            let wait = self.sleep.begin(Some(wait));
            let result = select! {
                recv(news) -> told => match told { Ok(()) => self.follow(), Err(_) => return },
                recv(asks) -> asked => match asked {
                    Ok(MonitorRequest::Acknowledge(id, reply)) => {
                        let followed = self.follow_if(again);
                        self.acknowledge(&id, reply);
                        followed
                    }
                    Ok(MonitorRequest::Configure(rules, actions)) => {
                        self.monitor.configure(*rules);
                        self.parts.actions.rules = actions;
                        self.follow_if(again)
                    }
                    Ok(MonitorRequest::Stop) | Err(_) => return,
                },
                default(wait) => self.follow_if(again),
            };
            again = result.map_err(complain).is_err();
            if self.sleep.end() >= LATE {
                self.holds_until = Some(Instant::now() + SLEEP_NOTED);
            }
            self.advance();
        }
    }

    /// Loads the earlier findings and the active sessions.
    fn restore(&mut self) -> Result<u64, ReadError> {
        if let Some(position) = self.position {
            return Ok(position);
        }
        // Findings last, so that those stored in the meantime are included.
        let position = self.parts.reader.position()?;
        let sessions = self.parts.reader.sessions(&SessionFilter { before: None, limit: SESSIONS })?;
        let filter = EntityFilter { states: None, session: None, limit: REMEMBERED, behind: None };
        self.monitor.restore(self.parts.reader.entities::<Finding>(&filter)?, position);
        let is_active = |s: &Session| s.status.state != State::Exited && s.merged_into.is_none();
        self.unexamined = sessions.into_iter().filter(is_active).collect();
        self.position = Some(position);
        Ok(position)
    }

    /// Examines the sessions from before the start. After a failure it continues where it stopped.
    fn begin(&mut self) -> Result<(), ReadError> {
        let start = self.restore()?;
        while let Some(session) = self.unexamined.front().cloned() {
            // Later events are read from the log.
            self.load_history(session.id, |event| event.position <= start)?;
            self.unexamined.pop_front();
            self.check_session(&session);
        }
        Ok(())
    }

    fn next_wait(&self) -> Duration {
        let due = self.monitor.next_deadline();
        let due = due.map(|due| Duration::from_millis(due.since_ms(clock::now()).max(0).unsigned_abs()));
        let old = self.old.values().filter_map(|(due, _)| *due).min();
        let old = old.map(|due| due.saturating_duration_since(Instant::now()));
        let held = self.holds_until.map(|until| until.saturating_duration_since(Instant::now()));
        let due = due.map(|due| held.map_or(due, |held| due.max(held)));
        due.into_iter().chain(old).min().unwrap_or(Duration::MAX)
    }

    fn follow_if(&mut self, again: bool) -> Result<(), ReadError> {
        if again { self.follow() } else { Ok(()) }
    }

    /// Reads the new events of the log. After a failure the next call continues after the last processed event.
    fn follow(&mut self) -> Result<(), ReadError> {
        self.begin()?;
        let until = self.parts.reader.position()?;
        while let Some(position) = self.position.filter(|position| *position < until) {
            let events = self.parts.reader.live_log(position, until, PAGE)?;
            for event in events.iter().filter(|event| !is_ours(event)) {
                self.load_history(event.session_id, |earlier| earlier.sequence < event.sequence)?;
                self.touched.insert(event.session_id);
                self.known.insert(event.session_id, event.sequence);
                self.position = Some(event.position);
                let mut found = self.monitor.advance(event.observed_at);
                found.extend(self.monitor.apply(event));
                self.accept(found);
            }
            self.position = match events.last() {
                Some(last) if events.len() == PAGE => Some(last.position),
                Some(_) | None => Some(until),
            };
        }
        while let Some(id) = self.next_imported() {
            self.load_imported(id)?;
            self.touched.insert(id);
            self.imported.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        }
        while let Some(id) = self.touched.first().copied() {
            let session = self.parts.reader.session(id)?;
            self.touched.remove(&id);
            if let Some(session) = session {
                self.check_session(&session);
                if session.status.state == State::Exited || session.merged_into.is_some() {
                    self.known.remove(&id);
                }
            }
        }
        Ok(())
    }

    fn next_imported(&self) -> Option<SessionId> {
        self.imported.lock().unwrap_or_else(PoisonError::into_inner).first().copied()
    }

    /// Feeds the monitor the history of a session it does not know.
    fn load_history(&mut self, session: SessionId, is_past: impl Fn(&Event) -> bool) -> Result<(), ReadError> {
        if self.known.contains_key(&session) {
            return Ok(());
        }
        let events = self.parts.reader.last_events(session, LOOK_BACK, &[])?;
        // A boundary may be older than the events from which the rest of the state follows.
        let first = events.first().map_or(0, |event| event.sequence);
        let prompts = match events.len() {
            LOOK_BACK => self.parts.reader.last_events(session, PROMPTS, &[Kind::UserPrompt, Kind::SessionExited])?,
            _ => Vec::new(),
        };
        let older = prompts.into_iter().filter(|prompt| prompt.sequence < first);
        self.apply_history(session, older.chain(events).filter(is_past));
        Ok(())
    }

    /// Feeds the monitor the history of a known session that was read since its last event.
    fn load_imported(&mut self, session: SessionId) -> Result<(), ReadError> {
        let Some(after) = self.known.get(&session).copied() else { return self.load_history(session, |_| true) };
        let events = self.parts.reader.last_events(session, LOOK_BACK, &[])?;
        self.apply_history(session, events.into_iter().filter(|event| event.sequence > after && event.history));
        Ok(())
    }

    /// Events of the past raise no finding.
    fn apply_history(&mut self, session: SessionId, events: impl Iterator<Item = Event>) {
        self.known.entry(session).or_default();
        for event in events {
            self.known.insert(session, event.sequence);
            if !is_ours(&event) {
                let found = self.monitor.apply(&Event { history: true, ..event });
                self.accept(found);
            }
        }
    }

    fn check_session(&mut self, session: &Session) {
        let found = self.monitor.check(session, clock::now());
        self.accept(found);
    }

    fn advance(&mut self) {
        let now = Instant::now();
        if self.holds_until.take_if(|until| *until <= now).is_some() || self.holds_until.is_none() {
            let found = self.monitor.advance(clock::now());
            self.accept(found);
        }
        while let Some(id) =
            self.old.iter().find(|(_, (due, _))| due.is_some_and(|due| due <= now)).map(|(id, _)| id.clone())
        {
            if let Some((_, finding)) = self.old.remove(&id) {
                self.record(finding);
            }
        }
    }

    /// Accepts findings of the monitor; those from before the start are delayed.
    fn accept(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            match self.old.remove(&finding.id) {
                Some((_, _)) if !finding.is_open() => {}
                Some((due, _)) => drop(self.old.insert(finding.id.clone(), (due, finding))),
                None if self.is_old_news(&finding) => drop(self.old.insert(finding.id.clone(), (None, finding))),
                None if finding.first_at < self.started_at && finding.is_open() && self.is_new(&finding) => {
                    self.old.insert(finding.id.clone(), (Some(Instant::now() + AFTER_START), finding));
                }
                None => self.record(finding),
            }
        }
    }

    /// Whether the finding was never stored.
    fn is_new(&self, finding: &Finding) -> bool {
        matches!(self.parts.reader.entity::<Finding>(&finding.id), Ok(None))
    }

    /// Whether the finding concerns an agent that died unnoticed long before the start.
    fn is_old_news(&self, finding: &Finding) -> bool {
        if !finding.kind.facts().is_of_end
            || !finding.is_open()
            || finding.last_at.since_ms(self.started_at) > NOTICED_MS
        {
            return false;
        }
        let Ok(Some(session)) = self.parts.reader.session(finding.session_id) else { return false };
        let last = session.last_user_prompt_at.max(session.last_assistant_output_at).unwrap_or(session.started_at);
        self.started_at.since_ms(last) > OLD_NEWS_MS && self.is_new(finding)
    }

    /// Sends a finding to ingest, and runs the user's actions for a new finding after its commit: after an earlier
    /// crash the finding is detected again, and its actions run then.
    fn record(&mut self, finding: Finding) {
        let finding = redact::of_finding(finding);
        let what = DerivedKind::Finding(Box::new(finding.clone()));
        let acts = !self.parts.actions.rules.is_empty() && finding.state == FindingState::Open && self.is_new(&finding);
        if !acts {
            self.parts.inputs.send(IngestInput::Derived(DerivedRecord::new(finding.session_id, what))).ok();
            return;
        }
        let (done, committed) = bounded(1);
        let done = Box::new(move |known: bool| done.try_send(known).unwrap_or_default());
        let record = DerivedRecord { session: finding.session_id, what, done };
        self.parts.inputs.send(IngestInput::Derived(record)).ok();
        // If ingest ends without the commit, it drops the other end.
        if committed.recv() == Ok(true) {
            self.parts.actions.on(&finding, &self.parts.reader);
        }
    }

    /// Acknowledges a finding; replies after the commit.
    fn acknowledge(&mut self, id: &FindingId, reply: oneshot::Sender<Result<Finding, Refusal>>) {
        let finding = match self.acknowledged(id) {
            Ok(AcknowledgeOutcome::Now(finding)) => finding,
            Ok(AcknowledgeOutcome::Before(finding)) => return drop(reply.send(Ok(finding))),
            Err(refusal) => return drop(reply.send(Err(refusal))),
        };
        let answer = finding.clone();
        let done = move |_| drop(reply.send(Ok(answer)));
        let (session, what) = (finding.session_id, DerivedKind::Finding(Box::new(finding)));
        self.parts.inputs.send(IngestInput::Derived(DerivedRecord { session, what, done: Box::new(done) })).ok();
    }

    fn acknowledged(&mut self, id: &FindingId) -> Result<AcknowledgeOutcome, Refusal> {
        let stored = self.parts.reader.entity::<Finding>(id).map_err(|error| Refusal::Failed(error.to_string()))?;
        let stored = stored
            .ok_or_else(|| Refusal::NotFound(format!("no finding `{id}`; `capture findings --all` lists them")))?;
        if stored.state == FindingState::Acknowledged {
            return Ok(AcknowledgeOutcome::Before(redact::of_finding(stored)));
        }
        if !stored.is_open() {
            let over = stored.resolution.map(|why| format!(": {why}")).unwrap_or_default();
            return Err(Refusal::Conflict(format!("finding {id} is already resolved{over}")));
        }
        let changed = self.monitor.acknowledge(id, clock::now());
        let finding = changed.into_iter().find(|finding| finding.id == *id);
        let finding =
            finding.ok_or_else(|| Refusal::Conflict(format!("the session of finding {id} is no longer monitored")))?;
        Ok(AcknowledgeOutcome::Now(redact::of_finding(finding)))
    }
}

/// The outcome of acknowledging a finding.
enum AcknowledgeOutcome {
    /// It is now acknowledged, which must be stored.
    Now(Finding),
    /// It was already acknowledged.
    Before(Finding),
}

/// Whether capture wrote the event itself, about findings: such events say nothing about the session.
const fn is_ours(event: &Event) -> bool {
    matches!(event.payload, Payload::Finding(_) | Payload::Notification(_) | Payload::QueuedPrompt(_))
}

#[cfg(test)]
mod tests;
