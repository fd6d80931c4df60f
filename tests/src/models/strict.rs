//! Answers 400 where the vendor does.
//!
//! Each rule names its source: the vendor's documentation, or a reported error. Where sources differ the harsher one
//! applies. A request that passes here is accepted by the vendor; the vendor may accept some that are refused here.
//! Signatures are those of [`super::signature`].

mod anthropic;
mod chat;
mod gemini;
mod responses;

use serde_json::Value;

use super::Api;

/// An error response that replaces the answer of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The error, in the vendor's words if they are known.
    pub message: String,
}

type Checked = Result<(), Refusal>;

/// Checks a request against the rules of its API.
///
/// # Errors
/// The first violated rule.
pub fn check(api: Api, body: &[u8]) -> Result<(), Refusal> {
    let (limit, status) = match api {
        // https://platform.claude.com/docs/en/api/errors: 413 request_too_large above 32 MB.
        Api::Anthropic => (32 << 20, 413),
        // openai-python issues show 413 from the edge; the documentation gives no figure: the harsher of 50 and 32 MB.
        Api::Responses | Api::Chat => (32 << 20, 413),
        // https://ai.google.dev/gemini-api/docs/files: inline requests of up to 20 MB.
        Api::Gemini => (20 << 20, 400),
    };
    if body.len() > limit {
        return Err(Refusal { status, message: "Request exceeds the maximum size".to_owned() });
    }
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return refuse("the body is not valid JSON") };
    let Some(_) = value.as_object() else { return refuse("the body is not an object") };
    match api {
        Api::Anthropic => anthropic::check(&value),
        Api::Responses => responses::check(&value),
        Api::Chat => chat::check(&value),
        Api::Gemini => gemini::check(&value),
    }
}

fn refuse(message: impl Into<String>) -> Checked {
    Err(Refusal { status: 400, message: message.into() })
}

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { refuse(message()) }
}

/// Allows no other fields.
fn only(value: &Value, at: &str, known: &[&str]) -> Checked {
    let Some(object) = value.as_object() else { return refuse(format!("{at}: Input should be an object")) };
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => refuse(format!("{at}.{key}: Extra inputs are not permitted")),
        None => Ok(()),
    }
}

fn list<'a>(value: &'a Value, at: &str) -> Result<&'a [Value], Refusal> {
    match value.as_array() {
        Some(list) => Ok(list),
        None => Err(Refusal { status: 400, message: format!("{at}: Input should be a valid list") }),
    }
}

fn text<'a>(value: &'a Value, at: &str) -> Result<&'a str, Refusal> {
    match value.as_str() {
        Some(text) => Ok(text),
        None => Err(Refusal { status: 400, message: format!("{at}: Input should be a valid string") }),
    }
}

fn is_name(name: &str, max: usize) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= max && name.chars().all(plain)
}

/// A schema that every vendor accepts for a function: an object.
fn schema(value: &Value, at: &str) -> Checked {
    ensure(value.is_object() && value["type"] == "object", || format!("{at}: schema must be of type \"object\""))
}

/// Checks that tool names are valid and unique.
fn names<'a>(names: impl Iterator<Item = &'a str>, max: usize) -> Checked {
    let mut seen = Vec::new();
    for name in names {
        ensure(is_name(name, max), || format!("tools: `{name}` should match pattern '^[a-zA-Z0-9_-]{{1,{max}}}$'"))?;
        ensure(!seen.contains(&name), || "tools: Tool names must be unique.".to_owned())?;
        seen.push(name);
    }
    Ok(())
}
