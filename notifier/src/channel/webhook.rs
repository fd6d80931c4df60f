//! Webhooks: JSON, signed as in Standard Webhooks (HMAC-SHA256 over id, time and body).
//!
//! Source: the specification at `standardwebhooks.com`, symmetric signatures, version `v1`.

use base64::{Engine, engine::general_purpose::STANDARD};
use events::{MessageId, Timestamp};
use ring::hmac;

use super::wire;
use crate::{
    attempt::{AttemptFailure, Channel, Stopper},
    http::HttpClient,
    message::OutgoingMessage,
    secret::Secret,
};

/// Prefix of a secret in this form.
const PREFIX: &str = "whsec_";
/// Length of a key, bytes; the specification requires 24 to 64.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Posts each message to one address.
pub(super) struct WebhookChannel {
    url: String,
    key: hmac::Key,
    client: HttpClient,
}

impl WebhookChannel {
    pub(super) fn new(url: &str, secret: &Secret, client: HttpClient) -> Result<Self, String> {
        let text = secret.expose();
        let bytes = STANDARD
            .decode(text.strip_prefix(PREFIX).unwrap_or(text))
            .ok()
            .filter(|bytes| KEY_BYTES.contains(&bytes.len()))
            .ok_or_else(|| format!("its secret must be `{PREFIX}` followed by 24 to 64 bytes in base64"))?;
        Ok(Self { url: url.to_owned(), key: hmac::Key::new(hmac::HMAC_SHA256, &bytes), client })
    }
}

impl Channel for WebhookChannel {
    fn deliver(&mut self, message: &OutgoingMessage, now: Timestamp) -> Result<(), AttemptFailure> {
        let body = wire::json(message);
        let seconds = now.as_millisecond().div_euclid(1000);
        let headers = [
            ("webhook-id", message.id.to_string()),
            ("webhook-timestamp", seconds.to_string()),
            ("webhook-signature", sign(&self.key, &message.id, seconds, &body)),
        ];
        self.client.post(&self.url, &headers, &body)
    }

    fn stopper(&self) -> Option<Stopper> {
        Some(self.client.stopper())
    }
}

fn sign(key: &hmac::Key, id: &MessageId, seconds: i64, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(key);
    context.update(format!("{id}.{seconds}.").as_bytes());
    context.update(body);
    format!("v1,{}", STANDARD.encode(context.sign()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    #[test]
    fn a_webhook_signature_matches_the_specification_example() {
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let signed = sign(&key, &"msg_p5jXN8AQM9LWM0D4loKWxJek".into(), 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
