//! Publishes to an ntfy topic, as JSON to the root of the server.

use events::Timestamp;
use serde::Serialize;

use crate::{
    attempt::{AttemptFailure, Channel, Stopper},
    config::rule::Loudness,
    http::HttpClient,
    message::OutgoingMessage,
    notice::{AnswerButtons, Severity},
    secret::Secret,
};

/// Publishes each message to one topic.
pub(super) struct NtfyChannel {
    server: String,
    topic: String,
    /// Whether permission requests get buttons.
    has_buttons: bool,
    token: Option<Secret>,
    client: HttpClient,
}

/// The request body of ntfy.
#[derive(Debug, Serialize)]
struct NtfyPayload<'a> {
    topic: &'a str,
    title: &'a str,
    message: &'a str,
    priority: u8,
    tags: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    click: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    actions: Vec<NtfyAction<'a>>,
}

/// A button: a request that the reader's device sends, and that clears the message if it is accepted.
/// <https://docs.ntfy.sh/publish/#send-http-request>
#[derive(Debug, Serialize)]
struct NtfyAction<'a> {
    action: &'static str,
    label: &'static str,
    url: &'a str,
    method: &'static str,
    headers: NtfyHeaders,
    body: String,
    clear: bool,
}

#[derive(Debug, Serialize)]
struct NtfyHeaders {
    #[serde(rename = "Content-Type")]
    content_type: &'static str,
}

impl<'a> NtfyAction<'a> {
    fn new(label: &'static str, url: &'a str, token: &str) -> Self {
        let headers = NtfyHeaders { content_type: "application/json" };
        let body = serde_json::json!({ "token": token }).to_string();
        Self { action: "http", label, url, method: "POST", headers, body, clear: true }
    }
}

impl NtfyChannel {
    pub(super) fn new(server: &str, topic: &str, has_buttons: bool, token: Option<Secret>, client: HttpClient) -> Self {
        Self { server: server.to_owned(), topic: topic.to_owned(), has_buttons, token, client }
    }
}

impl Channel for NtfyChannel {
    fn deliver(&mut self, message: &OutgoingMessage, _: Timestamp) -> Result<(), AttemptFailure> {
        let headers: Vec<(&str, String)> =
            self.token.iter().map(|token| ("authorization", format!("Bearer {}", token.expose()))).collect();
        let body =
            serde_json::to_vec(&publish(&self.topic, message, self.has_buttons)).map_err(AttemptFailure::never)?;
        self.client.post(&self.server, &headers, &body)
    }

    fn stopper(&self) -> Option<Stopper> {
        Some(self.client.stopper())
    }
}

fn publish<'a>(topic: &'a str, message: &'a OutgoingMessage, has_buttons: bool) -> NtfyPayload<'a> {
    let severity = message.notices.iter().map(|n| n.severity).max().unwrap_or_default();
    let priority = match (message.loudness, severity) {
        (Loudness::Loud, Severity::Urgent) => 5,
        (Loudness::Loud, Severity::Info | Severity::Warning) => 4,
        (Loudness::Normal, _) => 3,
        (Loudness::Quiet | Loudness::Off, _) => 2,
    };
    let mut tags = vec![match severity {
        Severity::Info => "information_source",
        Severity::Warning => "warning",
        Severity::Urgent => "rotating_light",
    }];
    tags.push("capture");
    // A list of notices gets no buttons, because each button answers one request.
    let buttons = match message.notices.as_slice() {
        [only] if has_buttons => only.buttons.as_ref(),
        _ => None,
    };
    let actions = buttons.map_or_else(Vec::new, |buttons| {
        let AnswerButtons { url, allow, sentence, deny } = buttons;
        // The title or body may have been shortened since the token was created.
        let is_whole = message.title.ends_with(sentence.as_str()) || message.body.lines().any(|line| line == sentence);
        let allow = allow.as_ref().filter(|_| is_whole).map(|token| NtfyAction::new("Allow once", url, token));
        allow.into_iter().chain([NtfyAction::new("Deny", url, deny)]).collect()
    });
    let (title, message, click) = (&message.title, &message.body, message.url());
    NtfyPayload { topic, title, message, priority, tags, click, actions }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MessageForm, plan::tests::notice};

    #[test]
    fn an_ntfy_message_has_topic_title_priority_and_link() {
        let mut one = notice("a", "approval");
        one.url = Some("http://127.0.0.1:1/".into());
        let message = OutgoingMessage::new("n", MessageForm::Single, Loudness::Loud, vec![one], Timestamp::MIN);
        let value = serde_json::to_value(publish("t", &message, true)).unwrap();
        let expected = serde_json::json!({
            "topic": "t", "title": "api (shop): Bash asks for permission", "message": "Bash: cargo test a",
            "priority": 4, "tags": ["warning", "capture"], "click": "http://127.0.0.1:1/",
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn answer_buttons_require_one_fully_shown_request_and_the_setting() {
        let (url, allow, deny) =
            ("https://box.example/api/v1/answers".to_owned(), Some("aaa".to_owned()), "ddd".to_owned());
        let mut one = notice("a", "approval");
        one.buttons = Some(AnswerButtons { url: url.clone(), allow, sentence: "Bash: cargo test a".into(), deny });
        let of = |notices| OutgoingMessage::new("n", MessageForm::Single, Loudness::Loud, notices, Timestamp::MIN);
        let message = of(vec![one.clone()]);
        let value = serde_json::to_value(publish("t", &message, true)).unwrap();
        let button = |label: &str, token: &str| {
            serde_json::json!({
                "action": "http", "label": label, "url": url, "method": "POST", "clear": true,
                "headers": { "Content-Type": "application/json" }, "body": format!("{{\"token\":\"{token}\"}}"),
            })
        };
        assert_eq!(value["actions"], serde_json::json!([button("Allow once", "aaa"), button("Deny", "ddd")]));
        let mut risky = one.clone();
        risky.buttons.as_mut().unwrap().allow = None;
        let value = serde_json::to_value(publish("t", &of(vec![risky]), true)).unwrap();
        assert_eq!(value["actions"], serde_json::json!([button("Deny", "ddd")]));
        // A command that the message does not show completely.
        let mut long = one.clone();
        long.title = format!("asks permission for cargo test {}; ./drop", "-v ".repeat(30));
        long.body = "the agent waits".into();
        long.buttons.as_mut().unwrap().sentence.clone_from(&long.title);
        let value = serde_json::to_value(publish("t", &of(vec![long.clone()]), true)).unwrap();
        assert_eq!(value["actions"], serde_json::json!([button("Deny", "ddd")]));
        // Nor a sentence that appears only in text from the model before it.
        long.title = format!("asks permission for {}./drop", "x".repeat(60));
        long.session_label = "asks permission for ./drop".into();
        long.buttons.as_mut().unwrap().sentence = "asks permission for ./drop".into();
        let value = serde_json::to_value(publish("t", &of(vec![long]), true)).unwrap();
        assert_eq!(value["actions"], serde_json::json!([button("Deny", "ddd")]));
        for (message, has_buttons) in [(of(vec![one.clone()]), false), (of(vec![one.clone(), one.clone()]), true)] {
            let value = serde_json::to_value(publish("t", &message, has_buttons)).unwrap();
            assert_eq!(value.get("actions"), None);
        }
        let wire = String::from_utf8(crate::channel::wire::json(&message)).unwrap();
        assert!(!wire.contains("aaa") && !wire.contains("ddd"), "no other channel gets them: {wire}");
        assert!(!format!("{one:?}").contains("aaa"));
    }
}
