//! Converts bytes to text: a character that is split over two reads is held back until the second read.

/// Converts bytes to text piece by piece. Invalid UTF-8 becomes U+FFFD, as [`String::from_utf8_lossy`] would convert
/// the whole; the result does not depend on how the bytes were split.
#[derive(Debug, Default)]
pub(super) struct Utf8Decoder {
    /// The beginning of an incomplete character, at most three bytes.
    held: Vec<u8>,
}

impl Utf8Decoder {
    /// Adds bytes and returns the complete text.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> String {
        let joined;
        let mut rest = if self.held.is_empty() {
            bytes
        } else {
            self.held.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.held);
            &joined
        };
        let mut text = String::with_capacity(rest.len());
        loop {
            match std::str::from_utf8(rest) {
                Ok(good) => {
                    text.push_str(good);
                    return text;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    text.push_str(std::str::from_utf8(good).unwrap_or_default());
                    let Some(length) = error.error_len() else {
                        self.held = bad.to_vec();
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &bad[length..];
                }
            }
        }
    }

    /// Ends the text and returns the held-back bytes as text.
    pub(super) fn end(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned()
    }
}
