//! The wire formats: encode requests and decode answers. No I/O.
//!
//! [`Wire`] collects the bytes of a body and records where its blocks end. Each API has a module with the same
//! functions; this module selects one.

mod anthropic;
mod chat;
mod decoder;
mod draft;
mod gemini;
mod responses;
mod wire;

pub use decoder::Decoder;
pub use draft::Draft;
pub(crate) use wire::{PendingCall, Wire, WireState};

use crate::{
    Api, Prefix, Target,
    message::{NO_RESULT, ShownContent, ToolResult, Turn},
};

/// Writes everything before the messages.
pub(crate) fn head(target: &Target, prefix: &Prefix, wire: &mut Wire) {
    match target.api {
        Api::Anthropic => anthropic::encode::head(target, prefix, wire),
        Api::Responses => responses::encode::head(target, prefix, wire),
        Api::Chat => chat::encode::head(target, prefix, wire),
        Api::Gemini => gemini::encode::head(target, prefix, wire),
    }
}

/// Writes a message.
pub(crate) fn push(target: &Target, turn: &Turn<'_>, wire: &mut Wire) {
    match turn {
        Turn::Result(result) => push_result(target, result, wire),
        Turn::User(content) => {
            settle(target, wire);
            match target.api {
                Api::Anthropic => anthropic::encode::user(content, wire),
                Api::Responses => responses::encode::user(content, wire),
                Api::Chat => chat::encode::user(target, content, wire),
                Api::Gemini => gemini::encode::user(content, wire),
            }
        }
        Turn::Assistant(said) => {
            settle(target, wire);
            match target.api {
                Api::Anthropic => anthropic::encode::assistant(said, wire),
                Api::Responses => responses::encode::assistant(said, wire),
                Api::Chat => chat::encode::assistant(target, said, wire),
                Api::Gemini => gemini::encode::assistant(target, said, wire),
            }
        }
    }
}

/// Writes what must follow the last message at the end of the body. It is not written if the next message continues the
/// last one.
pub(crate) fn close(target: &Target, wire: &mut Wire) {
    settle(target, wire);
    wire.close_message();
}

/// Everything after the messages.
pub(crate) fn tail(target: &Target, cache_key: Option<&str>) -> String {
    match target.api {
        Api::Anthropic => anthropic::encode::tail(target),
        Api::Responses => responses::encode::tail(target, cache_key),
        Api::Chat => chat::encode::tail(target, cache_key),
        Api::Gemini => gemini::encode::tail(),
    }
}

/// The path after the base URL.
pub(crate) fn path(target: &Target) -> String {
    match target.api {
        Api::Anthropic => "/v1/messages".to_owned(),
        Api::Responses => "/responses".to_owned(),
        Api::Chat => "/chat/completions".to_owned(),
        Api::Gemini => gemini::encode::path(target),
    }
}

/// Writes a result if its call is waiting for one. Vendors refuse results without a call.
fn push_result(target: &Target, result: &ToolResult<'_>, wire: &mut Wire) {
    let Some(call) = wire.take_pending(result.call) else { return };
    write_result(target, &call, result, wire);
}

fn write_result(target: &Target, call: &PendingCall, result: &ToolResult<'_>, wire: &mut Wire) {
    match target.api {
        Api::Anthropic => anthropic::encode::result(call, result, wire),
        Api::Responses => responses::encode::result(call, result, wire),
        Api::Chat => chat::encode::result(target, call, result, wire),
        Api::Gemini => gemini::encode::result(target, call, result, wire),
    }
}

/// Answers the calls without a result, and shows the images of results, before the next message.
fn settle(target: &Target, wire: &mut Wire) {
    for call in wire.take_all_pending() {
        let content = vec![ShownContent::Text(NO_RESULT.into())];
        let missing = ToolResult { call: &call.id, content, is_error: true };
        write_result(target, &call, &missing, wire);
    }
    let images = wire.take_images();
    if !images.is_empty() {
        match target.api {
            Api::Chat => chat::encode::images(&images, wire),
            Api::Gemini => gemini::encode::images(&images, wire),
            // Their results can contain images.
            Api::Anthropic | Api::Responses => {}
        }
    }
}

/// An id with only the characters that vendors accept, at most `max` of them.
fn plain_id(id: &str, max: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    if id.len() <= max {
        return id.chars().map(plain).collect();
    }
    // The removed part may be the only difference between two ids.
    let hash = blake3::hash(id.as_bytes()).to_hex();
    let kept: String = id.chars().map(plain).take(max - 9).collect();
    format!("{kept}_{}", &hash[..8])
}

#[cfg(test)]
pub(crate) mod tests;
