//! Requests.

use session_tree::{Json, Object};

use crate::{
    BlockKind, Prefix, Target, Thinking,
    codec::{PendingCall, Wire, plain_id, wire::JsonText},
    message::{NO_OUTPUT, Said, SaidKind, ShownContent, ToolResult, images, joined},
};

/// Ids of calls and cache keys have at most 64 characters (openai-python; pi-ai 0.87.1).
const ID_LETTERS: usize = 64;
/// `max_output_tokens` below 16 is refused: earendil-works/pi#6265.
const MIN_OUTPUT_TOKENS: u64 = 16;

pub(crate) fn head(target: &Target, prefix: &Prefix, wire: &mut Wire) {
    let settings = JsonText::new().raw(r#"{"model":"#).string(&target.model);
    let effort = match &target.thinking {
        Thinking::Default | Thinking::Absent | Thinking::Budget(_) => None,
        Thinking::Off => Some("none"),
        Thinking::Effort(effort) => Some(effort.as_str()),
    };
    let settings = match effort {
        Some("none") => settings.raw(r#","reasoning":{"effort":"none"}"#),
        Some(effort) => settings.raw(r#","reasoning":{"effort":"#).string(effort).raw(r#","summary":"auto"}"#),
        None => settings,
    };
    wire.raw(&settings.raw(r#","parallel_tool_calls":true"#).done());
    wire.end_block(BlockKind::Settings, None);
    let tools: Vec<String> = prefix
        .each_tool()
        .map(|tool| {
            let text = JsonText::new().raw(r#"{"type":"function","name":"#).string(tool.name);
            let text = text.raw(r#","description":"#).string(tool.description);
            text.raw(r#","parameters":"#).raw(&tool.schema).raw(r#","strict":false}"#).done()
        })
        .collect();
    if !tools.is_empty() {
        wire.raw(&format!(r#","tools":[{}]"#, tools.join(",")));
        wire.end_block(BlockKind::Tools, None);
    }
    if !prefix.system().is_empty() {
        wire.raw(&JsonText::new().raw(r#","instructions":"#).string(prefix.system()).done());
        wire.end_block(BlockKind::System, None);
    }
    wire.raw(r#","input":["#);
}

pub(crate) fn tail(target: &Target, cache_key: Option<&str>) -> String {
    let max = target.max_output_tokens.map(|max| format!(r#","max_output_tokens":{}"#, max.max(MIN_OUTPUT_TOKENS)));
    let text = JsonText::new().raw("]").raw(&max.unwrap_or_default());
    let key = cache_key.map(|key| plain_id(key, ID_LETTERS));
    let text = text.maybe(r#","prompt_cache_key":"#, key.as_deref());
    let text = match target.thinking {
        Thinking::Absent => text,
        Thinking::Default | Thinking::Off | Thinking::Effort(_) | Thinking::Budget(_) => {
            text.raw(r#","include":["reasoning.encrypted_content"]"#)
        }
    };
    text.raw(r#","store":false,"stream":true}"#).done()
}

pub(crate) fn user(content: &[ShownContent<'_>], wire: &mut Wire) {
    if !content.is_empty() {
        let parts: Vec<String> = content.iter().map(part).collect();
        wire.message(&format!(r#"{{"role":"user","content":[{}]}}"#, parts.join(",")), None);
    }
}

pub(crate) fn assistant(said: &[Said<'_>], wire: &mut Wire) {
    // The vendor does not know an unencrypted item, nor the ids of the calls that belong to it.
    let is_unknown = |said: &Said<'_>| match said.kind {
        SaidKind::Thinking { signature: Some(item), .. } | SaidKind::Redacted(item) => !is_encrypted(item),
        SaidKind::Thinking { signature: None, .. } | SaidKind::Text { .. } | SaidKind::Call(_) | SaidKind::Opaque => {
            false
        }
    };
    let with_ids = !said.iter().any(is_unknown);
    for said in said {
        match (&said.kind, said.raw) {
            (_, Some(raw)) => wire.message(raw, None),
            (SaidKind::Text { text, signature }, None) => wire.message(&message(text, *signature), None),
            // The whole item, as received.
            (SaidKind::Thinking { signature: Some(item), .. } | SaidKind::Redacted(item), None) => {
                if is_encrypted(item) {
                    wire.message(item, None);
                }
            }
            // Thinking without an item is not from this vendor.
            (SaidKind::Thinking { signature: None, .. } | SaidKind::Opaque, None) => {}
            (SaidKind::Call(call), None) => {
                let (id, item) = ids(call.id);
                let text = JsonText::new().raw(r#"{"type":"function_call""#);
                // The id of an item is paired with the reasoning before it, so it is valid only for the same model.
                let text =
                    text.maybe(r#","id":"#, item.filter(|item| with_ids && call.same_model && item.starts_with("fc_")));
                let text = text.raw(r#","call_id":"#).string(&id).raw(r#","name":"#).string(call.name);
                let text = text.raw(r#","arguments":"#).string(&call.arguments);
                wire.message(&text.maybe(r#","namespace":"#, call.namespace).raw("}").done(), None);
            }
        }
        if let SaidKind::Call(call) = &said.kind {
            let wire_id = ids(call.id).0;
            wire.expect_result(PendingCall { id: call.id.to_owned(), wire_id, name: call.name.to_owned() });
        }
    }
}

pub(crate) fn result(call: &PendingCall, result: &ToolResult<'_>, wire: &mut Wire) {
    let text = JsonText::new().raw(r#"{"type":"function_call_output","call_id":"#).string(&call.wire_id);
    let text = text.raw(r#","output":"#);
    let text = if images(&result.content).next().is_some() {
        let parts: Vec<String> = result.content.iter().map(part).collect();
        text.raw("[").raw(&parts.join(",")).raw("]")
    } else {
        let said = joined(&result.content);
        text.string(if said.is_empty() { NO_OUTPUT } else { &said })
    };
    wire.message(&text.raw("}").done(), None);
}

/// A text of the model. pi stores the item's id as the text's signature, either directly or in an object.
fn message(text: &str, signature: Option<&str>) -> String {
    let signature = signature.map(|signature| match Json::parse(signature) {
        Ok(Json::Object(signature)) => {
            (signature.text("id").map(str::to_owned), signature.text("phase").map(str::to_owned))
        }
        _ => (Some(signature.to_owned()), None),
    });
    let (id, phase) = signature.unwrap_or_default();
    let item = JsonText::new().raw(r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"#);
    let item = item.string(text);
    match id.filter(|id| id.starts_with("msg_") && id.len() <= ID_LETTERS) {
        Some(id) => item.raw(r#","annotations":[]}],"status":"completed","id":"#).string(&id),
        None => item.raw("}]"),
    }
    .maybe(r#","phase":"#, phase.as_deref())
    .raw("}")
    .done()
}

/// Whether a reasoning item contains the encrypted content that the vendor needs.
fn is_encrypted(item: &str) -> bool {
    match Json::parse(item) {
        Ok(Json::Object(item)) => item.text("encrypted_content").is_some_and(|content| !content.is_empty()),
        Ok(_) | Err(_) => false,
    }
}

/// The ids of a call and its item, which pi joins with `|`.
fn ids(id: &str) -> (String, Option<&str>) {
    let (call, item) = id.split_once('|').map_or((id, None), |(call, item)| (call, Some(item)));
    (plain_id(call, ID_LETTERS), item)
}

fn part(content: &ShownContent<'_>) -> String {
    match content {
        ShownContent::Text(text) => JsonText::new().raw(r#"{"type":"input_text","text":"#).string(text).raw("}").done(),
        ShownContent::Image { mime, data } => {
            let url = format!("data:{mime};base64,{data}");
            JsonText::new().raw(r#"{"type":"input_image","detail":"auto","image_url":"#).string(&url).raw("}").done()
        }
    }
}

/// Whether a message item contains only what [`message`] would write.
pub(crate) fn says_all(item: &Object) -> bool {
    let known = |key: &str| matches!(key, "id" | "type" | "role" | "status" | "content" | "phase");
    let content = item.get("content").and_then(Json::as_array).unwrap_or_default();
    let [part] = content else { return false };
    let Some(part) = part.as_object() else { return false };
    let is_plain = |(key, value): (&str, &Json)| match key {
        "type" => value.as_str() == Some("output_text"),
        "text" => true,
        "annotations" | "logprobs" => value.as_array().is_some_and(<[Json]>::is_empty),
        _ => false,
    };
    item.iter().all(|(key, _)| known(key)) && part.iter().all(is_plain)
}
