//! Encrypts a message for one browser: RFC 8291 (keys) and RFC 8188 (`aes128gcm`).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::{
    aead, agreement, hkdf,
    rand::{SecureRandom, SystemRandom},
};

use super::PushError;

/// Maximum length of a message, bytes: push services accept 4,096 including the overhead.
pub const MAX_MESSAGE: usize = 3_072;
/// Length of a public key, bytes: an uncompressed point.
const POINT: usize = 65;
/// Length of the secret that the browser shares, bytes.
const AUTH: usize = 16;
/// Length of the salt, bytes.
const SALT: usize = 16;
/// The record size stated in the header: the message is a single record.
const RECORD: u32 = 4_096;

/// The browser's keys for encryption.
pub(super) struct BrowserKeys {
    public: [u8; POINT],
    auth: [u8; AUTH],
}

/// Number of bytes to derive.
#[derive(Clone, Copy)]
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Derives `N` bytes.
fn derive<const N: usize>(key: &hkdf::Prk, about: &[&[u8]]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    key.expand(about, Length(N)).ok()?.fill(&mut bytes).ok()?;
    Some(bytes)
}

/// The key and the nonce of the single record, from the shared secret.
fn content_keys(
    shared: &[u8],
    auth: &[u8],
    (browser, server): (&[u8], &[u8]),
    salt: &[u8],
) -> Option<(aead::LessSafeKey, aead::Nonce)> {
    let key = hkdf::Salt::new(hkdf::HKDF_SHA256, auth).extract(shared);
    let input: [u8; 32] = derive(&key, &[b"WebPush: info\0", browser, server])?;
    let key = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(&input);
    let content: [u8; 16] = derive(&key, &[b"Content-Encoding: aes128gcm\0"])?;
    let nonce: [u8; 12] = derive(&key, &[b"Content-Encoding: nonce\0"])?;
    let content = aead::UnboundKey::new(&aead::AES_128_GCM, &content).ok()?;
    Some((aead::LessSafeKey::new(content), aead::Nonce::assume_unique_for_key(nonce)))
}

impl BrowserKeys {
    /// Parses the base64url keys of a subscription.
    pub(super) fn read(p256dh: &str, auth: &str) -> Option<Self> {
        let decode = |text: &str| BASE64.decode(text.trim_end_matches('=')).ok();
        let public: [u8; POINT] = decode(p256dh)?.try_into().ok()?;
        let auth = decode(auth)?.try_into().ok()?;
        (public[0] == 4).then_some(Self { public, auth })
    }

    /// Encrypts a message with a single-use key.
    pub(super) fn encrypt(&self, message: &[u8]) -> Result<Vec<u8>, PushError> {
        if message.len() > MAX_MESSAGE {
            return Err(PushError::Long);
        }
        self.sealed(message).ok_or(PushError::Crypto)
    }

    fn sealed(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        let mut salt = [0; SALT];
        random.fill(&mut salt).ok()?;
        let private = agreement::EphemeralPrivateKey::generate(&agreement::ECDH_P256, &random).ok()?;
        let server = private.compute_public_key().ok()?;
        let browser = agreement::UnparsedPublicKey::new(&agreement::ECDH_P256, &self.public);
        let keys = agreement::agree_ephemeral(private, &browser, |shared| {
            content_keys(shared, &self.auth, (&self.public, server.as_ref()), &salt)
        });
        let (key, nonce) = keys.ok()??;
        let mut record = message.to_vec();
        // Marks the last record.
        record.push(2);
        key.seal_in_place_append_tag(nonce, aead::Aad::empty(), &mut record).ok()?;
        let mut body = Vec::with_capacity(SALT + 5 + POINT + record.len());
        body.extend_from_slice(&salt);
        body.extend_from_slice(&RECORD.to_be_bytes());
        body.push(u8::try_from(server.as_ref().len()).ok()?);
        body.extend_from_slice(server.as_ref());
        body.extend_from_slice(&record);
        Some(body)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A browser that decrypts the messages sent to it.
    pub(in crate::push) struct TestBrowser {
        private: agreement::EphemeralPrivateKey,
        public: Vec<u8>,
        auth: [u8; AUTH],
    }

    impl TestBrowser {
        pub(in crate::push) fn new() -> Self {
            let random = SystemRandom::new();
            let private = agreement::EphemeralPrivateKey::generate(&agreement::ECDH_P256, &random).unwrap();
            let public = private.compute_public_key().unwrap().as_ref().to_vec();
            Self { private, public, auth: [7; AUTH] }
        }

        pub(in crate::push) fn keys(&self) -> (String, String) {
            (BASE64.encode(&self.public), BASE64.encode(self.auth))
        }

        pub(in crate::push) fn decrypt(self, body: &[u8]) -> Vec<u8> {
            let (salt, rest) = body.split_at(SALT);
            assert_eq!(rest[..5], [0, 0, 16, 0, 65]);
            let (server, record) = rest[5..].split_at(POINT);
            let peer = agreement::UnparsedPublicKey::new(&agreement::ECDH_P256, server);
            let keys = agreement::agree_ephemeral(self.private, &peer, |shared| {
                content_keys(shared, &self.auth, (&self.public, server), salt)
            });
            let (key, nonce) = keys.unwrap().unwrap();
            let mut record = record.to_vec();
            let plain = key.open_in_place(nonce, aead::Aad::empty(), &mut record).unwrap();
            assert_eq!(plain.last(), Some(&2));
            plain[..plain.len() - 1].to_vec()
        }
    }

    /// The example of RFC 8291, section 5 and appendix A, starting at the shared secret.
    #[test]
    fn encryption_matches_the_example_of_rfc_8291() {
        let bytes = |text: &str| BASE64.decode(text).unwrap();
        let shared = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
        let auth = bytes("BTBZMqHH6r4Tts7J_aSIgg");
        let browser = bytes("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4");
        let server = bytes("BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8");
        let salt = bytes("DGv6ra1nlYgDCS1FRnbzlw");
        let (key, nonce) = content_keys(&shared, &auth, (&browser, &server), &salt).unwrap();
        let mut record = b"When I grow up, I want to be a watermelon\x02".to_vec();
        key.seal_in_place_append_tag(nonce, aead::Aad::empty(), &mut record).unwrap();
        let expected = bytes("8pfeW0KbunFT06SuDKoJH9Ql87S1QUrdirN6GcG7sFz1y1sqLgVi1VhjVkHsUoEsbI_0LpXMuGvnzQ");
        assert_eq!(record, expected);
    }

    #[test]
    fn an_encrypted_message_is_decrypted_by_its_browser() {
        let browser = TestBrowser::new();
        let (p256dh, auth) = browser.keys();
        let keys = BrowserKeys::read(&p256dh, &format!("{auth}==")).unwrap();
        let (first, second) = (keys.encrypt(b"hello").unwrap(), keys.encrypt(b"hello").unwrap());
        assert_ne!(first, second, "each has a key of its own");
        assert_eq!(browser.decrypt(&first), b"hello");
        assert!(matches!(keys.encrypt(&[0; MAX_MESSAGE + 1]), Err(PushError::Long)));
        assert!(keys.encrypt(&[0; MAX_MESSAGE]).unwrap().len() <= 4_096);
    }

    #[test]
    fn malformed_browser_keys_are_refused() {
        let (p256dh, auth) = TestBrowser::new().keys();
        for (p256dh, auth) in [("", auth.as_str()), (&p256dh[1..], &auth), (&p256dh, ""), (&p256dh, "AAAA"), ("!", "!")]
        {
            assert!(BrowserKeys::read(p256dh, auth).is_none(), "{p256dh} {auth}");
        }
        let not_on_the_curve = BASE64.encode([4; POINT]);
        let keys = BrowserKeys::read(&not_on_the_curve, &auth).unwrap();
        assert!(matches!(keys.encrypt(b"x"), Err(PushError::Crypto)));
    }
}
