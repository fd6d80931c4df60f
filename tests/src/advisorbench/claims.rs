//! Statements of agents about their checks: 200 pairs of turns that differ in one event or one phrase.

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Figures, is_accusing, labelled, wilson_low};
use crate::{
    claude_session::{ClaudeSession, REFUSED},
    program::Machine,
};

/// A turn with the agent's last message, and the verdict on one of its statements.
#[derive(Debug, Deserialize)]
struct Case {
    id: String,
    pair: String,
    prompt: String,
    steps: Vec<Step>,
    said: String,
    expect: Expected,
    licence: String,
    source: String,
}

#[derive(Debug, Deserialize)]
struct Expected {
    about: Option<String>,
    /// The verdict; `none` if nothing is stated.
    verdict: String,
}

impl Expected {
    fn accuses(&self) -> bool {
        is_accusing(&json!({ "verdict": self.verdict }))
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Step {
    Run {
        run: String,
        exit: i32,
        output: String,
    },
    Edit {
        edit: String,
        #[serde(default)]
        failed: bool,
    },
    Read {
        read: String,
    },
    Denied {
        denied: String,
    },
    Todo {
        todo: Vec<(String, String)>,
    },
    Background {
        background: String,
    },
    Mcp {
        mcp: String,
        output: String,
    },
    Subagent {
        subagent: String,
        output: String,
    },
}

impl Step {
    fn play(&self, agent: &mut ClaudeSession<'_>) {
        match self {
            Self::Run { run, exit: 0, output } => agent.runs(run, output, false),
            Self::Run { run, exit, output } => agent.runs(run, &format!("Exit code {exit}\n{output}"), true),
            Self::Edit { edit, failed: false } => agent.edits(edit),
            Self::Edit { edit, failed: true } => {
                let input = json!({ "file_path": edit, "old_string": "a", "new_string": "b" });
                let refused = "<tool_use_error>String to replace not found in file.</tool_use_error>";
                agent.calls("Edit", &input, refused, true);
            }
            Self::Read { read } => agent.calls("Read", &json!({ "file_path": read }), "     1\ttext", false),
            Self::Denied { denied } => {
                agent.runs(denied, REFUSED, true);
            }
            Self::Todo { todo } => {
                let item = |(content, status): &(String, String)| json!({ "content": content, "status": status, "activeForm": content });
                let todos: Vec<Value> = todo.iter().map(item).collect();
                agent.calls("TodoWrite", &json!({ "todos": todos }), "Todos have been modified successfully.", false);
            }
            Self::Background { background } => {
                let input = json!({ "command": background, "run_in_background": true });
                agent.calls("Bash", &input, "Command running in background with ID: b1", false);
            }
            Self::Mcp { mcp, output } => agent.calls(mcp, &json!({}), output, false),
            Self::Subagent { subagent, output } => {
                agent.calls("Task", &json!({ "description": subagent, "prompt": subagent }), output, false);
            }
        }
    }
}

/// How the statements of a set were judged.
#[derive(Debug, Default)]
pub struct Claims {
    /// Turns.
    pub turns: usize,
    /// Turns whose verdict is the expected one.
    pub exact: usize,
    /// Accusations.
    pub accused: usize,
    /// Accusations that were expected.
    pub rightly: usize,
    /// Turns of which an accusation is expected.
    pub guilty: usize,
    /// Pairs.
    pub pairs: usize,
    /// Pairs with both verdicts as expected.
    pub flipped: usize,
    /// The wrong verdicts.
    pub wrong: Vec<String>,
}

impl Claims {
    /// Plays the turns of a set on this machine: all are written first, and then read as history.
    ///
    /// # Panics
    /// If the set or an answer cannot be read.
    #[must_use]
    pub fn played(machine: &Machine, set: &Path) -> Self {
        let cases: Vec<Case> = labelled(set);
        let agents: Vec<ClaudeSession<'_>> = cases.iter().zip(1..).map(|(case, n)| written(machine, case, n)).collect();
        let server = machine.serve();
        let mut claims = Self { turns: cases.len(), ..Self::default() };
        let mut pairs: BTreeMap<&str, bool> = BTreeMap::new();
        for (case, agent) in cases.iter().zip(&agents) {
            assert!(!case.licence.is_empty() && !case.source.is_empty(), "{}: no source or licence", case.id);
            agent.read_by(&server);
            let check = server.client.json(&format!("/api/v1/sessions/{}/check", agent.id)).unwrap();
            let made = check["turns"][0]["receipt"]["claims"].as_array().cloned().unwrap_or_default();
            let is_exact = claims.judge(case, &made);
            *pairs.entry(&case.pair).or_insert(true) &= is_exact;
        }
        claims.pairs = pairs.len();
        claims.flipped = pairs.values().filter(|is_exact| **is_exact).count();
        claims
    }

    /// Compares the verdicts on the statements of a turn with the label; returns whether the verdict is the expected
    /// one.
    fn judge(&mut self, case: &Case, made: &[Value]) -> bool {
        let is_meant = |claim: &&Value| case.expect.about.as_deref() == claim["about"].as_str();
        let verdict_of = |claim: &Value| claim["verdict"].as_str().unwrap_or_default().to_owned();
        let meant = made.iter().find(is_meant);
        let verdict = meant.map_or_else(|| "none".to_owned(), verdict_of);
        let others: Vec<&Value> = made.iter().filter(|claim| !is_meant(claim) && is_accusing(claim)).collect();
        let is_exact = verdict == case.expect.verdict;
        self.guilty += usize::from(case.expect.accuses());
        self.accused += usize::from(meant.is_some_and(is_accusing)) + others.len();
        self.rightly += usize::from(meant.is_some_and(is_accusing) && case.expect.accuses());
        self.exact += usize::from(is_exact);
        if !is_exact || !others.is_empty() {
            let others: Vec<String> = others.into_iter().map(Value::to_string).collect();
            let made = meant.map(Value::to_string).unwrap_or_default();
            let (id, expected) = (&case.id, &case.expect.verdict);
            self.wrong.push(format!("{id}: {expected} expected, {verdict} {made} {}", others.join(" ")));
        }
        is_exact
    }

    /// The figures in words.
    #[must_use]
    pub fn figures(self) -> Figures {
        let Self { turns, exact, accused, rightly, guilty, pairs, flipped, wrong } = self;
        let low = wilson_low(rightly, accused);
        let lines = vec![
            format!("accusations right: {rightly} of {accused} (95 % interval from {low:.3})"),
            format!("accusations found: {rightly} of {guilty}"),
            format!("verdicts as labelled: {exact} of {turns}"),
            format!("pairs with both verdicts as labelled: {flipped} of {pairs}"),
        ];
        Figures { lines, wrong }
    }
}

fn written<'a>(machine: &'a Machine, case: &Case, n: u64) -> ClaudeSession<'a> {
    let mut agent = ClaudeSession::new(machine, n);
    agent.prompt(&case.prompt);
    case.steps.iter().for_each(|step| step.play(&mut agent));
    agent.says(&case.said);
    agent
}
