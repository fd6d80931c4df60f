//! The types of the lines, limited to the fields that are used. pi does not validate its input, so this module does not
//! either: every field is raw at first, and one of a wrong type counts as absent.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use agents::borrowed::escapes::unescaped;
use tailer::decode::Malformed;

/// A field as written.
pub(super) type PiField<'a> = Option<&'a RawValue>;

macro_rules! shape {
    ($(#[$doc:meta])* $name:ident { $($field:ident $(= $written:literal)?,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub(super) struct $name<'a> { $(#[serde(borrow $(, rename = $written)?)] pub(super) $field: PiField<'a>,)* }
    };
}

shape! {
    /// One line: the header, a title slot, or an entry.
    Line {
        kind = "type", id, parent_id, timestamp, cwd, parent_session, title,
        message,
        thinking_level, model_id, model, role, usage,
        summary, tokens_before, tokens_after,
        custom_type, data, content,
        target_id, label, name, replacement, mode, task, service_tier,
    }
}

shape! {
    /// The message of an entry.
    Message {
        role, content, timestamp,
        model, usage, stop_reason, error_message,
        tool_call_id, tool_name, is_error,
        command, output,
        custom_type,
        capture,
    }
}

shape! {
    /// What capture's own agent records about a user message.
    Sent { by, }
}

shape! {
    /// A part of a message.
    Part { kind = "type", text, thinking, id, name, arguments, }
}

shape! {
    /// Tokens of one answer.
    Tokens { input, output, cache_read, cache_write, cost, cost_unknown, }
}

shape! {
    /// US dollars; 0 for a model without a known price.
    Cost { total, }
}

/// Parses an object; anything else is not a valid line.
pub(super) fn line(bytes: &[u8]) -> Result<Line<'_>, Malformed> {
    let text = std::str::from_utf8(bytes).map_err(|e| Malformed(serde::de::Error::custom(e)))?;
    if !text.trim_start().starts_with('{') {
        return Err(Malformed(serde::de::Error::custom("not an object")));
    }
    Ok(serde_json::from_str(text)?)
}

/// Parses a field as a `T`; returns the default if the field has another form.
pub(super) fn shape<'a, T: Deserialize<'a> + Default>(raw: PiField<'a>) -> T {
    raw.filter(|raw| raw.get().starts_with('{'))
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

/// The text of a field.
pub(super) fn text(raw: PiField<'_>) -> Option<Cow<'_, str>> {
    unescaped(raw?)
}

/// The text of a field, if it is not blank.
pub(super) fn words(raw: PiField<'_>) -> Option<String> {
    text(raw).filter(|t| !t.trim().is_empty()).map(Cow::into_owned)
}

/// An amount of money.
pub(super) fn amount(raw: PiField<'_>) -> Option<f64> {
    raw?.get().parse().ok()
}

/// A count.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
pub(super) fn count(raw: PiField<'_>) -> Option<u64> {
    let number: f64 = raw?.get().parse().ok()?;
    (0.0..1e18).contains(&number).then_some(number as u64)
}

/// Whether a field is `true`.
pub(super) fn is_true(raw: PiField<'_>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

/// The parts of a content; a string is one text part.
pub(super) fn parts(raw: PiField<'_>) -> Vec<Part<'_>> {
    let Some(raw) = raw else { return Vec::new() };
    match raw.get().as_bytes().first() {
        Some(b'"') => vec![Part { text: Some(raw), ..Part::default() }],
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
            items.into_iter().map(|item| shape(Some(item))).collect()
        }
        Some(_) | None => Vec::new(),
    }
}

/// The readable text of a content, and the number of images and files in it.
pub(super) fn readable(raw: PiField<'_>) -> (Option<String>, u32) {
    let (mut all, mut others) = (None::<String>, 0);
    for part in parts(raw) {
        match text(part.text) {
            Some(text) => match &mut all {
                None => all = Some(text.into_owned()),
                Some(before) => {
                    before.push('\n');
                    before.push_str(&text);
                }
            },
            None => others += 1,
        }
    }
    (all.filter(|text| !text.is_empty()), others)
}
