//! Routes, messages and names that are kept for older clients.
//!
//! | older | now |
//! |---|---|
//! | `GET /api/stream/status` | the status of all active sessions; as SSE `session.status`, then changes |
//! | `GET /api/sessions/{id}/stream` | the status and last events of a session; as SSE `stream-init`, then as below |
//! | `GET /api/sessions/{id}/summary` | as `/api/v1/sessions/{id}/summary` |
//! | `GET /api/session/messages?session=` | the last prompts and answers |
//! | WebSocket `{"type":"subscribe-stream","sessionId"}` | from then on the connection uses the messages below |
//!
//! Messages, each with `type` and `sessionId`: `stream-init` {status, working, reason, events},
//! `stream-event` {event}, `stream-status` and `session.status` {status, working, reason},
//! `waiting-for-input` {status, reason} when a session comes to wait, `approval-decision`
//! {approvalId, allowed}. The two GETs answer with JSON unless the client accepts `text/event-stream`.
//!
//! Status words of `stream-init`, `stream-status` and the JSON: running (working), waiting, idle, exited. Those of
//! `session.status` and `waiting-for-input`: running, waiting_input, waiting_approval, idle, exited. `unknown` is `idle`.

use std::collections::HashMap;

use api::compat::StreamStatus;
use events::{ApprovalId, Event, Kind, Payload, Reason, SessionId, State};
use live_view::{Frame, FrameKind, Json};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{app::App, error::ApiError, tail::Item};

/// Maximum number of events in a `stream-init`.
pub(crate) const INIT_EVENTS: usize = 50;

/// One message in the format of older clients.
pub(crate) struct CompatMessage {
    pub(crate) name: &'static str,
    pub(crate) json: String,
}

/// Translates a stream, remembering the state of each session.
pub(crate) struct CompatStream {
    subscribed: bool,
    states: HashMap<SessionId, State>,
}

#[derive(Serialize)]
struct Message<'a> {
    #[serde(rename = "type")]
    name: &'static str,
    #[serde(rename = "sessionId")]
    session: SessionId,
    #[serde(flatten)]
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Init {
        status: &'static str,
        working: bool,
        reason: Option<Reason>,
        events: Vec<Event>,
    },
    Status {
        status: &'static str,
        working: bool,
        reason: Option<Reason>,
    },
    Event {
        event: &'a RawValue,
    },
    Decision {
        #[serde(rename = "approvalId")]
        approval: ApprovalId,
        allowed: Option<bool>,
    },
}

impl CompatStream {
    /// A stream of the status of all sessions.
    pub(crate) fn of_all() -> Self {
        Self { subscribed: false, states: HashMap::new() }
    }

    /// A stream of all frames of some sessions.
    pub(crate) fn of_sessions() -> Self {
        Self { subscribed: true, states: HashMap::new() }
    }

    /// Translates an item to the format of older clients.
    pub(crate) async fn translate(&mut self, app: &App, item: &Item) -> Result<Vec<CompatMessage>, ApiError> {
        let mut messages = Vec::new();
        match item {
            Item::Snapshot(snapshot) => {
                for json in &snapshot.sessions {
                    let standing = standing(json)?;
                    if self.subscribed {
                        self.init(app, &standing, &mut messages).await?;
                    } else {
                        self.status(&standing, &mut messages)?;
                    }
                }
            }
            Item::Frame(frame) => match frame.kind {
                FrameKind::Status(_) => self.status(&standing(&frame.json)?, &mut messages)?,
                FrameKind::Event(kind) if self.subscribed => event(frame, kind, &mut messages)?,
                FrameKind::Event(_) | FrameKind::Approval | FrameKind::Finding | FrameKind::Delta => {}
            },
            Item::TooSlow => {}
        }
        Ok(messages)
    }

    async fn init(
        &mut self,
        app: &App,
        standing: &Standing,
        messages: &mut Vec<CompatMessage>,
    ) -> Result<(), ApiError> {
        let id = standing.id;
        let events = app.read(move |reader| reader.last_events(id, INIT_EVENTS, &[])).await?;
        let (status, working) = stream_words(standing.status.state);
        self.states.insert(id, standing.status.state);
        let reason = standing.status.reason;
        push(messages, "stream-init", id, Content::Init { status, working, reason, events })
    }

    fn status(&mut self, standing: &Standing, messages: &mut Vec<CompatMessage>) -> Result<(), ApiError> {
        let Standing { id, status: StandingStatus { state, reason } } = *standing;
        let (status, working) = words(state);
        if self.subscribed {
            let (status, working) = stream_words(state);
            push(messages, "stream-status", id, Content::Status { status, working, reason })?;
        }
        push(messages, "session.status", id, Content::Status { status, working, reason })?;
        let waits = matches!(state, State::Waiting | State::WaitingApproval);
        if self.states.insert(id, state) != Some(state) && waits {
            push(messages, "waiting-for-input", id, Content::Status { status, working, reason })?;
        }
        Ok(())
    }
}

fn event(frame: &Frame, kind: Kind, messages: &mut Vec<CompatMessage>) -> Result<(), ApiError> {
    let raw: &RawValue = serde_json::from_str(frame.json.as_str()).map_err(|cause| ApiError::internal(&cause))?;
    push(messages, "stream-event", frame.session, Content::Event { event: raw })?;
    if kind == Kind::ApprovalResolved
        && let Ok(event) = Event::from_json(frame.json.as_str())
        && let Payload::ApprovalResolved(resolved) = event.payload
        && resolved.outcome.is_none()
    {
        let content = Content::Decision { approval: resolved.approval_id, allowed: resolved.allowed };
        push(messages, "approval-decision", frame.session, content)?;
    }
    Ok(())
}

fn push(
    messages: &mut Vec<CompatMessage>,
    name: &'static str,
    session: SessionId,
    content: Content<'_>,
) -> Result<(), ApiError> {
    let json =
        serde_json::to_string(&Message { name, session, content }).map_err(|cause| ApiError::internal(&cause))?;
    messages.push(CompatMessage { name, json });
    Ok(())
}

fn standing(json: &Json) -> Result<Standing, ApiError> {
    serde_json::from_str(json.as_str()).map_err(|cause| ApiError::internal(&cause))
}

/// The status of a session as JSON.
pub(crate) fn stream_status(json: &Json) -> Result<StreamStatus, ApiError> {
    let Standing { id, status: StandingStatus { state, reason } } = standing(json)?;
    let (status, working) = stream_words(state);
    Ok(StreamStatus { session: id, status: status.to_owned(), working, reason })
}

/// The word for a state in messages about one session, and whether it counts as working.
const fn stream_words(state: State) -> (&'static str, bool) {
    match state {
        State::Waiting | State::WaitingApproval => ("waiting", false),
        State::Running | State::Idle | State::Unknown | State::Exited => words(state),
    }
}

/// The word for a state in messages about all sessions, and whether it counts as working.
const fn words(state: State) -> (&'static str, bool) {
    match state {
        State::Running => ("running", true),
        State::Waiting => ("waiting_input", false),
        State::WaitingApproval => ("waiting_approval", false),
        State::Idle | State::Unknown => ("idle", false),
        State::Exited => ("exited", false),
    }
}

/// The part of a session's JSON that contains its status.
#[derive(Debug, Deserialize)]
struct Standing {
    id: SessionId,
    status: StandingStatus,
}

/// See [`Standing`].
#[derive(Debug, Deserialize)]
struct StandingStatus {
    state: State,
    reason: Option<Reason>,
}
