//! What is remembered of a transcript between two reads.

use crate::rewinds::PromptPlaces;
use events::Timestamp;
use serde::{Deserialize, Serialize};

/// What a decoder carries from line to line.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PiState {
    /// The header's id.
    pub(super) session: Option<String>,
    /// The header's moment, when the session is a fork: older entries are copies.
    pub(super) began: Option<Timestamp>,
    /// The session it is a fork of.
    pub(super) parent: Option<String>,
    /// When the session it is a fork of began.
    pub(super) parent_began: Option<Timestamp>,
    /// A title that was read before the header.
    pub(super) title: Option<String>,
    /// The id of the last entry.
    pub(super) last: Option<String>,
    /// The id of the entry that the next one is expected to follow: the last one, unless the leaf was moved.
    pub(super) leaf: Option<String>,
    /// Whether there was an entry.
    pub(super) begun: bool,
    /// Where the last line ended.
    pub(super) end: u64,
    /// The model has called tools and not been asked for anything else since.
    pub(super) working: bool,
    /// Answers in a row that failed.
    pub(super) failures: u32,
    /// Where the last prompts stand.
    #[serde(default, skip_serializing_if = "PromptPlaces::is_empty")]
    pub(super) prompts: PromptPlaces,
}
