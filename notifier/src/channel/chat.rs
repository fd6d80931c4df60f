//! Chat channels: Slack, Discord, Telegram. They send the text of the message, in which nothing is interpreted as a
//! mention, a foreign link or mark-up.

use events::Timestamp;
use serde_json::{Value, json};

use crate::{
    attempt::{AttemptFailure, Channel, Stopper},
    config::rule::Loudness,
    http::HttpClient,
    message::OutgoingMessage,
    secret::Secret,
    text,
};

/// Maximum number of characters of a text for Discord, with room for escapes.
const DISCORD_CHARS: usize = 900;
/// Maximum number of characters of a text for Slack and Telegram, with room for escapes.
const CHAT_CHARS: usize = 3_000;

/// Posts each message to one room.
pub(super) struct ChatChannel {
    url: Secret,
    payload: ChatPayload,
    client: HttpClient,
}

/// The service that defines the format of the payload.
enum ChatPayload {
    Slack,
    Discord,
    Telegram { chat_id: String },
}

impl ChatChannel {
    pub(super) const fn slack(url: Secret, client: HttpClient) -> Self {
        Self { url, payload: ChatPayload::Slack, client }
    }

    pub(super) const fn discord(url: Secret, client: HttpClient) -> Self {
        Self { url, payload: ChatPayload::Discord, client }
    }

    pub(super) fn telegram(server: &str, chat_id: &str, token: &Secret, client: HttpClient) -> Self {
        let url = Secret::new(format!("{}/bot{}/sendMessage", server.trim_end_matches('/'), token.expose()));
        Self { url, payload: ChatPayload::Telegram { chat_id: chat_id.to_owned() }, client }
    }
}

impl Channel for ChatChannel {
    fn deliver(&mut self, message: &OutgoingMessage, _: Timestamp) -> Result<(), AttemptFailure> {
        let payload = match &self.payload {
            ChatPayload::Slack => slack(message),
            ChatPayload::Discord => discord(message),
            ChatPayload::Telegram { chat_id } => telegram(chat_id, message),
        };
        self.client.post(self.url.expose(), &[], payload.to_string().as_bytes())
    }

    fn stopper(&self) -> Option<Stopper> {
        Some(self.client.stopper())
    }
}

fn plain(message: &OutgoingMessage, cap: usize) -> String {
    text::cut(&format!("{}\n{}", message.title, message.body), cap)
}

/// Plain text blocks, in which Slack interprets no mark-up and no mention; the text for notifications is escaped as its
/// manual requires (`&`, `<`, `>`).
fn slack(message: &OutgoingMessage) -> Value {
    let text = plain(message, CHAT_CHARS);
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    json!({
        "text": escaped,
        "mrkdwn": false,
        "parse": "none",
        "link_names": false,
        "unfurl_links": false,
        "unfurl_media": false,
        "blocks": [{"type": "section", "text": {"type": "plain_text", "text": text, "emoji": false}}],
    })
}

/// Mentions are disabled for the message, mark-up and the colon of links are escaped, links get no preview, and quiet
/// messages make no sound.
fn discord(message: &OutgoingMessage) -> Value {
    const SUPPRESS_EMBEDS: u64 = 1 << 2;
    const SUPPRESS_NOTIFICATIONS: u64 = 1 << 12;
    let mut content = String::new();
    for c in plain(message, DISCORD_CHARS).chars() {
        if c.is_ascii_punctuation() && !matches!(c, '.' | ',' | '\'' | '"' | '/' | ';' | '?' | '%' | '=' | '&') {
            content.push('\\');
        }
        content.push(c);
    }
    let quiet = message.loudness == Loudness::Quiet;
    let flags = SUPPRESS_EMBEDS | if quiet { SUPPRESS_NOTIFICATIONS } else { 0 };
    json!({"content": content, "allowed_mentions": {"parse": []}, "flags": flags})
}

/// The whole text is one block of code, in which Telegram finds no mention, link or command.
fn telegram(chat_id: &str, message: &OutgoingMessage) -> Value {
    let text = plain(message, CHAT_CHARS);
    // Lengths are in UTF-16 code units.
    let length = text.encode_utf16().count();
    json!({
        "chat_id": chat_id,
        "text": text,
        "entities": [{"type": "pre", "offset": 0, "length": length}],
        "link_preview_options": {"is_disabled": true},
        "disable_notification": message.loudness == Loudness::Quiet,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MessageForm, plan::tests::notice};

    fn nasty() -> OutgoingMessage {
        let mut one = notice("a", "approval");
        one.title = "<!channel> @everyone [x](https://evil.test) *b* `c` & <@U1>".into();
        one.body = "$ echo @here 😀".into();
        OutgoingMessage::new("c", MessageForm::Single, Loudness::Quiet, vec![one], Timestamp::MIN)
    }

    #[test]
    fn slack_messages_escape_mentions() {
        let value = slack(&nasty());
        let text = value["text"].as_str().unwrap();
        assert!(!text.contains('<') && !text.contains('>') && text.contains("&lt;!channel&gt;"), "{text}");
        assert_eq!(value["blocks"][0]["text"]["type"], "plain_text");
        assert_eq!(value["mrkdwn"], false);
    }

    #[test]
    fn discord_messages_disable_mentions_and_escape_markup() {
        let value = discord(&nasty());
        assert_eq!(value["allowed_mentions"], json!({"parse": []}));
        let text = value["content"].as_str().unwrap();
        assert!(
            text.contains("\\@everyone \\[x\\]\\(") && text.contains("\\*b\\*") && text.contains("\\`c\\`"),
            "{text}"
        );
        assert!(!text.contains("https:") && !text.contains(" <"), "{text}");
        assert_eq!(value["flags"], (1 << 2) | (1 << 12));
        let mut long = nasty();
        long.body = "*".repeat(5_000);
        assert!(discord(&long)["content"].as_str().unwrap().chars().count() <= 2_000);
    }

    #[test]
    fn telegram_messages_are_sent_as_preformatted_text() {
        let value = telegram("12", &nasty());
        let text = value["text"].as_str().unwrap();
        let length = text.encode_utf16().count();
        assert_eq!(value["entities"], json!([{"type": "pre", "offset": 0, "length": length}]));
        assert!(value.get("parse_mode").is_none());
        assert_eq!(value["disable_notification"], true);
    }
}
