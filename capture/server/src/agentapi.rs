//! The interface of coder/agentapi for a run: its words for a session, and its stream.
//!
//! The stream sends `status_change` and one `message_update` for each message there is, then the same as they come.

use api::agentapi::{AgentApiMessage, AgentApiRole, AgentApiState};
use events::{Event, Kind, RunId, SessionId, State, Timestamp};
use serde::Serialize;
use store::{ReadError, Reader};

use crate::{app::App, error::ApiError, frame::FrameKind, tail::Item};

/// Most messages in an answer, and at the beginning of a stream.
const MESSAGES: usize = 1_000;
/// Most bytes of long texts in an answer.
const TEXTS: u64 = 16 << 20;
/// The events that are messages.
const KINDS: [Kind; 2] = [Kind::UserPrompt, Kind::AssistantMessage];

/// Translates a stream of one session.
pub(crate) struct AgentApiStream {
    session: SessionId,
    /// The run that hosts it.
    run: Option<RunId>,
    agent: String,
    state: Option<AgentApiState>,
    /// The last message that was sent.
    last: Option<u64>,
}

#[derive(Serialize)]
struct StatusChange<'a> {
    status: AgentApiState,
    agent_type: &'a str,
}

#[derive(Serialize)]
struct MessageUpdate {
    id: u64,
    role: AgentApiRole,
    message: String,
    time: Timestamp,
}

impl AgentApiStream {
    pub(crate) const fn new(session: SessionId, run: Option<RunId>, agent: String) -> Self {
        Self { session, run, agent, state: None, last: None }
    }

    /// Whether a session is the one of the run: the one so far, or another that the run hosts by now, as after `/clear`
    /// or when what the screen showed turned out to be a session that the agent's files have.
    fn follows(&mut self, app: &App, session: SessionId) -> bool {
        if session == self.session {
            return true;
        }
        let hosted = self.run.is_some()
            && app
                .live_view
                .get(session)
                .is_some_and(|entry| entry.run_id == self.run && entry.parent.is_none() && entry.merged_into.is_none());
        if hosted {
            (self.session, self.last) = (session, None);
        }
        hosted
    }

    /// An item as server-sent events; empty when it says nothing here.
    pub(crate) async fn translate(&mut self, app: &App, item: &Item) -> Result<String, ApiError> {
        let mut out = String::new();
        match item {
            Item::Snapshot(_) => {
                self.session = present(app, self.session);
                let entry = app.live_view.get(self.session);
                let state = entry.map_or(AgentApiState::Stable, |entry| state_of(entry.state));
                self.status(state, &mut out)?;
                self.messages(app, &mut out).await?;
            }
            Item::Frame(frame) if !self.follows(app, frame.session) => {}
            Item::Frame(frame) => match frame.kind {
                FrameKind::Status(state) => self.status(state_of(state), &mut out)?,
                FrameKind::Event(kind) if KINDS.contains(&kind) => self.messages(app, &mut out).await?,
                FrameKind::Event(_) | FrameKind::Approval | FrameKind::Finding | FrameKind::Delta => {}
            },
            Item::TooSlow => {}
        }
        Ok(out)
    }

    fn status(&mut self, status: AgentApiState, out: &mut String) -> Result<(), ApiError> {
        if self.state.replace(status) == Some(status) {
            return Ok(());
        }
        push("status_change", &StatusChange { status, agent_type: &self.agent }, out)
    }

    /// The messages that were not sent yet, with their whole texts.
    async fn messages(&mut self, app: &App, out: &mut String) -> Result<(), ApiError> {
        let (session, after) = (self.session, self.last);
        for message in app.read(move |reader| messages(reader, session, after)).await? {
            self.last = Some(message.id);
            let AgentApiMessage { id, content, role, time } = message;
            push("message_update", &MessageUpdate { id, role, message: content, time }, out)?;
        }
        Ok(())
    }
}

fn push(name: &str, data: &impl Serialize, out: &mut String) -> Result<(), ApiError> {
    let json = serde_json::to_string(data).map_err(|cause| ApiError::internal(&cause))?;
    out.extend(["event: ", name, "\ndata: ", &json, "\n\n"]);
    Ok(())
}

/// The messages of a session behind a sequence, else its last ones; oldest first.
pub(crate) fn messages(
    reader: &Reader,
    session: SessionId,
    after: Option<u64>,
) -> Result<Vec<AgentApiMessage>, ReadError> {
    let events = match after {
        Some(after) => reader.events(session, after, MESSAGES, &KINDS)?,
        None => reader.last_events(session, MESSAGES, &KINDS)?,
    };
    let mut left = TEXTS;
    let mut messages = Vec::new();
    for mut event in events {
        reader.whole_text(&mut event, &mut left)?;
        messages.extend(message(event));
    }
    Ok(messages)
}

/// A message; `None` for one without a text, as those with calls only.
fn message(event: Event) -> Option<AgentApiMessage> {
    let role = if event.payload.kind() == Kind::UserPrompt { AgentApiRole::User } else { AgentApiRole::Agent };
    let content = event.text.filter(|text| !text.is_empty())?;
    Some(AgentApiMessage { id: event.sequence, content, role, time: event.created_at })
}

/// The word for a state: an agent that waits for permission works on nothing.
pub(crate) const fn state_of(state: State) -> AgentApiState {
    match state {
        State::Running | State::Unknown => AgentApiState::Running,
        State::Waiting | State::WaitingApproval | State::Idle | State::Exited => AgentApiState::Stable,
    }
}

/// The session that this one turned out to be, else itself.
pub(crate) fn present(app: &App, session: SessionId) -> SessionId {
    app.live_view.get(session).and_then(|entry| entry.merged_into).unwrap_or(session)
}
