use std::{
    cell::RefCell,
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::symlink,
    sync::{Mutex, atomic::AtomicBool},
};

use events::{Cursor, Payload};

use super::*;
use crate::collect::files::FileOwner;
use crate::tail::{
    FileFormat,
    tests::{Fault, Faulty, Ingest, LINES, WHOLE, ago, note, note_of, now, plain, rows},
};

mod model;

/// `*.jsonl` are lines, `*.json` are whole, `*.db` have rows, `junk` is skipped.
struct Notes;

impl Recognize for Notes {
    fn file(&self, relative: &Path) -> Option<FileSpec> {
        match relative.extension()?.to_str()? {
            "jsonl" => Some(LINES),
            "json" => Some(WHOLE),
            "db" => Some(FileSpec { format: FileFormat::Rows(&rows::LOG), ..LINES }),
            _ => None,
        }
    }

    fn enter(&self, relative: &Path) -> bool {
        !relative.ends_with("junk")
    }
}

/// A collector whose rounds and clock the test advances.
struct Case {
    home: tempfile::TempDir,
    config: CollectorConfig,
    collector: Collector,
    ingest: RefCell<Ingest>,
    /// The committed cursors that the collector can read.
    committed: Arc<Mutex<HashMap<String, Cursor>>>,
    steady: Duration,
    /// Batches left until the sink stops.
    batches_left: usize,
    /// For the first event of each batch, whether it is history.
    history: Vec<(String, bool)>,
}

fn config() -> CollectorConfig {
    CollectorConfig { watches: 0, workers: 0, ..CollectorConfig::new(|| now(Duration::ZERO)) }
}

fn root(dir: &Path) -> Root {
    Root { provider: Provider::Unknown, dir: dir.to_owned(), recognize: Arc::new(Notes) }
}

fn case() -> Case {
    case_of(config())
}

fn case_of(config: CollectorConfig) -> Case {
    let home = tempfile::tempdir().unwrap();
    let committed: Arc<Mutex<HashMap<String, Cursor>>> = Arc::default();
    let collector = Collector::new(config.clone(), vec![root(&home.path().join("root"))], known(&committed));
    fs::create_dir(home.path().join("root")).unwrap();
    Case {
        home,
        config,
        collector,
        ingest: RefCell::default(),
        committed,
        steady: Duration::ZERO,
        batches_left: usize::MAX,
        history: Vec::new(),
    }
}

impl CommittedCursors for Mutex<HashMap<String, Cursor>> {
    fn cursor(&self, path: &str) -> io::Result<Option<Cursor>> {
        Ok(self.lock().unwrap().get(path).cloned())
    }
}

fn known(committed: &Arc<Mutex<HashMap<String, Cursor>>>) -> KnownFiles {
    let summaries = committed.lock().unwrap().iter().map(|(path, cursor)| (path.clone(), cursor.into())).collect();
    KnownFiles { summaries, committed: Arc::clone(committed) as Arc<dyn CommittedCursors> }
}

impl Case {
    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join("root").join(name)
    }

    fn append(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(content.as_bytes()).unwrap();
    }

    fn round(&mut self) -> Result<Duration, Stopped> {
        let (ingest, committed, left) = (&self.ingest, &self.committed, &mut self.batches_left);
        let history = &mut self.history;
        self.collector.round(now(self.steady), &mut |batch| {
            *left = left.checked_sub(1).ok_or(Stopped)?;
            if let Some(Payload::Annotation(first)) = batch.events.first().map(|event| &event.payload) {
                history.push((first.value.clone(), batch.history));
            }
            let mut ingest = ingest.borrow_mut();
            ingest.commit(batch.events, &batch.cursor, batch.vanished);
            let (path, mut committed) = (batch.cursor.path, committed.lock().unwrap());
            match ingest.cursors.get(&path) {
                Some(cursor) => committed.insert(path, cursor.clone()),
                None => committed.remove(&path),
            };
            Ok(())
        })
    }

    /// Runs rounds until no work is due now.
    fn settle(&mut self) -> Result<Duration, Stopped> {
        loop {
            let next = self.round()?;
            if next > self.steady {
                return Ok(next);
            }
        }
    }

    /// Runs rounds for this time as a thread would; returns how many.
    fn run(&mut self, time: Duration) -> usize {
        let end = self.steady + time;
        let mut rounds = 0;
        loop {
            let next = self.round().unwrap();
            rounds += 1;
            if next > end {
                self.steady = end;
                return rounds;
            }
            self.steady = self.steady.max(next);
        }
    }

    fn seen(&self) -> Vec<String> {
        let mut seen = self.ingest.borrow().order.clone();
        seen.sort();
        seen
    }

    fn restart(&mut self) {
        self.committed.lock().unwrap().clone_from(&self.ingest.borrow().cursors);
        self.collector = Collector::new(self.config.clone(), vec![root(&self.path(""))], known(&self.committed));
    }

    fn health(&self) -> CollectorHealth {
        self.collector.control().health()
    }
}

fn seconds(n: f64) -> Duration {
    Duration::from_secs_f64(n)
}

#[test]
fn tail_collect_matching_files_are_found_read_and_followed() {
    let mut case = case();
    case.append("a/b/one.jsonl", &note(1, "v1"));
    case.append("a/junk/no.jsonl", &note(2, "no"));
    case.append("a/other.txt", &note(3, "no"));
    case.append("live.json", &note(4, "v4"));
    case.settle().unwrap();
    assert_eq!(case.seen(), ["v1", "v4"]);
    assert!(case.collector.control().progress().is_done());
    // Hot files are checked every half second.
    case.append("a/b/one.jsonl", &note(5, "v5"));
    case.run(seconds(0.5));
    assert_eq!(case.seen(), ["v1", "v4", "v5"]);
    // New directories and files are found within five seconds.
    case.append("c/d/two.jsonl", &note(6, "v6"));
    case.run(seconds(5.0));
    assert_eq!(case.seen(), ["v1", "v4", "v5", "v6"]);
    let health = case.health();
    assert_eq!((health.files, health.directories, health.lag_bytes, health.errors_total), (3, 5, 0, 0));
    assert_eq!(health.watch.to_string(), "polling: watching is switched off");
}

#[test]
fn tail_collect_quiet_files_are_polled_about_every_five_seconds() {
    let mut case = case();
    case.append("one.jsonl", &note(1, "v1"));
    case.run(seconds(100.0));
    assert_eq!(case.health().active, 0, "it has cooled down");
    let rounds = case.run(seconds(90.0));
    assert!(rounds <= 21, "{rounds} rounds in 90 s without anything to do");
    case.append("one.jsonl", &note(2, "v2"));
    case.run(seconds(5.0));
    assert_eq!(case.seen(), ["v1", "v2"]);
}

#[test]
fn tail_collect_changes_without_hints_are_found_by_rare_polls() {
    let mut case = case_of(CollectorConfig { watches: 100, ..config() });
    // Accepts every directory and reports nothing.
    case.collector.watch = Watch::with(Box::new(notify::NullWatcher));
    case.append("a/one.jsonl", &note(1, "v1"));
    case.run(seconds(100.0));
    let health = case.health();
    assert_eq!((health.watch.to_string().as_str(), health.watched), ("watching", health.directories));
    case.append("a/one.jsonl", &note(2, "v2"));
    case.append("b/two.jsonl", &note(3, "v3"));
    case.run(seconds(20.0));
    assert!(!case.seen().contains(&"v3".into()), "a look at what is watched costs, and is rare");
    case.run(seconds(45.0));
    assert!(case.seen().contains(&"v3".into()), "directories every minute");
    case.run(seconds(300.0));
    assert_eq!(case.seen(), ["v1", "v2", "v3"], "files every five minutes");
    // In a directory without hints, files are checked as often as before.
    for directory in &mut case.collector.tree.directories {
        directory.local = !directory.path.ends_with("/b");
    }
    case.append("b/two.jsonl", &note(4, "v4"));
    case.run(seconds(5.0));
    assert_eq!(case.seen(), ["v1", "v2", "v3", "v4"]);
}

#[test]
fn tail_collect_check_path_reads_the_file_immediately() {
    let mut case = case();
    case.append("one.jsonl", &note(1, "v1"));
    case.settle().unwrap();
    let control = case.collector.control();
    case.append("one.jsonl", &note(2, "v2"));
    control.check_path(&case.path("one.jsonl"));
    case.append("new/deep/er/two.jsonl", &note(3, "v3"));
    control.check_path(&case.path("new/deep/er/two.jsonl"));
    control.check_path(Path::new("/etc/passwd"));
    control.check_path(&case.path("none.txt"));
    case.settle().unwrap();
    assert_eq!(case.seen(), ["v1", "v2", "v3"]);
}

#[test]
fn tail_collect_a_root_that_appears_is_found() {
    let mut case = case();
    fs::remove_dir(case.path("")).unwrap();
    case.settle().unwrap();
    case.append("p/one.jsonl", &note(1, "v1"));
    case.run(seconds(5.0));
    assert_eq!(case.seen(), ["v1"]);
}

#[test]
fn tail_collect_a_restart_without_changes_rereads_no_file() {
    let mut case = case();
    for n in 0..50 {
        case.append(&format!("p{}/f{n}.jsonl", n % 7), &note(n, "v"));
    }
    case.append("live.json", &note("live", "v"));
    case.run(seconds(5.0));
    let (batches, cursors) = (case.ingest.borrow().batches, case.ingest.borrow().cursors.len());
    assert_eq!(cursors, 51);
    case.restart();
    case.settle().unwrap();
    let progress = case.collector.control().progress();
    assert_eq!(progress.files_total.load(Ordering::Relaxed), 0);
    case.run(seconds(60.0));
    assert_eq!(case.ingest.borrow().batches, batches);
    // While capture was stopped, one file grew, one was removed, one was created.
    case.append("p1/f1.jsonl", &note("more", "v"));
    fs::remove_file(case.path("p2/f2.jsonl")).unwrap();
    case.append("p3/new.jsonl", &note("new", "v"));
    case.restart();
    case.settle().unwrap();
    let ingest = case.ingest.borrow();
    assert_eq!((ingest.events.len(), ingest.repeats), (54, 0));
    assert_eq!(ingest.vanished, [case.path("p2/f2.jsonl").display().to_string()]);
}

#[test]
fn tail_collect_a_restart_resumes_from_a_cursor_within_the_file() {
    let mut case =
        case_of(CollectorConfig { limits: ReadLimits { batch_bytes: 64, ..ReadLimits::default() }, ..config() });
    case.append("f.jsonl", &note("first", "v"));
    case.run(seconds(3.0));
    case.append("f.jsonl", &(0..50).map(|n| note(n, "v")).collect::<String>());
    case.batches_left = 3;
    case.steady += seconds(1.0);
    while case.round().is_ok() {}
    case.batches_left = usize::MAX;
    case.restart();
    case.settle().unwrap();
    let ingest = case.ingest.borrow();
    assert_eq!((ingest.events.len(), ingest.repeats), (51, 0));
}

#[test]
fn tail_collect_live_files_come_first_then_history_newest_first() {
    let mut case = case();
    for (name, age) in [("old", 9000), ("older", 90_000), ("fresh", 100), ("newest", 10)] {
        let name = format!("{name}.jsonl");
        case.append(&name, &note(&name, &name));
        let file = File::options().append(true).open(case.path(&name)).unwrap();
        file.set_modified(ago(Duration::from_secs(age))).unwrap();
    }
    case.append("live.json", &note("live", "live"));
    case.settle().unwrap();
    let expected = ["live", "newest.jsonl", "fresh.jsonl", "old.jsonl", "older.jsonl"];
    assert_eq!(case.ingest.borrow().order(), expected);
}

#[test]
fn tail_collect_copied_old_records_are_history_and_later_appends_live() {
    let limits = ReadLimits { batch_bytes: 300, ..ReadLimits::default() };
    let mut case = case_of(CollectorConfig { limits, ..config() });
    case.append("there.jsonl", &note_of("there", seconds(1.0)));
    case.settle().unwrap();
    case.steady += seconds(10.0);
    let (hours, moment) = (seconds(8_000.0), seconds(0.2));
    case.append("copied.jsonl", &(note_of("copied", hours) + &note_of("copied-end", seconds(7_900.0))));
    let aged = |n: u32| note_of(format!("large-{n}"), hours - seconds(10.0) * n);
    case.append("large.jsonl", &(0..20).map(aged).collect::<String>());
    let paste = note("pasted", &"x".repeat(400));
    case.append("pasted.jsonl", &(paste + &note_of("pasted-on", moment)));
    case.append("moved.jsonl", &note("moved", "moved"));
    File::options().append(true).open(case.path("moved.jsonl")).unwrap().set_modified(ago(hours)).unwrap();
    case.append("begun.jsonl", &note_of("begun", moment));
    case.append("skewed.jsonl", &(note_of("skewed", hours) + &note_of("skewed-2", hours)));
    case.append("untimed.jsonl", &note("untimed", "untimed"));
    case.append("resumed.jsonl", &(note_of("resumed", hours) + &note_of("resumed-now", moment)));
    case.run(seconds(5.0));
    for name in ["copied", "large", "begun"] {
        case.append(&format!("{name}.jsonl"), &note_of(format!("{name}-on"), moment));
    }
    case.run(seconds(5.0));
    let is_history = |of: &str| {
        let batches = case.history.iter().filter(|(first, _)| first.starts_with(of));
        batches.map(|(first, history)| (first.as_str(), *history)).collect::<Vec<_>>()
    };
    assert_eq!(is_history("copied"), [("copied", true), ("copied-on", false)]);
    assert_eq!(is_history("moved"), [("moved", true)]);
    assert_eq!(is_history("begun"), [("begun", false), ("begun-on", false)]);
    assert_eq!(is_history("untimed"), [("untimed", false)]);
    assert_eq!(is_history("skewed"), [("skewed", false)], "it may have started under a wrong clock");
    assert_eq!(is_history("resumed"), [("resumed", false)]);
    assert!(is_history("pasted").iter().all(|(_, history)| !history), "a long first prompt is live");
    let mut large = is_history("large");
    assert_eq!(large.pop(), Some(("large-on", false)));
    assert!(large.len() > 1 && large.iter().all(|(_, history)| *history), "{large:?}");
}

#[test]
fn tail_collect_live_files_do_not_wait_for_history() {
    let limits = ReadLimits { batch_bytes: 1000, ..ReadLimits::default() };
    let mut case = case_of(CollectorConfig { limits, ..config() });
    let history: String = (0..2000).map(|n| note(n, "history")).collect();
    case.append("old.jsonl", &history);
    case.append("live.jsonl", &note("l1", "live"));
    let day = Duration::from_secs(86_400);
    let file = File::options().append(true).open(case.path("old.jsonl")).unwrap();
    file.set_modified(ago(day)).unwrap();
    for _ in 0..5 {
        case.round().unwrap();
    }
    let control = case.collector.control();
    assert!(!control.progress().is_done());
    case.append("live.jsonl", &note("l2", "live"));
    case.steady += seconds(0.5);
    case.round().unwrap();
    case.round().unwrap();
    let live = case.ingest.borrow().order().iter().filter(|value| **value == "live").count();
    assert_eq!(live, 2);
    assert!(control.health().queued == 1 && control.health().lag_bytes > 0);
    case.settle().unwrap();
    assert_eq!(case.ingest.borrow().events.len(), 2002);
    let progress = control.progress();
    assert_eq!(progress.bytes_done.load(Ordering::Relaxed), progress.bytes_total.load(Ordering::Relaxed));
    assert_eq!(control.health().lag_bytes, 0);
}

#[test]
fn tail_collect_cursor_updates_without_events_are_batched() {
    let mut case = case();
    case.append("f.jsonl", &note(1, "v"));
    case.run(seconds(3.0));
    let batches = case.ingest.borrow().batches;
    for _ in 0..100 {
        case.append("f.jsonl", "\n");
        case.run(seconds(0.1));
    }
    let more = case.ingest.borrow().batches - batches;
    assert!((3..=6).contains(&more), "{more} batches for 100 lines in 10 s");
    case.run(seconds(100.0));
    assert_eq!(case.ingest.borrow().cursors.values().next().unwrap().offset, note(1, "v").len() as u64 + 100);
}

#[test]
fn tail_collect_a_removed_file_is_reported_once() {
    let mut case = case();
    case.append("one.jsonl", &note(1, "v1"));
    case.append("live.json", &note(2, "v2"));
    case.settle().unwrap();
    fs::remove_file(case.path("one.jsonl")).unwrap();
    fs::remove_file(case.path("live.json")).unwrap();
    case.run(seconds(30.0));
    assert_eq!(case.seen(), ["removed", "removed", "v1", "v2"]);
    assert_eq!(case.ingest.borrow().vanished.len(), 2);
    case.append("one.jsonl", &note(3, "v3"));
    case.append("live.json", &note(4, "v4"));
    case.run(seconds(5.0));
    assert_eq!(case.seen(), ["removed", "removed", "v1", "v2", "v3", "v4"]);
    let cursors = &case.ingest.borrow().cursors;
    assert!(cursors.values().all(|cursor| cursor.generation == 2), "{cursors:?}");
}

#[test]
fn tail_t14_hard_links_and_copies_get_separate_cursors() {
    let mut case = case();
    case.append("a.jsonl", &(note(1, "v1") + &plain("p") + &plain("p")));
    fs::hard_link(case.path("a.jsonl"), case.path("link.jsonl")).unwrap();
    fs::copy(case.path("a.jsonl"), case.path("copy.jsonl")).unwrap();
    case.settle().unwrap();
    case.append("copy.jsonl", &note(2, "fork"));
    case.append("a.jsonl", &note(3, "on"));
    case.run(seconds(10.0));
    assert_eq!(case.seen(), ["fork", "on", "p", "p", "v1"]);
    assert_eq!(case.ingest.borrow().cursors.len(), 3);
}

#[test]
fn tail_t15_symlinks_are_refused_and_reported_once() {
    let mut case = case();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("x.jsonl"), note(1, "secret")).unwrap();
    symlink(outside.path(), case.path("folder")).unwrap();
    symlink(outside.path().join("x.jsonl"), case.path("x.jsonl")).unwrap();
    case.append("sub/f.jsonl", &note(2, "ours"));
    case.run(seconds(20.0));
    assert_eq!(case.seen(), ["ours"]);
    let errors = case.health().errors;
    let paths: Vec<_> = errors.iter().map(|error| error.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(paths, ["folder", "x.jsonl"], "{errors:?}");
    // A directory that was read is replaced by a link, and back.
    case.append("sub/f.jsonl", &note(3, "more"));
    fs::rename(case.path("sub"), case.path("junk")).unwrap();
    fs::write(outside.path().join("f.jsonl"), note(4, "secret")).unwrap();
    symlink(outside.path(), case.path("sub")).unwrap();
    case.run(seconds(20.0));
    fs::remove_file(case.path("sub")).unwrap();
    fs::rename(case.path("junk"), case.path("sub")).unwrap();
    case.run(seconds(20.0));
    assert_eq!(case.seen(), ["more", "ours"]);
    fs::remove_file(case.path("x.jsonl")).unwrap();
    fs::remove_file(case.path("folder")).unwrap();
    case.run(seconds(20.0));
    assert_eq!(case.health().errors_total, 0, "{:?}", case.health().errors);
}

/// SQLite writes commits to the write-ahead log first: a hint about the log, and the poll, lead to the database.
#[test]
fn tail_collect_a_change_of_the_write_ahead_log_triggers_a_read_of_its_database() {
    let mut case = case();
    let database = rows::writer(&case.path("a.db"));
    rows::insert(&database, "a", "one");
    case.run(seconds(1.0));
    assert_eq!(case.seen(), ["one"]);
    assert_eq!((case.health().files, case.health().lag_bytes), (1, 0));
    rows::insert(&database, "b", "two");
    case.collector.shared.inbox.hint(crate::watch::Hint::Path(case.path("a.db-wal")));
    case.settle().unwrap();
    assert_eq!(case.seen(), ["one", "two"], "by the hint");
    rows::insert(&database, "c", "three");
    case.run(seconds(3.0));
    assert_eq!(case.seen().len(), 3, "by the poll");
    case.restart();
    case.run(seconds(1.0));
    assert_eq!((case.seen().len(), case.ingest.borrow().repeats), (3, 0));
}

#[test]
fn tail_t16_an_overflowing_hint_inbox_triggers_a_full_scan() {
    let mut case = case();
    for n in 0..20 {
        case.append(&format!("p{n}/f.jsonl"), &note(n, "v"));
    }
    case.run(seconds(100.0));
    for n in 0..20 {
        case.append(&format!("p{n}/f.jsonl"), &note(100 + n, "w"));
        case.append(&format!("q{n}/f.jsonl"), &note(200 + n, "x"));
    }
    // More paths than the inbox remembers.
    let control = case.collector.control();
    for n in 0..5000 {
        control.check_path(&case.path(&format!("nothing{n}")));
    }
    case.settle().unwrap();
    assert_eq!(case.ingest.borrow().events.len(), 60);
}

#[test]
fn tail_t18_reading_continues_after_permissions_are_restored() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        println!(
            "skipped: root may read everything (tail_t18_t21_an_io_error_at_any_call_loses_no_record injects EACCES)"
        );
        return;
    }
    let mut case = case();
    case.append("p/f.jsonl", &note(1, "v1"));
    case.run(seconds(5.0));
    let mode = |mode| fs::set_permissions(case.path("p"), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o000);
    let collector_root = case.path("p");
    case.run(seconds(20.0));
    assert!(case.health().errors_total > 0);
    fs::set_permissions(&collector_root, fs::Permissions::from_mode(0o755)).unwrap();
    case.append("p/f.jsonl", &note(2, "v2"));
    case.run(seconds(15.0));
    assert_eq!(case.seen(), ["v1", "v2"]);
    assert_eq!(case.health().errors_total, 0);
}

#[test]
fn tail_t18_files_that_fail_to_open_are_retried_with_backoff() {
    use rustix::io::Errno;
    for errno in [Errno::ACCESS, Errno::STALE, Errno::IO] {
        let mut case = case();
        case.append("p/f.jsonl", &note(1, "v1"));
        case.append("live.json", &note(2, "v2"));
        let down = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let (disk, _) = Faulty::new(Fault::Down { errno, down: Arc::clone(&down) });
        case.collector.reader = TailReader::on(case.config.limits, Box::new(disk));
        let rounds = case.run(seconds(60.0));
        assert!(rounds < 250, "{rounds} rounds in 60 s");
        let health = case.health();
        assert_eq!((health.errors_total, health.errors.len()), (2, 2));
        assert!(health.errors[0].message.contains("live.json at byte 0"), "{:?}", health.errors);
        down.store(false, Ordering::Relaxed);
        case.run(seconds(11.0));
        assert_eq!(case.seen(), ["v1", "v2"]);
        assert_eq!(case.health().errors_total, 0);
        // The same for a file that was read before and is closed.
        case.run(seconds(100.0));
        down.store(true, Ordering::Relaxed);
        case.append("p/f.jsonl", &note(3, "v3"));
        case.run(seconds(30.0));
        case.append("p/f.jsonl", &note(4, "v4"));
        down.store(false, Ordering::Relaxed);
        case.run(seconds(11.0));
        assert_eq!(case.seen(), ["v1", "v2", "v3", "v4"]);
    }
}

#[test]
fn tail_t19_thousands_of_removed_files_are_read_again_when_recreated() {
    let mut case = case();
    for n in 0..3000 {
        case.append(&format!("p{}/f{n}.jsonl", n / 20), &note(n, "v"));
    }
    let descriptors = || fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let before = descriptors();
    case.settle().unwrap();
    assert!(descriptors() <= before + 256, "{} files open", descriptors() - before);
    assert_eq!(case.ingest.borrow().events.len(), 3000);
    assert!(size_of::<files::FileEntry>() + size_of::<Cursor>() <= 400, "{}", size_of::<files::FileEntry>());
    fs::remove_dir_all(case.path("")).unwrap();
    case.run(seconds(5.0));
    assert_eq!(case.ingest.borrow().vanished.len(), 3000);
    for n in 0..3000 {
        case.append(&format!("p{}/f{n}.jsonl", n / 20), &(note(n, "v") + &note(10_000 + n, "w")));
    }
    case.run(seconds(10.0));
    assert_eq!(case.ingest.borrow().events.len(), 9000, "two notes each, and `removed`");
}

/// A backup is restored, an archive is unpacked: all files are new and hot, and are read in one round.
#[test]
fn tail_t19_thousands_of_new_files_are_read_with_bounded_descriptors() {
    let mut case = case();
    case.append("live/f.jsonl", &note(0, "v"));
    case.settle().unwrap();
    for n in 1..3000 {
        case.append(&format!("p{}/f{n}.jsonl", n / 20), &note(n, "v"));
    }
    let descriptors = || fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let (before, mut most, mut read) = (descriptors(), 0, 0);
    while read < 2999 {
        case.steady += seconds(1.0);
        assert!(case.steady < seconds(60.0), "{read} were read");
        case.collector
            .round(now(case.steady), &mut |batch| {
                most = most.max(descriptors());
                read += usize::from(!batch.events.is_empty());
                Ok(())
            })
            .unwrap();
    }
    let open = most - before;
    assert!(open < 2 * case.config.open_files + 16, "{open} files open");
}

#[test]
fn tail_collect_ignored_paths_are_not_read_until_unignored() {
    let mut case = case();
    let control = case.collector.control();
    control.ignore(vec![case.path("off")]);
    case.append("on/f.jsonl", &note(1, "on"));
    case.append("off/f.jsonl", &note(2, "off"));
    case.run(seconds(20.0));
    control.check_path(&case.path("off/f.jsonl"));
    case.run(seconds(1.0));
    assert_eq!(case.seen(), ["on"]);
    control.ignore(Vec::new());
    case.settle().unwrap();
    assert_eq!(case.seen(), ["off", "on"]);
}

#[test]
fn tail_collect_threads_read_history_then_follow_appends_and_stop() {
    let home = tempfile::tempdir().unwrap();
    for n in 0..200 {
        fs::write(home.path().join(format!("f{n}.jsonl")), (0..50).map(|k| note(n * 50 + k, "v")).collect::<String>())
            .unwrap();
    }
    fn clock() -> Now {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        Now { steady: START.get_or_init(std::time::Instant::now).elapsed(), ..now(Duration::ZERO) }
    }
    let collector = Collector::new(CollectorConfig::new(clock), vec![root(home.path())], Vec::new());
    let (send, batches) = crossbeam_channel::bounded::<Batch>(4);
    let running = collector.start(move |batch| send.send(batch).map_err(|_| Stopped)).unwrap();
    let mut ingest = Ingest::default();
    let mut take_until = |count: usize| {
        while ingest.events.len() < count {
            let batch = batches.recv_timeout(Duration::from_secs(60)).unwrap();
            ingest.commit(batch.events, &batch.cursor, batch.vanished);
        }
        ingest.repeats
    };
    assert_eq!(take_until(10_000), 0);
    for n in 0..20 {
        let path = home.path().join(format!("f{n}.jsonl"));
        OpenOptions::new().append(true).open(path).unwrap().write_all(note(100_000 + n, "w").as_bytes()).unwrap();
        assert_eq!(take_until(10_001 + n), 0);
    }
    let control = running.control();
    assert!(control.progress().is_done());
    // The sink may be blocked when the collector is stopped, so the receiver must keep draining.
    let receiver = std::thread::spawn(move || while batches.recv().is_ok() {});
    running.stop();
    receiver.join().unwrap();
}

#[test]
fn tail_collect_line_files_are_read_while_whole_files_wait() {
    let home = tempfile::tempdir().unwrap();
    for n in 0..200 {
        fs::write(home.path().join(format!("f{n}.jsonl")), note(n, "line")).unwrap();
    }
    for n in 0..3 {
        fs::write(home.path().join(format!("w{n}.json")), note(1_000 + n, "whole")).unwrap();
    }
    let config = CollectorConfig { watches: 0, ..CollectorConfig::new(|| now(Duration::ZERO)) };
    let collector = Collector::new(config, vec![root(home.path())], Vec::new());
    // The number of other batches read: a whole file takes as long as a part of them.
    let read = Arc::new((std::sync::Mutex::new(0), std::sync::Condvar::new()));
    let (send, done) = crossbeam_channel::unbounded();
    let mut wholes = 0;
    let running = collector.start(move |batch| {
        let (count, changed) = &*read;
        if batch.cursor.path.ends_with(".jsonl") {
            *count.lock().unwrap() += 1;
            changed.notify_all();
        } else if !batch.events.is_empty() {
            let wanted = 60 * wholes;
            wholes += 1;
            let limit = Duration::from_secs(20);
            let (count, _) = changed.wait_timeout_while(count.lock().unwrap(), limit, |count| *count < wanted).unwrap();
            send.send((*count >= wanted, wanted)).unwrap();
        }
        Ok(())
    });
    let running = running.unwrap();
    let waited: Vec<(bool, i32)> = done.iter().take(3).collect();
    assert_eq!(waited, [(true, 0), (true, 60), (true, 120)]);
    running.stop();
}

/// Number of whole cursors of closed files in memory.
fn whole_cursors(case: &mut Case) -> usize {
    let of = |case: &mut Case, id| {
        usize::from(case.collector.files.get_mut(id).is_some_and(|file| matches!(file.slot, FileOwner::Resting(_))))
    };
    (0..case.collector.files.room()).map(|id| of(case, id)).sum()
}

#[test]
fn tail_collect_cursors_of_closed_files_are_released_from_memory() {
    let mut case = case();
    case.append("one.jsonl", &note(1, "v1"));
    case.append("two.jsonl", &note(2, "v2"));
    case.run(seconds(100.0));
    assert_eq!(whole_cursors(&mut case), 0);
    // A read continues from the committed cursor, which is then released again.
    case.append("one.jsonl", &note(3, "v3"));
    case.run(seconds(5.0));
    assert_eq!(case.seen(), ["v1", "v2", "v3"]);
    case.run(seconds(100.0));
    assert_eq!(whole_cursors(&mut case), 0);
    // A cursor that differs from the committed one stays in memory.
    case.append("two.jsonl", &note(4, "v4"));
    case.run(seconds(5.0));
    let path = case.path("two.jsonl").to_str().unwrap().to_owned();
    case.committed.lock().unwrap().get_mut(&path).unwrap().issues += 1;
    case.run(seconds(100.0));
    assert_eq!(whole_cursors(&mut case), 1);
    case.restart();
    case.append("one.jsonl", &note(5, "v5"));
    case.settle().unwrap();
    assert_eq!(case.seen(), ["v1", "v2", "v3", "v4", "v5"]);
    assert_eq!(case.ingest.borrow().order.len(), 5, "nothing was read twice");
}

#[test]
fn tail_collect_an_active_file_does_not_keep_other_cursors_in_memory() {
    let mut case = case();
    case.append("busy.jsonl", &note(1, "v1"));
    case.run(seconds(50.0));
    let mut rounds = 0;
    while whole_cursors(&mut case) == 0 {
        case.run(seconds(0.5));
        rounds += 1;
        assert!(rounds < 100, "it is closed after a while");
    }
    // The file is active again before its cursor is released; the other file is closed after it.
    case.append("other.jsonl", &note(2, "v2"));
    for n in 3..100 {
        case.append("busy.jsonl", &note(n, &format!("v{n}")));
        case.collector.shared.inbox.hint(crate::watch::Hint::Path(case.path("busy.jsonl")));
        case.run(seconds(1.0));
    }
    assert_eq!(whole_cursors(&mut case), 0, "the one at work is open, the other released");
    assert_eq!(case.seen().len(), 99);
}

#[test]
fn tail_collect_a_file_without_its_committed_cursor_is_read_as_new() {
    let mut case = case();
    case.append("one.jsonl", &note(1, "v1"));
    case.run(seconds(100.0));
    case.committed.lock().unwrap().clear();
    case.append("one.jsonl", &note(2, "v2"));
    case.run(seconds(5.0));
    assert_eq!(case.seen(), ["v1", "v2"]);
}

#[test]
fn tail_collect_reading_waits_until_the_committed_cursor_is_readable() {
    struct Locked(AtomicBool, Mutex<HashMap<String, Cursor>>);
    impl CommittedCursors for Locked {
        fn cursor(&self, path: &str) -> io::Result<Option<Cursor>> {
            if self.0.load(Ordering::Relaxed) {
                Err(io::Error::other("the database is locked"))
            } else {
                self.1.cursor(path)
            }
        }
    }
    let mut case = case();
    case.append("one.jsonl", &note(1, "v1"));
    case.settle().unwrap();
    let cursors = case.ingest.borrow().cursors.clone();
    let locked = Arc::new(Locked(AtomicBool::new(true), Mutex::new(cursors)));
    let known = KnownFiles { committed: Arc::clone(&locked) as Arc<dyn CommittedCursors>, ..known(&case.committed) };
    case.collector = Collector::new(case.config.clone(), vec![root(&case.path(""))], known);
    case.append("one.jsonl", &note(2, "v2"));
    case.run(seconds(10.0));
    assert_eq!(case.seen(), ["v1"]);
    let errors = case.health().errors;
    assert!(errors.iter().any(|error| error.message.contains("the database is locked")), "{errors:?}");
    locked.0.store(false, Ordering::Relaxed);
    case.run(seconds(20.0));
    assert_eq!(case.seen(), ["v1", "v2"]);
    assert_eq!(case.health().errors_total, 0);
}
