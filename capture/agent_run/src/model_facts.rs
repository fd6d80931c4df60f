//! What has to be known of models and is said by no API: how long an answer may be, whether they think, how their
//! vendor caches.

use agent_settings::ModelApi;
use engine::cache::CacheRules;

/// Milliseconds of a minute.
const MINUTE_MS: i64 = 60_000;
/// Most tokens of an answer of a model that is not known.
const UNKNOWN_OUTPUT: u64 = 8_192;
/// Most tokens of an answer of models that could give more: an answer that long is a mistake more often than not.
const LONG_OUTPUT: u64 = 32_000;

/// Most tokens of an answer, by what a name begins with; the first that fits counts.
/// <https://platform.claude.com/docs/en/about-claude/models/overview>,
/// <https://platform.openai.com/docs/models>, <https://ai.google.dev/gemini-api/docs/models>.
const OUTPUTS: [(&str, u64); 9] = [
    ("claude-3-5", 8_192),
    ("claude-3-7", LONG_OUTPUT),
    ("claude-3", 4_096),
    ("claude-", LONG_OUTPUT),
    ("gpt-4o", 16_384),
    ("gpt-", LONG_OUTPUT),
    ("o", LONG_OUTPUT),
    ("gemini-2.0", 8_192),
    ("gemini-", LONG_OUTPUT),
];

/// Models of OpenAI without reasoning, by what their names begin with:
/// <https://platform.openai.com/docs/guides/reasoning>. They refuse requests that want reasoning back.
const WITHOUT_REASONING: [&str; 4] = ["gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat"];

pub(crate) fn max_output_tokens(api: ModelApi, model: &str) -> u64 {
    match api {
        // Behind it may be any server with any model.
        ModelApi::Chat => UNKNOWN_OUTPUT,
        ModelApi::Anthropic | ModelApi::Responses | ModelApi::Gemini => {
            let found = OUTPUTS.iter().find(|(name, _)| model.starts_with(name));
            found.map_or(UNKNOWN_OUTPUT, |(_, tokens)| *tokens)
        }
    }
}

pub(crate) fn is_without_reasoning(api: ModelApi, model: &str) -> bool {
    api == ModelApi::Responses && WITHOUT_REASONING.iter().any(|name| model.starts_with(name))
}

/// How a vendor caches.
///
/// Anthropic: <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>, "Cache limitations": at least
/// 4,096 tokens for Opus 4.5, Opus 4.6 and Haiku 4.5, 2,048 for Opus 4.7, 1,024 for Opus 4.1, Opus 4.8 and Sonnet,
/// where 2,048 were observed (anthropics/anthropic-sdk-python#1194); a mark finds what was written up to 20 blocks
/// before. OpenAI: <https://platform.openai.com/docs/guides/prompt-caching>: from 1,024 tokens on in steps of 128, kept
/// for 5 to 10 minutes. Gemini: <https://ai.google.dev/gemini-api/docs/caching>: from 1,024 tokens on for Flash, 4,096
/// for Pro; steps and time are not told and taken from OpenAI.
pub(crate) fn cache_rules(api: ModelApi, model: &str) -> CacheRules {
    let prefix = |min_tokens| CacheRules::Prefix { min_tokens, step: 128, ttl_ms: 5 * MINUTE_MS };
    match api {
        ModelApi::Anthropic => {
            let is = |names: &[&str]| names.iter().any(|name| model.contains(name));
            let min_tokens = if is(&["opus-4-1", "opus-4-8"]) {
                1_024
            } else if is(&["sonnet", "opus-4-7"]) {
                2_048
            } else {
                4_096
            };
            CacheRules::Markers { lookback: 20, min_tokens, ttl_ms: 5 * MINUTE_MS, long_ttl_ms: 60 * MINUTE_MS }
        }
        ModelApi::Gemini if !model.contains("flash") => prefix(4_096),
        ModelApi::Responses | ModelApi::Chat | ModelApi::Gemini => prefix(1_024),
    }
}
