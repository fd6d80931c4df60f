//! What changes capture itself. The server decides nothing here: it asks.

use std::{collections::BTreeMap, sync::Arc};

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

/// A label's key and value have at most so many characters,
const LABEL_CHARS: usize = 100;
/// and so many are set at once.
const LABELS: usize = 32;

/// `PUT /api/v1/sessions/{id}/labels`
pub(crate) fn label(app: &App, mut call: Call) -> Reply {
    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Labels {
        labels: BTreeMap<String, Option<String>>,
    }
    let app = Arc::clone(app);
    Reply::later(async move {
        let given: Labels = call.json(&app).await?;
        let plain = |text: &str| text.chars().count() <= LABEL_CHARS && !text.chars().any(char::is_control);
        let key = |key: &str| !key.is_empty() && plain(key) && !key.contains('=');
        let right = |(name, value): (&String, &Option<String>)| key(name) && value.as_deref().is_none_or(plain);
        if given.labels.len() > LABELS || !given.labels.iter().all(right) {
            return Err(ApiError::body("a label is a key without `=` and a value, of 100 characters at most each"));
        }
        let session = target(&app, &call).await?;
        let labels = given.labels.clone();
        ask(&app, |reply| Command::Label { session, labels, reply }).await?;
        body::json_of(&given)
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
