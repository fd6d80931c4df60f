//! The requests that the server cannot answer itself: the daemon implements them.

use std::{collections::BTreeMap, fmt, net::SocketAddr};

use api::{
    approvals::{ApprovalView, ButtonAnswer, DecidedBefore, DecisionScope, Verdict},
    hooks::HookAnswer,
    prompts::Receipt,
    push::PushSubscription,
    retention::{PruneRequest, RemovalReport, RetentionStatus},
    runs::{Explanation, GridUpdate, Input, InputSent, Picture, RecordedFrames, RecordingInfo, Run, Scrollback, Size},
    search::{IndexStatus, SearchPage, SearchQuery},
    steering::{SessionCommand, SessionInputTaken, SessionRequest, StartedSession},
};
use events::{ApprovalId, ApprovalState, DeliveryId, Finding, FindingId, PromptId, SessionId, Timestamp};
use futures_util::future::BoxFuture;
use projections::{MarkChange, Prompt, Session, Turn, WorkLog};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};

/// An asynchronous reply. If the future is dropped, the request is either not started, or completed without a recipient
/// for the result.
pub type Reply<T> = BoxFuture<'static, Result<T, Refusal>>;

/// The requests that the daemon carries out for the server.
pub trait Control: Send + Sync + 'static {
    /// Turns the capture of a session on or off.
    fn set_capture(&self, session: SessionId, enabled: bool) -> Reply<()>;

    /// Adds a note to a session.
    fn note(&self, session: SessionId, text: String) -> Reply<()>;

    /// Creates a handoff note in Markdown, without secrets.
    fn hand_off(&self, parts: HandoffParts) -> Reply<String>;

    /// Changes labels of a session; a label without a value is removed.
    fn label(&self, session: SessionId, labels: BTreeMap<String, Option<String>>) -> Reply<()>;

    /// Marks a session for the user's lists.
    fn mark(&self, session: SessionId, changes: Vec<MarkChange>) -> Reply<()>;

    /// Removes a session with its sub-agents, or reports what would be removed. Has its own timeout; dropping the
    /// future withdraws the request.
    fn forget(&self, session: SessionId, dry_run: bool) -> Reply<RemovalReport>;

    /// Removes old sessions, or reports which would be removed, like [`Self::forget`].
    fn prune(&self, request: PruneRequest) -> Reply<RemovalReport>;

    /// The state of erasing removed sessions.
    fn retention(&self) -> Reply<RetentionStatus>;

    /// Serves the host of a run until it disconnects; the connection was upgraded from HTTP.
    fn serve_host(&self, connection: HostConnection, peer: Peer) -> BoxFuture<'static, ()>;

    /// Reads a delivery that a hook put in the spool.
    fn accept_delivery(&self, id: DeliveryId) -> Reply<()>;

    /// Records that a hook could not store its delivery, and why.
    fn lose_delivery(&self, why: String) -> Reply<()>;

    /// Waits for the decision on a delivery; `None` if the agent should ask the user itself. Dropping the future means
    /// that the hook stopped waiting.
    fn await_decision(&self, wait: DecisionWait) -> Reply<Option<HookAnswer>>;

    /// Lists approvals, newest first.
    fn approvals(&self, filter: ApprovalFilter) -> Reply<Vec<ApprovalView>>;

    /// Returns one approval, by its id or a part of it.
    fn approval(&self, id: String) -> Reply<ApprovalView>;

    /// Decides an approval.
    fn decide(&self, id: String, decision: Decision) -> Reply<ApprovalView>;

    /// Answers an approval with the token of a button; `None` if the token is invalid or expired.
    fn press_button(&self, token: String, who: Who) -> Reply<Option<ButtonAnswer>>;

    /// The public key with which browsers subscribe to messages.
    fn push_key(&self) -> Reply<String>;

    /// Subscribes the browser of a device to messages.
    fn subscribe_push(&self, device: String, subscription: PushSubscription) -> Reply<()>;

    /// Ends the subscription of a device.
    fn unsubscribe_push(&self, device: String) -> Reply<()>;

    /// Acknowledges a finding.
    fn acknowledge(&self, finding: FindingId) -> Reply<Finding>;

    /// Queues a prompt for a session.
    fn queue_prompt(&self, session: SessionId, text: String) -> Reply<Prompt>;

    /// Cancels a queued prompt.
    fn cancel_prompt(&self, id: PromptId) -> Reply<Prompt>;

    /// Sends a message over a notification channel.
    fn test_channel(&self, channel: String) -> Reply<Receipt>;

    /// Commits changes that are shown but not stored yet, so that later reads from the store include them.
    fn commit_shown(&self) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }

    /// After a start, waits briefly until earlier runs are known again.
    fn runs_reconnected(&self) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }

    /// The known runs, newest first.
    ///
    /// # Errors
    /// When runs are not available.
    fn runs(&self) -> Result<Vec<Run>, Refusal>;

    /// One run.
    ///
    /// # Errors
    /// When there is none, or the name matches several.
    fn run(&self, target: &RunTarget) -> Result<Run, Refusal>;

    /// The screen of a run.
    fn screen(&self, target: RunTarget) -> Reply<Picture>;

    /// The changes of a run's screen since a revision, as soon as there are any, or after this time.
    fn grid(&self, target: RunTarget, since: u64, wait_ms: u32) -> Reply<GridUpdate>;

    /// Lines that scrolled off a run's screen, before the line with this number.
    fn scrollback(&self, target: RunTarget, before: u64, count: u32) -> Reply<Scrollback>;

    /// Describes a run's recording.
    fn recording(&self, target: RunTarget) -> Reply<RecordingInfo>;

    /// The recorded screen at a time, ms, and at most this many changes from there.
    fn recorded_frames(&self, target: RunTarget, from_ms: u64, limit: usize) -> Reply<RecordedFrames>;

    /// Resizes a run's terminal; without a size, it follows the terminal that has control.
    fn resize(&self, target: RunTarget, size: Option<Size>) -> Reply<()>;

    /// Explains how the screen of a run was interpreted.
    fn explain_screen(&self, target: RunTarget) -> Reply<Explanation>;

    /// Types into a run. Text waits for a prompt up to the timeout in the input.
    fn send_input(&self, target: RunTarget, input: Input) -> Reply<InputSent>;

    /// Types the characters a user enters in a view of the run's terminal. Refused only while a dialog or menu is open,
    /// unless forced.
    fn type_characters(&self, target: RunTarget, text: String, force: bool) -> Reply<()>;

    /// Starts a session in a process that outlives the server.
    fn start_session(&self, start: SessionStart) -> Reply<StartedSession>;

    /// Sends a command to a session.
    fn command(&self, session: SessionId, command: SessionCommand) -> Reply<SessionInputTaken>;

    /// Searches the texts of all sessions, or of the one the query names.
    fn search(&self, query: SearchQuery, session: Option<SessionId>) -> Reply<SearchPage>;

    /// The state of the search index.
    fn index_status(&self) -> Reply<IndexStatus>;

    /// Removes and rebuilds the search index.
    fn rebuild_index(&self) -> Reply<IndexStatus>;

    /// Accepts an OpenTelemetry message; replies in its encoding once its events are stored.
    fn telemetry(&self, message: Telemetry) -> BoxFuture<'static, Result<Vec<u8>, TelemetryRefusal>>;
}

/// The parts of a handoff note.
#[derive(Debug, Clone)]
pub struct HandoffParts {
    /// The session.
    pub session: Session,
    /// Its turns, oldest first.
    pub turns: Vec<Turn>,
    /// The session's work log.
    pub work: WorkLog,
    /// The session's unresolved findings, newest first.
    pub findings: Vec<Finding>,
}

/// Selects the approvals to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalFilter {
    /// Only approvals in this state.
    pub state: Option<ApprovalState>,
    /// Only approvals of this session.
    pub session: Option<SessionId>,
    /// Only approvals after this one in the list: when it was opened, and its id.
    pub behind: Option<(Timestamp, ApprovalId)>,
    /// Maximum number of approvals.
    pub limit: usize,
}

/// A hook that waits for a decision.
#[derive(Debug)]
pub struct DecisionWait {
    /// The id of its delivery.
    pub delivery: DeliveryId,
    /// Whether it also waits for the user, not only for a rule.
    pub people: bool,
    /// The BLAKE3 hash of its input: the decision applies to exactly that input.
    pub digest: String,
    /// The delivery itself, if nothing else reports the request.
    pub whole: Option<Box<RawValue>>,
}

/// A decision of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request is allowed or denied.
    pub verdict: Verdict,
    /// The reason given to the agent on a denial.
    pub message: Option<String>,
    /// The scope of the decision.
    pub scope: DecisionScope,
    /// The answers to questions, by question.
    pub answers: Option<BTreeMap<String, String>>,
    /// The revision of the request that was shown; checked if given.
    pub revision: Option<String>,
    /// Whether the suggested rule should be saved too.
    pub rule: bool,
    /// Who decided.
    pub who: Who,
}

/// A request to start a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionStart {
    /// The session to start.
    pub request: SessionRequest,
    /// Who requested it.
    pub who: Who,
}

/// The client at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Who {
    /// The process id according to the kernel; known only on the Unix socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// The process's user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The remote address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// The id of the paired device that was signed in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The name of that device at that time. It is not recorded, because the id identifies the device.
    #[serde(skip)]
    pub device_name: Option<String>,
}

/// The process at the other end of the Unix socket, as reported by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The process's user.
    pub uid: u32,
    /// The process id, if the kernel reports it.
    pub pid: Option<i32>,
}

/// An OpenTelemetry message.
#[derive(Debug)]
pub struct Telemetry {
    /// The kind of its content.
    pub kind: TelemetryKind,
    /// Whether it is protobuf; otherwise it is JSON.
    pub protobuf: bool,
    /// The message, decompressed.
    pub body: Vec<u8>,
}

/// The content of an OpenTelemetry message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TelemetryKind {
    /// Log records.
    Logs,
    /// Spans.
    Traces,
    /// Metrics.
    Metrics,
}

/// Why telemetry was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TelemetryRefusal {
    /// The message is malformed; a retry is pointless.
    #[error("{0}")]
    Malformed(String),
    /// The ingest queue is full; the sender should retry.
    #[error("too much telemetry is waiting to be stored")]
    Busy,
    /// The database is not accepting writes; the sender should retry.
    #[error("cannot write to the database at the moment")]
    Stuck,
}

/// Identifies a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunTarget {
    /// The run that hosts this session.
    Session(SessionId),
    /// The run with this id or name.
    Run(String),
}

/// A connection upgraded from HTTP.
pub struct HostConnection(pub Box<dyn HostStream>);

impl fmt::Debug for HostConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostConnection")
    }
}

/// A bidirectional byte stream.
pub trait HostStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> HostStream for T {}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The subject does not exist.
    #[error("{0}")]
    NotFound(String),
    /// It cannot be done in the current state.
    #[error("{0}")]
    Conflict(String),
    /// The permission request is closed.
    #[error("{why}")]
    Decided {
        /// Why nothing can be decided.
        why: String,
        /// How the request was closed.
        before: Box<DecidedBefore>,
    },
    /// A shortened id matches several things.
    #[error("{0}")]
    Ambiguous(String),
    /// A parameter of the request is invalid.
    #[error("{name}: {reason}")]
    Invalid {
        /// The parameter.
        name: &'static str,
        /// The error in its value.
        reason: String,
    },
    /// It could not be done within the requested time.
    #[error("{0}")]
    TimedOut(String),
    /// The responsible part is busy or stopping.
    #[error("temporarily unavailable")]
    Unavailable,
    /// It could not be done in time; the text says how much was done.
    #[error("{0}")]
    Busy(String),
    /// It failed; the text goes to the log, not to the client.
    #[error("{0}")]
    Failed(String),
}

/// Refuses every request as unavailable.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoControl;

fn unavailable<T: Send + 'static>() -> Reply<T> {
    Box::pin(async { Err(Refusal::Unavailable) })
}

impl Control for NoControl {
    fn set_capture(&self, _: SessionId, _: bool) -> Reply<()> {
        unavailable()
    }

    fn note(&self, _: SessionId, _: String) -> Reply<()> {
        unavailable()
    }

    fn hand_off(&self, _: HandoffParts) -> Reply<String> {
        unavailable()
    }

    fn label(&self, _: SessionId, _: BTreeMap<String, Option<String>>) -> Reply<()> {
        unavailable()
    }

    fn mark(&self, _: SessionId, _: Vec<MarkChange>) -> Reply<()> {
        unavailable()
    }

    fn forget(&self, _: SessionId, _: bool) -> Reply<RemovalReport> {
        unavailable()
    }

    fn prune(&self, _: PruneRequest) -> Reply<RemovalReport> {
        unavailable()
    }

    fn retention(&self) -> Reply<RetentionStatus> {
        unavailable()
    }

    fn serve_host(&self, _: HostConnection, _: Peer) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }

    fn accept_delivery(&self, _: DeliveryId) -> Reply<()> {
        unavailable()
    }

    fn lose_delivery(&self, _: String) -> Reply<()> {
        unavailable()
    }

    fn await_decision(&self, _: DecisionWait) -> Reply<Option<HookAnswer>> {
        unavailable()
    }

    fn approvals(&self, _: ApprovalFilter) -> Reply<Vec<ApprovalView>> {
        unavailable()
    }

    fn approval(&self, _: String) -> Reply<ApprovalView> {
        unavailable()
    }

    fn decide(&self, _: String, _: Decision) -> Reply<ApprovalView> {
        unavailable()
    }

    fn press_button(&self, _: String, _: Who) -> Reply<Option<ButtonAnswer>> {
        unavailable()
    }

    fn push_key(&self) -> Reply<String> {
        unavailable()
    }

    fn subscribe_push(&self, _: String, _: PushSubscription) -> Reply<()> {
        unavailable()
    }

    fn unsubscribe_push(&self, _: String) -> Reply<()> {
        unavailable()
    }

    fn acknowledge(&self, _: FindingId) -> Reply<Finding> {
        unavailable()
    }

    fn queue_prompt(&self, _: SessionId, _: String) -> Reply<Prompt> {
        unavailable()
    }

    fn cancel_prompt(&self, _: PromptId) -> Reply<Prompt> {
        unavailable()
    }

    fn test_channel(&self, _: String) -> Reply<Receipt> {
        unavailable()
    }

    fn runs(&self) -> Result<Vec<Run>, Refusal> {
        Err(Refusal::Unavailable)
    }

    fn run(&self, _: &RunTarget) -> Result<Run, Refusal> {
        Err(Refusal::Unavailable)
    }

    fn screen(&self, _: RunTarget) -> Reply<Picture> {
        unavailable()
    }

    fn grid(&self, _: RunTarget, _: u64, _: u32) -> Reply<GridUpdate> {
        unavailable()
    }

    fn scrollback(&self, _: RunTarget, _: u64, _: u32) -> Reply<Scrollback> {
        unavailable()
    }

    fn recording(&self, _: RunTarget) -> Reply<RecordingInfo> {
        unavailable()
    }

    fn recorded_frames(&self, _: RunTarget, _: u64, _: usize) -> Reply<RecordedFrames> {
        unavailable()
    }

    fn resize(&self, _: RunTarget, _: Option<Size>) -> Reply<()> {
        unavailable()
    }

    fn explain_screen(&self, _: RunTarget) -> Reply<Explanation> {
        unavailable()
    }

    fn send_input(&self, _: RunTarget, _: Input) -> Reply<InputSent> {
        unavailable()
    }

    fn type_characters(&self, _: RunTarget, _: String, _: bool) -> Reply<()> {
        unavailable()
    }

    fn start_session(&self, _: SessionStart) -> Reply<StartedSession> {
        unavailable()
    }

    fn command(&self, _: SessionId, _: SessionCommand) -> Reply<SessionInputTaken> {
        unavailable()
    }

    fn search(&self, _: SearchQuery, _: Option<SessionId>) -> Reply<SearchPage> {
        unavailable()
    }

    fn index_status(&self) -> Reply<IndexStatus> {
        unavailable()
    }

    fn rebuild_index(&self) -> Reply<IndexStatus> {
        unavailable()
    }

    fn telemetry(&self, _: Telemetry) -> BoxFuture<'static, Result<Vec<u8>, TelemetryRefusal>> {
        Box::pin(async { Err(TelemetryRefusal::Stuck) })
    }
}
