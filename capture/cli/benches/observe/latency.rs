//! G4 and G5: the time from an append to the new status at a WebSocket client, with all other files watched.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::Write,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use serde::Deserialize;

use crate::{
    corpus::{Dice, World},
    figures::{Better, Goal, Latencies, Report, rounded},
    limit::Composed,
    lines::Claude,
    program::{ChildDirs, Program, pause},
    socket::Socket,
};

const APPENDS: usize = 300;
const POLLED_APPENDS: usize = 100;
const WARM_UP: usize = 10;
const QUIET_FILES: u64 = 24;
const IDLE: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(15);

/// A session being written, and the client that watches it.
struct Line {
    session: Claude,
    file: File,
    socket: Socket,
    waiting: bool,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    data: Option<Data<'a>>,
}

#[derive(Deserialize)]
struct Data<'a> {
    id: Option<&'a str>,
    #[serde(borrow)]
    status: Option<Status<'a>>,
}

#[derive(Deserialize)]
struct Status<'a> {
    state: &'a str,
}

impl Line {
    /// Appends a line that changes the session's status; returns the time until the client received it.
    fn turn(&mut self) -> Duration {
        let line = match self.waiting {
            true => self.session.prompt("and now the next one, please"),
            false => self.session.words("that was all there is to say about it", true),
        };
        self.waiting = !self.waiting;
        let wanted = if self.waiting { "waiting" } else { "running" };
        let start = Instant::now();
        self.file.write_all(line.as_bytes()).unwrap();
        loop {
            let (at, text) = self.socket.next(start + PATIENCE).unwrap_or_else(|| panic!("the status never came"));
            if status(text).is_some_and(|(_, state)| state == wanted) {
                return at - start;
            }
        }
    }
}

/// The session and state in a status frame.
fn status(text: &[u8]) -> Option<(&str, &str)> {
    let frame: Frame<'_> = serde_json::from_slice(text).ok().filter(|frame: &Frame<'_>| frame.kind == "status")?;
    let data = frame.data?;
    Some((data.id?, data.status?.state))
}

/// Writes the beginning of a session: a completed turn.
fn begin(path: &Path, session: &mut Claude) -> File {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    let lines = session.prompt("begin") + &session.words("done", true);
    file.write_all(lines.as_bytes()).unwrap();
    file
}

/// Reads frames until none has arrived for a while.
fn drain(socket: &mut Socket) {
    while socket.next(Instant::now() + Duration::from_millis(500)).is_some() {}
}

fn follow(program: &Program, session: Claude, file: File) -> Line {
    let id = program.session(&session.session);
    let mut socket = program.subscribe(&[&id]);
    drain(&mut socket);
    Line { session, file, socket, waiting: true }
}

/// G4.
pub(crate) fn watched(world: &mut World, report: &mut Report) {
    let (data, apart) = (world.ingested(), world.dir());
    let mut session = Claude::new(0x40);
    let file = begin(&world.transcript("watched", &session.session), &mut session);
    let mut other = Claude::new(0x41);
    let bare_path = apart.join("limit.jsonl");
    let bare_file = begin(&bare_path, &mut other);
    let composed = Composed::follow(&bare_path);

    let program = Program::start(&world.place(&data));
    program.settled();
    let mut ours = follow(&program, session, file);
    let mut bare = Line { session: other, file: bare_file, socket: composed.subscribe(), waiting: true };
    let (mut dice, mut times) = (Dice(4), [Vec::new(), Vec::new()]);
    for n in 0..WARM_UP + APPENDS {
        // Each file is idle for 150 to 250 ms, and the two alternate.
        let rest = Duration::from_micros(75_000 + dice.below(50_000));
        for (line, times) in [&mut ours, &mut bare].into_iter().zip(&mut times) {
            let time = line.turn();
            if n >= WARM_UP {
                times.push(time);
            }
            pause(rest);
        }
    }
    program.stop();
    world.forget("watched");
    let [ours, limit] = times.map(Latencies::new);
    for (part, what, must, stretch) in
        [(0.99, "append to status, p99", Some(10.0), Some(5.0)), (0.5, "append to status, p50", None, None)]
    {
        report.goal(Goal {
            name: "G4",
            what,
            limit: limit.to_string(),
            figure: format!("{ours} ({} appends)", ours.count()),
            value: ours.at(part) / limit.at(part),
            unit: " x",
            must,
            stretch,
            better: Better::Less,
        });
    }
}

/// G5.
pub(crate) fn polled(world: &mut World, report: &mut Report) {
    let (data, config) = (world.ingested(), world.dir());
    fs::create_dir(config.join("capture")).unwrap();
    fs::write(config.join("capture/config.toml"), "[read]\nwatch = false\n").unwrap();
    let mut session = Claude::new(0x50);
    let file = begin(&world.transcript("polled", &session.session), &mut session);
    let mut quiet: Vec<_> = (0..QUIET_FILES)
        .map(|n| {
            let mut session = Claude::new(0x5000 + n);
            let file = begin(&world.transcript("polled", &session.session), &mut session);
            file.set_modified(SystemTime::now() - Duration::from_secs(7200)).unwrap();
            (session, file)
        })
        .collect();
    let program = Program::start(&ChildDirs { config: &config, ..world.place(&data) });
    program.settled();

    let mut line = follow(&program, session, file);
    let (mut dice, mut times) = (Dice(5), Vec::new());
    let (cpu, start) = (program.cpu_of_threads(), Instant::now());
    for _ in 0..POLLED_APPENDS {
        times.push(line.turn());
        pause(Duration::from_micros(150_000 + dice.below(450_000)));
    }
    let pace = format!("{} lines/s", rounded(POLLED_APPENDS as f64 / start.elapsed().as_secs_f64()));
    let hot_share = 100.0 * (program.cpu_of_threads() - cpu) / start.elapsed().as_secs_f64();
    let hot = Latencies::new(times);

    let ids: Vec<String> = quiet.iter().map(|(session, _)| program.session(&session.session)).collect();
    let mut socket = program.subscribe(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    drain(&mut socket);
    let (mut sent, mut times) = (HashMap::new(), Vec::new());
    let mut take = |until: Instant, sent: &mut HashMap<String, Instant>| {
        while let Some((at, text)) = socket.next(until) {
            if let Some(start) =
                status(text).filter(|(_, state)| *state == "running").and_then(|(id, _)| sent.remove(id))
            {
                times.push(at - start);
            }
        }
    };
    for ((session, file), id) in quiet.iter_mut().zip(ids) {
        let text = session.prompt("wake up");
        sent.insert(id, Instant::now());
        file.write_all(text.as_bytes()).unwrap();
        take(Instant::now() + Duration::from_micros(100_000 + dice.below(200_000)), &mut sent);
    }
    take(Instant::now() + Duration::from_secs(8), &mut sent);
    let quiet = Latencies::new(times);
    println!("    {} of {QUIET_FILES} quiet files noticed", quiet.count());

    let (cpu, start) = (program.cpu_of_threads(), Instant::now());
    pause(IDLE);
    let idle_share = 100.0 * (program.cpu_of_threads() - cpu) / start.elapsed().as_secs_f64();
    program.stop();
    world.forget("polled");
    let rate = format!("{} hot files, nothing written", QUIET_FILES + 1);
    for (what, limit, figure, value, unit, must, stretch) in [
        ("poll alone, a hot file, p99", "interval 500 ms", hot.to_string(), hot.at(0.99), " ms", 510.0, None),
        ("poll alone, quiet files, worst", "interval 4,500 ms", quiet.to_string(), quiet.at(1.0), " ms", 5000.0, None),
        ("poll alone, CPU", "-", rate, idle_share, " %", 1.0, Some(0.3)),
        ("poll alone, CPU while one session is written", "-", pace, hot_share, " %", 1.0, Some(0.3)),
    ] {
        report.goal(Goal {
            name: "G5",
            what,
            limit: limit.into(),
            figure,
            value,
            unit,
            must: Some(must),
            stretch,
            better: Better::Less,
        });
    }
}
