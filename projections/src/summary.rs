//! A three-line summary of a session, made without a model, from texts whose secrets were removed.

use std::collections::VecDeque;

use events::{ApprovalKind, Reason, State, TurnOutcome};

use crate::{Session, Summary, Turn, shorten::verbatim_line, turn_work::clauses};

/// Longest line of a tooltip, characters.
const TOOLTIP_CHARS: usize = 160;
/// Turns that make up `recent`.
const RECENT_TURNS: usize = 5;

/// Creates the summary; `last_prompt` is not changed.
#[must_use]
pub fn summarize(session: &Session, open: Option<&Turn>, recent: &VecDeque<Turn>) -> Summary {
    Summary {
        current: current(session, open, recent),
        recent: recent_line(recent),
        last_prompt: session.summary.last_prompt.clone(),
        checks: recent.back().filter(|_| open.is_none()).and_then(|turn| turn.receipt.line()),
    }
}

impl Summary {
    /// The summary as short lines: what the session does, what its checks showed, what it did recently, and the last
    /// request. A line
    /// without content is left out.
    #[must_use]
    pub fn tooltip(&self) -> String {
        let lines =
            [("now", &self.current), ("checks", &self.checks), ("lately", &self.recent), ("asked", &self.last_prompt)];
        let line = |(name, text): (&str, &Option<String>)| {
            text.as_deref().map(|text| format!("{name}: {}", verbatim_line(text, TOOLTIP_CHARS)))
        };
        lines.into_iter().filter_map(line).collect::<Vec<_>>().join("\n")
    }
}

fn current(session: &Session, open: Option<&Turn>, recent: &VecDeque<Turn>) -> Option<String> {
    let status = &session.status;
    let activity = status.activity.as_deref();
    let prompt = open.and_then(|t| t.prompt.as_deref()).map(|p| verbatim_line(p, 100));
    let line = match (status.state, status.reason) {
        (State::WaitingApproval, Some(Reason::Plan)) => "waiting for its plan to be approved".to_owned(),
        (State::WaitingApproval, reason) => match activity {
            Some(what) => format!("waiting for approval to {} {what}", wanted(reason)),
            None => "waiting for approval".to_owned(),
        },
        (State::Running, Some(Reason::Tool)) => format!("running {}", activity.unwrap_or("a tool")),
        (State::Running, Some(Reason::Subagents)) => {
            format!("sub-agents are working{}", activity.map(|a| format!(": {a}")).unwrap_or_default())
        }
        (State::Running, Some(Reason::Compacting)) => "compacting its context".to_owned(),
        (State::Running, Some(Reason::Retrying)) => "retrying the model after an error".to_owned(),
        (State::Running, _) => match prompt {
            Some(prompt) => format!("working on: {prompt}"),
            None => "working".to_owned(),
        },
        (State::Waiting, Some(reason)) => match reason {
            Reason::Question => format!("asks: {}", activity.unwrap_or("a question")),
            Reason::Interrupted => "interrupted; waiting for a prompt".to_owned(),
            Reason::Denied => "permission refused; waiting for a prompt".to_owned(),
            Reason::Error => "stopped by an error".to_owned(),
            Reason::Auth => "not signed in".to_owned(),
            Reason::Quota => "stopped by a quota or rate limit".to_owned(),
            Reason::NewSession => "waiting for its first prompt".to_owned(),
            Reason::Background => "done; a command is still running in the background".to_owned(),
            Reason::TurnComplete
            | Reason::Thinking
            | Reason::Streaming
            | Reason::Tool
            | Reason::Retrying
            | Reason::Compacting
            | Reason::Subagents
            | Reason::Edit
            | Reason::Plan
            | Reason::Mcp
            | Reason::Fetch
            | Reason::Trust
            | Reason::Quiet
            | Reason::Clean
            | Reason::Failed
            | Reason::Killed
            | Reason::NoEvidence
            | Reason::Lost => done(recent),
        },
        (State::Idle, _) if recent.back().is_some_and(|t| t.outcome == Some(TurnOutcome::Failed)) => {
            "stopped by an error".to_owned()
        }
        (State::Idle, _)
            if recent
                .back()
                .is_some_and(|t| matches!(t.outcome, Some(TurnOutcome::Interrupted | TurnOutcome::Denied))) =>
        {
            "interrupted".to_owned()
        }
        (State::Waiting | State::Idle, _) => done(recent),
        (State::Exited, Some(Reason::Killed)) => "its process was killed".to_owned(),
        (State::Exited, _) => "ended".to_owned(),
        (State::Unknown, Some(Reason::Lost)) => "was working when last seen".to_owned(),
        (State::Unknown, _) => return None,
    };
    Some(verbatim_line(&line, 200))
}

/// The result of the last turn. An answer that is only "done" is not repeated.
fn done(recent: &VecDeque<Turn>) -> String {
    match recent.back().and_then(|turn| turn.text.as_deref()).map(|text| verbatim_line(text, 140)) {
        Some(text) if !text.trim_end_matches(['.', '!']).eq_ignore_ascii_case("done") => format!("done: {text}"),
        Some(_) | None => "done".to_owned(),
    }
}

/// What the session requests permission for, as a verb.
fn wanted(reason: Option<Reason>) -> &'static str {
    match reason.and_then(|reason| reason.facts().approval) {
        Some(ApprovalKind::Edit) => "edit",
        Some(ApprovalKind::Write) => "write",
        Some(ApprovalKind::Read) => "read",
        Some(ApprovalKind::Fetch) => "fetch",
        Some(ApprovalKind::Mcp) => "call",
        Some(ApprovalKind::Trust) => "trust",
        Some(ApprovalKind::Plan) => "carry out",
        Some(ApprovalKind::Command | ApprovalKind::Question) | None => "run",
    }
}

/// The last turns, newest first, with the work of each.
fn recent_line(recent: &VecDeque<Turn>) -> Option<String> {
    let parts: Vec<String> = recent.iter().rev().take(RECENT_TURNS).map(turn_line).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// `fix the build (interrupted): changed main.rs, tests failed`.
fn turn_line(turn: &Turn) -> String {
    let what = turn.prompt.as_deref().map_or_else(|| "continued without a prompt".to_owned(), |p| verbatim_line(p, 60));
    let end = match turn.outcome {
        Some(TurnOutcome::Completed | TurnOutcome::Superseded) | None => "",
        Some(TurnOutcome::Interrupted) => " (interrupted)",
        Some(TurnOutcome::Denied) => " (refused)",
        Some(TurnOutcome::Failed) => " (failed)",
        Some(TurnOutcome::Exited) => " (cut off)",
        Some(TurnOutcome::TimedOut) => " (no end seen)",
        Some(TurnOutcome::TakenBack) => " (taken back)",
    };
    let done = clauses(turn);
    let colon = if done.is_empty() { "" } else { ": " };
    format!("{what}{end}{colon}{}", done.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tooltip_has_a_line_for_each_thing_that_is_known() {
        let summary = Summary {
            current: Some("done: it works".into()),
            checks: Some("tests 3 passed".into()),
            last_prompt: Some("go\non".into()),
            ..Summary::default()
        };
        assert_eq!(summary.tooltip(), "now: done: it works\nchecks: tests 3 passed\nasked: go on");
        assert_eq!(Summary::default().tooltip(), "");
    }
}
