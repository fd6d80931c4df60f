//! The policy, carried out by the threads that do it in the service.

use std::{
    sync::atomic::AtomicI64,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use events::{RunId, Timestamp};
use ingest::{Gauges, Ingest, IngestLoop, IngestParts, NoObserver, Processes, WatchedRequest};
use projections::StatusRules;
use server::LiveView;

use super::*;
use crate::plan::tests::{DAY_MS, NOW, World};

/// No agent runs.
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

/// Ingest and eraser over a store, with a clock of ours.
struct Service {
    now: Arc<AtomicI64>,
    retention: Retention,
    reader: Reader,
    inputs: IngestHandle,
    threads: Vec<JoinHandle<()>>,
    _dir: tempfile::TempDir,
}

impl Service {
    fn start(world: World, policy: PrunePolicy) -> Self {
        let now = Arc::new(AtomicI64::new(NOW.as_millisecond()));
        let clock: Clock = Arc::new({
            let now = Arc::clone(&now);
            move || Timestamp::from_millisecond(now.load(Ordering::Relaxed))
        });
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
            onlooker: Box::new(NoObserver),
            rules: StatusRules::default(),
            ignore: Vec::new(),
            redacted_only: false,
            checkpoint: Box::new(|| ()),
        };
        let mut ingest = IngestLoop::new(Ingest::new(parts).unwrap(), incoming);
        let (data, index) = (dir.path().to_owned(), None);
        let parts = RetentionParts { data, reader: reader.clone(), inputs: inputs.clone(), index, clock, policy };
        let (retention, mut eraser) = Retention::new(parts);
        let threads = vec![thread::spawn(move || ingest.run()), thread::spawn(move || eraser.run())];
        Self { now, retention, reader, inputs, threads, _dir: dir }
    }

    /// Lets time pass, and has the eraser look at the clock.
    fn pass(&self, ms: i64) {
        self.now.fetch_add(ms, Ordering::Relaxed);
        self.retention.wake();
    }

    /// Waits until these sessions are left, and nothing is left to be erased of others.
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
            // Its first day begins when its thread does.
            self.pass(60_000);
            thread::park_timeout(Duration::from_millis(5));
        }
    }

    fn stop(self) {
        self.retention.stop();
        self.inputs.send(IngestInput::Stop).unwrap();
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

#[test]
fn what_the_configuration_says_is_removed_after_the_start_and_every_day() {
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
    // It gets as old, and is looked at the day after that.
    service.pass(89 * DAY_MS);
    service.leaves(&[]);
    service.stop();
}
