//! What has a row of its own, the newest state of it: approvals, findings, prompts that wait. All have
//! an id, a session, a state, and the time they began; the rest is JSON.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use events::{ApprovalId, ApprovalState, Finding, FindingId, FindingState, PromptId, SessionId, Timestamp};
use projections::{Approval, Prompt};
use rusqlite::{OptionalExtension, params};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    error::ReadError,
    reader::Reader,
    writer::{CommitError, SessionRow, Writer},
};

/// Something that is kept as a row.
pub trait Kept: Serialize + DeserializeOwned {
    /// Names it.
    type Id: Clone + fmt::Display + FromStr;
    /// How it stands.
    type State: Copy;
    /// The table.
    #[doc(hidden)]
    const TABLE: &'static str;
    /// Names it.
    fn id(&self) -> &Self::Id;
    /// How it stands.
    fn state(&self) -> Self::State;
    /// When it began.
    fn began_at(&self) -> Timestamp;
    /// The number that stands for a state.
    fn code(state: Self::State) -> u8;
}

macro_rules! kept {
    ($kept:ty, $id:ty, $state:ty, $table:literal, $began_at:ident) => {
        impl Kept for $kept {
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

kept!(Approval, ApprovalId, ApprovalState, "approvals", opened_at);
kept!(Finding, FindingId, FindingState, "findings", first_at);
kept!(Prompt, PromptId, events::QueuedState, "prompts", queued_at);

/// Which rows to list.
#[derive(Debug, Clone)]
pub struct KeptFilter<T: Kept> {
    /// Only those that stand like this, by the codes of the states.
    pub states: Option<RangeInclusive<T::State>>,
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// Only those behind this one in the list: when it began, and its id.
    pub behind: Option<(Timestamp, T::Id)>,
    /// At most so many, the newest.
    pub limit: usize,
}

impl Writer {
    /// Keeps something as it stands.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn keep<T: Kept>(&mut self, row: SessionRow, kept: &T) -> Result<(), CommitError> {
        let json = serde_json::to_string(kept).unwrap_or_default();
        let sql = format!(
            "INSERT OR REPLACE INTO {} (id, session, state, began_at, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            T::TABLE
        );
        self.connection()
            .prepare_cached(&sql)
            .and_then(|mut s| {
                s.execute(params![
                    kept.id().to_string(),
                    row.number(),
                    T::code(kept.state()),
                    kept.began_at().as_millisecond(),
                    json
                ])
            })
            .map_err(|source| CommitError { what: T::TABLE, source })?;
        Ok(())
    }
}

impl Reader {
    /// What is kept, the newest first.
    ///
    /// # Errors
    /// When SQLite cannot read, or a row is damaged.
    pub fn kept<T: Kept>(&self, filter: &KeptFilter<T>) -> Result<Vec<T>, ReadError> {
        self.with(T::TABLE, |c| {
            let sqlite = |source| ReadError::Sqlite { what: T::TABLE, source };
            let sql = format!(
                "SELECT body FROM {} WHERE (?1 IS NULL OR state BETWEEN ?1 AND ?2) \
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
                .query_map(params![first, last, session, limit, began_at, id], |row| row.get::<_, String>(0))
                .map_err(sqlite)?;
            rows.map(|row| parsed(&row.map_err(sqlite)?)).collect()
        })
    }

    /// One of what is kept, by its id.
    ///
    /// # Errors
    /// When SQLite cannot read, or the row is damaged.
    pub fn one<T: Kept>(&self, id: &T::Id) -> Result<Option<T>, ReadError> {
        let found = self.with(T::TABLE, |c| {
            c.prepare_cached(&format!("SELECT body FROM {} WHERE id = ?1", T::TABLE))
                .and_then(|mut s| s.query_row([id.to_string()], |row| row.get::<_, String>(0)).optional())
                .map_err(|source| ReadError::Sqlite { what: T::TABLE, source })
        })?;
        found.map(|json| parsed(&json)).transpose()
    }
}

fn parsed<T: Kept>(json: &str) -> Result<T, ReadError> {
    serde_json::from_str(json).map_err(|error| ReadError::Damaged {
        what: T::TABLE,
        place: "a listing".into(),
        detail: error.to_string(),
    })
}

impl Writer {
    /// Notes that a message told of a finding.
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
    /// The findings a message has told of, the last `limit` of them.
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
