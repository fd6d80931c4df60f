//! Sessions as they stand. Answered from the board; from the store where the board has no JSON.

use std::{cmp::Reverse, sync::Arc};

use api::{
    ErrorCode, Operation,
    routes::{GetSession, ListSessions, UsageOfSession},
    sessions::{ActiveFilter, SessionSummary, SessionUsage, SessionsQuery},
};
use events::{SessionId, State, Timestamp};
use http::{HeaderValue, header};
use projections::Session;
use serde::Deserialize;

use crate::{
    Json, RunTarget, SessionEntry,
    answer::{self, Answer},
    app::App,
    board::{Key, Query},
    call::Call,
    error::ApiError,
};

const DEFAULT_LIMIT: usize = 100;
/// The shortest part of an id that names a session.
const SHORTEST_PART: usize = 3;

/// `GET /api/v1/sessions/{id}`: the hot path, no allocation but the head of the answer.
pub(crate) async fn one(call: Call<GetSession>) -> Answer {
    let id = target(&call).await?;
    if let Some(json) = call.app.board.get(id).and_then(|entry| entry.json.clone()) {
        return Ok(answer::json(json.bytes()));
    }
    let session = stored(&call.app, id, &call.segment).await?;
    call.answer(&session)
}

/// `GET /api/v1/sessions`
pub(crate) async fn list(call: Call<ListSessions>) -> Answer {
    let (app, query) = (&call.app, list_query(&call.query)?);
    // The mark first: what the rows say is then never older than what `as_of` claims.
    let as_of = app.board.mark().position;
    let (rows, more) = app.board.list(&query);
    let next_cursor = more.then(|| rows.last().map(|row| cursor_text(row.key()))).flatten();
    let parts = jsons(app, rows).await?;
    Ok(page(as_of, &parts, next_cursor.as_deref()))
}

/// `GET /api/v1/sessions/{id}/summary`, under both its names
pub(crate) async fn summary<O: Operation<Answer = SessionSummary>>(call: Call<O>) -> Answer {
    let session = session(&call).await?;
    call.answer(&SessionSummary {
        id: session.id,
        title: session.title,
        state: session.status.state,
        reason: session.status.reason,
        activity: session.status.activity,
        tooltip: session.summary.tooltip(),
        current: session.summary.current,
        recent: session.summary.recent,
        last_prompt: session.summary.last_prompt,
        last_event_at: session.last_event_at,
    })
}

/// `GET /api/v1/sessions/{id}/usage`
pub(crate) async fn usage(call: Call<UsageOfSession>) -> Answer {
    let session = session(&call).await?;
    call.answer(&SessionUsage { id: session.id, model: session.model, usage: session.usage })
}

/// The JSON of these sessions; those without are read from the store, those that are nowhere are
/// left out.
pub(crate) async fn jsons(app: &App, rows: Vec<Arc<SessionEntry>>) -> Result<Vec<Json>, ApiError> {
    if rows.iter().all(|row| row.json.is_some()) {
        return Ok(rows.iter().filter_map(|row| row.json.clone()).collect());
    }
    let found = app
        .read(move |reader| {
            rows.iter()
                .map(|row| match &row.json {
                    Some(json) => Ok(Some(json.clone())),
                    None => Ok(reader.session_json(row.id)?.map(Json::from_text)),
                })
                .collect::<Result<Vec<_>, store::ReadError>>()
        })
        .await?;
    Ok(found.into_iter().flatten().collect())
}

/// Writes JSON texts into a list, as they are.
pub(crate) fn concatenate(out: &mut String, parts: &[Json]) {
    out.reserve(parts.iter().map(|part| part.as_str().len() + 1).sum::<usize>() + 2);
    out.push('[');
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(part.as_str());
    }
    out.push(']');
}

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

/// The session that a query parameter names.
pub(super) async fn named(app: &App, name: Option<&str>) -> Result<Option<SessionId>, ApiError> {
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

/// The session in the path, from the board's JSON or the store.
async fn session<O: Operation>(call: &Call<O>) -> Result<Session, ApiError> {
    let id = target(call).await?;
    match call.app.board.get(id).and_then(|entry| entry.json.clone()) {
        Some(json) => serde_json::from_str(json.as_str()).map_err(|cause| ApiError::internal(&cause)),
        None => stored(&call.app, id, &call.segment).await,
    }
}

async fn stored(app: &App, id: SessionId, given: &str) -> Result<Session, ApiError> {
    app.read(move |reader| reader.session(id)).await?.ok_or_else(|| ApiError::session(given))
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

fn list_query(query: &SessionsQuery) -> Result<Query, ApiError> {
    let states = query.state.0.clone();
    let active = match query.active {
        None => states.is_empty(),
        Some(ActiveFilter::Active) => true,
        Some(ActiveFilter::All) => false,
    };
    let cwd = query.cwd.as_deref().map(|cwd| match cwd.trim_end_matches('/') {
        "" => "/".to_owned(),
        cwd => cwd.to_owned(),
    });
    Ok(Query {
        states,
        providers: query.provider.0.clone(),
        cwd,
        active,
        after: query.cursor.as_deref().map(read_cursor).transpose()?,
        limit: query.limit.map_or(DEFAULT_LIMIT, |limit| limit.get()),
    })
}

fn cursor_text((Reverse(at), id): Key) -> String {
    format!("{}.{id}", at.as_millisecond())
}

fn read_cursor(text: &str) -> Result<Key, ApiError> {
    text.split_once('.')
        .and_then(|(at, id)| Some((Reverse(Timestamp::from_millisecond(at.parse().ok()?)), id.parse().ok()?)))
        .ok_or_else(|| ApiError::parameter("cursor", "not a `next_cursor` of this list"))
}

fn page(as_of: u64, parts: &[Json], next_cursor: Option<&str>) -> axum::response::Response {
    let mut out = format!("{{\"as_of\":{as_of},\"sessions\":");
    concatenate(&mut out, parts);
    match next_cursor {
        Some(cursor) => out.extend([",\"next_cursor\":\"", cursor, "\"}"]),
        None => out.push_str(",\"next_cursor\":null}"),
    }
    answer::json(out)
}

/// The part of a session's JSON that says how it stands.
#[derive(Debug, Deserialize)]
pub(crate) struct Standing {
    pub(crate) id: SessionId,
    pub(crate) status: StandingStatus,
}

/// See [`Standing`].
#[derive(Debug, Deserialize)]
pub(crate) struct StandingStatus {
    pub(crate) state: State,
    pub(crate) reason: Option<events::Reason>,
}
