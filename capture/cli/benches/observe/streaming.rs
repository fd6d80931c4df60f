//! G14: many sessions working concurrently, each with a connected client.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    fs::{File, OpenOptions},
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    corpus::{Dice, World, cut, pool},
    figures::{Better, Goal, Latencies, Report, rounded},
    lines::Claude,
    program::{Program, pause},
    socket::Socket,
};

const WARM_UP: Duration = Duration::from_secs(5);
const MEASURED: Duration = Duration::from_secs(40);
/// Precedes the text of every line: `<session>-<line>-`.
const MARK: &str = "bench-";

pub(crate) fn measure(world: &mut World, report: &mut Report) {
    for sessions in [10, 50, 100] {
        stream(world, report, sessions);
    }
}

/// A working session.
pub(crate) struct Writer {
    pub(crate) session: Claude,
    pub(crate) file: File,
    lines: u64,
}

impl Writer {
    /// A writer whose session has this file as its transcript.
    pub(crate) const fn new(session: Claude, file: File) -> Self {
        Self { session, file, lines: 0 }
    }

    /// The next line. A turn is a prompt, three calls with text before and results after each, and an end.
    pub(crate) fn line(&mut self, index: usize, pool: &str, dice: &mut Dice) -> String {
        let mark = format!("{MARK}{index}-{}- ", self.lines);
        let length = 20 + dice.below(2200) as usize;
        let text = mark + cut(pool, dice, length);
        let step = self.lines % 11;
        let call = format!("toolu_{index}_{}", self.lines / 11 * 11 + step.saturating_sub(1) / 3);
        self.lines += 1;
        match step {
            0 => self.session.prompt(&text),
            10 => self.session.words(&text, true),
            n if n % 3 == 1 => self.session.words(&text, false),
            n if n % 3 == 2 => self.session.call(&call, text.get(..120).unwrap_or(&text)),
            _ => self.session.result(&call, text.get(..text.len() / 2).unwrap_or(&text)),
        }
    }
}

/// When each line was written; removed once it is seen.
type Sent = Mutex<HashMap<(usize, u64), Instant>>;

fn stream(world: &mut World, report: &mut Report, sessions: usize) {
    let data = world.ingested();
    let program = Program::start(&world.place(&data));
    program.settled();
    pause(Duration::from_secs(1));
    let before = program.memory("VmRSS");
    let mut dice = Dice(14);
    let pool = pool(&mut dice);
    let project = format!("streaming-{sessions}");
    let mut writers: Vec<Writer> = (0..sessions)
        .map(|index| {
            let session = Claude::new(0x14_0000 + (sessions as u64) * 1000 + index as u64);
            let file = OpenOptions::new()
                .append(true)
                .create(true)
                .open(world.transcript(&project, &session.session))
                .unwrap();
            let mut writer = Writer::new(session, file);
            let line = writer.line(index, &pool, &mut dice);
            writer.file.write_all(line.as_bytes()).unwrap();
            writer
        })
        .collect();
    let (sent, seen) = (Arc::new(Sent::default()), Arc::new(Mutex::new(Vec::new())));
    let (stop, lost) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let subscribers: Vec<_> = writers
        .iter()
        .map(|writer| {
            let socket = program.subscribe(&[&program.session(&writer.session.session)]);
            let (sent, seen, stop, lost) = (Arc::clone(&sent), Arc::clone(&seen), Arc::clone(&stop), Arc::clone(&lost));
            std::thread::Builder::new()
                .stack_size(128 << 10)
                .spawn(move || look_on(socket, &sent, &seen, &stop, &lost))
                .unwrap()
        })
        .collect();

    let mut due: BinaryHeap<_> = (0..sessions)
        .map(|index| Reverse((Instant::now() + Duration::from_micros(dice.below(1_000_000)), index)))
        .collect();
    let mut write_until = |end: Instant| {
        while let Some(Reverse((at, index))) = due.pop() {
            due.push(Reverse((at + Duration::from_micros(500_000 + dice.below(1_000_000)), index)));
            pause(at.min(end).saturating_duration_since(Instant::now()));
            if at >= end {
                break;
            }
            let writer = &mut writers[index];
            let name = (index, writer.lines);
            let line = writer.line(index, &pool, &mut dice);
            sent.lock().unwrap().insert(name, Instant::now());
            writer.file.write_all(line.as_bytes()).unwrap();
        }
    };
    write_until(Instant::now() + WARM_UP);
    let counters =
        || ["capture_ingest_commits_total", "capture_ingest_events_total"].map(|name| program.metric(name) as f64);
    seen.lock().unwrap().clear();
    let (cpu, counted, start) = (program.cpu(), counters(), Instant::now());
    write_until(start + MEASURED);
    let time = start.elapsed().as_secs_f64();
    let (share, now) = (100.0 * (program.cpu() - cpu) / time, counters());
    let [commits, events] = [0, 1].map(|n| (now[n] - counted[n]) / time);
    pause(Duration::from_secs(2));
    let grown = program.memory("VmRSS") - before;
    stop.store(true, Ordering::Relaxed);
    program.stop();
    subscribers.into_iter().for_each(|thread| thread.join().unwrap());
    world.forget(&project);

    let times = std::mem::take(&mut *seen.lock().unwrap());
    let late = times.iter().filter(|time| **time > Duration::from_millis(250)).count();
    let (unseen, lost) = (sent.lock().unwrap().len(), lost.load(Ordering::Relaxed));
    let times = Latencies::new(times);
    println!(
        "    {sessions} sessions: {} lines/s, {} events/s, {} % of a core; append to event {times}; {late} of {} late, {unseen} lines never seen, {lost} connections lost; RSS {} MB + {} MB",
        rounded(times.count() as f64 / time),
        rounded(events),
        rounded(share),
        times.count(),
        rounded(before),
        rounded(grown)
    );
    let count = sessions as f64;
    for (what, value, unit, must, stretch) in [
        ("CPU per session", share / count, " %", 0.3, 0.15),
        ("memory per session", grown / count, " MB", 1.0, 0.5),
        ("commits per second", commits, "", 10.0, 5.0),
        ("append to event, worst", times.at(1.0), " ms", 250.0, 125.0),
    ] {
        let what = format!("{sessions} sessions streaming, {what}");
        let figure = format!("{} lines/s", rounded(times.count() as f64 / time));
        report.goal(Goal {
            name: "G14",
            what: &what,
            limit: "-".into(),
            figure,
            value,
            unit,
            must: Some(must),
            stretch: Some(stretch),
            better: Better::Less,
        });
    }
}

/// Records when the event of each line arrives.
fn look_on(mut socket: Socket, sent: &Sent, seen: &Mutex<Vec<Duration>>, stop: &AtomicBool, lost: &AtomicUsize) {
    while !stop.load(Ordering::Relaxed) {
        let Some((at, text)) = socket.next(Instant::now() + Duration::from_secs(1)) else {
            if socket.closed() {
                lost.fetch_add(usize::from(!stop.load(Ordering::Relaxed)), Ordering::Relaxed);
                return;
            }
            continue;
        };
        if !text.starts_with(b"{\"type\":\"event\"") {
            continue;
        }
        let Some(name) = memchr::memmem::find(text, MARK.as_bytes()).and_then(|from| name(&text[from + MARK.len()..]))
        else {
            continue;
        };
        if let Some(start) = sent.lock().unwrap().remove(&name) {
            seen.lock().unwrap().push(at - start);
        }
    }
}

/// The session and line of a mark.
fn name(text: &[u8]) -> Option<(usize, u64)> {
    let mut numbers = text.split(|byte| *byte == b'-').map(|digits| std::str::from_utf8(digits).ok());
    Some((numbers.next()??.parse().ok()?, numbers.next()??.parse().ok()?))
}
