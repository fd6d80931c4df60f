//! Why a request for an answer failed: the words by which sessions and everybody who reads them name it.

use serde::{Deserialize, Serialize};

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The vendor has too much to do, or an error of its own.
    Overloaded,
    /// Too many requests or tokens in a short time.
    Rate,
    /// Money or an allowance is used up.
    Quota,
    /// The key is missing, wrong, or may not do this.
    Auth,
    /// The request is longer than the model takes.
    TooLong,
    /// The provider has no such model.
    NoModel,
    /// The request is wrong.
    BadRequest,
    /// The model or the vendor refuses to answer this.
    Refused,
    /// The connection failed, ended early, or spoke something else.
    Network,
    /// The answer stopped coming.
    Stalled,
    /// Something else.
    Unknown,
}

impl FailureKind {
    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn may_pass(self) -> bool {
        match self {
            Self::Overloaded | Self::Rate | Self::Network | Self::Stalled => true,
            Self::Quota
            | Self::Auth
            | Self::TooLong
            | Self::NoModel
            | Self::BadRequest
            | Self::Refused
            | Self::Unknown => false,
        }
    }

    /// What happened, for a person; what the provider said follows.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Overloaded => "the provider is overloaded or has an error of its own",
            Self::Rate => "the provider's rate limit is reached",
            Self::Quota => "the quota or the credit with the provider is used up",
            Self::Auth => "the provider does not accept the key",
            Self::TooLong => "the conversation is longer than the model takes",
            Self::NoModel => "the provider has no such model",
            Self::BadRequest => "the provider calls the request invalid",
            Self::Refused => "the model refused to answer",
            Self::Network => "the connection to the provider failed",
            Self::Stalled => "the answer stopped coming",
            Self::Unknown => "the provider's answer was not understood",
        }
    }

    /// The word for it, for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overloaded => "overloaded",
            Self::Rate => "rate",
            Self::Quota => "quota",
            Self::Auth => "auth",
            Self::TooLong => "too_long",
            Self::NoModel => "no_model",
            Self::BadRequest => "bad_request",
            Self::Refused => "refused",
            Self::Network => "network",
            Self::Stalled => "stalled",
            Self::Unknown => "unknown",
        }
    }
}
