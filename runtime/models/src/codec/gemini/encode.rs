//! Requests.

use crate::{
    BlockKind, Prefix, Target, Thinking,
    codec::{PendingCall, Wire, gemini::decode::GENERATED_ID, plain_id, wire::JsonText},
    message::{NO_OUTPUT, Said, SaidKind, ShownContent, ToolResult, images as images_of, joined},
};

const USER: &str = r#"{"role":"user","parts":["#;
const MODEL: &str = r#"{"role":"model","parts":["#;
/// Replaces the signature of a call made by another model: docs, thought signatures, "Is it possible to transfer a
/// conversation trace from a different model".
const FOREIGN_CALL: &str = "skip_thought_signature_validator";
/// Maximum number of characters in an id.
const ID_LETTERS: usize = 64;

pub(crate) fn head(target: &Target, prefix: &Prefix, wire: &mut Wire) {
    let max = target.max_output_tokens.map(|max| format!(r#""maxOutputTokens":{max}"#));
    let thinking = match &target.thinking {
        Thinking::Default | Thinking::Absent => None,
        Thinking::Off => Some(r#""thinkingConfig":{"thinkingBudget":0}"#.to_owned()),
        Thinking::Budget(tokens) => {
            Some(format!(r#""thinkingConfig":{{"includeThoughts":true,"thinkingBudget":{tokens}}}"#))
        }
        Thinking::Effort(effort) => {
            let text = JsonText::new().raw(r#""thinkingConfig":{"includeThoughts":true,"thinkingLevel":"#);
            Some(text.string(&effort.to_uppercase()).raw("}").done())
        }
    };
    let settings: Vec<String> = max.into_iter().chain(thinking).collect();
    wire.raw(&format!(r#"{{"generationConfig":{{{}}}"#, settings.join(",")));
    wire.end_block(BlockKind::Settings, None);
    let tools: Vec<String> = prefix
        .each_tool()
        .map(|tool| {
            let text = JsonText::new().raw(r#"{"name":"#).string(tool.name);
            let text = text.raw(r#","description":"#).string(tool.description);
            text.raw(r#","parametersJsonSchema":"#).raw(&tool.schema).raw("}").done()
        })
        .collect();
    if !tools.is_empty() {
        wire.raw(&format!(r#","tools":[{{"functionDeclarations":[{}]}}]"#, tools.join(",")));
        wire.end_block(BlockKind::Tools, None);
    }
    if !prefix.system().is_empty() {
        let text = JsonText::new().raw(r#","systemInstruction":{"parts":[{"text":"#).string(prefix.system()).raw("}]}");
        wire.raw(&text.done());
        wire.end_block(BlockKind::System, None);
    }
    wire.raw(r#","contents":["#);
}

pub(crate) fn tail() -> String {
    "]}".to_owned()
}

pub(crate) fn path(target: &Target) -> String {
    format!("/v1beta/models/{}:streamGenerateContent?alt=sse", target.model)
}

pub(crate) fn user(content: &[ShownContent<'_>], wire: &mut Wire) {
    for content in content {
        wire.block_in(USER, &part(content), false);
    }
}

pub(crate) fn assistant(target: &Target, said: &[Said<'_>], wire: &mut Wire) {
    let mut foreign_calls = 0;
    for said in said {
        let text = match (&said.kind, said.raw) {
            (_, Some(raw)) => raw.to_owned(),
            (SaidKind::Text { text, signature }, None) => {
                let part = JsonText::new().raw(r#"{"text":"#).string(text);
                part.maybe(r#","thoughtSignature":"#, *signature).raw("}").done()
            }
            (SaidKind::Thinking { text, signature }, None) => {
                let part = JsonText::new().raw(r#"{"thought":true,"text":"#).string(text);
                part.maybe(r#","thoughtSignature":"#, *signature).raw("}").done()
            }
            (SaidKind::Call(call), None) => {
                let part = JsonText::new().raw(r#"{"functionCall":{"name":"#).string(call.name);
                let part = part.raw(r#","args":"#).raw(&call.arguments);
                let part = part.maybe(r#","id":"#, wire_id(target, call.id).as_deref()).raw("}");
                // The first call of an answer has the signature for all its calls.
                let foreign = !call.same_model && major(&target.model) >= Some(3) && foreign_calls == 0;
                let signature = call.signature.or(foreign.then_some(FOREIGN_CALL));
                part.maybe(r#","thoughtSignature":"#, signature).raw("}").done()
            }
            (SaidKind::Redacted(_) | SaidKind::Opaque, None) => continue,
        };
        wire.block_in(MODEL, &text, false);
        if let SaidKind::Call(call) = &said.kind {
            foreign_calls += usize::from(!call.same_model);
            let wire_id = wire_id(target, call.id).unwrap_or_default();
            wire.expect_result(PendingCall { id: call.id.to_owned(), wire_id, name: call.name.to_owned() });
        }
    }
}

pub(crate) fn result(target: &Target, call: &PendingCall, result: &ToolResult<'_>, wire: &mut Wire) {
    let said = joined(&result.content);
    let nested = major(&target.model).is_none_or(|major| major >= 3);
    let pictures: Vec<String> = images_of(&result.content).map(|(mime, data)| image(mime, data)).collect();
    let said = match (said.as_str(), pictures.is_empty()) {
        ("", true) => NO_OUTPUT,
        ("", false) => "(see the attached image)",
        (said, _) => said,
    };
    // `output` and `error`: python-genai, `types.FunctionResponse.response`.
    let key = if result.is_error { "error" } else { "output" };
    let text = JsonText::new().raw(r#"{"functionResponse":{"name":"#).string(&call.name);
    let text = text.raw(&format!(r#","response":{{"{key}":"#)).string(said).raw("}");
    let text =
        if nested && !pictures.is_empty() { text.raw(r#","parts":["#).raw(&pictures.join(",")).raw("]") } else { text };
    let id = Some(call.wire_id.as_str()).filter(|id| !id.is_empty());
    wire.block_in(USER, &text.maybe(r#","id":"#, id).raw("}}").done(), false);
    if !nested {
        // Models before 3 require images in a separate content.
        pictures.into_iter().for_each(|picture| wire.show_image(picture));
    }
}

/// The images of results, after all results.
pub(crate) fn images(images: &[String], wire: &mut Wire) {
    let note = part(&ShownContent::Text("Images of the tool results:".into()));
    wire.message(&format!("{USER}{note},{}]}}", images.join(",")), None);
}

/// The id of a call on the wire; `None` if we generated it because the model sent none.
fn wire_id(target: &Target, id: &str) -> Option<String> {
    let takes_ids = major(&target.model).is_none_or(|major| major >= 3);
    (takes_ids && !id.starts_with(GENERATED_ID)).then(|| plain_id(id, ID_LETTERS))
}

/// The generation of a model: 3 of `gemini-3.1-pro`.
fn major(model: &str) -> Option<u32> {
    let rest = model.rsplit('/').next()?.strip_prefix("gemini-")?;
    rest.split(['.', '-']).next()?.parse().ok()
}

fn part(content: &ShownContent<'_>) -> String {
    match content {
        ShownContent::Text(text) => JsonText::new().raw(r#"{"text":"#).string(text).raw("}").done(),
        ShownContent::Image { mime, data } => image(mime, data),
    }
}

fn image(mime: &str, data: &str) -> String {
    let text = JsonText::new().raw(r#"{"inlineData":{"mimeType":"#).string(mime);
    text.raw(r#","data":"#).string(data).raw("}}").done()
}
