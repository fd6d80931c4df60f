//! `capture policy`: the rules for what agents may do without asking.

mod edit;
mod show;

use std::{
    collections::BTreeMap,
    io::{BufRead, Read, Write},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use approver::{Decision, Explanation, PermissionRequest, Policy, Preset, RequestKind, Shell, TriedRule, Verdict};
use client::failure::Failed;
use events::Provider;
use policy_files::{OnDisk, Refused};
use serde::{Deserialize, Serialize};

use super::context::{Context, complain, print_line};
use printing::{display::show, safe_json};

/// Maximum length of a line of input, bytes; longer lines are malformed.
const MAX_LINE: u64 = 1024 * 1024;

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: PolicyCommand,
}

impl Arguments {
    /// Whether the output may be long and should go to a pager.
    pub(super) const fn is_paged(&self) -> bool {
        matches!(self.verb, PolicyCommand::Explain { .. } | PolicyCommand::Show)
    }
}

#[derive(Debug, clap::Subcommand)]
enum PolicyCommand {
    /// Show the path of the policy, its preset, and its rules in the order of evaluation.
    Show,
    /// List the presets, or set the preset of the policy: show the change, and save it after you confirm.
    Preset {
        /// The new preset of the policy. Without a name, list the presets.
        #[arg(value_parser = super::words::one_of_explained(Preset::ALL, Preset::as_str, Preset::about))]
        name: Option<Preset>,
        /// Save the policy without asking.
        #[arg(long, short, requires = "name")]
        yes: bool,
    },
    /// Edit a copy of the policy, check it, show the changes, and save it after you confirm.
    Edit {
        /// Save the policy without asking.
        #[arg(long, short)]
        yes: bool,
    },
    /// Check a policy file.
    Check {
        /// The file [default: your policy file]
        file: Option<PathBuf>,
    },
    /// Print the decision of the policy for a command line.
    Test(Test),
    /// Explain the decision of the policy for a command line, rule by rule.
    Explain {
        #[command(flatten)]
        selection: PolicySelection,
        /// The command line, as one quoted argument or as several arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

#[derive(Debug, clap::Args)]
struct Test {
    #[command(flatten)]
    selection: PolicySelection,
    /// Read requests from standard input, one JSON object per line: {"id": 1, "cmd": "ls"}, optionally with "cwd" and
    /// "agent".
    #[arg(long, conflicts_with = "command")]
    stdin: bool,
    /// The command line, as one quoted argument or as several arguments.
    #[arg(required_unless_present = "stdin", trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct PolicySelection {
    /// Use only this preset.
    #[arg(long, conflicts_with = "policy", value_parser = super::words::one_of(Preset::ALL, Preset::as_str))]
    preset: Option<Preset>,
    /// Use this policy file [default: your policy file]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Decide as if this agent had sent the request. If your policy names no preset, only capture's own agent
    /// (`capture`) runs commands that only read.
    #[arg(long, value_name = "AGENT", value_parser = super::words::one_of(Provider::ALL, Provider::as_str))]
    agent: Option<Provider>,
}

pub(super) use edit::append;

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.verb {
        PolicyCommand::Show => show::run(context),
        PolicyCommand::Preset { name: None, .. } => show::presets(context),
        PolicyCommand::Preset { name: Some(preset), yes } => show::choose(context, *preset, *yes),
        PolicyCommand::Edit { yes } => edit::run(context, *yes),
        PolicyCommand::Check { file } => check(context, file.as_deref()),
        PolicyCommand::Test(test) if test.stdin => lines(context, &test.selection),
        PolicyCommand::Test(test) => one(context, &test.selection, &test.command),
        PolicyCommand::Explain { selection, command } => explain(context, selection, command),
    }
}

fn check(context: &Context, file: Option<&Path>) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Checked<'a> {
        file: &'a Path,
        ok: bool,
        error: Option<String>,
    }
    let usual = context.policy_file()?;
    let path = file.unwrap_or(&usual);
    anyhow::ensure!(file.is_none() || path.exists(), Failed::NotFound(format!("{}: no such file", path.display())));
    let error = policy_files::load(path, None).err().map(|refused| refused.to_string());
    if context.json {
        context.print_json(&Checked { file: path, ok: error.is_none(), error: error.clone() })?;
    } else if error.is_none() {
        let missing = format!("does not exist: {}", policy_files::WITHOUT_FILE);
        let there = if path.exists() { "is valid" } else { missing.as_str() };
        print_line(&format!("{} {there}", show(&path.display().to_string()).text))?;
    }
    match error {
        Some(error) => Err(Failed::Refused(error).into()),
        None => Ok(()),
    }
}

/// The policy that applies, for any directory.
struct PolicyJudge {
    facts: OnDisk,
    rules: Rules,
}

enum Rules {
    /// The same policy for every directory.
    One(Policy),
    /// The user's file, and the additions of repositories.
    InForce(PathBuf),
}

impl PolicyJudge {
    fn new(context: &Context, selection: &PolicySelection) -> anyhow::Result<Self> {
        let rules = match (&selection.preset, &selection.policy) {
            (Some(preset), _) => Rules::One(Policy::preset(*preset)),
            (None, Some(file)) => {
                let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
                Rules::One(Policy::parse(&text, file)?)
            }
            (None, None) => Rules::InForce(context.policy_file()?),
        };
        Ok(Self { facts: home::paths::policy_facts(&context.data), rules })
    }

    /// Returns the policy's explanation, and whether the policy is in force in the directory.
    fn explain(&self, command: &str, cwd: &Path, agent: Provider) -> (Explanation, bool) {
        let workspace = policy_files::workspace_of(cwd);
        let is_own = agent == Provider::Capture;
        let request = PermissionRequest {
            agent,
            kind: RequestKind::Command,
            tool: None,
            command: Some(command.to_owned()),
            cwd: cwd.to_owned(),
            cwd_is_certain: true,
            workspace: workspace.clone(),
            paths: Vec::new(),
            url: None,
            labels: BTreeMap::new(),
            glob: None,
            takes_rewrite: true,
            shell: if is_own { Shell::Bash } else { Shell::Unknown },
        };
        match &self.rules {
            Rules::One(policy) => (policy.explain(&request, &self.facts), true),
            Rules::InForce(file) => {
                let found = policy_files::in_force(file, &workspace);
                let Some(refused) = &found.refused else {
                    let explanation = if is_own {
                        session_setup::permission::explain_command(&found.policy, &request, &self.facts)
                    } else {
                        found.policy.explain(&request, &self.facts)
                    };
                    return (explanation, true);
                };
                complain(&not_in_force(refused, &workspace));
                // Show the policy's result even if it does not count here; otherwise no rule could be tried out.
                let read = match refused {
                    Refused::InWorkspace(_) => policy_files::load(file, None).ok(),
                    Refused::Unreadable(..)
                    | Refused::NoFile(_)
                    | Refused::TooLarge(_)
                    | Refused::NotOurs(_)
                    | Refused::WritableByOthers(_)
                    | Refused::Broken(_) => None,
                };
                (read.unwrap_or(found.policy).explain(&request, &self.facts), false)
            }
        }
    }
}

/// Why the policy does not count in a workspace, and what happens instead.
fn not_in_force(refused: &Refused, workspace: &Path) -> String {
    if matches!(refused, Refused::InWorkspace(_)) {
        return format!(
            "note: you decide every request of agents that work in {}, because that directory contains the policy and \
             agents could edit it; in your projects, the policy is in force",
            workspace.display()
        );
    }
    format!("the policy is not in force, so every request is left to you: {refused}")
}

/// The command line from the arguments: one argument is the whole line, several are its words.
fn typed(words: &[String]) -> anyhow::Result<String> {
    match words {
        [line] => Ok(line.clone()),
        words => shlex::try_join(words.iter().map(String::as_str))
            .map_err(|error| Failed::Usage(format!("this is not a command line: {error}")).into()),
    }
}

fn one(context: &Context, selection: &PolicySelection, words: &[String]) -> anyhow::Result<()> {
    let judge = PolicyJudge::new(context, selection)?;
    let (account, in_force) = judge.explain(&typed(words)?, &here()?, selection.agent.unwrap_or(Provider::Unknown));
    if context.json {
        return context.print_json(&PolicyTestAnswer::new(None, account.decision, in_force));
    }
    print_line(&decision_text(&account.decision))
}

fn here() -> anyhow::Result<PathBuf> {
    std::env::current_dir().context("cannot determine the current directory")
}

fn decision_text(decision: &Decision) -> String {
    let mut text = format!("{}: {} ({})", decision.verdict, show(&decision.reason).text, show(&decision.rule).text);
    if let Some(rewrite) = &decision.rewrite {
        text.push_str(&format!("\nas: {}", show(rewrite).text));
    }
    text
}

/// A request on standard input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyTestRequest {
    id: serde_json::Value,
    cmd: String,
    cwd: Option<PathBuf>,
    agent: Option<Provider>,
}

/// The policy's decision: the answer to a [`PolicyTestRequest`] or, without an id, about one command line.
#[derive(Serialize)]
struct PolicyTestAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<serde_json::Value>,
    decision: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    rewrite: Option<String>,
    rule: String,
    reason: String,
    /// Whether the policy counts in the directory. If it does not, a person decides every request.
    in_force: bool,
}

impl PolicyTestAnswer {
    fn new(id: Option<serde_json::Value>, decision: Decision, in_force: bool) -> Self {
        let Decision { verdict, rewrite, rule, reason } = decision;
        Self { id, decision: verdict, rewrite, rule, reason, in_force }
    }

    /// The answer as one line of text.
    fn in_words(&self) -> String {
        let id = self.id.clone().unwrap_or_default();
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        let (id, reason, rule) = (show(&id).text, show(&self.reason).text, show(&self.rule).text);
        let rewrite = self.rewrite.as_deref().map(|text| format!(", as: {}", show(text).text)).unwrap_or_default();
        format!("{id}: {}: {reason} ({rule}){rewrite}", self.decision)
    }
}

fn lines(context: &Context, selection: &PolicySelection) -> anyhow::Result<()> {
    let judge = PolicyJudge::new(context, selection)?;
    let here = here()?;
    let mut malformed = 0_usize;
    let mut input = std::io::stdin().lock();
    let mut output = printing::stdout();
    while let Some(line) = next_line(&mut input)? {
        let asked = line.and_then(|line| {
            serde_json::from_slice::<PolicyTestRequest>(&line).map_err(|error| {
                let id = serde_json::from_slice::<serde_json::Value>(&line).ok();
                (id.and_then(|mut value| value.get_mut("id").map(serde_json::Value::take)), api::body::fault(&error))
            })
        });
        let answered = match asked {
            Ok(asked) => {
                let cwd = asked.cwd.map_or_else(|| here.clone(), |cwd| here.join(cwd));
                let agent = asked.agent.or(selection.agent).unwrap_or(Provider::Unknown);
                let (account, in_force) = judge.explain(&asked.cmd, &cwd, agent);
                PolicyTestAnswer::new(Some(asked.id), account.decision, in_force)
            }
            Err((id, error)) => {
                malformed += 1;
                PolicyTestAnswer {
                    id: Some(id.unwrap_or_default()),
                    decision: Verdict::Ask,
                    rewrite: None,
                    rule: "malformed".into(),
                    reason: format!("The line is not a valid request: {error}."),
                    in_force: true,
                }
            }
        };
        let text =
            if context.json { safe_json(&serde_json::to_string(&answered)?).into_owned() } else { answered.in_words() };
        writeln!(output, "{text}")?;
        output.flush()?;
    }
    if malformed > 0 {
        let lines = if malformed == 1 {
            "1 line is not a valid request".into()
        } else {
            format!("{malformed} lines are not valid requests")
        };
        return Err(Failed::Other(lines).into());
    }
    Ok(())
}

type Line = Result<Vec<u8>, (Option<serde_json::Value>, String)>;

/// The next line without its line ending. A line that is too long is skipped.
fn next_line(input: &mut impl BufRead) -> anyhow::Result<Option<Line>> {
    let mut line = Vec::new();
    if input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() as u64 == MAX_LINE {
        input.skip_until(b'\n')?;
        return Ok(Some(Err((None, "it is longer than 1 MiB".into()))));
    }
    Ok(Some(Ok(line)))
}

fn explain(context: &Context, selection: &PolicySelection, words: &[String]) -> anyhow::Result<()> {
    let command = typed(words)?;
    let (account, _) =
        PolicyJudge::new(context, selection)?.explain(&command, &here()?, selection.agent.unwrap_or(Provider::Unknown));
    if context.json {
        return context.print_json(&account);
    }
    let shown = show(&command);
    print_line(&format!("command: {}", shown.text))?;
    if shown.hidden > 0 || shown.non_ascii > 0 {
        print_line(&format!(
            "         {} characters ({} hidden, {} not ASCII)",
            shown.length, shown.hidden, shown.non_ascii
        ))?;
    }
    if let Some(why) = &account.not_understood {
        print_line(&format!("not understood: {}", show(why).text))?;
    }
    if !account.wrapper.is_empty() {
        print_line(&format!("inside: {}", show(&account.wrapper.join(" ")).text))?;
    }
    for (index, part) in account.parts.iter().enumerate() {
        let words: Vec<_> = part.words.iter().map(|word| format!("⟨{}⟩", show(word).text)).collect();
        print_line(&format!("\n{}. {}", index + 1, words.join(" ")))?;
        for alike in part.tried.chunk_by(is_same_miss) {
            let Some(tried) = alike.first() else { continue };
            let mark = if tried.matched { "matched" } else { "no match" };
            let rules = match (alike.len(), preset_of(tried)) {
                (1, _) | (_, None) => tried.rule.clone(),
                (count, Some(preset)) => format!("{preset}/… ({count} rules)"),
            };
            let line = format!("   {rules} ({}), {mark}: {}", tried.decision, tried.why);
            print_line(&show(&line).text)?;
        }
        print_line(&format!("   {}: {}", part.verdict, show(&part.reason).text))?;
    }
    print_line(&format!("\n{}", decision_text(&account.decision)))
}

/// Whether two rules of one preset fail to match for the same reason, so that one line can cover both.
fn is_same_miss(one: &TriedRule, other: &TriedRule) -> bool {
    let is_of_one_preset = preset_of(one).is_some() && preset_of(one) == preset_of(other);
    is_of_one_preset && !one.matched && !other.matched && (one.decision, &one.why) == (other.decision, &other.why)
}

/// The preset that a rule comes from; `None` for the user's own rules.
fn preset_of(tried: &TriedRule) -> Option<&str> {
    tried.rule.split_once('/').map(|(preset, _)| preset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_read_line_by_line_and_overlong_lines_are_skipped() {
        let long = "x".repeat(usize::try_from(MAX_LINE).unwrap() + 7);
        let mut input = std::io::Cursor::new(format!("a\n\n{long}\nlast"));
        let mut taken = Vec::new();
        while let Some(line) = next_line(&mut input).unwrap() {
            taken.push(line.map(|line| String::from_utf8(line).unwrap()).map_err(|(_, why)| why));
        }
        let told = Err("it is longer than 1 MiB".to_owned());
        assert_eq!(taken, [Ok("a".to_owned()), Ok(String::new()), told, Ok("last".to_owned())]);
    }

    #[test]
    fn one_argument_is_a_command_line_and_several_are_quoted_words() {
        let words = |words: &[&str]| typed(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()).unwrap();
        assert_eq!(words(&["ls | wc"]), "ls | wc");
        assert_eq!(words(&["grep", "a b", "x;y"]), "grep 'a b' 'x;y'");
    }
}
