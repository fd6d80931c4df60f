//! The events a terminal host reports of its run: claims read from the screen, input, recordings and the exit.

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
    /// The terminal's bell rang; several within a second are one.
    Bell,
    /// A key answered a dialog.
    Answered {
        /// What it meant: `Yes`, `esc`.
        meaning: String,
    },
    /// A prompt was typed and submitted, as far as keys and screen tell.
    Prompt {
        /// What was typed.
        text: String,
    },
    /// Lines came to be visible that were not on the screen before.
    Text {
        /// The lines.
        text: String,
    },
    /// The program goes on writing.
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
    /// A person put the session into a mode, of our own agent.
    ModeGranted {
        /// The mode.
        mode: String,
        /// Who, in words.
        by: String,
    },
    /// Our own agent decided about a call in process: the policy denied it, or a mode that a person granted allows it.
    CallDecided(Box<CallDecided>),
    /// Our own agent allowed plain reads of the workspace in process. They are too many to be told one by one.
    ReadsAllowed {
        /// The rule.
        #[serde(default)]
        rule: Option<String>,
        /// How many.
        count: u64,
        /// The first of them; the last was before the frame.
        since: Timestamp,
    },
    /// Frames were dropped because the server was unreachable for too long.
    Gap {
        /// How many frames were dropped.
        frames: u64,
    },
    /// An event of a later version.
    #[serde(other)]
    Unknown,
}

/// A decision of our own agent that nobody was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallDecided {
    /// The model's id of the call.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// What it would do.
    #[serde(default)]
    pub about: Option<ApprovalKind>,
    /// What it would do it with: the command, the file, the address.
    #[serde(default)]
    pub subject: Option<String>,
    /// The directory in which it would run.
    pub cwd: String,
    /// Whether it was allowed.
    pub allowed: bool,
    /// The mode that allows it; the policy decided without one.
    #[serde(default)]
    pub mode: Option<String>,
    /// The rule.
    #[serde(default)]
    pub rule: Option<String>,
    /// Why, in one sentence.
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
    /// The dialog, when there is one.
    #[serde(default)]
    pub dialog: Option<Box<Dialog>>,
}

/// Whether text may be typed into a run as its screen stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "gate", rename_all = "snake_case")]
pub enum TypingGate {
    /// It reaches a prompt, or a program whose screen no rule reads.
    Open,
    /// A dialog or a menu is open that the text could answer.
    Choice {
        /// What the screen shows, for a person.
        shows: String,
    },
    /// There is no prompt now; there may be one later.
    Busy {
        /// As for a choice.
        shows: String,
    },
}
