//! The cost of reading files, each figure beside its limit: `cargo bench -p tailer --bench tail`.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a measuring program, not a service"
)]

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime},
};

use events::{Annotation, Cursor, Identity, Provider, Timestamp, Topic};
use tailer::{
    collect::{Batch, Collector, CollectorConfig, Root, Stopped},
    decode::{Decoded, Decoder, Malformed, Record},
    tail::{FileFormat, FileSpec, Now, ReadLimits, Tail, TailReader, disk::RootedPath},
};

const FILES: usize = 2200;
const FILES_A_DIRECTORY: usize = 8;

/// Creates an event for each line, without parsing it.
struct Lines {
    session: Arc<str>,
    events: bool,
}

impl Decoder for Lines {
    fn record(&mut self, record: Record<'_>, out: &mut Decoded) -> Result<(), Malformed> {
        if self.events {
            let identity = Identity::of(Provider::Unknown, "line", &[record.bytes]);
            out.push(out.event(
                &record,
                &self.session,
                identity,
                Annotation { topic: Topic::Note, value: String::new() },
            ));
        }
        Ok(())
    }
    fn session(&self) -> Option<&Arc<str>> {
        Some(&self.session)
    }
}

fn recognize(relative: &Path) -> Option<FileSpec> {
    let make =
        |_: &Path, _: Option<&str>| -> Box<dyn Decoder> { Box::new(Lines { session: Arc::from("s"), events: true }) };
    let spec = FileSpec { format: FileFormat::Lines, make, live: false };
    relative.extension().is_some_and(|extension| extension == "jsonl").then_some(spec)
}

fn silent(_: &Path, _: Option<&str>) -> Box<dyn Decoder> {
    Box::new(Lines { session: Arc::from("s"), events: false })
}

fn clock() -> Now {
    static START: OnceLock<Instant> = OnceLock::new();
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as i64;
    Now { wall: Timestamp::from_millisecond(wall), steady: START.get_or_init(Instant::now).elapsed() }
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn rss_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

fn path(home: &Path, n: usize) -> PathBuf {
    home.join(format!("projects/-home-dev-project-{}/a1b2c3d4-0000-4000-8000-{n:012}.jsonl", n / FILES_A_DIRECTORY))
}

fn roots(home: &Path) -> Vec<Root> {
    vec![Root { provider: Provider::Unknown, dir: home.join("projects"), recognize: Arc::new(recognize) }]
}

fn fill(home: &Path, files: usize) {
    let old = SystemTime::now() - Duration::from_secs(86_400);
    for n in 0..files {
        let path = path(home, n);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("{{\"n\":{n}}}\n").repeat(20)).unwrap();
        File::options().append(true).open(&path).unwrap().set_modified(old).unwrap();
    }
}

/// Reads everything once and returns the cursors.
fn read_all(home: &Path, config: &CollectorConfig) -> Vec<Cursor> {
    let mut cursors = std::collections::HashMap::new();
    let mut collector = Collector::new(config.clone(), roots(home), Vec::new());
    let mut now = clock();
    loop {
        let next = collector.round(now, &mut |batch: Batch| {
            cursors.insert(batch.cursor.path.clone(), batch.cursor);
            Ok(())
        });
        if next.unwrap() > now.steady {
            return cursors.into_values().collect();
        }
        now = Now { steady: now.steady, ..clock() };
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn idle_and_walk(home: &Path, config: &CollectorConfig, cursors: &[Cursor], files: usize) {
    let by_hand = CollectorConfig { watches: 0, workers: 0, ..config.clone() };
    let mut nothing = |_: Batch| -> Result<(), Stopped> { Ok(()) };
    let paths: Vec<_> = cursors.iter().map(|cursor| cursor.path.clone()).collect();
    let stats = median(
        (0..15)
            .map(|_| {
                let start = Instant::now();
                paths.iter().for_each(|path| assert!(rustix::fs::lstat(path.as_str()).is_ok()));
                start.elapsed()
            })
            .collect(),
    );
    let walks = (0..9).map(|_| {
        let mut collector = Collector::new(by_hand.clone(), roots(home), cursors.to_vec());
        let start = Instant::now();
        collector.round(clock(), &mut nothing).unwrap();
        start.elapsed()
    });
    let walk = median(walks.collect());
    let mut collector = Collector::new(by_hand, roots(home), cursors.to_vec());
    let mut now = clock();
    let mut rounds = Vec::new();
    for n in 0..40 {
        let before = cpu();
        let next = collector.round(now, &mut nothing).unwrap();
        if n > 10 {
            rounds.push(cpu() - before);
        }
        let ahead = next.saturating_sub(clock().steady);
        let wall = clock().wall.plus_ms(ahead.as_millis() as i64);
        now = Now { steady: next.max(now.steady), wall };
    }
    let round = median(rounds);
    println!("files {files}: walk and unchanged restart {:.1} ms; limit, one stat each {:.2} ms", ms(walk), ms(stats));
    println!(
        "files {files}: idle round {:.2} ms = {:.3} % of a core; limit, one stat each {:.2} ms; RSS {:.1} MB",
        ms(round),
        100.0 * round.as_secs_f64() / config.quiet_poll.as_secs_f64(),
        ms(stats),
        rss_mb()
    );
}

fn latency(home: &Path, config: &CollectorConfig, cursors: &[Cursor], name: &str, appends: usize, pause: Duration) {
    let (send, batches) = crossbeam_channel::bounded::<(Instant, Batch)>(64);
    let collector = Collector::new(config.clone(), roots(home), cursors.to_vec());
    let running = collector.start(move |batch| send.send((Instant::now(), batch)).map_err(|_| Stopped)).unwrap();
    let settled = Instant::now();
    while running.control().health().watched < 200 && settled.elapsed() < Duration::from_millis(1500) {
        let _ = batches.recv_timeout(Duration::from_millis(20));
    }
    println!(
        "{name}: {}, {} directories watched",
        running.control().health().watch,
        running.control().health().watched
    );
    let mut times = Vec::new();
    let append = |n: usize| {
        let path = path(home, n);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        let start = Instant::now();
        file.write_all(b"{\"live\":1}\n").unwrap();
        (start, path.display().to_string())
    };
    let mut wait = |n: usize, kept: bool| {
        let (start, path) = append(n);
        loop {
            let (at, batch) = batches.recv_timeout(Duration::from_secs(20)).unwrap();
            if batch.cursor.path == path && !batch.events.is_empty() {
                if kept {
                    times.push(at - start);
                }
                return;
            }
        }
    };
    for n in 0..10 {
        wait(n * 17, false);
    }
    for n in 0..appends {
        // Out of phase with the polls.
        let wait_for = pause + pause * (n * 7 % 10) as u32;
        let _ = crossbeam_channel::never::<()>().recv_timeout(wait_for);
        wait((n % 10) * 17, true);
    }
    times.sort();
    let at = |part: f64| ms(times[((times.len() - 1) as f64 * part) as usize]);
    println!(
        "{name}: append to batch p50 {:.3} ms, p99 {:.3} ms, worst {:.3} ms ({appends} appends)",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    let start = (Instant::now(), cpu());
    let _ = crossbeam_channel::never::<()>().recv_timeout(Duration::from_secs(18));
    println!(
        "{name}: then idle with 10 hot files {:.3} % of a core",
        100.0 * (cpu() - start.1).as_secs_f64() / start.0.elapsed().as_secs_f64()
    );
    drop(batches);
    running.stop();
}

fn throughput(home: &Path) {
    let path = home.join("large.jsonl");
    let line = |length: usize| format!("{{\"text\":\"{}\"}}\n", "x".repeat(length));
    let mut file = File::create(&path).unwrap();
    let mut size = 0;
    for n in 0..100_000 {
        let text = line([300, 900, 2500, 12_000][n % 4]);
        size += text.len();
        file.write_all(text.as_bytes()).unwrap();
    }
    drop(file);
    let rate = |time: Duration| size as f64 / 1e6 / time.as_secs_f64();
    let mut buffer = vec![0; 256 * 1024];
    let plain = median(
        (0..7)
            .map(|_| {
                let mut file = File::open(&path).unwrap();
                let start = Instant::now();
                while file.read(&mut buffer).unwrap() > 0 {}
                start.elapsed()
            })
            .collect(),
    );
    let lines = median(
        (0..7)
            .map(|_| {
                let mut file = File::open(&path).unwrap();
                let start = Instant::now();
                let (mut found, mut at) = (0, 0);
                loop {
                    let n = file.read(&mut buffer[at..]).unwrap();
                    if n == 0 {
                        break;
                    }
                    let mut from = 0;
                    for end in memchr::memchr_iter(b'\n', &buffer[..at + n]) {
                        found += 1;
                        from = end + 1;
                    }
                    buffer.copy_within(from..at + n, 0);
                    at = at + n - from;
                }
                assert_eq!(found, 100_000);
                start.elapsed()
            })
            .collect(),
    );
    let mut reader = TailReader::new(ReadLimits::default());
    let spec = FileSpec { format: FileFormat::Lines, make: silent, live: false };
    let split = median(
        (0..7)
            .map(|_| {
                let mut tail =
                    Tail::new(RootedPath::new(home.to_str().unwrap(), "large.jsonl"), Provider::Unknown, spec, None);
                let start = Instant::now();
                while tail.read(&mut reader, clock()).unwrap().more {}
                assert_eq!(tail.cursor().offset, size as u64);
                start.elapsed()
            })
            .collect(),
    );
    println!(
        "read, split and fed to a decoder that does nothing {:.0} MB/s; limits, plain read() {:.0}, with lines {:.0} MB/s (warm, {} MB)",
        rate(split),
        rate(plain),
        rate(lines),
        size / 1_000_000
    );
}

fn main() {
    let home = tempfile::tempdir().unwrap();
    let config = CollectorConfig::new(clock);
    fill(home.path(), FILES);
    let cursors = read_all(home.path(), &CollectorConfig { watches: 0, workers: 0, ..config.clone() });
    assert_eq!(cursors.len(), FILES);
    idle_and_walk(home.path(), &config, &cursors, FILES);
    latency(home.path(), &config, &cursors, "notify", 300, Duration::from_millis(5));
    let poll = CollectorConfig { watches: 0, ..config.clone() };
    latency(home.path(), &poll, &cursors, "poll alone", 40, Duration::from_millis(50));
    throughput(home.path());
    let many = tempfile::tempdir().unwrap();
    fill(many.path(), 50_000);
    let by_hand = CollectorConfig { watches: 0, workers: 0, ..config.clone() };
    let before = rss_mb();
    let start = Instant::now();
    let cursors = read_all(many.path(), &by_hand);
    println!("files 50000: first start {:.0} ms, RSS grew {:.1} MB", ms(start.elapsed()), rss_mb() - before);
    idle_and_walk(many.path(), &config, &cursors, 50_000);
}
