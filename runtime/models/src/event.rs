//! What an answer consists of, in the same words for every API.

use session_tree::Object;

use crate::{Failure, Usage};

/// Something that came with an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// The answer began.
    Began {
        /// The model that answers, when it was named.
        model: Option<String>,
        /// The vendor's id of the answer.
        id: Option<String>,
    },
    /// More text.
    Text(String),
    /// More of what the model thinks aloud.
    Thinking(String),
    /// The model begins to call a tool.
    ToolOpened {
        /// The call's place in the content of the message.
        block: usize,
        /// The id by which the result names it.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of a call's input: JSON text.
    ToolInput {
        /// The call's place in the content of the message.
        block: usize,
        /// The text.
        text: String,
    },
    /// A block is complete. Blocks come in the order of the message's content, each once.
    ///
    /// It has pi's form (pi-ai 0.87.1, `AssistantMessage`): `text`, `thinking` or `toolCall`. What its fields do not
    /// say stands in further ones: `raw`, the JSON text to send back instead of it; `argumentsText`, a call's input as
    /// it was received; `malformed`, a call's input that is not a JSON object (its `arguments` are then empty). A block
    /// that is not known here has the type `opaque` and only `raw`.
    Block(Object),
    /// Tokens so far. Each replaces the one before.
    Usage(Usage),
    /// The answer is complete. Nothing follows.
    Ended(EndReason),
    /// The answer failed. Nothing follows.
    Failed(Failure),
}

impl StreamEvent {
    /// Whether this is the model's own word: text, thinking, a call or a block.
    #[must_use]
    pub fn is_output(&self) -> bool {
        match self {
            Self::Text(_) | Self::Thinking(_) | Self::ToolOpened { .. } | Self::ToolInput { .. } | Self::Block(_) => {
                true
            }
            Self::Began { .. } | Self::Usage(_) | Self::Ended(_) | Self::Failed(_) => false,
        }
    }

    /// Whether nothing follows.
    #[must_use]
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Ended(_) | Self::Failed(_))
    }
}

/// Why an answer that is complete ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndReason {
    /// The model was done.
    Stop,
    /// It calls tools and waits for their results.
    ToolUse,
    /// It reached the limit of tokens.
    Length,
    /// A reason not known here, as the vendor named it. The answer counts like [`EndReason::Stop`].
    Other(String),
}

impl EndReason {
    /// `stopReason` of a stored message (pi-ai 0.87.1, `StopReason`).
    #[must_use]
    pub fn stop_reason(&self) -> &'static str {
        match self {
            Self::Stop | Self::Other(_) => "stop",
            Self::ToolUse => "toolUse",
            Self::Length => "length",
        }
    }
}
