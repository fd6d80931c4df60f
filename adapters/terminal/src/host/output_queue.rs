//! The bytes queued for a terminal: a ring buffer, so that more can be queued while the terminal accepts the first
//! ones.

use std::{collections::VecDeque, io};

/// Bytes that a terminal has not accepted yet, in order.
#[derive(Debug, Default)]
pub(super) struct OutputQueue {
    waiting: VecDeque<u8>,
}

impl OutputQueue {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend(bytes);
    }

    /// Calls `write` once with the first queued bytes; it returns how many were accepted. Returns whether it accepted
    /// all of these bytes: if not, the terminal accepts nothing more now.
    pub(super) fn write_once(&mut self, write: impl FnOnce(&[u8]) -> io::Result<usize>) -> io::Result<bool> {
        let (first, _) = self.waiting.as_slices();
        let offered = first.len();
        let accepted = write(first)?.min(offered);
        self.waiting.drain(..accepted);
        Ok(accepted == offered)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        /// The program wrote this many bytes.
        Push(usize),
        /// The terminal accepts at most this many.
        Write(usize),
        /// The terminal accepts nothing now.
        Full,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..5_000_usize).prop_map(Step::Push),
            4 => (1..9_000_usize).prop_map(Step::Write),
            1 => Just(Step::Full),
        ]
    }

    proptest! {
        #[test]
        fn any_partial_writes_preserve_all_bytes_in_order(
            steps in prop::collection::vec(step(), 0..200),
        ) {
            let (mut queue, mut pushed, mut shown) = (OutputQueue::default(), Vec::new(), Vec::new());
            let mut next = 0_u32;
            for step in steps {
                match step {
                    Step::Push(count) => {
                        // The pattern repeats every 251 bytes, so a byte shifted by a power of two differs.
                        let bytes: Vec<u8> = (0..count as u32).map(|n| ((next + n) % 251) as u8).collect();
                        next += count as u32;
                        queue.push(&bytes);
                        pushed.extend_from_slice(&bytes);
                    }
                    Step::Write(most) => {
                        let whole = queue.write_once(|bytes| {
                            let accepted = bytes.len().min(most);
                            shown.extend_from_slice(&bytes[..accepted]);
                            Ok(accepted)
                        }).unwrap();
                        prop_assert!(!whole || queue.is_empty() || shown.len() < pushed.len());
                    }
                    Step::Full => prop_assert_eq!(queue.write_once(|_| Ok(0)).unwrap(), queue.is_empty()),
                }
                prop_assert_eq!(queue.len(), pushed.len() - shown.len());
            }
            while !queue.is_empty() {
                queue.write_once(|bytes| {
                    shown.extend_from_slice(bytes);
                    Ok(bytes.len())
                }).unwrap();
            }
            prop_assert_eq!(shown, pushed);
        }
    }

    #[test]
    fn the_queue_reuses_the_space_of_written_bytes() {
        let mut queue = OutputQueue::default();
        queue.push(&[0; 4096]);
        let room = queue.waiting.capacity();
        for _ in 0..10_000 {
            queue.write_once(|bytes| Ok(bytes.len().min(1000))).unwrap();
            queue.push(&vec![0; 4096 - queue.len()]);
        }
        assert_eq!((queue.len(), queue.waiting.capacity()), (4096, room));
    }

    #[test]
    fn a_write_error_keeps_the_queued_bytes() {
        let mut queue = OutputQueue::default();
        queue.push(b"abc");
        queue.write_once(|_| Err(io::ErrorKind::BrokenPipe.into())).unwrap_err();
        let mut shown = Vec::new();
        queue
            .write_once(|bytes| {
                shown.extend_from_slice(bytes);
                Ok(bytes.len())
            })
            .unwrap();
        assert_eq!((shown.as_slice(), queue.len()), (b"abc".as_slice(), 0));
    }
}
