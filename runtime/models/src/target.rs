//! The model that is addressed, and what of its API differs between vendors.

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
    /// The name sessions have for it: `api` of pi-ai 0.87.1 (`dist/types.d.ts`, `KnownApi`).
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

/// How much a model is to think.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Thinking {
    /// As much as the vendor has it by default: the request says nothing about it.
    #[default]
    Default,
    /// It cannot: the request says nothing about it and wants nothing of it back. OpenAI refuses requests that want
    /// encrypted reasoning of a model without reasoning.
    Absent,
    /// Not at all.
    Off,
    /// At a level named by the vendor, such as `high`.
    Effort(String),
    /// Up to a number of tokens.
    Budget(u64),
}

/// What differs between servers of Chat Completions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatOptions {
    /// Return thinking in the field it came in (`reasoning_content` and its like). DeepSeek, Kimi and llama.cpp want
    /// that; OpenAI does not have the field.
    pub return_reasoning: bool,
    /// Pass markers on as `cache_control`, for proxies in front of Anthropic's models.
    pub cache_control: bool,
    /// Send `prompt_cache_key`.
    pub cache_key: bool,
    /// Name the limit `max_tokens` as before 2024 instead of `max_completion_tokens`.
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

/// Most tokens of an answer where the API wants a number and none is set. All Claude models since 3.7 take it.
pub const REQUIRED_OUTPUT_TOKENS: u64 = 32_000;

/// A model of a provider, and the settings that hold for a session with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The API it is reached by.
    pub api: Api,
    /// The provider's name, as messages of the session name it.
    pub provider: String,
    /// The model's name, as the provider knows it.
    pub model: String,
    /// Whether it takes images. If not, a note stands for each.
    pub images: bool,
    /// Most tokens of an answer, thinking included. Without it the request says nothing about it, and the vendor's own
    /// limit holds; Messages wants the field, and gets [`REQUIRED_OUTPUT_TOKENS`].
    pub max_output_tokens: Option<u64>,
    /// How much it is to think.
    pub thinking: Thinking,
    /// Settings of Chat Completions; other APIs ignore them.
    pub chat: ChatOptions,
}

/// Why a target cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// A limit of no tokens.
    #[error("max_output_tokens is 0")]
    NoOutput,
    /// The API has no budgets.
    #[error("{0} takes no thinking budget; name an effort")]
    NoBudget(Api),
    /// Anthropic wants the budget to be at least 1,024 and below the limit of the answer.
    #[error("a thinking budget of {budget} tokens must be at least 1024 and below max_output_tokens ({max})")]
    Budget {
        /// The budget, tokens.
        budget: u64,
        /// The limit of an answer, tokens.
        max: u64,
    },
}

impl Target {
    /// A target with the defaults: images, no word about thinking.
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

    /// Checks what a vendor would refuse in every request.
    ///
    /// # Errors
    /// The first setting that is wrong.
    pub fn check(&self) -> Result<(), TargetError> {
        if self.max_output_tokens == Some(0) {
            return Err(TargetError::NoOutput);
        }
        let max = self.max_output_tokens.unwrap_or(REQUIRED_OUTPUT_TOKENS);
        match (&self.thinking, self.api) {
            (Thinking::Budget(_), Api::Responses | Api::Chat) => Err(TargetError::NoBudget(self.api)),
            // https://platform.claude.com/docs/en/build-with-claude/extended-thinking: budget_tokens is at least 1,024
            // and below max_tokens.
            (Thinking::Budget(budget), Api::Anthropic) if *budget < 1024 || *budget >= max => {
                Err(TargetError::Budget { budget: *budget, max })
            }
            _ => Ok(()),
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
