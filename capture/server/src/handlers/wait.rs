//! Waits until a session reaches a state.

use std::{collections::VecDeque, time::Duration};

use api::{Operation, routes::WaitForState};
use events::{SessionId, State};
use tokio::time::{Instant, timeout_at};

use crate::{
    Json,
    answer::{self, HandlerResult},
    call::Call,
    error::ApiError,
    frame::FrameKind,
    live_view::Interest,
    lookup::{moved, target},
};

const DEFAULT_TIMEOUT_MS: u64 = 30_000;
const MAX_TIMEOUT_MS: u64 = 3_600_000;

/// `GET /api/v1/sessions/{id}/wait`
pub(crate) async fn wait(call: Call<WaitForState>) -> HandlerResult {
    let until = &call.query.until.0;
    let timeout_ms = call.query.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS).min(MAX_TIMEOUT_MS);
    let id = target(&call).await?;
    let deadline = Instant::now() + Duration::from_millis(timeout_ms);
    tokio::select! {
        () = call.app.cancel.cancelled() => Err(ApiError::unavailable("the server is stopping")),
        waited = timeout_at(deadline, reached(&call, id, until)) => match waited {
            Ok(answer) => answer,
            Err(_) => Err(ApiError::timeout(format!("the state was not reached within {timeout_ms} ms"))),
        },
    }
}

/// Answers when the session is in, or passes through, one of the states.
async fn reached<O: Operation>(call: &Call<O>, id: SessionId, until: &[State]) -> HandlerResult {
    let app = &call.app;
    let subscription =
        app.live_view.subscribe(Interest::Sessions(vec![id]), app.limits.queue_frames, app.limits.queue_bytes);
    let mut frames = VecDeque::new();
    loop {
        subscription.mend();
        if let Some(json) = now(call, id, until).await? {
            return Ok(answer::json(json.bytes()));
        }
        // Frames one by one: a state that was left again at once still counts.
        while subscription.take(&mut frames).await.is_ok() {
            // It goes on as the session it became, whose states are the ones that count.
            if let Some(target) = app.live_view.get(id).and_then(|entry| entry.merged_into) {
                return Err(moved(call, target));
            }
            let reached =
                frames.drain(..).find(|frame| matches!(frame.kind, FrameKind::Status(state) if until.contains(&state)));
            if let Some(frame) = reached {
                return Ok(answer::json(frame.json.bytes()));
            }
        }
    }
}

async fn now<O: Operation>(call: &Call<O>, id: SessionId, until: &[State]) -> Result<Option<Json>, ApiError> {
    let app = &call.app;
    match app.live_view.get(id) {
        Some(entry) => {
            if let Some(target) = entry.merged_into {
                return Err(moved(call, target));
            }
            if !until.contains(&entry.state) {
                return Ok(None);
            }
            Ok(app.session_jsons(vec![entry]).await?.into_iter().next())
        }
        None => {
            let session = app.read(move |reader| reader.session(id)).await?;
            let reached = session.filter(|session| until.contains(&session.status.state));
            reached.as_ref().map(Json::of).transpose().map_err(|cause| ApiError::internal(&cause))
        }
    }
}
