//! What the decoder of a transcript carries from line to line, for the session and its sub-agents.

use std::collections::VecDeque;

use crate::rewinds::PromptPlaces;
use events::Timestamp;
use serde::{Deserialize, Serialize};

/// What a transcript's decoder carries from line to line.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ClaudeState {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// Whether the process that writes is a program's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) headless: Option<bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) started: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) prompted: bool,
    /// The last message whose usage was reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) counted: Option<String>,
    /// The usage reported for it: input, output, cache read, cache write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) counted_tokens: Option<[u64; 4]>,
    /// The message the last line was of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    /// Whether a line of it said why the model stopped.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) message_stop_known: bool,
    /// Messages that said why the model stopped, and messages that never did.
    pub(super) stops: [u32; 2],
    /// The last line was a text that may be the end of its turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) may_have_ended: bool,
    /// A permission was refused and the turn's end has not been seen yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) denied: bool,
    /// The same, if the line that ends the turn names no message that was stopped.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) likely_denied: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) questions: Vec<String>,
    /// The last slash command, until it is known whether it was a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<LastCommand>,
    /// Where the last prompts stand.
    #[serde(skip_serializing_if = "PromptPlaces::is_empty")]
    pub(super) prompts: PromptPlaces,
    /// Summaries whose last line was not seen yet in this file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) summaries: Vec<PendingSummary>,
    /// The uuid of the last line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_uuid: Option<String>,
    /// The session the copies at the start of a fork's file come from; empty once its own lines
    /// have begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) copying: Option<String>,
    /// Whether the copies are marked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) branched: bool,
    /// Whether its own lines have begun: no copies follow.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) own: bool,
    /// The file resumes a session as versions up to 1.0.x did: each prompt says whose the lines behind it are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) resumed: bool,
    /// When the prompt that the present copies follow was typed: their own times are those of the copying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) copied_at: Option<Timestamp>,
    /// The session, when the file is not named after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<String>,
    /// The session whose sub-agent wrote a file that does not stand below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<String>,
    /// Sub-agents whose lines stand between those of the session, the last at work last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) sidechains: Vec<Sidechain>,
}

/// A slash command that was typed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct LastCommand {
    /// The uuid of its line, or of its output.
    pub(super) uuid: String,
    /// The command with its arguments.
    pub(super) command: String,
}

/// A summary of the conversation that ends with a line.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct PendingSummary {
    /// The uuid of the line.
    pub(super) leaf: String,
    /// The summary.
    pub(super) title: String,
}

/// A sub-agent inside a session's file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Sidechain {
    /// The uuid of its first line.
    pub(super) id: String,
    /// The uuids of its last lines.
    pub(super) last: VecDeque<String>,
    pub(super) state: ClaudeState,
}
