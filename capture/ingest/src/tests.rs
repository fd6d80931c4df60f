//! Tests from inputs to log and live view, with a fake clock, a temporary store and no processes.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicI64, AtomicUsize},
    },
};

use ::processes::{AgentProcess, EndedProcess};
use events::{
    AssistantMessage, Block, Claim, Confidence, Cursor, DeliveryId, Event, Identity, Kind, NewEvent, Origin, Payload,
    PromptOrigin, Provider, Reason, Repeat, SessionId, SessionStarted, Signal, Source, StartKind, State, Stop,
    ToolCall, ToolKind, ToolResult, TurnOutcome, UsageReported, UserPrompt,
};
use projections::{Session, SessionState, StatusRules};
use tailer::collect::Batch;

use super::*;

mod failures;
mod hook_health;
mod hosts;
mod ignored;
mod processes;
mod properties;
mod records;
mod telemetry;
mod typed;

const START: i64 = 1_795_149_432_000;

fn at(seconds: f64) -> Timestamp {
    Timestamp::from_millisecond(START).plus_ms((seconds * 1000.0) as i64)
}

/// Records ingest's requests to the process watcher.
#[derive(Debug, Default, Clone)]
struct FakeProcesses {
    watched: Arc<Mutex<Vec<(u32, u64)>>>,
    wanted: Arc<AtomicUsize>,
    /// Processes that are running.
    alive: Arc<Mutex<Vec<u32>>>,
    /// The run each process belongs to.
    runs: Arc<Mutex<HashMap<u32, RunId>>>,
    /// The watched permission requests.
    requests: Arc<Mutex<HashMap<SessionId, WatchedRequest>>>,
}

impl Processes for FakeProcesses {
    fn watch(&mut self, pid: u32, start_ticks: u64) {
        self.watched.lock().unwrap().push((pid, start_ticks));
    }
    fn wanted(&mut self, _fresh: bool) {
        self.wanted.fetch_add(1, Ordering::Relaxed);
    }
    fn watch_request(&mut self, session: SessionId, request: Option<WatchedRequest>) {
        let mut requests = self.requests.lock().unwrap();
        match request {
            Some(request) => drop(requests.insert(session, request)),
            None => drop(requests.remove(&session)),
        }
    }

    fn run_of(&mut self, pid: u32) -> Option<RunId> {
        self.runs.lock().unwrap().get(&pid).copied()
    }

    fn is_alive(&self, pid: u32, _start_ticks: u64) -> bool {
        self.alive.lock().unwrap().contains(&pid)
    }
}

/// Records for each hosted session whether it was stored when the observer was called.
#[derive(Clone, Default)]
struct HostedObserver {
    reader: Arc<Mutex<Option<store::Reader>>>,
    told: Arc<Mutex<Vec<(HostedSession, bool)>>>,
}

impl CommitObserver for HostedObserver {
    fn hosts(&self, hosted: HostedSession) {
        let reader = self.reader.lock().unwrap().clone();
        let stored = reader.unwrap().session(hosted.session).unwrap();
        let has_run = stored.is_some_and(|session| session.run_id == Some(hosted.run));
        self.told.lock().unwrap().push((hosted, has_run));
    }
}

/// An ingest without its thread, and everything it uses.
struct World {
    dir: tempfile::TempDir,
    now: Arc<AtomicI64>,
    /// The time of the wall clock if it was set back.
    set_back_to: Arc<AtomicI64>,
    asked: FakeProcesses,
    hosted: HostedObserver,
    gauges: Arc<Gauges>,
    live_view: LiveView,
    ingest: Option<Ingest>,
    /// Number of bytes read from each file so far.
    offsets: HashMap<String, u64>,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            dir: tempfile::tempdir().unwrap(),
            now: Arc::new(AtomicI64::new(START)),
            set_back_to: Arc::new(AtomicI64::new(i64::MAX)),
            asked: FakeProcesses::default(),
            hosted: HostedObserver::default(),
            gauges: Arc::default(),
            live_view: LiveView::new("e"),
            ingest: None,
            offsets: HashMap::new(),
        };
        world.start();
        world
    }

    /// Ends as in a power failure, and opens the store again.
    fn start(&mut self) {
        self.ingest = None;
        self.live_view = LiveView::new("e");
        let (now, set_back_to) = (Arc::clone(&self.now), Arc::clone(&self.set_back_to));
        let writer = Writer::open(self.dir.path()).unwrap();
        *self.hosted.reader.lock().unwrap() = Some(writer.reader());
        let parts = IngestParts {
            writer,
            live_view: self.live_view.clone(),
            gauges: Arc::clone(&self.gauges),
            processes: Box::new(self.asked.clone()),
            clock: Arc::new(move || Timestamp::from_millisecond(now.load(Ordering::Relaxed))),
            wall: Arc::new(move || Timestamp::from_millisecond(set_back_to.load(Ordering::Relaxed))),
            uptime: Box::new(Uptime::default),
            onlooker: Box::new(self.hosted.clone()),
            rules: StatusRules::default(),
            ignore: vec![PathBuf::from("/secret"), self.dir.path().join("link/secret")],
            redacted_only: false,
            checkpoint: Box::new(|| ()),
        };
        self.ingest = Some(Ingest::new(parts).unwrap());
    }

    fn ingest(&mut self) -> &mut Ingest {
        self.ingest.as_mut().unwrap()
    }

    fn read(&self) -> store::Reader {
        self.ingest.as_ref().unwrap().transaction.writer.reader()
    }

    /// Sets the time to this many seconds after the start and processes everything due.
    fn until(&mut self, seconds: f64) {
        self.now.fetch_max(at(seconds).as_millisecond(), Ordering::Relaxed);
        self.ingest().advance();
        self.ingest().commit_all();
    }

    fn take(&mut self, input: IngestInput) {
        self.ingest().apply(input);
    }

    /// Simulates a read of the session's file that returned these events.
    fn file(&mut self, path: &str, events: Vec<NewEvent>, history: bool, more: bool) {
        let offset = self.offsets.entry(path.to_owned()).or_default();
        *offset += 100;
        let cursor = Cursor {
            path: path.into(),
            generation: 1,
            offset: *offset,
            size: *offset + if more { 100 } else { 0 },
            caught_up: !more,
            provider_session_id: events.first().map(|e| e.provider_session_id.to_string()),
            ..Cursor::default()
        };
        let batch = Batch {
            cursor,
            provider: Provider::Claude,
            events,
            vanished: false,
            modified_at: None,
            backfill: history,
            history,
        };
        self.take(IngestInput::Batch(Box::new(PreparedBatch::new(batch))));
    }

    /// Simulates new output of a live session.
    fn live(&mut self, session: &str, events: Vec<NewEvent>) {
        self.file(&path_of(session), events, false, false);
    }

    /// Simulates a session's output from before capture started.
    fn past(&mut self, session: &str, events: Vec<NewEvent>) {
        self.file(&path_of(session), events, true, false);
    }

    fn commit(&mut self) {
        self.ingest().commit_all();
    }

    fn id(&self, session: &str) -> SessionId {
        self.read().find(session).unwrap().unwrap_or_else(|| panic!("no session {session}"))
    }

    fn knows(&self, session: &str) -> bool {
        self.read().find(session).unwrap().is_some()
    }

    fn session(&self, session: &str) -> Session {
        self.read().session(self.id(session)).unwrap().unwrap()
    }

    fn status(&self, session: &str) -> String {
        let status = self.session(session).status;
        format!("{} {}", status.state, status.reason.map_or("-", Reason::as_str))
    }

    fn log(&self) -> Vec<Event> {
        self.read().log(0, 1_000_000, None).unwrap()
    }

    /// The events of a session, one per line; conclusions in parentheses.
    fn told(&self, session: &str) -> Vec<String> {
        self.read().events(self.id(session), 0, 1_000, &[]).unwrap().iter().map(show).collect()
    }

    fn repeated(&self) -> u64 {
        self.gauges.counters.repeated.get()
    }

    /// Checks the invariants of every store.
    #[track_caller]
    fn assert_sound(&mut self) {
        let now = Timestamp::from_millisecond(self.now.load(Ordering::Relaxed));
        let log = self.log();
        let positions: Vec<u64> = log.iter().map(|e| e.position).collect();
        assert_eq!(positions, (1..=log.len() as u64).collect::<Vec<_>>(), "positions grow without gaps");
        let mut ids: Vec<_> = log.iter().map(|e| e.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), log.len(), "no event twice");
        let mut sessions: HashMap<SessionId, Vec<Event>> = HashMap::new();
        for event in log {
            sessions.entry(event.session_id).or_default().push(event);
        }
        let ingest = self.ingest.as_mut().unwrap();
        for (id, mut events) in sessions {
            events.sort_by_key(|e| e.sequence);
            assert!(events.iter().map(|e| e.sequence).eq(1..=events.len() as u64), "sequences are without gaps");
            assert!(events.iter().is_sorted_by_key(|e| e.position), "and in the order of positions");
            let slot = ingest.sessions.find(id).unwrap();
            let mut live = ingest.sessions.state(&ingest.transaction.writer, slot).unwrap().clone();
            // The read positions of files are not in the log.
            live.session.transcripts.clear();
            live.session.health = projections::SessionHealth::Ok;
            let mut again = SessionState::new(
                id,
                events[0].provider,
                live.session.provider_session_id.as_deref().map(Arc::from),
                events[0].created_at,
                StatusRules::default(),
            );
            let mut concluded = Vec::new();
            let reader = ingest.transaction.writer.reader();
            for event in &events {
                concluded.extend(reader.fold(&mut again, event.clone()).unwrap());
            }
            concluded.extend(again.advance(now));
            assert_eq!(live.advance(now), [], "nothing is overdue");
            live.view();
            again.view();
            assert_eq!(again, live, "the fold of the log is the live state");
            let derived: Vec<&Payload> = events.iter().filter(|e| e.derived).map(|e| &e.payload).collect();
            assert_eq!(
                concluded.iter().map(|c| &c.payload).collect::<Vec<_>>(),
                derived,
                "and concludes what was logged"
            );
            let view = ingest.transaction.writer.reader().session(id).unwrap().unwrap();
            let stands = |s: &Session| (s.status.state, s.status.reason, s.status.since, s.last_sequence, s.turns);
            assert_eq!(stands(&view), stands(&live.session), "and what is shown");
        }
    }
}

fn path_of(session: &str) -> String {
    format!("/h/.claude/projects/-p/{session}.jsonl")
}

fn new(session: &str, record: &str, block: u32, seconds: f64, payload: impl Into<Payload>) -> NewEvent {
    NewEvent {
        provider: Provider::Claude,
        provider_session_id: Arc::from(session),
        identity: Identity::record(Provider::Claude, record, block),
        repeat: Repeat::Unique,
        source: Source::Transcript,
        created_at: Some(at(seconds)),
        observed_at: at(seconds),
        parent: None,
        agent_id: None,
        confidence: Confidence::High,
        severity: None,
        text: None,
        payload: payload.into(),
        origin: Origin::File { path: Arc::from(path_of(session)), generation: 1, offset: 0, length: 10 },
    }
}

fn saying(text: &str, event: NewEvent) -> NewEvent {
    NewEvent { text: Some(text.into()), ..event }
}

fn prompt(session: &str, record: &str, seconds: f64) -> NewEvent {
    saying(
        record,
        new(session, record, 0, seconds, UserPrompt { origin: PromptOrigin::Human, ..UserPrompt::default() }),
    )
}

/// A block of a message: `text`, or a tool call without it.
fn block(session: &str, record: &str, seconds: f64, message: &str, text: Option<&str>, stop: Stop) -> NewEvent {
    let said = AssistantMessage {
        message_id: Some(message.into()),
        stop: Some(stop),
        blocks: 1,
        tool_calls: u32::from(text.is_none()),
        ..AssistantMessage::default()
    };
    NewEvent { text: text.map(str::to_owned), ..new(session, record, 0, seconds, said) }
}

fn answer(session: &str, record: &str, seconds: f64) -> NewEvent {
    block(session, record, seconds, &format!("m-{record}"), Some(record), Stop::EndTurn)
}

fn call(session: &str, record: &str, seconds: f64) -> NewEvent {
    new(
        session,
        record,
        1_000,
        seconds,
        ToolCall {
            call_id: record.into(),
            name: "Bash".into(),
            tool: ToolKind::Execute,
            title: Some("ls".into()),
            ..ToolCall::default()
        },
    )
}

fn result(session: &str, record: &str, call: &str, seconds: f64) -> NewEvent {
    saying("done", new(session, record, 0, seconds, ToolResult { call_id: call.into(), ..ToolResult::default() }))
}

fn tokens(session: &str, message: &str, seconds: f64, output_tokens: u64) -> NewEvent {
    new(
        session,
        message,
        7,
        seconds,
        UsageReported { message_id: Some(message.into()), output_tokens, ..UsageReported::default() },
    )
}

fn started(session: &str, seconds: f64, started: SessionStarted) -> NewEvent {
    new(session, &format!("start-{session}"), 0, seconds, started)
}

fn helper_of(parent: &str) -> SessionStarted {
    SessionStarted {
        how: StartKind::Subagent,
        parent_provider_session_id: Some(parent.into()),
        ..SessionStarted::default()
    }
}

fn registry(session: &str, record: &str, seconds: f64, claim: Claim) -> NewEvent {
    let signal = Signal::new(claim, Confidence::High, Some(record.into()));
    NewEvent { source: Source::Registry, ..new(session, record, 0, seconds, signal) }
}

fn claims(session: &str, record: &str, seconds: f64, state: State) -> NewEvent {
    registry(session, record, seconds, Claim::State { state, reason: None })
}

fn show(event: &Event) -> String {
    let what = match &event.payload {
        Payload::StatusChanged(to) => format!("{} {}", to.to, to.reason.map_or("-", Reason::as_str)),
        Payload::TurnStarted(turn) => format!("turn {} by {}", turn.number, turn.trigger),
        Payload::TurnCompleted(turn) => format!("turn {} {}", turn.number, turn.outcome),
        Payload::SessionExited(exit) => format!("exit {}", exit.reason.map_or("-", Reason::as_str)),
        Payload::AssistantMessage(m) => format!("message of {}", m.blocks),
        Payload::AssistantDelta(d) => format!("delta of {} {}", d.blocks, d.block),
        Payload::SessionForked(f) => format!("forked from {}", f.from),
        Payload::Annotation(a) => format!("{}: {}", a.topic, a.value),
        Payload::Signal(s) => s.words.clone().unwrap_or_default(),
        other => other.kind().to_string(),
    };
    let text = event.text.as_deref().map(|t| format!(" {t:?}")).unwrap_or_default();
    if event.derived { format!("({what})") } else { format!("{what}{text}") }
}
