//! G3: a restart without changes, until status is served; and a first start with a live session.

use std::{
    fs::OpenOptions,
    io::Write,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde::Deserialize;

use crate::{
    corpus::World,
    figures::{Better, Goal, Report, median, ms, rounded},
    lines::Claude,
    program::{Program, pause},
};

const RESTARTS: usize = 9;
const FIRST_STARTS: usize = 3;

pub(crate) fn measure(world: &mut World, report: &mut Report) {
    restarts(world, report);
    first_starts(world, report);
}

#[derive(Deserialize)]
struct Page {
    sessions: Vec<serde::de::IgnoredAny>,
    next_cursor: Option<String>,
}

fn restarts(world: &mut World, report: &mut Report) {
    let data = world.ingested();
    let place = world.place(&data);
    let program = Program::start(&place);
    program.settled();
    let sessions = program.metric("capture_sessions") as usize;
    program.stop();
    let (mut walks, mut found, mut first, mut all, mut ratios) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut cpu = Vec::new();
    for _ in 0..RESTARTS {
        let walk = median((0..5).map(|_| walk_time(&place.home.join(""))).collect());
        let program = Program::start(&place);
        found.push(ms(program.started_at.elapsed()));
        let (mut seen, mut cursor) = (0, String::new());
        loop {
            let (status, body) = program.get(&format!("/api/v1/sessions?active=all&limit=1000{cursor}"));
            assert_eq!(status, 200, "{body}");
            if seen == 0 {
                first.push(ms(program.started_at.elapsed()));
            }
            let page: Page = serde_json::from_str(&body).unwrap();
            seen += page.sessions.len();
            match page.next_cursor {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let time = ms(program.started_at.elapsed());
        assert_eq!(seen, sessions);
        cpu.push(program.cpu() * 1000.0);
        walks.push(walk);
        all.push(time);
        ratios.push(time / walk);
        program.stop();
    }
    let (walk, all) = (median(walks), median(all));
    println!(
        "    process start to endpoint.json {} ms, to the first answer (1,000 sessions) {} ms, to all {sessions} sessions {} ms; {} ms of CPU by then",
        rounded(median(found)),
        rounded(median(first)),
        rounded(all),
        rounded(median(cpu))
    );
    let (limit, figure) = (format!("walk {} ms", rounded(walk)), format!("{} ms", rounded(all)));
    for (what, value, unit, must, stretch) in [
        ("unchanged restart, in walks", median(ratios), " walks", Some(10.0), Some(4.0)),
        ("unchanged restart", all, " ms", Some(80.0), None),
    ] {
        report.goal(Goal {
            name: "G3",
            what,
            limit: limit.clone(),
            figure: figure.clone(),
            value,
            unit,
            must,
            stretch,
            better: Better::Less,
        });
    }
}

/// Time to list every directory and stat every file, milliseconds.
fn walk_time(home: &Path) -> f64 {
    fn walk(dir: &Path, files: &mut usize) {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                walk(&entry.path(), files);
            } else {
                *files += usize::from(entry.metadata().is_ok());
            }
        }
    }
    let start = Instant::now();
    let mut files = 0;
    walk(home, &mut files);
    std::hint::black_box(files);
    ms(start.elapsed())
}

#[derive(Deserialize)]
struct Session {
    status: Status,
}

#[derive(Deserialize)]
struct Status {
    state: String,
}

fn first_starts(world: &mut World, report: &mut Report) {
    let mut times = Vec::new();
    for n in 0..FIRST_STARTS {
        let mut session = Claude::new(0x30 + n as u64);
        let (name, path) = (session.session.clone(), world.transcript("first", &session.session));
        let stop = Arc::new(AtomicBool::new(false));
        let writer = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    let lines = session.prompt("go on") + &session.words("a step", false);
                    file.write_all(lines.as_bytes()).unwrap();
                    pause(Duration::from_millis(50));
                }
            }
        });
        pause(Duration::from_millis(300));
        let data = world.dir();
        let program = Program::start(&world.place(&data));
        loop {
            let (status, body) = program.get(&format!("/api/v1/sessions/{name}"));
            if status == 200 && serde_json::from_str::<Session>(&body).unwrap().status.state == "running" {
                break;
            }
            pause(Duration::from_millis(2));
        }
        times.push(ms(program.started_at.elapsed()));
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    }
    world.forget("first");
    report.goal(Goal {
        name: "G3",
        what: "first start, until a live session is answered",
        limit: "-".into(),
        figure: format!("median of {FIRST_STARTS}"),
        value: median(times),
        unit: " ms",
        must: Some(2000.0),
        stretch: None,
        better: Better::Less,
    });
}
