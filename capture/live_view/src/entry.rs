//! A session in the form that lists and streams use.

use std::sync::Arc;

use events::{Provider, RunId, SessionId, State, Timestamp};
use projections::Session;

use crate::Json;

/// A session on the live view: the fields lists filter by, and its JSON.
#[derive(Debug, Clone)]
pub struct SessionEntry {
    /// capture's id.
    pub id: SessionId,
    /// The agent.
    pub provider: Provider,
    /// The agent's own id of the session.
    pub provider_session_id: Option<Arc<str>>,
    /// The state of the session.
    pub state: State,
    /// The run that hosts the session, or hosted it last.
    pub run_id: Option<RunId>,
    /// The parent session, if this is a sub-agent.
    pub parent: Option<SessionId>,
    /// The agent's own id of the session whose history this one continues.
    pub forked_from: Option<Arc<str>>,
    /// The session this one was merged into.
    pub merged_into: Option<SessionId>,
    /// Working directory.
    pub cwd: Option<Arc<str>>,
    /// When it was first observed.
    pub started_at: Timestamp,
    /// The time of its last event.
    pub last_event_at: Timestamp,
    /// Whether it is active: not exited, and not idle or unknown for long.
    pub active: bool,
    /// The serialized [`Session`]; absent for cold entries, whose JSON is read from the store.
    pub json: Option<Json>,
}

impl SessionEntry {
    /// The entry of a session, with its JSON.
    ///
    /// # Errors
    /// When the session cannot be serialized.
    pub fn of(session: &Session, active: bool) -> Result<Self, serde_json::Error> {
        Ok(Self { json: Some(Json::of(session)?), ..Self::cold(session, active) })
    }

    /// The entry of a session without its JSON.
    #[must_use]
    pub fn cold(session: &Session, active: bool) -> Self {
        Self {
            id: session.id,
            provider: session.provider,
            provider_session_id: session.provider_session_id.as_deref().map(Arc::from),
            state: session.status.state,
            run_id: session.run_id,
            parent: session.parent_session_id,
            forked_from: session.forked_from.as_deref().map(Arc::from),
            merged_into: session.merged_into,
            cwd: session.cwd.as_deref().map(Arc::from),
            started_at: session.started_at,
            last_event_at: session.last_event_at,
            active,
            json: None,
        }
    }
}
