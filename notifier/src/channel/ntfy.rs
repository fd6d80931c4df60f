//! Publishes to a topic of ntfy, as JSON to the root of the server.

use events::Timestamp;
use serde::Serialize;

use crate::{
    attempt::{AttemptFailure, Channel, Stopper},
    config::rule::Loudness,
    http::HttpClient,
    message::OutgoingMessage,
    notice::Severity,
    secret::Secret,
};

/// Publishes each message to one topic.
pub(super) struct NtfyChannel {
    server: String,
    topic: String,
    token: Option<Secret>,
    client: HttpClient,
}

/// What ntfy takes.
#[derive(Debug, Serialize)]
struct NtfyPayload<'a> {
    topic: &'a str,
    title: &'a str,
    message: &'a str,
    priority: u8,
    tags: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    click: Option<&'a str>,
}

impl NtfyChannel {
    pub(super) fn new(server: &str, topic: &str, token: Option<Secret>, client: HttpClient) -> Self {
        Self { server: server.to_owned(), topic: topic.to_owned(), token, client }
    }
}

impl Channel for NtfyChannel {
    fn deliver(&mut self, message: &OutgoingMessage, _: Timestamp) -> Result<(), AttemptFailure> {
        let headers: Vec<(&str, String)> =
            self.token.iter().map(|token| ("authorization", format!("Bearer {}", token.expose()))).collect();
        let body = serde_json::to_vec(&publish(&self.topic, message)).map_err(AttemptFailure::never)?;
        self.client.post(&self.server, &headers, &body)
    }

    fn stopper(&self) -> Option<Stopper> {
        Some(self.client.stopper())
    }
}

fn publish<'a>(topic: &'a str, message: &'a OutgoingMessage) -> NtfyPayload<'a> {
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
    NtfyPayload { topic, title: &message.title, message: &message.body, priority, tags, click: message.url() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MessageForm, plan::tests::notice};

    #[test]
    fn what_is_published() {
        let mut one = notice("a", "approval");
        one.url = Some("http://127.0.0.1:1/".into());
        let message = OutgoingMessage::new("n", MessageForm::Single, Loudness::Loud, vec![one], Timestamp::MIN);
        let value = serde_json::to_value(publish("t", &message)).unwrap();
        let expected = serde_json::json!({
            "topic": "t", "title": "api (shop): Bash asks for permission", "message": "Bash: cargo test a",
            "priority": 4, "tags": ["warning", "capture"], "click": "http://127.0.0.1:1/",
        });
        assert_eq!(value, expected);
    }
}
