//! Appends events to the log, looking up the data shared by a batch only once.

use std::{collections::HashMap, sync::Arc};

use events::{Event, Origin};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use crate::{
    error::{CommitError, failed},
    rows::{marks, payload_json},
    session_row::SessionRow,
    text::PackedText,
};

/// Maximum number of paths whose rows are cached; other paths are looked up again.
const REMEMBERED: usize = 4096;

/// Appends events one after another, with prepared statements.
pub struct EventAppender<'w> {
    connection: &'w Connection,
    files: &'w mut FileKeys,
    events: CachedStatement<'w>,
    texts: CachedStatement<'w>,
    /// The path of the last event and its row.
    last_file: Option<(Arc<str>, i64)>,
}

impl std::fmt::Debug for EventAppender<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventAppender").field("files", &self.files).finish_non_exhaustive()
    }
}

impl<'w> EventAppender<'w> {
    pub(crate) fn new(connection: &'w Connection, files: &'w mut FileKeys) -> Result<Self, CommitError> {
        let events =
            "INSERT INTO events VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21)";
        let texts = "INSERT OR IGNORE INTO texts (hash, codec, body) VALUES (?1, ?2, ?3)";
        Ok(Self {
            events: connection.prepare_cached(events).map_err(failed("an event"))?,
            texts: connection.prepare_cached(texts).map_err(failed("a text"))?,
            connection,
            files,
            last_file: None,
        })
    }

    /// Appends an event that has its position and sequence, with the text that was too long for it, and with its
    /// payload's [`payload_json`], if already computed.
    ///
    /// # Errors
    /// When SQLite cannot write, or the position or sequence is taken.
    pub fn append(
        &mut self,
        row: SessionRow,
        event: &Event,
        text: Option<&PackedText>,
        payload: Option<&str>,
    ) -> Result<(), CommitError> {
        debug_assert!(
            payload.is_none_or(|payload| payload == payload_json(&event.payload)),
            "the payload changed after it was prepared"
        );
        if let Some(PackedText { hash, codec, body: Some(body), .. }) = text {
            self.texts.execute(params![hash.as_slice(), codec, body]).map_err(failed("a text"))?;
        }
        let (file, generation, offset, length, delivery) = match &event.origin {
            Origin::File { path, generation, offset, length } => {
                (Some(self.file(path)?), Some(*generation), Some(*offset as i64), Some(*length as i64), None)
            }
            Origin::Delivery { id } => (None, None, None, None, Some(&**id)),
            Origin::Derived => (None, None, None, None, None),
        };
        let encoded;
        let payload = match payload {
            Some(payload) => payload,
            None => {
                encoded = payload_json(&event.payload);
                &encoded
            }
        };
        self.events
            .execute(params![
                event.position as i64,
                row.number(),
                event.sequence as i64,
                event.id.to_bytes().as_slice(),
                event.payload.kind().code(),
                event.source.code(),
                marks(event),
                event.created_at.as_millisecond(),
                event.observed_at.as_millisecond(),
                event.turn_id.map(|t| t.to_bytes()).as_ref().map(<[u8; 16]>::as_slice),
                event.parent_id.map(|p| p.to_bytes()).as_ref().map(<[u8; 16]>::as_slice),
                event.agent_id.as_deref(),
                event.text.as_deref(),
                text.map(|t| t.hash.as_slice()),
                text.map(|t| t.length as i64),
                payload,
                file,
                generation,
                offset,
                length,
                delivery
            ])
            .map_err(failed("an event"))?;
        Ok(())
    }

    fn file(&mut self, path: &Arc<str>) -> Result<i64, CommitError> {
        if let Some((last, key)) = &self.last_file
            && Arc::ptr_eq(last, path)
        {
            return Ok(*key);
        }
        let key = self.files.key_of(self.connection, path)?;
        self.last_file = Some((Arc::clone(path), key));
        Ok(key)
    }
}

/// A cache of the rows of files, by path.
#[derive(Debug, Default)]
pub(crate) struct FileKeys {
    keys: HashMap<Arc<str>, i64>,
    /// Paths added since the open transaction began, which may have created their rows.
    added: Vec<Arc<str>>,
}

impl FileKeys {
    /// The row of a file; created if it does not exist.
    pub(crate) fn key_of(&mut self, connection: &Connection, path: &Arc<str>) -> Result<i64, CommitError> {
        if let Some(key) = self.keys.get(path) {
            return Ok(*key);
        }
        let found: Option<i64> = connection
            .prepare_cached("SELECT key FROM files WHERE path = ?1")
            .and_then(|mut s| s.query_row([&**path], |row| row.get(0)).optional())
            .map_err(failed("a file"))?;
        let key = match found {
            Some(key) => key,
            None => connection
                .prepare_cached("INSERT INTO files (path) VALUES (?1)")
                .and_then(|mut s| s.insert([&**path]))
                .map_err(failed("a file"))?,
        };
        if self.keys.len() > REMEMBERED {
            self.keys.clear();
        }
        self.keys.insert(Arc::clone(path), key);
        self.added.push(Arc::clone(path));
        Ok(key)
    }

    /// Call after the transaction was committed.
    pub(crate) fn committed(&mut self) {
        self.added.clear();
    }

    /// Call after the transaction was rolled back.
    pub(crate) fn rolled_back(&mut self) {
        for path in self.added.drain(..) {
            self.keys.remove(&path);
        }
    }
}
