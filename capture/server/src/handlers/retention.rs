//! Requests that remove sessions. They are forwarded to the daemon.

use api::{
    ErrorCode,
    routes::{ForgetSession, GetRetention, PruneSessions},
};

use crate::{
    answer::HandlerResult,
    call::Call,
    lookup::{pruned, target},
};

/// `DELETE /api/v1/sessions/{id}`
pub(crate) async fn forget(call: Call<ForgetSession>) -> HandlerResult {
    let session = match target(&call).await {
        Err(error) if error.code == ErrorCode::NotFound => pruned(&call).await?,
        found => found?,
    };
    // No time limit here: the daemon finishes in time, and an answer before the end could be wrong.
    let report = call.app.control.forget(session, call.query.dry_run.unwrap_or(false)).await?;
    call.answer(&report)
}

/// `POST /api/v1/retention/prune`
pub(crate) async fn prune(mut call: Call<PruneSessions>) -> HandlerResult {
    let request = call.body().await?;
    let report = call.app.control.prune(request).await?;
    call.answer(&report)
}

/// `GET /api/v1/retention`. The answer is sent after everything lists show is stored, so that a backup contains it.
pub(crate) async fn status(call: Call<GetRetention>) -> HandlerResult {
    call.app.commit_shown().await;
    let status = call.app.ask(call.app.control.retention()).await?;
    call.answer(&status)
}
