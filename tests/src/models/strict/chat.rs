//! OpenAI's Chat Completions. <https://platform.openai.com/docs/api-reference/chat/create>

use serde_json::Value;

use super::{Checked, ensure, list, names, only, refuse, schema, text};

pub(super) fn check(body: &Value) -> Checked {
    // "Unrecognized request argument supplied: x".
    let known = [
        "model",
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "stream",
        "stream_options",
        "store",
        "max_completion_tokens",
        "max_tokens",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning_effort",
        "temperature",
        "top_p",
        "metadata",
        "service_tier",
        "user",
    ];
    only(body, "body", &known)?;
    text(&body["model"], "model")?;
    let key = body["prompt_cache_key"].as_str().unwrap_or_default();
    ensure(key.chars().count() <= 64, || "Invalid 'prompt_cache_key': string too long".to_owned())?;
    ensure(body["stream_options"].is_null() || body["stream"] == true, || {
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.".to_owned()
    })?;
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    // "[] is too short - 'tools'"
    ensure(body["tools"].is_null() || !tools.is_empty(), || "Invalid 'tools': empty array".to_owned())?;
    for (n, tool) in tools.iter().enumerate() {
        let at = format!("tools[{n}]");
        only(tool, &at, &["type", "function"])?;
        ensure(tool["type"] == "function", || format!("{at}.type"))?;
        only(&tool["function"], &format!("{at}.function"), &["name", "description", "parameters", "strict"])?;
        schema(&tool["function"]["parameters"], &format!("Invalid schema for function, {at}"))?;
    }
    names(tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap_or_default()), 64)?;
    messages(body)
}

fn messages(body: &Value) -> Checked {
    let messages = list(&body["messages"], "messages")?;
    ensure(!messages.is_empty(), || "Invalid 'messages': empty array".to_owned())?;
    let mut awaited: Vec<&str> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let at = format!("messages.[{n}]");
        let role = text(&message["role"], &at)?;
        if role == "tool" {
            only(message, &at, &["role", "tool_call_id", "content"])?;
            let id = text(&message["tool_call_id"], &at)?;
            // "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'." In the order of
            // the calls: the harsher reading.
            ensure(awaited.first() == Some(&id), || {
                format!("{at}: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
            })?;
            awaited.remove(0);
            content(&message["content"], &["text"], &at)?;
            continue;
        }
        ensure(awaited.is_empty(), || {
            format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {awaited:?}"
            )
        })?;
        match role {
            "system" | "developer" => {
                only(message, &at, &["role", "content", "name"])?;
                content(&message["content"], &["text"], &at)?;
            }
            "user" => {
                only(message, &at, &["role", "content", "name"])?;
                content(&message["content"], &["text", "image_url"], &at)?;
            }
            "assistant" => awaited = assistant(message, &at)?,
            other => {
                return refuse(format!(
                    "Invalid value: '{other}'. Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'."
                ));
            }
        }
    }
    ensure(awaited.is_empty(), || format!("tool_call_ids did not have response messages: {awaited:?}"))
}

/// Checks an assistant message; returns the ids of its calls.
fn assistant<'a>(message: &'a Value, at: &str) -> Result<Vec<&'a str>, super::Refusal> {
    // A server that shows its thinking accepts it back: https://api-docs.deepseek.com/guides/thinking_mode. pi-ai
    // 0.87.1 sends it.
    only(message, at, &["role", "content", "tool_calls", "refusal", "name", "audio", "reasoning_content"])?;
    let thought = &message["reasoning_content"];
    ensure(thought.is_null() || thought.is_string(), || format!("{at}.reasoning_content"))?;
    let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    // "[] is too short - 'messages.1.tool_calls'"
    ensure(message["tool_calls"].is_null() || !calls.is_empty(), || format!("Invalid '{at}.tool_calls': empty array"))?;
    if message["content"].is_null() {
        // "Invalid value for 'content': expected a string, got null."
        ensure(!calls.is_empty(), || format!("{at}: Invalid value for 'content': expected a string, got null."))?;
    } else {
        content(&message["content"], &["text", "refusal"], at)?;
    }
    let mut ids = Vec::new();
    for call in calls {
        only(call, &format!("{at}.tool_calls"), &["id", "type", "function"])?;
        only(&call["function"], &format!("{at}.tool_calls.function"), &["name", "arguments"])?;
        let id = text(&call["id"], &format!("{at}.tool_calls.id"))?;
        ensure(!id.is_empty() && id.len() <= 40, || {
            format!("Invalid '{at}.tool_calls[0].id': string too long. Expected a string with maximum length 40")
        })?;
        ensure(!ids.contains(&id), || format!("{at}: duplicate tool_call id"))?;
        ensure(call["type"] == "function", || format!("{at}.tool_calls.type"))?;
        text(&call["function"]["name"], at)?;
        let arguments = text(&call["function"]["arguments"], at)?;
        // llama.cpp: "Failed to parse tool call arguments as JSON"
        ensure(serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()), || {
            format!("{at}: arguments are not a JSON object")
        })?;
        ids.push(id);
    }
    Ok(ids)
}

fn content(content: &Value, kinds: &[&str], at: &str) -> Checked {
    if let Some(text) = content.as_str() {
        // Some servers, such as proxies in front of Anthropic's models, refuse empty strings.
        return ensure(!text.is_empty(), || format!("{at}.content: empty string"));
    }
    let parts = list(content, &format!("{at}.content"))?;
    ensure(!parts.is_empty(), || format!("{at}.content: empty array"))?;
    for part in parts {
        let kind = part["type"].as_str().unwrap_or_default();
        ensure(kinds.contains(&kind), || format!("{at}: Invalid content type '{kind}'"))?;
        ensure(kind != "text" || part["text"].as_str().is_some_and(|text| !text.is_empty()), || {
            format!("{at}: empty text")
        })?;
    }
    Ok(())
}
