//! Starting sessions and sending them input.

use api::{
    routes::{SessionInput, StartSession},
    steering::{SessionInputKind, SessionInputRequest, SessionInputTaken},
};
use events::SessionId;
use live_view::{RunTarget, SessionStart};

use crate::{
    answer::HandlerResult,
    app::App,
    call::Call,
    error::ApiError,
    handlers::{approvals::who, runs::checked},
    lookup::target,
};

/// `POST /api/v1/sessions`
pub(crate) async fn start(mut call: Call<StartSession>) -> HandlerResult {
    let request = call.body().await?;
    let start = SessionStart { request, who: who(&call.connection.transport, call.device.as_ref()) };
    let started = call.app.ask(call.app.control.start_session(start)).await?;
    call.answer(&started)
}

/// `POST /api/v1/sessions/{id}/input`
pub(crate) async fn input(mut call: Call<SessionInput>) -> HandlerResult {
    let request = call.body().await?;
    let session = target(&call).await?;
    let taken = apply(&call.app, session, request).await?;
    call.answer(&taken)
}

/// Sends input to a session.
pub(crate) async fn apply(
    app: &App,
    session: SessionId,
    request: SessionInputRequest,
) -> Result<SessionInputTaken, ApiError> {
    match request.kind().map_err(ApiError::body)? {
        SessionInputKind::Command(command) => app.ask(app.control.command(session, command)).await,
        SessionInputKind::Typed(input) => {
            let sent = app.send_input(RunTarget::Session(session), checked(input)?).await?;
            Ok(SessionInputTaken { run: sent.run, sent: sent.sent, position: sent.position, outcome: None })
        }
    }
}
