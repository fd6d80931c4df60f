//! The interface of coder/agentapi for a run.

use api::{
    ErrorCode, Operation,
    agentapi::{AgentApiInputKind, AgentApiMessages, AgentApiSent, AgentApiState, AgentApiStatus},
    routes::{AgentApiEvents, AgentApiGetMessages, AgentApiGetStatus, AgentApiSend},
    runs::Input,
};
use events::{Provider, SessionId};

use super::runs::of_run;
use crate::{
    RunTarget,
    agentapi::{AgentApiStream, messages, state_of},
    answer::HandlerResult,
    call::Call,
    error::ApiError,
    live_view::Interest,
    sse,
    stream_format::StreamFormat,
    tail::Tail,
};

/// `GET /api/v1/runs/{id}/agentapi/status`
pub(crate) async fn status(call: Call<AgentApiGetStatus>) -> HandlerResult {
    let session = hosted(&call).await?;
    let (status, agent) = standing(&call, session);
    call.answer(&AgentApiStatus { status, agent_type: agent.to_string(), transport: "pty".to_owned() })
}

/// `GET /api/v1/runs/{id}/agentapi/messages`
pub(crate) async fn list_messages(call: Call<AgentApiGetMessages>) -> HandlerResult {
    let session = hosted(&call).await?;
    let messages = call.app.read(move |reader| messages(reader, session, None)).await?;
    call.answer(&AgentApiMessages { messages })
}

/// `POST /api/v1/runs/{id}/agentapi/message`
pub(crate) async fn send(mut call: Call<AgentApiSend>) -> HandlerResult {
    let message = call.body().await?;
    if message.content.is_empty() {
        return Err(ApiError::body("`content` must not be empty"));
    }
    let submit = match message.kind {
        AgentApiInputKind::User => {
            let session = hosted(&call).await?;
            if standing(&call, session).0 == AgentApiState::Running {
                let why = "the agent is working; a message of the type `user` can be sent when its status is `stable`";
                return Err(ApiError::new(ErrorCode::Conflict, why));
            }
            true
        }
        AgentApiInputKind::Raw => false,
    };
    let input = Input { text: Some(message.content), submit, ..Input::default() };
    call.app.ask(call.app.control.send_input(of_run(&call).await?, input)).await?;
    call.answer(&AgentApiSent { ok: true })
}

/// `GET /api/v1/runs/{id}/agentapi/events`
pub(crate) async fn events(call: Call<AgentApiEvents>) -> HandlerResult {
    let session = hosted(&call).await?;
    let (_, agent) = standing(&call, session);
    let slot = call.stream()?;
    let tail = Tail::new(&call.app, Interest::Sessions(vec![session]), None);
    let stream = AgentApiStream::new(session, agent.to_string());
    Ok(sse::answer(call.app, tail, StreamFormat::AgentApi(stream), slot))
}

/// The session that the run in the path hosts.
async fn hosted<O: Operation>(call: &Call<O>) -> Result<SessionId, ApiError> {
    match of_run(call).await? {
        RunTarget::Session(session) => Ok(session),
        run @ RunTarget::Run(_) => call.app.control.run(&run)?.session_id.ok_or_else(|| {
            ApiError::new(ErrorCode::Conflict, "the run hosts no session yet; its agent may still be starting")
        }),
    }
}

/// How the agent of a session is, and which it is.
fn standing<O: Operation>(call: &Call<O>, session: SessionId) -> (AgentApiState, Provider) {
    match call.app.live_view.get(session) {
        Some(entry) => (state_of(entry.state), entry.provider),
        None => (AgentApiState::Stable, Provider::Unknown),
    }
}
