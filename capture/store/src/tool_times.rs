//! Start and end times of tool calls, for reports.

use std::collections::HashMap;

use events::{Kind, SessionId, Timestamp};
use rusqlite::params;
use serde::Deserialize;

use crate::{error::ReadError, reader::Reader, rows::lossy};

/// The fields of a call or its result that are read here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CallFields {
    call_id: String,
    /// Whether a result only adds detail to one already reported.
    detail: bool,
}

impl Reader {
    /// The start and end times of a session's tool calls between two times, ordered by end; calls that did not return
    /// come last, without an end.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn tool_times(
        &self,
        id: SessionId,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<(Timestamp, Option<Timestamp>)>, ReadError> {
        let (call, result) = (Kind::ToolCall.code(), Kind::ToolResult.code());
        self.with("tool calls", |c| {
            let read = || -> rusqlite::Result<_> {
                let mut statement = c.prepare_cached(
                    "SELECT kind, created_at, data FROM events WHERE session = (SELECT key FROM sessions WHERE id = ?1) \
                     AND kind IN (?2, ?3) AND created_at >= ?4 AND created_at < ?5 ORDER BY sequence",
                )?;
                let id = id.to_bytes();
                let (since, until) = (since.as_millisecond(), until.as_millisecond());
                let mut rows = statement.query(params![id.as_slice(), call, result, since, until])?;
                let mut open: HashMap<String, Timestamp> = HashMap::new();
                let mut times = Vec::new();
                while let Some(row) = rows.next()? {
                    let at = Timestamp::from_millisecond(row.get(1)?);
                    let data = lossy(row, 2)?.unwrap_or_default();
                    let fields: CallFields = serde_json::from_str(&data).unwrap_or_default();
                    if row.get::<_, u8>(0)? == call {
                        open.entry(fields.call_id).or_insert(at);
                    } else if !fields.detail
                        && let Some(began) = open.remove(&fields.call_id)
                    {
                        times.push((began, Some(at)));
                    }
                }
                let mut open: Vec<_> = open.into_values().map(|began| (began, None)).collect();
                open.sort_unstable();
                times.append(&mut open);
                Ok(times)
            };
            read().map_err(|source| ReadError::Sqlite { what: "tool calls", source })
        })
    }
}
