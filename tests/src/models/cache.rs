//! A simulation of the vendors' prompt caches: how many tokens of a request are read from a cache and written to one,
//! and how many could have been read at best.
//!
//! Tokens are bytes / 4 for all vendors. Time is virtual: every request has its own time. Where sources differ the
//! harsher one applies. The order of keys matters, as it does when a vendor renders the request to a prompt.

mod anthropic;
mod prefix;

use session_tree::{Json, Object};

use super::Api;

/// Milliseconds of a minute.
const MINUTE_MS: u64 = 60_000;

/// Tokens of a request by how the caches served them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// Tokens neither read nor written.
    pub input: u64,
    /// Tokens read.
    pub read: u64,
    /// Tokens written for five minutes, or for the vendor's only lifetime.
    pub write_5m: u64,
    /// Tokens written for an hour.
    pub write_1h: u64,
}

impl CacheUsage {
    /// All tokens of the request.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input + self.read + self.write_5m + self.write_1h
    }
}

/// The sums over all requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheReport {
    /// Number of requests.
    pub requests: u64,
    /// Tokens of all requests.
    pub total: u64,
    /// Tokens that were read.
    pub read: u64,
    /// Tokens that could have been read: for each request the longest prefix that an earlier request had and that was
    /// still cached, with a marker wherever it helps.
    pub best: u64,
}

impl CacheReport {
    /// The share of the possible reads that were made, 0 to 1; 1 if nothing could be read.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
    pub fn of_best(&self) -> f64 {
        if self.best == 0 { 1.0 } else { self.read as f64 / self.best as f64 }
    }

    /// The share of all tokens that were read, 0 to 1.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
    pub fn hit_rate(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.read as f64 / self.total as f64 }
    }
}

/// The caches of a vendor.
#[derive(Debug)]
pub struct Caches {
    api: Api,
    anthropic: anthropic::Cache,
    prefix: prefix::Cache,
    best: prefix::Best,
    report: CacheReport,
}

impl Caches {
    /// Empty caches.
    #[must_use]
    pub fn new(api: Api) -> Self {
        Self {
            api,
            anthropic: anthropic::Cache::default(),
            prefix: prefix::Cache::default(),
            best: prefix::Best::default(),
            report: CacheReport::default(),
        }
    }

    /// Serves a request at this time (milliseconds, must not decrease). A body that is not JSON has no tokens.
    pub fn serve(&mut self, model: &str, body: &[u8], now_ms: u64) -> CacheUsage {
        let Some(Json::Object(body)) = std::str::from_utf8(body).ok().and_then(|text| Json::parse(text).ok()) else {
            return CacheUsage::default();
        };
        let minimum = minimum(self.api, model);
        let blocks = blocks(self.api, model, &body);
        let usage = match self.api {
            Api::Anthropic => self.anthropic.serve(&blocks, minimum, now_ms),
            Api::Responses | Api::Chat | Api::Gemini => {
                let key = body.text("prompt_cache_key").unwrap_or_default();
                let writes = self.api != Api::Gemini && bills_writes(model);
                self.prefix.serve(key, &blocks, &prefix::Rules { minimum, writes }, now_ms)
            }
        };
        let best = self.best.serve(self.api, &blocks, minimum, now_ms);
        self.report.requests += 1;
        self.report.total += usage.total();
        self.report.read += usage.read;
        self.report.best += best.max(usage.read);
        usage
    }

    /// The sums so far.
    #[must_use]
    pub fn report(&self) -> CacheReport {
        self.report
    }
}

/// A part of a prompt that is cached as a whole or not at all.
#[derive(Debug, Clone)]
struct Block {
    /// The block's text without markers.
    text: String,
    /// The lifetime that a marker at the block requests, if there is one.
    marker: Option<Ttl>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ttl {
    FiveMinutes,
    Hour,
}

impl Ttl {
    fn ms(self) -> u64 {
        match self {
            Self::FiveMinutes => 5 * MINUTE_MS,
            Self::Hour => 60 * MINUTE_MS,
        }
    }
}

fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

/// The fewest tokens that are cached.
///
/// Anthropic: <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>, "Cache limitations": 4,096 for
/// Opus 4.5, Opus 4.6 and Haiku 4.5, 2,048 for Opus 4.7, 1,024 for Sonnet, where 2,048 were observed
/// (anthropics/anthropic-sdk-python#1194), Opus 4.1 and Opus 4.8. Models not named there get the largest minimum.
/// OpenAI: <https://platform.openai.com/docs/guides/prompt-caching>: 1,024. Gemini:
/// <https://ai.google.dev/gemini-api/docs/caching>, implicit caching: 1,024 for Flash, 4,096 for Pro.
fn minimum(api: Api, model: &str) -> u64 {
    match api {
        Api::Anthropic if ["opus-4-1", "opus-4-8"].iter().any(|named| model.contains(named)) => 1024,
        Api::Anthropic if model.contains("sonnet") || model.contains("opus-4-7") => 2048,
        Api::Gemini if model.contains("flash") => 1024,
        Api::Anthropic | Api::Gemini => 4096,
        Api::Responses | Api::Chat => 1024,
    }
}

/// OpenAI bills cache writes from GPT-5.6 on, and reports them as `cache_write_tokens`: mindroom#2134.
fn bills_writes(model: &str) -> bool {
    let version = model.strip_prefix("gpt-").and_then(|rest| rest.split('-').next());
    let mut numbers = version.unwrap_or_default().split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default()) >= (5, 6)
}

/// The blocks of a prompt in the order in which they are cached.
fn blocks(api: Api, model: &str, body: &Object) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut push = |context: &str, value: &Json| {
        let (text, marker) = unmarked(value);
        blocks.push(Block { text: format!("{context}{text}"), marker });
    };
    let list = |key: &str| body.get(key).and_then(Json::as_array).unwrap_or_default();
    let text = |key: &str| body.get(key).map(Json::to_text).unwrap_or_default();
    // Settings that invalidate everything after them when they change. Thinking and effort invalidate messages (docs,
    // "What invalidates the cache"); effort was observed to invalidate the system prompt too, so the harsher reading
    // applies to both.
    let settings = match api {
        Api::Anthropic => format!("{model}{}{}", text("thinking"), text("output_config")),
        Api::Responses => format!("{model}{}{}", text("reasoning"), text("parallel_tool_calls")),
        Api::Chat => format!("{model}{}", text("reasoning_effort")),
        Api::Gemini => format!("{model}{}", text("toolConfig")),
    };
    push("", &Json::String(settings));
    for tool in list("tools") {
        push("", tool);
    }
    match api {
        Api::Anthropic => {
            list("system").iter().for_each(|block| push("", block));
            if let Some(system @ Json::String(_)) = body.get("system") {
                push("", system);
            }
            let choice = text("tool_choice");
            for message in list("messages").iter().filter_map(Json::as_object) {
                let context = format!("{choice}{}:", message.text("role").unwrap_or_default());
                match message.get("content") {
                    Some(Json::Array(content)) => content.iter().for_each(|block| push(&context, block)),
                    Some(other) => push(&context, other),
                    None => {}
                }
            }
        }
        Api::Responses => {
            push("", &Json::String(text("instructions")));
            list("input").iter().for_each(|item| push("", item));
        }
        Api::Chat => list("messages").iter().for_each(|message| push("", message)),
        Api::Gemini => {
            push("", &Json::String(text("systemInstruction")));
            for content in list("contents").iter().filter_map(Json::as_object) {
                let context = format!("{}:", content.text("role").unwrap_or_default());
                content
                    .get("parts")
                    .and_then(Json::as_array)
                    .unwrap_or_default()
                    .iter()
                    .for_each(|part| push(&context, part));
            }
        }
    }
    blocks
}

/// Splits a block into its text and its marker.
fn unmarked(value: &Json) -> (String, Option<Ttl>) {
    let Some(object) = value.as_object().filter(|object| object.get("cache_control").is_some()) else {
        return (value.to_text(), None);
    };
    let mut object = object.clone();
    let marker = object.remove("cache_control");
    let ttl = marker.as_ref().and_then(Json::as_object).and_then(|marker| marker.text("ttl"));
    (object.to_text(), Some(if ttl == Some("1h") { Ttl::Hour } else { Ttl::FiveMinutes }))
}

/// The hash of each block together with all blocks before it, and the tokens up to its end.
fn chain(blocks: &[Block]) -> Vec<([u8; 32], u64)> {
    let (mut hasher, mut sum) = (blake3::Hasher::new(), 0);
    let link = |block: &Block| {
        hasher.update(block.text.as_bytes());
        hasher.update(b"\n");
        sum += tokens(&block.text);
        (*hasher.finalize().as_bytes(), sum)
    };
    blocks.iter().map(link).collect()
}
