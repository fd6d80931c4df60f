//! Combines the rules' decisions on all parts of a request: the strictest counts.

use std::path::Path;

use super::rule::{KnownSafe, PolicyRule, RequestPart};
use crate::{
    develop::{self, Work},
    facts::Facts,
    paths::WorkingDir,
    policy::{
        explanation::{ExplainedPart, Explanation, TriedRule},
        rule_set::Policy,
    },
    read_only,
    request::{Decision, PermissionRequest, RequestKind, Verdict},
    shell::{self, CommandLine, LineNode, Separator, SimpleCommand},
    tools,
    values::{self, LineContext},
};

/// The name of the rule that decides if no other rule matches.
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
    let everyday = policy.own.iter().any(|rule| rule.known.is_some_and(|known| known.work().is_some()));
    let context = LineContext { line: &line, places: &places };
    let (mut parts, mut rewrites) = (Vec::new(), Vec::new());
    let mut is_rearranged = false;
    for (command, working_dir) in line.commands.iter().zip(&places) {
        let known = working_dir.clone().and_then(|working_dir| read_only::judge(command, context, &working_dir, facts));
        let work = match working_dir {
            Ok(working_dir) if everyday => develop::judge(command, &known, context, working_dir, facts),
            Ok(_) => Err("No rule of the policy covers the kinds of commands `build` and `change`.".to_owned()),
            Err(why) => Err(why.clone()),
        };
        // The paths were resolved before any command of the line ran.
        let known = known
            .and_then(|known| if is_rearranged && !known.paths.is_empty() { Err(MOVED.into()) } else { Ok(known) });
        let work =
            work.and_then(|work| if is_rearranged && !work.paths.is_empty() { Err(MOVED.into()) } else { Ok(work) });
        is_rearranged |= develop::rearranges(command);
        let part = RequestPart::Command {
            command,
            work: work.as_ref().map_err(String::as_str),
            working_dir: working_dir.as_ref().map_err(String::as_str),
            known: known.as_ref().map_err(String::as_str),
        };
        let why = if everyday { work.as_ref().err().or(known.as_ref().err()) } else { known.as_ref().err() };
        let otherwise = why.map_or("No rule allows this.", String::as_str);
        let judged = judge(policy, request, &part, facts, otherwise);
        // A rule that allows a command by its words means exactly these words, so they are not rewritten.
        let rewrite = match judged.by_tables {
            None => None,
            Some(known_as) if known_as.work().is_some() => work.ok().and_then(|work| work.rewrite),
            Some(_) => known.ok().and_then(|known| known.rewrite),
        };
        rewrites.push(rewrite);
        let assigned = command.assignments.iter().map(|assigned| format!("{}={}", assigned.name, assigned.value.text));
        parts.push(judged.explained(assigned.chain(command.texts().into_iter().map(str::to_owned)).collect()));
    }
    let rewrite = rewrites.iter().any(Option::is_some).then(|| line.render(&rewrites));
    conclude(parts, None, wrapper, rewrite)
}

/// The reason why a command is unknown if it names paths after a command that moves files.
const MOVED: &str = "An earlier command of the line moves files, so the paths of this command may lead elsewhere.";

/// Checks that the shell around a line is a program outside the workspace.
fn wrapped(line: &CommandLine, working_dir: &Result<WorkingDir, String>, facts: &dyn Facts) -> Result<(), String> {
    let Some(shell) = line.wrapper.iter().flatten().next() else { return Ok(()) };
    let Ok(working_dir) = working_dir else { return Ok(()) };
    let name = shell.text.as_str();
    let files =
        if name.contains('/') { facts.canonical(Path::new(name)).into_iter().collect() } else { facts.program(name) };
    tools::outside(name, &files, working_dir)
}

/// The directory in which each command of a line runs. A `cd` applies to the commands after it, which must then be safe
/// without it, too.
fn places(
    line: &CommandLine,
    working_dir: &Result<WorkingDir, String>,
    facts: &dyn Facts,
) -> Vec<Result<WorkingDir, String>> {
    let mut walk = PlaceWalk { line, facts, places: Vec::new() };
    let mut place = working_dir.clone();
    walk.node(&line.tree, &mut place);
    if walk.line.commands.iter().any(moves_oddly) {
        return vec![Err(NOT_FOLLOWED.to_owned()); line.commands.len()];
    }
    walk.places.resize(line.commands.len(), place);
    walk.places
}

const NOT_FOLLOWED: &str = "capture does not follow this `cd`.";

/// Whether a command changes the directory in another way than `cd DIR`.
fn moves_oddly(command: &SimpleCommand) -> bool {
    let moves = |word: &str| matches!(word, "cd" | "pushd" | "popd" | "chdir");
    match command.texts().as_slice() {
        ["builtin" | "command", word, ..] => moves(word),
        [word, ..] => moves(word) && *word != "cd",
        [] => false,
    }
}

struct PlaceWalk<'a> {
    line: &'a CommandLine,
    facts: &'a dyn Facts,
    places: Vec<Result<WorkingDir, String>>,
}

impl PlaceWalk<'_> {
    fn node(&mut self, node: &LineNode, place: &mut Result<WorkingDir, String>) {
        match node {
            LineNode::Text(_) => {}
            LineNode::Command(index) => self.command(*index, place),
            LineNode::List(all) => {
                for (at, (node, then)) in all.iter().enumerate() {
                    self.node(node, place);
                    // Only a `cd` that is first and must succeed certainly runs and changes the directory.
                    let surely = at == 0 && *then == Separator::And || !self.moves(node);
                    if let Ok(place) = place {
                        place.certain_place &= surely;
                    }
                }
            }
            LineNode::Pipe(all) => {
                for node in all {
                    self.node(node, &mut place.clone());
                }
                // Some shells run the last command of a pipe in the current shell.
                if all.iter().any(|node| self.moves(node)) {
                    *place = Err(NOT_FOLLOWED.into());
                }
            }
            LineNode::Group { parts, subshell, loops } => {
                let mut inside = place.clone();
                if *loops && parts.iter().any(|node| self.moves(node)) {
                    inside = Err(NOT_FOLLOWED.into());
                }
                for node in parts {
                    self.node(node, &mut inside);
                }
                if !subshell {
                    *place = inside;
                }
            }
        }
    }

    /// Whether a node changes the directory for later commands.
    fn moves(&self, node: &LineNode) -> bool {
        match node {
            LineNode::Text(_) | LineNode::Pipe(_) => false,
            LineNode::Command(index) => {
                self.line.commands.get(*index).is_some_and(|command| command.texts().first() == Some(&"cd"))
            }
            LineNode::List(all) => all.iter().any(|(node, _)| self.moves(node)),
            LineNode::Group { subshell: true, .. } => false,
            LineNode::Group { parts, .. } => parts.iter().any(|node| self.moves(node)),
        }
    }

    fn command(&mut self, index: usize, place: &mut Result<WorkingDir, String>) {
        // The commands of its substitutions run in the same directory.
        self.places.resize(index, place.clone());
        let Some(command) = self.line.commands.get(index) else { return };
        if command.texts().first() != Some(&"cd") {
            self.places.push(place.clone());
            return;
        }
        let moved = place.clone().and_then(|place| {
            let [_, dir] = command.words.as_slice() else {
                return Err("capture can check `cd` only with exactly one directory.".to_owned());
            };
            let context = LineContext { line: self.line, places: &self.places };
            let mut moved = place.clone();
            for dir in values::words(dir, context, &place, self.facts)? {
                if !dir.is_exact() {
                    return Err(NOT_FOLLOWED.into());
                }
                moved = moved.moved(&dir.text, self.facts)?;
            }
            Ok(moved)
        });
        let alone = self.line.commands.len() == 1;
        self.places.push(if alone { place.clone() } else { moved.clone().and(place.clone()) });
        *place = moved;
    }
}

/// The decision of the rules on one part.
struct PartVerdict {
    verdict: Verdict,
    rule: String,
    reason: String,
    tried: Vec<TriedRule>,
    /// The tables that allowed it; `None` if an explicit rule did.
    by_tables: Option<KnownSafe>,
}

impl PartVerdict {
    fn explained(self, words: Vec<String>) -> ExplainedPart {
        let reach = match self.by_tables.and_then(KnownSafe::work) {
            Some(Work::Builds) => 2,
            Some(Work::Changes) => 1,
            None => 0,
        };
        ExplainedPart { words, verdict: self.verdict, rule: self.rule, reason: self.reason, tried: self.tried, reach }
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
        Some(rule) => PartVerdict { by_tables: rule.known, ..PartVerdict::by(rule) },
        None => PartVerdict {
            verdict: Verdict::Ask,
            rule: DEFAULT_RULE.into(),
            reason: otherwise.to_owned(),
            tried: Vec::new(),
            by_tables: None,
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
        Self { verdict: rule.decision, rule: rule.name.clone(), reason, tried: Vec::new(), by_tables: None }
    }
}

/// The first rule that matches; all tried rules are recorded.
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

/// Deny overrides ask, and ask overrides allow; of equal decisions, the rule that permits the most is named, then the
/// first. `rewrite` is `Some(None)` if a rewrite is needed but impossible.
fn conclude(
    parts: Vec<ExplainedPart>,
    not_understood: Option<String>,
    wrapper: Vec<String>,
    rewrite: Option<Option<String>>,
) -> Explanation {
    let strictest = parts.iter().rev().max_by_key(|part| (part.verdict, part.reach));
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
