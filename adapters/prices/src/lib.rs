//! Prices of models: the shipped table, the user's additions to it, and what a call of a model cost.
//!
//! Plain data: no I/O, no clock. A model without a price has none; it never costs nothing. Start at [`Prices::shipped`];
//! `prices.toml` tells where its figures are from.

mod file;
mod names;

use std::collections::HashMap;

use file::{PriceFile, PriceStep};

pub use file::PriceError;

/// The shipped table.
const SHIPPED: &str = include_str!("prices.toml");
/// Milliseconds of a day.
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
    /// Those of them that stay in the cache for an hour.
    pub cache_write_hour: u64,
    /// Output tokens spent on thinking.
    pub thinking: u64,
}

impl Prices {
    /// The shipped table.
    ///
    /// # Errors
    /// When it is not valid; a test makes sure that it is.
    pub fn shipped() -> Result<Self, PriceError> {
        Self::default().with(SHIPPED)
    }

    /// The same with the models of a file of the user, which replace those of the same name.
    ///
    /// # Errors
    /// When the file is not valid; the message names the line.
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

    /// Where the figures are from.
    #[must_use]
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// What a call cost at a time (milliseconds since 1970), billionths of a US dollar. `None` when the price of the
    /// model is not known.
    #[must_use]
    pub fn cost_nano_usd(&self, model: &str, at_ms: i64, tokens: &CallTokens) -> Option<u64> {
        self.of(model).and_then(|steps| steps.cost_nano_usd(at_ms, tokens))
    }

    /// The prices of a model by the name an agent gives it.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<ModelPrices<'_>> {
        names::candidates(model).find_map(|name| self.models.get(&name)).map(|steps| ModelPrices { steps })
    }
}

/// The name of a model by which differently written names of it are compared: without a date, a path, a variant or a speed.
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
    /// What a call cost at a time (milliseconds since 1970), billionths of a US dollar.
    #[must_use]
    pub fn cost_nano_usd(self, at_ms: i64, tokens: &CallTokens) -> Option<u64> {
        let day = at_ms.div_euclid(DAY_MS);
        // A call before the first dated price was made at that price, as far as anybody knows.
        let step = self.steps.iter().rev().find(|step| step.from_day <= day).or(self.steps.first())?;
        Some(step.cost_nano_usd(tokens))
    }
}

#[cfg(test)]
mod tests;
