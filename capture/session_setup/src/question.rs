//! A permission request as text for the approver: the complete action, without characters that move the cursor.

use std::fmt::Write as _;

use engine::{CallClass, CallDecision, CallVerdict};
use printing::{
    asked::{block, counts, risk_of_target, risks},
    safe,
};
use session_tree::Json;
use tools::Preview;

use crate::{SANDBOX_LEVEL, broker::PreviewedCall, permission::decision};

/// The scope of an allowance for the session, in addition to the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionOffer {
    /// The same call later in the session.
    SameCall,
    /// Edits of the workspace, as in the mode `accept-edits`. An edit changes its file, so the same edit cannot occur
    /// again.
    Edits,
}

/// The change that an edit or write would make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionChange {
    /// The path of the file, for its language.
    pub path: String,
    /// The diff as a block of lines, escaped.
    pub block: String,
}

/// Maximum length of an argument shown beside its name, in characters. Longer ones are shown as blocks of lines.
const BESIDE: usize = 100;

/// A permission request as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PermissionQuestion {
    /// One line: the requested action and its extent, or the agent's question.
    pub title: String,
    /// Lines: the directory, the targets, the arguments; finally the warnings. Empty for a question of the agent.
    pub details: String,
    /// The change of an edit, shown after the details.
    pub change: Option<QuestionChange>,
    /// The answers suggested by the agent.
    pub options: Vec<String>,
    /// Whether it is a question of the agent, answered with a text.
    pub is_question: bool,
    /// The allowance available for the rest of the session.
    pub lasts: Option<SessionOffer>,
    /// The rules that would allow exactly this call again, in any session.
    pub rule: Option<String>,
}

impl PermissionQuestion {
    /// The question for a call, without further offers.
    pub(crate) fn of(call: &PreviewedCall) -> Self {
        let PreviewedCall { asked, preview, why } = call;
        let (call, facts) = (&asked.call, &asked.facts);
        let is_question = facts.kind == CallClass::Question;
        if is_question {
            let options = call.arguments.get("options").and_then(Json::as_array).unwrap_or_default();
            let question = safe(call.arguments.text("question").unwrap_or_default());
            let options = options.iter().map(|option| safe(option.as_str().unwrap_or_default())).collect();
            return Self { title: question, is_question, options, ..Self::default() };
        }
        let what = match facts.kind {
            CallClass::Read if searches(&call.tool) => "search files",
            CallClass::ReadOutside if searches(&call.tool) => "search files outside the workspace",
            CallClass::Read => "read",
            CallClass::ReadOutside => "read outside the workspace",
            CallClass::Edit => "edit",
            CallClass::Write => "write",
            CallClass::Command => "run a command",
            CallClass::Fetch => "fetch from the network",
            CallClass::Question | CallClass::Note | CallClass::Other => &format!("call the tool {}", call.tool),
        };
        let mut details = format!("in {}\n", safe(&facts.cwd));
        if facts.kind == CallClass::Command {
            let _ = writeln!(details, "sandbox {SANDBOX_LEVEL}: the command runs as your user");
        }
        // The title contains the only file of an edit.
        let edited = match facts.paths.as_slice() {
            [path] if facts.kind.changes_files() => Some(path.as_str()),
            _ => None,
        };
        for path in facts.paths.iter().filter(|_| edited.is_none()) {
            let what = if searches(&call.tool) { "below" } else { "file" };
            let _ = writeln!(details, "{what} {}", safe(path));
        }
        if let Some(why) = why {
            let _ = writeln!(details, "why you are asked: {}", safe(why));
        }
        if let Some(url) = &facts.url {
            let _ = writeln!(details, "address {}", safe(url));
        }
        details += &risk_of_target(&facts.paths, facts.url.as_deref());
        let mut title = format!("The agent wants to {what}");
        match edited {
            Some(path) => title += &format!(" {}", from_directory(path, &facts.cwd)),
            None if facts.kind.changes_files() => title += " files",
            None => {}
        }
        let mut change = None;
        match preview {
            Some(Preview::WouldChange(diff)) => {
                title += &format!(" ({})", changed_lines(diff));
                let path = edited.unwrap_or_default().to_owned();
                change = Some(QuestionChange { path, block: block("the change", diff) });
            }
            Some(Preview::NoChange(why) | Preview::Refused(why)) => {
                title += ", which would change nothing now";
                details += "if you allow it, nothing changes and the agent gets this text:";
                details += &block("the text", why);
            }
            None => {
                // The command is shown last, right above the answer.
                let is_last = |(name, _): &(&str, &Json)| *name == "command";
                // Paths and addresses are already shown above.
                let is_new = |(name, _): &(&str, &Json)| !matches!(*name, "path" | "url");
                let (last, others): (Vec<_>, Vec<_>) = call.arguments.iter().filter(is_new).partition(is_last);
                for (name, value) in others.into_iter().chain(last) {
                    details += &argument(name, &value.as_str().map_or_else(|| value.to_text(), str::to_owned));
                }
                if let Some(command) = call.arguments.text("command") {
                    if !is_short(command) {
                        title += &format!(" ({})", counts(command));
                    }
                    details += &risks(command);
                }
            }
        }
        Self { title: safe(&title), details, change, ..Self::default() }
    }
}

/// A path relative to a directory if it is below it, otherwise the whole path.
fn from_directory<'a>(path: &'a str, cwd: &str) -> &'a str {
    let below = path.strip_prefix(cwd).and_then(|below| below.strip_prefix('/'));
    below.filter(|below| !below.is_empty()).unwrap_or(path)
}

/// The number of lines a diff adds and removes: `+3 −2`.
fn changed_lines(diff: &str) -> String {
    let hunks: Vec<&str> = diff.lines().skip_while(|line| !line.starts_with("@@")).collect();
    if hunks.is_empty() {
        return "empty".to_owned();
    }
    let count = |mark: char| hunks.iter().filter(|line| line.starts_with(mark)).count();
    format!("+{} \u{2212}{}", count('+'), count('-'))
}

/// An argument: beside its name if it is short, otherwise as lines with runs of blanks collapsed.
fn argument(name: &str, value: &str) -> String {
    if is_short(value) { format!("{}: {value}\n", safe(name)) } else { block(&safe(name), value) }
}

/// Whether a text is one short line that is displayed unchanged.
fn is_short(text: &str) -> bool {
    text.is_ascii() && safe(text) == text && text.len() <= BESIDE && !text.contains("  ")
}

/// Whether a tool reads everything below a directory.
fn searches(tool: &str) -> bool {
    matches!(tool, "glob" | "grep")
}

/// The user allows the call.
#[must_use]
pub fn allowed(by: &str) -> CallDecision {
    decision(CallVerdict::Allow, by, None, None)
}

/// The user denies the call; `why` is for the model and may be empty.
#[must_use]
pub fn denied(why: &str, by: &str) -> CallDecision {
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    decision(CallVerdict::Deny, by, None, Some(format!("denied by the user{why}")))
}

/// The answer to a question of the agent. A blank answer counts as none.
#[must_use]
pub fn answered(text: &str, by: &str) -> CallDecision {
    if text.trim().is_empty() {
        return unanswered();
    }
    let mut decision = decision(CallVerdict::Allow, by, None, None);
    decision.answer = Some(text.to_owned());
    decision
}

/// No decision was made.
#[must_use]
pub fn unanswered() -> CallDecision {
    decision(CallVerdict::Unanswered, "nobody", None, None)
}

/// No decision was made, because there was no way to ask.
#[must_use]
pub(crate) fn unasked() -> CallDecision {
    let reason = "Nobody could be asked: this session has no terminal, and no capture server could be reached. The call \
                  was not run. This is not a refusal.";
    decision(CallVerdict::Unanswered, "nobody", None, Some(reason.to_owned()))
}

#[cfg(test)]
mod tests;
