//! The format of a price table in TOML. Errors are reported with their line.

use std::collections::HashMap;

use serde::Deserialize;
use toml::Spanned;

use crate::{
    CallTokens,
    names::{FAST, key},
};

/// Why a price table cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct PriceError {
    /// The line, from 1.
    pub line: usize,
    /// The error in that line.
    pub reason: String,
}

/// Converts US dollars per million tokens to billionths of a US dollar per token.
const NANO_USD_PER_TOKEN: f64 = 1_000.0;

/// A parsed table.
#[derive(Debug)]
pub(crate) struct PriceFile {
    pub(crate) date: Option<String>,
    pub(crate) sources: Vec<String>,
    pub(crate) models: Vec<PricedModel>,
}

/// A model and its prices, the oldest first.
#[derive(Debug)]
pub(crate) struct PricedModel {
    pub(crate) names: Vec<String>,
    pub(crate) steps: Vec<PriceStep>,
}

/// The prices of a model from a date on.
#[derive(Debug, Clone)]
pub(crate) struct PriceStep {
    /// The first day, counted from 1970-01-01.
    pub(crate) from_day: i64,
    base: Rates,
    /// Prices of requests whose input exceeds a number of tokens.
    above: Option<(u64, Rates)>,
}

impl PriceStep {
    fn times(&self, factor: f64) -> Self {
        let above = self.above.map(|(limit, rates)| (limit, rates.times(factor)));
        Self { from_day: self.from_day, base: self.base.times(factor), above }
    }

    /// The cost of a call, in billionths of a US dollar.
    pub(crate) fn cost_nano_usd(&self, tokens: &CallTokens) -> u64 {
        let request = tokens.input.saturating_add(tokens.cache_read).saturating_add(tokens.cache_write);
        match &self.above {
            Some((limit, rates)) if request > *limit => rates.cost_nano_usd(tokens),
            Some(_) | None => self.base.cost_nano_usd(tokens),
        }
    }
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy)]
struct Rates {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
    cache_write_hour: f64,
    thinking: f64,
}

impl Rates {
    fn times(self, factor: f64) -> Self {
        let Self { input, output, cache_read, cache_write, cache_write_hour, thinking } = self;
        let [input, output, cache_read, cache_write, cache_write_hour, thinking] =
            [input, output, cache_read, cache_write, cache_write_hour, thinking].map(|rate| rate * factor);
        Self { input, output, cache_read, cache_write, cache_write_hour, thinking }
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rates are not negative, and a cost need not be exact to a billionth"
    )]
    fn cost_nano_usd(&self, tokens: &CallTokens) -> u64 {
        let hour = tokens.cache_write_hour.min(tokens.cache_write);
        let thinking = tokens.thinking.min(tokens.output);
        let parts = [
            (tokens.input, self.input),
            (tokens.output - thinking, self.output),
            (thinking, self.thinking),
            (tokens.cache_read, self.cache_read),
            (tokens.cache_write - hour, self.cache_write),
            (hour, self.cache_write_hour),
        ];
        let cost: f64 = parts.iter().map(|(tokens, rate)| *tokens as f64 * rate * NANO_USD_PER_TOKEN).sum();
        cost.round() as u64
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    date: Option<Spanned<String>>,
    #[serde(default)]
    sources: Vec<String>,
    #[serde(default)]
    model: Vec<ModelForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelForm {
    name: Spanned<String>,
    #[serde(default, rename = "vendor")]
    _vendor: Option<String>,
    #[serde(default)]
    aliases: Vec<Spanned<String>>,
    /// The factor by which fast processing multiplies the prices.
    fast: Option<Spanned<f64>>,
    #[serde(default)]
    price: Vec<StepForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepForm {
    from: Option<Spanned<String>>,
    input: Spanned<f64>,
    output: Spanned<f64>,
    cache_read: Option<Spanned<f64>>,
    cache_write: Option<Spanned<f64>>,
    cache_write_hour: Option<Spanned<f64>>,
    thinking: Option<Spanned<f64>>,
    above: Option<AboveForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AboveForm {
    tokens: u64,
    input: Spanned<f64>,
    output: Spanned<f64>,
    cache_read: Option<Spanned<f64>>,
    cache_write: Option<Spanned<f64>>,
    cache_write_hour: Option<Spanned<f64>>,
    thinking: Option<Spanned<f64>>,
}

/// The rates of a form. A missing rate equals the rate of the category that includes it.
macro_rules! rates {
    ($form:expr, $text:expr) => {{
        let form = $form;
        let given = |rate: &Option<Spanned<f64>>, other: f64| match rate {
            Some(rate) => checked(rate, $text),
            None => Ok(other),
        };
        let (input, output) = (checked(&form.input, $text)?, checked(&form.output, $text)?);
        let cache_write = given(&form.cache_write, input)?;
        Rates {
            input,
            output,
            cache_read: given(&form.cache_read, input)?,
            cache_write,
            cache_write_hour: given(&form.cache_write_hour, cache_write)?,
            thinking: given(&form.thinking, output)?,
        }
    }};
}

impl PriceFile {
    pub(crate) fn parse(text: &str) -> Result<Self, PriceError> {
        let form: FileForm = toml::from_str(text).map_err(|error| PriceError {
            line: line_at(text, error.span().map_or(0, |span| span.start)),
            reason: error.message().to_owned(),
        })?;
        if let Some(date) = &form.date {
            day_of(date, text)?;
        }
        let mut lines: HashMap<String, usize> = HashMap::new();
        let mut models = Vec::new();
        for model in form.model {
            let mut names = Vec::new();
            for name in std::iter::once(&model.name).chain(&model.aliases) {
                let (key, line) = (key(name.get_ref()), line_of(name, text));
                if key.is_empty() {
                    return Err(PriceError { line, reason: "the name of a model is empty".into() });
                }
                if let Some(before) = lines.insert(key.clone(), line) {
                    let reason = format!("`{}` has prices already, on line {before}", name.get_ref());
                    return Err(PriceError { line, reason });
                }
                names.push(key);
            }
            let line = line_of(&model.name, text);
            let mut steps = Vec::new();
            for step in &model.price {
                let from_day = step.from.as_ref().map_or(Ok(i64::MIN), |from| day_of(from, text))?;
                if steps.last().is_some_and(|last: &PriceStep| last.from_day >= from_day) {
                    let line = step.from.as_ref().map_or(line, |from| line_of(from, text));
                    return Err(PriceError { line, reason: "prices must be sorted by date".into() });
                }
                let above = match &step.above {
                    Some(above) => Some((above.tokens, rates!(above, text))),
                    None => None,
                };
                steps.push(PriceStep { from_day, base: rates!(step, text), above });
            }
            if steps.is_empty() {
                return Err(PriceError { line, reason: format!("`{}` has no prices", model.name.get_ref()) });
            }
            if let Some(fast) = &model.fast {
                let times = checked(fast, text)?;
                let names = names.iter().map(|name| format!("{name}{FAST}")).collect();
                models.push(PricedModel { names, steps: steps.iter().map(|step| step.times(times)).collect() });
            }
            models.push(PricedModel { names, steps });
        }
        Ok(Self { date: form.date.map(Spanned::into_inner), sources: form.sources, models })
    }
}

fn checked(rate: &Spanned<f64>, text: &str) -> Result<f64, PriceError> {
    let value = *rate.get_ref();
    if (0.0..1e6).contains(&value) {
        return Ok(value);
    }
    let reason = format!("expected US dollars per million tokens, 0 or more, got `{value}`");
    Err(PriceError { line: line_of(rate, text), reason })
}

/// The day of a date such as `2026-03-13`, counted from 1970-01-01.
fn day_of(date: &Spanned<String>, text: &str) -> Result<i64, PriceError> {
    let wrong = || PriceError {
        line: line_of(date, text),
        reason: format!("expected a date such as \"2026-03-13\", got `{}`", date.get_ref()),
    };
    let parts: Vec<i64> = date.get_ref().split('-').map_while(|part| part.parse().ok()).collect();
    let [year @ 1970..=9999, month @ 1..=12, day @ 1..=31] = parts.as_slice() else { return Err(wrong()) };
    // Howard Hinnant's days_from_civil, with years that begin in March.
    let year = if *month <= 2 { year - 1 } else { *year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let (era, year_of_era) = (year / 400, year % 400);
    Ok(era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468)
}

fn line_of<T>(spanned: &Spanned<T>, text: &str) -> usize {
    line_at(text, spanned.span().start)
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}
