//! A5: the agent is killed at every line it writes, at every request, and at random times, and then resumes its
//! session.
//!
//! The times are derived from visible effects: lines in the session's file, requests and answers at the model. A kill
//! follows within microseconds to milliseconds, before the next effect or after some further ones; random kills cover
//! the remaining times.

use std::{
    collections::BTreeSet,
    fs,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use clap::Args;
use rustix::process::Signal;
use serde_json::{Value, json};
use tests::{
    Random,
    models::{
        AnswerProgress, Api, Model,
        script::{Call, Part, Script, Step, say},
    },
    terminal_user::{processes, signal},
};

use crate::{
    Bench, Outcome,
    place::{MAY_I, Place},
    report::Row,
};

/// Number of answers in the script.
const ANSWERS: usize = 12;
/// How often a session is killed at random before it may end.
const KILLS: u64 = 4;
/// The prompt of each life of a session, followed by its number, and the prompt that finally resumes the session.
const WORK: &str = "work-on-it-";
const AGAIN: &str = "take-it-up";
/// How long to wait for the outcome of a kill.
const LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub(crate) struct Kill {
    /// At every line and every request.
    #[arg(long)]
    all: bool,
    /// Random kills.
    #[arg(long, default_value_t = 0, value_name = "N")]
    random: u64,
    /// What the random moments follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Kill {
    /// A few random kills.
    pub(crate) fn few() -> Self {
        Self { all: false, random: 24, seed: 1 }
    }
}

/// The time of a kill.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// Once the session's file has this many lines.
    Lines(usize),
    /// Once the model has received this many requests, before it answers the last.
    Asked(usize),
    /// Once the model has begun this answer, before it sends the rest.
    Began(usize),
    /// This time after the start.
    After(Duration),
    Never,
}

pub(crate) fn kill(bench: &Bench, asked: &Kill) -> Outcome<Vec<Row>> {
    let whole = Instant::now();
    let undisturbed = Life::begin(bench)?.live(Moment::Never)?;
    let (lines, took) = (undisturbed.entries()?.len(), whole.elapsed());
    undisturbed.is_sound(&mut Found::default())?;
    let mut rows = Vec::new();
    if asked.all || asked.random == 0 {
        let mut moments: Vec<Moment> = (1..=lines).map(Moment::Lines).collect();
        moments.extend((1..=ANSWERS).flat_map(|n| [Moment::Asked(n), Moment::Began(n)]));
        let outcomes = bench.each(bench.jobs, &moments, |moment| {
            let life = Life::begin(bench)?.live(*moment)?;
            life.taken_up().map_err(|problem| format!("{moment:?}: {problem}"))
        });
        rows.push(row(format!("{lines} lines, {} requests", ANSWERS * 2), moments.len() as u64, outcomes));
    }
    if asked.random > 0 {
        let mut random = Random::new(asked.seed);
        let longest = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let lives: Vec<Vec<Duration>> = (0..asked.random.div_ceil(KILLS))
            .map(|_| (0..KILLS).map(|_| Duration::from_micros(random.below(longest))).collect())
            .collect();
        let outcomes = bench.each(bench.jobs, &lives, |moments| {
            let mut life = Life::begin(bench)?;
            let mut found = Found::default();
            for moment in moments {
                life = life.live(Moment::After(*moment))?;
                found.kills += u64::from(life.was_killed);
            }
            let more = life.taken_up().map_err(|problem| format!("{moments:?}: {problem}"))?;
            Ok(Found { kills: found.kills, ..more })
        });
        rows.push(row("at random, four in a session".to_owned(), asked.random, outcomes));
    }
    Ok(rows)
}

/// The kills, errors and uncertain calls in the lives of sessions.
#[derive(Debug, Default, Clone, Copy)]
struct Found {
    kills: u64,
    twice: usize,
    unpaired: usize,
    torn: usize,
    refused: usize,
    lost: usize,
    /// Calls reported as possibly having taken effect.
    perhaps: usize,
}

fn row(what: String, planned: u64, outcomes: Vec<Outcome<Found>>) -> Row {
    let (mut sum, mut failed) = (Found::default(), 0);
    for outcome in outcomes {
        match outcome {
            Ok(found) => {
                sum.kills += found.kills;
                sum.twice += found.twice;
                sum.unpaired += found.unpaired;
                sum.torn += found.torn;
                sum.refused += found.refused;
                sum.lost += found.lost;
                sum.perhaps += found.perhaps;
            }
            Err(problem) => {
                eprintln!("{problem}");
                failed += 1;
            }
        }
    }
    let value = format!(
        "{} kills of {planned} moments: {failed} not taken up, {} refused, {} run twice, {} unpaired, {} files torn, \
         {} entries lost; {} calls told as perhaps done",
        sum.kills, sum.refused, sum.twice, sum.unpaired, sum.torn, sum.lost, sum.perhaps
    );
    let wrong = failed + sum.refused + sum.twice + sum.unpaired + sum.torn + sum.lost;
    let row = Row::new("A5", what, value).must("all 0", wrong == 0 && sum.kills > 0);
    if planned >= 3000 { row.stretch("3,000 random kills", wrong == 0) } else { row }
}

fn tool(name: &str, input: Value) -> Part {
    Part::Call(Call::new(name, input))
}

/// Answer `n` in the script of a life: it begins, and continues when the model is told. Its actions contain the number
/// of the life, so that none is requested twice.
fn answer(life: u64, n: usize) -> Step {
    let mut parts = vec![Part::Until(format!("begin {n}")), Part::Say(format!("Answer {n}. "))];
    parts.push(Part::Until(format!("end {n}")));
    match n {
        ANSWERS => parts.push(Part::Say("It is done.".to_owned())),
        _ if n % 3 == 1 => {
            parts.push(tool("read", json!({ "path": list(life) })));
            parts.push(tool("edit", json!({ "path": list(life), "edits": [{ "old": todo(n), "new": done(n) }] })));
        }
        _ if n % 3 == 2 => parts.push(tool("bash", json!({ "command": format!("echo {life}.{n} >> ran.txt") }))),
        _ => {
            parts.push(tool("write", json!({ "path": format!("whole-{life}.{n}.txt"), "content": whole(n) })));
            let command = format!("echo {life}.{n} >> ran.txt; sleep 0.01");
            parts.push(tool("bash", json!({ "command": command })));
        }
    }
    Step::Answer(parts)
}

fn list(life: u64) -> String {
    format!("list-{life}.txt")
}

fn todo(n: usize) -> String {
    format!("todo {n};\n")
}

fn done(n: usize) -> String {
    format!("done {n};\n")
}

fn whole(n: usize) -> String {
    format!("file {n}\n").repeat(2000)
}

/// A session and its model.
struct Life {
    place: Place,
    model: Model,
    /// Number of lives so far.
    lives: u64,
    was_killed: bool,
}

impl Life {
    fn begin(bench: &Bench) -> Outcome<Self> {
        let again = vec![Step::Answer(vec![tool("read", json!({ "path": list(0) }))]), say("Taken up.")];
        let script = (0..KILLS).fold(Script::default().lane(AGAIN, again), |script, life| {
            script.lane(&format!("{WORK}{life}"), (1..=ANSWERS).map(|n| answer(life, n)))
        });
        let model = Model::exact(Api::Anthropic, script).map_err(|error| error.to_string())?;
        let place = Place::new(bench, Api::Anthropic, &model.url(), "", "")?;
        for life in 0..KILLS {
            place.write(&list(life), &(1..=ANSWERS).map(todo).collect::<String>())?;
        }
        Ok(Self { place, model, lives: 0, was_killed: false })
    }

    fn entries(&self) -> Outcome<Vec<Value>> {
        self.place.entries()
    }

    /// Lets the agent work until it ends or is killed.
    fn live(mut self, moment: Moment) -> Outcome<Self> {
        let held = match moment {
            Moment::Asked(n) => Some(format!("begin {n}")),
            Moment::Began(n) => Some(format!("end {n}")),
            Moment::Lines(_) | Moment::After(_) | Moment::Never => None,
        };
        for n in 1..=ANSWERS {
            for word in [format!("begin {n}"), format!("end {n}")] {
                if held.as_ref() != Some(&word) {
                    self.model.tell(&word);
                }
            }
        }
        let more = if self.place.sessions().is_empty() { "" } else { "--continue " };
        let before = fs::read(self.place.sessions().first().cloned().unwrap_or_default()).unwrap_or_default();
        let began = Instant::now();
        let mut user = self.place.at_terminal(&format!("{more}--mode accept-edits {WORK}{}", self.lives));
        self.lives += 1;
        let ended = AtomicBool::new(false);
        let (shown, status) = std::thread::scope(|scope| {
            scope.spawn(|| self.kill_at(moment, began, &ended));
            let (shown, status) = user.answers(&[(MAY_I, "y\n")]);
            ended.store(true, Ordering::Relaxed);
            (String::from_utf8_lossy(&shown).into_owned(), status)
        });
        self.was_killed = status == 137;
        if !self.was_killed && status != 0 {
            return Err(format!("{moment:?}: ended with {status}: {shown}"));
        }
        let after = fs::read(self.place.sessions().first().cloned().unwrap_or_default()).unwrap_or_default();
        // A torn last line may be removed; complete lines stay.
        let complete = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if after.get(..complete) != Some(&before[..complete]) {
            return Err(format!("{moment:?}: what was written before is changed"));
        }
        Ok(self)
    }

    /// Kills the agent at that time, unless it has ended.
    fn kill_at(&self, moment: Moment, began: Instant, ended: &AtomicBool) {
        if matches!(moment, Moment::Never) {
            return;
        }
        let data = self.place.machine.data();
        let is_over = || ended.load(Ordering::Relaxed) || began.elapsed() > LIMIT;
        let pid = loop {
            let found = processes(&data).into_iter().find(|process| process.command.contains(WORK));
            match found {
                Some(process) => break process.pid,
                _ if is_over() => return,
                _ => std::thread::park_timeout(Duration::from_micros(200)),
            }
        };
        let asked = |n: usize, did| self.model.notes().iter().filter(|note| note.did == did).count() >= n;
        loop {
            let is_now = match moment {
                Moment::Lines(lines) => self.lines() >= lines,
                Moment::Asked(n) => asked(n, AnswerProgress::Asked),
                Moment::Began(n) => asked(n, AnswerProgress::Began),
                Moment::After(time) => began.elapsed() >= time,
                Moment::Never => false,
            };
            if is_now {
                signal(pid, Signal::KILL);
                return;
            }
            if is_over() {
                return;
            }
            std::thread::park_timeout(Duration::from_micros(100));
        }
    }

    fn lines(&self) -> usize {
        let file = self.place.sessions().first().cloned().unwrap_or_default();
        fs::read(file).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count()
    }

    /// Resumes the session and returns the errors found.
    fn taken_up(self) -> Outcome<Found> {
        let mut found = Found { kills: u64::from(self.was_killed), ..Found::default() };
        // Processes that were running when the agent was killed end with it.
        let more = if self.place.sessions().is_empty() { None } else { Some("--continue") };
        let words: Vec<&str> = more.into_iter().chain([AGAIN]).collect();
        let ran = self.place.run(&words)?.done()?;
        if ran.out != "Taken up.\n" {
            return Err(format!("it said {ran:?}"));
        }
        self.is_sound(&mut found)?;
        Ok(found)
    }

    /// Checks the session and its files for errors.
    fn is_sound(&self, found: &mut Found) -> Outcome<()> {
        found.refused += self.model.refusals().len();
        let entries = self.entries()?;
        let mut results = Vec::new();
        let mut calls = Vec::new();
        let mut started = Vec::new();
        let mut ids = BTreeSet::new();
        for entry in &entries {
            let message = &entry["message"];
            match message["role"].as_str() {
                Some("toolResult") => {
                    results.extend(message["toolCallId"].as_str().map(str::to_owned));
                    found.perhaps += usize::from(message.to_string().contains("may have taken effect"));
                }
                Some("assistant") => {
                    let blocks = message["content"].as_array().into_iter().flatten();
                    let of_calls = blocks.filter(|block| block["type"] == "toolCall");
                    calls.extend(of_calls.filter_map(|block| block["id"].as_str().map(str::to_owned)));
                }
                _ => {}
            }
            if entry["customType"] == "capture.started" {
                started.push(entry["data"]["call"].to_string());
            }
            // The parent entry exists: no written entry is lost.
            if let Some(parent) = entry["parentId"].as_str() {
                found.lost += usize::from(!ids.contains(parent));
            }
            ids.extend(entry["id"].as_str().map(str::to_owned));
        }
        found.unpaired += calls.iter().filter(|call| results.iter().filter(|id| id == call).count() != 1).count();
        found.twice += doubled(&started);
        let ran: Vec<String> = self.place.text("ran.txt").lines().map(str::to_owned).collect();
        found.twice += doubled(&ran);
        // Each edit is either done or not, in the order of the script.
        for life in 0..KILLS {
            let list = self.place.text(&list(life));
            let lines: Vec<&str> = list.lines().collect();
            let is_line = |(n, line): (usize, &&str)| *line == todo(n + 1).trim() || *line == done(n + 1).trim();
            found.torn += usize::from(lines.len() != ANSWERS || !lines.iter().enumerate().all(is_line));
            for n in (3..ANSWERS).step_by(3) {
                let text = self.place.text(&format!("whole-{life}.{n}.txt"));
                found.torn += usize::from(!text.is_empty() && text != whole(n));
            }
        }
        Ok(())
    }
}

/// How many entries are duplicates.
fn doubled(of: &[String]) -> usize {
    of.len() - of.iter().collect::<BTreeSet<_>>().len()
}
