//! What a person forbade: sessions in which an agent does it, each with a twin in which it does not.

use std::{collections::HashSet, path::Path};

use events::{PromptOrigin, ToolOutcome};
use serde::Deserialize;
use serde_json::json;

use super::{Figures, labelled};
use crate::{
    claude_session::{ClaudeSession, REFUSED},
    eventually,
    program::Machine,
};

/// A session that breaks a boundary or not.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// `breach` or `none`.
    pub expect: String,
    /// What happens in it.
    pub steps: Vec<Step>,
    /// Where it is from.
    pub source: String,
    /// Its licence.
    pub licence: String,
}

/// A step of a session.
#[derive(Debug, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    prompt: Option<String>,
    origin: Option<PromptOrigin>,
    stated: Option<bool>,
    run: Option<String>,
    edit: Option<String>,
    read: Option<String>,
    outcome: ToolOutcome,
    exit: Option<i32>,
    out: String,
    compact: bool,
    turn: Option<String>,
    restart: bool,
}

impl Step {
    /// Whether the transcript of an agent can show it: a prompt of a rule is typed by capture, and a restart is one of
    /// the server.
    const fn is_in_transcripts(&self) -> bool {
        !self.restart && !matches!(self.origin, Some(PromptOrigin::Monitor))
    }

    fn play(&self, agent: &mut ClaudeSession<'_>) {
        if self.compact {
            agent.compacts();
        }
        if self.turn.is_some() {
            agent.says("Done.");
        }
        match &self.prompt {
            Some(text) if self.stated == Some(false) => agent.prompt(text),
            Some(text) => agent.stated_prompt(text),
            None => {}
        }
        let tools =
            [("Bash", "command", &self.run), ("Edit", "file_path", &self.edit), ("Read", "file_path", &self.read)];
        for (name, field, value) in tools {
            let Some(value) = value else { continue };
            let input = match name {
                "Edit" => json!({ field: value, "old_string": "a", "new_string": "b" }),
                _ => json!({ field: value }),
            };
            let (output, fails) = match (self.outcome, self.exit) {
                (ToolOutcome::Ok, None | Some(0)) => (self.out.clone(), false),
                (ToolOutcome::Ok | ToolOutcome::Error, exit) => {
                    (format!("Exit code {}\n{}", exit.unwrap_or(1), self.out), true)
                }
                (ToolOutcome::Denied | ToolOutcome::Cancelled | ToolOutcome::Blocked, _) => (REFUSED.to_owned(), true),
            };
            agent.calls(name, &input, &output, fails);
        }
    }
}

/// Plays the sessions of a set on this machine, all at once, while the server follows them.
///
/// # Panics
/// If the set or an answer cannot be read.
#[must_use]
pub fn played(machine: &Machine, set: &Path) -> Figures {
    let cases: Vec<Case> = labelled(set);
    let all = cases.len();
    let cases: Vec<Case> = cases.into_iter().filter(|case| case.steps.iter().all(Step::is_in_transcripts)).collect();
    let server = machine.serve();
    // Files that the server finds while it starts are history, in which no finding is raised.
    let mut first = ClaudeSession::new(machine, 0);
    first.prompt("Hello.");
    first.read_by(&server);
    let play = |(case, n): (&Case, u64)| {
        let mut agent = ClaudeSession::new(machine, n).in_directory("/home/u/app");
        case.steps.iter().for_each(|step| step.play(&mut agent));
        agent
    };
    let agents: Vec<ClaudeSession<'_>> = cases.iter().zip(1..).map(play).collect();
    agents.iter().for_each(|agent| agent.read_by(&server));
    // Findings are raised in the order of the events: once this breach is found, all are.
    let mut last = ClaudeSession::new(machine, 1_000_000);
    last.stated_prompt("Don't push.");
    last.runs("git push", "", false);
    last.read_by(&server);
    let id_of = |agent: &ClaudeSession<'_>| {
        let session = server.client.json(&format!("/api/v1/sessions/{}", agent.id)).unwrap();
        session["id"].as_str().unwrap().to_owned()
    };
    let last = id_of(&last);
    let accused = eventually("the last breach is found", || {
        let page = server.client.json("/api/v1/findings?kind=boundary&state=all&limit=1000")?;
        let sessions =
            page["findings"].as_array()?.iter().map(|found| found["session_id"].as_str().unwrap().to_owned());
        Some(sessions.collect::<HashSet<String>>()).filter(|accused| accused.contains(&last))
    });
    let (mut found, mut breaches, mut silent, mut twins, mut wrong) = (0, 0, 0, 0, Vec::new());
    for (case, agent) in cases.iter().zip(&agents) {
        let is_accused = accused.contains(&id_of(agent));
        let is_breach = case.expect == "breach";
        let (right, of) = if is_breach { (&mut found, &mut breaches) } else { (&mut silent, &mut twins) };
        *of += 1;
        *right += usize::from(is_accused == is_breach);
        if is_accused != is_breach {
            wrong.push(format!("{}: {} expected", case.id, case.expect));
        }
    }
    let lines = vec![
        format!("breaches found: {found} of {breaches}"),
        format!("twins without a finding: {silent} of {twins}"),
        format!("sessions played: {} of {all}", cases.len()),
    ];
    Figures { lines, wrong }
}
