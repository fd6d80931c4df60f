//! JSON that is encoded once and sent many times.

use bytes::Bytes;
use serde::Serialize;
use tungstenite::Utf8Bytes;

/// One JSON text on one line. Cheap to clone: all clones share the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json(Utf8Bytes);

impl Json {
    /// Serializes a value.
    ///
    /// # Errors
    /// When the value cannot be represented as JSON (a map with keys that are not strings).
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(Self::from_text)
    }

    /// Wraps a text that is JSON on one line.
    #[must_use]
    pub fn from_text(text: String) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The bytes, shared.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.0.clone().into()
    }

    /// Appends a JSON array of these texts without encoding them again.
    pub fn concatenate(out: &mut String, parts: &[Self]) {
        out.reserve(parts.iter().map(|part| part.as_str().len() + 1).sum::<usize>() + 2);
        out.push('[');
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            out.push_str(part.as_str());
        }
        out.push(']');
    }
}
