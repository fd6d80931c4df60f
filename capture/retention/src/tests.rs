//! The policy, applied by the same threads as in the service.

use std::{
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use events::RunId;
use ingest::{Clock, Gauges, Ingest, IngestLoop, IngestParts, NoObserver, Processes, WatchedRequest};
use live_view::LiveView;
use projections::StatusRules;

use super::*;
use crate::{
    clock::tests::Clocks,
    plan::tests::{DAY_MS, NOW, World},
};

/// A process table without agents.
struct NoProcesses;

impl Processes for NoProcesses {
    fn watch(&mut self, _pid: u32, _start_ticks: u64) {}
    fn wanted(&mut self, _fresh: bool) {}
    fn run_of(&mut self, _pid: u32) -> Option<RunId> {
        None
    }
    fn is_alive(&self, _pid: u32, _start_ticks: u64) -> bool {
        false
    }
    fn watch_request(&mut self, _session: SessionId, _request: Option<WatchedRequest>) {}
}

/// Ingest and eraser over a store, with a fake clock.
struct Service {
    clocks: Clocks,
    retention: Retention,
    reader: Reader,
    inputs: IngestHandle,
    threads: Vec<JoinHandle<()>>,
    dir: tempfile::TempDir,
}

impl Service {
    fn start(world: World, policy: PrunePolicy) -> Self {
        let clocks = Clocks::at(NOW);
        let read = clocks.read();
        let clock: Clock = Arc::new(move || read().wall);
        let World { dir, writer, .. } = world;
        let reader = writer.reader();
        let (inputs, incoming) = ingest::channel(8);
        let parts = IngestParts {
            writer,
            live_view: LiveView::new("e"),
            gauges: Arc::new(Gauges::default()),
            processes: Box::new(NoProcesses),
            clock: Arc::clone(&clock),
            wall: Arc::clone(&clock),
            uptime: Box::new(ingest::Uptime::default),
            onlooker: Box::new(NoObserver),
            rules: StatusRules::default(),
            ignore: Vec::new(),
            redacted_only: false,
            checkpoint: Box::new(|| ()),
        };
        let mut ingest = IngestLoop::new(Ingest::new(parts).unwrap(), incoming);
        let (data, index) = (dir.path().to_owned(), None);
        let parts = RetentionParts {
            data,
            reader: reader.clone(),
            inputs: inputs.clone(),
            index,
            clocks: clocks.read(),
            policy,
        };
        let (retention, mut eraser) = Retention::new(parts);
        let threads = vec![thread::spawn(move || ingest.run()), thread::spawn(move || eraser.run())];
        Self { clocks, retention, reader, inputs, threads, dir }
    }

    /// Lets time pass, and lets the eraser check the clock.
    fn pass(&self, ms: i64) {
        self.clocks.pass(ms);
        self.retention.wake();
    }

    /// Waits until exactly these sessions are left and all others are erased.
    #[track_caller]
    fn leaves(&self, names: &[&str]) {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let sessions = all_sessions(&self.reader).unwrap();
            let mut left: Vec<&str> = sessions.iter().filter_map(|s| s.provider_session_id.as_deref()).collect();
            left.sort_unstable();
            if left == names && self.reader.erasing().unwrap().is_empty() {
                return;
            }
            assert!(Instant::now() < until, "{left:?} instead of {names:?}");
            // The thread's first day begins when it starts.
            self.pass(60_000);
            thread::park_timeout(Duration::from_millis(5));
        }
    }

    fn stop(self) {
        self.retention.stop();
        // The thread may have stopped before the send returns.
        self.inputs.send(IngestInput::Stop).ok();
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

#[test]
fn configured_pruning_runs_after_the_start_and_every_day() {
    let mut world = World::new();
    world.add("ancient", 100, None, "/p");
    world.add("its helper", 99, Some("ancient"), "/p");
    world.add("new", 2, None, "/p");
    world.add("scratch", 30, None, "/p/scratch");
    let of = |days: i64, project: Option<&str>| PruneRule {
        older_than_ms: Some(days * DAY_MS),
        project: project.map(PathBuf::from),
        ..PruneRule::default()
    };
    let policy = PrunePolicy { all: of(90, None), projects: vec![of(14, Some("/p/scratch"))] };
    let ids = [world.sessions[0].id, world.sessions[2].id];
    let service = Service::start(world, policy);
    service.pass(15 * 60_000);
    service.leaves(&["new"]);
    assert_eq!(service.reader.events(ids[0], 0, 10, &[]).unwrap().len(), 0, "its events are gone");
    assert!(!service.reader.events(ids[1], 0, 10, &[]).unwrap().is_empty());
    // The session gets old enough, and is removed at the next daily check.
    service.pass(89 * DAY_MS);
    service.leaves(&[]);
    service.stop();
}

/// Runs a request to completion.
fn wait<T>(request: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(request)
}

fn names(service: &Service) -> Vec<String> {
    let sessions = all_sessions(&service.reader).unwrap();
    let mut names: Vec<String> = sessions.into_iter().filter_map(|session| session.provider_session_id).collect();
    names.sort_unstable();
    names
}

fn older_than(days: i64) -> PruneRequest {
    PruneRequest { older_than_s: Some((days * DAY_MS) as u64 / 1_000), ..PruneRequest::default() }
}

#[test]
fn nothing_is_pruned_after_a_clock_jump_until_the_clock_keeps_pace() {
    let mut world = World::new();
    world.add("today", 0, None, "/p");
    world.add("ancient", 800, None, "/p");
    let rule = PruneRule { older_than_ms: Some(180 * DAY_MS), ..PruneRule::default() };
    let service = Service::start(world, PrunePolicy { all: rule, projects: Vec::new() });
    service.pass(15 * 60_000);
    service.leaves(&["today"]);
    assert_eq!(service.retention.clock_doubt(), None);
    service.clocks.jump(365 * DAY_MS);
    for _ in 0..20 {
        service.pass(3_600_000);
        // After this request, the eraser has checked the clock.
        let report =
            wait(service.retention.prune(PruneRequest { project: Some("/none".into()), ..Default::default() }));
        assert!(report.unwrap().sessions.is_empty());
        assert_eq!(names(&service), ["today"]);
    }
    let doubt = service.retention.clock_doubt().unwrap();
    assert!(doubt.contains("--clock-is-right") && doubt.contains("1 year"), "{doubt}");
    assert_eq!(wait(service.retention.status()).unwrap().clock.as_deref(), Some(&*doubt));
    // After enough real time the clock is trusted.
    service.leaves(&[]);
    assert_eq!(service.retention.clock_doubt(), None);
    service.stop();
}

#[test]
fn pruning_by_age_after_a_clock_jump_needs_a_confirmed_clock() {
    let mut world = World::new();
    world.add("today", 0, None, "/p");
    world.add("ancient", 800, None, "/p");
    let service = Service::start(world, PrunePolicy::default());
    let prune = |request: PruneRequest| wait(service.retention.prune(request));
    let dry = |request: PruneRequest| PruneRequest { dry_run: true, ..request };
    let right = |request: PruneRequest| PruneRequest { clock_is_right: true, ..request };
    assert_eq!(prune(dry(older_than(30))).unwrap().sessions.len(), 1);
    assert_eq!(prune(older_than(900)).unwrap().sessions.len(), 0);
    service.clocks.jump(365 * DAY_MS);
    for request in [older_than(30), dry(older_than(30)), PruneRequest { project: Some("/p".into()), ..older_than(1) }] {
        let refused = prune(request).unwrap_err();
        assert!(matches!(refused, Refusal::Conflict(_)), "{refused:?}");
        let text = refused.to_string();
        assert!(
            ["no session is removed", "clock", "1 year", "--clock-is-right"].iter().all(|part| text.contains(part)),
            "{text}"
        );
    }
    assert_eq!(names(&service), ["ancient", "today"]);
    // A dry run does not confirm the clock.
    assert_eq!(prune(dry(right(older_than(30)))).unwrap().sessions.len(), 2);
    assert!(prune(older_than(30)).is_err());
    assert_eq!(prune(right(older_than(500))).unwrap().sessions.len(), 1);
    assert_eq!(names(&service), ["today"]);
    assert_eq!(prune(older_than(30)).unwrap().sessions.len(), 1, "the clock is right from now on");
    service.stop();
}

#[test]
fn audit_rows_survive_pruning_but_not_forgetting_a_session() {
    for prunes in [true, false] {
        let mut world = World::new();
        world.add("old", 40, None, "/p");
        world.add("helper", 40, Some("old"), "/p");
        world.add("new", 2, None, "/p");
        let ids: Vec<SessionId> = world.sessions.iter().map(|session| session.id).collect();
        for id in &ids {
            let approval = serde_json::json!({"session_id": id, "command": format!("deploy {id}"), "cwd": "/p"});
            let body = serde_json::json!({"at": 1, "what": "decided", "approval": approval});
            world.writer.audit(&body.to_string()).unwrap();
        }
        let data = world.dir.path().to_owned();
        let service = Service::start(world, PrunePolicy::default());
        let audit = || {
            let rows = service.reader.audit(0, 99).unwrap();
            let held = |id: &SessionId| rows.iter().any(|row| row.body.contains(&id.to_string()));
            ids.iter().map(held).collect::<Vec<_>>()
        };
        if prunes {
            assert_eq!(wait(service.retention.prune(older_than(30))).unwrap().sessions.len(), 2);
            service.leaves(&["new"]);
            assert_eq!(audit(), [true; 3], "decisions outlive a pruned session");
        }
        // By the session, or by the sub-agent alone.
        let plan = wait(service.retention.forget(ids[1], true)).unwrap();
        assert_eq!((plan.sessions.len(), plan.sessions[0].was_pruned), (1, prunes));
        let report = wait(service.retention.forget(ids[0], false)).unwrap();
        assert_eq!(report.sessions.len(), 2);
        service.leaves(&["new"]);
        assert_eq!(audit(), [false, false, true]);
        assert_eq!(service.reader.verify_audit(None).unwrap().broken, None);
        assert!(service.reader.pruned().unwrap().is_empty());
        assert!(wait(service.retention.forget(ids[0], false)).is_err(), "there is nothing left to forget");
        let reader = service.reader.clone();
        service.stop();
        drop(reader);
        for file in ["capture.db", "capture.db-wal"] {
            let bytes = std::fs::read(data.join(file)).unwrap_or_default();
            let id = ids[0].to_string();
            assert!(!bytes.windows(id.len()).any(|window| window == id.as_bytes()), "{file}");
        }
    }
}

/// The files of the data directory that contain this word.
fn files_with(service: &Service, word: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(service.dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let has = |path: &PathBuf| {
        std::fs::read(path).is_ok_and(|bytes| bytes.windows(word.len()).any(|window| window == word.as_bytes()))
    };
    files.filter(has).collect()
}

#[test]
fn a_forgotten_session_counts_as_being_erased_until_the_write_ahead_log_is_empty() {
    let mut world = World::new();
    world.add("plantedname", 100, None, "/p");
    let id = world.sessions[0].id;
    let service = Service::start(world, PrunePolicy::default());
    // A reader that uses the write-ahead log.
    let reading = rusqlite::Connection::open(service.dir.path().join("capture.db")).unwrap();
    reading.execute_batch("BEGIN; SELECT count(*) FROM sessions").unwrap();
    wait(service.retention.forget(id, false)).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let status = || wait(service.retention.status()).unwrap();
    let trouble = loop {
        let now = status();
        assert_eq!(now.erasing, 1, "{:?}", files_with(&service, "plantedname"));
        if let Some(trouble) = now.trouble {
            break trouble;
        }
        assert!(Instant::now() < until, "no trouble is reported");
        thread::park_timeout(Duration::from_millis(5));
    };
    assert!(trouble.contains("write-ahead log"), "{trouble}");
    drop(reading);
    loop {
        service.retention.wake();
        if status().erasing == 0 {
            break;
        }
        assert!(Instant::now() < until, "{:?}", status());
        thread::park_timeout(Duration::from_millis(5));
    }
    assert_eq!(files_with(&service, "plantedname"), Vec::<PathBuf>::new());
    service.stop();
}
