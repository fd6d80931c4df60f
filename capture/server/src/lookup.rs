//! Resolves which session a request names: by its id, the agent's id, a run's name or part of an id.

use std::sync::Arc;

use api::{
    ErrorCode, Operation,
    part::{IdPart, shown},
};
use events::SessionId;
use http::{HeaderValue, header};
use live_view::{Json, Relative, RunTarget, SessionEntry};
use projections::Session;

use crate::{app::App, call::Call, error::ApiError};

/// A session found by name.
pub(crate) struct Found {
    pub(crate) id: SessionId,
    merged_into: Option<SessionId>,
    view: View,
}

/// The data available where a session was found.
enum View {
    /// Its row of the live view.
    Row(Arc<SessionEntry>),
    /// The complete stored session.
    Stored(Box<Session>),
    /// Only the id.
    None,
}

impl Found {
    fn row(entry: Arc<SessionEntry>) -> Self {
        Self { id: entry.id, merged_into: entry.merged_into, view: View::Row(entry) }
    }

    /// The session's JSON, if the live view has it.
    pub(crate) fn json(&self) -> Option<&Json> {
        match &self.view {
            View::Row(entry) => entry.json.as_ref(),
            View::Stored(_) | View::None => None,
        }
    }

    /// The complete session, from where it was found or from the store.
    pub(crate) async fn session(self, app: &App) -> Result<Session, ApiError> {
        if let Some(json) = self.json() {
            return serde_json::from_str(json.as_str()).map_err(|cause| ApiError::internal(&cause));
        }
        let id = self.id;
        match self.view {
            View::Stored(session) => Ok(*session),
            View::Row(_) | View::None => {
                app.read(move |reader| reader.session(id)).await?.ok_or_else(|| ApiError::session(&id.to_string()))
            }
        }
    }
}

/// Finds the session with a name: its id, the agent's id, the name or id of the run that hosts it, or a unique
/// beginning or end of an id. A session that was merged into another keeps its names.
async fn find(app: &App, name: &str) -> Result<Found, ApiError> {
    match on_board(app, name) {
        Some(entry) => Ok(Found::row(entry)),
        // Boxed, so that the future of the common case does not reserve space for this one.
        None => Box::pin(find_elsewhere(app, name)).await,
    }
}

async fn find_elsewhere(app: &App, name: &str) -> Result<Found, ApiError> {
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
        let (id, merged_into) = (session.id, session.merged_into);
        return Ok(Found { id, merged_into, view: View::Stored(Box::new(session)) });
    }
    app.control.runs_reconnected().await;
    if let Ok(run) = app.control.run(&RunTarget::Run(name.to_owned()))
        && let Some(session) = run.session_id
    {
        let unlisted = Found { id: session, merged_into: None, view: View::None };
        return Ok(app.live_view.get(session).map_or(unlisted, Found::row));
    }
    let part = IdPart::new(name);
    let mut fitting = part.map_or_else(Vec::new, |part| app.live_view.fitting(&part, name));
    // A merged session counts as the session it was merged into.
    fitting.sort_by_key(|entry| entry.merged_into.is_some());
    fitting.dedup_by_key(|entry| entry.merged_into.unwrap_or(entry.id));
    match fitting.as_slice() {
        [] => Err(ApiError::session(name)),
        [entry] => Ok(Found::row(Arc::clone(entry))),
        [a, b, ..] => {
            let why = format!("`{}` matches several sessions, for instance {} and {}", shown(name), a.id, b.id);
            Err(ApiError::new(ErrorCode::Ambiguous, why))
        }
    }
}

/// The session with a name; for a merged session, its target.
pub(crate) async fn id_of(app: &App, name: &str) -> Result<SessionId, ApiError> {
    let found = find(app, name).await?;
    Ok(found.merged_into.unwrap_or(found.id))
}

/// The sessions with these names; an error names the first that matches none.
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
                Err(ApiError::new(ErrorCode::BadParameter, format!("no session `{}`", shown(name))))
            }
            found => found.map(Some),
        },
    }
}

/// The session whose relatives are requested, by any of its names.
pub(crate) async fn relative(app: &App, name: &str) -> Result<Relative, ApiError> {
    let found = find(app, name).await?;
    let id = found.merged_into.unwrap_or(found.id);
    let provider_session_id = match found.view {
        View::Row(entry) => entry.provider_session_id.clone(),
        View::Stored(session) => session.provider_session_id.as_deref().map(Arc::from),
        View::None => None,
    };
    Ok(Relative { id, provider_session_id })
}

/// The session in the path; 308 if it was merged into another, 404 if there is none.
pub(crate) async fn in_path<O: Operation>(call: &Call<O>) -> Result<Found, ApiError> {
    let found = find(&call.app, &call.segment).await?;
    match found.merged_into {
        Some(target) => Err(moved(call, target)),
        None => Ok(found),
    }
}

/// The id of the session in the path, as [`in_path`].
pub(crate) async fn target<O: Operation>(call: &Call<O>) -> Result<SessionId, ApiError> {
    Ok(in_path(call).await?.id)
}

/// The session in the path, if it was pruned: by its id, the agent's id, or a beginning or end of an id that is unique
/// among pruned sessions.
pub(crate) async fn pruned<O: Operation>(call: &Call<O>) -> Result<SessionId, ApiError> {
    let name = call.segment.to_string();
    let sessions = call.app.read(|reader| reader.pruned()).await?;
    let part = IdPart::new(&name);
    let is_named = |id: &str| id.eq_ignore_ascii_case(&name);
    let fits = |id: SessionId, agents_id: &str| {
        part.as_ref().is_some_and(|part| part.fits(&id.to_string()) || agents_id.starts_with(&name))
    };
    let (mut named, mut fitting) = (Vec::new(), Vec::new());
    for session in &sessions {
        let (id, agents_id) = (session.known.id, &*session.known.provider_session_id);
        if is_named(&id.to_string()) || agents_id == name {
            named.push(id);
        } else if fits(id, agents_id) {
            fitting.push(id);
        }
    }
    match (named.as_slice(), fitting.as_slice()) {
        ([id, ..], _) | ([], [id]) => Ok(*id),
        ([], []) => Err(ApiError::session(&name)),
        ([], [a, b, ..]) => {
            let why = format!("`{}` matches several removed sessions, for instance {a} and {b}", shown(&name));
            Err(ApiError::new(ErrorCode::Ambiguous, why))
        }
    }
}

fn on_board(app: &App, name: &str) -> Option<Arc<SessionEntry>> {
    if let Ok(id) = name.parse::<SessionId>()
        && let Some(entry) = app.live_view.get(id)
    {
        return Some(entry);
    }
    app.live_view.get(app.live_view.find(name)?)
}

/// 308 to the session into which this one was merged; the rest of the path and the query are kept.
pub(crate) fn moved<O: Operation>(call: &Call<O>, target: SessionId) -> ApiError {
    let path = O::ID.route().path_of(&target.to_string());
    let query = call.parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let error = ApiError::new(ErrorCode::Merged, format!("the session was merged into {target}"));
    match HeaderValue::try_from(format!("{path}{query}")) {
        Ok(location) => error.header(header::LOCATION, location),
        Err(cause) => ApiError::internal(&cause),
    }
}
