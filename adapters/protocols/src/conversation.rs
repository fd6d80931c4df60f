//! The events of a conversation over an agent's protocol: started, working, requesting permission, waiting, ended. The
//! conversation itself is in the agent's own files and is not repeated here.
//!
//! A request is delivered complete, with its session and directory, so that the hash of a delivery's payload covers
//! everything the decision is based on.

use std::sync::Arc;

use events::{
    ApprovalId, ApprovalKind, ApprovalResolved, ApprovalState, Claim, Confidence, Dialog, Payload, Provider, Reason,
    SessionStarted, Signal, StartKind, State, Timestamp, ToolOutcome,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{acp, app_server, drive, is_own, runtime, stream_json};
use crate::codec::PermissionRequest;
use agents::agent::{Drive, Protocol};
use hooks::delivery::{
    Delivery,
    decode::{DecodedDelivery, details_of_tool, events_of},
    permission::PermissionDetails,
};

/// An event of a conversation.
#[derive(Debug)]
pub struct ProtocolEvent {
    /// The agent's own id of the session.
    pub session_id: String,
    /// The directory in which the session was started.
    pub cwd: String,
    /// The event.
    pub what: ProtocolEventKind,
}

/// The kind of event.
#[derive(Debug)]
pub enum ProtocolEventKind {
    /// The session started.
    Began,
    /// A turn is running.
    Works,
    /// The agent asks for permission, and waits.
    Asks(PermissionPayload),
    /// The agent no longer waits for the answer to this approval.
    Settled {
        /// The approval.
        approval: ApprovalId,
        /// How the waiting ended.
        end: RequestEnd,
    },
    /// The call of an approval has ended.
    Returned {
        /// The approval.
        approval: ApprovalId,
        /// How the call ended.
        outcome: ToolOutcome,
    },
    /// A turn is over.
    Rests,
    /// The driver has ended.
    Left,
}

/// How an agent stopped waiting for the answer to a request. None of these is a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestEnd {
    /// It was answered elsewhere, or for an unknown reason.
    Over,
    /// It was not answered in time.
    Expired,
    /// It was withdrawn because its turn was ended.
    Withdrawn,
}

/// A permission request to deliver.
#[derive(Debug)]
pub struct PermissionPayload {
    /// The line from the agent.
    pub request: Box<RawValue>,
    /// The part of the call missing from the request.
    pub item: Option<Box<RawValue>>,
    /// The agent's id of the call.
    pub call: Option<String>,
    /// The directory of the call, if the agent sent it separately.
    pub place: Option<String>,
}

impl PermissionPayload {
    /// A request to deliver.
    #[must_use]
    pub fn of(request: &PermissionRequest) -> Self {
        Self {
            request: request.line.clone(),
            item: request.item.clone(),
            call: request.call.clone(),
            place: request.place.clone(),
        }
    }
}

/// The payload of a delivery.
#[derive(Debug, Serialize, Deserialize)]
struct EventPayload {
    session_id: String,
    cwd: String,
    what: EventPayloadKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approval: Option<ApprovalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<ToolOutcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<RequestEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EventPayloadKind {
    Began,
    Works,
    Asks,
    Settled,
    Returned,
    Rests,
    Left,
}

impl ProtocolEvent {
    /// The payload of the event's delivery.
    ///
    /// # Errors
    /// If it cannot be serialized to JSON.
    pub fn payload(self) -> Result<Box<RawValue>, serde_json::Error> {
        let Self { session_id, cwd, what } = self;
        let plain = |what| EventPayload {
            session_id,
            cwd,
            what,
            request: None,
            item: None,
            call: None,
            place: None,
            approval: None,
            outcome: None,
            end: None,
        };
        serde_json::value::to_raw_value(&match what {
            ProtocolEventKind::Began => plain(EventPayloadKind::Began),
            ProtocolEventKind::Works => plain(EventPayloadKind::Works),
            ProtocolEventKind::Rests => plain(EventPayloadKind::Rests),
            ProtocolEventKind::Left => plain(EventPayloadKind::Left),
            ProtocolEventKind::Settled { approval, end } => {
                EventPayload { approval: Some(approval), end: Some(end), ..plain(EventPayloadKind::Settled) }
            }
            ProtocolEventKind::Returned { approval, outcome } => {
                EventPayload { approval: Some(approval), outcome: Some(outcome), ..plain(EventPayloadKind::Returned) }
            }
            ProtocolEventKind::Asks(PermissionPayload { request, item, call, place }) => {
                EventPayload { request: Some(request), item, call, place, ..plain(EventPayloadKind::Asks) }
            }
        })
    }

    fn read(payload: &RawValue) -> Result<Self, String> {
        let wire: EventPayload = serde_json::from_str(payload.get()).map_err(|error| error.to_string())?;
        if wire.session_id.is_empty() {
            return Err("missing session id".into());
        }
        let what = match wire.what {
            EventPayloadKind::Began => ProtocolEventKind::Began,
            EventPayloadKind::Works => ProtocolEventKind::Works,
            EventPayloadKind::Rests => ProtocolEventKind::Rests,
            EventPayloadKind::Left => ProtocolEventKind::Left,
            EventPayloadKind::Settled => ProtocolEventKind::Settled {
                approval: wire.approval.ok_or("missing approval id")?,
                end: wire.end.unwrap_or(RequestEnd::Over),
            },
            EventPayloadKind::Returned => ProtocolEventKind::Returned {
                approval: wire.approval.ok_or("missing approval id")?,
                outcome: wire.outcome.ok_or("missing outcome")?,
            },
            EventPayloadKind::Asks => ProtocolEventKind::Asks(PermissionPayload {
                request: wire.request.ok_or("missing request")?,
                item: wire.item,
                call: wire.call,
                place: wire.place,
            }),
        };
        Ok(Self { session_id: wire.session_id, cwd: wire.cwd, what })
    }
}

/// Decodes a delivery of a protocol.
pub fn decode(delivery: &Delivery, now: Timestamp) -> Result<DecodedDelivery, String> {
    let told = ProtocolEvent::read(&delivery.payload)?;
    let claim = |state, reason, words: &str| {
        Signal::new(Claim::State { state, reason }, Confidence::High, Some(words.to_owned()))
    };
    let withdrawn = |words: &str| Signal::new(Claim::Withdrawn, Confidence::High, Some(words.to_owned()));
    let payloads: Vec<Payload> = match &told.what {
        ProtocolEventKind::Began => {
            let cwd = Some(told.cwd.clone());
            vec![SessionStarted { how: StartKind::New, cwd, ..SessionStarted::default() }.into()]
        }
        ProtocolEventKind::Works => vec![claim(State::Running, None, "its protocol: a turn is running").into()],
        ProtocolEventKind::Rests => vec![claim(State::Waiting, None, "its protocol: the turn is over").into()],
        ProtocolEventKind::Left => vec![withdrawn("its protocol: the client disconnected").into()],
        ProtocolEventKind::Asks(asks) => {
            let asked =
                permission_details(delivery.provider, asks, &told.cwd).ok_or("cannot decode the permission request")?;
            let question = asked.about == Some(ApprovalKind::Question);
            let (state, reason) = match asked.about {
                Some(ApprovalKind::Question) => (State::Waiting, Reason::Question),
                about => (State::WaitingApproval, about.unwrap_or(ApprovalKind::Command).reason()),
            };
            let dialog = Dialog {
                about: asked.about.filter(|_| !question),
                subject: asked.subject.clone(),
                ..Dialog::default()
            };
            let key = delivery.approval_id();
            let signal = Signal {
                key: Some(key.to_string()),
                dialog: Some(Box::new(dialog)),
                ..claim(state, Some(reason), "its protocol: it asks for permission")
            };
            let request = PermissionDetails { key: Some(key.to_string()), ..asked }.into_event(delivery);
            vec![request.into(), withdrawn("its protocol: it is waiting").into(), signal.into()]
        }
        ProtocolEventKind::Settled { approval, end } => {
            let key = Some(approval.to_string());
            let withdrawn = Signal { key, ..withdrawn("its protocol: it no longer waits for the answer") };
            let state = match end {
                RequestEnd::Over => None,
                RequestEnd::Expired => Some(ApprovalState::Expired),
                RequestEnd::Withdrawn => Some(ApprovalState::Withdrawn),
            };
            let closed = state.map(|state| {
                let (approval_id, state) = (approval.clone(), Some(state));
                ApprovalResolved { approval_id, state, ..ApprovalResolved::default() }.into()
            });
            closed.into_iter().chain([withdrawn.into()]).collect()
        }
        ProtocolEventKind::Returned { approval, outcome } => {
            // How the call ended; this does not say whether it was allowed.
            let approval_id = approval.clone();
            vec![ApprovalResolved { approval_id, outcome: Some(*outcome), ..ApprovalResolved::default() }.into()]
        }
    };
    let session: Arc<str> = Arc::from(told.session_id);
    let payloads = payloads.into_iter().map(|payload| (payload, false)).collect();
    let events = events_of(delivery, &session, None, payloads, now);
    Ok(DecodedDelivery { session, cwd: Some(told.cwd), events })
}

/// The details of a request. If anything is uncertain, the request counts as incomplete, and no rule decides on it.
fn permission_details(provider: Provider, asks: &PermissionPayload, cwd: &str) -> Option<PermissionDetails> {
    if is_own(provider) {
        return runtime::details(&asks.request);
    }
    let drive = drive(provider)?;
    let asked = match drive.protocol {
        Protocol::StreamJson => stream_json_details(provider, asks)?,
        Protocol::AppServer => app_server_details(asks)?,
        Protocol::Acp => acp_details(drive, asks, cwd)?,
    };
    Some(PermissionDetails { call_id: asked.call_id.or_else(|| asks.call.clone()), ..asked })
}

fn stream_json_details(provider: Provider, asks: &PermissionPayload) -> Option<PermissionDetails> {
    let asked = stream_json::parse_request(&asks.request)?;
    let of_tool = details_of_tool(provider, &asked.tool, asked.input)?;
    // The shell may have changed its directory since the session started.
    Some(PermissionDetails { cut: asks.place.is_none(), cwd: asks.place.clone(), ..of_tool })
}

fn app_server_details(asks: &PermissionPayload) -> Option<PermissionDetails> {
    let asked = app_server::parse_request(&asks.request)?;
    let subject = |text: Option<&str>| text.map(str::to_owned);
    if asked.is_files {
        let paths = asks.item.as_deref().and_then(app_server::changed);
        return Some(PermissionDetails {
            about: Some(ApprovalKind::Edit),
            tool: Some("apply_patch".into()),
            subject: paths.as_ref().and_then(|paths| paths.first().cloned()),
            // Without its item the changes are unknown; a root would be granted for longer.
            cut: asks.item.is_none() || asked.grant_root.is_some(),
            paths,
            input: asks.item.as_deref().and_then(|item| app_server::changes_and(item.get(), &asked.input)),
            ..PermissionDetails::default()
        });
    }
    let command = asked.command.as_deref();
    let runs = asked.kind.as_deref().is_none_or(|kind| kind == "command");
    Some(PermissionDetails {
        about: Some(ApprovalKind::Command).filter(|_| runs && command.is_some()),
        tool: Some("Bash".into()),
        command: command.filter(|_| runs).map(str::to_owned),
        paths: Some(Vec::new()),
        subject: subject(command),
        cut: command.is_none() || asked.cwd.is_none() || asked.environment_id.as_deref().is_some_and(|e| e != "local"),
        cwd: asked.cwd.as_deref().map(str::to_owned),
        // In code mode, the call in the transcript is a different one.
        input: Some(asked.input),
        ..PermissionDetails::default()
    })
}

fn acp_details(drive: &Drive, asks: &PermissionPayload, cwd: &str) -> Option<PermissionDetails> {
    let asked = acp::parse_request(&asks.request)?;
    // From another agent, the same text may have been written by the model.
    let shell = drive.names_directory && asked.is_shell_in(cwd);
    let edits = asked.kind == "edit" && !asked.paths.is_empty();
    let about = match asked.kind.as_str() {
        "execute" => Some(ApprovalKind::Command),
        "edit" if edits => Some(ApprovalKind::Edit),
        "read" | "search" => Some(ApprovalKind::Read),
        "fetch" => Some(ApprovalKind::Fetch),
        _ => None,
    };
    Some(PermissionDetails {
        about,
        tool: Some(asked.kind.clone()),
        command: (asked.kind == "execute").then(|| asked.title.clone()),
        subject: if edits { asked.paths.first().cloned() } else { Some(asked.title.clone()) },
        cut: !(shell || edits && drive.names_edits),
        cwd: (shell || edits).then(|| cwd.to_owned()),
        paths: Some(asked.paths),
        input: Some(asked.input),
        ..PermissionDetails::default()
    })
}
