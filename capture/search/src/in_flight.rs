//! Limits the memory of documents that wait for the writing threads.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

/// Maximum bytes of waiting texts.
const BYTES: usize = 4 << 20;
/// Longest wait for room. After that the writing threads may have ended; sending the next document detects this.
const WAIT: Duration = Duration::from_secs(10);

/// Counts the waiting bytes. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight(Arc<(Mutex<usize>, Condvar)>);

/// Room for some bytes; released on drop.
#[derive(Debug)]
pub(crate) struct Permit {
    bytes: usize,
    /// Whether there was no room in time.
    pub(crate) is_late: bool,
    of: InFlight,
}

impl InFlight {
    /// Waits for room for `bytes`.
    pub(crate) fn enter(&self, bytes: usize) -> Permit {
        let (count, freed) = &*self.0;
        let guard = count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = freed.wait_timeout_while(guard, WAIT, |count| *count > 0 && *count + bytes > BYTES);
        let (mut count, wait) = waited.unwrap_or_else(PoisonError::into_inner);
        *count += bytes;
        Permit { bytes, is_late: wait.timed_out(), of: self.clone() }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let (count, freed) = &*self.of.0;
        *count.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_over_the_limit_waits_for_room() {
        let flight = InFlight::default();
        let first = flight.enter(BYTES);
        let other = flight.clone();
        let waiting = std::thread::spawn(move || drop(other.enter(1)));
        drop(first);
        waiting.join().unwrap();
        drop(flight.enter(10 * BYTES));
        assert_eq!(*flight.0.0.lock().unwrap(), 0);
    }
}
