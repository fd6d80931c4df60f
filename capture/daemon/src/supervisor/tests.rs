use std::sync::{atomic::AtomicU32, mpsc};

use super::*;

fn ended(kind: &'static str, name: &str, why: &str) -> Option<Ended> {
    Some(Ended { kind, name: name.into(), why: why.into() })
}

/// The supervisor of a started service.
fn whole() -> Supervisor {
    let supervisor = Supervisor::default();
    supervisor.started();
    supervisor
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap()
}

#[test]
fn a_panicked_thread_is_reported_with_its_message() {
    let supervisor = whole();
    supervisor.spawn("ingest", || panic!("no such slot: {}", 7)).unwrap();
    runtime().block_on(supervisor.failed());
    assert_eq!(supervisor.failure(), ended("thread", "ingest", "no such slot: 7"));
    assert_eq!(supervisor.failure().unwrap().to_string(), "thread `ingest` ended: no such slot: 7");
    supervisor.join("ingest");
}

#[test]
fn the_thread_that_failed_first_is_reported_as_the_cause() {
    let supervisor = whole();
    let (sender, receiver) = mpsc::channel::<()>();
    // It ends when the other thread's sender is dropped, which is after the panic was recorded.
    supervisor.spawn("follower", move || receiver.recv().unwrap_or_default()).unwrap();
    supervisor.spawn("ingest", move || panic!("{sender:?} is gone")).unwrap();
    supervisor.join("ingest");
    supervisor.join("follower");
    assert_eq!(supervisor.failure().unwrap().name, "ingest");
}

#[test]
fn a_thread_that_returns_is_a_failure_unless_the_supervisor_stopped() {
    let supervisor = whole();
    supervisor.spawn("notices", || {}).unwrap();
    supervisor.join("notices");
    assert_eq!(supervisor.failure(), ended("thread", "notices", "it returned"));

    let supervisor = whole();
    let (stop, stopped) = mpsc::channel::<()>();
    supervisor.spawn_restarting("spool", move || stopped.recv().unwrap_or_default()).unwrap();
    supervisor.stop();
    drop(stop);
    supervisor.join("spool");
    assert_eq!(supervisor.failure(), None);
    // Joining an unknown thread returns at once.
    supervisor.join("spool");
}

#[test]
fn a_panicking_thread_is_restarted_a_limited_number_of_times() {
    let supervisor = whole();
    let starts = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&starts);
    let body = move || assert!(count.fetch_add(1, Ordering::Relaxed) > RESTARTS, "again");
    supervisor.spawn_restarting("checkpoint", body).unwrap();
    supervisor.join("checkpoint");
    assert_eq!(starts.load(Ordering::Relaxed), RESTARTS + 1);
    assert_eq!(supervisor.failure(), ended("thread", "checkpoint", "again"));
}

#[test]
fn tasks_are_watched_like_threads() {
    let runtime = runtime();
    let supervisor = whole();
    supervisor.spawn_task("commands", runtime.handle(), async { panic!("no") });
    runtime.block_on(supervisor.failed());
    assert_eq!(supervisor.failure(), ended("task", "commands", "no"));

    let supervisor = whole();
    let (done, wait) = tokio::sync::oneshot::channel();
    supervisor.spawn_task("prompts", runtime.handle(), async { wait.await.unwrap_or_default() });
    supervisor.stop();
    done.send(()).unwrap();
    drop(runtime);
    assert_eq!(supervisor.failure(), None);
}

#[test]
fn a_foreign_thread_is_watched_through_its_sentinel() {
    let supervisor = whole();
    drop(supervisor.sentinel());
    assert_eq!(supervisor.failure(), None, "the closure never left its maker");
    let sentinel = supervisor.sentinel();
    let thread = std::thread::Builder::new().name("files".into());
    thread.spawn(move || drop(sentinel)).unwrap().join().unwrap();
    assert_eq!(supervisor.failure(), ended("thread", "files", "it returned"));

    let supervisor = whole();
    let sentinel = supervisor.sentinel();
    supervisor.stop();
    std::thread::spawn(move || drop(sentinel)).join().unwrap();
    assert_eq!(supervisor.failure(), None);
}

#[test]
fn ended_threads_count_as_failures_once_startup_succeeded() {
    let supervisor = Supervisor::default();
    supervisor.spawn("ingest", || {}).unwrap();
    while !supervisor.threads()["ingest"].is_finished() {
        std::thread::yield_now();
    }
    assert_eq!(supervisor.failure(), None, "what it needs may be gone, because the start failed");
    supervisor.started();
    assert_eq!(supervisor.failure(), ended("thread", "ingest", RETURNED));

    let supervisor = Supervisor::default();
    supervisor.spawn("ingest", || panic!("at once")).unwrap();
    supervisor.join("ingest");
    supervisor.started();
    assert_eq!(supervisor.failure(), ended("thread", "ingest", "at once"));
}
