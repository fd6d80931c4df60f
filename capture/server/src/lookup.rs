//! Which session a request means: by its id, the agent's id, a run's name or part of an id.

use std::sync::Arc;

use api::{ErrorCode, Operation};
use events::SessionId;
use http::{HeaderValue, header};

use crate::{RunTarget, SessionEntry, app::App, call::Call, error::ApiError};

/// The shortest part of an id that names a session.
const SHORTEST_PART: usize = 3;

/// A session that a name means, and what it was merged into.
struct Found {
    id: SessionId,
    merged_into: Option<SessionId>,
}

impl Found {
    fn entry(entry: &SessionEntry) -> Self {
        Self { id: entry.id, merged_into: entry.merged_into }
    }
}

/// Finds the session that a name means: its id, the agent's id, the name or id of the run that hosts it, or a
/// beginning or end of an id that fits no other. A session that was merged into another keeps its names.
async fn find(app: &App, name: &str) -> Result<Found, ApiError> {
    if let Some(entry) = on_board(app, name) {
        return Ok(Found::entry(&entry));
    }
    let (id, given) = (name.parse::<SessionId>().ok(), name.to_owned());
    let stored = app
        .read(move |reader| {
            let session = id.map(|id| reader.session(id)).transpose()?.flatten();
            match session {
                Some(session) => Ok(Some(session)),
                None => reader.find(&given)?.map_or(Ok(None), |id| reader.session(id)),
            }
        })
        .await?;
    if let Some(session) = stored {
        return Ok(Found { id: session.id, merged_into: session.merged_into });
    }
    if let Ok(run) = app.control.run(&RunTarget::Run(name.to_owned()))
        && let Some(session) = run.session_id
    {
        return Ok(Found { id: session, merged_into: app.board.get(session).and_then(|entry| entry.merged_into) });
    }
    let mut fitting = if name.len() < SHORTEST_PART { Vec::new() } else { app.board.fitting(name) };
    // What was merged is the same session as what it was merged into.
    fitting.sort_by_key(|entry| entry.merged_into.is_some());
    fitting.dedup_by_key(|entry| entry.merged_into.unwrap_or(entry.id));
    match fitting.as_slice() {
        [] => Err(ApiError::session(name)),
        [entry] => Ok(Found::entry(entry)),
        [a, b, ..] => {
            let given: String = name.chars().take(64).collect();
            let why = format!("`{given}` fits several sessions, for instance {} and {}", a.id, b.id);
            Err(ApiError::new(ErrorCode::Ambiguous, why))
        }
    }
}

/// Which session a name means; of a merged one, what it became.
pub(crate) async fn id_of(app: &App, name: &str) -> Result<SessionId, ApiError> {
    let found = find(app, name).await?;
    Ok(found.merged_into.unwrap_or(found.id))
}

/// The sessions these names mean; an error names the first that means none.
pub(crate) async fn ids_of(app: &App, names: impl Iterator<Item = &str> + Send) -> Result<Vec<SessionId>, ApiError> {
    let mut ids = Vec::new();
    for name in names {
        let id = id_of(app, name.trim()).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// The session that a query parameter names.
pub(crate) async fn named(app: &App, name: Option<&str>) -> Result<Option<SessionId>, ApiError> {
    match name {
        None => Ok(None),
        Some(name) => match id_of(app, name).await {
            Err(error) if error.code == ErrorCode::NotFound => {
                Err(ApiError::parameter("session", "there is no such session"))
            }
            found => found.map(Some),
        },
    }
}

/// The id of the session in the path; 308 when it was merged into another, 404 when there is none.
pub(crate) async fn target<O: Operation>(call: &Call<O>) -> Result<SessionId, ApiError> {
    let found = find(&call.app, &call.segment).await?;
    match found.merged_into {
        Some(target) => Err(moved(call, target)),
        None => Ok(found.id),
    }
}

fn on_board(app: &App, name: &str) -> Option<Arc<SessionEntry>> {
    if let Ok(id) = name.parse::<SessionId>()
        && let Some(entry) = app.board.get(id)
    {
        return Some(entry);
    }
    app.board.get(app.board.find(name)?)
}

/// 308 to the session this one was merged into, the rest of the path and query kept.
pub(crate) fn moved<O: Operation>(call: &Call<O>, target: SessionId) -> ApiError {
    let path = O::ID.route().path_of(&target.to_string());
    let query = call.parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let error = ApiError::new(ErrorCode::Merged, format!("the session was merged into {target}"));
    match HeaderValue::try_from(format!("{path}{query}")) {
        Ok(location) => error.header(header::LOCATION, location),
        Err(cause) => ApiError::internal(&cause),
    }
}
