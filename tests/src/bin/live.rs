//! The real agents under capture: see `tests::live`. `tests/live/run` finds them and runs this.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;
use events::Provider;
use tests::live::{
    Installed, Setting, agents, approvals, owned,
    scenarios::{self, Scenario},
    stage::{Outcome, play},
};

/// Plays scenarios with real agents and scripted models, and says whether capture was right.
///
/// The table, in ms: `seen` from a dialog's being on the screen to its being told; `p50` and `p90` from a
/// request, or its dialog, to the agent's acting on the decision (a person takes 1500 of them, the policy
/// is asked twenty times); `told` from a person's `capture approve` or `capture deny` to that. `flaps` are
/// states that were told and were none.
#[derive(Debug, Parser)]
#[command(name = "live")]
struct Asked {
    /// Claude Code's program.
    #[arg(long, value_name = "PROGRAM")]
    claude: Option<PathBuf>,
    /// Codex' program.
    #[arg(long, value_name = "PROGRAM")]
    codex: Option<PathBuf>,
    /// Gemini CLI's program.
    #[arg(long, value_name = "PROGRAM")]
    gemini: Option<PathBuf>,
    /// Only what begins with this: `claude`, `claude/approve`, `claude/approve/hooks`.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Print what there is and play nothing.
    #[arg(long)]
    list: bool,
    /// Another capture than the one that was built with this program.
    #[arg(long, value_name = "PROGRAM")]
    bin: Option<PathBuf>,
    /// Tell of each scenario what was true and what was said, not only of those that failed.
    #[arg(long, short)]
    verbose: bool,
}

/// One line of the table.
struct Row {
    agent: Provider,
    scenario: Scenario,
    setting: Setting,
}

impl Row {
    fn name(&self) -> String {
        format!("{}/{}/{}", self.agent, self.scenario.name, self.setting.name)
    }
}

fn main() -> ExitCode {
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return failed(&format!("cannot find the program itself: {error}")),
    };
    // Under this name it is capture, as it was built.
    if own.file_name().is_some_and(|name| name == "capture") {
        return capture::main();
    }
    let asked = Asked::parse();
    match run(&asked, &own) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(words) => failed(&words),
    }
}

fn failed(words: &str) -> ExitCode {
    eprintln!("{words}");
    ExitCode::FAILURE
}

/// Whether all went well.
fn run(asked: &Asked, own: &Path) -> Result<bool, String> {
    let rows = agents().into_iter().flat_map(|agent| {
        let agent = agent.provider();
        let all = scenarios::ALL
            .into_iter()
            .chain(approvals::ALL)
            .chain(owned::ALL)
            .filter(move |s| s.agents.contains(&agent));
        let in_each = move |scenario: Scenario| {
            scenario.settings.iter().map(move |setting| Row { agent, scenario, setting: *setting })
        };
        all.flat_map(in_each)
    });
    let wanted = |row: &Row| asked.only.is_empty() || asked.only.iter().any(|only| row.name().starts_with(only));
    let rows: Vec<Row> = rows.filter(wanted).collect();
    if rows.is_empty() {
        return Err("there is no such scenario; --list names them".to_owned());
    }
    if asked.list {
        rows.iter().for_each(|row| println!("{}", row.name()));
        return Ok(true);
    }
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let capture = match &asked.bin {
        Some(bin) => std::path::absolute(bin).map_err(|error| format!("{}: {error}", bin.display()))?,
        None => {
            let to = dir.path().join("capture");
            // No symbolic link: a program's own name is that of the file.
            let linked = std::fs::hard_link(own, &to).or_else(|_| std::fs::copy(own, &to).map(drop));
            linked.map_err(|error| format!("{}: {error}", to.display()))?;
            to
        }
    };
    let programs = [&asked.claude, &asked.codex, &asked.gemini];
    let installed: Vec<Installed> = agents()
        .into_iter()
        .zip(programs)
        .filter_map(|(agent, program)| Some(Installed { agent, program: std::path::absolute(program.as_ref()?).ok()? }))
        .collect();
    println!(
        "{:<8} {:<15} {:<7} {:>6} {:>6} {:>6} {:>6} {:>6}  result",
        "agent", "scenario", "hooks", "seen", "flaps", "p50", "p90", "told"
    );
    let mut all_well = true;
    for row in &rows {
        let Some(installed) = installed.iter().find(|installed| installed.agent.provider() == row.agent) else {
            continue;
        };
        let script = (row.scenario.script)(installed.agent);
        let outcome = play(installed, &capture, &row.setting, script, &row.scenario.play);
        all_well &= outcome.wrong.is_empty();
        tell(row, &outcome, asked.verbose);
    }
    Ok(all_well)
}

/// The smallest that so many of a hundred do not exceed.
fn percentile(times: &[i64], percent: usize) -> Option<i64> {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = (times.len() * percent).div_ceil(100);
    times.get(at.saturating_sub(1)).copied()
}

fn tell(row: &Row, outcome: &Outcome, verbose: bool) {
    let ms = |ms: Option<i64>| ms.map_or_else(|| "-".to_owned(), |ms| ms.to_string());
    let first = outcome.wrong.first().map(|words| words.lines().next().unwrap_or_default());
    let result = first.map_or_else(|| "ok".to_owned(), |words| format!("FAILED: {words}"));
    println!(
        "{:<8} {:<15} {:<7} {:>6} {:>6} {:>6} {:>6} {:>6}  {result}",
        row.agent.as_str(),
        row.scenario.name,
        row.setting.name,
        ms(outcome.delay),
        outcome.flaps,
        ms(percentile(&outcome.times.asked, 50)),
        ms(percentile(&outcome.times.asked, 90)),
        ms(percentile(&outcome.times.told, 50)),
    );
    if verbose || !outcome.wrong.is_empty() {
        eprintln!("--- {}", row.name());
        outcome.wrong.iter().for_each(|words| eprintln!("wrong: {words}"));
        eprint!("{}", outcome.details);
    }
}
