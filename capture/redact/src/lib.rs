//! Removes secrets from everything that leaves the store: findings, notifications, exports, reports, logs. Titles,
//! summaries and turns contain none, because `projections::shorten` removes them when a text is folded. The program
//! shares one set of rules, created when it is first needed. Stored data is not changed, unless the user wants only
//! redacted data stored.

use std::{borrow::Cow, ops::Range};

use events::{Finding, Payload};
use host_protocol::runs::Description;
use projections::{ConversationItem, ItemBody, ItemText, Prompt, Subagent};
use secrets::{FoundSecret, Redactor};
use serde_json::Value;

/// Replacement for a text if the rules are not available, so that nothing leaves unchecked.
const UNREADABLE: &str = "[redacted:rules-unavailable]";

fn rules() -> Option<&'static Redactor> {
    // Not logged, because the log is redacted too: every text says that the rules are missing.
    secrets::shared()
}

/// The text without secrets.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    rules().map_or_else(|| Cow::Owned(UNREADABLE.to_owned()), |rules| rules.redact(text).text)
}

/// Bytes without secrets.
#[must_use]
pub fn of_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    rules().map_or_else(|| Cow::Owned(UNREADABLE.into()), |rules| rules.redact_bytes(bytes).bytes)
}

/// Redacts every string of a value.
pub fn value(value: &mut Value) {
    match rules() {
        Some(rules) => {
            rules.redact_json(value);
        }
        None => *value = Value::String(UNREADABLE.into()),
    }
}

fn own(given: &mut String) {
    if let Cow::Owned(redacted) = text(given) {
        *given = redacted;
    }
}

fn maybe(given: &mut Option<String>) {
    if let Some(text) = given {
        own(text);
    }
}

/// A finding without secrets.
#[must_use]
pub fn of_finding(mut finding: Finding) -> Finding {
    own(&mut finding.what);
    own(&mut finding.why);
    maybe(&mut finding.subject);
    maybe(&mut finding.resolution);
    finding
}

/// An item of a conversation without its secrets, ready to be shortened and formatted.
#[must_use]
pub fn of_item(item: &ConversationItem) -> ConversationItem {
    let mut item = item.clone();
    match &mut item.body {
        ItemBody::Prompt { text, .. } | ItemBody::Compaction { text, .. } => of_text(text),
        ItemBody::Message { thinking, text, .. } => {
            maybe(thinking);
            of_text(text);
        }
        ItemBody::ToolCall { name, title, input, result, subagents, .. } => {
            own(name);
            maybe(title);
            of_input(input);
            if let Some(result) = result {
                of_text(&mut result.text);
            }
            for subagent in subagents {
                *subagent = of_subagent(subagent);
            }
        }
        ItemBody::Subagent(subagent) => *subagent = of_subagent(subagent),
        ItemBody::Approval { subject, .. } => maybe(subject),
        ItemBody::Question { text, options, answer } => {
            of_text(text);
            options.iter_mut().for_each(own);
            if let Some(answer) = answer {
                of_text(answer);
            }
        }
        ItemBody::Error { code, text, .. } => {
            maybe(code);
            of_text(text);
        }
        ItemBody::TurnEnd { .. } => {}
    }
    item
}

fn of_text(text: &mut ItemText) {
    own(&mut text.text);
}

/// The input of a tool. In JSON, a field's name indicates the meaning of its value.
fn of_input(input: &mut ItemText) {
    if let Some(rules) = rules()
        && let Ok(mut fields) = serde_json::from_str(&input.text)
        && rules.redact_json(&mut fields) > 0
    {
        input.text = fields.to_string();
    }
    of_text(input);
}

/// A sub-agent with its title redacted.
#[must_use]
pub fn of_subagent(subagent: &Subagent) -> Subagent {
    let mut subagent = subagent.clone();
    maybe(&mut subagent.agent_type);
    maybe(&mut subagent.title);
    subagent
}

/// Removes secrets from the pieces of one text, including secrets that span pieces: such a secret is named in the piece
/// in which it begins.
pub fn of_pieces(pieces: &mut [String]) {
    let Some(rules) = rules() else {
        return pieces.iter_mut().for_each(|piece| UNREADABLE.clone_into(piece));
    };
    let whole = pieces.concat();
    let found = rules.redact(&whole).found;
    if found.is_empty() {
        return;
    }
    let mut begins = 0;
    for piece in pieces {
        let range = begins..begins + piece.len();
        begins = range.end;
        // Pieces and secrets begin and end at character boundaries.
        *piece = String::from_utf8_lossy(&kept_of(whole.as_bytes(), &found, range, whole.len())).into_owned();
    }
}

/// What remains of a piece, up to `cut`, after the found secrets are removed.
fn kept_of(whole: &[u8], found: &[FoundSecret], piece: Range<usize>, cut: usize) -> Vec<u8> {
    let end = piece.end.min(cut);
    let mut kept = Vec::with_capacity(piece.len());
    let mut at = piece.start;
    for one in found.iter().filter(|one| one.range.start < end && one.range.end > piece.start) {
        kept.extend_from_slice(whole.get(at..one.range.start.max(at)).unwrap_or_default());
        if one.range.start >= piece.start {
            kept.extend_from_slice(format!("[redacted:{}]", one.kind).as_bytes());
        }
        at = one.range.end.min(piece.end);
    }
    kept.extend_from_slice(whole.get(at..end).unwrap_or_default());
    kept
}

/// Removes secrets from the pieces of one output, like [`of_pieces`], up to a position in the whole. Output after the
/// position is searched but not changed.
pub fn of_byte_pieces(pieces: &mut [Vec<u8>], cut: usize) {
    let Some(rules) = rules() else {
        return pieces.iter_mut().for_each(|piece| piece.clear());
    };
    let whole = pieces.concat();
    let found = rules.redact_bytes(&whole).found;
    let mut begins = 0;
    for piece in pieces {
        let range = begins..begins + piece.len();
        begins = range.end;
        *piece = kept_of(&whole, &found, range, cut);
    }
}

/// A log writer that removes secrets from each line.
#[derive(Debug)]
pub struct Redacting<W: std::io::Write>(pub W);

impl<W: std::io::Write> std::io::Write for Redacting<W> {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        // A log record is written in one call.
        match rules() {
            Some(rules) => self.0.write_all(&rules.redact_bytes(line).bytes)?,
            None => self.0.write_all(UNREADABLE.as_bytes())?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Removes secrets from an event's text and data, for a store that must not contain any. A permission request changed
/// by this is no longer known exactly, so no rule allows it.
pub fn of_event(text_of: &mut Option<String>, payload: &mut Payload) {
    maybe(text_of);
    let Ok(mut data) = serde_json::to_value(&*payload) else { return };
    if !of_strings(&mut data) {
        return;
    }
    if let Ok(mut redacted) = Payload::from_json(payload.kind(), &data.to_string()) {
        if let Payload::ApprovalRequested(asked) = &mut redacted {
            (asked.cut, asked.masked) = (true, true);
        }
        *payload = redacted;
    }
}

/// Removes secrets from the description of a run.
pub fn of_run(run: &mut Description) {
    maybe(&mut run.name);
    own(&mut run.cwd);
    // A word of a command indicates the meaning of the next one.
    let mut command = Value::from(std::mem::take(&mut run.command));
    value(&mut command);
    run.command = serde_json::from_value(command).unwrap_or_default();
}

/// A prompt without secrets, marked as redacted if it contained any.
#[must_use]
pub fn of_prompt(prompt: &Prompt) -> Prompt {
    let mut prompt = prompt.clone();
    if let Cow::Owned(redacted) = text(&prompt.text) {
        prompt.text = redacted;
        prompt.redacted = true;
    }
    maybe(&mut prompt.why);
    prompt
}

/// Redacts each string of a value separately: the field names are ours and indicate nothing. Returns whether there was
/// a secret.
pub fn of_strings(value: &mut Value) -> bool {
    match value {
        Value::String(string) => match text(string) {
            Cow::Owned(redacted) => {
                *string = redacted;
                true
            }
            Cow::Borrowed(_) => false,
        },
        Value::Array(values) => values.iter_mut().fold(false, |changed, value| of_strings(value) | changed),
        Value::Object(fields) => fields.values_mut().fold(false, |changed, value| of_strings(value) | changed),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests;
