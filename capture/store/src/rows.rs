//! Encodes events as rows and decodes them.

use std::{borrow::Cow, sync::Arc};

use events::{
    Confidence, Event, EventId, Kind, Origin, Payload, Provider, SessionId, Severity, Source, TextRef, Timestamp,
    TurnId, Unrecognized, id::Hex,
};
use rusqlite::{Row, types::ValueRef};

use crate::{damage::DamagedRows, error::ReadError};

/// Flag of events that were written before capture observed the session.
pub(crate) const HISTORY: i64 = 64;

/// Confidence, severity and the flags, packed into one number.
pub(crate) fn marks(event: &Event) -> i64 {
    i64::from(event.confidence.code())
        | i64::from(event.severity.map_or(0, Severity::code)) << 2
        | i64::from(event.derived) << 4
        | i64::from(event.text_ref.as_ref().is_some_and(|t| t.stored)) << 5
        | if event.history { HISTORY } else { 0 }
}

/// The columns that [`event`] reads, in its order, and their tables. A removed session has no events from the
/// transaction that removes it onwards, although they are deleted later in small steps.
pub(crate) const COLUMNS: &str = "e.position, s.id, e.sequence, e.id, e.kind, e.source, e.marks, e.created_at, e.observed_at, e.turn, e.parent, \
     e.agent, e.text, e.text_hash, e.text_length, e.data, f.path, e.generation, e.offset, e.length, e.delivery, s.provider, s.provider_session_id \
     FROM events e JOIN sessions s ON s.key = e.session \
     AND NOT EXISTS (SELECT 1 FROM erasing WHERE erasing.session = e.session) LEFT JOIN files f ON f.key = e.file";

/// The 16 bytes of an id; a damaged one is cut or filled with zeros.
pub(crate) fn bits(blob: &[u8]) -> [u8; 16] {
    std::array::from_fn(|index| blob.get(index).copied().unwrap_or_default())
}

/// Reads typed columns and remembers the first fault in the row.
struct Columns<'a> {
    row: &'a Row<'a>,
    wrong: Option<String>,
}

impl Columns<'_> {
    fn is_wrong(&mut self, what: impl FnOnce() -> String) {
        self.wrong.get_or_insert_with(what);
    }

    fn value(&self, index: usize) -> Result<ValueRef<'_>, ReadError> {
        self.row.get_ref(index).map_err(|source| ReadError::Sqlite { what: "event", source })
    }

    fn id(&mut self, index: usize) -> Result<Option<[u8; 16]>, ReadError> {
        let value = self.value(index)?.as_blob_or_null();
        let found = value.map(|blob| blob.map(|blob| (bits(blob), blob.len() == 16)));
        Ok(match found {
            Ok(None) => None,
            Ok(Some((id, true))) => Some(id),
            Ok(Some((id, false))) => {
                self.is_wrong(|| format!("column {index} is not 16 bytes"));
                Some(id)
            }
            Err(error) => {
                self.is_wrong(|| format!("column {index}: {error}"));
                None
            }
        })
    }

    fn required_id(&mut self, index: usize) -> Result<[u8; 16], ReadError> {
        let id = self.id(index)?;
        Ok(id.unwrap_or_else(|| {
            self.is_wrong(|| format!("column {index} is empty"));
            [0; 16]
        }))
    }

    fn number(&mut self, index: usize) -> Result<i64, ReadError> {
        let value = self.value(index)?.as_i64_or_null();
        Ok(match value {
            Ok(number) => number.unwrap_or_default(),
            Err(error) => {
                self.is_wrong(|| format!("column {index}: {error}"));
                0
            }
        })
    }

    fn unsigned(&mut self, index: usize) -> Result<u64, ReadError> {
        Ok(self.number(index)?.max(0) as u64)
    }

    fn text(&mut self, index: usize) -> Result<Option<String>, ReadError> {
        let (text, whole) = match self.value(index)? {
            ValueRef::Null => return Ok(None),
            ValueRef::Text(bytes) => match decoded(bytes) {
                Cow::Borrowed(text) => (text.to_owned(), true),
                Cow::Owned(text) => (text, false),
            },
            ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => (String::new(), false),
        };
        if !whole {
            self.is_wrong(|| format!("column {index} is not text"));
        }
        Ok(Some(text))
    }

    /// Decodes a code; `otherwise` if this version does not know it.
    fn code<T>(&mut self, what: &str, code: i64, known: impl FnOnce(u8) -> Option<T>, otherwise: T) -> T {
        u8::try_from(code).ok().and_then(known).unwrap_or_else(|| {
            self.is_wrong(|| format!("unknown {what} {code}"));
            otherwise
        })
    }
}

/// Decodes a text like [`String::from_utf8_lossy`]; allocates only if it is not UTF-8. Valid UTF-8 is checked in larger
/// steps than by the lossy function.
pub(crate) fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| Cow::Owned(String::from_utf8_lossy(bytes).into_owned()), Cow::Borrowed)
}

/// Reads an event from a row with [`COLUMNS`]. If the row is damaged or was written by a newer version, its readable
/// parts are returned as `unrecognized`, and the fault is recorded.
pub(crate) fn event(row: &Row<'_>, damaged: &DamagedRows) -> Result<Event, ReadError> {
    let mut columns = Columns { row, wrong: None };
    let position = columns.unsigned(0)?;
    let code = columns.number(4)?;
    let kind = u8::try_from(code).ok().and_then(Kind::from_code);
    let marks = columns.number(6)?;
    let data = row.get_ref(15).map_err(|source| ReadError::Sqlite { what: "event", source })?;
    let data = match data {
        ValueRef::Text(bytes) => decoded(bytes),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => Cow::Borrowed(""),
    };
    if matches!(data, Cow::Owned(_)) {
        columns.is_wrong(|| "data is not UTF-8".into());
    }
    let payload = match kind.map(|kind| Payload::from_json(kind, &data)) {
        Some(Ok(payload)) => payload,
        Some(Err(error)) => {
            columns.is_wrong(|| format!("data: {error}"));
            unread("damaged", &data, error.to_string())
        }
        None => {
            let why = format!("unknown kind {code}");
            columns.is_wrong(|| why.clone());
            unread(&format!("kind {code}"), &data, why)
        }
    };
    let origin = match (columns.text(16)?, columns.text(20)?) {
        (Some(path), _) => Origin::File {
            path: Arc::from(path),
            generation: columns.unsigned(17)? as u32,
            offset: columns.unsigned(18)?,
            length: columns.unsigned(19)?,
        },
        (None, Some(id)) => Origin::Delivery { id: Arc::from(id) },
        (None, None) => Origin::Derived,
    };
    let (source, provider) = (columns.number(5)?, columns.number(21)?);
    let event = Event {
        position,
        session_id: SessionId::from_bytes(columns.required_id(1)?),
        sequence: columns.unsigned(2)?,
        id: EventId::from_bytes(columns.required_id(3)?),
        provider: columns.code("provider", provider, Provider::from_code, Provider::Unknown),
        provider_session_id: Arc::from(columns.text(22)?.unwrap_or_default()),
        source: columns.code("source", source, Source::from_code, Source::Runtime),
        created_at: Timestamp::from_millisecond(columns.number(7)?),
        observed_at: Timestamp::from_millisecond(columns.number(8)?),
        turn_id: columns.id(9)?.map(TurnId::from_bytes),
        parent_id: columns.id(10)?.map(EventId::from_bytes),
        agent_id: columns.text(11)?.map(Arc::from),
        confidence: columns.code("confidence", marks & 3, Confidence::from_code, Confidence::Low),
        severity: Severity::from_code(((marks >> 2) & 3) as u8),
        text: columns.text(12)?,
        text_ref: match columns.id(13)? {
            None => None,
            Some(hash) => {
                Some(TextRef { hash: Hex(&hash).to_string(), length: columns.unsigned(14)?, stored: marks & 32 != 0 })
            }
        },
        payload,
        origin,
        derived: marks & 16 != 0,
        history: marks & HISTORY != 0,
    };
    if let Some(wrong) = columns.wrong {
        damaged.note("event", format_args!("position {position}"), wrong);
    }
    Ok(event)
}

/// A placeholder for data that this version cannot read.
fn unread(raw_kind: &str, data: &str, issue: String) -> Payload {
    let length = data.len() as u64;
    Unrecognized { raw_kind: raw_kind.to_owned(), issue: Some(issue), length, hash: None }.into()
}

/// The text of a column, which may be invalid UTF-8.
pub(crate) fn lossy(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Text(bytes) => Some(decoded(bytes).into_owned()),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    })
}

/// A payload in its stored form.
#[must_use]
pub fn payload_json(payload: &Payload) -> String {
    serde_json::to_string(payload).unwrap_or_else(|_| "{}".into())
}
