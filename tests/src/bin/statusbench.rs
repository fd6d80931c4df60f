//! Measures how often capture's status is right: see `tests::statusbench`. Under the name of an agent this program
//! plays that agent, under the name `capture` it is capture.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use events::{Provider, Reason, State};
use tests::{
    recording::fixtures,
    statusbench::{
        Mode, agent,
        case::Case,
        play::{Programs, play_all},
        record::{Recorded, record, truth},
        report::{Outcome, json, table},
    },
};

/// Plays recordings of real agents through the real program, in real time, and says how often the
/// status it shows is right.
#[derive(Debug, Parser)]
#[command(name = "statusbench")]
struct Options {
    /// A folder of recordings, `<provider>/<scenario>`; those of the repository when none is given.
    #[arg(long, value_name = "DIR")]
    recordings: Vec<PathBuf>,
    /// What to play of them: files, hooks (with files), pty, all; or sources joined, as `files+pty+otlp`.
    #[arg(long, alias = "mode", value_delimiter = ',', default_value = "files,hooks,pty,all", value_parser = mode)]
    modes: Vec<Mode>,
    /// Only recordings whose `provider/scenario` begins with this.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// How many at once. Too many for the machine make it late, and that is counted as wrong.
    #[arg(long)]
    jobs: Option<usize>,
    /// How many of the worst to name.
    #[arg(long, default_value_t = 12)]
    worst: usize,
    /// All figures, as JSON, into this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Another capture than the one that was built with this program.
    #[arg(long, value_name = "PROGRAM")]
    bin: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Making>,
}

#[derive(Debug, Subcommand)]
enum Making {
    /// Runs an agent in this terminal and records it.
    Record {
        /// Which agent it is.
        #[arg(long, value_parser = word::<Provider>)]
        provider: Provider,
        /// The folder to make, `<...>/<provider>/<scenario>`.
        #[arg(long)]
        out: PathBuf,
        /// The agent and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Says what is true from now on, of a recording that goes on.
    Truth {
        /// Its folder.
        dir: PathBuf,
        /// The state.
        #[arg(value_parser = word::<State>)]
        state: State,
        /// Why: of approvals, questions, sign-in and quota.
        #[arg(value_parser = word::<Reason>)]
        reason: Option<Reason>,
    },
}

fn mode(text: &str) -> Result<Mode, String> {
    Mode::parse(text).ok_or_else(|| "one of files, hooks, pty, all, or files, hooks, pty, otlp joined by +".to_owned())
}

fn word<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return failed(&format!("cannot determine the path of this program: {error}")),
    };
    match own.file_name().and_then(|name| name.to_str()) {
        Some("capture") => return capture::main(),
        Some(name) if agents::agent::ALL.iter().any(|agent| agent.programs[0] == name) => {
            let Some(part) = tests::text_from_env(agent::PART) else { return ExitCode::FAILURE };
            return agent::main(Path::new(&part));
        }
        _ => {}
    }
    let asked = Options::parse();
    match asked.command {
        None => bench(&asked, &own).map_or_else(|words| failed(&words), |()| ExitCode::SUCCESS),
        Some(Making::Record { provider, ref out, ref command }) => {
            match record(&Recorded { provider, dir: out, command }) {
                Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
                Err(error) => failed(&format!("{}: {error}", out.display())),
            }
        }
        Some(Making::Truth { ref dir, state, reason }) => match truth(dir, state, reason) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&format!("{}: {error}", dir.display())),
        },
    }
}

fn failed(words: &str) -> ExitCode {
    eprintln!("{words}");
    ExitCode::FAILURE
}

fn bench(asked: &Options, own: &Path) -> Result<(), String> {
    let usual = [fixtures().join("recordings"), fixtures().join("terminal/recordings")];
    let dirs = if asked.recordings.is_empty() { &usual[..] } else { &asked.recordings };
    let dirs: Vec<&Path> = dirs.iter().map(PathBuf::as_path).collect();
    let cases = Case::load_all(&dirs)?;
    let wanted = |case: &&Case| asked.only.is_empty() || asked.only.iter().any(|only| case.name.starts_with(only));
    let todo: Vec<(&Case, Mode)> = cases
        .iter()
        .filter(wanted)
        .flat_map(|case| asked.modes.iter().filter(|mode| case.fits(**mode)).map(move |mode| (case, *mode)))
        .collect();
    if todo.is_empty() {
        return Err("no recording has what is asked for".to_owned());
    }
    let bin = asked.bin.as_deref().map(std::path::absolute).transpose().map_err(|error| error.to_string())?;
    let programs = Programs::new(own, bin.as_deref()).map_err(|error| error.to_string())?;
    let jobs = asked.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from));
    eprintln!("{} to play, {jobs} at once", todo.len());
    let told = |outcome: &Outcome| match &outcome.result {
        Ok(figures) => {
            eprintln!("{:6.2}% {:<5} {}", figures.score.agree(), outcome.mode.as_str(), outcome.recording);
        }
        Err(words) => eprintln!("failed  {:<5} {}: {words}", outcome.mode.as_str(), outcome.recording),
    };
    let mut outcomes = play_all(&todo, &programs, jobs, &told);
    outcomes.sort_by(|a, b| (&a.recording, a.mode).cmp(&(&b.recording, b.mode)));
    println!("{}", table(&outcomes, asked.worst));
    if let Some(file) = &asked.json {
        let text = serde_json::to_string_pretty(&json(&outcomes)).map_err(|error| error.to_string())?;
        std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}
