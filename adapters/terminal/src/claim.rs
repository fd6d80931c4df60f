//! The events a terminal host reports of its run: claims read from the screen, input, recordings and the exit.

use events::{Confidence, Dialog, Reason, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An event a host reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum HostEvent {
    /// The screen claims a state.
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
    /// Frames were dropped because the server was unreachable for too long.
    Gap {
        /// How many frames were dropped.
        frames: u64,
    },
    /// An event of a later version.
    #[serde(other)]
    Unknown,
}

/// A claim read from a screen.
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
