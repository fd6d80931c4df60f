//! Completes ids and names with those that currently exist.

use api::{
    approvals::ApprovalsQuery,
    findings::FindingsQuery,
    list::Limit,
    routes::{ListApprovals, ListFindings, ListRuns},
    runs::{Run, RunState},
};
use clap::Command;
use clap_complete::{CompletionCandidate, engine::ArgValueCandidates};
use client::{Client, Connection};
use events::ApprovalState;
use home::{config::Config, endpoint::read_if_there, paths};
use printing::style;
use projections::Session;

use super::{config::value_text, context::active_sessions};
use crate::show::request::headline;
use printing::safe;

/// Maximum number of candidates per kind.
const MOST: usize = 100;

/// A variable that only the bash script sets.
const OF_BASH: &str = "_CLAP_COMPLETE_COMP_TYPE";

/// The kinds of things an argument can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Session,
    Run,
    Approval,
    Finding,
}

/// The arguments that accept an id: the command, the argument, and the kind of the id.
const ARGUMENTS: &[(&str, &str, Named)] = &[
    ("approvals", "id", Named::Approval),
    ("approvals", "session", Named::Session),
    ("approve", "id", Named::Approval),
    ("attach", "run", Named::Run),
    ("check", "session", Named::Session),
    ("deny", "id", Named::Approval),
    ("drift", "session", Named::Session),
    ("events", "session", Named::Session),
    ("explain", "session", Named::Session),
    ("findings", "id", Named::Finding),
    ("findings", "session", Named::Session),
    ("handoff", "session", Named::Session),
    ("jump", "session", Named::Session),
    ("label", "session", Named::Session),
    ("ps", "session", Named::Session),
    ("queue", "session", Named::Session),
    ("rename", "run", Named::Run),
    ("restart", "run", Named::Run),
    ("screen", "target", Named::Run),
    ("send", "target", Named::Run),
    ("show", "session", Named::Session),
    ("stop", "run", Named::Run),
    ("wait", "session", Named::Session),
    ("why", "session", Named::Session),
];

/// Adds completion candidates to the arguments of the command line.
pub(super) fn with_candidates(command: Command) -> Command {
    let with_keys = |command: Command| {
        command.mut_args(|argument| match argument.get_id().as_str() {
            "key" => argument.add(ArgValueCandidates::new(|| settings().unwrap_or_default())),
            _ => argument,
        })
    };
    command.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        if name == "config" {
            return command.mut_subcommands(with_keys);
        }
        // Changed one by one in place: `mut_arg` would change their order.
        command.mut_args(|argument| {
            let of = |(command, id, _): &&(&str, &str, Named)| *command == name && argument.get_id() == *id;
            let Some((_, _, named)) = ARGUMENTS.iter().find(of) else { return argument };
            argument.add(ArgValueCandidates::new(|| ask(|client| named.candidates(client)).unwrap_or_default()))
        })
    })
}

impl Named {
    fn candidates(self, client: &Client) -> anyhow::Result<Vec<CompletionCandidate>> {
        match self {
            Self::Session => {
                let runs = client.one::<ListRuns>("")?.runs;
                let mut all: Vec<_> = active(&runs).filter(|run| run.hello.name.is_some()).map(of_run).collect();
                all.extend(sessions(client)?);
                Ok(all)
            }
            Self::Run => Ok(active(&client.one::<ListRuns>("")?.runs).map(of_run).collect()),
            Self::Approval => {
                let state = Some(ApprovalState::Pending);
                let query = ApprovalsQuery { state, limit: Some(Limit::of(MOST)), ..ApprovalsQuery::default() };
                let page = client.get::<ListApprovals>("", &query)?;
                let pending = page.approvals.iter().map(|view| &view.approval);
                Ok(pending.map(|approval| described(&style::short(&approval.id), &headline(approval))).collect())
            }
            Self::Finding => {
                let query = FindingsQuery { limit: Some(Limit::of(MOST)), ..FindingsQuery::default() };
                let page = client.get::<ListFindings>("", &query)?;
                Ok(page.findings.iter().map(|finding| described(finding.id.as_ref(), &finding.what)).collect())
            }
        }
    }
}

/// The keys of the configuration with their values; with a file that is not valid, those of the defaults.
fn settings() -> anyhow::Result<Vec<CompletionCandidate>> {
    let file = paths::config_file()?;
    let text = read_if_there(&file)?.unwrap_or_default();
    let settings = Config::settings(&text, &file).or_else(|_| Config::settings("", &file))?;
    Ok(settings.iter().map(|setting| described(&setting.key, &value_text(&setting.value))).collect())
}

fn active(runs: &[Run]) -> impl Iterator<Item = &Run> {
    runs.iter().filter(|run| run.state != RunState::Exited).take(MOST)
}

fn of_run(run: &Run) -> CompletionCandidate {
    let name = run.hello.name.as_deref().map(safe).unwrap_or_else(|| style::short(&run.id));
    let is_bash = paths::variable(OF_BASH).is_some();
    described(&if is_bash { word_of_bash(&name) } else { name }, &run.hello.command.join(" "))
}

/// Quotes a name as one word of a command line. Other shells quote the candidates they insert; bash does not.
fn word_of_bash(name: &str) -> String {
    let mut word = String::with_capacity(name.len());
    for c in name.chars() {
        if !(c.is_alphanumeric() || "-_./:=@%+,".contains(c)) {
            word.push('\\');
        }
        word.push(c);
    }
    word
}

/// Queries a running server and never starts one. On any failure there are no candidates, because users do not read
/// errors while typing.
fn ask(list: impl FnOnce(&Client) -> anyhow::Result<Vec<CompletionCandidate>>) -> Option<Vec<CompletionCandidate>> {
    let data = paths::data_dir(None).ok()?;
    let client = Client::running(&data, Connection::Unix).ok()??;
    list(&client).ok()
}

fn sessions(client: &Client) -> anyhow::Result<Vec<CompletionCandidate>> {
    let candidate = |session: &Session| {
        let title = session.title.as_deref().unwrap_or_default();
        described(&style::short(&session.id), &format!("{} {}: {title}", session.provider, session.status.state))
    };
    Ok(active_sessions(client, MOST)?.iter().map(candidate).collect())
}

/// A candidate with its description. Both may contain text of an agent, which shells print without escaping.
fn described(value: &str, meaning: &str) -> CompletionCandidate {
    let meaning = safe(&projections::shorten::verbatim_line(meaning, 60));
    CompletionCandidate::new(safe(value)).help(Some(meaning.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_in_the_completion_table_exists() {
        let command = crate::commands::arguments::command_line();
        for (name, argument, _) in ARGUMENTS {
            let found = command.find_subcommand(name).unwrap_or_else(|| panic!("no command {name}"));
            assert!(found.get_arguments().any(|a| a.get_id() == *argument), "{name} has no argument {argument}");
        }
    }

    #[test]
    fn completed_names_are_escaped_for_bash() {
        for (name, word) in [
            ("fix-login", "fix-login"),
            ("über prüfung", r"über\ prüfung"),
            ("a;b 'c' $(d) `e` ~", r"a\;b\ \'c\'\ \$\(d\)\ \`e\`\ \~"),
        ] {
            assert_eq!(word_of_bash(name), word);
            assert_eq!(
                shlex::split(&format!("capture show {}", word_of_bash(name))).unwrap(),
                ["capture", "show", name]
            );
        }
    }

    #[test]
    fn configuration_keys_are_completed() {
        let command = with_candidates(crate::commands::arguments::command_line());
        let config = command.find_subcommand("config").unwrap();
        for name in ["get", "set", "unset"] {
            let of_command = config.find_subcommand(name).unwrap();
            let key = of_command.get_arguments().find(|argument| argument.get_id() == "key").unwrap();
            assert!(key.get::<ArgValueCandidates>().is_some(), "{name}");
        }
    }
}
