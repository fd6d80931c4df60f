//! The terminal of a run over a WebSocket.

use api::routes::RunTerminal;
use axum::extract::{FromRequestParts, ws::WebSocketUpgrade};
use live_view::RunTarget;

use super::{runs::of_run, streams::not_a_websocket};
use crate::{
    answer::HandlerResult,
    call::Call,
    terminal_socket::{self, TerminalView},
};

/// `GET /api/v1/runs/{id}/terminal`
pub(crate) async fn open(mut call: Call<RunTerminal>) -> HandlerResult {
    let run = call.app.control.run(&of_run(&call).await?)?.id;
    let upgrade = WebSocketUpgrade::from_request_parts(&mut call.parts, &()).await;
    let upgrade = upgrade.map_err(|why| not_a_websocket(&why))?;
    let hold = call.stream()?;
    let view = TerminalView {
        app: call.app,
        run,
        // Address the run by id, because its name may later belong to another run.
        target: RunTarget::Run(run.to_string()),
        device: call.device,
        headers: call.parts.headers,
        connection: call.connection,
        hold,
    };
    Ok(terminal_socket::answer(view, upgrade))
}
