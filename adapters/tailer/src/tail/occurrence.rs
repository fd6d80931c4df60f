//! Numbers identical records in one pass over a file.

use std::collections::HashMap;

use events::{Identity, NewEvent, Repeat};

/// Maximum number of identities remembered; after dropping the older half, at least half as many.
const REMEMBERED: usize = 65_536;

/// Counts records without an id while a generation is read from its start. Bounded: of two maps, the older is dropped
/// when the newer is full. A record that recurs after that many others is counted from 0 again, and then counts as a
/// copy.
#[derive(Debug, Default)]
pub(super) struct Occurrences {
    young: HashMap<Identity, u32>,
    old: HashMap<Identity, u32>,
}

impl Occurrences {
    /// Makes the k-th equal record of this pass the k-th occurrence of its identity.
    pub(super) fn number(&mut self, events: &mut [NewEvent]) {
        for event in events.iter_mut().filter(|event| event.repeat == Repeat::Next) {
            let occurrence = self.next(event.identity);
            event.identity = event.identity.occurrence(occurrence);
            event.repeat = Repeat::Unique;
        }
    }

    fn next(&mut self, identity: Identity) -> u32 {
        if let Some(count) = self.young.get_mut(&identity) {
            *count += 1;
            return *count;
        }
        let count = self.old.remove(&identity).map_or(0, |count| count + 1);
        if self.young.len() >= REMEMBERED / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(identity, count);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_occurrence_counts_are_kept_in_bounded_memory() {
        let mut seen = Occurrences::default();
        let id = |n: u128| Identity::from_bits(n);
        assert_eq!([seen.next(id(1)), seen.next(id(1)), seen.next(id(2)), seen.next(id(1))], [0, 1, 0, 2]);
        for n in 10..40_000 {
            seen.next(id(n));
        }
        assert_eq!(seen.next(id(1)), 3);
        for n in 0..200_000 {
            seen.next(id(1_000_000 + n));
        }
        assert!(seen.young.len() + seen.old.len() <= REMEMBERED);
        assert_eq!(seen.next(id(1)), 0);
    }
}
