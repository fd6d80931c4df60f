//! Combines the rules' decisions on all parts of a request: the strictest counts.

use std::path::Path;

use super::rule::{PolicyRule, RequestPart};
use crate::{
    facts::Facts,
    paths::WorkingDir,
    policy::{
        explanation::{ExplainedPart, Explanation, TriedRule},
        rule_set::Policy,
    },
    read_only,
    request::{Decision, PermissionRequest, RequestKind, Verdict},
    shell::{self, CommandLine, Separator, SimpleCommand},
    tools,
};

/// The name of what decides when no rule matches.
pub const DEFAULT_RULE: &str = "default";

pub(super) fn explain(policy: &Policy, request: &PermissionRequest, facts: &dyn Facts) -> Explanation {
    if request.kind == RequestKind::Command {
        command(policy, request, facts)
    } else {
        let working_dir = WorkingDir::new(request, facts);
        let part = RequestPart::Other { working_dir: working_dir.as_ref().map_err(String::as_str) };
        let judged = judge(policy, request, &part, facts, "No rule allows this.");
        conclude(vec![judged.explained(Vec::new())], None, Vec::new(), None)
    }
}

fn command(policy: &Policy, request: &PermissionRequest, facts: &dyn Facts) -> Explanation {
    let text = request.command.as_deref().unwrap_or_default();
    let working_dir = WorkingDir::new(request, facts);
    let understood = shell::understand(text).and_then(|line| wrapped(&line, &working_dir, facts).map(|()| line));
    let line = match understood {
        Ok(line) => line,
        Err(why) => {
            let judged = judge(policy, request, &RequestPart::Text { text, why: &why }, facts, &why);
            return conclude(vec![judged.explained(vec![text.to_owned()])], Some(why), Vec::new(), None);
        }
    };
    let wrapper: Vec<String> = line.wrapper.iter().flatten().map(|word| word.text.clone()).collect();
    let places = places(&line, &working_dir, facts);
    let (mut parts, mut rewrites) = (Vec::new(), Vec::new());
    for (command, working_dir) in line.commands.iter().zip(&places) {
        let known = working_dir.clone().and_then(|working_dir| read_only::judge(command, &working_dir, facts));
        let part = RequestPart::Command {
            command,
            working_dir: working_dir.as_ref().map_err(String::as_str),
            known: known.as_ref().map_err(String::as_str),
            wrapper: &wrapper,
        };
        let otherwise = known.as_ref().err().map_or("No rule allows this.", String::as_str);
        let judged = judge(policy, request, &part, facts, otherwise);
        // Whoever allowed a command by its words wanted just these.
        let rewrite = known.ok().and_then(|known| known.rewrite).filter(|_| judged.by_tables);
        rewrites.push(rewrite);
        parts.push(judged.explained(command.texts().into_iter().map(str::to_owned).collect()));
    }
    let rewrite = rewrites.iter().any(Option::is_some).then(|| line.render(&rewrites));
    conclude(parts, None, wrapper, rewrite)
}

/// Whether the shell around a line is a program outside the workspace.
fn wrapped(line: &CommandLine, working_dir: &Result<WorkingDir, String>, facts: &dyn Facts) -> Result<(), String> {
    let Some(shell) = line.wrapper.iter().flatten().next() else { return Ok(()) };
    let Ok(working_dir) = working_dir else { return Ok(()) };
    let name = shell.text.as_str();
    let files =
        if name.contains('/') { facts.canonical(Path::new(name)).into_iter().collect() } else { facts.program(name) };
    tools::outside(name, &files, working_dir)
}

/// Where each command of a line runs. Only a `cd` that begins the line and must succeed is followed.
fn places(
    line: &CommandLine,
    working_dir: &Result<WorkingDir, String>,
    facts: &dyn Facts,
) -> Vec<Result<WorkingDir, String>> {
    let moves = |word: &str| matches!(word, "cd" | "pushd" | "popd" | "chdir");
    let changes = |command: &SimpleCommand| match command.texts().as_slice() {
        ["builtin" | "command", word, ..] | [word, ..] => moves(word),
        [] => false,
    };
    let Some((first, rest)) = line.commands.split_first() else { return Vec::new() };
    let mut all = vec![working_dir.clone()];
    let mut behind = working_dir.clone();
    if changes(first) && !rest.is_empty() {
        behind = match (first.then, first.texts().as_slice()) {
            (Separator::And, ["cd", dir]) => behind.and_then(|working_dir| working_dir.moved(dir, facts)),
            _ => Err("A `cd` is only followed at the beginning of the line and before `&&`.".into()),
        };
        all = vec![behind.clone().and(working_dir.clone())];
    }
    if rest.iter().any(changes) {
        let lost = Err("A `cd` is only followed at the beginning of the line and before `&&`.".to_owned());
        return vec![lost; line.commands.len()];
    }
    all.resize(line.commands.len(), behind);
    all
}

/// The decision of the rules on one part.
struct PartVerdict {
    verdict: Verdict,
    rule: String,
    reason: String,
    tried: Vec<TriedRule>,
    /// Whether the tables of tools, and not a spelled-out rule, allowed it.
    by_tables: bool,
}

impl PartVerdict {
    fn explained(self, words: Vec<String>) -> ExplainedPart {
        ExplainedPart { words, verdict: self.verdict, rule: self.rule, reason: self.reason, tried: self.tried }
    }
}

fn judge(
    policy: &Policy,
    request: &PermissionRequest,
    part: &RequestPart<'_>,
    facts: &dyn Facts,
    otherwise: &str,
) -> PartVerdict {
    let mut tried = Vec::new();
    let stricter: Vec<&PolicyRule> =
        policy.repositories.iter().filter_map(|rules| first(rules, request, part, facts, &mut tried)).collect();
    let own = first(&policy.own, request, part, facts, &mut tried);
    let mut judged = match own {
        Some(rule) => PartVerdict { by_tables: rule.known.is_some(), ..PartVerdict::by(rule) },
        None => PartVerdict {
            verdict: Verdict::Ask,
            rule: DEFAULT_RULE.into(),
            reason: otherwise.to_owned(),
            tried: Vec::new(),
            by_tables: false,
        },
    };
    for rule in stricter {
        if rule.decision > judged.verdict || rule.decision == Verdict::Ask && judged.rule == DEFAULT_RULE {
            judged = PartVerdict::by(rule);
        }
    }
    PartVerdict { tried, ..judged }
}

impl PartVerdict {
    fn by(rule: &PolicyRule) -> Self {
        let reason = rule.reason.clone().unwrap_or_else(|| {
            match rule.decision {
                Verdict::Allow => "A rule allows it.",
                Verdict::Ask => "A rule leaves the decision to a person.",
                Verdict::Deny => "A rule forbids it.",
            }
            .into()
        });
        Self { verdict: rule.decision, rule: rule.name.clone(), reason, tried: Vec::new(), by_tables: false }
    }
}

/// The first rule that matches; what was tried goes into the account.
fn first<'a>(
    rules: &'a [PolicyRule],
    request: &PermissionRequest,
    part: &RequestPart<'_>,
    facts: &dyn Facts,
    tried: &mut Vec<TriedRule>,
) -> Option<&'a PolicyRule> {
    for rule in rules {
        let result = rule.matches(request, part, facts);
        let matched = result.is_ok();
        let why = result.unwrap_or_else(|why| why);
        tried.push(TriedRule { rule: rule.name.clone(), decision: rule.decision, matched, why });
        if matched {
            return Some(rule);
        }
    }
    None
}

/// Deny beats ask beats allow; of equals the first is named. `rewrite` is `Some(None)` when one is
/// needed and cannot be written.
fn conclude(
    parts: Vec<ExplainedPart>,
    not_understood: Option<String>,
    wrapper: Vec<String>,
    rewrite: Option<Option<String>>,
) -> Explanation {
    let strictest = parts.iter().rev().max_by_key(|part| part.verdict);
    let mut decision = match strictest {
        Some(part) => {
            Decision { verdict: part.verdict, rewrite: None, rule: part.rule.clone(), reason: part.reason.clone() }
        }
        None => Decision {
            verdict: Verdict::Ask,
            rewrite: None,
            rule: DEFAULT_RULE.into(),
            reason: "The command line is empty.".into(),
        },
    };
    if decision.verdict == Verdict::Allow {
        match rewrite {
            None => {}
            Some(Some(text)) => decision.rewrite = Some(text),
            Some(None) => {
                decision.verdict = Verdict::Ask;
                decision.rule = DEFAULT_RULE.into();
                decision.reason = "Its safe form cannot be written.".into();
            }
        }
    }
    Explanation { decision, not_understood, wrapper, parts }
}
