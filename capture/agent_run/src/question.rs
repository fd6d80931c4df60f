//! A permission request in words, for whoever decides about it: what would happen, whole, and nothing that moves a
//! cursor.

use std::fmt::Write as _;

use engine::{AskedPermission, CallClass, CallDecision, CallVerdict};
use printing::{safe, safe_lines};
use session_tree::Json;

use crate::{SANDBOX_LEVEL, permission::decision};

/// A permission request in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PermissionQuestion {
    /// One line: what the agent wants, or what it asks.
    pub(crate) title: String,
    /// Lines: where, on what, with which arguments. Empty for a question of the agent.
    pub(crate) details: String,
    /// The answers that the agent suggests to its question.
    pub(crate) options: Vec<String>,
    /// Whether it is a question of the agent, which is answered with a text.
    pub(crate) is_question: bool,
}

impl PermissionQuestion {
    /// The question for a call; `diff` is what it would change.
    pub(crate) fn of(asked: &AskedPermission, diff: Option<&str>) -> Self {
        let (call, facts) = (&asked.call, &asked.facts);
        let is_question = facts.kind == CallClass::Question;
        if is_question {
            let options = call.arguments.get("options").and_then(Json::as_array).unwrap_or_default();
            let question = safe(call.arguments.text("question").unwrap_or_default());
            let options = options.iter().map(|option| safe(option.as_str().unwrap_or_default())).collect();
            return Self { title: question, details: String::new(), options, is_question };
        }
        let what = match facts.kind {
            CallClass::Read if searches(&call.tool) => "search files",
            CallClass::ReadOutside if searches(&call.tool) => "search files outside the workspace",
            CallClass::Read => "read",
            CallClass::ReadOutside => "read outside the workspace",
            CallClass::Edit => "edit a file",
            CallClass::Write => "write a file",
            CallClass::Command => "run a command",
            CallClass::Fetch => "fetch from the network",
            CallClass::Question | CallClass::Note | CallClass::Other => &format!("call the tool {}", call.tool),
        };
        let mut details = safe_lines(&format!("in {}", facts.cwd));
        if facts.kind == CallClass::Command {
            let _ = writeln!(details, "sandbox {SANDBOX_LEVEL}: it runs with your rights");
        }
        for path in &facts.paths {
            let what = if searches(&call.tool) { "below" } else { "file" };
            details.push_str(&safe_lines(&format!("{what} {path}")));
        }
        if let Some(url) = &facts.url {
            details.push_str(&safe_lines(&format!("address {url}")));
        }
        if let Some("") = diff {
            details.push_str("the file has this text already, so nothing would change\n");
        } else if let Some(diff) = diff {
            details.push_str(&safe_lines(diff));
        } else {
            if facts.kind == CallClass::Edit {
                details.push_str("the text to replace does not occur exactly once, so nothing would change\n");
            }
            // Paths and addresses are above.
            let is_new = |(name, _): &(&str, &Json)| !matches!(*name, "path" | "url");
            for (name, value) in call.arguments.iter().filter(is_new) {
                let _ = write!(details, "{}: ", safe(name));
                details.push_str(&safe_lines(&value.as_str().map_or_else(|| value.to_text(), str::to_owned)));
            }
        }
        let title = safe(&format!("The agent wants to {what}"));
        Self { title, details, options: Vec::new(), is_question }
    }
}

/// Whether a tool reads all that is below a directory.
fn searches(tool: &str) -> bool {
    matches!(tool, "glob" | "grep")
}

/// What is decided when a person says so: the call may run once, or not at all.
pub(crate) fn by_person(is_allowed: bool, by: &str) -> CallDecision {
    if is_allowed {
        decision(CallVerdict::Allow, by, None, None)
    } else {
        decision(CallVerdict::Deny, by, None, Some("denied by the user".to_owned()))
    }
}

/// The answer to a question of the agent. Blanks are none.
pub(crate) fn answered(text: &str, by: &str) -> CallDecision {
    if text.trim().is_empty() {
        return unanswered();
    }
    let mut decision = decision(CallVerdict::Allow, by, None, None);
    decision.answer = Some(text.to_owned());
    decision
}

/// Nobody has decided.
pub(crate) fn unanswered() -> CallDecision {
    decision(CallVerdict::Unanswered, "nobody", None, None)
}
