//! Requests.

use crate::{
    BlockKind, Prefix, Target, Thinking,
    codec::{PendingCall, Wire, plain_id, wire::JsonText},
    message::{NO_OUTPUT, Said, SaidKind, ShownContent, ToolResult, images, joined},
    target::REQUIRED_OUTPUT_TOKENS,
};

const USER: &str = r#"{"role":"user","content":["#;
const ASSISTANT: &str = r#"{"role":"assistant","content":["#;
/// Ids of calls match `^[a-zA-Z0-9_-]+$` and have at most 64 characters: the API's 400, and pi-ai 0.87.1.
const ID_LETTERS: usize = 64;

pub(crate) fn head(target: &Target, prefix: &Prefix, wire: &mut Wire) {
    let settings = JsonText::new().raw(r#"{"model":"#).string(&target.model);
    let settings = match &target.thinking {
        Thinking::Default | Thinking::Absent => settings,
        Thinking::Off => settings.raw(r#","thinking":{"type":"disabled"}"#),
        Thinking::Budget(tokens) => {
            settings.raw(&format!(r#","thinking":{{"type":"enabled","budget_tokens":{tokens}}}"#))
        }
        Thinking::Effort(effort) => settings
            .raw(r#","thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"#)
            .string(effort)
            .raw("}"),
    };
    wire.raw(&settings.done());
    wire.end_block(BlockKind::Settings, None);
    let tools: Vec<String> = prefix
        .each_tool()
        .map(|tool| {
            let text = JsonText::new().raw(r#"{"name":"#).string(tool.name).raw(r#","description":"#);
            text.string(tool.description).raw(r#","input_schema":"#).raw(&tool.schema).raw("}").done()
        })
        .collect();
    if !tools.is_empty() {
        wire.raw(&format!(r#","tools":[{}]"#, tools.join(",")));
        // The marker goes before `}]`.
        wire.end_block(BlockKind::Tools, Some(2));
    }
    if !prefix.system().trim().is_empty() {
        let text = JsonText::new().raw(r#","system":[{"type":"text","text":"#).string(prefix.system()).raw("}]");
        wire.raw(&text.done());
        wire.end_block(BlockKind::System, Some(2));
    }
    wire.raw(r#","messages":["#);
}

pub(crate) fn tail(target: &Target) -> String {
    format!(r#"],"max_tokens":{},"stream":true}}"#, target.max_output_tokens.unwrap_or(REQUIRED_OUTPUT_TOKENS))
}

pub(crate) fn user(content: &[ShownContent<'_>], wire: &mut Wire) {
    for content in content {
        wire.block_in(USER, &block(content), true);
    }
}

pub(crate) fn assistant(said: &[Said<'_>], wire: &mut Wire) {
    for said in said {
        // Thinking cannot have a marker: docs, prompt caching, "What cannot be cached".
        let (text, markable) = match (&said.kind, said.raw) {
            (SaidKind::Thinking { signature: Some(_), .. } | SaidKind::Redacted(_) | SaidKind::Opaque, Some(raw)) => {
                (raw.to_owned(), false)
            }
            (SaidKind::Text { text, .. }, Some(_)) if text.trim().is_empty() => continue,
            (SaidKind::Text { .. } | SaidKind::Call(_), Some(raw)) => (raw.to_owned(), true),
            (SaidKind::Thinking { text, signature: Some(signature) }, None) => {
                let thinking = JsonText::new().raw(r#"{"type":"thinking","thinking":"#).string(text);
                (thinking.raw(r#","signature":"#).string(signature).raw("}").done(), false)
            }
            (SaidKind::Redacted(data), None) => {
                (JsonText::new().raw(r#"{"type":"redacted_thinking","data":"#).string(data).raw("}").done(), false)
            }
            // The vendor refuses thinking without its signature, so it is sent as text.
            (SaidKind::Thinking { text, signature: None }, _) | (SaidKind::Text { text, .. }, None) => {
                if text.trim().is_empty() {
                    continue;
                }
                (text_block(text), true)
            }
            (SaidKind::Call(call), None) => {
                let id = plain_id(call.id, ID_LETTERS);
                let text = JsonText::new().raw(r#"{"type":"tool_use","id":"#).string(&id).raw(r#","name":"#);
                (text.string(call.name).raw(r#","input":"#).raw(&call.arguments).raw("}").done(), true)
            }
            (SaidKind::Opaque, None) => continue,
        };
        wire.block_in(ASSISTANT, &text, markable);
        if let SaidKind::Call(call) = &said.kind {
            let (id, wire_id) = (call.id.to_owned(), plain_id(call.id, ID_LETTERS));
            wire.expect_result(PendingCall { id, wire_id, name: call.name.to_owned() });
        }
    }
}

pub(crate) fn result(call: &PendingCall, result: &ToolResult<'_>, wire: &mut Wire) {
    let text =
        JsonText::new().raw(r#"{"type":"tool_result","tool_use_id":"#).string(&call.wire_id).raw(r#","content":"#);
    let text = if images(&result.content).next().is_some() {
        let blocks: Vec<String> = result.content.iter().map(block).collect();
        text.raw("[").raw(&blocks.join(",")).raw("]")
    } else {
        let said = joined(&result.content);
        text.string(if said.is_empty() { NO_OUTPUT } else { &said })
    };
    let text = if result.is_error { text.raw(r#","is_error":true"#) } else { text };
    wire.block_in(USER, &text.raw("}").done(), true);
}

fn block(content: &ShownContent<'_>) -> String {
    match content {
        ShownContent::Text(text) => text_block(text),
        ShownContent::Image { mime, data } => {
            let image = JsonText::new().raw(r#"{"type":"image","source":{"type":"base64","media_type":"#).string(mime);
            image.raw(r#","data":"#).string(data).raw("}}").done()
        }
    }
}

fn text_block(text: &str) -> String {
    JsonText::new().raw(r#"{"type":"text","text":"#).string(text).raw("}").done()
}
