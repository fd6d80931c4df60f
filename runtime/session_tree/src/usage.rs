//! The usage of an answer in a stored message: `usage` of pi-ai 0.87.1 (`dist/types.d.ts`, `Usage`).

use crate::json::{Json, Object};

/// Tokens and cost of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessageUsage {
    /// Input not served by a cache, in tokens.
    pub input: u64,
    /// Output including thinking, in tokens.
    pub output: u64,
    /// Input read from a cache, in tokens.
    pub cache_read: u64,
    /// Input written to a cache, in tokens.
    pub cache_write: u64,
    /// The part of `cache_write` cached for an hour.
    pub cache_write_1h: u64,
    /// The thinking part of `output`; `None` if the vendor does not report it.
    pub reasoning: Option<u64>,
    /// Cost in billionths of a US dollar; `None` if the price is unknown.
    pub cost_nano_usd: Option<u64>,
}

/// The field that marks a cost of 0 as unknown. pi sums `cost.total` over all messages and fails without it.
pub const COST_UNKNOWN: &str = "costUnknown";

impl MessageUsage {
    /// The object in the message.
    #[must_use]
    pub fn to_object(self) -> Object {
        #[expect(clippy::cast_precision_loss, reason = "a cost has far fewer digits")]
        let usd = |nano: u64| serde_json::Number::from_f64(nano as f64 / 1e9);
        let total = self.cost_nano_usd.and_then(usd).map_or(Json::from(0_u64), Json::Number);
        let parts = ["input", "output", "cacheRead", "cacheWrite"].map(|key| (key.to_owned(), Json::from(0_u64)));
        let tokens = [self.input, self.cache_read, self.cache_write, self.output];
        Object::new()
            .with("input", self.input)
            .with("output", self.output)
            .with("cacheRead", self.cache_read)
            .with("cacheWrite", self.cache_write)
            .with_some("cacheWrite1h", (self.cache_write_1h > 0).then_some(self.cache_write_1h))
            .with_some("reasoning", self.reasoning)
            .with("totalTokens", tokens.into_iter().fold(0, u64::saturating_add))
            .with("cost", parts.into_iter().collect::<Object>().with("total", total))
            .with_some(COST_UNKNOWN, self.cost_nano_usd.is_none().then_some(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_cost_is_stored_differently_from_a_zero_cost() {
        let usage = MessageUsage { input: 1, output: 2, cache_read: 3, cache_write: 4, ..MessageUsage::default() };
        let unknown = r#"{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0},"costUnknown":true}"#;
        assert_eq!(usage.to_object().to_text(), unknown);
        let priced = MessageUsage { cost_nano_usd: Some(0), reasoning: Some(1), cache_write_1h: 4, ..usage };
        let object = priced.to_object();
        assert_eq!(object.get(COST_UNKNOWN), None);
        assert_eq!(object.get("cacheWrite1h"), Some(&Json::from(4_u64)));
        let cost = MessageUsage { cost_nano_usd: Some(1_500_000_000), ..usage }.to_object();
        assert!(cost.to_text().contains(r#""total":1.5"#), "{}", cost.to_text());
    }
}
