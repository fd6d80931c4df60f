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

/// An answer that takes a while. If it is dropped, the request is not started, or is finished without anybody waiting
/// for it.
pub type Reply<T> = BoxFuture<'static, Result<T, Refusal>>;

/// The requests that the daemon carries out for the server.
pub trait Control: Send + Sync + 'static {
    /// Turns the capture of a session on or off.
    fn set_capture(&self, session: SessionId, enabled: bool) -> Reply<()>;

    /// Writes a note on a session.
    fn note(&self, session: SessionId, text: String) -> Reply<()>;

    /// Writes a note to go on from, in Markdown and without secrets.
    fn hand_off(&self, parts: HandoffParts) -> Reply<String>;

    /// Puts labels on a session; a label without a value is taken off.
    fn label(&self, session: SessionId, labels: BTreeMap<String, Option<String>>) -> Reply<()>;

    /// Marks a session for the user's lists.
    fn mark(&self, session: SessionId, changes: Vec<MarkChange>) -> Reply<()>;

    /// Removes a session with its sub-agents, or says what would be removed. Ends by itself in time; dropping the future
    /// takes the request back.
    fn forget(&self, session: SessionId, dry_run: bool) -> Reply<RemovalReport>;

    /// Removes old sessions, or says which would be removed; as [`Self::forget`].
    fn prune(&self, request: PruneRequest) -> Reply<RemovalReport>;

    /// What is still to be erased of removed sessions.
    fn retention(&self) -> Reply<RetentionStatus>;

    /// Talks with the host of a run until it goes; the connection has left HTTP.
    fn serve_host(&self, connection: HostConnection, peer: Peer) -> BoxFuture<'static, ()>;

    /// Reads a delivery that a hook put in the spool.
    fn accept_delivery(&self, id: DeliveryId) -> Reply<()>;

    /// Notes that a hook could not store its delivery, and why.
    fn lose_delivery(&self, why: String) -> Reply<()>;

    /// Waits for the decision on a delivery; `None` when the agent is to ask its user itself. Dropping the
    /// future says that the hook waits no longer.
    fn await_decision(&self, wait: DecisionWait) -> Reply<Option<HookAnswer>>;

    /// Lists approvals, newest first.
    fn approvals(&self, filter: ApprovalFilter) -> Reply<Vec<ApprovalView>>;

    /// One approval, by its id or a part of it.
    fn approval(&self, id: String) -> Reply<ApprovalView>;

    /// Decides an approval.
    fn decide(&self, id: String, decision: Decision) -> Reply<ApprovalView>;

    /// Answers an approval by the token of a button; `None` when the token is not good, or no longer.
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

    /// Commits what is shown and not stored yet, so that whatever is read from the store afterwards holds it.
    fn commit_shown(&self) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }

    /// Waits briefly, after a start, until the runs from before it are known again.
    fn runs_reconnected(&self) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }

    /// The runs that are known, newest first.
    ///
    /// # Errors When runs are not available.
    fn runs(&self) -> Result<Vec<Run>, Refusal>;

    /// One run.
    ///
    /// # Errors
    /// When there is none, or the name matches several.
    fn run(&self, target: &RunTarget) -> Result<Run, Refusal>;

    /// The screen of a run.
    fn screen(&self, target: RunTarget) -> Reply<Picture>;

    /// What changed of a run's screen since a revision, as soon as something has, or after this time.
    fn grid(&self, target: RunTarget, since: u64, wait_ms: u32) -> Reply<GridUpdate>;

    /// Lines that scrolled off a run's screen before the one with this number.
    fn scrollback(&self, target: RunTarget, before: u64, count: u32) -> Reply<Scrollback>;

    /// What there is of a run's recording.
    fn recording(&self, target: RunTarget) -> Reply<RecordingInfo>;

    /// The recorded screen at a time, ms, and at most this many changes from there.
    fn recorded_frames(&self, target: RunTarget, from_ms: u64, limit: usize) -> Reply<RecordedFrames>;

    /// Gives a run's terminal another size, or, without one, that of the terminal that types.
    fn resize(&self, target: RunTarget, size: Option<Size>) -> Reply<()>;

    /// How the screen of a run is read.
    fn explain_screen(&self, target: RunTarget) -> Reply<Explanation>;

    /// Types into a run. Text waits for a prompt, at most as long as the input says.
    fn send_input(&self, target: RunTarget, input: Input) -> Reply<InputSent>;

    /// Types what a person types at a view of the run's terminal. Refused only while a dialog or menu is open, unless
    /// forced.
    fn type_characters(&self, target: RunTarget, text: String, force: bool) -> Reply<()>;

    /// Starts a session in a process that outlives the server.
    fn start_session(&self, start: SessionStart) -> Reply<StartedSession>;

    /// Tells a session what to do.
    fn command(&self, session: SessionId, command: SessionCommand) -> Reply<SessionInputTaken>;

    /// Searches the texts of all sessions, or of the one that the query names.
    fn search(&self, query: SearchQuery, session: Option<SessionId>) -> Reply<SearchPage>;

    /// The state of the search index.
    fn index_status(&self) -> Reply<IndexStatus>;

    /// Removes the search index and builds it again.
    fn rebuild_index(&self) -> Reply<IndexStatus>;

    /// Accepts an OpenTelemetry message; answers in its encoding once its events are stored.
    fn telemetry(&self, message: Telemetry) -> BoxFuture<'static, Result<Vec<u8>, TelemetryRefusal>>;
}

/// What a note to go on from is made of.
#[derive(Debug, Clone)]
pub struct HandoffParts {
    /// The session.
    pub session: Session,
    /// Its turns, oldest first.
    pub turns: Vec<Turn>,
    /// What it did.
    pub work: WorkLog,
    /// Its findings that are not resolved, newest first.
    pub findings: Vec<Finding>,
}

/// Which approvals to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalFilter {
    /// Only those in this state.
    pub state: Option<ApprovalState>,
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// Only those behind this one in the list: when it was opened, and its id.
    pub behind: Option<(Timestamp, ApprovalId)>,
    /// At most this many.
    pub limit: usize,
}

/// A hook that waits for a decision.
#[derive(Debug)]
pub struct DecisionWait {
    /// What it delivered.
    pub delivery: DeliveryId,
    /// Whether it waits for a person, and not only for a rule.
    pub people: bool,
    /// The BLAKE3 hash of what it was called with: what is decided is decided for exactly that.
    pub digest: String,
    /// The delivery itself, when nothing else reports the request.
    pub whole: Option<Box<RawValue>>,
}

/// A person's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether it allows or denies.
    pub verdict: Verdict,
    /// The reason that the agent gets when it is denied.
    pub message: Option<String>,
    /// What it covers.
    pub scope: DecisionScope,
    /// The answers to questions, by question.
    pub answers: Option<BTreeMap<String, String>>,
    /// What the request said when it was shown; it is checked where it is given.
    pub revision: Option<String>,
    /// Whether the suggested rule is saved too.
    pub rule: bool,
    /// Who decided.
    pub who: Who,
}

/// A session to be started.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionStart {
    /// What.
    pub request: SessionRequest,
    /// For whom.
    pub who: Who,
}

/// Who is at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Who {
    /// The process, as the kernel says; known on the Unix socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// Its user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Where the connection came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// The id of the paired device that was signed in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The name of that device at the time. It is not recorded with the id, which says more.
    #[serde(skip)]
    pub device_name: Option<String>,
}

/// A process at the other end of the Unix socket, as the kernel names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its user.
    pub uid: u32,
    /// Its process id, when the kernel says.
    pub pid: Option<i32>,
}

/// A message of OpenTelemetry.
#[derive(Debug)]
pub struct Telemetry {
    /// What it holds.
    pub kind: TelemetryKind,
    /// Whether it is protobuf; else it is JSON.
    pub protobuf: bool,
    /// The message, decompressed.
    pub body: Vec<u8>,
}

/// What a message of OpenTelemetry holds.
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
    /// It is not such a message; sending it again is pointless.
    #[error("{0}")]
    Malformed(String),
    /// The ingest queue is full; the sender should retry.
    #[error("too much telemetry is waiting to be stored")]
    Busy,
    /// The database is not accepting writes; the sender should retry.
    #[error("cannot write to the database at the moment")]
    Stuck,
}

/// Which run is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunTarget {
    /// The run that hosts this session.
    Session(SessionId),
    /// The run with this id or name.
    Run(String),
}

/// A connection that left HTTP.
pub struct HostConnection(pub Box<dyn HostStream>);

impl fmt::Debug for HostConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostConnection")
    }
}

/// Bytes both ways.
pub trait HostStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> HostStream for T {}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// It cannot be done as things stand.
    #[error("{0}")]
    Conflict(String),
    /// A permission request is closed.
    #[error("{why}")]
    Decided {
        /// Why nothing can be decided.
        why: String,
        /// How it was closed.
        before: Box<DecidedBefore>,
    },
    /// A shortened id matches several things.
    #[error("{0}")]
    Ambiguous(String),
    /// A parameter of the request is not understood.
    #[error("{name}: {reason}")]
    Invalid {
        /// The parameter.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// It could not be done in the time that was given for it.
    #[error("{0}")]
    TimedOut(String),
    /// Whoever does it is busy or stopping.
    #[error("temporarily unavailable")]
    Unavailable,
    /// It could not be done in time; the text says what was done.
    #[error("{0}")]
    Busy(String),
    /// It went wrong; the text goes to the log, not to the client.
    #[error("{0}")]
    Failed(String),
}

/// Does nothing: every request is refused as unavailable.
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
