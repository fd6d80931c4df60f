//! The current state of sessions, from the live view, or from the store if the live view has no JSON.

use std::cmp::Reverse;

use api::{
    Operation,
    routes::{GetSession, ListSessions, UsageOfSession},
    sessions::{ActiveFilter, SessionSummary, SessionUsage, SessionsQuery},
};
use live_view::{Json, SessionFilter};

use crate::{
    answer::{self, HandlerResult},
    call::Call,
    error::ApiError,
    lookup::{in_path, relative},
    page::{self, Cursor},
};

/// `GET /api/v1/sessions/{id}`: the hot path, which allocates only the head of the response.
#[expect(clippy::manual_async_fn, reason = "the future of an `async fn` has room for its argument twice")]
pub(crate) fn one(call: Call<GetSession>) -> impl Future<Output = HandlerResult> + Send {
    async move {
        let found = in_path(&call).await?;
        match found.json() {
            Some(json) => Ok(answer::json(json.bytes())),
            None => call.answer(&Box::pin(found.session(&call.app)).await?),
        }
    }
}

/// `GET /api/v1/sessions`
pub(crate) async fn list(call: Call<ListSessions>) -> HandlerResult {
    let (app, mut query) = (&call.app, filter_of(&call.query)?);
    if let Some(parent) = &call.query.parent {
        query.relative_of = Some(relative(app, parent).await?);
    }
    // Read the position before the rows, so that the rows are never older than `as_of`.
    let as_of = app.live_view.mark().position;
    let (rows, more) = app.live_view.list(&query);
    let next_cursor =
        more.then(|| rows.last().map(|row| Cursor { at: row.last_event_at, id: row.id }.to_string())).flatten();
    let parts = app.session_jsons(rows).await?;
    Ok(list_of(as_of, &parts, next_cursor.as_deref()))
}

/// `GET /api/v1/sessions/{id}/summary`, under both of its paths
pub(crate) async fn summary<O: Operation<Answer = SessionSummary>>(call: Call<O>) -> HandlerResult {
    let session = in_path(&call).await?.session(&call.app).await?;
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
        checks: session.summary.checks,
        last_event_at: session.last_event_at,
    })
}

/// `GET /api/v1/sessions/{id}/usage`
pub(crate) async fn usage(call: Call<UsageOfSession>) -> HandlerResult {
    let session = in_path(&call).await?.session(&call.app).await?;
    call.answer(&SessionUsage { id: session.id, model: session.model, usage: session.usage })
}

fn filter_of(query: &SessionsQuery) -> Result<SessionFilter, ApiError> {
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
    Ok(SessionFilter {
        states,
        providers: query.provider.0.clone(),
        cwd,
        active,
        relative_of: None,
        after: Cursor::read(query.cursor.as_deref())?.map(|cursor| (Reverse(cursor.at), cursor.id)),
        limit: page::limit(query.limit),
    })
}

fn list_of(as_of: u64, parts: &[Json], next_cursor: Option<&str>) -> axum::response::Response {
    let mut out = format!("{{\"as_of\":{as_of},\"sessions\":");
    Json::concatenate(&mut out, parts);
    match next_cursor {
        Some(cursor) => out.extend([",\"next_cursor\":\"", cursor, "\"}"]),
        None => out.push_str(",\"next_cursor\":null}"),
    }
    answer::json(out)
}
