//! G15 to G17: how cost grows with history, and how much is written to disk.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    corpus::{Dice, Files, World, pool},
    figures::{Better, Goal, Report, ms, rounded},
    limit::read_all,
    lines::Claude,
    program::{Program, pause},
    streaming::Writer,
};

/// Number of sessions that write concurrently, and the interval between lines of each.
const WRITERS: u64 = 10;
const LINE_EVERY: Duration = Duration::from_millis(588);
const MEASURED: Duration = Duration::from_secs(60);
/// Time until the memory of an import is released.
const SETTLE: Duration = Duration::from_secs(8);
const IDLE: Duration = Duration::from_secs(30);
/// Interval between looks at the log.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) fn measure(world: &mut World, report: &mut Report) {
    live(world, report);
    let corpora = std::env::var("CORPORA").unwrap_or_default();
    let corpora: Vec<PathBuf> = corpora.split(':').filter(|dir| !dir.is_empty()).map(PathBuf::from).collect();
    if corpora.is_empty() {
        println!("growth: CORPORA names no homes, the smallest first");
        return;
    }
    let costs: Vec<Import> = corpora.into_iter().map(|dir| import(World::of(Some(dir)))).collect();
    let most = |of: fn(&Import) -> f64| costs.iter().map(of).fold(0.0, f64::max);
    let first = costs.first().map_or(f64::NAN, |cost| cost.cpu_per_event);
    let sizes = format!("{} corpora", costs.len());
    for (name, what, value, unit, must, stretch) in [
        (
            "G15",
            "CPU per event, the most against the smallest corpus",
            most(|c| c.cpu_per_event) / first,
            " x",
            1.3,
            1.1,
        ),
        (
            "G16",
            "written by an import, against the database and the index it leaves",
            most(|c| c.written / c.store),
            " x",
            2.5,
            1.5,
        ),
        ("G17", "write-ahead log at its largest", most(|c| c.log) / 1e6, " MB", 256.0, 64.0),
    ] {
        report.goal(Goal {
            name,
            what,
            limit: "-".into(),
            figure: sizes.clone(),
            value,
            unit,
            must: Some(must),
            stretch: Some(stretch),
            better: Better::Less,
        });
    }
}

/// The cost of an import.
struct Import {
    /// Microseconds.
    cpu_per_event: f64,
    /// Bytes.
    written: f64,
    log: f64,
    /// Size of the database and the index.
    store: f64,
}

fn import(mut world: World) -> Import {
    let Files { paths, bytes } = world.files();
    let bytes = bytes as f64;
    // This warms the page cache for small and large homes, whatever was measured before.
    read_all(&paths);
    let data = world.dir();
    let (largest, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let watch = std::thread::spawn({
        let (largest, done, log) = (Arc::clone(&largest), Arc::clone(&done), data.join("capture.db-wal"));
        move || {
            while !done.load(Ordering::Relaxed) {
                largest.fetch_max(fs::metadata(&log).map_or(0, |log| log.len()), Ordering::Relaxed);
                pause(LOOK);
            }
        }
    });
    let program = Program::start(&world.place(&data));
    let settled = program.settled();
    let time = (settled.at - program.started_at).as_secs_f64();
    // Indexing is part of the cost.
    program.searchable();
    let (cpu, written, peak) = (program.cpu(), program.written(), program.memory("VmHWM"));
    pause(SETTLE);
    let after = program.memory("VmRSS");
    let sessions = program.metric("capture_sessions");
    program.stop();
    done.store(true, Ordering::Relaxed);
    watch.join().unwrap();
    let (database, index) = (of_file(&data, "capture.db"), of_directory(&data.join("index")));

    let program = Program::start(&world.place(&data));
    let ready = ms(program.started_at.elapsed());
    program.settled();
    pause(SETTLE);
    let (cpu_before, written_before, start) = (program.cpu(), program.written(), Instant::now());
    pause(IDLE);
    let idle = 100.0 * (program.cpu() - cpu_before) / start.elapsed().as_secs_f64();
    let per_minute = (program.written() - written_before) / start.elapsed().as_secs_f64() * 60.0 / 1e3;
    println!(
        "    {:.1} GB, {sessions} sessions, {} events: {time:.1} s, {cpu:.1} s of CPU, {} us an event; written {:.0} MB, database {:.0} MB, index {:.0} MB, log at most {:.0} MB; RSS peak {peak:.0}, after {after:.0} MB; again: ready in {ready:.0} ms, RSS {} MB, idle {} % of a core, {per_minute:.0} kB a minute; load {}",
        bytes / 1e9,
        settled.events,
        rounded(cpu * 1e6 / settled.events as f64),
        written / 1e6,
        database / 1e6,
        index / 1e6,
        largest.load(Ordering::Relaxed) as f64 / 1e6,
        rounded(program.memory("VmRSS")),
        rounded(idle),
        crate::figures::load()
    );
    program.stop();
    Import {
        cpu_per_event: cpu * 1e6 / settled.events as f64,
        written,
        log: largest.load(Ordering::Relaxed) as f64,
        store: database + index,
    }
}

fn of_directory(directory: &Path) -> f64 {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).filter(fs::Metadata::is_file).map(|file| file.len() as f64).sum()
}

fn of_file(data: &Path, name: &str) -> f64 {
    fs::metadata(data.join(name)).map_or(f64::NAN, |file| file.len() as f64)
}

/// Measures writes to disk while sessions write and no client is connected.
fn live(world: &mut World, report: &mut Report) {
    let data = world.ingested();
    let program = Program::start(&world.place(&data));
    program.settled();
    let (mut dice, project) = (Dice(16), "growth");
    let pool = pool(&mut dice);
    let mut writers: Vec<Writer> = (0..WRITERS)
        .map(|index| {
            let session = Claude::new(0x16_0000 + index);
            let path = world.transcript(project, &session.session);
            Writer::new(session, OpenOptions::new().append(true).create(true).open(path).unwrap())
        })
        .collect();
    let mut write_for = |time: Duration| {
        let (start, mut appended) = (Instant::now(), 0);
        for round in 0.. {
            for (index, writer) in writers.iter_mut().enumerate() {
                let at = start + LINE_EVERY * round + LINE_EVERY * index as u32 / WRITERS as u32;
                if at >= start + time {
                    return appended;
                }
                pause(at.saturating_duration_since(Instant::now()));
                let line = writer.line(index, &pool, &mut dice);
                writer.file.write_all(line.as_bytes()).unwrap();
                appended += line.len();
            }
        }
        appended
    };
    write_for(Duration::from_secs(5));
    pause(SETTLE);
    let before = program.written();
    let appended = write_for(MEASURED) as f64;
    pause(Duration::from_secs(3));
    let written = program.written() - before;
    program.stop();
    world.forget(project);
    report.goal(Goal {
        name: "G16",
        what: "written live, against bytes appended",
        limit: "-".into(),
        figure: format!("{WRITERS} sessions, {} MB appended", rounded(appended / 1e6)),
        value: written / appended,
        unit: " x",
        must: Some(20.0),
        stretch: Some(8.0),
        better: Better::Less,
    });
}
