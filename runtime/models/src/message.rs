//! Prepares stored messages for the codecs: which parts are sent to this model, and in which form.
//!
//! Follows `transformMessages` of pi-ai 0.87.1 (`dist/api/transform-messages.js`): failed and aborted answers are
//! omitted; in an answer of another model, thinking becomes text, and signatures and blocks specific to that model are
//! omitted.

use std::borrow::Cow;

use session_tree::{Json, Object};

use crate::Target;

/// Replaces an image that a model cannot see.
pub(crate) const NO_IMAGE: &str = "(image omitted: the model accepts no images)";
/// Replaces a result without text.
pub(crate) const NO_OUTPUT: &str = "(no output)";
/// The answer to a call without a result: the text of pi-ai 0.87.1.
pub(crate) const NO_RESULT: &str = "No result provided";

/// A message.
#[derive(Debug)]
pub(crate) enum Turn<'a> {
    User(Vec<ShownContent<'a>>),
    Assistant(Vec<Said<'a>>),
    Result(ToolResult<'a>),
}

/// Content shown to the model.
#[derive(Debug, Clone)]
pub(crate) enum ShownContent<'a> {
    Text(Cow<'a, str>),
    Image { mime: &'a str, data: &'a str },
}

/// A block of the model's answer.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    pub(crate) kind: SaidKind<'a>,
    /// The original block for the same model, if its kind does not represent it fully.
    pub(crate) raw: Option<&'a str>,
}

#[derive(Debug)]
pub(crate) enum SaidKind<'a> {
    Text {
        text: &'a str,
        signature: Option<&'a str>,
    },
    Thinking {
        text: &'a str,
        signature: Option<&'a str>,
    },
    Redacted(&'a str),
    Call(ToolCall<'a>),
    /// Only with `raw`.
    Opaque,
}

#[derive(Debug)]
pub(crate) struct ToolCall<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    /// JSON text of an object.
    pub(crate) arguments: Cow<'a, str>,
    pub(crate) signature: Option<&'a str>,
    pub(crate) namespace: Option<&'a str>,
    /// Whether the same model made the call.
    pub(crate) same_model: bool,
}

#[derive(Debug)]
pub(crate) struct ToolResult<'a> {
    pub(crate) call: &'a str,
    pub(crate) content: Vec<ShownContent<'a>>,
    pub(crate) is_error: bool,
}

/// Reads a message; `None` if it is not sent to the model.
pub(crate) fn turn<'a>(target: &Target, message: &'a Object) -> Option<Turn<'a>> {
    match message.text("role")? {
        "user" => Some(Turn::User(contents(target, message.get("content")))),
        "assistant" if matches!(message.text("stopReason"), Some("error" | "aborted")) => None,
        "assistant" => {
            let is = |key: &str, name: &str| message.text(key) == Some(name);
            let same = is("api", target.api.name()) && is("provider", &target.provider) && is("model", &target.model);
            let blocks = match message.get("content")? {
                Json::Array(blocks) => {
                    blocks.iter().filter_map(Json::as_object).filter_map(|b| said(b, same)).collect()
                }
                Json::String(text) => vec![Said { kind: SaidKind::Text { text, signature: None }, raw: None }],
                Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_) => return None,
            };
            Some(Turn::Assistant(blocks))
        }
        "toolResult" => Some(Turn::Result(ToolResult {
            call: message.text("toolCallId")?,
            content: contents(target, message.get("content")),
            is_error: message.get("isError") == Some(&Json::Bool(true)),
        })),
        _ => None,
    }
}

fn contents<'a>(target: &Target, content: Option<&'a Json>) -> Vec<ShownContent<'a>> {
    let read = |block: &'a Object| match block.text("type")? {
        "text" => Some(ShownContent::Text(block.text("text")?.into())),
        "image" if target.images => {
            Some(ShownContent::Image { mime: block.text("mimeType")?, data: block.text("data")? })
        }
        "image" => Some(ShownContent::Text(NO_IMAGE.into())),
        _ => None,
    };
    let is_blank = |content: &ShownContent<'_>| matches!(content, ShownContent::Text(text) if text.trim().is_empty());
    let all: Vec<ShownContent<'a>> = match content {
        Some(Json::String(text)) => vec![ShownContent::Text(text.into())],
        Some(Json::Array(blocks)) => blocks.iter().filter_map(Json::as_object).filter_map(read).collect(),
        Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_)) | None => Vec::new(),
    };
    // Vendors refuse blank text blocks, or may do so.
    all.into_iter().filter(|content| !is_blank(content)).collect()
}

fn said(block: &Object, same: bool) -> Option<Said<'_>> {
    let filled = |key: &str| block.text(key).filter(|text| !text.is_empty());
    let signature = |key: &str| filled(key).filter(|_| same);
    let kind = match block.text("type")? {
        "text" => SaidKind::Text { text: block.text("text")?, signature: signature("textSignature") },
        "thinking" if block.get("redacted") == Some(&Json::Bool(true)) => {
            SaidKind::Redacted(signature("thinkingSignature")?)
        }
        "thinking" => {
            let text = block.text("thinking").unwrap_or_default();
            match signature("thinkingSignature") {
                Some(signature) => SaidKind::Thinking { text, signature: Some(signature) },
                None if text.trim().is_empty() => return None,
                None if same => SaidKind::Thinking { text, signature: None },
                None => SaidKind::Text { text, signature: None },
            }
        }
        "toolCall" => SaidKind::Call(ToolCall {
            id: block.text("id")?,
            name: block.text("name")?,
            arguments: arguments(block),
            signature: signature("thoughtSignature"),
            namespace: signature("namespace"),
            same_model: same,
        }),
        _ => SaidKind::Opaque,
    };
    let raw = filled("raw").filter(|raw| same && is_object(raw));
    let is_empty = match &kind {
        SaidKind::Opaque => raw.is_none(),
        SaidKind::Text { text, signature: None } => text.trim().is_empty() && raw.is_none(),
        SaidKind::Text { .. } | SaidKind::Thinking { .. } | SaidKind::Redacted(_) | SaidKind::Call(_) => false,
    };
    (!is_empty).then_some(Said { kind, raw })
}

/// The text of a call's input: as received if known, so that it is sent back byte for byte.
fn arguments(block: &Object) -> Cow<'_, str> {
    match block.text("argumentsText").filter(|text| is_object(text)) {
        Some(text) => text.into(),
        None => match block.get("arguments") {
            Some(Json::Object(arguments)) => arguments.to_text().into(),
            _ => "{}".into(),
        },
    }
}

/// Whether a text is a JSON object and can be inserted into a body unchanged.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// The texts of a content, joined by newlines as in pi.
pub(crate) fn joined(content: &[ShownContent<'_>]) -> String {
    let texts = content.iter().filter_map(|content| match content {
        ShownContent::Text(text) => Some(text.as_ref()),
        ShownContent::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The images of a content: media type and data.
pub(crate) fn images<'a>(content: &'a [ShownContent<'a>]) -> impl Iterator<Item = (&'a str, &'a str)> {
    content.iter().filter_map(|content| match content {
        ShownContent::Text(_) => None,
        ShownContent::Image { mime, data } => Some((*mime, *data)),
    })
}
