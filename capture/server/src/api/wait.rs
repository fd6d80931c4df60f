//! Waiting for a state.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use events::{SessionId, State};
use tokio::time::{Instant, timeout_at};

use crate::{
    Json,
    app::App,
    board::Interest,
    body,
    call::{Answer, Call, Reply},
    error::ApiError,
    frame::News,
};

use super::sessions::{jsons, moved, target};

const DEFAULT_TIMEOUT_MS: u64 = 30_000;
const MAX_TIMEOUT_MS: u64 = 3_600_000;

/// `GET /api/v1/sessions/{id}/wait`
pub(crate) fn wait(app: &App, call: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move {
        let query = call.query();
        let until: Vec<State> = query.list("until")?;
        if until.is_empty() {
            return Err(ApiError::parameter("until", "name the states to wait for, separated by commas"));
        }
        let timeout_ms = query.value("timeout_ms")?.unwrap_or(DEFAULT_TIMEOUT_MS).min(MAX_TIMEOUT_MS);
        let id = target(&app, &call).await?;
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        tokio::select! {
            () = app.cancel.cancelled() => Err(ApiError::unavailable("capture is stopping")),
            waited = timeout_at(deadline, reached(&app, &call, id, &until)) => match waited {
                Ok(answer) => answer,
                Err(_) => Err(ApiError::timeout(format!("the state was not reached within {timeout_ms} ms"))),
            },
        }
    })
}

/// Answers when the session is in, or passes through, one of the states.
async fn reached(app: &App, call: &Call, id: SessionId, until: &[State]) -> Answer {
    let subscription =
        app.board.subscribe(Interest::Sessions(vec![id]), app.limits.queue_frames, app.limits.queue_bytes);
    let mut frames = VecDeque::new();
    loop {
        subscription.mend();
        if let Some(json) = now(app, call, id, until).await? {
            return Ok(body::json(json.bytes()));
        }
        // Frames one by one: a state that was left again at once still counts.
        while subscription.take(&mut frames).await.is_ok() {
            let reached =
                frames.drain(..).find(|frame| matches!(frame.news, News::Status(state) if until.contains(&state)));
            if let Some(frame) = reached {
                return Ok(body::json(frame.json.bytes()));
            }
        }
    }
}

async fn now(app: &App, call: &Call, id: SessionId, until: &[State]) -> Result<Option<Json>, ApiError> {
    match app.board.get(id) {
        Some(entry) => {
            if let Some(target) = entry.merged_into {
                return Err(moved(call, target));
            }
            if !until.contains(&entry.state) {
                return Ok(None);
            }
            Ok(jsons(app, vec![entry]).await?.into_iter().next())
        }
        None => {
            let session = app.read(move |reader| reader.session(id)).await?;
            let reached = session.filter(|session| until.contains(&session.status.state));
            reached.as_ref().map(Json::of).transpose().map_err(|cause| ApiError::internal(&cause))
        }
    }
}
