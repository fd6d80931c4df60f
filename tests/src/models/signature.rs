//! Signatures of the scripted models: text that a vendor encrypts and expects back unmodified.
//!
//! A signature contains the signed text and a hash, so the request alone shows whether it was altered or moved to
//! another text. It is base64, like the vendors' signatures.

use base64::{Engine, engine::general_purpose::STANDARD};

/// Bytes of the hash.
const HASH: usize = 16;

/// Signs a text.
#[must_use]
pub fn sign(text: &str) -> String {
    let mut bytes = blake3::hash(text.as_bytes()).as_bytes()[..HASH].to_vec();
    bytes.extend_from_slice(text.as_bytes());
    STANDARD.encode(bytes)
}

/// The signed text; `None` if the signature is not valid.
#[must_use]
pub fn signed(signature: &str) -> Option<String> {
    let bytes = STANDARD.decode(signature).ok()?;
    let (hash, text) = bytes.split_at_checked(HASH)?;
    let text = std::str::from_utf8(text).ok()?;
    (blake3::hash(text.as_bytes()).as_bytes()[..HASH] == *hash).then(|| text.to_owned())
}
