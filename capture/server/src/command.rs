//! What the server cannot answer itself: it asks capture, over a bounded channel.

use std::{collections::BTreeMap, fmt, net::SocketAddr};

use events::{ApprovalState, RunId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::oneshot,
};

use crate::Peer;

/// A request to the program around the server.
#[derive(Debug)]
pub enum Command {
    /// Turns the capture of a session on or off.
    SetCapture {
        /// Which session.
        session: SessionId,
        /// On or off.
        enabled: bool,
        /// Takes the answer. Dropped without one: the client is told 503.
        reply: oneshot::Sender<Result<(), Refusal>>,
    },
    /// Labels a session.
    Label {
        /// Which session.
        session: SessionId,
        /// The labels; without a value, one is taken off.
        labels: BTreeMap<String, Option<String>>,
        /// Takes the answer.
        reply: oneshot::Sender<Result<(), Refusal>>,
    },
    /// The host of a run connected: the rest of the conversation is capture's.
    Host {
        /// The connection, after its upgrade.
        connection: HostConnection,
        /// The process at the other end.
        peer: Peer,
    },
    /// A hook put a delivery in the spool.
    Delivery {
        /// Which.
        id: RunId,
        /// Takes the answer: it is under way.
        reply: oneshot::Sender<Result<(), Refusal>>,
    },
    /// A hook waits for the decision on what it delivered.
    Hold {
        /// The delivery.
        delivery: RunId,
        /// Waits for a person too; else only for what a rule says.
        people: bool,
        /// The BLAKE3 hash of what the hook was called with: what is decided is decided for that.
        digest: String,
        /// The delivery itself, when nothing else tells of the request.
        whole: Option<Box<RawValue>>,
        /// Takes the answer, JSON for the hook; `None` when the agent is to ask its user itself.
        /// Dropped by the client when it waits no longer.
        reply: oneshot::Sender<Option<String>>,
    },
    /// Asks something about approvals.
    Approvals {
        /// What.
        ask: ApprovalAsk,
        /// Takes the answer, JSON.
        reply: oneshot::Sender<Result<String, Refusal>>,
    },
    /// Asks something about findings.
    Findings {
        /// What.
        ask: FindingAsk,
        /// Takes the answer, JSON.
        reply: oneshot::Sender<Result<String, Refusal>>,
    },
    /// Asks something about prompts that wait.
    Prompts {
        /// What.
        ask: PromptAsk,
        /// Takes the answer, JSON.
        reply: oneshot::Sender<Result<String, Refusal>>,
    },
    /// Sends a message over a channel, to try it.
    TestChannel {
        /// The channel, as the configuration names it.
        channel: String,
        /// Takes the receipt, JSON.
        reply: oneshot::Sender<Result<String, Refusal>>,
    },
    /// Asks for the runs that are known, as JSON.
    Runs {
        /// Takes the answer.
        reply: oneshot::Sender<Result<String, Refusal>>,
    },
    /// Asks something of a run.
    Run {
        /// Which: a session that is hosted by one, or a run by its id or name.
        target: RunTarget,
        /// What.
        ask: RunAsk,
        /// Takes the answer, JSON.
        reply: oneshot::Sender<Result<String, Refusal>>,
    },
    /// An agent told of itself over OpenTelemetry.
    Telemetry {
        /// What.
        message: Telemetry,
        /// Takes the answer in the encoding of the message, once what was told is stored.
        reply: oneshot::Sender<Result<Vec<u8>, TelemetryRefusal>>,
    },
}

/// What can be asked about findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingAsk {
    /// Somebody knows of this one.
    Acknowledge(String),
}

/// What can be asked about prompts that wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptAsk {
    /// Put one in a session's queue.
    Queue {
        /// Which session.
        session: SessionId,
        /// The prompt.
        text: String,
    },
    /// Take this one back.
    Cancel(String),
}

/// What can be asked about approvals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalAsk {
    /// Which there are, the newest first.
    List {
        /// Only those that stand like this.
        state: Option<ApprovalState>,
        /// Only those of this session.
        session: Option<SessionId>,
        /// At most so many.
        limit: usize,
    },
    /// One, by its id or the beginning of it.
    One(String),
    /// To decide one.
    Decide(String, Box<Decision>),
}

/// A person's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Which way.
    pub verdict: Verdict,
    /// What the agent is told when it is denied.
    pub message: Option<String>,
    /// For how much.
    pub scope: DecisionScope,
    /// The answers to questions, by question.
    pub answers: Option<BTreeMap<String, String>>,
    /// Who decided.
    pub who: Who,
}

/// Which way a person decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// How much a decision is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionScope {
    /// This request.
    #[default]
    Once,
    /// The same request again in the same session, while the server runs.
    Session,
}

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
}

/// A message of OpenTelemetry.
#[derive(Debug)]
pub struct Telemetry {
    /// What it holds.
    pub kind: TelemetryKind,
    /// Whether it is protobuf; else it is JSON.
    pub protobuf: bool,
    /// The message, inflated.
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

/// Why telemetry was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TelemetryRefusal {
    /// It is no such message; sending it again helps nobody.
    #[error("{0}")]
    Malformed(String),
    /// There is too much to do; it is to be sent again.
    #[error("too much is to be stored at the moment")]
    Busy,
    /// Nothing can be stored; it is to be sent again.
    #[error("nothing can be stored at the moment")]
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

/// What can be asked of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunAsk {
    /// What is known of it.
    Describe,
    /// Its screen.
    Screen,
    /// How its screen is read.
    Explain,
    /// Type into it.
    Input(Input),
}

/// Input for a run: `{"text"}`, `{"keys"}` or `{"interrupt": true}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Typed as it is; a newline at its end presses Enter, one within it makes it a paste.
    #[serde(default)]
    pub text: Option<String>,
    /// Presses Enter after the text.
    #[serde(default)]
    pub submit: bool,
    /// Keys by name, pressed one after another: `enter`, `esc`, `ctrl-c`, `up`, `y`.
    #[serde(default)]
    pub keys: Option<Vec<String>>,
    /// Interrupts what the program does.
    #[serde(default)]
    pub interrupt: bool,
    /// Types the text even while a dialog is open, where it may answer it.
    #[serde(default)]
    pub force: bool,
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

/// Why a command was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// It cannot be done as things stand.
    #[error("{0}")]
    Conflict(String),
    /// It went wrong; the text goes to the log, not to the client.
    #[error("{0}")]
    Failed(String),
}
