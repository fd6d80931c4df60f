//! Interprets a tool call: its kind by its name, a one-line title, its outcome.

use std::borrow::Cow;

use events::{ToolKind, ToolOutcome};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    content::{one_line, unwrap_untrusted},
    record::{Text, ToolCall},
};
use agents::borrowed::escapes::unescaped;

/// The kind of a tool. Names of 0.24 to 0.61; tools of MCP servers are `mcp_<server>_<tool>`, before 0.3x
/// `<server>__<tool>`, and are displayed as `<tool> (<server> MCP Server)`.
pub(crate) fn kind(call: &ToolCall<'_>) -> ToolKind {
    match &*call.name {
        "run_shell_command" | "shell" => ToolKind::Execute,
        "write_file" | "replace" | "edit" | "smart_edit" => ToolKind::Edit,
        "list_directory" | "glob" | "grep" | "grep_search" | "search_file_content" | "ripgrep" => ToolKind::Read,
        "web_fetch" | "google_web_search" => ToolKind::Fetch,
        "ask_user" | "ask_user_question" => ToolKind::Question,
        "exit_plan_mode" => ToolKind::Plan,
        "invoke_agent" | "delegate_to_agent" | "codebase_investigator" | "agent" => ToolKind::Subagent,
        name if name.starts_with("mcp_")
            || call.display_name.as_deref().is_some_and(|d| d.ends_with("MCP Server)")) =>
        {
            ToolKind::Mcp
        }
        name if name.starts_with("read_") => ToolKind::Read,
        _ => ToolKind::Other,
    }
}

/// The arguments that can serve as a title of the call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Args<'a> {
    #[serde(borrow)]
    command: Option<&'a RawValue>,
    #[serde(borrow)]
    file_path: Option<&'a RawValue>,
    #[serde(borrow)]
    absolute_path: Option<&'a RawValue>,
    #[serde(borrow)]
    dir_path: Option<&'a RawValue>,
    #[serde(borrow)]
    path: Option<&'a RawValue>,
    #[serde(borrow)]
    pattern: Option<&'a RawValue>,
    #[serde(borrow)]
    url: Option<&'a RawValue>,
    #[serde(borrow)]
    query: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    objective: Option<&'a RawValue>,
    #[serde(borrow)]
    question: Option<&'a RawValue>,
    #[serde(borrow)]
    questions: Option<&'a RawValue>,
    #[serde(borrow)]
    plan_filename: Option<&'a RawValue>,
    #[serde(borrow)]
    plan_path: Option<&'a RawValue>,
    #[serde(borrow)]
    agent_name: Option<&'a RawValue>,
    #[serde(borrow)]
    is_background: Option<&'a RawValue>,
}

/// The description of a call from its arguments.
#[derive(Debug, Default)]
pub(crate) struct About {
    /// A one-line title for the user.
    pub(crate) title: Option<String>,
    /// The kind of the requested sub-agent.
    pub(crate) agent_type: Option<String>,
    /// Whether the command continues after the call.
    pub(crate) background: bool,
}

/// Describes a call from its arguments, or from the CLI's description of it.
pub(crate) fn about(call: &ToolCall<'_>, kind: ToolKind) -> About {
    let args: Args<'_> = call.args.and_then(|a| serde_json::from_str(a.get()).ok()).unwrap_or_default();
    let first = |of: &[Option<&RawValue>]| of.iter().find_map(|raw| text(*raw));
    let files = [args.file_path, args.absolute_path, args.path, args.dir_path, args.pattern];
    let said = match kind {
        ToolKind::Execute => first(&[args.command]),
        ToolKind::Edit => first(&files),
        ToolKind::Read => match &*call.name {
            "glob" | "grep" | "grep_search" | "search_file_content" | "ripgrep" => {
                first(&[args.pattern]).or_else(|| first(&files))
            }
            _ => first(&files),
        },
        ToolKind::Fetch => first(&[args.url, args.query, args.prompt]),
        ToolKind::Question => first_question(args.questions).or_else(|| first(&[args.question])),
        ToolKind::Plan => first(&[args.plan_filename, args.plan_path]),
        ToolKind::Subagent => first(&[args.prompt, args.objective, args.query]),
        ToolKind::Mcp | ToolKind::Other => None,
    };
    let described = || call.description.as_deref().map(str::to_owned);
    About {
        title: said.or_else(described).map(|t| one_line(&t)).filter(|t| !t.is_empty()),
        agent_type: (kind == ToolKind::Subagent).then(|| text(args.agent_name)).flatten(),
        background: args.is_background.is_some_and(|b| b.get() == "true"),
    }
}

fn text(raw: Option<&RawValue>) -> Option<String> {
    unescaped(raw?).filter(|t| !t.trim().is_empty()).map(Cow::into_owned)
}

fn first_question(raw: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct QuestionArgument<'a> {
        #[serde(borrow)]
        question: Option<Text<'a>>,
    }
    let asked: Vec<QuestionArgument<'_>> = serde_json::from_str(raw?.get()).ok()?;
    asked.into_iter().find_map(|q| q.question).map(|q| q.0.into_owned())
}

/// The end of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) outcome: ToolOutcome,
    pub(super) exit_code: Option<i32>,
    /// The readable output.
    pub(super) text: String,
}

/// Texts in the result of a call that the user refused: 0.61.0, 0.10.0.
const DENIALS: [&str; 2] = ["User denied execution", "User did not allow tool call"];

/// Determines how a call ended; `None` while it has not.
pub(super) fn ending(call: &mut ToolCall<'_>, kind: ToolKind) -> Option<Ending> {
    let status = call.status.as_deref()?;
    if !matches!(status, "success" | "error" | "cancelled") {
        return None;
    }
    let mut texts = std::mem::take(&mut call.result.0);
    let text = match texts.len() {
        0 => call.result_display.and_then(unescaped).unwrap_or_default(),
        1 => texts.swap_remove(0),
        _ => texts.join("\n").into(),
    };
    let bare = unwrap_untrusted(&text);
    let exit_code = (kind == ToolKind::Execute).then(|| exit_code(bare)).flatten();
    let outcome = match status {
        "cancelled" if DENIALS.iter().any(|denial| bare.contains(denial)) => ToolOutcome::Denied,
        "cancelled" => ToolOutcome::Cancelled,
        "error" if bare.contains("Tool execution blocked") => ToolOutcome::Blocked,
        "error" => ToolOutcome::Error,
        _ if exit_code.is_some_and(|c| c != 0) => ToolOutcome::Error,
        _ => ToolOutcome::Ok,
    };
    let text = if bare.len() == text.len() { text.into_owned() } else { bare.to_owned() };
    Some(Ending { outcome, exit_code, text })
}

/// The number in the line `Exit Code: N` that follows the output of a failed command, a few lines before the end
/// (0.61.0; a failed command still has the status `success`).
fn exit_code(output: &str) -> Option<i32> {
    const LABEL: &[u8] = b"Exit Code: ";
    let end = &output.as_bytes()[output.len().saturating_sub(1024)..];
    let at = end.windows(LABEL.len()).rposition(|w| w == LABEL)?;
    if at > 0 && end[at - 1] != b'\n' {
        return None;
    }
    let number = end[at + LABEL.len()..].split(|b| *b == b'\n').next()?;
    std::str::from_utf8(number).ok()?.trim().parse().ok()
}
