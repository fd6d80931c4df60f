//! Runs the real agents under capture: see `tests::live`. `tests/live/run` finds the agents and starts this program.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;
use events::Provider;
use tests::live::{
    Installed, Setting, agents, approvals,
    deny::{self, Rule},
    owned,
    scenarios::{self, Scenario},
    stage::{Outcome, play},
};

/// Plays scenarios with real agents and scripted models, and says whether capture was right.
///
/// The table, in ms: `seen` from a dialog's being on the screen to its being told; `p50` and `p90` from a
/// request, or its dialog, to the agent's acting on the decision (a person takes 1500 of them, the policy
/// is asked twenty times); `told` from a person's `capture approve` or `capture deny` to that. `flaps` are
/// states that were told and were none; `high`, `med` and `low` the longest time for which the status was wrong
/// with this confidence.
#[derive(Debug, Parser)]
#[command(name = "live")]
struct Options {
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
    /// Instead of the scenarios: whether a denied command stays denied when capture's hooks are installed,
    /// with this program of this agent (`claude=/opt/claude-2.0.60/bin/claude`). Can be given many times.
    #[arg(long, value_name = "AGENT=PROGRAM", conflicts_with_all = ["only", "list"])]
    denies: Vec<String>,
    /// Put the agents' versions before the lines.
    #[arg(long)]
    versions: bool,
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
        Err(error) => return failed(&format!("cannot determine the path of this program: {error}")),
    };
    // Under this name the program is capture itself.
    if own.file_name().is_some_and(|name| name == "capture") {
        return capture::main();
    }
    let asked = Options::parse();
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

/// Whether denied commands stay denied with each of these programs.
fn denies(programs: &[String], capture: &Path) -> Result<bool, String> {
    println!(
        "{:<7} {:<9} {:<18} {:<5} {:<5} {:<12} {:<8} {:<8} {:<8}  result",
        "agent", "version", "rule", "free", "rule", "installed", "forced", "warned", "repaired"
    );
    let mut all_well = true;
    for pair in programs {
        let (name, program) = pair.split_once('=').ok_or_else(|| format!("expected AGENT=PROGRAM, got `{pair}`"))?;
        let agent = agents().into_iter().find(|agent| agent.provider().as_str() == name);
        let agent = agent.ok_or_else(|| format!("expected claude, codex or gemini, got `{name}`"))?;
        let program = std::path::absolute(program).map_err(|error| format!("{program}: {error}"))?;
        let installed = Installed { agent, program };
        let mut holds_any = false;
        for rule in Rule::of(agent.provider()) {
            let found = match deny::examine(&installed, capture, *rule) {
                Ok(found) => found,
                Err(words) => {
                    all_well = false;
                    println!("{name:<7} {:<9} {:<18} FAILED: {words}", "-", rule.as_str());
                    continue;
                }
            };
            let in_force = found.rule == deny::Fate::Held;
            holds_any |= in_force;
            all_well &= found.wrong.is_empty();
            let events = found.events.map_or_else(|| "refused".to_owned(), |count| format!("{count} events"));
            let result = match found.wrong.first() {
                Some(wrong) => format!("FAILED: {wrong}"),
                None if !in_force => "this version has no such rule".to_owned(),
                None => "ok".to_owned(),
            };
            println!(
                "{name:<7} {:<9} {:<18} {:<5} {:<5} {:<12} {:<8} {:<8} {:<8}  {result}",
                found.version,
                rule.as_str(),
                found.free.as_str(),
                found.rule.as_str(),
                format!("{} {events}", found.installed.as_str()),
                found.forced.as_str(),
                if found.warned { "yes" } else { "no" },
                found.repaired.as_str(),
            );
        }
        if !holds_any {
            all_well = false;
            println!("{name:<7} FAILED: no rule holds with {}, so nothing is proved", installed.program.display());
        }
    }
    Ok(all_well)
}

/// The path of capture: the given program, or this one linked under the name `capture`.
fn capture_in(dir: &Path, asked: &Options, own: &Path) -> Result<PathBuf, String> {
    if let Some(bin) = &asked.bin {
        return std::path::absolute(bin).map_err(|error| format!("{}: {error}", bin.display()));
    }
    let to = dir.join("capture");
    // Not a symbolic link, because a program derives its name from the file.
    let linked = std::fs::hard_link(own, &to).or_else(|_| std::fs::copy(own, &to).map(drop));
    linked.map_err(|error| format!("{}: {error}", to.display()))?;
    Ok(to)
}

/// Returns whether all scenarios passed.
fn run(asked: &Options, own: &Path) -> Result<bool, String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    if !asked.denies.is_empty() {
        return denies(&asked.denies, &capture_in(dir.path(), asked, own)?);
    }
    let rows = agents().into_iter().flat_map(|agent| {
        let agent = agent.provider();
        let all = scenarios::ALL
            .into_iter()
            .chain(approvals::ALL)
            .chain(owned::ALL)
            .filter(move |s| s.agents.contains(&agent));
        let in_each = move |scenario: Scenario| {
            let settings = scenario.settings.iter().filter(move |of| !of.daemon || agent == Provider::Codex);
            settings.map(move |setting| Row { agent, scenario, setting: *setting })
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
    let capture = capture_in(dir.path(), asked, own)?;
    let programs = [&asked.claude, &asked.codex, &asked.gemini];
    let installed: Vec<Installed> = agents()
        .into_iter()
        .zip(programs)
        .filter_map(|(agent, program)| Some(Installed { agent, program: std::path::absolute(program.as_ref()?).ok()? }))
        .collect();
    println!(
        "{}{:<8} {:<17} {:<8} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}  result",
        if asked.versions { "version   " } else { "" },
        "agent",
        "scenario",
        "hooks",
        "seen",
        "flaps",
        "p50",
        "p90",
        "told",
        "high",
        "med",
        "low"
    );
    let mut all_well = true;
    for row in &rows {
        let Some(installed) = installed.iter().find(|installed| installed.agent.provider() == row.agent) else {
            continue;
        };
        if row.scenario.name == scenarios::QUESTION_SCENARIO
            && installed.version() < installed.agent.asks_questions_from()
        {
            eprintln!("{}: this version asks no questions", row.name());
            continue;
        }
        let script = (row.scenario.script)(installed.agent);
        let outcome = play(installed, &capture, &row.setting, script, &row.scenario.play);
        all_well &= outcome.wrong.is_empty();
        if asked.versions {
            let (major, minor, patch) = installed.version();
            print!("{:<10}", format!("{major}.{minor}.{patch}"));
        }
        tell(row, &outcome, asked.verbose);
    }
    Ok(all_well)
}

/// The smallest value that at least this percentage of the values does not exceed.
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
        "{:<8} {:<17} {:<8} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}  {result}",
        row.agent.as_str(),
        row.scenario.name,
        row.setting.name,
        ms(outcome.delay),
        outcome.flaps,
        ms(percentile(&outcome.times.asked, 50)),
        ms(percentile(&outcome.times.asked, 90)),
        ms(percentile(&outcome.times.told, 50)),
        outcome.wrong_ms.high,
        outcome.wrong_ms.medium,
        outcome.wrong_ms.low,
    );
    if verbose || !outcome.wrong.is_empty() {
        eprintln!("--- {}", row.name());
        outcome.wrong.iter().for_each(|words| eprintln!("wrong: {words}"));
        eprint!("{}", outcome.details);
    }
}
