//! Prices of models: the shipped table, the user's additions to it, and the cost of a call.
//!
//! Plain data: no I/O, no clock. A model without a price has no cost, which is different from a cost of zero. Start at
//! [`Prices::shipped`]; `prices.toml` lists the sources of its figures.

mod file;
mod names;

use std::collections::HashMap;

use file::{PriceFile, PriceStep};

pub use file::PriceError;

/// The shipped table.
const SHIPPED: &str = include_str!("prices.toml");
/// Milliseconds per day.
const DAY_MS: i64 = 86_400_000;

/// Prices by model.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    models: HashMap<String, Vec<PriceStep>>,
    date: String,
    sources: Vec<String>,
}

/// Tokens of one call of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallTokens {
    /// Input tokens that no cache served.
    pub input: u64,
    /// Output tokens, thinking included.
    pub output: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// The part of `cache_write` that stays in the cache for an hour.
    pub cache_write_hour: u64,
    /// Output tokens spent on thinking.
    pub thinking: u64,
}

impl Prices {
    /// The shipped table.
    ///
    /// # Errors
    /// If the table is not valid; a test ensures that it is.
    pub fn shipped() -> Result<Self, PriceError> {
        Self::default().with(SHIPPED)
    }

    /// Adds the models of a user's file, which replace models with the same name.
    ///
    /// # Errors
    /// If the file is not valid; the message contains the line.
    pub fn with(mut self, text: &str) -> Result<Self, PriceError> {
        let file = PriceFile::parse(text)?;
        for model in file.models {
            for name in model.names {
                self.models.insert(name, model.steps.clone());
            }
        }
        if let Some(date) = file.date {
            self.date = date;
        }
        self.sources.extend(file.sources);
        Ok(self)
    }

    /// The date of the figures.
    #[must_use]
    pub fn date(&self) -> &str {
        &self.date
    }

    /// The sources of the figures.
    #[must_use]
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// The cost of a call at a time (milliseconds since 1970), in billionths of a US dollar. `None` if the price of the
    /// model is not known.
    #[must_use]
    pub fn cost_nano_usd(&self, model: &str, at_ms: i64, tokens: &CallTokens) -> Option<u64> {
        self.of(model).and_then(|steps| steps.cost_nano_usd(at_ms, tokens))
    }

    /// The prices of a model, by the agent's name for it.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<ModelPrices<'_>> {
        names::candidates(model).find_map(|name| self.models.get(&name)).map(|steps| ModelPrices { steps })
    }
}

/// The name of a model in the form in which different spellings are compared: without date, path, variant and speed.
#[must_use]
pub fn plain_name(model: &str) -> String {
    names::shortest(model)
}

/// The prices of one model over time.
#[derive(Debug, Clone, Copy)]
pub struct ModelPrices<'a> {
    steps: &'a [PriceStep],
}

impl ModelPrices<'_> {
    /// The cost of a call at a time (milliseconds since 1970), in billionths of a US dollar.
    #[must_use]
    pub fn cost_nano_usd(self, at_ms: i64, tokens: &CallTokens) -> Option<u64> {
        let day = at_ms.div_euclid(DAY_MS);
        // A call before the first dated price gets that price, because no earlier price is known.
        let step = self.steps.iter().rev().find(|step| step.from_day <= day).or(self.steps.first())?;
        Some(step.cost_nano_usd(tokens))
    }
}

#[cfg(test)]
mod tests;
