//! Classifies the texts of a transcript: the author of a user line, the kind of a tool, the kind of an error.

use std::borrow::Cow;

use events::{ErrorClass, ErrorReported, PromptOrigin, ToolKind};

use super::record::{ClaudeLine, MessageBlock, MessageContent, ToolInput};
use agents::borrowed::Text;

pub(super) fn text_block(text: Text<'_>) -> MessageBlock<'_> {
    MessageBlock {
        kind: Text("text".into()),
        text: Some(text),
        thinking: None,
        id: None,
        name: None,
        input: None,
        tool_use_id: None,
        content: MessageContent::Empty,
        is_error: None,
    }
}

/// The author of a user line's text, and the text attributed to them.
pub(super) enum Speaker {
    /// A prompt with this text.
    Prompt(PromptOrigin, String),
    /// A slash command with its arguments. The lines after it determine whether it is a prompt.
    Command(String),
    /// The output of a command that Claude Code ran itself.
    CommandOutput,
    /// A text that Claude Code generated for the model.
    Machine,
}

/// The numbers of a version.
pub(super) fn version_numbers(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    let mut part = || parts.next().flatten();
    Some([part()?, part()?, part()?])
}

/// Tags of texts that Claude Code adds to a user's message.
const REMARKS: [&str; 2] = ["system-reminder", "local-command-caveat"];
/// Tags of a command's output.
const OUTPUTS: [&str; 4] = ["local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr"];
/// Tags of other texts that are not prompts.
const MACHINERY: [&str; 1] = ["user-memory-input"];

/// Determines the author of a user line's text: a person, the agent itself, a command, or Claude Code's machinery.
pub(super) fn who(line: &ClaudeLine<'_>, text: &str, task_of_subagent: bool) -> Speaker {
    let is_human = is_human(line);
    let text = without_remarks(text);
    let said = text.trim();
    if is_tag(said, "task-notification") {
        let summary = between(said, "<summary>", "</summary>").map_or_else(|| without_tags(said), str::to_owned);
        return Speaker::Prompt(PromptOrigin::Wakeup, summary);
    }
    if is_tag(said, "teammate-message") {
        return Speaker::Prompt(PromptOrigin::Agent, without_tags(said));
    }
    if is_tag(said, "bash-input") {
        let command = between(said, "<bash-input>", "</bash-input>").unwrap_or(said);
        return Speaker::Prompt(PromptOrigin::Command, format!("!{command}"));
    }
    if let Some(command) = command(said) {
        return Speaker::Command(command);
    }
    if !is_human && OUTPUTS.iter().any(|tag| is_tag(said, tag)) {
        return Speaker::CommandOutput;
    }
    if said.is_empty() || line.is_meta == Some(true) || line.is_compact_summary == Some(true) {
        return Speaker::Machine;
    }
    if task_of_subagent {
        return Speaker::Prompt(PromptOrigin::Agent, text.into_owned());
    }
    let is_machinery = || REMARKS.iter().chain(&MACHINERY).any(|tag| is_tag(said, tag));
    if !is_human && (line.origin.is_some() || is_machinery()) {
        return Speaker::Machine;
    }
    Speaker::Prompt(PromptOrigin::Human, text.into_owned())
}

/// Whether a line says that a person wrote it. Older versions do not say who wrote a line.
pub(super) fn is_human(line: &ClaudeLine<'_>) -> bool {
    line.origin.as_ref().and_then(|origin| origin.kind.as_deref()) == Some("human")
}

/// Whether a text begins with a tag.
fn is_tag(text: &str, tag: &str) -> bool {
    let rest = text.strip_prefix('<').and_then(|text| text.strip_prefix(tag));
    rest.is_some_and(|rest| rest.starts_with(['>', ' ', '\n']))
}

/// The text without the remarks that Claude Code adds before and after the user's text. A remark without an end is
/// kept.
fn without_remarks(text: &str) -> Cow<'_, str> {
    if !text.contains('<') {
        return Cow::Borrowed(text);
    }
    let mut rest = text;
    let mut kept = String::new();
    while let Some((at, end)) = REMARKS.iter().filter_map(|tag| remark(rest, tag)).min() {
        kept.push_str(&rest[..at]);
        rest = &rest[end..];
    }
    if kept.is_empty() && rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    kept.push_str(rest);
    Cow::Owned(kept.trim().to_owned())
}

/// The range of the first remark with this tag at the beginning of a line.
fn remark(text: &str, tag: &str) -> Option<(usize, usize)> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let mut from = 0;
    while let Some(found) = text[from..].find(&open) {
        let at = from + found;
        let begins_line = text[..at].trim_end_matches([' ', '\t']).ends_with('\n') || text[..at].trim().is_empty();
        let follows_remark = text[..at].trim_end().ends_with('>');
        if begins_line || follows_remark {
            return text[at..].find(&close).map(|end| (at, at + end + close.len()));
        }
        from = at + open.len();
    }
    None
}

/// The text without its tags.
fn without_tags(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('<') {
        words.push_str(before);
        let is_tag = behind.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        match behind.split_once('>').filter(|_| is_tag) {
            Some((_, after)) => rest = after,
            None => {
                words.push('<');
                rest = behind;
            }
        }
    }
    words.push_str(rest);
    words.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

pub(super) fn between<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let after = text.split_once(open)?.1;
    Some(after.split_once(close).map_or(after, |(inside, _)| inside))
}

/// The slash command in a text with the tag `command-name`, as it was typed: name and arguments.
pub(super) fn command(text: &str) -> Option<String> {
    if !is_tag(text, "command-name") && !is_tag(text, "command-message") {
        return None;
    }
    let name = between(text, "<command-name>", "</command-name>")?.trim();
    let arguments = between(text, "<command-args>", "</command-args>").unwrap_or_default().trim();
    Some(format!("{name} {arguments}").trim_end().to_owned())
}

pub(super) fn api_error(line: &ClaudeLine<'_>) -> ErrorReported {
    let status = line.api_error_status.map(|s| s.get().trim_matches('"').to_owned()).filter(|s| s != "null");
    let word = line.error.map(|e| e.get().trim_matches('"')).unwrap_or_default();
    let class = match (word, status.as_deref()) {
        ("authentication_failed" | "oauth_org_not_allowed", _) | (_, Some("401" | "403")) => ErrorClass::Auth,
        ("billing_error", _) | (_, Some("402")) => ErrorClass::Quota,
        ("rate_limit" | "rate_limit_error", _) | (_, Some("429")) => ErrorClass::RateLimit,
        ("invalid_request" | "max_output_tokens", _) => ErrorClass::Context,
        ("server_error" | "overloaded_error", _) => ErrorClass::Provider,
        (_, Some(code)) if code.starts_with('5') => ErrorClass::Provider,
        ("connection_error" | "network_error", _) => ErrorClass::Network,
        _ => ErrorClass::Other,
    };
    let code =
        status.or_else(|| (!word.is_empty() && word.len() < 64 && !word.starts_with('{')).then(|| word.to_owned()));
    ErrorReported { class, code, ends_turn: true, retrying: false }
}

/// The kind of a Claude Code tool.
pub(super) fn tool_kind(name: &str) -> ToolKind {
    match name {
        "Bash" | "BashOutput" | "KillShell" | "KillBash" | "PowerShell" => ToolKind::Execute,
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => ToolKind::Edit,
        "Read" | "Glob" | "Grep" | "LS" | "NotebookRead" => ToolKind::Read,
        "WebFetch" | "WebSearch" => ToolKind::Fetch,
        "ExitPlanMode" => ToolKind::Plan,
        "AskUserQuestion" => ToolKind::Question,
        "Task" | "Agent" => ToolKind::Subagent,
        other if other.starts_with("mcp__") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}

pub(super) fn title(tool: ToolKind, input: &ToolInput<'_>) -> Option<String> {
    let first = match tool {
        ToolKind::Execute => [&input.command, &input.description, &None],
        ToolKind::Edit => [&input.file_path, &input.notebook_path, &input.path],
        ToolKind::Read => [&input.file_path, &input.pattern, &input.path],
        ToolKind::Fetch => [&input.url, &input.query, &None],
        ToolKind::Subagent => [&input.description, &None, &None],
        ToolKind::Mcp | ToolKind::Plan | ToolKind::Question => [&None, &None, &None],
        ToolKind::Other => [&input.skill, &input.description, &input.command],
    };
    first.into_iter().flatten().next().map(|t| t.0.chars().take(400).collect())
}
