//! Runs: processes that `capture run` started, and their terminals.

use events::{RunId, SessionId, State, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::list::Limit;
pub use host_protocol::{
    frame::Hello,
    screen::{Explanation, GridUpdate, Picture, Scrollback, Size},
};

/// The runs: first the active ones, newest first, then those that ended recently.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunPage {
    /// The position of the log the page reflects.
    #[serde(default)]
    pub as_of: u64,
    /// The runs.
    pub runs: Vec<Run>,
    /// Continues the list; always `null`: all runs are on one page.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// What its terminal host reported about it.
    #[serde(flatten)]
    pub hello: Hello,
    /// Its state.
    pub state: RunState,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub exit_signal: Option<i32>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The session it hosts now.
    pub session_id: Option<SessionId>,
    /// Frames that its terminal host dropped while no server accepted them.
    pub frames_lost: u64,
    /// What its screen shows.
    pub screen_state: Option<State>,
}

/// The recording of a run's terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingInfo {
    /// When its first output was written.
    pub started_at: Timestamp,
    /// Playable length, ms; grows while the run is being recorded.
    pub duration_ms: u64,
    /// Whether the recording is complete.
    pub ended: bool,
    /// Length of the part dropped from its beginning to make room, ms; 0 if this is no longer known.
    pub dropped_ms: u64,
}

/// Which frames of a recording to return.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedFramesQuery {
    /// Time of the first frame, ms from the beginning; 0 by default.
    pub from_ms: Option<u64>,
    /// Number of frames; 300 by default.
    pub limit: Option<Limit>,
}

/// The screen at a time of a recording, or the rows that changed since the frame before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedFrame {
    /// The time, ms from the beginning.
    pub at_ms: u64,
    /// The screen.
    #[serde(flatten)]
    pub screen: GridUpdate,
}

/// Frames of a recording, in order, at most 30 a second. The first one is the whole screen at the requested time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedFrames {
    /// The frames.
    pub frames: Vec<RecordedFrame>,
    /// Start of the next frames, ms from the beginning; `null` at the end.
    pub next_ms: Option<u64>,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Its program is running.
    Running,
    /// Its program has ended.
    Exited,
    /// Its terminal host is not connected.
    Unreachable,
}

/// Default time for which text waits for a prompt, ms.
pub const PROMPT_WITHIN_MS: u64 = 30_000;
/// Maximum time for which text waits for a prompt, ms.
pub const MAX_PROMPT_WITHIN_MS: u64 = 3_600_000;

/// Input for a run: exactly one of `text`, `keys` and `interrupt`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Text to type once the run is at a prompt, never into a dialog or menu. A newline at its end presses Enter; text
    /// with a newline inside is sent as a paste.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Presses Enter after the text, if the screen still shows the same prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub submit: bool,
    /// Keys by name, pressed one after another, whatever the screen shows: `enter`, `esc`, `ctrl-c`, `up`, `y`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// Interrupts the program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupt: bool,
    /// Types the text at once, whatever the screen shows; it may answer a dialog.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// How long the text waits for the prompt, ms (default 30000, at most 3600000). After that, the answer is 408 and
    /// nothing is typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Input {
    /// How long the input may wait for a prompt, ms; 0 for input that does not wait.
    #[must_use]
    pub fn prompt_within_ms(&self) -> u64 {
        if self.text.is_none() || self.force {
            return 0;
        }
        self.timeout_ms.unwrap_or(PROMPT_WITHIN_MS).min(MAX_PROMPT_WITHIN_MS)
    }
}

/// Input that was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputSent {
    /// The run.
    pub run: RunId,
    /// Always true.
    pub sent: bool,
    /// The position of the log before it was typed, to pass as `after` to `GET /api/v1/sessions/{id}/wait`.
    #[serde(default)]
    pub position: u64,
    /// Whether it was typed without checking the screen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
}
