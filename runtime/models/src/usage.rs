//! Tokens of an answer by their kind.

use prices::CallTokens;

/// Tokens of one answer. Input is counted once: `input`, `read`, `write_5m` and `write_1h` together are all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input that no cache served.
    pub input: u64,
    /// Input read from a cache.
    pub read: u64,
    /// Input written to a cache for five minutes, or for as long as the vendor keeps it.
    pub write_5m: u64,
    /// Input written to a cache for an hour.
    pub write_1h: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// Output spent on reasoning; nothing when the vendor does not say.
    pub reasoning: Option<u64>,
}

/// The cost of an answer in units of one fresh input token: what answers cost relative to each other, without prices.
pub type CostUnits = f64;

impl Usage {
    /// All input.
    #[must_use]
    pub fn total_input(&self) -> u64 {
        self.input.saturating_add(self.read).saturating_add(self.write_5m).saturating_add(self.write_1h)
    }

    /// The share of the input that a cache served, 0 to 1; nothing without input.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
    pub fn hit_rate(&self) -> Option<f64> {
        let total = self.total_input();
        (total > 0).then(|| self.read as f64 / total as f64)
    }

    /// `1·fresh + 1.25·write for 5 minutes + 2·write for an hour + 0.1·read + 5·output`: Anthropic's ratios, taken for
    /// every vendor so that strategies can be compared.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "costs are compared, not billed")]
    pub fn cost_units(&self) -> CostUnits {
        let parts =
            [(self.input, 1.0), (self.write_5m, 1.25), (self.write_1h, 2.0), (self.read, 0.1), (self.output, 5.0)];
        parts.iter().map(|(tokens, weight)| *tokens as f64 * weight).sum()
    }

    /// The same in the form that prices are applied to (`prices::Prices::cost_nano_usd`).
    #[must_use]
    pub fn tokens(&self) -> CallTokens {
        CallTokens {
            input: self.input,
            output: self.output,
            cache_read: self.read,
            cache_write: self.write_5m.saturating_add(self.write_1h),
            cache_write_hour: self.write_1h,
            thinking: self.reasoning.unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests;
