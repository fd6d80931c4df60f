//! Properties of models that no API reports: context and output sizes, thinking levels, and the vendor's caching.
//! Figures and their sources are in `models.tsv`.

use engine::cache::CacheRules;
use models::Thinking;
use settings::{ModelApi, ThinkingLevel};

/// Models by API and id, separated by tabs; lines starting with `#` are ignored.
const TABLE: &str = include_str!("models.tsv");
/// Milliseconds in a minute.
const MINUTE_MS: i64 = 60_000;
/// Maximum number of tokens in an answer, even if the model supports more: longer answers usually are mistakes.
const LONG_OUTPUT: u64 = 32_000;
/// Thinking levels passed on to an unknown model.
const COMMON_LEVELS: [ThinkingLevel; 4] =
    [ThinkingLevel::Off, ThinkingLevel::Low, ThinkingLevel::Medium, ThinkingLevel::High];
/// Name prefixes of OpenAI models without reasoning that are missing from the table:
/// <https://platform.openai.com/docs/guides/reasoning>. They refuse requests that ask for reasoning.
const WITHOUT_REASONING: [&str; 4] = ["gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat"];

/// The properties of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFacts {
    /// Number of input tokens it accepts; `None` if unknown.
    pub context_window: Option<u64>,
    /// Maximum number of tokens requested for an answer; `None` for an unknown model, so that the vendor's limit
    /// applies.
    pub max_output: Option<u64>,
    /// Whether it is known to accept images.
    pub images: bool,
    /// Whether it can think.
    pub reasons: bool,
    levels: Vec<(ThinkingLevel, Thinking)>,
}

impl ModelFacts {
    /// The properties of the model with this name and API.
    pub(crate) fn of(api: ModelApi, model: &str) -> Self {
        Self::listed(api, model).unwrap_or_else(|| {
            let reasons = api != ModelApi::Responses || !WITHOUT_REASONING.iter().any(|name| model.starts_with(name));
            let level = |level: ThinkingLevel| {
                let is_off = level == ThinkingLevel::Off;
                (level, if is_off { Thinking::Off } else { Thinking::Effort(level.name().to_owned()) })
            };
            let levels = if reasons { COMMON_LEVELS.map(level).to_vec() } else { Vec::new() };
            Self { context_window: None, max_output: None, images: true, reasons, levels }
        })
    }

    fn listed(api: ModelApi, model: &str) -> Option<Self> {
        let fits = |id: &str| {
            let rest = model.strip_prefix(id)?;
            // A date, or `-latest`, denotes the same model.
            (rest.is_empty() || rest.starts_with("-20") || rest == "-latest").then_some(id.len())
        };
        let rows = TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(Row::of);
        let fitting = rows.filter(|row| row.api == name_of(api)).filter_map(|row| Some((fits(row.id)?, row)));
        let (_, row) = fitting.max_by_key(|(length, _)| *length)?;
        let levels: Vec<_> = row.levels.split(' ').filter_map(level_of).collect();
        Some(Self {
            context_window: Some(row.context),
            max_output: Some(row.output.min(LONG_OUTPUT)),
            images: row.sees == "image",
            reasons: !levels.is_empty(),
            levels,
        })
    }

    /// The thinking levels of the model.
    pub fn levels(&self) -> impl Iterator<Item = ThinkingLevel> {
        self.levels.iter().map(|(level, _)| *level)
    }

    /// The thinking setting of a request for a level; `None` if the model does not have the level.
    #[must_use]
    pub fn thinking(&self, level: ThinkingLevel) -> Option<Thinking> {
        self.levels.iter().find(|(of, _)| *of == level).map(|(_, thinking)| thinking.clone())
    }
}

/// The known models of an API.
pub(crate) fn known(api: ModelApi) -> impl Iterator<Item = &'static str> {
    let rows = TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(Row::of);
    rows.filter(move |row| row.api == name_of(api)).map(|row| row.id)
}

struct Row {
    api: &'static str,
    id: &'static str,
    context: u64,
    output: u64,
    sees: &'static str,
    levels: &'static str,
}

impl Row {
    fn of(line: &'static str) -> Option<Self> {
        let mut cells = line.split('\t');
        Some(Self {
            api: cells.next()?,
            id: cells.next()?,
            context: cells.next()?.parse().ok()?,
            output: cells.next()?.parse().ok()?,
            sees: cells.next()?,
            levels: cells.next()?,
        })
    }
}

fn level_of(text: &str) -> Option<(ThinkingLevel, Thinking)> {
    let (name, word) = text.split_once('=').unwrap_or((text, ""));
    let level = name.parse().ok()?;
    let thinking = match word.parse() {
        Ok(tokens) => Thinking::Budget(tokens),
        Err(_) if level == ThinkingLevel::Off => Thinking::Off,
        Err(_) => Thinking::Effort(word.to_owned()),
    };
    Some((level, thinking))
}

const fn name_of(api: ModelApi) -> &'static str {
    match api {
        ModelApi::Anthropic => "anthropic",
        ModelApi::Responses => "responses",
        ModelApi::Chat => "chat",
        ModelApi::Gemini => "gemini",
    }
}

/// The caching rules of a vendor.
///
/// Anthropic: <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>, "Cache limitations": at least
/// 4,096 tokens for Opus 4.5, Opus 4.6 and Haiku 4.5, 2,048 for Opus 4.7, 1,024 for Opus 4.1, Opus 4.8 and Sonnet,
/// where 2,048 were observed (anthropics/anthropic-sdk-python#1194); a mark finds entries written up to 20 blocks
/// before. OpenAI: <https://platform.openai.com/docs/guides/prompt-caching>: from 1,024 tokens on in steps of 128,
/// cached for 5 to 10 minutes. Gemini: <https://ai.google.dev/gemini-api/docs/caching>: from 1,024 tokens on for Flash,
/// 4,096 for Pro; steps and time are undocumented and assumed as for OpenAI.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_model_table_parses() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        let mut count = 0;
        for line in lines {
            let row = Row::of(line).unwrap_or_else(|| panic!("{line}"));
            let words = row.levels.split(' ').filter(|word| *word != "-").count();
            assert_eq!(row.levels.split(' ').filter_map(level_of).count(), words, "{line}");
            assert!(row.output <= row.context && ["image", "text"].contains(&row.sees), "{line}");
            count += 1;
        }
        assert!(count > 50, "{count}");
    }

    #[test]
    fn a_model_is_found_with_or_without_a_date_suffix() {
        let of = |api, model| ModelFacts::of(api, model);
        let sonnet = of(ModelApi::Anthropic, "claude-sonnet-4-5-20250929");
        assert_eq!(sonnet, of(ModelApi::Anthropic, "claude-sonnet-4-5"));
        assert_eq!((sonnet.context_window, sonnet.max_output), (Some(200_000), Some(LONG_OUTPUT)));
        assert_eq!(sonnet.thinking(ThinkingLevel::High), Some(Thinking::Budget(16_384)));
        assert_eq!(sonnet.thinking(ThinkingLevel::Max), None);
        let effort = of(ModelApi::Anthropic, "claude-sonnet-5").thinking(ThinkingLevel::Minimal);
        assert_eq!(effort, Some(Thinking::Effort("low".to_owned())));
        assert_eq!(of(ModelApi::Responses, "gpt-4o-2024-11-20").max_output, Some(16_384));
        assert!(!of(ModelApi::Responses, "gpt-4o").reasons);
        assert!(!of(ModelApi::Responses, "gpt-5-chat-latest").reasons);
        assert!(of(ModelApi::Responses, "gpt-5.2").reasons);
        let pro = of(ModelApi::Gemini, "gemini-2.5-pro");
        assert_eq!(pro.thinking(ThinkingLevel::Off), None);
        // Another model with the same prefix is a different model.
        assert_eq!(of(ModelApi::Responses, "gpt-5.9").context_window, None);
        assert_eq!(of(ModelApi::Chat, "claude-sonnet-5").max_output, None);
    }

    #[test]
    fn thinking_budgets_leave_room_for_an_answer() {
        for api in [ModelApi::Anthropic, ModelApi::Responses, ModelApi::Gemini] {
            for model in known(api) {
                let facts = ModelFacts::of(api, model);
                for level in facts.levels() {
                    let thinking = facts.thinking(level);
                    let is_short =
                        !matches!(thinking, Some(Thinking::Budget(tokens)) if Some(tokens) >= facts.max_output);
                    assert!(is_short || api == ModelApi::Gemini, "{model} {level:?}");
                }
            }
        }
    }
}
