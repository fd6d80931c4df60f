//! The id of an entry, as written.

use crate::json::Json;

/// The value of an id or parent id in a file. A string unless another program wrote something else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EntryKey {
    /// The field is missing.
    Absent,
    /// `null`
    Null,
    /// The id.
    Text(String),
    /// Another value, as JSON text.
    Other(String),
}

impl EntryKey {
    /// Reads the value of a field.
    #[must_use]
    pub fn of(value: Option<&Json>) -> Self {
        match value {
            None => Self::Absent,
            Some(Json::Null) => Self::Null,
            Some(Json::String(text)) => Self::Text(text.clone()),
            Some(other @ (Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_))) => {
                Self::Other(other.to_text())
            }
        }
    }

    /// The id, if it is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Whether entries can be found by it. In JavaScript, an array or object is equal only to itself.
    pub(crate) fn finds(&self) -> bool {
        !matches!(self, Self::Other(text) if text.starts_with(['[', '{']))
    }
}

impl From<&str> for EntryKey {
    fn from(id: &str) -> Self {
        Self::Text(id.to_owned())
    }
}

/// A non-negative number as an integer.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
pub(crate) fn whole(n: f64) -> Option<u64> {
    (0.0..1e18).contains(&n).then_some(n as u64)
}
