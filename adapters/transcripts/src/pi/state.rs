//! The state for a transcript between two reads.

use crate::rewinds::PromptPlaces;
use events::Timestamp;
use serde::{Deserialize, Serialize};

/// The state that a decoder carries from line to line.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PiState {
    /// The header's id.
    pub(super) session: Option<String>,
    /// The header's time, if the session is a fork: older entries are copies.
    pub(super) began: Option<Timestamp>,
    /// The session it was forked from.
    pub(super) parent: Option<String>,
    /// When the session it was forked from began.
    pub(super) parent_began: Option<Timestamp>,
    /// A title that was read before the header.
    pub(super) title: Option<String>,
    /// The id of the last entry.
    pub(super) last: Option<String>,
    /// The id of the entry that the next one should follow: the last one, unless the leaf was moved.
    pub(super) leaf: Option<String>,
    /// Whether there was an entry.
    pub(super) begun: bool,
    /// The offset at which the last line ended.
    pub(super) end: u64,
    /// Whether the model has called tools and received no new prompt since.
    pub(super) working: bool,
    /// Number of consecutive failed answers.
    pub(super) failures: u32,
    /// The positions of the last prompts.
    #[serde(default, skip_serializing_if = "PromptPlaces::is_empty")]
    pub(super) prompts: PromptPlaces,
}
