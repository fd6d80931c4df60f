//! Token counts of an answer by kind.

use prices::CallTokens;

/// Token counts of one answer. Input is counted once: `input`, `read`, `write_5m` and `write_1h` add up to all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input not served by a cache.
    pub input: u64,
    /// Input read from a cache.
    pub read: u64,
    /// Input written to a cache for five minutes, or for a time the vendor chooses.
    pub write_5m: u64,
    /// Input written to a cache for an hour.
    pub write_1h: u64,
    /// Output, including reasoning.
    pub output: u64,
    /// Output spent on reasoning; `None` if the vendor does not report it.
    pub reasoning: Option<u64>,
}

/// The cost of an answer in units of one uncached input token: relative costs without prices.
pub type CostUnits = f64;

impl Usage {
    /// All input.
    #[must_use]
    pub fn total_input(&self) -> u64 {
        self.input.saturating_add(self.read).saturating_add(self.write_5m).saturating_add(self.write_1h)
    }

    /// The share of the input served by a cache, 0 to 1; `None` without input.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
    pub fn hit_rate(&self) -> Option<f64> {
        let total = self.total_input();
        (total > 0).then(|| self.read as f64 / total as f64)
    }

    /// `1·uncached + 1.25·write for 5 minutes + 2·write for an hour + 0.1·read + 5·output`: Anthropic's ratios, used
    /// for every vendor so that strategies can be compared.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "costs are compared, not billed")]
    pub fn cost_units(&self) -> CostUnits {
        let parts =
            [(self.input, 1.0), (self.write_5m, 1.25), (self.write_1h, 2.0), (self.read, 0.1), (self.output, 5.0)];
        parts.iter().map(|(tokens, weight)| *tokens as f64 * weight).sum()
    }

    /// The token counts in the form that prices are applied to (`prices::Prices::cost_nano_usd`).
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
