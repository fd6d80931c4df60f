//! Answers queries about the entries of a session, as JSON texts.

use session_tree::{Context, Entry, Json, Object, Tree, compaction::context_tokens, context::text_of};

/// `get_messages`: the messages of the context.
#[must_use]
pub fn messages(tree: &Tree) -> String {
    let context = Context::of(tree, tree.leaf());
    let messages: Vec<String> = context.messages().map(Object::to_text).collect();
    format!(r#"{{"messages":[{}]}}"#, messages.join(","))
}

/// The number of messages in the context.
#[must_use]
pub fn message_count(tree: &Tree) -> usize {
    Context::of(tree, tree.leaf()).messages().count()
}

/// `get_entries`: the entries, or those after one.
///
/// # Errors
/// The entry does not exist.
pub fn entries(tree: &Tree, since: Option<&str>) -> Result<String, String> {
    let all = tree.entries();
    let after = match since {
        None => 0,
        Some(id) => {
            let at = all.iter().position(|entry| entry.id() == Some(id));
            at.ok_or_else(|| format!("Entry not found: {id}"))? + 1
        }
    };
    let lines: Vec<String> = all[after..].iter().map(Entry::to_line).collect();
    Ok(format!(r#"{{"entries":[{}],"leafId":{}}}"#, lines.join(","), leaf(tree)))
}

/// `get_tree`: the entries as nested nodes.
#[must_use]
pub fn tree(tree: &Tree) -> String {
    let outline = tree.outline();
    let mut text = String::from(r#"{"tree":["#);
    // A session may be as deep as it is long, so this does not recurse.
    let mut open: Vec<Object> = Vec::new();
    let mut is_first = true;
    for node in &outline.nodes {
        while open.len() > node.depth {
            close(&mut open, &mut text);
            is_first = false;
        }
        if !is_first {
            text.push(',');
        }
        text.push_str(r#"{"entry":"#);
        text.push_str(&node.entry.to_line());
        text.push_str(r#","children":["#);
        let label = node.label.map_or_else(Object::new, |label| {
            let written_at = label.written_at().cloned();
            Object::new().with("label", label.label().clone()).with_some("labelTimestamp", written_at)
        });
        open.push(label);
        is_first = true;
    }
    while !open.is_empty() {
        close(&mut open, &mut text);
    }
    text.push_str("],\"leafId\":");
    text.push_str(&leaf(tree));
    text.push('}');
    text
}

/// Ends a node of the tree.
fn close(open: &mut Vec<Object>, text: &mut String) {
    text.push(']');
    for (key, value) in open.pop().unwrap_or_default().iter() {
        text.push_str(&format!(",\"{key}\":{}", value.to_text()));
    }
    text.push('}');
}

/// `get_fork_messages`: the user messages on the branch.
#[must_use]
pub fn fork_messages(tree: &Tree) -> String {
    let path = tree.leaf_path();
    let said = path.into_iter().filter_map(|entry| {
        let message = entry.message().filter(|message| message.text("role") == Some("user"))?;
        let text = text_of(message.get("content")?, "");
        let told = Object::new().with("entryId", entry.id()?).with("text", text.as_str());
        (!text.is_empty()).then(|| Json::from(told))
    });
    Object::new().with("messages", said.collect::<Vec<Json>>()).to_text()
}

/// `get_last_assistant_text`: the text of the last answer with one.
#[must_use]
pub fn last_text(tree: &Tree) -> String {
    let path = tree.leaf_path();
    let answers = path.iter().rev().filter_map(|entry| entry.message());
    let texts = answers.filter(|message| message.text("role") == Some("assistant")).filter_map(|m| m.get("content"));
    let text = texts.map(|content| text_of(content, "").trim().to_owned()).find(|text| !text.is_empty());
    Object::new().with("text", text.map_or(Json::Null, Json::from)).to_text()
}

/// `get_session_stats` without the session's file and id: messages, tokens, cost, and how full the context is.
/// `context_window`: the size of the model's context, in tokens.
#[must_use]
pub fn stats(tree: &Tree, context_window: Option<u64>) -> Object {
    let path = tree.leaf_path();
    let context = Context::of_path(&path);
    let of_role = |role: &str| context.messages().filter(|message| message.text("role") == Some(role)).count() as u64;
    let calls = |message: &Object| {
        let blocks = message.get("content").and_then(Json::as_array).unwrap_or_default();
        blocks.iter().filter_map(Json::as_object).filter(|block| block.text("type") == Some("toolCall")).count() as u64
    };
    let calls: u64 = context.messages().map(calls).sum();
    let usages = tree.entries().iter().filter_map(|entry| entry.message()?.get("usage")?.as_object());
    let mut totals = [0.0; 5];
    for usage in usages {
        let cost = usage.get("cost").and_then(Json::as_object).and_then(|cost| cost.get("total"));
        let parts = ["input", "output", "cacheRead", "cacheWrite"].map(|key| usage.get(key)).into_iter().chain([cost]);
        for (total, part) in totals.iter_mut().zip(parts) {
            *total += part.and_then(Json::as_f64).unwrap_or(0.0);
        }
    }
    let [input, output, read, write, cost] = totals;
    let tokens = Object::new()
        .with("input", number(input))
        .with("output", number(output))
        .with("cacheRead", number(read))
        .with("cacheWrite", number(write))
        .with("total", number(input + output + read + write));
    let stats = Object::new()
        .with("userMessages", of_role("user"))
        .with("assistantMessages", of_role("assistant"))
        .with("toolCalls", calls)
        .with("toolResults", of_role("toolResult"))
        .with("totalMessages", context.messages().count() as u64)
        .with("tokens", tokens)
        .with("cost", number(cost));
    let Some(window) = context_window.filter(|window| *window > 0) else { return stats };
    let tokens = context_tokens(&context, &path).tokens;
    #[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
    let percent = tokens as f64 / window as f64 * 100.0;
    let usage = Object::new().with("tokens", tokens).with("contextWindow", window);
    stats.with("contextUsage", usage.with("percent", number(percent)))
}

/// A number as JavaScript writes it: integers without a fraction.
#[must_use]
pub fn number(value: f64) -> Json {
    const EXACT: f64 = 9e15;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole and small")]
    if value.fract() == 0.0 && (0.0..EXACT).contains(&value) {
        return Json::from(value as u64);
    }
    serde_json::Number::from_f64(value).map_or(Json::Null, Json::Number)
}

fn leaf(tree: &Tree) -> String {
    tree.leaf_id().map_or(Json::Null, Json::from).to_text()
}

#[cfg(test)]
mod tests;
