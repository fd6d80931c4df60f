//! Sessions as they stand. Answered from the board; from the store where the board has no JSON.

use std::{cmp::Reverse, sync::Arc};

use events::{SessionId, State, Timestamp};
use http::{HeaderValue, StatusCode, header};
use projections::{Session, Usage};
use serde::{Deserialize, Serialize};

use crate::{
    Json, SessionEntry,
    app::App,
    board::{Key, Query},
    body,
    call::{Call, Params, Reply},
    error::ApiError,
};

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;

/// `GET /api/v1/sessions/{id}`: the hot path, no allocation but the head of the answer.
pub(crate) fn one(app: &App, call: Call) -> Reply {
    if let Ok(name) = call.segment()
        && let Some(entry) = on_board(app, &name)
    {
        if let Some(target) = entry.merged_into {
            return Reply::Now(Err(moved(&call, target)));
        }
        if let Some(json) = &entry.json {
            return Reply::Now(Ok(body::json(json.bytes())));
        }
    }
    let app = Arc::clone(app);
    Reply::later(async move { Ok(body::json(session_json(&app, &call).await?.bytes())) })
}

/// `GET /api/v1/sessions`
pub(crate) fn list(app: &App, call: Call) -> Reply {
    let query = match list_query(&call.query()) {
        Ok(query) => query,
        Err(error) => return Reply::Now(Err(error)),
    };
    // The mark first: what the rows tell is then never older than what `as_of` claims.
    let as_of = app.board.mark().position;
    let (rows, more) = app.board.list(&query);
    let next_cursor = more.then(|| rows.last().map(|row| cursor_text(row.key()))).flatten();
    if rows.iter().all(|row| row.json.is_some()) {
        let parts: Vec<Json> = rows.iter().filter_map(|row| row.json.clone()).collect();
        return Reply::Now(Ok(page(as_of, &parts, next_cursor.as_deref())));
    }
    let app = Arc::clone(app);
    Reply::later(async move {
        let parts = jsons(&app, rows).await?;
        Ok(page(as_of, &parts, next_cursor.as_deref()))
    })
}

/// `GET /api/v1/sessions/{id}/summary`
pub(crate) fn summary(app: &App, call: Call) -> Reply {
    #[derive(Serialize)]
    struct View {
        id: SessionId,
        title: Option<String>,
        state: State,
        reason: Option<events::Reason>,
        activity: Option<String>,
        current: Option<String>,
        recent: Option<String>,
        last_prompt: Option<String>,
        tooltip: String,
        last_event_at: Timestamp,
    }
    let app = Arc::clone(app);
    Reply::later(async move {
        let session = session(&app, &call).await?;
        body::json_of(&View {
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
    })
}

/// `GET /api/v1/sessions/{id}/usage`
pub(crate) fn usage(app: &App, call: Call) -> Reply {
    #[derive(Serialize)]
    struct View {
        id: SessionId,
        model: Option<String>,
        #[serde(flatten)]
        usage: Usage,
    }
    let app = Arc::clone(app);
    Reply::later(async move {
        let session = session(&app, &call).await?;
        body::json_of(&View { id: session.id, model: session.model, usage: session.usage })
    })
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

/// Which session a name means: our id, or the agent's. Of a merged one, what it became.
pub(crate) async fn id_of(app: &App, name: &str) -> Result<Option<SessionId>, ApiError> {
    if let Some(entry) = on_board(app, name) {
        return Ok(Some(entry.merged_into.unwrap_or(entry.id)));
    }
    let (id, name) = (name.parse::<SessionId>().ok(), name.to_owned());
    app.read(move |reader| {
        let session = id.map(|id| reader.session(id)).transpose()?.flatten();
        match session {
            Some(session) => Ok(Some(session.merged_into.unwrap_or(session.id))),
            None => reader.find(&name),
        }
    })
    .await
}

/// The id of the session in the path; 308 when it turned out to be another, 404 when it is none.
pub(crate) async fn target(app: &App, call: &Call) -> Result<SessionId, ApiError> {
    let name = call.segment()?;
    if let Some(entry) = on_board(app, &name) {
        return match entry.merged_into {
            Some(target) => Err(moved(call, target)),
            None => Ok(entry.id),
        };
    }
    Ok(from_store(app, call).await?.id)
}

fn on_board(app: &App, name: &str) -> Option<Arc<SessionEntry>> {
    if let Ok(id) = name.parse::<SessionId>()
        && let Some(entry) = app.board.get(id)
    {
        return Some(entry);
    }
    app.board.get(app.board.find(name)?)
}

async fn session_json(app: &App, call: &Call) -> Result<Json, ApiError> {
    if let Some(json) = on_board(app, &call.segment()?).and_then(|entry| entry.json.clone()) {
        return Ok(json);
    }
    let session = from_store(app, call).await?;
    Json::of(&session).map_err(|cause| ApiError::internal(&cause))
}

/// The session in the path, from the board's JSON or the store.
async fn session(app: &App, call: &Call) -> Result<Session, ApiError> {
    let entry = on_board(app, &call.segment()?);
    if let Some(target) = entry.as_ref().and_then(|entry| entry.merged_into) {
        return Err(moved(call, target));
    }
    match entry.and_then(|entry| entry.json.clone()) {
        Some(json) => serde_json::from_str(json.as_str()).map_err(|cause| ApiError::internal(&cause)),
        None => from_store(app, call).await,
    }
}

async fn from_store(app: &App, call: &Call) -> Result<Session, ApiError> {
    let name = call.segment()?.into_owned();
    let id = match on_board(app, &name) {
        Some(entry) => Some(entry.id),
        None => name.parse().ok(),
    };
    let given = name.clone();
    let session = app
        .read(move |reader| {
            let session = match id {
                Some(id) => reader.session(id)?,
                None => None,
            };
            match session {
                Some(session) => Ok(Some(session)),
                None => match reader.find(&name)? {
                    Some(id) => reader.session(id),
                    None => Ok(None),
                },
            }
        })
        .await?
        .ok_or_else(|| ApiError::session(&given))?;
    match session.merged_into {
        Some(target) => Err(moved(call, target)),
        None => Ok(session),
    }
}

/// 308 to the session this one turned out to be, the rest of the path and query kept.
pub(crate) fn moved(call: &Call, target: SessionId) -> ApiError {
    let (path, segment) = (call.parts.uri.path(), &call.segment);
    let (before, behind) = (&path[..segment.start], &path[segment.end..]);
    let query = call.parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let error =
        ApiError::new(StatusCode::PERMANENT_REDIRECT, "merged", format!("the session turned out to be {target}"));
    match HeaderValue::try_from(format!("{before}{target}{behind}{query}")) {
        Ok(location) => error.header(header::LOCATION, location),
        Err(cause) => ApiError::internal(&cause),
    }
}

fn list_query(params: &Params<'_>) -> Result<Query, ApiError> {
    let states: Vec<State> = params.list("state")?;
    let active = match params.text("active") {
        None => states.is_empty(),
        Some("true") => true,
        Some("all") => false,
        Some(_) => return Err(ApiError::parameter("active", "must be `true` or `all`")),
    };
    let cwd = params.text("cwd").map(|cwd| match cwd.trim_end_matches('/') {
        "" => "/".to_owned(),
        cwd => cwd.to_owned(),
    });
    Ok(Query {
        states,
        providers: params.list("provider")?,
        cwd,
        active,
        after: params.text("cursor").map(read_cursor).transpose()?,
        limit: params.limit(DEFAULT_LIMIT, MAX_LIMIT)?,
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

fn page(as_of: u64, parts: &[Json], next_cursor: Option<&str>) -> http::Response<body::Body> {
    let mut out = format!("{{\"as_of\":{as_of},\"sessions\":");
    concatenate(&mut out, parts);
    match next_cursor {
        Some(cursor) => out.extend([",\"next_cursor\":\"", cursor, "\"}"]),
        None => out.push_str(",\"next_cursor\":null}"),
    }
    body::json(out)
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
