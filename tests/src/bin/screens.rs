//! Applies the screen rules to recorded terminals: measures them, or prints the screens and claims.
#![allow(clippy::print_stdout, reason = "a program for people at a terminal")]

use std::{
    collections::BTreeMap,
    error::Error,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use ::terminal::screen::{Observer, ScreenRules};
use clap::{Parser, Subcommand};
use events::{Provider, State, Timestamp};
use host_protocol::{claim::ScreenClaim, screen::Size};
use serde::Deserialize;
use tests::terminal::{self, DELIVERY_MS, Score, Terminal, without};

/// Plays recorded terminals through the model of the screen and the rules that read it.
#[derive(Debug, Parser)]
#[command(name = "screens")]
struct Arguments {
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say how well all recordings of a folder are read, the worst first, and what it costs.
    Measure {
        /// A folder of recordings.
        dir: PathBuf,
        /// Only recordings whose name contains this, with every claim beside the truth.
        #[arg(long, default_value = "", hide_default_value = true)]
        only: String,
        /// Signs to leave out: title, state, colour, sync.
        #[arg(long, value_delimiter = ',')]
        without: Vec<String>,
    },
    /// Say of each screen of a file (JSON lines: `agent`, `screen`, `title`, `expected_state`, `name`) what is read
    /// from it, and which differ from what is expected.
    Compare {
        /// The file.
        file: PathBuf,
        /// Only screens whose name contains this, each with the screen itself.
        #[arg(long, default_value = "", hide_default_value = true)]
        only: String,
        /// Also print those that agree.
        #[arg(long)]
        all: bool,
    },
    /// Write the screen of every claim in the form of `fixtures/terminal/screens`.
    Dump {
        /// A folder of recordings.
        dir: PathBuf,
        /// Where to write them.
        to: PathBuf,
    },
}

fn main() -> Result<(), Box<dyn Error>> {
    let rules = Arc::new(ScreenRules::load(None)?);
    match Arguments::parse().command {
        Action::Measure { dir, only, without } => measure(&dir, &only, &without, &rules),
        Action::Compare { file, only, all } => compare(&file, &only, all, &rules)?,
        Action::Dump { dir, to } => dump(&dir, &to, &rules)?,
    }
    Ok(())
}

fn measure(dir: &Path, only: &str, left_out: &[String], rules: &Arc<ScreenRules>) {
    let left_out: Vec<&str> = left_out.iter().map(String::as_str).collect();
    let mut sums: BTreeMap<String, Score> = BTreeMap::new();
    let mut each: Vec<(String, Score)> = Vec::new();
    for recording in Terminal::load_all(dir).iter().filter(|r| r.name.contains(only)) {
        let begun = Instant::now();
        let played = terminal::play_as(recording, rules, &|bytes| vec![without(bytes, &left_out)]);
        let took = begun.elapsed();
        let seconds = recording.truth.last().map_or(0.0, |t| t.at as f64 / 1000.0);
        let score = terminal::score(recording, &played, DELIVERY_MS);
        let share = took.as_secs_f64() / seconds * 100.0;
        println!(
            "{:45} {seconds:5.1} s took {:6.1} ms: {share:.2} % of a core",
            recording.name,
            took.as_secs_f64() * 1e3
        );
        sums.entry(recording.provider.to_string()).or_default().add(&score);
        if !only.is_empty() {
            for (at, run, told) in &played.told {
                println!("  {:8.3} run {run} {told:?}", *at as f64 / 1000.0);
            }
            for said in &recording.truth {
                println!("  {:8.3} TRUE {:?} {:?}", said.at as f64 / 1000.0, said.state, said.reason);
            }
        }
        for (at, words) in &played.unexplained {
            println!("  unexplained at {at}: {words}");
        }
        each.push((recording.name.clone(), score));
    }
    each.sort_by(|a, b| a.1.agree().total_cmp(&b.1.agree()));
    for (name, score) in &each {
        println!("{name:45} {score}");
    }
    for (provider, score) in &sums {
        println!("{provider:45} {score}");
    }
}

/// A screen and its expected state.
#[derive(Debug, Deserialize)]
struct ExpectedScreen {
    agent: Provider,
    name: String,
    screen: String,
    title: Option<String>,
    expected_state: String,
}

fn compare(file: &Path, only: &str, all: bool, rules: &Arc<ScreenRules>) -> Result<(), Box<dyn Error>> {
    let (mut total, mut agreed) = (0, 0);
    for (at, line) in std::fs::read_to_string(file)?.lines().enumerate() {
        let expected: ExpectedScreen = serde_json::from_str(line)?;
        if !expected.name.contains(only) {
            continue;
        }
        let claim = claim_of(&expected, rules);
        let state = claim.as_ref().map(|claim| claim.state);
        let agrees = match expected.expected_state.as_str() {
            "not_running" => state != Some(State::Running),
            "not_waiting" => state != Some(State::Waiting),
            "needs_you" => matches!(state, Some(State::Waiting | State::WaitingApproval)),
            expected => state.is_some_and(|state| state.as_str() == expected),
        };
        total += 1;
        agreed += usize::from(agrees);
        if agrees && !all {
            continue;
        }
        let read = claim.map_or_else(|| "nothing".to_owned(), |c| format!("{} {} ({})", c.state, c.strength, c.words));
        let mark = if agrees { "  " } else { "! " };
        println!("{mark}{at:3} {:6} {:12} read {read} :: {}", expected.agent, expected.expected_state, expected.name);
        if !only.is_empty() {
            println!("{}", expected.screen);
        }
    }
    println!("{agreed} of {total} agree");
    Ok(())
}

/// The claim about a screen once it has been stable for a while.
fn claim_of(expected: &ExpectedScreen, rules: &Arc<ScreenRules>) -> Option<ScreenClaim> {
    let lines: Vec<&str> = expected.screen.lines().collect();
    let columns = lines.iter().map(|line| line.chars().count() + 4).max().unwrap_or(0).max(120);
    let size = Size { rows: lines.len().max(40).try_into().ok()?, columns: columns.try_into().ok()? };
    let at = Timestamp::from_millisecond;
    let mut observer = Observer::new(size, expected.agent, Arc::clone(rules), at(0));
    let title = expected.title.as_ref().map_or_else(String::new, |title| format!("\x1b]0;{title}\x07"));
    observer.output(format!("{title}{}", lines.join("\r\n")).as_bytes(), at(0));
    while let Some(due) = observer.next_deadline().filter(|due| *due <= at(4000)) {
        observer.advance(due);
    }
    observer.picture().claim
}

fn dump(dir: &Path, to: &Path, rules: &Arc<ScreenRules>) -> io::Result<()> {
    for recording in &Terminal::load_all(dir) {
        let played = terminal::play(recording, rules);
        for (at, (picture, version)) in played.pictures.iter().enumerate() {
            let Some(claim) = &picture.claim else { continue };
            let rule = claim.words.split(['/', ':']).nth(1).unwrap_or_default();
            let path = to.join(format!("{}-{rule}-{at}.txt", recording.name));
            std::fs::create_dir_all(path.parent().unwrap_or(to))?;
            let dialog = claim.dialog.clone().unwrap_or_default();
            let mut text =
                format!("provider: {}\nversion: {}\n", recording.provider, version.clone().unwrap_or_default());
            text += &format!("size: {} {}\n", picture.size.rows, picture.size.columns);
            text += &format!("title: {}\n", picture.title.clone().unwrap_or_default());
            text += &format!("agent_state: {}\n", picture.agent_state.clone().unwrap_or_default());
            text += &format!("claim: {} {}\n", claim.state, claim.reason.map_or("", |r| r.as_str()));
            for (name, value) in [("question", &dialog.question), ("subject", &dialog.subject)] {
                if let Some(value) = value {
                    text += &format!("{name}: {}\n", value.replace('\n', " | "));
                }
            }
            for option in &dialog.options {
                let mark = if option.selected { '>' } else { ' ' };
                let means = option.answer.and_then(|answer| serde_json::to_value(answer).ok());
                let means = means.as_ref().and_then(|m| m.as_str()).map_or(String::new(), |m| format!(" = {m}"));
                text += &format!("option:{mark}{} {}{means}\n", option.key.as_deref().unwrap_or("-"), option.label);
            }
            text += "---\n";
            text += picture.lines.join("\n").trim_end();
            std::fs::write(path, text + "\n")?;
        }
    }
    Ok(())
}
