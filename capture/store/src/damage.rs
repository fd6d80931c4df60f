//! Rows that cannot be read as what they should be: counted and logged once each, while everything else goes on.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// Rows that are told apart; further ones are not counted.
const MOST: usize = 10_000;

/// The rows of a store that were found damaged or unknown. A handle: clones share it.
#[derive(Debug, Clone, Default)]
pub struct DamagedRows(Arc<Mutex<BTreeSet<(&'static str, String)>>>);

impl DamagedRows {
    /// Notes that the row of `what` at `place` cannot be read.
    pub(crate) fn note(&self, what: &'static str, place: impl fmt::Display, detail: impl fmt::Display) {
        let place = place.to_string();
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.len() < MOST && rows.insert((what, place.clone())) {
            tracing::warn!(what, place, %detail, "a row of the database cannot be read and is skipped");
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    /// What the first of them is, in a few words.
    #[must_use]
    pub fn first(&self) -> Option<String> {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.first().map(|(what, place)| format!("{what} at {place}"))
    }
}
