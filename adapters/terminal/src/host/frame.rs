//! The protocol between a terminal host and the server: lines of JSON over the Unix socket, after an HTTP upgrade to
//! [`PROTOCOL`].
//!
//! The host says [`HostMessage::Hello`] first, then numbered frames; the server acknowledges a frame after
//! its commit, and the host keeps it until then. A frame may be delivered twice (the
//! acknowledgement was lost); its number makes it one. Unknown fields are ignored on both sides,
//! an unknown kind of frame is acknowledged and counted, an unknown request is
//! refused: hosts outlive servers and the other way
//! round, so both may be of another version.

use events::{Provider, RunId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::claim::{HostEvent, ScreenClaim};

/// Name and version of the protocol, as the `Upgrade` header says it.
pub const PROTOCOL: &str = "capture-host/1";

/// A message from the host to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HostMessage {
    /// The host's description; the first line of a connection, sent again when it changes.
    Hello(Box<Hello>),
    /// Something happened.
    Frame(HostFrame),
    /// The answer to [`ServerMessage::Ask`].
    Answer {
        /// The number of the request.
        id: u64,
        /// The answer, or why there is none.
        answer: Result<serde_json::Value, String>,
    },
}

/// A message from the server to the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// All frames up to this number are stored.
    Ack {
        /// The number.
        n: u64,
    },
    /// A request to the host.
    Ask {
        /// The number of the request.
        id: u64,
        /// What.
        ask: HostRequest,
    },
}

/// A request the server makes of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum HostRequest {
    /// The current screen: a [`Picture`](crate::screen::Picture).
    Screen,
    /// Which rule matched and why the others did not: an
    /// [`Explanation`](crate::screen::Explanation).
    Explain,
    /// Type these bytes into the terminal.
    Type {
        /// What, as text.
        text: String,
        /// As one paste, where the program takes pastes, so that a newline in it submits nothing.
        #[serde(default)]
        paste: bool,
    },
    /// Press these keys, by name: `enter`, `esc`, `ctrl-c`, `up`, `y`.
    Keys {
        /// One after another.
        keys: Vec<String>,
    },
    /// Type a prompt, if the program waits for one: its screen says so, nothing on it asks for an
    /// answer, and nobody types.
    Prompt {
        /// The prompt; an empty one only asks whether one would be typed.
        text: String,
    },
    /// Press Enter after the prompt, under the same conditions.
    Submit,
    /// Whether somebody is at its terminal: a [`Presence`].
    Presence,
    /// Write these bytes to the attached terminals: a notification, a bell.
    Announce {
        /// What, escape sequences included.
        bytes: String,
    },
    /// Interrupt the program by its own key.
    Interrupt,
    /// Answer a dialog by keys, if it still stands: an [`Answered`]. An error means that nothing was
    /// typed. Never done twice: who gets no reply does not know whether it was done, and looks.
    Answer {
        /// Which dialog: [`Dialog::mark`](events::Dialog::mark).
        mark: String,
        /// How.
        answer: DialogAnswer,
    },
}

/// Whether somebody is at the terminal of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Presence {
    /// Whether a terminal that may type is attached.
    pub attached: bool,
    /// Whether that terminal says that it has the focus; absent when it never said (mode 1004 of xterm).
    #[serde(default)]
    pub focused: Option<bool>,
    /// When a key was pressed last, ms ago.
    #[serde(default)]
    pub typed_ms: Option<u64>,
}

/// How a dialog can be answered by keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DialogAnswer {
    /// What it asks for is allowed, this time.
    AllowOnce,
    /// It is refused. Of the agents we know this ends the turn.
    Deny,
}

/// The outcome of an answer of which at least one key was typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// Whether the key that answers was typed and the dialog went away within 2 s.
    pub applied: bool,
    /// Keys that were typed.
    pub keys: u32,
    /// The mark of the dialog.
    pub before: String,
    /// What the screen claims afterwards.
    pub after: Option<Box<ScreenClaim>>,
    /// Why the key that answers was not typed after others were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A run and its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RunDescription")]
pub struct Hello {
    /// The run.
    pub run: RunId,
    /// The name its user gave it.
    #[serde(default)]
    pub name: Option<String>,
    /// The command, word by word.
    pub command: Vec<String>,
    /// The agent, when it is one we know.
    pub provider: Provider,
    /// Its version, as its screen says it.
    #[serde(default)]
    pub version: Option<String>,
    /// Working directory at the start.
    pub cwd: String,
    /// Process id of the program.
    pub pid: u32,
    /// Its start in clock ticks since boot.
    pub start_ticks: u64,
    /// Process id of the host.
    pub host_pid: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// Whether it has a terminal of ours; without, its output went where it would have gone anyway.
    pub terminal: bool,
    /// Rows and columns of its screen.
    #[serde(default)]
    pub size: Option<(u16, u16)>,
    /// The socket at which one attaches to it.
    #[serde(default)]
    pub socket: Option<String>,
    /// The file its output is recorded in.
    #[serde(default)]
    pub recording: Option<String>,
    /// Whether this host knows [`HostRequest::Answer`]; older ones do not even refuse it.
    #[serde(default)]
    pub answers: bool,
    /// The agent's own id of the session, from a host that runs the session itself: our own agent, which says what it
    /// does, and has no screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostFrame {
    /// Counts from 1 within the run, without gaps but those a [`HostEvent::Gap`] tells of.
    pub n: u64,
    /// When, by the host's clock.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub event: HostEvent,
}
