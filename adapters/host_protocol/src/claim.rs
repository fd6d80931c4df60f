//! The events that a terminal host reports about its run: claims read from the screen, input, recordings and the exit.

use events::{ApprovalKind, Confidence, Dialog, Reason, State, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An event a host reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum HostEvent {
    /// The screen, or our own agent, claims a state.
    Claim(ScreenClaim),
    /// The screen no longer claims anything.
    Withdrawn,
    /// The program asked for the user's attention (OSC 9, 99, 777).
    Notification {
        /// Its text, title and body joined by `: `.
        text: String,
    },
    /// The terminal's bell rang; several bells within a second are reported as one.
    Bell,
    /// A key answered a dialog.
    Answered {
        /// The meaning of the key: `Yes`, `esc`.
        meaning: String,
    },
    /// A prompt was typed and submitted, judged by keys and screen.
    Prompt {
        /// The typed text.
        text: String,
    },
    /// Lines became visible that were not on the screen before.
    Text {
        /// The lines.
        text: String,
    },
    /// The program is still writing.
    Alive,
    /// The program ended.
    Exited {
        /// Its exit code.
        #[serde(default)]
        code: Option<i32>,
        /// The signal that ended it.
        #[serde(default)]
        signal: Option<i32>,
    },
    /// The user switched a session of our own agent to a mode.
    ModeGranted {
        /// The mode.
        mode: String,
        /// The user who switched it, as text.
        by: String,
    },
    /// Our own agent decided about a call in process: the policy denied it, or a mode that the user granted allows it.
    CallDecided(Box<CallDecided>),
    /// Our own agent allowed plain reads of the workspace in process. There are too many to report each.
    ReadsAllowed {
        /// The rule.
        #[serde(default)]
        rule: Option<String>,
        /// Number of reads.
        count: u64,
        /// Time of the first read; the last one was before the frame.
        since: Timestamp,
    },
    /// Frames were dropped because the server was unreachable for too long.
    Gap {
        /// How many frames were dropped.
        frames: u64,
    },
    /// An event of a later version of the protocol.
    #[serde(other)]
    Unknown,
}

/// A decision of our own agent that it made without asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallDecided {
    /// The model's id of the call.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// The kind of the call.
    #[serde(default)]
    pub about: Option<ApprovalKind>,
    /// The subject of the call: the command, the file, the address.
    #[serde(default)]
    pub subject: Option<String>,
    /// The directory in which the call would run.
    pub cwd: String,
    /// Whether the call was allowed.
    pub allowed: bool,
    /// The mode that allowed it; `None` if the policy alone decided.
    #[serde(default)]
    pub mode: Option<String>,
    /// The rule that decided.
    #[serde(default)]
    pub rule: Option<String>,
    /// The reason, in one sentence.
    #[serde(default)]
    pub reason: Option<String>,
}

/// A claim read from a screen, or made by our own agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScreenClaim {
    /// The state.
    pub state: State,
    /// Why.
    #[serde(default)]
    pub reason: Option<Reason>,
    /// The confidence in the claim.
    pub strength: Confidence,
    /// The rule, what it matched and in which region, for people:
    /// `claude/permission: "Do you want to proceed?" in bottom`.
    pub words: String,
    /// The dialog, if there is one.
    #[serde(default)]
    pub dialog: Option<Box<Dialog>>,
}

/// Whether text may be typed into a run, judged by its current screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "gate", rename_all = "snake_case")]
pub enum TypingGate {
    /// The text reaches a prompt, or a program whose screen no rule reads.
    Open,
    /// A dialog or a menu is open that the text could answer.
    Choice {
        /// The content of the screen, as text for the user.
        shows: String,
    },
    /// There is no prompt now, but there may be one later.
    Busy {
        /// The content of the screen, as text for the user.
        shows: String,
    },
}
