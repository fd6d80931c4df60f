//! Reading: a pool of read-only connections, cheap to clone.

use events::{Event, Kind, SessionId};
use projections::{Session, Turn, Usage};

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// SQLite said no.
    #[error("cannot read {what} from the store: {source}")]
    Sqlite {
        /// What was asked for.
        what: &'static str,
        /// SQLite's reason.
        source: rusqlite::Error,
    },
    /// A row does not hold what it should.
    #[error("damaged {what} in the store at {place}: {detail}")]
    Damaged {
        /// What was asked for.
        what: &'static str,
        /// Position or id of the row.
        place: String,
        /// What is wrong.
        detail: String,
    },
}

/// Which sessions to list.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// Only sessions whose last event is older than this one's: (last event in ms, id).
    pub before: Option<(i64, SessionId)>,
    /// At most so many.
    pub limit: usize,
}

/// Reads the store. Calls block: from async code, use `spawn_blocking`.
#[derive(Debug, Clone)]
pub struct Reader {}

impl Reader {
    /// The session as last committed.
    pub fn session(&self, _id: SessionId) -> Result<Option<Session>, ReadError> { Ok(None) }
    /// Sessions by last event, newest first.
    pub fn sessions(&self, _filter: &SessionFilter) -> Result<Vec<Session>, ReadError> { Ok(vec![]) }
    /// Finds a session by the provider's id (`None` when unknown).
    pub fn find(&self, _provider_session_id: &str) -> Result<Option<SessionId>, ReadError> { Ok(None) }
    /// Events of a session with a sequence above `after`, in order; `kinds` empty means all.
    pub fn events(&self, _id: SessionId, _after: u64, _limit: usize, _kinds: &[Kind]) -> Result<Vec<Event>, ReadError> { Ok(vec![]) }
    /// Events with a position above `after`, in order, of one session or of all.
    pub fn log(&self, _after: u64, _limit: usize, _session: Option<SessionId>) -> Result<Vec<Event>, ReadError> { Ok(vec![]) }
    /// The last `limit` events of a session, in order.
    pub fn last_events(&self, _id: SessionId, _limit: usize, _kinds: &[Kind]) -> Result<Vec<Event>, ReadError> { Ok(vec![]) }
    /// Turns of a session, in order; those with a number above `after`.
    pub fn turns(&self, _id: SessionId, _after: u32, _limit: usize) -> Result<Vec<Turn>, ReadError> { Ok(vec![]) }
    /// The whole text an event's `text_ref` points to (hash as hexadecimal).
    pub fn text(&self, _hash: &str) -> Result<Option<String>, ReadError> { Ok(None) }
    /// Tokens of all sessions, by provider and model: (provider, model, tokens).
    pub fn usage(&self) -> Result<Vec<(events::Provider, Option<String>, Usage)>, ReadError> { Ok(vec![]) }
    /// The last committed position; 0 when the log is empty.
    pub fn position(&self) -> Result<u64, ReadError> { Ok(0) }
    /// How many sessions there are.
    pub fn session_count(&self) -> Result<u64, ReadError> { Ok(0) }
}
