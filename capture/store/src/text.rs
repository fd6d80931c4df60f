//! Texts, stored once each, addressed by hash and compressed. Short texts are stored in their events.

use events::{TextRef, id::Hex};

/// Longest text that is stored, bytes; for a longer one the event records where its bytes are in the transcript.
pub const TEXT_CAP_BYTES: usize = 256 * 1024;
/// Longest text that is stored if large texts are kept too, bytes.
pub const LARGE_TEXT_CAP_BYTES: usize = 64 << 20;
/// Longest text that stays complete in its event, bytes.
pub const INLINE_BYTES: usize = 1024;
/// Length of the beginning of a longer text that stays in its event, bytes.
const HEAD_BYTES: usize = 256;
/// Length of the end that stays too, where commands report their outcome, bytes.
const TAIL_BYTES: usize = 256;

/// Codec of an uncompressed text.
pub(crate) const PLAIN: u8 = 0;
/// Codec of an LZ4 block prefixed with its uncompressed length.
pub(crate) const LZ4: u8 = 1;

/// A long text prepared for the store, outside the writer's thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedText {
    /// BLAKE3, first 16 bytes.
    pub hash: [u8; 16],
    /// Length of the text, bytes.
    pub length: u64,
    pub(crate) codec: u8,
    /// `None` if the text exceeds the cap.
    pub(crate) body: Option<Vec<u8>>,
}

impl PackedText {
    /// Number of bytes the store uses for the text.
    #[must_use]
    pub fn stored_bytes(&self) -> usize {
        self.body.as_ref().map_or(0, Vec::len)
    }

    /// Packs a text that is too long for its event, leaving its beginning and end there; `None` if it is short enough.
    #[must_use]
    pub fn split(text: &mut String) -> Option<Self> {
        Self::split_within(TEXT_CAP_BYTES, text)
    }

    /// Like [`split`](Self::split), with another maximum length of stored texts, bytes.
    #[must_use]
    pub fn split_within(cap: usize, text: &mut String) -> Option<Self> {
        if text.len() <= INLINE_BYTES {
            return None;
        }
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
        let length = text.len() as u64;
        let (codec, body) = if text.len() > cap {
            (PLAIN, None)
        } else {
            let packed = lz4_flex::compress_prepend_size(text.as_bytes());
            if packed.len() < text.len() { (LZ4, Some(packed)) } else { (PLAIN, Some(text.as_bytes().to_vec())) }
        };
        let (head, tail) = left_out(text);
        text.replace_range(head..tail, "…");
        text.shrink_to_fit();
        Some(Self { hash, length, codec, body })
    }

    /// The complete text; `None` if it is not stored.
    #[must_use]
    pub fn unpacked(&self) -> Option<String> {
        unpack(self.codec, self.body.as_deref()?)
    }

    /// The event's reference to the text.
    #[must_use]
    pub fn reference(&self) -> TextRef {
        TextRef { hash: Hex(&self.hash).to_string(), length: self.length, stored: self.body.is_some() }
    }
}

/// Unpacks a stored text; `None` if the bytes are damaged.
pub(crate) fn unpack(codec: u8, body: &[u8]) -> Option<String> {
    let bytes = match codec {
        PLAIN => body.to_vec(),
        LZ4 => {
            // The length prefix is checked against the cap before it is used.
            let length = u32::from_le_bytes(body.get(..4)?.try_into().ok()?) as usize;
            if length > LARGE_TEXT_CAP_BYTES {
                return None;
            }
            lz4_flex::decompress_size_prepended(body).ok()?
        }
        _ => return None,
    };
    String::from_utf8(bytes).ok()
}

/// The range of a long text that its event omits. It does not split words, because half of a key would not be
/// recognized as one.
fn left_out(text: &str) -> (usize, usize) {
    let bytes = text.as_bytes();
    let is_of_word =
        |at: usize| bytes.get(at).is_some_and(|b| b.is_ascii_graphic() && !br#"'"`,;()[]{}<>|"#.contains(b));
    let is_inside = |at: usize| at > 0 && is_of_word(at - 1) && is_of_word(at);
    let (mut head, mut tail) = (text.floor_char_boundary(HEAD_BYTES), text.ceil_char_boundary(text.len() - TAIL_BYTES));
    while is_inside(head) {
        head -= 1;
    }
    while is_inside(tail) {
        tail += 1;
    }
    (head, tail)
}

/// Parses a hexadecimal hash.
pub(crate) fn unhex(text: &str) -> Option<[u8; 16]> {
    let mut hash = [0; 16];
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    for (slot, pair) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
        *slot = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_packed_text_unpacks_to_the_original(mut text in "[^…]{0,3000}") {
            let whole = text.clone();
            match PackedText::split(&mut text) {
                None => prop_assert!(whole.len() <= INLINE_BYTES && text == whole),
                Some(packed) => {
                    prop_assert_eq!(packed.length, whole.len() as u64);
                    let (head, tail) = text.split_once('…').unwrap();
                    prop_assert!(text.len() < INLINE_BYTES && whole.starts_with(head) && whole.ends_with(tail));
                    prop_assert_eq!(packed.unpacked(), Some(whole));
                }
            }
        }

        #[test]
        fn a_shortened_text_is_cut_between_words(words in prop::collection::vec("[!-~é]{1,40}", 100..200)) {
            let whole = words.join(" ");
            let mut text = whole.clone();
            if PackedText::split(&mut text).is_some() {
                let (head, tail) = text.split_once('…').unwrap();
                let cut = |left: &str, right: &str| {
                    let of_word = |c: char| c.is_ascii_graphic() && !r#"'"`,;()[]{}<>|"#.contains(c);
                    left.ends_with(of_word) && right.starts_with(of_word)
                };
                prop_assert!(!cut(head, &whole[head.len()..]) && !cut(&whole[..whole.len() - tail.len()], tail));
            }
        }

        #[test]
        fn unpacking_arbitrary_bytes_never_panics(codec: u8, body: Vec<u8>) {
            let _ = unpack(codec, &body);
        }
    }

    #[test]
    fn a_text_above_the_cap_is_stored_as_hash_and_length_only() {
        let mut text = "x".repeat(TEXT_CAP_BYTES + 1);
        let packed = PackedText::split(&mut text).unwrap();
        assert!(!packed.reference().stored && packed.unpacked().is_none());
        assert_eq!(packed.length, TEXT_CAP_BYTES as u64 + 1);
        // With large texts enabled, they are returned complete.
        let whole = "a large text ".repeat(100_000);
        let mut cut = whole.clone();
        let packed = PackedText::split_within(LARGE_TEXT_CAP_BYTES, &mut cut).unwrap();
        assert!(packed.reference().stored && cut.len() < 1_000);
        assert_eq!(packed.unpacked(), Some(whole));
    }

    #[test]
    fn hex_hashes_round_trip_and_invalid_hex_is_rejected() {
        assert_eq!(unhex(&Hex(&[0xab; 16]).to_string()), Some([0xab; 16]));
        assert_eq!(unhex("zz"), None);
    }
}
