//! Conversations as Markdown: to be read in a terminal, stored in a file, or pasted elsewhere.
//!
//! The texts come from agents, so the caller must redact them before it passes them in. Text written by an agent is
//! already Markdown and is not changed; prompts are quoted, inputs and outputs of tools are code blocks.

use std::{borrow::Cow, fmt::Write as _};

use events::{ApprovalState, DecidedBy, PromptOrigin, Timestamp, ToolKind, ToolOutcome, TurnOutcome};
use projections::{CallResult, ConversationItem, ItemBody, ItemText, Session, Subagent, shorten::verbatim_line};

use crate::{edits::FileEdits, report::quoted};

/// How a conversation is formatted.
#[derive(Clone, Copy)]
pub struct ConversationFormat<'a> {
    /// Maximum number of lines of an input or output; if it is longer, only the first and the last lines are shown.
    /// `None` shows all.
    pub lines: Option<usize>,
    /// Whether the model's thinking is shown.
    pub thinking: bool,
    /// Formats a time.
    pub time: &'a dyn Fn(Timestamp) -> String,
}

/// Longest line about a call, characters.
const TITLE_CHARS: usize = 160;

/// The head of a conversation: its title, agent, place and time.
#[must_use]
pub fn heading(session: &Session, format: ConversationFormat<'_>) -> String {
    let title = session.title.as_deref().unwrap_or("Untitled session");
    let mut out = format!("# {}\n\n", verbatim_line(title, TITLE_CHARS));
    let [about, when] = head_of(session, format.time);
    let _ = writeln!(out, "{about}  \n{when}\n");
    out
}

/// The first two lines of a conversation: agent, model, directory and branch; and the time.
pub(crate) fn head_of(session: &Session, time: &dyn Fn(Timestamp) -> String) -> [String; 2] {
    let agent = format!("{} {}", session.provider, session.cli_version.as_deref().unwrap_or_default());
    let about = [Some(agent.trim().to_owned()), session.model.clone(), session.cwd.clone(), session.git_branch.clone()];
    let about: Vec<String> = about.into_iter().flatten().collect();
    let (from, to) = (time(session.started_at), time(session.last_event_at));
    [about.join(" · "), format!("{from} to {to} · session {}", session.id)]
}

/// The origin of a prompt as text.
pub(crate) const fn prompt_words(origin: PromptOrigin) -> &'static str {
    match origin {
        PromptOrigin::Human => "Prompt",
        PromptOrigin::Steering => "Prompt while it worked",
        PromptOrigin::Wakeup => "Wake-up",
        PromptOrigin::Agent => "Task from another agent",
        PromptOrigin::Command => "Command",
        PromptOrigin::Monitor => "Prompt by a rule",
    }
}

/// The outcome of a permission request, and the decider.
pub(crate) fn approval_words(state: ApprovalState, by: Option<DecidedBy>) -> String {
    let ended = match state {
        ApprovalState::Pending => "waits for an answer",
        ApprovalState::Allowed => "allowed",
        ApprovalState::Denied => "denied",
        ApprovalState::AnsweredElsewhere => "answered in the agent",
        ApprovalState::Expired => "expired",
        ApprovalState::Withdrawn => "withdrawn",
    };
    let by = match by {
        Some(DecidedBy::Person) => " by the user",
        Some(DecidedBy::Policy) => " by a rule",
        Some(DecidedBy::Grant) => " by an earlier decision of the user",
        None => "",
    };
    format!("{ended}{by}")
}

/// The attachments of a prompt as text: `1 attachment`.
pub(crate) fn attachment_words(attachments: u32) -> String {
    format!("{attachments} attachment{}", if attachments == 1 { "" } else { "s" })
}

/// A sub-agent in one line, followed by an empty line: its kind, its subject, and its progress.
#[must_use]
pub fn subagent_heading(subagent: &Subagent) -> String {
    format!("**Sub-agent** {}\n\n", subagent_facts(subagent).join(" · "))
}

/// A line that replaces a sub-agent's work if it was forgotten during the export.
#[must_use]
pub fn subagent_forgotten() -> String {
    format!("*{FORGOTTEN}*\n\n")
}

/// The text that replaces a forgotten sub-agent.
pub(crate) const FORGOTTEN: &str = "(forgotten meanwhile)";

/// The kind of a sub-agent, its subject, and its progress.
pub(crate) fn subagent_facts(subagent: &Subagent) -> Vec<String> {
    let turns = format!("{} turn{}", subagent.turns, if subagent.turns == 1 { "" } else { "s" });
    let about = [&subagent.agent_type, &subagent.title].into_iter().flatten();
    let about = about.map(|text| verbatim_line(text, TITLE_CHARS)).filter(|text| !text.is_empty());
    about.chain([subagent.state.to_string(), turns, format!("session {}", subagent.session_id)]).collect()
}

/// An output without colour codes, which would appear as characters.
pub(crate) fn without_colours(text: &str) -> Cow<'_, str> {
    if !text.contains("\u{1b}[") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("\u{1b}[") {
        out += before;
        let end = behind.find(|c: char| !(c.is_ascii_digit() || matches!(c, ';' | ':')));
        match end.filter(|end| behind[*end..].starts_with('m')) {
            Some(end) => rest = &behind[end + 1..],
            None => {
                out += "\u{1b}[";
                rest = behind;
            }
        }
    }
    out += rest;
    Cow::Owned(out)
}

/// One item, followed by an empty line; empty if there is nothing to read.
#[must_use]
pub fn item(item: &ConversationItem, format: ConversationFormat<'_>) -> String {
    let mut out = String::new();
    let by = item.agent_id.as_deref().map_or_else(String::new, |agent| format!(" · sub-agent {agent}"));
    match &item.body {
        ItemBody::Prompt { origin, text, attachments } => {
            let _ = writeln!(out, "## {} · {}{by}\n", prompt_words(*origin), (format.time)(item.at));
            quote(&text.text, &mut out);
            if *attachments > 0 {
                let _ = writeln!(out, ">\n> ({})", attachment_words(*attachments));
            }
            rest(text, &mut out);
        }
        ItemBody::Message { thinking, text, .. } => {
            if let Some(thinking) = thinking.as_deref().filter(|_| format.thinking) {
                let _ = writeln!(out, "**Thinking**{by}\n");
                quote(thinking, &mut out);
                out.push('\n');
            }
            if !text.is_empty() {
                if !by.is_empty() {
                    let _ = writeln!(out, "**Answer**{by}\n");
                }
                out += text.text.trim_end();
                out.push('\n');
                rest(text, &mut out);
            }
        }
        ItemBody::ToolCall { name, tool, title, input, result, subagents, .. } => {
            // If the sub-agent is known, it already names itself.
            let by = if subagents.is_empty() { by } else { String::new() };
            let name = if name.is_empty() { "(a call that capture did not see)" } else { name };
            let _ = write!(out, "**{name}**{by}");
            if let Some(title) = title {
                let _ = write!(out, " {}", code(&verbatim_line(title, TITLE_CHARS)));
            }
            let _ = writeln!(out, " · {}", result.as_ref().map_or_else(|| "no result".to_owned(), ended));
            // The title of a command is the command itself.
            let edits = (*tool == ToolKind::Edit).then(|| FileEdits::of(&input.text)).flatten();
            if let Some(edits) = edits {
                out.push('\n');
                lines_block(&edits.lines(), "diff", format, &mut out);
                rest(input, &mut out);
            } else if !matches!(tool, ToolKind::Execute | ToolKind::Read) && !input.is_empty() {
                out.push('\n');
                block(input, "json", format, &mut out);
            }
            if let Some(result) = result.as_ref().filter(|result| !result.text.is_empty()) {
                out.push('\n');
                block(&result.text, "text", format, &mut out);
            }
        }
        ItemBody::Approval { subject, state, by: decided_by, .. } => {
            let _ = write!(out, "**Approval**{by}");
            if let Some(subject) = subject {
                let _ = write!(out, " {}", code(&verbatim_line(subject, TITLE_CHARS)));
            }
            let _ = writeln!(out, " · {}", approval_words(*state, *decided_by));
        }
        ItemBody::Question { text, options, answer } => {
            let _ = writeln!(out, "**Question**{by}\n\n{}\n", text.text.trim_end());
            for (number, option) in options.iter().enumerate() {
                let _ = writeln!(out, "{}. {}", number + 1, verbatim_line(option, TITLE_CHARS));
            }
            rest(text, &mut out);
            if let Some(answer) = answer.as_ref().filter(|answer| !answer.is_empty()) {
                out += "\nAnswer:\n\n";
                quote(&answer.text, &mut out);
            }
        }
        ItemBody::Error { class, code: number, text } => {
            let number = number.as_deref().map_or_else(String::new, |number| format!(" {number}"));
            let _ = writeln!(out, "**Error**{by} ({class}{number})\n");
            quote(&text.text, &mut out);
            rest(text, &mut out);
        }
        ItemBody::Compaction { text, .. } => {
            let _ = writeln!(out, "**The context was compacted**{by}\n");
            quote(&text.text, &mut out);
            rest(text, &mut out);
        }
        // The caller writes sub-agents.
        ItemBody::Subagent(_) => {}
        ItemBody::TurnEnd { outcome, number, duration_ms } => {
            return format!("*{}*\n\n", turn_end(*number, *outcome, *duration_ms));
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// The end of a turn as a sentence without a full stop.
pub(crate) fn turn_end(number: u32, outcome: TurnOutcome, duration_ms: u64) -> String {
    let after = |how| format!("Turn {number} {how} after {}", duration(duration_ms));
    match outcome {
        // A turn that simply ended needs no further text.
        TurnOutcome::Completed => format!("Turn {number} took {}", duration(duration_ms)),
        TurnOutcome::Interrupted => after("was interrupted"),
        TurnOutcome::Denied => after("ended by a denial"),
        TurnOutcome::Failed => after("failed"),
        TurnOutcome::Exited => after("ended with its process"),
        TurnOutcome::Superseded => after("was replaced by the next prompt"),
        TurnOutcome::TimedOut => after("fell silent"),
        TurnOutcome::TakenBack => {
            format!("The user took turn {number} back: the conversation continues without it")
        }
    }
}

pub(crate) fn ended(result: &CallResult) -> String {
    let mut words = match (result.outcome, result.exit_code) {
        (ToolOutcome::Ok, None | Some(0)) => "ok".to_owned(),
        (ToolOutcome::Ok | ToolOutcome::Error, Some(code)) => format!("exit code {code}"),
        (ToolOutcome::Error, None) => "failed".to_owned(),
        (ToolOutcome::Denied, _) => "denied".to_owned(),
        (ToolOutcome::Blocked, _) => "blocked by a rule".to_owned(),
        (ToolOutcome::Cancelled, _) => "cancelled".to_owned(),
    };
    if let Some(ms) = result.duration_ms.filter(|ms| *ms >= 1_000) {
        let _ = write!(words, " · {}", duration(ms));
    }
    words
}

/// A duration as text: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 4 min`.
#[must_use]
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..10 => format!("{}.{} s", seconds, ms % 1_000 / 100),
        10..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

fn quote(text: &str, out: &mut String) {
    let text = text.trim_end();
    if !text.is_empty() {
        push_line(&quoted(text), out);
    }
}

/// Notes that a text is not complete.
fn rest(text: &ItemText, out: &mut String) {
    if let Some(whole) = &text.text_ref {
        let _ = writeln!(out, "\n(the middle of {} bytes is left out)", whole.length);
    }
}

fn push_line(line: &str, out: &mut String) {
    *out += line;
    out.push('\n');
}

/// One backtick more than the longest run in the text, and at least `least`.
fn fence(text: &str, least: usize) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat((longest + 1).max(least))
}

/// Inline code, with any backticks in it.
fn code(text: &str) -> String {
    let fence = fence(text, 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// A block of code, with any backticks in it.
fn block(text: &ItemText, language: &str, format: ConversationFormat<'_>, out: &mut String) {
    let content = without_colours(&text.text);
    let lines: Vec<&str> = content.trim_end_matches('\n').lines().collect();
    lines_block(&lines, language, format, out);
    rest(text, out);
}

/// Lines as a block of code.
fn lines_block<L: AsRef<str>>(lines: &[L], language: &str, format: ConversationFormat<'_>, out: &mut String) {
    let longest = lines.iter().map(|line| fence(line.as_ref(), 3)).max_by_key(String::len);
    let fence = longest.unwrap_or_else(|| "```".to_owned());
    let _ = writeln!(out, "{fence}{language}");
    match format.lines.filter(|most| lines.len() > most + 1) {
        Some(most) => {
            let (head, tail) = (most.div_ceil(2), most / 2);
            let left_out = lines.len() - head - tail;
            lines[..head].iter().for_each(|line| push_line(line.as_ref(), out));
            let _ = writeln!(out, "… {left_out} lines …");
            lines[lines.len() - tail..].iter().for_each(|line| push_line(line.as_ref(), out));
        }
        None => lines.iter().for_each(|line| push_line(line.as_ref(), out)),
    }
    let _ = writeln!(out, "{fence}");
}

#[cfg(test)]
mod tests;
