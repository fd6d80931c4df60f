//! Converts a context to the messages sent to a model: `convertToLlm` of pi 0.87.1.
//!
//! Summaries, messages of extensions and commands run by the user become user messages; roles unknown to models are
//! omitted. Joining consecutive user messages and handling failed answers is left to the provider.

use std::borrow::Cow;

use crate::{
    context::messages::blocks,
    json::{Json, Object},
};

const COMPACTION_PREFIX: &str =
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n";
const COMPACTION_SUFFIX: &str = "\n</summary>";
const BRANCH_PREFIX: &str =
    "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n";
const BRANCH_SUFFIX: &str = "</summary>";

/// The messages for a model, in the order of the context.
#[must_use]
pub fn to_model<'a>(messages: impl IntoIterator<Item = &'a Object>) -> Vec<Cow<'a, Object>> {
    messages.into_iter().filter_map(message_for_model).collect()
}

/// The message as sent to a model; `None` if it is not sent.
#[must_use]
pub fn message_for_model(message: &Object) -> Option<Cow<'_, Object>> {
    let summary = |prefix: &str, suffix: &str| {
        let text = format!("{prefix}{}{suffix}", template(message.get("summary")));
        Some(Cow::Owned(user(Some(blocks(Json::String(text))), message)))
    };
    match message.text("role")? {
        "system" | "user" | "assistant" | "toolResult" => Some(Cow::Borrowed(message)),
        "bashExecution" if is_true(message, "excludeFromContext") => None,
        "bashExecution" => Some(Cow::Owned(user(Some(blocks(Json::String(command_text(message)))), message))),
        "custom" => Some(Cow::Owned(user(message.get("content").cloned().map(blocks), message))),
        "branchSummary" => summary(BRANCH_PREFIX, BRANCH_SUFFIX),
        "compactionSummary" => summary(COMPACTION_PREFIX, COMPACTION_SUFFIX),
        _ => None,
    }
}

fn user(content: Option<Json>, of: &Object) -> Object {
    let message = Object::new().with("role", "user").with_some("content", content);
    message.with_some("timestamp", of.get("timestamp").cloned())
}

/// A command run by the user, and its result.
fn command_text(message: &Object) -> String {
    let mut text = format!("Ran `{}`\n", template(message.get("command")));
    if is_true(message, "output") {
        text += &format!("```\n{}\n```", template(message.get("output")));
    } else {
        text += "(no output)";
    }
    let code = message.get("exitCode");
    if is_true(message, "cancelled") {
        text += "\n\n(command cancelled)";
    } else if code.is_some_and(|code| *code != Json::Null && code.as_f64() != Some(0.0)) {
        text += &format!("\n\nCommand exited with code {}", template(code));
    }
    if is_true(message, "truncated") && is_true(message, "fullOutputPath") {
        text += &format!("\n\n[Output truncated. Full output: {}]", template(message.get("fullOutputPath")));
    }
    text
}

fn is_true(message: &Object, key: &str) -> bool {
    message.get(key).is_some_and(Json::is_truthy)
}

/// The result of a JavaScript template for a value.
fn template(value: Option<&Json>) -> String {
    value.map_or_else(|| "undefined".to_owned(), Json::to_template)
}
