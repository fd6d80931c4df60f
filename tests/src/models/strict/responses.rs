//! OpenAI's Responses. <https://platform.openai.com/docs/api-reference/responses/create>

use serde_json::Value;

use super::{Checked, ensure, is_name, list, names, only, refuse, schema, text};
use crate::models::signature::signed;

pub(super) fn check(body: &Value) -> Checked {
    // "Unknown parameter: 'x'.": codex#2029 and others.
    let known = [
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning",
        "store",
        "stream",
        "include",
        "max_output_tokens",
        "prompt_cache_key",
        "prompt_cache_retention",
        "text",
        "metadata",
        "temperature",
        "top_p",
        "service_tier",
        "truncation",
        "client_metadata",
    ];
    only(body, "body", &known)?;
    text(&body["model"], "model")?;
    ensure(body["instructions"].is_null() || body["instructions"].is_string(), || {
        "Invalid type for 'instructions'".to_owned()
    })?;
    // earendil-works/pi#6265
    let max = body["max_output_tokens"].as_u64();
    ensure(max.is_none_or(|max| max >= 16), || {
        "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16".to_owned()
    })?;
    let key = body["prompt_cache_key"].as_str().unwrap_or_default();
    ensure(key.chars().count() <= 64, || {
        "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64".to_owned()
    })?;
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (n, tool) in tools.iter().enumerate() {
        let at = format!("tools[{n}]");
        only(tool, &at, &["type", "name", "description", "parameters", "strict"])?;
        ensure(tool["type"] == "function", || format!("{at}.type"))?;
        schema(&tool["parameters"], &format!("Invalid schema for function, {at}.parameters"))?;
    }
    names(tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default()), 64)?;
    input(body)
}

fn input(body: &Value) -> Checked {
    let items = list(&body["input"], "input")?;
    ensure(!items.is_empty(), || "input: empty".to_owned())?;
    let stored = body["store"] != false;
    // The calls so far, and whether each has its output.
    let mut calls: Vec<(&str, bool)> = Vec::new();
    for (n, item) in items.iter().enumerate() {
        let at = format!("input[{n}]");
        match item["type"].as_str().unwrap_or("message") {
            "message" => {
                // The outputs of calls must precede the next message: codex#2364, "No tool output found".
                answered(&calls)?;
                message(item, &at)?;
            }
            "reasoning" => {
                only(item, &at, &["type", "id", "summary", "encrypted_content", "content", "status"])?;
                // With `store: false` an item that is not encrypted cannot be found: openai-python#2557.
                let encrypted = item["encrypted_content"].as_str();
                let id = item["id"].as_str().unwrap_or_default();
                ensure(stored || encrypted.is_some(), || {
                    format!("Item with id '{id}' not found. Items are not persisted when `store` is set to false.")
                })?;
                let holds = encrypted.and_then(signed);
                ensure(encrypted.is_none() || holds.as_deref() == Some(id), || {
                    format!("The encrypted content for item {id} could not be verified.")
                })?;
                list(&item["summary"], &format!("{at}.summary"))?;
                // openai-agents-python#1660 and others.
                let follows = items.get(n + 1).is_some_and(|next| {
                    matches!(next["type"].as_str(), Some("function_call" | "reasoning"))
                        || (next["type"] == "message" && next["role"] == "assistant")
                });
                ensure(follows, || {
                    format!("Item '{id}' of type 'reasoning' was provided without its required following item.")
                })?;
            }
            "function_call" => {
                only(item, &at, &["type", "id", "call_id", "name", "arguments", "status", "namespace"])?;
                let call = text(&item["call_id"], &format!("{at}.call_id"))?;
                ensure(is_name(call, 64), || format!("Invalid '{at}.call_id': string too long or with other letters"))?;
                ensure(!calls.iter().any(|(id, _)| *id == call), || format!("Duplicate call_id {call}"))?;
                // "Expected an ID that begins with 'fc'": pi-ai 0.87.1.
                let id = item["id"].as_str();
                ensure(id.is_none_or(|id| id.starts_with("fc") && id.len() <= 64), || {
                    format!("Invalid '{at}.id': Expected an ID that begins with 'fc'")
                })?;
                text(&item["arguments"], &format!("{at}.arguments"))?;
                with_reasoning(items, n, id)?;
                text(&item["name"], &format!("{at}.name"))?;
                calls.push((call, false));
            }
            "function_call_output" => {
                only(item, &at, &["type", "id", "call_id", "output", "status"])?;
                let id = text(&item["call_id"], &format!("{at}.call_id"))?;
                let Some(call) = calls.iter_mut().find(|(call, _)| *call == id) else {
                    return refuse(format!("No tool call found for function call output with call_id {id}."));
                };
                ensure(!std::mem::replace(&mut call.1, true), || format!("Duplicate output for call_id {id}"))?;
                if !item["output"].is_string() {
                    parts(&item["output"], &["input_text", "input_image"], &at)?;
                }
            }
            other => return refuse(format!("Invalid value: '{other}' at {at}.type")),
        }
    }
    answered(&calls)?;
    let outputs = |kind: &str| -> Vec<&str> {
        items.iter().filter(|item| item["type"] == kind).filter_map(|item| item["call_id"].as_str()).collect()
    };
    // Not documented: the harsher reading.
    ensure(outputs("function_call") == outputs("function_call_output"), || {
        "outputs are not in the order of their calls".to_owned()
    })
}

/// "Item 'fc_…' of type 'function_call' was provided without its required 'reasoning' item: 'rs_…'":
/// openai-agents-python#1660. The scripted model names the item in the id: `fc_rs_…`.
fn with_reasoning(items: &[Value], at: usize, id: Option<&str>) -> Checked {
    let Some((id, reasoning)) = id.and_then(|id| Some((id, id.strip_prefix("fc_")?))) else { return Ok(()) };
    if !reasoning.starts_with("rs_") {
        return Ok(());
    }
    let reasoning = reasoning.rsplit_once('-').map_or(reasoning, |(reasoning, _)| reasoning);
    let is_there = items[..at].iter().any(|item| item["type"] == "reasoning" && item["id"] == reasoning);
    ensure(is_there, || {
        format!(
            "Item '{id}' of type 'function_call' was provided without its required 'reasoning' item: '{reasoning}'."
        )
    })
}

fn answered(calls: &[(&str, bool)]) -> Checked {
    match calls.iter().find(|(_, answered)| !answered) {
        Some((call, _)) => refuse(format!("No tool output found for function call {call}.")),
        None => Ok(()),
    }
}

fn message(item: &Value, at: &str) -> Checked {
    only(item, at, &["type", "role", "content", "id", "status", "phase"])?;
    let role = text(&item["role"], &format!("{at}.role"))?;
    let kinds: &[&str] = match role {
        "user" | "system" | "developer" => &["input_text", "input_image"],
        "assistant" => &["output_text", "refusal"],
        other => {
            return refuse(format!(
                "Invalid value: '{other}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
            ));
        }
    };
    if item["content"].is_string() {
        return Ok(());
    }
    parts(&item["content"], kinds, at)
}

fn parts(content: &Value, kinds: &[&str], at: &str) -> Checked {
    let parts = list(content, &format!("{at}.content"))?;
    ensure(!parts.is_empty(), || format!("{at}.content: empty"))?;
    for part in parts {
        let kind = part["type"].as_str().unwrap_or_default();
        ensure(kinds.contains(&kind), || format!("Invalid value: '{kind}'. Supported values are: {kinds:?} ({at})"))?;
        only(part, at, &["type", "text", "annotations", "logprobs", "refusal", "image_url", "detail"])?;
    }
    Ok(())
}
