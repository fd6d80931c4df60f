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

use crate::{
    claim::{HostEvent, ScreenClaim, TypingGate},
    screen::Size,
};

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum HostRequest {
    /// The current screen: a [`Picture`](crate::screen::Picture).
    Screen,
    /// What changed of the screen since a revision, as soon as something has: a
    /// [`GridUpdate`](crate::screen::GridUpdate). From 0 everything did.
    Grid {
        /// The revision that is known.
        since: u64,
        /// Answer after this time though nothing has changed, ms.
        wait_ms: u32,
    },
    /// Lines that scrolled off the screen: a [`Scrollback`](crate::screen::Scrollback).
    Scrollback {
        /// Before the line with this number.
        before: u64,
        /// At most this many.
        count: u32,
    },
    /// Give the terminal another size, or, without one, that of the terminal that types.
    Resize {
        /// The size.
        size: Option<Size>,
    },
    /// Which rule matched and why the others did not: an
    /// [`Explanation`](crate::screen::Explanation).
    Explain,
    /// Type these bytes into the terminal, whatever its screen shows.
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
    /// Whether text may be typed into it as its screen stands: a [`TypingGate`].
    Gate,
    /// Type a text if it may be typed and nobody else is typing, and press Enter if it is still the same prompt then: a
    /// [`PromptTyping`]. An error means that nothing was typed.
    Prompt {
        /// The text.
        text: String,
        /// Whether to press Enter after it.
        submit: bool,
    },
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
    /// Do something with the session, of a host that runs it itself: a [`CommandOutcome`]. An error means that nothing
    /// was done.
    Session {
        /// What.
        command: SessionCommand,
        /// Who wants it.
        by: CommandOrigin,
    },
}

/// What can be done with a session that a host runs itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum SessionCommand {
    /// Begin a turn; refused while one is running.
    Prompt {
        /// The prompt.
        text: String,
    },
    /// A message for the running turn, at the next boundary between tools and requests.
    Steer {
        /// The message.
        text: String,
    },
    /// A message for after the turn.
    FollowUp {
        /// The message.
        text: String,
    },
    /// End the turn now.
    Abort,
    /// Stop at the next boundary.
    Pause,
    /// Go on after a pause.
    Resume,
    /// Compact the context.
    Compact,
    /// Use another model, from the next request on.
    SetModel {
        /// The model, as `PROVIDER/MODEL`.
        model: String,
    },
    /// Set other limits; they take the place of those before.
    Limit {
        /// The limits.
        limits: SessionLimits,
    },
    /// End the session's process.
    End,
}

impl SessionCommand {
    /// The names of all.
    pub const NAMES: [&str; 10] =
        ["prompt", "steer", "follow_up", "abort", "pause", "resume", "compact", "set_model", "limit", "end"];

    /// Its name, as it is written.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Prompt { .. } => "prompt",
            Self::Steer { .. } => "steer",
            Self::FollowUp { .. } => "follow_up",
            Self::Abort => "abort",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Compact => "compact",
            Self::SetModel { .. } => "set_model",
            Self::Limit { .. } => "limit",
            Self::End => "end",
        }
    }
}

/// How much a session may spend. What is absent has no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionLimits {
    /// Tokens in and out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Costs, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Time in turns, in minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u32>,
    /// Tool calls that were started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
}

/// Who wants something of a session. The server says it; nothing that a client sends does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum CommandOrigin {
    /// A person, or a program that acts for one.
    Person,
    /// A rule of the user, because of a finding.
    Monitor {
        /// The finding's id.
        finding: String,
    },
}

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandOutcome {
    /// What.
    pub outcome: OutcomeKind,
    /// The id of the message, by which the session's file names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The entry of the session's file that the message is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
}

/// The outcomes of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// The message is part of the conversation.
    Landed,
    /// The message waits for its moment.
    Queued,
    /// It was done, or will be at the next boundary.
    Done,
}

/// The outcome of typing a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum PromptTyping {
    /// Nothing was typed.
    Refused {
        /// What the screen said.
        gate: TypingGate,
    },
    /// It was typed, and submitted if that was wanted.
    Typed,
    /// It was typed, but Enter was not pressed, or had no visible effect.
    NotSubmitted {
        /// Why.
        why: String,
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
    /// The commands ([`SessionCommand::name`]) that this host takes for its session; none from a host with a terminal,
    /// into which one types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes: Vec<String>,
    /// Whether this host knows [`HostRequest::Grid`], and what goes with it.
    #[serde(default)]
    pub draws: bool,
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
