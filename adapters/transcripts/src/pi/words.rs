//! Classifies names and texts: tools, errors, and the outcome of a command.

use events::{ErrorClass, Stop, ToolKind, ToolOutcome};

use super::record::{PiField, shape, words};
use serde::Deserialize;

/// The kind of a tool: pi's own tools, those oh-my-pi adds, and those of MCP servers.
pub(super) fn tool_kind(name: &str) -> ToolKind {
    match name {
        "bash" | "python" | "ssh" | "eval" => ToolKind::Execute,
        "edit" | "write" | "ast_edit" | "notebook" => ToolKind::Edit,
        "read" | "grep" | "find" | "ls" | "glob" | "search" | "ast_grep" | "lsp" => ToolKind::Read,
        "fetch" | "web_fetch" | "web_search" | "browser" => ToolKind::Fetch,
        "ask" => ToolKind::Question,
        "exit_plan_mode" => ToolKind::Plan,
        "task" | "subagent" => ToolKind::Subagent,
        name if name.starts_with("mcp_") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Arguments<'a> {
    #[serde(borrow)]
    command: PiField<'a>,
    #[serde(borrow)]
    path: PiField<'a>,
    #[serde(borrow)]
    file_path: PiField<'a>,
    #[serde(borrow)]
    pattern: PiField<'a>,
    #[serde(borrow)]
    url: PiField<'a>,
    #[serde(borrow)]
    query: PiField<'a>,
    #[serde(borrow)]
    question: PiField<'a>,
    #[serde(borrow)]
    task: PiField<'a>,
    #[serde(borrow)]
    prompt: PiField<'a>,
    #[serde(borrow)]
    items: PiField<'a>,
}

/// An item of the to-do list of capture's own agent (`runtime/tools/schemas.json`, `todo`).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TodoItem<'a> {
    #[serde(borrow)]
    text: PiField<'a>,
    #[serde(borrow)]
    state: PiField<'a>,
}

/// The progress of a to-do list, and its current item.
fn todo_progress(items: PiField<'_>) -> Option<String> {
    let items: Vec<TodoItem<'_>> = serde_json::from_str(items?.get()).ok()?;
    let is_in = |item: &TodoItem<'_>, state: &str| words(item.state).is_some_and(|found| found == state);
    let done = items.iter().filter(|item| is_in(item, "done")).count();
    let now = items.iter().find(|item| is_in(item, "in_progress")).and_then(|item| words(item.text));
    let count = (!items.is_empty()).then(|| format!("{done} of {} done", items.len()))?;
    Some(match now {
        Some(now) => format!("{count}, now: {}", one_line(&now)),
        None => count,
    })
}

/// The title of a call: the command, the file, the URL.
pub(super) fn title(name: &str, tool: ToolKind, arguments: PiField<'_>) -> Option<String> {
    let of: Arguments<'_> = shape(arguments);
    if name == "todo" {
        return todo_progress(of.items);
    }
    let first = match tool {
        ToolKind::Execute => [of.command, None, None],
        ToolKind::Edit => [of.path, of.file_path, None],
        ToolKind::Read => [of.pattern, of.path, of.file_path],
        ToolKind::Fetch => [of.url, of.query, None],
        ToolKind::Question => [of.question, None, None],
        ToolKind::Subagent => [of.task, of.prompt, None],
        ToolKind::Mcp | ToolKind::Plan | ToolKind::Other => [None, None, None],
    };
    first.into_iter().find_map(words).map(|text| one_line(&text))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(500).collect()
}

/// Why a message ended. A message with calls is followed by its tools whatever its reason is, unless it failed.
pub(super) fn stop(reason: Option<&str>, calls: u32) -> Option<Stop> {
    Some(match reason? {
        "aborted" => Stop::Aborted,
        "error" => Stop::Other,
        _ if calls > 0 => Stop::ToolUse,
        "stop" => Stop::EndTurn,
        "length" => Stop::MaxTokens,
        _ => Stop::Other,
    })
}

/// The outcome of a call, and its exit code.
pub(super) fn outcome(failed: bool, text: &str) -> (ToolOutcome, Option<i32>) {
    let code = exit_code(text);
    let outcome = match failed {
        false => ToolOutcome::Ok,
        true if code.is_none() && text.trim_end().ends_with("aborted") => ToolOutcome::Cancelled,
        true => ToolOutcome::Error,
    };
    (outcome, code.filter(|_| failed))
}

/// The last line of a failed command: `Command exited with code N`.
fn exit_code(text: &str) -> Option<i32> {
    text.trim_end().lines().next_back()?.strip_prefix("Command exited with code ")?.parse().ok()
}

/// The class of an error according to its message, and the HTTP status at its beginning.
pub(super) fn error_class(message: &str) -> (ErrorClass, Option<String>) {
    let status = message.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| {
        word.len() == 3 && word.bytes().all(|b| b.is_ascii_digit()) && matches!(word.as_bytes()[0], b'4' | b'5')
    });
    let text = message.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let class = if matches!(status, Some("401" | "403"))
        || has(&["api key", "api_key", "authentication", "unauthorized", "not logged in"])
    {
        ErrorClass::Auth
    } else if has(&["context window", "context length", "prompt is too long", "maximum context", "too many tokens"]) {
        ErrorClass::Context
    } else if status == Some("402") || has(&["quota", "usage limit", "usage_limit", "billing", "credit balance"]) {
        ErrorClass::Quota
    } else if status == Some("429") || has(&["rate limit", "rate_limit", "too many requests"]) {
        ErrorClass::RateLimit
    } else if status.is_some_and(|s| s.starts_with('5'))
        || has(&["overloaded", "server error", "internal error", "service unavailable"])
    {
        ErrorClass::Provider
    } else if has(&["fetch failed", "connection", "econn", "enotfound", "etimedout", "socket", "network", "timed out"])
    {
        ErrorClass::Network
    } else {
        ErrorClass::Other
    };
    // The wording of our own agent.
    let is_refusal = message.starts_with("the model refused to answer");
    (class, if is_refusal { Some("refused".to_owned()) } else { status.map(str::to_owned) })
}
