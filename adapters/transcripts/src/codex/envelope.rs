//! The envelope of a line, `{"timestamp":…,"ordinal":…,"type":…,"payload":…}`, recognised by its first bytes, so that
//! unneeded lines are not parsed.

use events::Timestamp;
use memchr::{memchr, memmem};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use super::{
    records::{Field, RawField},
    text,
};

/// The beginning of every line Codex writes. Inside a JSON string its quotes are escaped, so a second occurrence in a
/// line is another record appended without a newline.
const HEAD: &[u8] = b"{\"timestamp\":\"";

/// One line and its kind of record.
pub(super) struct RolloutLine<'a> {
    /// When it was written, according to Codex's clock.
    pub(super) timestamp: Option<Timestamp>,
    /// Its `type`.
    pub(super) kind: &'a str,
    /// The `type` of its payload; empty if it has none.
    pub(super) tag: &'a str,
    whole: &'a [u8],
    /// From the payload's first byte to the line's end, or only the payload if `read_through` is set.
    payload: &'a [u8],
    /// Whether the line was already parsed to its end.
    read_through: bool,
    /// Whether the line is the payload itself: Codex up to 0.3x wrote no envelope.
    pub(super) is_bare: bool,
}

#[derive(Deserialize)]
struct RolloutEnvelope<'a> {
    #[serde(borrow, default)]
    timestamp: Option<RawField<'a>>,
    #[serde(borrow, rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// The fields that determine the kind of a line without an envelope.
#[derive(Deserialize)]
struct BareLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a str>,
    #[serde(borrow)]
    record_type: Option<&'a str>,
    #[serde(borrow)]
    id: Option<RawField<'a>>,
    #[serde(borrow)]
    timestamp: Option<RawField<'a>>,
}

/// The kinds of records that were written without an envelope.
const BARE: &[&str] = &[
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "web_search_call",
];

#[derive(Deserialize)]
struct Tagged<'a> {
    #[serde(borrow, rename = "type")]
    tag: Option<&'a str>,
}

impl<'a> RolloutLine<'a> {
    /// Finds the envelope. Only [`read`](Self::read) and [`skip`](Self::skip) check whether the line is complete.
    pub(super) fn find(bytes: &'a [u8]) -> Result<Self, serde_json::Error> {
        match Self::glance(bytes) {
            Some(line) => Ok(line),
            None => Self::parse(bytes),
        }
    }

    /// Matches the order of fields that Codex writes, without white space.
    fn glance(bytes: &'a [u8]) -> Option<Self> {
        let (timestamp, rest) = name(bytes.strip_prefix(HEAD)?)?;
        let rest = rest.strip_prefix(b",")?;
        let rest = match rest.strip_prefix(b"\"ordinal\":") {
            Some(number) => number[memchr(b',', number.get(..24)?)?..].strip_prefix(b",")?,
            None => rest,
        };
        let (kind, rest) = name(rest.strip_prefix(b"\"type\":\"")?)?;
        let payload = rest.strip_prefix(b",\"payload\":")?;
        let tag = match payload.strip_prefix(b"{\"type\":\"") {
            Some(rest) => name(rest)?.0,
            None if matches!(kind, "event_msg" | "response_item" | "retained_context") => {
                return None;
            }
            None => "",
        };
        Some(Self {
            timestamp: Timestamp::parse(timestamp),
            kind,
            tag,
            whole: bytes,
            payload,
            read_through: false,
            is_bare: false,
        })
    }

    fn parse(bytes: &'a [u8]) -> Result<Self, serde_json::Error> {
        let envelope: RolloutEnvelope<'a> = match serde_json::from_slice(bytes) {
            Ok(envelope) => envelope,
            Err(error) => return Self::bare(bytes).ok_or(error),
        };
        let tagged: Tagged<'a> = serde_json::from_str(envelope.payload.get()).unwrap_or(Tagged { tag: None });
        Ok(Self {
            timestamp: envelope.timestamp.name().and_then(|time| Timestamp::parse(&time)),
            kind: envelope.kind,
            tag: tagged.tag.unwrap_or_default(),
            whole: bytes,
            payload: envelope.payload.get().as_bytes(),
            read_through: true,
            is_bare: false,
        })
    }

    /// A line without an envelope: the first line names the session, the others are response items, with records of the
    /// session's state between them.
    fn bare(bytes: &'a [u8]) -> Option<Self> {
        let line: BareLine<'a> = serde_json::from_slice(bytes).ok()?;
        let (kind, tag) = match (line.record_type, line.kind) {
            (Some(_), None) => ("world_state", ""),
            (None, Some(kind)) if BARE.contains(&kind) => ("response_item", kind),
            (None, None) if line.id.name().is_some() && line.timestamp.is_some() => ("session_meta", ""),
            _ => return None,
        };
        Some(Self {
            timestamp: line.timestamp.name().and_then(|time| Timestamp::parse(&time)),
            kind,
            tag,
            whole: bytes,
            payload: bytes,
            read_through: true,
            is_bare: true,
        })
    }

    /// Parses the payload, and checks the syntax of the rest of the line.
    pub(super) fn read<T: Deserialize<'a>>(&self) -> Result<T, serde_json::Error> {
        if self.read_through {
            return serde_json::from_slice(self.payload);
        }
        read_rest(self.payload)
    }

    /// Extracts a string field that is among the first of the payload. Returns its text, and the line from the payload
    /// on with that text removed, for [`read_rest`].
    pub(super) fn take_text(&self, field: &[u8]) -> Option<(String, Vec<u8>)> {
        if self.read_through {
            return None;
        }
        let head = &self.payload[..self.payload.len().min(256)];
        let begin = memmem::find(head, field)? + field.len();
        let (text, length) = text::read(&self.payload[begin..])?;
        let end = begin + length - 1;
        Some((text, [&self.payload[..begin], &self.payload[end..]].concat()))
    }

    /// Skips the line. It counts as one whole record if it ends correctly and contains no second head; it is parsed
    /// only in doubt.
    pub(super) fn skip(&self) -> Result<(), serde_json::Error> {
        let whole = self.read_through || self.whole.ends_with(b"}") && memmem::find(&self.whole[1..], HEAD).is_none();
        if whole {
            return Ok(());
        }
        serde_json::from_slice::<IgnoredAny>(self.whole).map(|_| ())
    }

    /// Whether the payload has no summary: most reasoning consists only of encrypted content.
    pub(super) fn has_no_summary(&self) -> bool {
        let head = &self.payload[..self.payload.len().min(256)];
        memmem::find(head, b"\"summary\":[]").is_some()
    }
}

/// Parses a payload and checks the rest of its line.
pub(super) fn read_rest<'a, T: Deserialize<'a>>(payload: &'a [u8]) -> Result<T, serde_json::Error> {
    let mut values = serde_json::Deserializer::from_slice(payload).into_iter::<T>();
    let Some(value) = values.next() else {
        return Err(serde::de::Error::custom("the payload is missing"));
    };
    let value = value?;
    let tail = &payload[values.byte_offset()..];
    if tail != b"}" {
        check_tail(tail)?;
    }
    Ok(value)
}

/// Reads a name up to its closing quote: at most 64 bytes, without escapes.
fn name(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = memchr(b'"', &bytes[..bytes.len().min(64)])?;
    let name = std::str::from_utf8(&bytes[..end]).ok()?;
    (!name.contains('\\')).then_some((name, &bytes[end + 1..]))
}

/// Checks the fields after the payload (`,"metadata":{…}}`).
fn check_tail(tail: &[u8]) -> Result<(), serde_json::Error> {
    let mut object = Vec::with_capacity(tail.len());
    object.extend_from_slice(tail);
    match object.first_mut() {
        Some(comma) if *comma == b',' => *comma = b'{',
        Some(_) | None => {
            return Err(serde::de::Error::custom("the line continues after its payload"));
        }
    }
    serde_json::from_slice::<IgnoredAny>(&object).map(|_| ())
}
