//! The interface of coder/agentapi for a run.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use api::{
    ErrorCode, Operation,
    agentapi::{AgentApiInputKind, AgentApiMessages, AgentApiSent, AgentApiState, AgentApiStatus},
    routes::{AgentApiEvents, AgentApiGetMessages, AgentApiGetStatus, AgentApiSend},
    runs::Input,
};
use events::{Kind, Provider, SessionId};
use live_view::{Frame, FrameKind, Interest, RunTarget, Subscription};
use tokio::time::timeout;

use super::runs::of_run;
use crate::{
    agentapi::{AgentApiStream, answered, messages, present, state_of},
    answer::HandlerResult,
    app::App,
    call::Call,
    error::ApiError,
    sse,
    stream_format::StreamFormat,
    tail::Tail,
};

/// Time limit for an agent to begin with a prompt, as in agentapi.
const BEGINS_WITHIN: Duration = Duration::from_secs(15);

/// `GET /api/v1/runs/{id}/agentapi/status`
pub(crate) async fn status(call: Call<AgentApiGetStatus>) -> HandlerResult {
    let session = hosted(&call).await?;
    answered(&call.app, session).await?;
    let (status, agent) = standing(&call, session);
    call.answer(&AgentApiStatus { status, agent_type: agent.to_string(), transport: "pty".to_owned() })
}

/// `GET /api/v1/runs/{id}/agentapi/messages`
pub(crate) async fn list_messages(call: Call<AgentApiGetMessages>) -> HandlerResult {
    let session = hosted(&call).await?;
    answered(&call.app, session).await?;
    let messages = call.app.read(move |reader| messages(reader, session, None)).await?;
    call.answer(&AgentApiMessages { messages })
}

/// `POST /api/v1/runs/{id}/agentapi/message`
pub(crate) async fn send(mut call: Call<AgentApiSend>) -> HandlerResult {
    let message = call.body().await?;
    if message.content.is_empty() {
        return Err(ApiError::body("`content` must not be empty"));
    }
    let prompted = match message.kind {
        AgentApiInputKind::User => {
            let session = hosted(&call).await?;
            if standing(&call, session).0 == AgentApiState::Running {
                let why = "the agent is working; a message of the type `user` can be sent when its status is `stable`";
                return Err(ApiError::new(ErrorCode::Conflict, why));
            }
            Some(session)
        }
        AgentApiInputKind::Raw => None,
    };
    let app = &call.app;
    let limits = app.limits;
    // Subscribe before the text is typed, because the agent may answer before the typing is confirmed. Subscribe to all
    // sessions, because the session known from the screen may be merged into one from the agent's files.
    let frames = prompted
        .map(|session| (session, app.live_view.subscribe(Interest::All, limits.queue_frames, limits.queue_bytes)));
    let input = Input { text: Some(message.content), submit: prompted.is_some(), ..Input::default() };
    app.send_input(of_run(&call).await?, input).await?;
    if let Some((session, frames)) = &frames {
        // Clients request the status next and interpret `stable` as the end of the work.
        timeout(BEGINS_WITHIN, begun(app, *session, frames)).await.map_err(|_| {
            let seconds = BEGINS_WITHIN.as_secs();
            ApiError::timeout(format!("the text was typed, but the agent did not begin to work within {seconds} s"))
        })?;
    }
    call.answer(&AgentApiSent { ok: true })
}

/// Returns once the agent of a session works on a prompt.
async fn begun(app: &App, session: SessionId, frames: &Subscription) {
    let run = app.live_view.get(session).and_then(|entry| entry.run_id);
    let is_of_run = |other: SessionId| {
        other == session || run.is_some() && app.live_view.get(other).is_some_and(|entry| entry.run_id == run)
    };
    let mut taken = VecDeque::new();
    loop {
        // Frames lost by a slow subscription mean that the agent worked.
        if frames.take(&mut taken).await.is_err() {
            return;
        }
        let is_work = |frame: &Arc<Frame>| match frame.kind {
            FrameKind::Status(state) => state_of(state) == AgentApiState::Running,
            FrameKind::Event(kind) => kind == Kind::UserPrompt,
            FrameKind::Approval | FrameKind::Finding | FrameKind::Delta => false,
        };
        if taken.drain(..).any(|frame| is_work(&frame) && is_of_run(frame.session)) {
            return;
        }
    }
}

/// `GET /api/v1/runs/{id}/agentapi/events`
pub(crate) async fn events(call: Call<AgentApiEvents>) -> HandlerResult {
    let session = hosted(&call).await?;
    let (_, agent) = standing(&call, session);
    let slot = call.stream()?;
    // All sessions, as for a message.
    let tail = Tail::new(&call.app, Interest::All, None);
    let run = call.app.live_view.get(session).and_then(|entry| entry.run_id);
    let stream = AgentApiStream::new(session, run, agent.to_string());
    Ok(sse::answer(call.app, tail, StreamFormat::AgentApi(stream), slot))
}

/// The session that the run in the path hosts.
async fn hosted<O: Operation>(call: &Call<O>) -> Result<SessionId, ApiError> {
    let session = match of_run(call).await? {
        RunTarget::Session(session) => session,
        run @ RunTarget::Run(_) => call.app.control.run(&run)?.session_id.ok_or_else(|| {
            ApiError::new(ErrorCode::Conflict, "the run hosts no session yet; its agent may still be starting")
        })?,
    };
    Ok(present(&call.app, session))
}

/// The state of a session's agent, and the agent's name.
fn standing<O: Operation>(call: &Call<O>, session: SessionId) -> (AgentApiState, Provider) {
    match call.app.live_view.get(session) {
        Some(entry) => (state_of(entry.state), entry.provider),
        None => (AgentApiState::Stable, Provider::Unknown),
    }
}
