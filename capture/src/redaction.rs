//! Secrets out of what leaves: summaries, findings, notifications, exports, reports, logs. The one set of
//! rules of the program, made when it is needed first. What is stored is not touched, unless the user
//! wants nothing else stored.

use std::{borrow::Cow, sync::OnceLock};

use events::{Finding, Payload};
use projections::{Session, Turn};
use redact::Redactor;
use serde_json::Value;

/// What stands in the place of a text when the rules cannot be had: nothing leaves unlooked at.
const UNREADABLE: &str = "[redacted:rules-unavailable]";

fn rules() -> Option<&'static Redactor> {
    static RULES: OnceLock<Option<Redactor>> = OnceLock::new();
    let rules = RULES.get_or_init(|| {
        Redactor::new().map_err(|error| tracing::error!(%error, "the rules of redaction cannot be read")).ok()
    });
    rules.as_ref()
}

/// The text without secrets.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    rules().map_or(Cow::Borrowed(UNREADABLE), |rules| rules.redact(text).text)
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
    } else if rules().is_none() {
        UNREADABLE.clone_into(given);
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

/// What is told of a session, without secrets.
#[must_use]
pub fn of_session(session: &Session) -> Session {
    let mut session = session.clone();
    maybe(&mut session.title);
    maybe(&mut session.status.activity);
    for evidence in session.status.evidence.iter_mut().chain(&mut session.status.disagreements) {
        own(&mut evidence.claim);
    }
    if let Some(turn) = &mut session.turn {
        maybe(&mut turn.prompt);
    }
    let summary = &mut session.summary;
    [&mut summary.current, &mut summary.recent, &mut summary.last_prompt].into_iter().for_each(maybe);
    session
}

/// What is told of a turn, without secrets.
#[must_use]
pub fn of_turn(turn: &Turn) -> Turn {
    let mut turn = turn.clone();
    maybe(&mut turn.prompt);
    maybe(&mut turn.text);
    turn
}

/// An event's text and data without secrets, for a store that is to hold none. A request for permission
/// that is changed by it is not known to the byte any more, and no rule allows it.
pub fn of_event(text_of: &mut Option<String>, payload: &mut Payload) {
    maybe(text_of);
    let Ok(mut data) = serde_json::to_value(&*payload) else { return };
    if !each_string(&mut data) {
        return;
    }
    if let Ok(mut redacted) = Payload::from_json(payload.kind(), &data.to_string()) {
        if let Payload::ApprovalRequested(asked) = &mut redacted {
            asked.cut = true;
        }
        *payload = redacted;
    }
}

/// Redacts the strings of a value by themselves: names of fields are ours here, and say nothing.
fn each_string(value: &mut Value) -> bool {
    match value {
        Value::String(string) => match text(string) {
            Cow::Owned(redacted) => {
                *string = redacted;
                true
            }
            Cow::Borrowed(_) => false,
        },
        Value::Array(values) => values.iter_mut().fold(false, |changed, value| each_string(value) | changed),
        Value::Object(fields) => fields.values_mut().fold(false, |changed, value| each_string(value) | changed),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
