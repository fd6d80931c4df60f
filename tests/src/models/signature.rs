//! Signatures of the scripted models: what a vendor encrypts and wants back unmodified.
//!
//! A signature holds what it is of, and a hash: whether it was altered, or put where another belongs, can be told from
//! the request alone. It is base64, as the vendors' are.

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

/// The text that was signed; nothing when the signature is not valid.
#[must_use]
pub fn signed(signature: &str) -> Option<String> {
    let bytes = STANDARD.decode(signature).ok()?;
    let (hash, text) = bytes.split_at_checked(HASH)?;
    let text = std::str::from_utf8(text).ok()?;
    (blake3::hash(text.as_bytes()).as_bytes()[..HASH] == *hash).then(|| text.to_owned())
}
