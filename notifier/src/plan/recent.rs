//! Remembers the sent causes, and forgets the oldest.

use std::collections::{BTreeMap, HashMap};

/// A set that remembers a number of causes, the newest ones.
#[derive(Debug)]
pub(super) struct RecentCauses {
    capacity: usize,
    count: u64,
    places: HashMap<String, u64>,
    order: BTreeMap<u64, String>,
}

impl RecentCauses {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, count: 0, places: HashMap::new(), order: BTreeMap::new() }
    }

    pub(super) fn has(&self, cause: &str) -> bool {
        self.places.contains_key(cause)
    }

    pub(super) fn insert(&mut self, cause: String) {
        self.drop(&cause);
        self.count += 1;
        self.order.insert(self.count, cause.clone());
        self.places.insert(cause, self.count);
        if self.places.len() > self.capacity
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.places.remove(&oldest);
        }
    }

    pub(super) fn drop(&mut self, cause: &str) {
        if let Some(place) = self.places.remove(cause) {
            self.order.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recent_cause_is_evicted_first() {
        let mut memory = RecentCauses::new(2);
        ["a", "b", "a", "c"].into_iter().for_each(|c| memory.insert(c.to_owned()));
        assert_eq!((memory.has("a"), memory.has("b"), memory.has("c")), (true, false, true));
        memory.drop("a");
        assert!(!memory.has("a"));
    }
}
