//! A13: the agent is interrupted at random times while it thinks, reads, edits and runs commands.

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::json;
use tests::{
    Random,
    models::{
        AnswerProgress, Api, Model,
        script::{Call, Part, Script, Step, say},
    },
    within,
};

use crate::{
    Bench, Outcome,
    place::{MAY_I, Place},
    report::{Row, at_share, ms},
};

/// The prompt, which also selects the lane of the script.
const WORK: &str = "work-on-it";
/// How long processes may remain after the interrupt.
const GONE: Duration = Duration::from_secs(3);
/// How long a start may take.
const LIMIT: Duration = Duration::from_secs(30);
/// The longest time from the first request to the interrupt, ms. The script's last command takes longer.
const LONGEST_MS: u64 = 600;

#[derive(Debug, Args)]
pub(crate) struct Abort {
    /// Interrupts.
    #[arg(long, default_value_t = 200)]
    n: usize,
    /// What the random moments follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Identifies the entry at the end of a turn.
const TASK: &[u8] = b"\"capture.task\"";

/// The outcome of an interrupt.
struct Interrupted {
    rest_ms: f64,
    /// From the interrupt until the program ended.
    end_ms: f64,
    /// Number of processes that were still running.
    left: usize,
    /// The outcome recorded in the session's file.
    outcome: String,
    /// Whether a request was sent or a tool started after the interrupt.
    goes_on: bool,
}

pub(crate) fn abort(bench: &Bench, asked: &Abort) -> Outcome<Vec<Row>> {
    let mut random = Random::new(asked.seed);
    let moments: Vec<Duration> = (0..asked.n).map(|_| Duration::from_micros(random.below(LONGEST_MS * 1000))).collect();
    // One at a time, because times are measured.
    let ended = moments.iter().map(|moment| interrupt(bench, *moment)).collect::<Outcome<Vec<_>>>()?;
    let times: Vec<f64> = ended.iter().map(|one| one.rest_ms).collect();
    let left: usize = ended.iter().map(|one| one.left).sum();
    let wrong = ended.iter().filter(|one| one.outcome != "aborted").count();
    let going = ended.iter().filter(|one| one.goes_on).count();
    let p99 = at_share(&times, 0.99);
    let ends: Vec<f64> = ended.iter().map(|one| one.end_ms).collect();
    let value = format!(
        "p50 {:.1} ms, p99 {p99:.1} ms, worst {:.1} ms; the program ended after p50 {:.0} ms, worst {:.0} ms; {left} \
         processes left, {wrong} of {} not told as aborted, {going} went on",
        at_share(&times, 0.5),
        at_share(&times, 1.0),
        at_share(&ends, 0.5),
        at_share(&ends, 1.0),
        asked.n
    );
    let row = Row::new("A13", format!("Ctrl-C to the end of the turn, {} moments", asked.n), value);
    let is_sound = left + wrong + going == 0;
    Ok(vec![row.must("p99 100 ms, none left", p99 <= 100.0 && is_sound).stretch("30 ms", p99 <= 30.0 && is_sound)])
}

fn interrupt(bench: &Bench, moment: Duration) -> Outcome<Interrupted> {
    // A unique duration for `sleep`, by which these processes are found.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mark = format!("9{:05}.{}", std::process::id() % 100_000, NEXT.fetch_add(1, Ordering::Relaxed) + 1);
    let bash = |command: String| Part::Call(Call::new("bash", json!({ "command": command })));
    let read = |n: usize| Part::Call(Call::new("read", json!({ "path": "lines.txt", "offset": n, "limit": 20 })));
    let slowly = |text: &str| Part::Slowly { text: text.to_owned(), pause: Duration::from_millis(5) };
    // A child in another session, one that ignores the signal, and one that keeps the pipe open.
    let stubborn = format!("trap '' TERM INT; setsid sleep {mark} & sleep {mark} & sleep {mark}");
    let edit = json!({ "path": "lines.txt", "edits": [{ "old": "line 7;", "new": "Line 7;" }] });
    let script = Script::default().lane(
        WORK,
        vec![
            Step::Answer(vec![
                Part::Think("Let me see.".to_owned()),
                slowly("one two three four five six "),
                read(1),
                read(30),
            ]),
            Step::Answer(vec![slowly("seven eight nine "), Part::Call(Call::new("edit", edit))]),
            Step::Answer(vec![bash("sleep 0.05; echo one".to_owned()), bash("echo two".to_owned())]),
            Step::Answer(vec![slowly("ten eleven "), bash(stubborn)]),
            say("never said"),
        ],
    );
    let model = Model::start(Api::Anthropic, script).map_err(|error| error.to_string())?;
    let place = Place::new(bench, Api::Anthropic, &model.url(), "", "")?;
    place.write("lines.txt", &(0..200).map(|n| format!("line {n};\n")).collect::<String>())?;
    let mut user = place.at_terminal(&format!("--mode accept-edits {WORK}"));
    // Questions are answered until the time of the interrupt.
    let mut from = None;
    let began = Instant::now();
    loop {
        if from.is_none() {
            from = model.when(WORK, 0, AnswerProgress::Asked).map(|_| Instant::now());
        }
        if from.is_some_and(|from| from.elapsed() >= moment) {
            break;
        }
        if began.elapsed() > LIMIT {
            return Err("the agent sent no request".to_owned());
        }
        user.answers_shown(&[(MAY_I, "y\n")], Duration::from_millis(1));
    }
    let asked = model.notes().len();
    let file = place.sessions().first().cloned().ok_or("no session was written")?;
    let interrupted = Instant::now();
    user.types([3]);
    // The agent is at rest once the end of the turn is written.
    let rest = loop {
        let text = fs::read(&file).map_err(|error| error.to_string())?;
        if text.windows(TASK.len()).any(|window| window == TASK) || interrupted.elapsed() > LIMIT {
            break interrupted.elapsed();
        }
        user.answers_shown(&[], Duration::from_micros(200));
    };
    let (shown, status) = user.end();
    let (rest_ms, end_ms) = (ms(rest), ms(interrupted.elapsed()));
    if status != 130 {
        return Err(format!("it ended with {status}: {}", String::from_utf8_lossy(&shown)));
    }
    let gone = within(GONE, || marked(&mark).is_empty().then_some(()));
    let left = if gone.is_some() { 0 } else { marked(&mark).len() };
    let entries = place.entries()?;
    let ended = entries.iter().rev().find(|entry| entry["customType"] == "capture.task");
    let outcome = ended.map(|entry| crate::peers::text(&entry["data"]["outcome"]).to_owned()).unwrap_or_default();
    // One request may already have been on its way.
    let goes_on = model.notes().iter().skip(asked).filter(|note| note.did == AnswerProgress::Asked).count() > 1;
    Ok(Interrupted { rest_ms, end_ms, left, outcome, goes_on })
}

/// Processes that sleep for this duration.
fn marked(mark: &str) -> Vec<String> {
    let words = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let commands = fs::read_dir("/proc").into_iter().flatten().flatten().map(words);
    let commands = commands.map(|words| String::from_utf8_lossy(&words).replace('\0', " "));
    commands.filter(|command| command.contains(mark) && command.starts_with("sleep")).collect()
}
