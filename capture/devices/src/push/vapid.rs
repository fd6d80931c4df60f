//! Identifies the sender to push services (RFC 8292): a token signed with this server's key, for one service and for at
//! most a day.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};

use super::PushError;

/// Validity of a token, seconds; the maximum is a day.
const GOOD_SECONDS: i64 = 12 * 3_600;

/// The key of this server.
pub(super) struct ServerKey {
    pkcs8: Vec<u8>,
    pair: EcdsaKeyPair,
}

impl ServerKey {
    pub(super) fn generate() -> Option<Self> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).ok()?;
        Self::read(made.as_ref().to_vec())
    }

    pub(super) fn read(pkcs8: Vec<u8>) -> Option<Self> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8, &SystemRandom::new()).ok()?;
        Some(Self { pkcs8, pair })
    }

    pub(super) fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The public key as base64url.
    pub(super) fn public_text(&self) -> String {
        BASE64.encode(self.pair.public_key())
    }

    /// The header that identifies the sender to this origin.
    pub(super) fn authorization(&self, origin: &str, now_s: i64, contact: &str) -> Result<String, PushError> {
        let claims = serde_json::json!({ "aud": origin, "exp": now_s + GOOD_SECONDS, "sub": contact });
        let head = BASE64.encode(r#"{"typ":"JWT","alg":"ES256"}"#);
        let signed = format!("{head}.{}", BASE64.encode(claims.to_string()));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).map_err(|_| PushError::Crypto)?;
        Ok(format!("vapid t={signed}.{}, k={}", BASE64.encode(signature), self.public_text()))
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    use super::*;

    #[test]
    fn a_vapid_token_is_signed_and_names_its_push_service() {
        let key = ServerKey::generate().unwrap();
        let header = key.authorization("https://fcm.googleapis.com", 1_000, "https://example.test").unwrap();
        let (token, public) = header.strip_prefix("vapid t=").unwrap().split_once(", k=").unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let bytes = |text: &str| BASE64.decode(text).unwrap();
        let verifies = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, bytes(public));
        verifies.verify(signed.as_bytes(), &bytes(signature)).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&bytes(signed.split_once('.').unwrap().1)).unwrap();
        let expected = serde_json::json!({
            "aud": "https://fcm.googleapis.com", "exp": 1_000 + GOOD_SECONDS, "sub": "https://example.test",
        });
        assert_eq!(claims, expected);
        assert_eq!(bytes(public).len(), 65);
    }
}
