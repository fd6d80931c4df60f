//! The state a transcript decoder carries from line to line, for the session and its sub-agents.

use std::collections::VecDeque;

use crate::rewinds::PromptPlaces;
use events::Timestamp;
use serde::{Deserialize, Serialize};

/// The state a transcript decoder carries from line to line.
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
    /// Whether the writing process was started by a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) headless: Option<bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) started: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) prompted: bool,
    /// The last message whose usage was reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) counted: Option<String>,
    /// The usage reported for that message: input, output, cache read, cache write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) counted_tokens: Option<[u64; 4]>,
    /// The message of the last line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    /// Whether a line of that message had a stop reason.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) message_stop_known: bool,
    /// Number of messages with a stop reason, and number without one.
    pub(super) stops: [u32; 2],
    /// Whether the last line was a text that may be the end of its turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) may_have_ended: bool,
    /// Whether a permission was refused and the turn has not ended yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) denied: bool,
    /// Like `denied`, but only if the line that ends the turn names no interrupted message.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) likely_denied: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) questions: Vec<String>,
    /// The last slash command, until it is known whether it was a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<LastCommand>,
    /// The positions of the last prompts.
    #[serde(skip_serializing_if = "PromptPlaces::is_empty")]
    pub(super) prompts: PromptPlaces,
    /// Summaries whose last line has not been found in this file yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) summaries: Vec<PendingSummary>,
    /// The uuid of the last line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_uuid: Option<String>,
    /// The session from which the copies at the start of a fork's file come; empty once the fork's own lines have
    /// begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) copying: Option<String>,
    /// Whether the copies are marked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) branched: bool,
    /// Whether the session's own lines have begun, so that no copies follow.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) own: bool,
    /// Whether the file resumes a session as versions up to 1.0.x did: each prompt determines the session of the lines
    /// after it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) resumed: bool,
    /// When the prompt before the current copies was typed: the copies' own times are those of the copying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) copied_at: Option<Timestamp>,
    /// The session, if the file is not named after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<String>,
    /// The parent session of a sub-agent whose file is not stored below that session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<String>,
    /// Sub-agents whose lines are interleaved with those of the session, most recently active last.
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
