//! Entities with one row each, containing their latest state: approvals, findings and queued prompts. All have an id, a
//! session, a state and the time they began; the rest is JSON.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use events::{ApprovalId, ApprovalState, Finding, FindingId, FindingState, PromptId, SessionId, Timestamp};
use projections::{Approval, Prompt};
use rusqlite::{OptionalExtension, params};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    error::{CommitError, ReadError},
    reader::Reader,
    rows::lossy,
    session_row::SessionRow,
    writer::Writer,
};

/// An entity with its own row.
pub trait Entity: Serialize + DeserializeOwned {
    /// Its id.
    type Id: Clone + fmt::Display + FromStr;
    /// Its state.
    type State: Copy;
    /// The table.
    #[doc(hidden)]
    const TABLE: &'static str;
    /// Its id.
    fn id(&self) -> &Self::Id;
    /// Its state.
    fn state(&self) -> Self::State;
    /// When it began.
    fn began_at(&self) -> Timestamp;
    /// The code of a state.
    fn code(state: Self::State) -> u8;
}

macro_rules! entity {
    ($entity:ty, $id:ty, $state:ty, $table:literal, $began_at:ident) => {
        impl Entity for $entity {
            type Id = $id;
            type State = $state;
            const TABLE: &'static str = $table;
            fn id(&self) -> &$id {
                &self.id
            }
            fn state(&self) -> Self::State {
                self.state
            }
            fn began_at(&self) -> Timestamp {
                self.$began_at
            }
            fn code(state: Self::State) -> u8 {
                state.code()
            }
        }
    };
}

entity!(Approval, ApprovalId, ApprovalState, "approvals", opened_at);
entity!(Finding, FindingId, FindingState, "findings", first_at);
entity!(Prompt, PromptId, events::QueuedState, "prompts", queued_at);

/// Which rows to list.
#[derive(Debug, Clone)]
pub struct EntityFilter<T: Entity> {
    /// Only entities in these states, a range of state codes.
    pub states: Option<RangeInclusive<T::State>>,
    /// Only entities of this session.
    pub session: Option<SessionId>,
    /// Only entities after this one in the list: its beginning and its id.
    pub behind: Option<(Timestamp, T::Id)>,
    /// Maximum number of rows; the newest come first.
    pub limit: usize,
}

impl Writer {
    /// Writes the row of an entity.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn put_entity<T: Entity>(&mut self, row: SessionRow, entity: &T) -> Result<(), CommitError> {
        let json = serde_json::to_string(entity).unwrap_or_default();
        let sql = format!(
            "INSERT OR REPLACE INTO {} (id, session, state, began_at, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            T::TABLE
        );
        self.connection()
            .prepare_cached(&sql)
            .and_then(|mut s| {
                s.execute(params![
                    entity.id().to_string(),
                    row.number(),
                    T::code(entity.state()),
                    entity.began_at().as_millisecond(),
                    json
                ])
            })
            .map_err(|source| CommitError { what: T::TABLE, source })?;
        Ok(())
    }
}

impl Reader {
    /// Lists entities, newest first; damaged rows are skipped.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn entities<T: Entity>(&self, filter: &EntityFilter<T>) -> Result<Vec<T>, ReadError> {
        self.with(T::TABLE, |c| {
            let sqlite = |source| ReadError::Sqlite { what: T::TABLE, source };
            let sql = format!(
                "SELECT body, id FROM {} WHERE (?1 IS NULL OR state BETWEEN ?1 AND ?2) \
                 AND (?3 IS NULL OR session = (SELECT key FROM sessions WHERE id = ?3)) \
                 AND (?5 IS NULL OR (began_at, id) < (?5, ?6)) \
                 ORDER BY began_at DESC, id DESC LIMIT ?4",
                T::TABLE
            );
            let mut statement = c.prepare_cached(&sql).map_err(sqlite)?;
            let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
            let session = filter.session.map(|id| id.to_bytes());
            let states = filter.states.as_ref().map(|states| (T::code(*states.start()), T::code(*states.end())));
            let (first, last) = states.unzip();
            let session = session.as_ref().map(<[u8; 16]>::as_slice);
            let (began_at, id) = filter.behind.as_ref().map(|(at, id)| (at.as_millisecond(), id.to_string())).unzip();
            let rows = statement
                .query_map(params![first, last, session, limit, began_at, id], |row| {
                    Ok((lossy(row, 0)?.unwrap_or_default(), lossy(row, 1)?.unwrap_or_default()))
                })
                .map_err(sqlite)?;
            let mut entities = Vec::new();
            for row in rows {
                let (json, id) = row.map_err(sqlite)?;
                entities.extend(self.parsed(T::TABLE, id, &json));
            }
            Ok(entities)
        })
    }

    /// Looks up an entity by its id.
    ///
    /// # Errors
    /// When SQLite cannot read, or the row is damaged.
    pub fn entity<T: Entity>(&self, id: &T::Id) -> Result<Option<T>, ReadError> {
        let found = self.with(T::TABLE, |c| {
            c.prepare_cached(&format!("SELECT body FROM {} WHERE id = ?1", T::TABLE))
                .and_then(|mut s| s.query_row([id.to_string()], |row| lossy(row, 0)).optional())
                .map_err(|source| ReadError::Sqlite { what: T::TABLE, source })
        })?;
        let damaged = |error: serde_json::Error| {
            self.damaged().note(T::TABLE, id, &error);
            ReadError::Damaged { what: T::TABLE, place: id.to_string(), detail: error.to_string() }
        };
        found.map(|json| serde_json::from_str(&json.unwrap_or_default()).map_err(damaged)).transpose()
    }
}

impl Writer {
    /// Records that a message announced a finding.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn notified(&mut self, finding: &FindingId, at: Timestamp) -> Result<(), CommitError> {
        self.connection()
            .prepare_cached("INSERT OR IGNORE INTO notified (finding, at) VALUES (?1, ?2)")
            .and_then(|mut s| s.execute(params![finding.as_str(), at.as_millisecond()]))
            .map_err(|source| CommitError { what: "notified", source })?;
        Ok(())
    }
}

impl Reader {
    /// Lists the last `limit` findings that a message announced.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn notified(&self, limit: usize) -> Result<Vec<FindingId>, ReadError> {
        self.with("notified", |c| {
            let sqlite = |source| ReadError::Sqlite { what: "notified", source };
            let mut statement =
                c.prepare_cached("SELECT finding FROM notified ORDER BY at DESC LIMIT ?1").map_err(sqlite)?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows =
                statement.query_map([limit], |row| row.get::<_, String>(0).map(FindingId::from)).map_err(sqlite)?;
            rows.collect::<Result<_, _>>().map_err(sqlite)
        })
    }
}
