//! The id of an entry, as it was written.

use crate::json::Json;

/// What an id or a parent's id is in a file. A string but for what other programs wrote wrong.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EntryKey {
    /// There is no such field.
    Absent,
    /// `null`
    Null,
    /// The id.
    Text(String),
    /// Something else, by its text.
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

    /// The id, when it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Whether an entry can be found by it. In JavaScript an array or object is equal to itself alone.
    pub(crate) fn finds(&self) -> bool {
        !matches!(self, Self::Other(text) if text.starts_with(['[', '{']))
    }
}

impl From<&str> for EntryKey {
    fn from(id: &str) -> Self {
        Self::Text(id.to_owned())
    }
}

/// A number as a whole one that is not below 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
pub(crate) fn whole(n: f64) -> Option<u64> {
    (0.0..1e18).contains(&n).then_some(n as u64)
}
