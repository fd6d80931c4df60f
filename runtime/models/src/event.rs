//! The events of an answer, in one form for every API.

use session_tree::Object;

use crate::{Failure, Usage};

/// An event of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// The answer began.
    Began {
        /// The answering model, if reported.
        model: Option<String>,
        /// The vendor's id of the answer.
        id: Option<String>,
    },
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// A tool call starts.
    ToolOpened {
        /// The call's index in the content of the message.
        block: usize,
        /// The id by which the result refers to it.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of a call's input, as JSON text.
    ToolInput {
        /// The call's index in the content of the message.
        block: usize,
        /// The text.
        text: String,
    },
    /// A block is complete. Blocks arrive in the order of the message's content, each once.
    ///
    /// It has pi's form (pi-ai 0.87.1, `AssistantMessage`): `text`, `thinking` or `toolCall`. Additional fields contain
    /// what pi's fields cannot express: `raw`, the JSON text to send back instead of the block; `argumentsText`, a
    /// call's input as received; `malformed`, a call's input that is not a JSON object (its `arguments` are then
    /// empty). A block of an unknown type has the type `opaque` and only `raw`.
    Block(Object),
    /// Token counts so far. Each replaces the previous one.
    Usage(Usage),
    /// The answer is complete. Nothing follows.
    Ended(EndReason),
    /// The answer failed. Nothing follows.
    Failed(Failure),
}

impl StreamEvent {
    /// Whether this is output of the model: text, thinking, a call or a block.
    #[must_use]
    pub fn is_output(&self) -> bool {
        match self {
            Self::Text(_) | Self::Thinking(_) | Self::ToolOpened { .. } | Self::ToolInput { .. } | Self::Block(_) => {
                true
            }
            Self::Began { .. } | Self::Usage(_) | Self::Ended(_) | Self::Failed(_) => false,
        }
    }

    /// Whether no event follows.
    #[must_use]
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Ended(_) | Self::Failed(_))
    }
}

/// Why a complete answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndReason {
    /// The model finished.
    Stop,
    /// The model calls tools and waits for their results.
    ToolUse,
    /// The answer reached the token limit.
    Length,
    /// An unknown reason, as named by the vendor. The answer counts like [`EndReason::Stop`].
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
