//! Rows that cannot be parsed: each is counted and logged once, and everything else continues to work.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// Maximum number of rows counted; further ones are ignored.
const MOST: usize = 10_000;

/// The damaged or unknown rows found in a store. Clones share the set.
#[derive(Debug, Clone, Default)]
pub struct DamagedRows(Arc<Mutex<BTreeSet<(&'static str, String)>>>);

impl DamagedRows {
    /// Records that the row of `what` at `place` cannot be read.
    pub(crate) fn note(&self, what: &'static str, place: impl fmt::Display, detail: impl fmt::Display) {
        let place = place.to_string();
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.len() < MOST && rows.insert((what, place.clone())) {
            tracing::warn!(what, place, %detail, "a row of the database cannot be read and is skipped");
        }
    }

    /// The number of such rows.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    /// A short description of the first such row.
    #[must_use]
    pub fn first(&self) -> Option<String> {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.first().map(|(what, place)| format!("{what} at {place}"))
    }
}
