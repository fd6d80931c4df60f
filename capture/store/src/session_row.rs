//! The row of a session, and the facts stored in it.

use std::sync::Arc;

use events::{Provider, SessionId};
use rusqlite::Row;

use crate::{
    rows::{bits, lossy},
    tombstones::is_removed_name,
};

/// The number of a session within the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionRow(i64);

impl SessionRow {
    pub(crate) const fn of(number: i64) -> Self {
        Self(number)
    }

    pub(crate) const fn number(self) -> i64 {
        self.0
    }
}

/// A session the store knows.
#[derive(Debug, Clone)]
pub struct KnownSession {
    /// Its row.
    pub row: SessionRow,
    /// Its id.
    pub id: SessionId,
    /// The agent.
    pub provider: Provider,
    /// The agent's id of the session.
    pub provider_session_id: Arc<str>,
    /// Whether the session is captured.
    pub capture: bool,
}

impl KnownSession {
    /// Whether the session was removed: its row only prevents its records from being read again.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        is_removed_name(&self.provider_session_id)
    }
}

/// A session with its last written state.
#[derive(Debug)]
pub struct StoredSession {
    /// The session.
    pub known: KnownSession,
    /// The time of its last event, ms.
    pub last_event_at: i64,
    /// The view as stored JSON; `None` if the session is not listed.
    pub view: Option<String>,
}

/// The columns of [`known_session`].
pub(crate) const KNOWN: &str = "key, id, provider, provider_session_id, capture";

/// Reads a session from a row that begins with the columns [`KNOWN`].
pub(crate) fn known_session(row: &Row<'_>) -> rusqlite::Result<KnownSession> {
    let provider = u8::try_from(row.get::<_, i64>(2)?).ok().and_then(Provider::from_code);
    Ok(KnownSession {
        row: SessionRow::of(row.get(0)?),
        id: SessionId::from_bytes(bits(row.get_ref(1)?.as_blob()?)),
        provider: provider.unwrap_or(Provider::Unknown),
        provider_session_id: lossy(row, 3)?.unwrap_or_default().into(),
        capture: row.get(4)?,
    })
}
