//! What changes capture itself. The server decides nothing here: it asks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::{sync::oneshot, time::timeout};

use crate::{
    Command, Refusal,
    app::App,
    body,
    call::{Call, Reply},
    error::ApiError,
};

use super::sessions::target;

/// `PUT /api/v1/sessions/{id}/capture`
pub(crate) fn set_capture(app: &App, mut call: Call) -> Reply {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        enabled: bool,
    }
    #[derive(Serialize)]
    struct Done {
        id: events::SessionId,
        enabled: bool,
    }
    let app = Arc::clone(app);
    Reply::later(async move {
        let Wanted { enabled } = call.json(&app).await?;
        let session = target(&app, &call).await?;
        ask(&app, |reply| Command::SetCapture { session, enabled, reply }).await?;
        body::json_of(&Done { id: session, enabled })
    })
}

/// Sends a command and waits for its answer.
pub(crate) async fn ask<T>(
    app: &App,
    command: impl FnOnce(oneshot::Sender<Result<T, Refusal>>) -> Command,
) -> Result<T, ApiError> {
    let nobody = || ApiError::unavailable("nobody serves this at the moment");
    let commands = app.commands.as_ref().ok_or_else(nobody)?;
    let (reply, answer) = oneshot::channel();
    commands.try_send(command(reply)).map_err(|_| nobody())?;
    match timeout(app.limits.read, answer).await {
        Ok(Ok(Ok(value))) => Ok(value),
        Ok(Ok(Err(Refusal::NotFound(why)))) => Err(ApiError::not_found(why)),
        Ok(Ok(Err(Refusal::Conflict(why)))) => Err(ApiError::new(http::StatusCode::CONFLICT, "conflict", why)),
        Ok(Ok(Err(Refusal::Failed(cause)))) => Err(ApiError::internal(&cause)),
        Ok(Err(_)) | Err(_) => Err(nobody()),
    }
}
