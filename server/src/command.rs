//! What the server cannot answer itself: it asks capture, over a bounded channel.

use std::fmt;

use events::{RunId, SessionId};
use schemars::JsonSchema;
use serde::Deserialize;
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
