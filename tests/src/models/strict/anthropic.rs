//! Anthropic's Messages. <https://platform.claude.com/docs/en/api/messages>

use serde_json::Value;

use super::{Checked, ensure, is_name, list, names, only, refuse, schema, text};
use crate::models::signature::signed;

pub(super) fn check(body: &Value) -> Checked {
    // The API checks requests against a closed schema: "Extra inputs are not permitted" (anthropic-sdk-python#1092 and
    // many others).
    let known = [
        "model",
        "max_tokens",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "stream",
        "metadata",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "service_tier",
        "cache_control",
    ];
    only(body, "body", &known)?;
    text(&body["model"], "model")?;
    let max = body["max_tokens"].as_u64().unwrap_or_default();
    ensure(max >= 1, || "max_tokens: Field required".to_owned())?;
    thinking(body, max)?;
    tools(body)?;
    markers(body)?;
    system(&body["system"])?;
    messages(body)
}

/// …/build-with-claude/extended-thinking: at least 1,024 tokens, fewer than max_tokens.
fn thinking(body: &Value, max: u64) -> Checked {
    let thinking = &body["thinking"];
    match thinking["type"].as_str() {
        None => ensure(thinking.is_null(), || "thinking.type: Field required".to_owned()),
        Some("enabled") => {
            only(thinking, "thinking", &["type", "budget_tokens", "display"])?;
            let budget = thinking["budget_tokens"].as_u64().unwrap_or_default();
            ensure(budget >= 1024, || {
                "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024".to_owned()
            })?;
            ensure(budget < max, || "`max_tokens` must be greater than `thinking.budget_tokens`".to_owned())
        }
        Some("adaptive" | "disabled") => only(thinking, "thinking", &["type", "display"]),
        Some(other) => refuse(format!("thinking: Input tag '{other}' found does not match any of the expected tags")),
    }
}

/// …/agents-and-tools/tool-use/implement-tool-use: the name's pattern, the schema.
fn tools(body: &Value) -> Checked {
    if body["tools"].is_null() {
        return Ok(());
    }
    let tools = list(&body["tools"], "tools")?;
    for (n, tool) in tools.iter().enumerate() {
        let at = format!("tools.{n}");
        only(
            tool,
            &at,
            &["name", "description", "input_schema", "cache_control", "type", "strict", "eager_input_streaming"],
        )?;
        schema(&tool["input_schema"], &format!("{at}.custom.input_schema"))?;
    }
    names(tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default()), 128)
}

fn system(system: &Value) -> Checked {
    for block in system.as_array().into_iter().flatten() {
        only(block, "system", &["type", "text", "cache_control", "citations"])?;
        blank(text(&block["text"], "system.text")?, "system")?;
    }
    ensure(system.is_null() || system.is_array() || system.is_string(), || {
        "system: Input should be a valid string or list".to_owned()
    })
}

/// …/build-with-claude/prompt-caching: at most 4, those for an hour first, not on thinking, not on empty text.
fn markers(body: &Value) -> Checked {
    let blocks = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let mut all = blocks(&body["tools"]);
    all.extend(blocks(&body["system"]));
    all.extend(blocks(&body["messages"]).iter().flat_map(|message| blocks(&message["content"])));
    let marked: Vec<&Value> = all.iter().filter(|block| !block["cache_control"].is_null()).collect();
    let count = marked.len();
    ensure(count <= 4, || format!("A maximum of 4 blocks with cache_control may be provided. Found {count}."))?;
    let mut short = false;
    for block in marked {
        let marker = &block["cache_control"];
        only(marker, "cache_control", &["type", "ttl"])?;
        ensure(marker["type"] == "ephemeral", || "cache_control.type: Input should be 'ephemeral'".to_owned())?;
        let hour = match marker["ttl"].as_str() {
            None | Some("5m") => false,
            Some("1h") => true,
            Some(_) => return refuse("cache_control.ephemeral.ttl: Input should be '5m' or '1h'"),
        };
        ensure(!(hour && short), || {
            "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block".to_owned()
        })?;
        short |= !hour;
        let kind = block["type"].as_str().unwrap_or_default();
        ensure(!kind.ends_with("thinking"), || format!("{kind}: cache_control: Extra inputs are not permitted"))?;
    }
    Ok(())
}

/// "text content blocks must be non-empty", "… must contain non-whitespace text": both are reported (litellm#4491,
/// continue#2155).
fn blank(text: &str, at: &str) -> Checked {
    ensure(!text.is_empty(), || format!("{at}: text content blocks must be non-empty"))?;
    ensure(!text.trim().is_empty(), || format!("{at}: text content blocks must contain non-whitespace text"))
}

/// A turn: consecutive messages with the same role are one turn.
struct Turn<'a> {
    role: &'a str,
    blocks: Vec<Value>,
}

fn messages(body: &Value) -> Checked {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    let messages = list(&body["messages"], "messages")?;
    ensure(!messages.is_empty(), || "messages: at least one message is required".to_owned())?;
    for (n, message) in messages.iter().enumerate() {
        let at = format!("messages.{n}");
        only(message, &at, &["role", "content"])?;
        let role = text(&message["role"], &at)?;
        ensure(matches!(role, "user" | "assistant"), || {
            format!("{at}.role: Input should be 'user' or 'assistant'; use the top-level `system` parameter")
        })?;
        let blocks = match message["content"].as_str() {
            Some(text) => vec![serde_json::json!({ "type": "text", "text": text })],
            None => list(&message["content"], &format!("{at}.content"))?.to_vec(),
        };
        ensure(!blocks.is_empty(), || format!("{at}: all messages must have non-empty content"))?;
        for block in &blocks {
            self::block(block, role, &at)?;
        }
        // "Consecutive user or assistant turns in your request will be combined into a single turn": API reference.
        match turns.last_mut().filter(|turn| turn.role == role) {
            Some(turn) => turn.blocks.extend(blocks),
            None => turns.push(Turn { role, blocks }),
        }
    }
    ensure(turns.first().is_some_and(|turn| turn.role == "user"), || {
        "messages: first message must use the \"user\" role".to_owned()
    })?;
    // Models since Opus 4.6 refuse to continue an answer.
    ensure(turns.last().is_some_and(|turn| turn.role == "user"), || {
        "This model does not support assistant message prefill. The conversation must end with a user message."
            .to_owned()
    })?;
    pairs(&turns, body)?;
    loop_begins_with_thinking(&turns, body)
}

fn block(block: &Value, role: &str, at: &str) -> Checked {
    let kind = block["type"].as_str().unwrap_or_default();
    let belongs_to = match kind {
        "text" => {
            only(block, at, &["type", "text", "cache_control", "citations"])?;
            blank(text(&block["text"], at)?, at)?;
            None
        }
        "image" => {
            only(block, at, &["type", "source", "cache_control"])?;
            ensure(block["source"]["data"].is_string() || block["source"]["url"].is_string(), || {
                format!("{at}: image.source")
            })?;
            Some("user")
        }
        "tool_use" => {
            only(block, at, &["type", "id", "name", "input", "cache_control", "caller", "toolset_name"])?;
            let id = text(&block["id"], at)?;
            ensure(is_name(id, 64), || format!("{at}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"))?;
            text(&block["name"], at)?;
            ensure(block["input"].is_object(), || format!("{at}: tool_use.input: Input should be a valid dictionary"))?;
            Some("assistant")
        }
        "tool_result" => {
            only(block, at, &["type", "tool_use_id", "content", "is_error", "cache_control"])?;
            for part in block["content"].as_array().into_iter().flatten() {
                ensure(matches!(part["type"].as_str(), Some("text" | "image")), || {
                    format!("{at}: tool_result.content")
                })?;
                if part["type"] == "text" {
                    blank(text(&part["text"], at)?, at)?;
                }
            }
            Some("user")
        }
        "thinking" => {
            only(block, at, &["type", "thinking", "signature"])?;
            let (said, signature) = (text(&block["thinking"], at)?, text(&block["signature"], at)?);
            // "Invalid `signature` in `thinking` block": claude-code#10199 and others.
            ensure(signed(signature).as_deref() == Some(said), || {
                format!("{at}: Invalid `signature` in `thinking` block")
            })?;
            Some("assistant")
        }
        "redacted_thinking" => {
            only(block, at, &["type", "data"])?;
            ensure(signed(text(&block["data"], at)?).is_some(), || {
                format!("{at}: Invalid `data` in `redacted_thinking` block")
            })?;
            Some("assistant")
        }
        other => {
            return refuse(format!(
                "{at}: Input tag '{other}' found using 'type' does not match any of the expected tags"
            ));
        }
    };
    ensure(belongs_to.is_none_or(|role_of| role_of == role), || {
        format!("{at}: `{kind}` blocks are not allowed for the role {role}")
    })
}

/// …/tool-use/implement-tool-use, "Handling tool use": each call has its result in the next turn, results first;
/// results without a call are refused. That results must be in the order of the calls is not documented: the harsher
/// reading.
fn pairs(turns: &[Turn<'_>], body: &Value) -> Checked {
    let mut ids: Vec<String> = Vec::new();
    let of = |turn: &Turn<'_>, kind: &str, key: &str| -> Vec<String> {
        let blocks = turn.blocks.iter().filter(|block| block["type"] == kind);
        blocks.filter_map(|block| block[key].as_str().map(str::to_owned)).collect()
    };
    let mut awaited: Vec<String> = Vec::new();
    for (n, turn) in turns.iter().enumerate() {
        let results = of(turn, "tool_result", "tool_use_id");
        if let Some(stray) = results.iter().find(|id| !awaited.contains(id)) {
            return refuse(format!(
                "messages.{n}: unexpected `tool_use_id` found in `tool_result` blocks: {stray}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            ));
        }
        if let Some(missing) = awaited.iter().find(|id| !results.contains(id)) {
            return refuse(format!(
                "messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
            ));
        }
        let mut once = results.clone();
        once.dedup();
        ensure(once.len() == results.len(), || "each tool_use must have a single result".to_owned())?;
        ensure(results == awaited, || {
            format!("messages.{n}: `tool_result` blocks are not in the order of their `tool_use` blocks")
        })?;
        let leading = turn.blocks.iter().take_while(|block| block["type"] == "tool_result").count();
        ensure(leading == results.len(), || {
            format!("messages.{n}: `tool_result` blocks must come first in the content")
        })?;
        awaited = of(turn, "tool_use", "id");
        for id in &awaited {
            ensure(!ids.contains(id), || "messages: `tool_use` ids must be unique".to_owned())?;
            ids.push(id.clone());
        }
    }
    // litellm#3033: "Requests which include `tool_use` or `tool_result` blocks must define tools".
    let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    ensure(ids.is_empty() || has_tools, || {
        "Requests which include `tool_use` or `tool_result` blocks must define tools".to_owned()
    })
}

/// …/extended-thinking: with thinking enabled, an answer with calls whose results are in this request begins with its
/// thinking. With adaptive thinking it may be absent.
fn loop_begins_with_thinking(turns: &[Turn<'_>], body: &Value) -> Checked {
    let [.., answer, last] = turns else { return Ok(()) };
    let in_loop = last.blocks.iter().any(|block| block["type"] == "tool_result");
    let first = answer.blocks.first().and_then(|block| block["type"].as_str()).unwrap_or_default();
    ensure(body["thinking"]["type"] != "enabled" || !in_loop || first.ends_with("thinking"), || {
        format!(
            "Expected `thinking` or `redacted_thinking`, but found `{first}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
        )
    })
}
