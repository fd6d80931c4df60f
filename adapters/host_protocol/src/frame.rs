//! The protocol between a terminal host and the server: lines of JSON over the Unix socket, after an HTTP upgrade to
//! [`PROTOCOL`].
//!
//! The host sends [`HostMessage::Hello`] first, then numbered frames. The server acknowledges a frame after its commit;
//! until then the host keeps it. If an acknowledgement is lost, a frame is delivered twice, and the server recognizes
//! it by its number. A host may be older or newer than the server, so both sides ignore unknown fields, acknowledge and
//! count unknown frames, and refuse unknown requests.

use events::{Provider, RunId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    claim::{HostEvent, ScreenClaim, TypingGate},
    screen::Size,
};

/// Name and version of the protocol, as in the `Upgrade` header.
pub const PROTOCOL: &str = "capture-host/1";

/// A message from the host to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HostMessage {
    /// The host's description; the first line of a connection, sent again when it changes.
    Hello(Box<Hello>),
    /// An event of the run.
    Frame(HostFrame),
    /// The answer to [`ServerMessage::Ask`].
    Answer {
        /// The number of the request.
        id: u64,
        /// The answer, or the reason why there is none.
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
        /// The request.
        ask: HostRequest,
    },
}

/// A request of the server to a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum HostRequest {
    /// The current screen: a [`Picture`](crate::screen::Picture).
    Screen,
    /// The changes of the screen since a revision, sent as soon as there are any: a
    /// [`GridUpdate`](crate::screen::GridUpdate). Revision 0 requests the whole screen.
    Grid {
        /// The last revision that the server has.
        since: u64,
        /// Longest wait before an answer without changes, ms.
        wait_ms: u32,
    },
    /// Lines that scrolled off the screen: a [`Scrollback`](crate::screen::Scrollback).
    Scrollback {
        /// Return lines before the line with this number.
        before: u64,
        /// Maximum number of lines.
        count: u32,
    },
    /// Resizes the terminal. Without a size, it follows the attached terminal that has control.
    Resize {
        /// The requested size.
        size: Option<Size>,
    },
    /// Which rule matched, and why the others did not: an [`Explanation`](crate::screen::Explanation).
    Explain,
    /// Types these bytes into the terminal, regardless of its screen.
    Type {
        /// The bytes, as text.
        text: String,
        /// Whether to send the text as one paste if the program supports pastes, so that a newline does not submit it.
        #[serde(default)]
        paste: bool,
    },
    /// Presses these keys, by name: `enter`, `esc`, `ctrl-c`, `up`, `y`.
    Keys {
        /// The keys, in order.
        keys: Vec<String>,
    },
    /// Whether text may be typed, judged by the current screen: a [`TypingGate`].
    Gate,
    /// Types a text if typing is allowed and no user is typing, and presses Enter if the prompt is still the same: a
    /// [`PromptTyping`]. An error means that nothing was typed.
    Prompt {
        /// The text.
        text: String,
        /// Whether to press Enter after the text.
        submit: bool,
    },
    /// Whether a user is at the terminal of the run: a [`Presence`].
    Presence,
    /// Writes these bytes to the attached terminals: a notification, a bell.
    Announce {
        /// The bytes, escape sequences included.
        bytes: String,
    },
    /// Interrupts the program with its interrupt key.
    Interrupt,
    /// Answers a dialog by keys, if it is still open: an [`Answered`]. An error means that nothing was typed. The
    /// server never repeats this request: without a reply it cannot know whether the keys were typed, and reads the
    /// screen instead.
    Answer {
        /// Identifies the dialog: [`Dialog::mark`](events::Dialog::mark).
        mark: String,
        /// The answer.
        answer: DialogAnswer,
    },
    /// Sends a command to a session whose agent runs in the host: a [`CommandOutcome`]. An error means that nothing was
    /// done.
    Session {
        /// The command.
        command: SessionCommand,
        /// The origin of the command.
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
    /// Continue after a pause.
    Resume,
    /// Compact the context.
    Compact,
    /// Use another model, from the next request on.
    SetModel {
        /// The model, as `PROVIDER/MODEL`.
        model: String,
    },
    /// Set other limits, which replace the earlier ones.
    Limit {
        /// The limits.
        limits: SessionLimits,
    },
    /// End the session's process.
    End,
}

impl SessionCommand {
    /// The names of all commands.
    pub const NAMES: [&str; 10] =
        ["prompt", "steer", "follow_up", "abort", "pause", "resume", "compact", "set_model", "limit", "end"];

    /// The name of the command, as it is written.
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

/// The limits of a session. An absent field means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionLimits {
    /// Input and output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Costs, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Time spent in turns, minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u32>,
    /// Tool calls that were started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
}

/// The origin of a command to a session. The server sets it; clients cannot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum CommandOrigin {
    /// The user, or a program that acts for the user.
    Person,
    /// A rule of the user, triggered by a finding.
    Monitor {
        /// The finding's id.
        finding: String,
    },
}

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandOutcome {
    /// The kind of outcome.
    pub outcome: OutcomeKind,
    /// The id of the message in the session's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The entry of the session's file that contains the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
}

/// The outcomes of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// The message is part of the conversation.
    Landed,
    /// The message waits until it can be delivered.
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
        /// The state of the screen.
        gate: TypingGate,
    },
    /// The text was typed, and submitted if requested.
    Typed,
    /// The text was typed, but Enter was not pressed, or had no visible effect.
    NotSubmitted {
        /// The reason.
        why: String,
    },
}

/// Whether a user is at the terminal of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Presence {
    /// Whether a terminal that may type is attached.
    pub attached: bool,
    /// Whether that terminal reports that it has the focus; absent if it never reported it (mode 1004 of xterm).
    #[serde(default)]
    pub focused: Option<bool>,
    /// Time since the last key press, ms.
    #[serde(default)]
    pub typed_ms: Option<u64>,
}

/// How a dialog can be answered by keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DialogAnswer {
    /// Allows the request once.
    AllowOnce,
    /// Refuses the request. For all known agents this ends the turn.
    Deny,
}

/// The outcome of an answer for which at least one key was typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// Whether the deciding key was typed and the dialog disappeared within 2 s.
    pub applied: bool,
    /// Number of keys typed.
    pub keys: u32,
    /// The mark of the dialog.
    pub before: String,
    /// The claim of the screen afterwards.
    pub after: Option<Box<ScreenClaim>>,
    /// Why the deciding key was not typed after earlier keys were.
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
    /// The agent, if capture knows it.
    pub provider: Provider,
    /// Its version, as shown on its screen.
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
    /// Whether it runs in a terminal of capture. Otherwise its output goes where it would go without capture.
    pub terminal: bool,
    /// Rows and columns of its screen.
    #[serde(default)]
    pub size: Option<(u16, u16)>,
    /// The socket for attaching to it.
    #[serde(default)]
    pub socket: Option<String>,
    /// The file its output is recorded in.
    #[serde(default)]
    pub recording: Option<String>,
    /// Whether this host supports [`HostRequest::Answer`]; older hosts do not even refuse it.
    #[serde(default)]
    pub answers: bool,
    /// The agent's own id of the session, from a host that runs the session itself. This is our own agent, which
    /// reports its work and has no screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The commands ([`SessionCommand::name`]) that this host accepts for its session; none from a host with a
    /// terminal, which accepts typed input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes: Vec<String>,
    /// Whether this host supports [`HostRequest::Grid`] and the related requests.
    #[serde(default)]
    pub draws: bool,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostFrame {
    /// The number within the run, starting at 1. Gaps occur only where a [`HostEvent::Gap`] reports them.
    pub n: u64,
    /// The time, by the host's clock.
    pub at: Timestamp,
    /// The event.
    #[serde(flatten)]
    pub event: HostEvent,
}
