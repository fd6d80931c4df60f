//! Ids of requests, of tool calls, and of entries being written.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The number of a request to a model, counted from 1 within a session. A retried request gets a new number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestNumber(pub u64);

impl fmt::Display for RequestNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A tool call: the request whose answer contains it, and its index there. Written `12.0`.
///
/// The ids models assign are not unique in a session: some models count from 0 in every answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    /// The request; 0 for an answer written by another program.
    pub request: RequestNumber,
    /// The index among the calls of the answer.
    pub index: u32,
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.request, self.index)
    }
}

impl FromStr for CallId {
    type Err = InvalidCallId;

    fn from_str(text: &str) -> Result<Self, InvalidCallId> {
        let (request, index) = text.split_once('.').ok_or(InvalidCallId)?;
        let request = RequestNumber(request.parse().map_err(|_| InvalidCallId)?);
        Ok(Self { request, index: index.parse().map_err(|_| InvalidCallId)? })
    }
}

impl Serialize for CallId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The part of a model's id by which vendors distinguish calls. Responses ids contain a call and its item: the call
/// counts. It has the form sent to vendors that accept only letters, digits, `_` and `-`.
pub(crate) fn call_key(id: &str) -> String {
    const LONGEST: usize = 64;
    let call = id.split('|').next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    call.chars().take(LONGEST).map(plain).collect()
}

/// An id for a call whose own id is missing or taken: `first`, with a number appended if it is taken too.
pub(crate) fn other_id(first: String, is_taken: impl Fn(&str) -> bool) -> String {
    let more = (2..).map(|n: u32| format!("{first}_{n}"));
    std::iter::once(first.clone()).chain(more).find(|id| !is_taken(id)).unwrap_or(first)
}

/// The text is not the id of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidCallId;

impl fmt::Display for InvalidCallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected REQUEST.INDEX")
    }
}

impl std::error::Error for InvalidCallId {}

/// An entry being written to the file. Counted from 1 for each machine; never written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);
