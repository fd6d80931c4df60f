//! The addressed model, and vendor-specific options of its API.

use std::fmt;

/// The API of a vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions, which many servers imitate.
    Chat,
    /// Gemini's streamGenerateContent.
    Gemini,
}

impl Api {
    /// Its name in sessions: `api` of pi-ai 0.87.1 (`dist/types.d.ts`, `KnownApi`).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic-messages",
            Self::Responses => "openai-responses",
            Self::Chat => "openai-completions",
            Self::Gemini => "google-generative-ai",
        }
    }
}

/// How much a model thinks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Thinking {
    /// The vendor's default: the request does not mention thinking.
    #[default]
    Default,
    /// The model cannot think: the request neither mentions thinking nor asks for it. OpenAI refuses requests for
    /// encrypted reasoning from a model without reasoning.
    Absent,
    /// No thinking.
    Off,
    /// A level named by the vendor, such as `high`.
    Effort(String),
    /// Up to this number of tokens.
    Budget(u64),
}

/// Options that differ between servers of Chat Completions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatOptions {
    /// Return thinking in the field it was received in (`reasoning_content` and similar). DeepSeek, Kimi and llama.cpp
    /// require that; OpenAI does not have the field.
    pub return_reasoning: bool,
    /// Send markers as `cache_control`, for proxies in front of Anthropic's models.
    pub cache_control: bool,
    /// Send `prompt_cache_key`.
    pub cache_key: bool,
    /// Send the limit as `max_tokens`, as before 2024, instead of `max_completion_tokens`.
    pub old_max_tokens: bool,
    /// Send the system prompt with the role `developer`.
    pub developer_role: bool,
}

impl Default for ChatOptions {
    fn default() -> Self {
        Self {
            return_reasoning: false,
            cache_control: false,
            cache_key: true,
            old_max_tokens: false,
            developer_role: false,
        }
    }
}

/// Maximum number of tokens in an answer if the API requires a number and none is set. All Claude models since 3.7
/// accept it.
pub const REQUIRED_OUTPUT_TOKENS: u64 = 32_000;

/// A model of a provider, and the settings of a session with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The API.
    pub api: Api,
    /// The provider's name in messages of the session.
    pub provider: String,
    /// The model's name at the provider.
    pub model: String,
    /// Whether it accepts images. If not, each image is replaced by a note.
    pub images: bool,
    /// Maximum number of tokens in an answer, including thinking. Without it the request has no limit and the vendor's
    /// applies; Messages requires the field and gets [`REQUIRED_OUTPUT_TOKENS`].
    pub max_output_tokens: Option<u64>,
    /// How much it thinks.
    pub thinking: Thinking,
    /// Options for Chat Completions; other APIs ignore them.
    pub chat: ChatOptions,
}

/// Why a target is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The limit is 0 tokens.
    #[error("max_output_tokens is 0")]
    NoOutput,
    /// The API does not support budgets.
    #[error("{0} does not support a thinking budget; set an effort level")]
    NoBudget(Api),
    /// Anthropic requires the budget to be at least 1,024 and below the limit of the answer.
    #[error("the thinking budget is {budget} tokens; it must be at least 1024 and below max_output_tokens ({max})")]
    Budget {
        /// The budget, in tokens.
        budget: u64,
        /// The limit of an answer, in tokens.
        max: u64,
    },
}

impl Target {
    /// A target with the defaults: images, and the vendor's default for thinking.
    #[must_use]
    pub fn new(api: Api, provider: &str, model: &str, max_output_tokens: impl Into<Option<u64>>) -> Self {
        Self {
            api,
            provider: provider.to_owned(),
            model: model.to_owned(),
            images: true,
            max_output_tokens: max_output_tokens.into(),
            thinking: Thinking::Default,
            chat: ChatOptions::default(),
        }
    }

    /// Checks for settings that a vendor would refuse in every request.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn check(&self) -> Result<(), TargetError> {
        if self.max_output_tokens == Some(0) {
            return Err(TargetError::NoOutput);
        }
        let max = self.max_output_tokens.unwrap_or(REQUIRED_OUTPUT_TOKENS);
        match self.thinking {
            Thinking::Budget(budget) => match self.api {
                Api::Responses | Api::Chat => Err(TargetError::NoBudget(self.api)),
                // https://platform.claude.com/docs/en/build-with-claude/extended-thinking: budget_tokens is at least
                // 1,024 and below max_tokens.
                Api::Anthropic if budget < 1024 || budget >= max => Err(TargetError::Budget { budget, max }),
                Api::Anthropic | Api::Gemini => Ok(()),
            },
            Thinking::Default | Thinking::Absent | Thinking::Off | Thinking::Effort(_) => Ok(()),
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
