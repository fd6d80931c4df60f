//! The last events of a live session, bounded by number and by text.

use std::collections::VecDeque;

/// At most so many events.
pub const RING_EVENTS: usize = 200;
/// At most so much text, bytes.
pub const RING_TEXT_BYTES: usize = 64 * 1024;
/// At most so many turns.
pub const RING_TURNS: usize = 10;

/// Keeps the newest entries within both bounds.
#[derive(Debug, Clone)]
pub struct Ring<T> {
    entries: VecDeque<(usize, T)>,
    bytes: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), bytes: 0 }
    }
}

impl<T> Ring<T> {
    /// Adds an entry of `bytes` size; the oldest leave. The newest always stays.
    pub fn push(&mut self, bytes: usize, entry: T) {
        self.entries.push_back((bytes, entry));
        self.bytes += bytes;
        while self.entries.len() > 1 && (self.entries.len() > RING_EVENTS || self.bytes > RING_TEXT_BYTES) {
            if let Some((old, _)) = self.entries.pop_front() {
                self.bytes -= old;
            }
        }
    }

    /// The entries, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_the_newest_within_both_bounds() {
        let mut ring = Ring::default();
        for n in 0..500 {
            ring.push(10, n);
        }
        assert_eq!(ring.iter().copied().collect::<Vec<_>>(), (300..500).collect::<Vec<_>>());
        ring.push(RING_TEXT_BYTES - 15, 500);
        assert_eq!(ring.iter().copied().collect::<Vec<_>>(), [499, 500]);
        ring.push(RING_TEXT_BYTES * 2, 501);
        assert_eq!(ring.iter().copied().collect::<Vec<_>>(), [501]);
    }
}
