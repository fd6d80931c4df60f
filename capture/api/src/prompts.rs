//! Queued prompts, and test messages for notification channels.

use events::{MessageId, QueuedState, Timestamp};
use projections::Prompt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::list::Limit;

/// Which queued prompts to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PromptsQuery {
    /// Only prompts in this state.
    pub state: Option<QueuedState>,
    /// Only prompts of this session. Any of its ids is accepted.
    pub session: Option<String>,
    /// The `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Prompts on a page (default 100, at most 1000).
    pub limit: Option<Limit>,
}

/// A page of queued prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptPage {
    /// The position of the log the page reflects.
    #[serde(default)]
    pub as_of: u64,
    /// The prompts.
    pub prompts: Vec<Prompt>,
    /// Continues the list; `null` on the last page.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// A prompt to queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptRequest {
    /// The prompt: 1 to 65,536 bytes, without control characters other than newlines and tabs.
    pub text: String,
}

/// A notification channel to test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChannelTest {
    /// The channel's name in the configuration.
    pub channel: String,
}

/// The outcome of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// The message.
    pub message_id: MessageId,
    /// The findings and approvals it was about.
    pub causes: Vec<String>,
    /// The channel.
    pub channel: String,
    /// When the outcome was known.
    pub at: Timestamp,
    /// `sent`, `failed` or `dropped`.
    pub outcome: String,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How many attempts were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Why no attempt was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}
