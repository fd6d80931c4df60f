//! A session's status at a past time, and the reason for it. Computed by folding the session's log up to that time.

use std::time::{Duration, Instant};

use api::{routes::GetStatus, sessions::StatusAt};
use events::{SessionId, Timestamp};
use projections::{Account, SessionState, SessionStatus};
use serde::Deserialize;

use crate::{answer::HandlerResult, app::App, call::Call, error::ApiError, lookup::target};

/// Number of events folded before another reader of the store gets a turn.
const PAGE: usize = 1000;
/// Maximum wait until the store contains the events the live view shows.
const COMMITTED_WITHIN: Duration = Duration::from_secs(1);
/// Interval between reads of the store while waiting.
const AGAIN: Duration = Duration::from_millis(20);

/// The last sequence of the log from which a session's JSON was made.
#[derive(Deserialize)]
struct JsonHead {
    last_sequence: u64,
}

/// `GET /api/v1/sessions/{id}/status`
pub(crate) async fn at(call: Call<GetStatus>) -> HandlerResult {
    let (app, at) = (&call.app, call.query.at);
    let id = target(&call).await?;
    let (status, account) = match at {
        Some(at) => fold(app, id, Some(at)).await?.account(at),
        None => present(app, id).await?,
    };
    app.redacted(&StatusAt { session_id: id, at, status, account })
}

/// The current status. Until the next commit, the live view may be ahead of the store; waits for the commit, so that
/// both agree.
async fn present(app: &App, id: SessionId) -> Result<(SessionStatus, Account), ApiError> {
    let told = app.live_view.get(id).and_then(|entry| {
        let json = entry.json.as_ref()?;
        serde_json::from_str::<JsonHead>(json.as_str()).ok()
    });
    let told = told.map_or(0, |told| told.last_sequence);
    let asked = Instant::now();
    let state = loop {
        let state = app.read(move |reader| reader.state(id)).await?;
        let behind = state.as_ref().is_some_and(|state| state.session.last_sequence < told);
        if !behind || asked.elapsed() >= COMMITTED_WITHIN {
            break state;
        }
        tokio::time::sleep(AGAIN).await;
    };
    match state {
        Some(mut state) => {
            state.set_rules(app.rules);
            Ok(state.account(Timestamp::MIN))
        }
        // Another version wrote the JSON; the log leads to the same status.
        None => Ok(fold(app, id, None).await?.account(Timestamp::MIN)),
    }
}

/// Folds the events up to `at`, or all of them. The whole log is read, because old events may be recorded after newer
/// ones. It is read page by page, to limit memory and let other readers proceed. Reading stops when the request is
/// dropped.
async fn fold(app: &App, id: SessionId, at: Option<Timestamp>) -> Result<SessionState, ApiError> {
    let mut state: Option<SessionState> = None;
    let mut began: Option<Timestamp> = None;
    let mut after = 0;
    loop {
        let rules = app.rules;
        let (folded, first, next) = app
            .read(move |reader| {
                let events = reader.events(id, after, PAGE, &[])?;
                let first = events.iter().filter(|e| !e.derived).map(SessionState::moment_of).min();
                let next = (events.len() == PAGE).then(|| events.last().map(|e| e.sequence)).flatten();
                for event in events {
                    let moment = SessionState::moment_of(&event);
                    if at.is_some_and(|at| moment > at) {
                        continue;
                    }
                    let name = || Some(event.provider_session_id.as_ref().into());
                    let first = || SessionState::new(id, event.provider, name(), moment, rules);
                    reader.fold(state.get_or_insert_with(first), event)?;
                }
                Ok((state, first, next))
            })
            .await?;
        state = folded;
        began = began.into_iter().chain(first).min();
        match next {
            Some(next) => after = next,
            None => break,
        }
    }
    let Some(mut state) = state else {
        return Err(ApiError::not_found(match began {
            Some(began) => format!("capture first saw session {id} at {began}, after the requested time"),
            None => "capture does not know the session's earlier status".into(),
        }));
    };
    if let Some(at) = at {
        state.advance(at);
    }
    Ok(state)
}
