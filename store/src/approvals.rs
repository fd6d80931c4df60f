//! Approvals: a row each, the newest state of it.

use events::{ApprovalState, SessionId};
use projections::Approval;
use rusqlite::{OptionalExtension, params};

use crate::{
    reader::{ReadError, Reader},
    writer::{CommitError, SessionRow, Writer},
};

/// Which approvals to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApprovalFilter {
    /// Only those that stand like this.
    pub state: Option<ApprovalState>,
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// At most so many, the newest.
    pub limit: usize,
}

impl Writer {
    /// Keeps an approval as it stands.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn put_approval(&mut self, row: SessionRow, approval: &Approval) -> Result<(), CommitError> {
        let json = serde_json::to_string(approval).unwrap_or_default();
        self.connection()
            .prepare_cached("INSERT OR REPLACE INTO approvals (id, session, state, opened_at, approval) VALUES (?1, ?2, ?3, ?4, ?5)")
            .and_then(|mut s| {
                s.execute(params![
                    approval.id,
                    row.number(),
                    approval.state.code(),
                    approval.opened_at.as_millisecond(),
                    json
                ])
            })
            .map_err(|source| CommitError { what: "an approval", source })?;
        Ok(())
    }
}

impl Reader {
    /// Approvals, the newest first.
    ///
    /// # Errors
    /// When SQLite cannot read, or a row is damaged.
    pub fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, ReadError> {
        self.with("approvals", |c| {
            let sqlite = |source| ReadError::Sqlite { what: "approvals", source };
            let mut statement = c
                .prepare_cached(
                    "SELECT approval FROM approvals WHERE (?1 IS NULL OR state = ?1) \
                     AND (?2 IS NULL OR session = (SELECT key FROM sessions WHERE id = ?2)) \
                     ORDER BY opened_at DESC, id DESC LIMIT ?3",
                )
                .map_err(sqlite)?;
            let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
            let session = filter.session.map(|id| id.to_bytes());
            let state = filter.state.map(ApprovalState::code);
            let rows = statement
                .query_map(params![state, session.as_ref().map(<[u8; 16]>::as_slice), limit], |row| {
                    row.get::<_, String>(0)
                })
                .map_err(sqlite)?;
            rows.map(|row| parsed(&row.map_err(sqlite)?)).collect()
        })
    }

    /// An approval by its id.
    ///
    /// # Errors
    /// When SQLite cannot read, or the row is damaged.
    pub fn approval(&self, id: &str) -> Result<Option<Approval>, ReadError> {
        let found = self.with("approval", |c| {
            c.prepare_cached("SELECT approval FROM approvals WHERE id = ?1")
                .and_then(|mut s| s.query_row([id], |row| row.get::<_, String>(0)).optional())
                .map_err(|source| ReadError::Sqlite { what: "approval", source })
        })?;
        found.map(|json| parsed(&json)).transpose()
    }
}

fn parsed(json: &str) -> Result<Approval, ReadError> {
    serde_json::from_str(json).map_err(|error| ReadError::Damaged {
        what: "approval",
        place: "a listing".into(),
        detail: error.to_string(),
    })
}
