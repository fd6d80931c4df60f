//! Measures how often receipts, claims, boundaries and causes are right: plays labelled sessions through the real
//! program and compares its answers with the labels of `fixtures/advisor`.

use std::{fs, path::Path};

use events::ClaimVerdict;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub mod boundaries;
pub mod causes;
pub mod claims;
pub mod receipts;
pub mod silent;

/// How many answers were right, and which were not.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Figures {
    /// The figures, each with its name: `accusations right: 136 of 136`.
    pub lines: Vec<String>,
    /// The wrong answers, one line each.
    pub wrong: Vec<String>,
}

/// The lines of a labelled set.
///
/// # Panics
/// If the file cannot be read or a line is not of this set; the message names both.
#[must_use]
pub fn labelled<T: DeserializeOwned>(file: &Path) -> Vec<T> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let line = |(number, line): (usize, &str)| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{}:{}: {error}", file.display(), number + 1))
    };
    text.lines().enumerate().map(line).collect()
}

/// Whether a statement in JSON does not agree with the record.
#[must_use]
pub(crate) fn is_accusing(claim: &Value) -> bool {
    serde_json::from_value::<ClaimVerdict>(claim["verdict"].clone()).is_ok_and(ClaimVerdict::accuses)
}

/// A set of `fixtures/advisor`.
#[must_use]
pub fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/advisor").join(name)
}

/// The lower end of Wilson's 95 % interval of a share.
#[must_use]
pub fn wilson_low(right: usize, all: usize) -> f64 {
    const Z: f64 = 1.96;
    let (right, all) = (right as f64, all as f64);
    if all == 0.0 {
        return 0.0;
    }
    let share = right / all;
    let center = share + Z * Z / (2.0 * all);
    let margin = Z * (share * (1.0 - share) / all + Z * Z / (4.0 * all * all)).sqrt();
    (center - margin) / (1.0 + Z * Z / all)
}
