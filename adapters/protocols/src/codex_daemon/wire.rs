//! The daemon's messages that capture uses, and the few that it sends.
//!
//! Formats: recorded from codex-cli 0.169.0 (`fixtures/codex-daemon`). `waitingOnUserInput`, `systemError` and
//! `notLoaded` are known only from Codex's sources.

use std::{borrow::Cow, sync::Arc};

use events::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A message from the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DaemonMessage {
    /// A thread's status changed.
    Changed {
        /// The thread.
        thread: Arc<str>,
        /// Its current status.
        status: ThreadStatus,
        /// The time, by the daemon's clock.
        at: Option<Timestamp>,
    },
    /// A thread was started or loaded.
    Began(Thread),
    /// A reply to one of our requests.
    Answered {
        /// The id of the request.
        id: u64,
        /// The content of the reply.
        answer: DaemonReply,
    },
    /// A request of the daemon. It is meant for subscribers and never answered here.
    Asked,
    /// Anything else.
    Other,
}

/// The content of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DaemonReply {
    /// The threads that are loaded.
    Loaded(Vec<Arc<str>>),
    /// One thread.
    Thread(Thread),
    /// A refusal.
    Refused(String),
    /// Anything else.
    Other,
}

/// The state of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Thread {
    /// Its id.
    pub(super) id: Arc<str>,
    /// Whether it has no rollout: created for a single question, for instance to generate a title.
    pub(super) hidden: bool,
    /// Its status.
    pub(super) status: ThreadStatus,
    /// When it last changed, to the second.
    pub(super) updated_at: Option<Timestamp>,
}

/// The status of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadStatus {
    /// A turn is running.
    Active,
    /// A turn waits until a request is allowed or refused.
    WaitingOnApproval,
    /// A turn waits for the answer to a question.
    WaitingOnUserInput,
    /// No turn is running.
    Idle,
    /// The last turn failed.
    SystemError,
    /// The daemon has unloaded it.
    NotLoaded,
    /// An unknown status.
    Strange,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DaemonEnvelope<'a> {
    #[serde(default, borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<ReplyError>,
    #[serde(default)]
    emitted_at_ms: Option<i64>,
}

#[derive(Deserialize)]
struct ReplyError {
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadStatusChanged {
    thread_id: Arc<str>,
    status: StatusWords,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusWords {
    r#type: String,
    #[serde(default)]
    active_flags: Vec<String>,
}

#[derive(Deserialize)]
struct ThreadHolder {
    thread: ThreadWords,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadWords {
    id: Arc<str>,
    #[serde(default)]
    ephemeral: bool,
    status: StatusWords,
    #[serde(default)]
    updated_at: Option<i64>,
}

#[derive(Deserialize)]
struct LoadedList {
    data: Vec<Arc<str>>,
}

impl StatusWords {
    fn status(&self) -> ThreadStatus {
        let has = |flag: &str| self.active_flags.iter().any(|f| f == flag);
        match self.r#type.as_str() {
            "active" if has("waitingOnApproval") => ThreadStatus::WaitingOnApproval,
            "active" if has("waitingOnUserInput") => ThreadStatus::WaitingOnUserInput,
            "active" => ThreadStatus::Active,
            "idle" => ThreadStatus::Idle,
            "systemError" => ThreadStatus::SystemError,
            "notLoaded" => ThreadStatus::NotLoaded,
            _ => ThreadStatus::Strange,
        }
    }
}

impl ThreadWords {
    fn thread(self) -> Thread {
        let updated_at = self.updated_at.and_then(|s| s.checked_mul(1000)).map(Timestamp::from_millisecond);
        Thread { hidden: self.ephemeral, status: self.status.status(), updated_at, id: self.id }
    }
}

/// Parses one message.
///
/// # Errors
/// If it is not a message, or a message of a known kind has an unexpected format.
pub(super) fn read(text: &str) -> Result<DaemonMessage, serde_json::Error> {
    let envelope: DaemonEnvelope<'_> = serde_json::from_str(text)?;
    let Some(method) = envelope.method else {
        let id = envelope.id.and_then(|id| id.get().parse().ok());
        let answer = match (envelope.error, envelope.result) {
            (Some(refusal), _) => DaemonReply::Refused(refusal.message),
            (None, Some(result)) => answer(result.get()),
            (None, None) => DaemonReply::Other,
        };
        return Ok(id.map_or(DaemonMessage::Other, |id| DaemonMessage::Answered { id, answer }));
    };
    if envelope.id.is_some() {
        return Ok(DaemonMessage::Asked);
    }
    let params = envelope.params.map_or("null", RawValue::get);
    Ok(match method.as_ref() {
        "thread/status/changed" => {
            let changed: ThreadStatusChanged = serde_json::from_str(params)?;
            let at = envelope.emitted_at_ms.map(Timestamp::from_millisecond);
            DaemonMessage::Changed { thread: changed.thread_id, status: changed.status.status(), at }
        }
        "thread/started" => DaemonMessage::Began(serde_json::from_str::<ThreadHolder>(params)?.thread.thread()),
        _ => DaemonMessage::Other,
    })
}

/// The id identifies the request of a reply; its format does so too.
fn answer(result: &str) -> DaemonReply {
    if let Ok(holder) = serde_json::from_str::<ThreadHolder>(result) {
        return DaemonReply::Thread(holder.thread.thread());
    }
    serde_json::from_str::<LoadedList>(result).map_or(DaemonReply::Other, |list| DaemonReply::Loaded(list.data))
}

/// The messages that are sent; there is no way to send others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DaemonRequest<'a> {
    /// Identifies this client.
    Initialize,
    /// Confirms that the reply was read.
    Initialized,
    /// Asks for the loaded threads.
    LoadedList,
    /// Asks for one thread, without its turns.
    Read(&'a str),
}

#[derive(Serialize)]
struct OutgoingRequest<P> {
    id: u64,
    method: &'static str,
    params: P,
}

#[derive(Serialize)]
struct DaemonNotification {
    method: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Initialize {
    client_info: ClientInfo,
    capabilities: Capabilities,
}

#[derive(Serialize)]
struct ClientInfo {
    name: &'static str,
    title: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Capabilities {
    experimental_api: bool,
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReadThread<'a> {
    thread_id: &'a str,
    include_turns: bool,
}

impl DaemonRequest<'_> {
    /// The text on the wire; `id` is that of the request.
    pub(super) fn text(&self, id: u64) -> String {
        let text = match self {
            Self::Initialize => {
                let client_info = ClientInfo { name: "capture", title: "capture", version: env!("CARGO_PKG_VERSION") };
                let params = Initialize { client_info, capabilities: Capabilities { experimental_api: true } };
                serde_json::to_string(&OutgoingRequest { id, method: "initialize", params })
            }
            Self::Initialized => serde_json::to_string(&DaemonNotification { method: "initialized" }),
            Self::LoadedList => {
                serde_json::to_string(&OutgoingRequest { id, method: "thread/loaded/list", params: Nothing {} })
            }
            Self::Read(thread) => {
                let params = ReadThread { thread_id: thread, include_turns: false };
                serde_json::to_string(&OutgoingRequest { id, method: "thread/read", params })
            }
        };
        text.unwrap_or_default()
    }
}
