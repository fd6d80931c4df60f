//! Encodes an event as a row, and decodes it.

use std::sync::Arc;

use events::{
    Confidence, Event, EventId, Kind, Origin, Payload, Provider, SessionId, Severity, Source, TextRef, Timestamp,
    TurnId, id::Hex,
};
use rusqlite::Row;

use crate::error::ReadError;

/// Flag of events that were written before capture observed the session.
pub(crate) const HISTORY: i64 = 64;

/// Confidence, severity and the flags in one number.
pub(crate) fn marks(event: &Event) -> i64 {
    i64::from(event.confidence.code())
        | i64::from(event.severity.map_or(0, Severity::code)) << 2
        | i64::from(event.derived) << 4
        | i64::from(event.text_ref.as_ref().is_some_and(|t| t.stored)) << 5
        | if event.history { HISTORY } else { 0 }
}

/// The columns [`event`] reads, in its order.
pub(crate) const COLUMNS: &str = "e.position, s.id, e.sequence, e.id, e.kind, e.source, e.marks, e.created_at, e.observed_at, e.turn, e.parent, \
     e.agent, e.text, e.text_hash, e.text_length, e.data, f.path, e.generation, e.offset, e.length, e.delivery, s.provider, s.provider_session_id \
     FROM events e JOIN sessions s ON s.key = e.session LEFT JOIN files f ON f.key = e.file";

fn bits(blob: Vec<u8>) -> Option<[u8; 16]> {
    blob.try_into().ok()
}

/// Reads an event from a row with [`COLUMNS`].
pub(crate) fn event(row: &Row<'_>) -> Result<Event, ReadError> {
    let sqlite = |source| ReadError::Sqlite { what: "event", source };
    let position: i64 = row.get(0).map_err(sqlite)?;
    let damaged = |detail: String| ReadError::Damaged { what: "event", place: format!("position {position}"), detail };
    let get_bits = |index: usize| -> Result<Option<[u8; 16]>, ReadError> {
        match row.get::<_, Option<Vec<u8>>>(index).map_err(sqlite)? {
            None => Ok(None),
            Some(blob) => bits(blob).map(Some).ok_or_else(|| damaged(format!("column {index} is not 16 bytes"))),
        }
    };
    let need = |index: usize| get_bits(index)?.ok_or_else(|| damaged(format!("column {index} is empty")));
    let code = |index: usize| -> Result<u8, ReadError> { row.get::<_, u8>(index).map_err(sqlite) };
    let unknown = |what: &str, code: u8| damaged(format!("unknown {what} {code}"));

    let kind = code(4).and_then(|c| Kind::from_code(c).ok_or_else(|| unknown("kind", c)))?;
    let marks: i64 = row.get(6).map_err(sqlite)?;
    let confidence =
        Confidence::from_code((marks & 3) as u8).ok_or_else(|| unknown("confidence", (marks & 3) as u8))?;
    let data = row.get_ref(15).map_err(sqlite)?.as_str().map_err(|e| damaged(e.to_string()))?;
    let path: Option<Arc<str>> = row.get::<_, Option<String>>(16).map_err(sqlite)?.map(Arc::from);
    let number = |index: usize| -> Result<u64, ReadError> {
        Ok(row.get::<_, Option<i64>>(index).map_err(sqlite)?.unwrap_or(0).max(0) as u64)
    };
    let origin = match (path, row.get::<_, Option<String>>(20).map_err(sqlite)?) {
        (Some(path), _) => {
            Origin::File { path, generation: number(17)? as u32, offset: number(18)?, length: number(19)? }
        }
        (None, Some(id)) => Origin::Delivery { id: Arc::from(id) },
        (None, None) => Origin::Derived,
    };
    Ok(Event {
        position: position.max(0) as u64,
        session_id: SessionId::from_bytes(need(1)?),
        sequence: number(2)?,
        id: EventId::from_bytes(need(3)?),
        provider: code(21).and_then(|c| Provider::from_code(c).ok_or_else(|| unknown("provider", c)))?,
        provider_session_id: Arc::from(row.get::<_, String>(22).map_err(sqlite)?),
        source: code(5).and_then(|c| Source::from_code(c).ok_or_else(|| unknown("source", c)))?,
        created_at: Timestamp::from_millisecond(row.get(7).map_err(sqlite)?),
        observed_at: Timestamp::from_millisecond(row.get(8).map_err(sqlite)?),
        turn_id: get_bits(9)?.map(TurnId::from_bytes),
        parent_id: get_bits(10)?.map(EventId::from_bytes),
        agent_id: row.get::<_, Option<String>>(11).map_err(sqlite)?.map(Arc::from),
        confidence,
        severity: Severity::from_code(((marks >> 2) & 3) as u8),
        text: row.get(12).map_err(sqlite)?,
        text_ref: get_bits(13)?
            .map(|hash| {
                Ok::<_, ReadError>(TextRef {
                    hash: Hex(&hash).to_string(),
                    length: number(14)?,
                    stored: marks & 32 != 0,
                })
            })
            .transpose()?,
        payload: Payload::from_json(kind, data).map_err(|e| damaged(format!("data of {kind}: {e}")))?,
        origin,
        derived: marks & 16 != 0,
        history: marks & HISTORY != 0,
    })
}
