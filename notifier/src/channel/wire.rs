//! A message as JSON: the body of a webhook and the standard input of a command. The format is stable: add fields, but
//! do not change or remove them.

use serde::Serialize;

use crate::{
    config::rule::Loudness,
    message::{MessageForm, OutgoingMessage},
    notice::Notice,
};

/// The version of the format.
pub const SCHEMA_VERSION: u32 = 1;
/// Maximum size of a body, bytes. Beyond it, notices at the end are left out and counted.
pub const BODY_BYTES: usize = 64 * 1024;

#[derive(Serialize)]
struct MessageWire<'a> {
    schema_version: u32,
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    form: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: Option<u32>,
    at: events::Timestamp,
    loudness: Loudness,
    title: &'a str,
    text: &'a str,
    url: Option<&'a str>,
    notices: &'a [Notice],
    notices_left_out: usize,
}

/// The message as JSON.
#[must_use]
pub fn json(message: &OutgoingMessage) -> Vec<u8> {
    let (form, repeat) = form(message.form);
    let mut take = message.notices.len();
    loop {
        let wire = MessageWire {
            schema_version: SCHEMA_VERSION,
            id: message.id.as_str(),
            kind: "capture.notice",
            form,
            repeat,
            at: message.at,
            loudness: message.loudness,
            title: &message.title,
            text: &message.body,
            url: message.url(),
            notices: &message.notices[..take],
            notices_left_out: message.notices.len() - take,
        };
        let body = serde_json::to_vec(&wire).unwrap_or_default();
        if body.len() <= BODY_BYTES || take == 0 {
            return body;
        }
        take /= 2;
    }
}

/// The name of a form, and the number of the repeat.
pub(super) const fn form(form: MessageForm) -> (&'static str, Option<u32>) {
    match form {
        MessageForm::Single => ("single", None),
        MessageForm::Group => ("group", None),
        MessageForm::Digest => ("digest", None),
        MessageForm::Repeat(n) => ("repeat", Some(n)),
        MessageForm::Test => ("test", None),
    }
}

#[cfg(test)]
mod tests {
    use events::Timestamp;

    use super::*;
    use crate::plan::tests::notice;

    #[test]
    fn a_message_body_has_the_documented_json_form() {
        let message = OutgoingMessage::new(
            "hook",
            MessageForm::Single,
            Loudness::Loud,
            vec![notice("a", "approval")],
            Timestamp::MIN,
        );
        let value: serde_json::Value = serde_json::from_slice(&json(&message)).unwrap();
        let expected = serde_json::json!({
            "schema_version": 1, "id": message.id, "type": "capture.notice", "form": "single",
            "at": "1970-01-01T00:00:00.000Z", "loudness": "loud",
            "title": "api (shop): Bash asks for permission", "text": "Bash: cargo test a", "url": null,
            "notices": [{
                "cause": "a", "kind": "approval", "severity": "warning", "session": "s1",
                "session_label": "api", "project": "shop", "title": "Bash asks for permission",
                "body": "Bash: cargo test a", "url": null, "run": null, "at": "1970-01-01T00:00:00.000Z",
            }],
            "notices_left_out": 0,
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn a_large_body_is_truncated_and_counts_the_omitted_notices() {
        let mut one = notice("a", "approval");
        one.body = "x".repeat(1_000);
        let message = OutgoingMessage::new("hook", MessageForm::Group, Loudness::Loud, vec![one; 500], Timestamp::MIN);
        let body = json(&message);
        assert!(body.len() <= BODY_BYTES);
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let told = value["notices"].as_array().unwrap().len();
        assert_eq!(told as u64 + value["notices_left_out"].as_u64().unwrap(), 500);
    }
}
