//! The interface of coder/agentapi for a run: translates a session and its stream into agentapi's terms.
//!
//! The stream sends `status_change` and a `message_update` for each existing message, and then the same for each
//! change.

use std::time::Duration;

use api::agentapi::{AgentApiMessage, AgentApiRole, AgentApiState};
use events::{Block, Event, Kind, Payload, PromptOrigin, Reason, RunId, SessionId, State, Stop, Timestamp};
use live_view::FrameKind;
use projections::SessionStatus;
use serde::{Deserialize, Serialize};
use store::{ReadError, Reader};
use tokio::time::{Instant, sleep};

use crate::{app::App, error::ApiError, tail::Item};

/// Maximum number of messages in an answer, and at the beginning of a stream.
const MESSAGES: usize = 1_000;
/// Maximum size of long texts in an answer, bytes.
const TEXTS: u64 = 16 << 20;
/// The events that are messages.
const KINDS: [Kind; 3] = [Kind::UserPrompt, Kind::AssistantMessage, Kind::AssistantDelta];
/// Time limit for an answer to reach the store after the end of its turn is known. Claude Code 2.1.328 writes the
/// answer up to 1.1 s after it calls its Stop hook.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
/// Interval between reads of the store while waiting.
const AGAIN: Duration = Duration::from_millis(20);
/// Number of recent messages and state changes searched for the agent's own last message.
const LAST_EVENTS: usize = 64;

/// Translates a stream of one session.
pub(crate) struct AgentApiStream {
    session: SessionId,
    /// The run that hosts the session.
    run: Option<RunId>,
    agent: String,
    state: Option<AgentApiState>,
    /// The sequence of the last message sent.
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

    /// Whether a session belongs to the run: it is the current one, or one the run hosts by now. A run changes its
    /// session after `/clear`, or when a session known only from the screen is merged into one from the agent's files.
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

    /// An item as server-sent events; empty if the item has no counterpart in agentapi.
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
                FrameKind::Status(state) => {
                    if state_of(state) == AgentApiState::Stable {
                        answered(app, self.session).await?;
                        self.messages(app, &mut out).await?;
                    }
                    self.status(state_of(state), &mut out)?;
                }
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

    /// Appends the messages that were not sent yet, with complete texts.
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

/// The messages of a session after a sequence, or without one its last messages; oldest first.
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

/// Returns once the answer that ended a session's turn is stored. Hooks and registries report the end of a turn before
/// the agent writes its answer, and clients treat the last message as the answer as soon as the status is `stable`.
///
/// # Errors
/// If the store cannot be read.
pub(crate) async fn answered(app: &App, session: SessionId) -> Result<(), ApiError> {
    let until = Instant::now() + ANSWERED_WITHIN;
    while let Some(told) = complete_until(app, session).filter(|_| Instant::now() < until) {
        if !app.read(move |reader| awaits_answer(reader, session, told)).await? {
            break;
        }
        sleep(AGAIN).await;
    }
    Ok(())
}

/// The last sequence of a session that waits because its agent finished, according to the live view. The store may be
/// behind it.
fn complete_until(app: &App, session: SessionId) -> Option<u64> {
    #[derive(Deserialize)]
    struct Standing {
        status: SessionStatus,
        last_sequence: u64,
    }
    let entry = app.live_view.get(session).filter(|entry| entry.state == State::Waiting);
    let json = entry.and_then(|entry| entry.json.clone());
    let standing = json.and_then(|json| serde_json::from_str::<Standing>(json.as_str()).ok());
    standing.filter(|standing| standing.status.reason == Some(Reason::TurnComplete)).map(|s| s.last_sequence)
}

/// Whether the session's last turn still lacks its answer: the agent began to work after the last message, continues
/// after it, or the events up to sequence `told` are not stored yet.
fn awaits_answer(reader: &Reader, session: SessionId, told: u64) -> Result<bool, ReadError> {
    if reader.last_events(session, 1, &[])?.last().is_some_and(|last| last.sequence < told) {
        return Ok(true);
    }
    let kinds = [KINDS.as_slice(), &[Kind::StatusChanged]].concat();
    let events = reader.last_events(session, LAST_EVENTS, &kinds)?;
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other kind was read")]
    let goes_on = |event: &Event| match &event.payload {
        // A change away from work, or within it.
        Payload::StatusChanged(change) if change.from == Some(State::Running) || change.to != State::Running => None,
        // Compaction and the work of sub-agents end without an answer.
        Payload::StatusChanged(change) => Some(change.reason == Some(Reason::Thinking)),
        Payload::UserPrompt(prompt) => Some(prompt.origin != PromptOrigin::Command),
        Payload::AssistantMessage(message) => Some(message.stop == Some(Stop::ToolUse)),
        Payload::AssistantDelta(delta) => Some(delta.stop == Some(Stop::ToolUse)),
        _ => None,
    };
    let mut own = events.iter().rev().filter(|event| event.agent_id.is_none());
    Ok(own.find_map(goes_on) == Some(true))
}

/// Converts a message; `None` for one without text, for example with only tool calls or thoughts.
fn message(event: Event) -> Option<AgentApiMessage> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others are of the agent")]
    let role = match &event.payload {
        Payload::UserPrompt(_) => AgentApiRole::User,
        Payload::AssistantDelta(delta) if delta.block != Block::Text => return None,
        _ => AgentApiRole::Agent,
    };
    let content = event.text.filter(|text| !text.is_empty())?;
    Some(AgentApiMessage { id: event.sequence, content, role, time: event.created_at })
}

/// Converts a state. An agent that waits for permission is not working.
pub(crate) const fn state_of(state: State) -> AgentApiState {
    match state {
        State::Running | State::Unknown => AgentApiState::Running,
        State::Waiting | State::WaitingApproval | State::Idle | State::Exited => AgentApiState::Stable,
    }
}

/// The session into which this one was merged, or the session itself.
pub(crate) fn present(app: &App, session: SessionId) -> SessionId {
    app.live_view.get(session).and_then(|entry| entry.merged_into).unwrap_or(session)
}
