//! A machine in virtual time: a home in a temporary directory, the real collector and decoders, the real ingest and
//! store, and numbers for the clock and the process table.
//!
//! The parts that are not the program's own mirror `daemon::serve`: a write is a hint to the collector (as from
//! inotify), a commit follows every scan, and processes are searched every two seconds and 0.3 s after a new session
//! requested it.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime},
};

use agents::{Agent, Homes, agent::ALL};
use events::{Event, Provider, RunId, State, Timestamp};
use ingest::{Gauges, Ingest, IngestInput, IngestParts, PreparedBatch, Processes, WatchedRequest};
use live_view::LiveView;
use processes::{AgentProcess, EndedProcess};
use projections::{SessionState, StatusRules};
use store::{KnownSession, Reader, SessionFilter, Writer};
use tailer::{
    collect::{Batch, Collector, CollectorConfig, CollectorHandle},
    tail::Now,
};

use crate::{
    recording::{Names, Op, Recording, What},
    rows,
    score::ShownStatus,
};

/// The step of virtual time, ms.
const STEP: i64 = 50;
/// The interval between searches for processes, ms.
const SEARCH_EVERY: i64 = 2_000;
/// The delay of a search for a session that has just begun, ms.
const SEARCH_SOON: i64 = 300;
/// Maximum number of rounds of a full scan.
const ROUNDS: usize = 10_000;

/// States, most pressing first.
const PRESSING: [State; 6] =
    [State::WaitingApproval, State::Running, State::Waiting, State::Idle, State::Unknown, State::Exited];

#[derive(Debug, Default)]
struct ProcessLog {
    alive: Vec<AgentProcess>,
    watched: Vec<EndedProcess>,
    wanted: Option<bool>,
}

struct FakeProcesses(Arc<Mutex<ProcessLog>>);

impl Processes for FakeProcesses {
    fn watch(&mut self, pid: u32, start_ticks: u64) {
        self.0.lock().unwrap().watched.push(EndedProcess { pid, start_ticks });
    }

    fn wanted(&mut self, fresh: bool) {
        let mut side = self.0.lock().unwrap();
        side.wanted = Some(fresh || side.wanted == Some(true));
    }

    fn watch_request(&mut self, _session: events::SessionId, _request: Option<WatchedRequest>) {}

    fn run_of(&mut self, _pid: u32) -> Option<RunId> {
        None
    }

    fn is_alive(&self, pid: u32, start_ticks: u64) -> bool {
        let side = self.0.lock().unwrap();
        side.alive.iter().any(|process| (process.pid, process.start_ticks) == (pid, start_ticks))
    }
}

#[derive(Debug, Default)]
struct Search {
    next: i64,
    told: Vec<(u32, u64)>,
    wanted: bool,
    tellings: u32,
}

/// The machine.
pub struct World {
    dir: tempfile::TempDir,
    collector: Collector,
    control: CollectorHandle,
    /// The ingest, for further inputs.
    pub ingest: Ingest,
    reader: Reader,
    wall: Arc<AtomicI64>,
    /// Wall clock at second 0, ms.
    start: i64,
    /// Virtual time since second 0, ms.
    now: i64,
    side: Arc<Mutex<ProcessLog>>,
    search: Search,
    position: u64,
    shown: Vec<ShownStatus>,
    changed: BTreeMap<PathBuf, i64>,
    databases: BTreeMap<PathBuf, rusqlite::Connection>,
    /// Whether the collector is notified of writes, as by inotify; otherwise it polls.
    pub hints: bool,
    /// If `Some`, batches are queued here, as while the disk is slow.
    pub waiting: Option<Vec<Batch>>,
}

/// The stored contents of one session.
#[derive(Debug)]
pub struct StoredSession {
    /// The session.
    pub known: KnownSession,
    /// Its reducer at the end of the program.
    pub state: SessionState,
    /// Its log. Folded texts are complete.
    pub events: Vec<Event>,
}

impl World {
    /// A machine whose wall clock reads `start` (ms) at second 0. Capture has been running on it
    /// for a second.
    #[must_use]
    pub fn new(start: i64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (home, data) = (dir.path().join("home"), dir.path().join("data"));
        for agent in ALL {
            for below in agent.transcripts.directories {
                fs::create_dir_all(home.join(agent.home.usual[0]).join(below)).unwrap();
            }
        }
        fs::create_dir_all(dir.path().join("proj")).unwrap();
        let writer = Writer::open(&data).unwrap();
        let reader = writer.reader();
        let usual = |agent: &&Agent| (agent.provider, agent.home.usual.iter().map(|below| home.join(below)).collect());
        let own = (Provider::Capture, vec![data.join("agent")]);
        let homes = ALL.iter().map(usual).chain([own]).collect::<Homes>();
        let clock: fn() -> Now = || Now { wall: Timestamp::MIN, steady: Duration::ZERO };
        let config = CollectorConfig { watches: 0, workers: 0, ..CollectorConfig::new(clock) };
        let collector =
            Collector::new(config, transcripts::providers::roots(&homes), writer.reader().cursors().unwrap());
        let wall = Arc::new(AtomicI64::new(start - 1_000));
        let side: Arc<Mutex<ProcessLog>> = Arc::default();
        let ingest = Ingest::new(IngestParts {
            writer,
            live_view: LiveView::new("virtual"),
            gauges: Arc::new(Gauges::default()),
            processes: Box::new(FakeProcesses(Arc::clone(&side))),
            clock: {
                let wall = Arc::clone(&wall);
                Arc::new(move || Timestamp::from_millisecond(wall.load(Ordering::Relaxed)))
            },
            wall: Arc::new(|| Timestamp::from_millisecond(i64::MAX)),
            uptime: Box::new(ingest::Uptime::default),
            onlooker: Box::new(ingest::NoObserver),
            rules: StatusRules::default(),
            ignore: Vec::new(),
            redacted_only: false,
            checkpoint: Box::new(|| ()),
        })
        .unwrap();
        let mut world = Self {
            control: collector.control(),
            dir,
            collector,
            ingest,
            reader,
            wall,
            start,
            now: -1_000,
            side,
            search: Search { next: -1_000, ..Search::default() },
            position: u64::MAX,
            shown: Vec::new(),
            changed: BTreeMap::new(),
            databases: BTreeMap::new(),
            hints: true,
            waiting: None,
        };
        world.tick();
        world
    }

    /// The home directory of the agents' user.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The agents' working directory.
    #[must_use]
    pub fn project(&self) -> PathBuf {
        self.dir.path().join("proj")
    }

    /// The wall clock.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        Timestamp::from_millisecond(self.start + self.now)
    }

    /// A reader of the store.
    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The statuses shown so far.
    #[must_use]
    pub fn shown(&self) -> &[ShownStatus] {
        &self.shown
    }

    /// Plays a recording up to 1.5 s after its last truth.
    pub fn play(&mut self, recording: &Recording) {
        self.play_with::<()>(recording, &[], |_, ()| ());
    }

    /// Plays a recording together with further inputs: the time (ms since second 0, in order), and the input for
    /// `tell`.
    pub fn play_with<T>(&mut self, recording: &Recording, told: &[(i64, T)], tell: impl Fn(&mut Self, &T)) {
        let replay = Replay::new(recording, self);
        let end = seconds(recording.truth.last().map_or(0.0, |t| t.at) + 1.5);
        let mut told = told.iter().filter(|(at, _)| *at <= end).peekable();
        let ops = recording.timeline.iter().map(Some).chain([None]);
        for op in ops {
            let until = op.map_or(end, |op| seconds(op.at));
            while let Some((at, what)) = told.next_if(|(at, _)| *at <= until) {
                self.run_to(*at);
                tell(self, what);
                self.tick();
            }
            self.run_to(until);
            if let Some(op) = op {
                replay.apply(self, op);
                self.tick();
            }
        }
    }

    /// Advances the time to `at` (ms since second 0).
    pub fn run_to(&mut self, at: i64) {
        while self.now + STEP <= at {
            self.now += STEP;
            self.tick();
        }
        self.now = self.now.max(at);
        self.tick();
    }

    /// Executes everything due at this time, then records the shown status.
    pub fn tick(&mut self) {
        self.wall.store(self.start + self.now, Ordering::Relaxed);
        self.search();
        self.collect();
        self.end_watched();
        self.ingest.advance();
        self.ingest.commit();
        self.look();
    }

    fn collect(&mut self) {
        let now = Now { wall: self.wall(), steady: Duration::from_millis(u64::try_from(self.now + 10_000).unwrap()) };
        let (ingest, waiting) = (&mut self.ingest, &mut self.waiting);
        let mut sink = |batch: Batch| {
            match waiting {
                Some(waiting) => waiting.push(batch),
                None => ingest.apply(IngestInput::Batch(Box::new(PreparedBatch::new(batch)))),
            }
            Ok(())
        };
        for _ in 0..ROUNDS {
            if self.collector.round(now, &mut sink).unwrap() > now.steady {
                return;
            }
        }
        panic!("the collector has not come to rest after {ROUNDS} rounds at one moment");
    }

    /// Applies the queued batches.
    pub fn let_go(&mut self) {
        for batch in self.waiting.take().unwrap_or_default() {
            self.ingest.apply(IngestInput::Batch(Box::new(PreparedBatch::new(batch))));
        }
        self.tick();
    }

    fn search(&mut self) {
        let (wanted, alive) = {
            let mut side = self.side.lock().unwrap();
            (side.wanted.take(), side.alive.clone())
        };
        let search = &mut self.search;
        if let Some(fresh) = wanted {
            search.wanted = true;
            if fresh {
                search.next = search.next.min(self.now + SEARCH_SOON);
            }
        }
        if self.now < search.next {
            return;
        }
        search.next = self.now + SEARCH_EVERY;
        let names: Vec<(u32, u64)> = alive.iter().map(|a| (a.pid, a.start_ticks)).collect();
        if names != search.told {
            search.tellings = 2;
        } else if search.wanted {
            search.tellings = search.tellings.max(1);
        }
        search.wanted = false;
        search.told = names;
        if search.tellings > 0 {
            search.tellings -= 1;
            self.ingest.apply(IngestInput::Agents(alive));
        }
    }

    /// Reports watched processes that have ended.
    fn end_watched(&mut self) {
        let gone: Vec<EndedProcess> = {
            let mut side = self.side.lock().unwrap();
            let alive: Vec<(u32, u64)> = side.alive.iter().map(|a| (a.pid, a.start_ticks)).collect();
            let is_alive = |e: &EndedProcess| {
                alive.iter().any(|(pid, start)| e.pid == *pid && (e.start_ticks == 0 || e.start_ticks == *start))
            };
            let (kept, mut gone): (Vec<EndedProcess>, Vec<EndedProcess>) =
                std::mem::take(&mut side.watched).into_iter().partition(is_alive);
            side.watched = kept;
            gone.dedup();
            gone
        };
        for ended in gone {
            self.ingest.apply(IngestInput::Ended(ended));
        }
    }

    /// Records what a client would see: the most pressing state of all top-level sessions.
    fn look(&mut self) {
        let position = self.reader.position().unwrap();
        if position == self.position {
            return;
        }
        self.position = position;
        let filter = SessionFilter { before: None, limit: 1_000 };
        let sessions = self.reader.sessions(&filter).unwrap();
        let pressing = sessions
            .iter()
            .filter(|s| s.parent_session_id.is_none() && s.merged_into.is_none())
            .min_by_key(|s| PRESSING.iter().position(|p| *p == s.status.state));
        let now = pressing.map(|s| (s.status.state, s.status.reason.map(|r| r.to_string())));
        let (state, reason) = now.map_or((None, None), |(state, reason)| (Some(state), reason));
        if self.shown.last().is_none_or(|last| (&last.1, &last.2) != (&state, &reason)) {
            self.shown.push((self.now as f64 / 1000.0, state, reason));
        }
    }

    /// The process id of a recorded run.
    #[must_use]
    pub fn pid(run: usize) -> u32 {
        41_000 + run as u32
    }

    /// The start time of a recorded run, in clock ticks since boot.
    #[must_use]
    pub fn start_ticks(run: usize) -> u64 {
        500_000 + run as u64
    }

    /// Starts a process.
    pub fn spawn(&mut self, provider: Provider, pid: u32, start_ticks: u64) {
        let cwd = self.project();
        let process = AgentProcess {
            provider,
            pid,
            start_ticks,
            age_ms: 0,
            parent: None,
            child: false,
            cwd,
            shared: false,
            resumes: false,
            headless: false,
            run: None,
            open_files: Vec::new(),
        };
        self.side.lock().unwrap().alive.push(process);
    }

    /// Ends a process.
    pub fn exit(&mut self, pid: u32) {
        self.side.lock().unwrap().alive.retain(|a| a.pid != pid);
    }

    /// Appends to a file; the process `pid`, if it is running, keeps it open.
    pub fn append(&mut self, path: &Path, data: &str, pid: Option<u32>) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if rows::is_database(path) {
            let database = self.databases.entry(path.to_owned()).or_insert_with_key(|path| rows::open(path));
            rows::append(database, data);
            return self.hint(path);
        }
        let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(data.as_bytes()).unwrap();
        self.written(&file, path);
        let mut side = self.side.lock().unwrap();
        if let Some(process) = side.alive.iter_mut().find(|a| Some(a.pid) == pid)
            && !process.open_files.iter().any(|f| f == path)
        {
            process.open_files.push(path.to_owned());
        }
    }

    /// Rewrites a file in place.
    pub fn write(&mut self, path: &Path, data: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Virtual time runs ahead of the clock of the disk. Two versions of equal size must not share a ctime; in real
        // time they would be seconds apart.
        let before = self.changed.get(path).copied();
        loop {
            fs::write(path, data).unwrap();
            if before != Some(ctime(path)) {
                break;
            }
            std::thread::yield_now();
        }
        self.written(&OpenOptions::new().write(true).open(path).unwrap(), path);
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &Path) {
        fs::remove_file(path).ok();
        self.hint(path);
    }

    fn written(&mut self, file: &File, path: &Path) {
        let wall = u64::try_from(self.wall().as_millisecond()).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(wall)).unwrap();
        self.changed.insert(path.to_owned(), ctime(path));
        self.hint(path);
    }

    fn hint(&self, path: &Path) {
        if self.hints {
            self.control.check_path(path);
        }
    }

    /// Ends the program and returns the stored sessions.
    #[must_use]
    pub fn end(self) -> (tempfile::TempDir, Vec<StoredSession>) {
        let Self { dir, mut ingest, reader, .. } = self;
        ingest.finish();
        drop(ingest);
        // A process that another test is starting in this test program may hold the lock between fork and exec.
        let writer = crate::eventually("the store is free", || Writer::open(&dir.path().join("data")).ok());
        let kept = writer
            .sessions()
            .unwrap()
            .into_iter()
            .filter_map(|known| {
                let state = writer.snapshot(known.row).unwrap()?;
                let mut events = reader.events(known.id, 0, usize::MAX >> 1, &[]).unwrap();
                let (provider, name) = (known.provider, Some(Arc::clone(&known.provider_session_id)));
                let began = events.first().map_or(Timestamp::MIN, |event| event.created_at);
                let mut folded = SessionState::new(known.id, provider, name, began, StatusRules::default());
                for event in &mut events {
                    if folded.whole_text_of(event).is_some() {
                        let mut left = u64::MAX;
                        reader.whole_text(event, &mut left).unwrap();
                    }
                    let _conclusions = folded.fold(event);
                }
                Some(StoredSession { known, state, events })
            })
            .collect();
        (dir, kept)
    }
}

fn ctime(path: &Path) -> i64 {
    fs::metadata(path).map_or(0, |m| m.ctime() * 1_000_000_000 + m.ctime_nsec())
}

fn seconds(at: f64) -> i64 {
    (at * 1000.0).round() as i64
}

/// A recording adapted to this machine: paths and processes.
struct Replay {
    provider: Provider,
    names: Names,
    runs: Vec<(f64, usize)>,
}

impl Replay {
    fn new(recording: &Recording, world: &World) -> Self {
        let names = Names::new(&recording.about, &world.home(), &world.project());
        let spawns = recording.timeline.iter().filter_map(|op| match op.what {
            What::Spawn { run } => Some((op.at, run)),
            What::Exit { .. } | What::Append { .. } | What::Write { .. } | What::Remove { .. } => None,
        });
        Self { provider: recording.about.provider, names, runs: spawns.collect() }
    }

    fn rewrite(&self, text: &str) -> String {
        self.names.rewrite(text)
    }

    /// The run at this time: the last one that started.
    fn run_at(&self, at: f64) -> usize {
        self.runs.iter().rev().find(|(begin, _)| *begin <= at).map_or(0, |(_, run)| *run)
    }

    fn is_registry(&self, path: &str) -> bool {
        let Some(pid) = path.strip_prefix(".claude/sessions/").and_then(|p| p.strip_suffix(".json")) else {
            return false;
        };
        self.provider == Provider::Claude && pid.bytes().all(|b| b.is_ascii_digit())
    }

    fn path(&self, world: &World, path: &str, run: usize) -> PathBuf {
        if self.is_registry(path) {
            return world.home().join(format!(".claude/sessions/{}.json", World::pid(run)));
        }
        world.home().join(self.rewrite(path))
    }

    fn apply(&self, world: &mut World, op: &Op) {
        let run = self.run_at(op.at);
        match &op.what {
            What::Spawn { run } => world.spawn(self.provider, World::pid(*run), World::start_ticks(*run)),
            What::Exit { run } => world.exit(World::pid(*run)),
            What::Append { path, data } => {
                let path = self.path(world, path, run);
                world.append(&path, &self.rewrite(data), Some(World::pid(run)));
            }
            What::Write { path, data } => {
                let mut data = data.clone();
                if self.is_registry(path) && !data.is_empty() {
                    let mut entry: serde_json::Value = serde_json::from_str(&data).unwrap();
                    entry["pid"] = World::pid(run).into();
                    entry["procStart"] = World::start_ticks(run).to_string().into();
                    data = entry.to_string();
                }
                let path = self.path(world, path, run);
                world.write(&path, &self.rewrite(&data));
            }
            What::Remove { path } => {
                let path = self.path(world, path, run);
                world.remove(&path);
            }
        }
    }
}
