//! Classifies the texts of a transcript: who wrote a user line, what a tool does, what kind an error is.

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

pub(super) enum Speaker {
    Prompt(PromptOrigin),
    Command(String),
    Machine,
}

/// The numbers of a version.
pub(super) fn version_numbers(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    let mut part = || parts.next().flatten();
    Some([part()?, part()?, part()?])
}

/// Who is behind a user line's text: a person, the agent itself, a command, or machinery.
pub(super) fn who(line: &ClaudeLine<'_>, text: &str, task_of_subagent: bool) -> Speaker {
    if text.starts_with("<task-notification>") {
        return Speaker::Prompt(PromptOrigin::Wakeup);
    }
    if text.starts_with("<bash-input>") {
        return Speaker::Prompt(PromptOrigin::Command);
    }
    if let Some(name) = command_name(text) {
        return Speaker::Command(name);
    }
    if line.is_meta == Some(true) || line.is_compact_summary == Some(true) {
        return Speaker::Machine;
    }
    if task_of_subagent {
        return Speaker::Prompt(PromptOrigin::Agent);
    }
    let human = line.origin.as_ref().and_then(|o| o.kind.as_deref()) == Some("human");
    let tagged = [
        "<local-command-stdout>",
        "<local-command-stderr>",
        "<local-command-caveat>",
        "<bash-stdout>",
        "<bash-stderr>",
        "<system-reminder>",
        "<user-memory-input>",
    ];
    if !human && (line.origin.is_some() || tagged.iter().any(|tag| text.starts_with(tag))) {
        return Speaker::Machine;
    }
    Speaker::Prompt(PromptOrigin::Human)
}

pub(super) fn between<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let after = text.split_once(open)?.1;
    Some(after.split_once(close).map_or(after, |(inside, _)| inside))
}

/// The slash command in a `<command-name>` text.
pub(super) fn command_name(text: &str) -> Option<String> {
    if !text.trim_start().starts_with("<command-name>") && !text.trim_start().starts_with("<command-message>") {
        return None;
    }
    between(text, "<command-name>", "</command-name>").map(|name| name.trim().to_owned())
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

/// What a tool of Claude Code does.
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
