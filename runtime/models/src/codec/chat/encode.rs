//! Requests.

use crate::{
    BlockKind, Prefix, Target, Thinking,
    codec::{PendingCall, Wire, plain_id, wire::JsonText},
    message::{NO_OUTPUT, Said, SaidKind, ShownContent, ToolCall, ToolResult, images as images_of, joined},
};

/// OpenAI's ids of calls have at most 40 characters: pi-ai 0.87.1.
const ID_LETTERS: usize = 40;
/// Cache keys have at most 64 characters.
const KEY_LETTERS: usize = 64;
/// Fields that may contain thinking.
pub(crate) const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

pub(crate) fn head(target: &Target, prefix: &Prefix, wire: &mut Wire) {
    let settings = JsonText::new().raw(r#"{"model":"#).string(&target.model);
    let settings = match &target.thinking {
        Thinking::Effort(effort) => settings.raw(r#","reasoning_effort":"#).string(effort),
        Thinking::Off => settings.raw(r#","reasoning_effort":"none""#),
        Thinking::Default | Thinking::Absent | Thinking::Budget(_) => settings,
    };
    wire.raw(&settings.done());
    wire.end_block(BlockKind::Settings, None);
    let tools: Vec<String> = prefix
        .each_tool()
        .map(|tool| {
            let text = JsonText::new().raw(r#"{"type":"function","function":{"name":"#).string(tool.name);
            let text = text.raw(r#","description":"#).string(tool.description);
            text.raw(r#","parameters":"#).raw(&tool.schema).raw("}}").done()
        })
        .collect();
    if !tools.is_empty() {
        wire.raw(&format!(r#","tools":[{}]"#, tools.join(",")));
        wire.end_block(BlockKind::Tools, target.chat.cache_control.then_some(2));
    }
    wire.raw(r#","messages":["#);
    if !prefix.system().is_empty() {
        let role = if target.chat.developer_role { "developer" } else { "system" };
        let text = JsonText::new().raw(&format!(r#"{{"role":"{role}","content":"#));
        let (text, behind) = text_content(target, text, prefix.system());
        wire.raw(&text.raw("}").done());
        wire.end_block(BlockKind::System, behind.map(|behind| behind + 1));
        wire.head_has_message();
    }
}

pub(crate) fn tail(target: &Target, cache_key: Option<&str>) -> String {
    let limit = if target.chat.old_max_tokens { "max_tokens" } else { "max_completion_tokens" };
    let limit = target.max_output_tokens.map(|max| format!(r#","{limit}":{max}"#));
    let text = JsonText::new().raw("]").raw(&limit.unwrap_or_default());
    let key = cache_key.filter(|_| target.chat.cache_key).map(|key| plain_id(key, KEY_LETTERS));
    let text = text.maybe(r#","prompt_cache_key":"#, key.as_deref());
    text.raw(r#","stream":true,"stream_options":{"include_usage":true}}"#).done()
}

pub(crate) fn user(target: &Target, content: &[ShownContent<'_>], wire: &mut Wire) {
    let text = JsonText::new().raw(r#"{"role":"user","content":"#);
    match content {
        [] => {}
        [ShownContent::Text(only)] => {
            let (text, behind) = text_content(target, text, only);
            wire.message(&text.raw("}").done(), behind.map(|behind| behind + 1));
        }
        parts => {
            let ends_with_text = matches!(parts.last(), Some(ShownContent::Text(_)));
            let parts: Vec<String> = parts.iter().map(part).collect();
            let text = text.raw("[").raw(&parts.join(",")).raw("]}");
            wire.message(&text.done(), (target.chat.cache_control && ends_with_text).then_some(3));
        }
    }
}

pub(crate) fn assistant(target: &Target, said: &[Said<'_>], wire: &mut Wire) {
    let (mut texts, mut thoughts) = (String::new(), Vec::new());
    let (mut field, mut details, mut calls) = (None, None, Vec::new());
    for said in said {
        match &said.kind {
            SaidKind::Text { text, .. } => texts.push_str(text),
            SaidKind::Thinking { text, signature } => {
                // The signature is the field's name, or the details as an array.
                match signature {
                    Some(name) if REASONING_FIELDS.contains(name) => field = field.or(Some(*name)),
                    Some(array) if is_array(array) => details = details.or(Some(*array)),
                    Some(_) | None => {}
                }
                thoughts.push(*text);
            }
            SaidKind::Call(call) => calls.push((call, said.raw)),
            SaidKind::Redacted(_) | SaidKind::Opaque => {}
        }
    }
    let thoughts =
        field.filter(|_| target.chat.return_reasoning && details.is_none()).map(|f| (f, thoughts.join("\n")));
    if texts.is_empty() && calls.is_empty() {
        return;
    }
    let text = JsonText::new().raw(r#"{"role":"assistant","content":"#);
    let (mut text, mut behind) = match texts.as_str() {
        "" => (text.raw("null"), None),
        texts => text_content(target, text, texts),
    };
    let mut rest = JsonText::new();
    if let Some((field, thoughts)) = thoughts.filter(|(_, thoughts)| !thoughts.is_empty()) {
        rest = rest.raw(&format!(r#","{field}":"#)).string(&thoughts);
    }
    if let Some(details) = details {
        rest = rest.raw(r#","reasoning_details":"#).raw(details);
    }
    if !calls.is_empty() {
        let calls: Vec<String> =
            calls.iter().map(|(call, raw)| raw.map_or_else(|| call_text(call), str::to_owned)).collect();
        rest = rest.raw(r#","tool_calls":["#).raw(&calls.join(",")).raw("]");
    }
    let rest = rest.raw("}").done();
    behind = behind.map(|behind| behind + rest.len());
    text = text.raw(&rest);
    wire.message(&text.done(), behind);
    for (call, _) in calls {
        let (id, wire_id) = (call.id.to_owned(), wire_id(call.id));
        wire.expect_result(PendingCall { id, wire_id, name: call.name.to_owned() });
    }
}

pub(crate) fn result(target: &Target, call: &PendingCall, result: &ToolResult<'_>, wire: &mut Wire) {
    let said = joined(&result.content);
    let shown = images_of(&result.content).count();
    let said = match (said.as_str(), shown) {
        ("", 0) => NO_OUTPUT,
        ("", _) => "(see the attached image)",
        (said, _) => said,
    };
    let text = JsonText::new().raw(r#"{"role":"tool","tool_call_id":"#).string(&call.wire_id).raw(r#","content":"#);
    let (text, behind) = text_content(target, text, said);
    wire.message(&text.raw("}").done(), behind.map(|behind| behind + 1));
    // A tool message can contain only text.
    for image in result.content.iter().filter(|content| matches!(content, ShownContent::Image { .. })) {
        wire.show_image(part(image));
    }
}

/// The images of results, after all results.
pub(crate) fn images(images: &[String], wire: &mut Wire) {
    let note = part(&ShownContent::Text("Images of the tool results:".into()));
    wire.message(&format!(r#"{{"role":"user","content":[{note},{}]}}"#, images.join(",")), None);
}

/// A content with one text: a string, or a part that can have a marker. Also returns the marker's distance from the
/// end.
fn text_content(target: &Target, text: JsonText, content: &str) -> (JsonText, Option<usize>) {
    if target.chat.cache_control {
        (text.raw("[").raw(&part(&ShownContent::Text(content.into()))).raw("]"), Some(2))
    } else {
        (text.string(content), None)
    }
}

fn part(content: &ShownContent<'_>) -> String {
    match content {
        ShownContent::Text(text) => JsonText::new().raw(r#"{"type":"text","text":"#).string(text).raw("}").done(),
        ShownContent::Image { mime, data } => {
            let url = format!("data:{mime};base64,{data}");
            JsonText::new().raw(r#"{"type":"image_url","image_url":{"url":"#).string(&url).raw("}}").done()
        }
    }
}

fn call_text(call: &ToolCall<'_>) -> String {
    let text =
        JsonText::new().raw(r#"{"id":"#).string(&wire_id(call.id)).raw(r#","type":"function","function":{"name":"#);
    text.string(call.name).raw(r#","arguments":"#).string(&call.arguments).raw("}}").done()
}

/// Servers choose ids freely; only those of Responses and long ones are changed.
fn wire_id(id: &str) -> String {
    if id.contains('|') || id.len() > 64 { plain_id(id, ID_LETTERS) } else { id.to_owned() }
}

fn is_array(text: &str) -> bool {
    text.starts_with('[') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
