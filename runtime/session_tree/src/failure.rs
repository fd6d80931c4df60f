//! Why a request failed: the names used in sessions and by all their readers.

use serde::{Deserialize, Serialize};

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The vendor is overloaded or has an internal error.
    Overloaded,
    /// Too many requests or tokens in a short time.
    Rate,
    /// The credit or quota is exhausted.
    Quota,
    /// The key is missing, wrong, or lacks permission.
    Auth,
    /// The request exceeds the model's context.
    TooLong,
    /// The provider has no such model.
    NoModel,
    /// The request is invalid.
    BadRequest,
    /// The model or the vendor refuses to answer.
    Refused,
    /// The connection failed, ended early, or used an unexpected protocol.
    Network,
    /// The answer stopped coming.
    Stalled,
    /// Something else.
    Unknown,
}

impl FailureKind {
    /// A description for the user, to be followed by the provider's message.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Overloaded => "the provider is overloaded or failed",
            Self::Rate => "the provider's rate limit is reached",
            Self::Quota => "the quota or the credit with the provider is used up",
            Self::Auth => "the provider does not accept the key",
            Self::TooLong => "the conversation is too long for the model",
            Self::NoModel => "the provider has no such model",
            Self::BadRequest => "the provider rejected the request as invalid",
            Self::Refused => "the model refused to answer",
            Self::Network => "the connection to the provider failed",
            Self::Stalled => "the answer stalled",
            Self::Unknown => "the provider's answer was unexpected",
        }
    }
}
