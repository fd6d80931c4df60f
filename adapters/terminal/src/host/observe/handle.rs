//! The relay's handle to the thread that reads the screen: it never waits for output to be parsed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use events::Timestamp;

use super::{BYTES, CHUNKS, ToScreen};

/// The relay's handle to the thread.
#[derive(Debug)]
pub struct ScreenHandle {
    pub(super) to: Sender<ToScreen>,
    pub(super) waiting: Arc<AtomicUsize>,
    pub(super) skipped: Arc<AtomicU64>,
    /// Buffers whose output was parsed.
    pub(super) spent: Receiver<Vec<u8>>,
    pub(super) ended: Receiver<()>,
}

impl ScreenHandle {
    /// Passes on output of the program. If the thread cannot keep up, these bytes are skipped.
    pub fn output(&self, bytes: &[u8], at: Timestamp) {
        let waiting = self.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        let sent = waiting <= BYTES && self.to.len() <= CHUNKS && {
            let mut copy = self.spent.try_recv().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(bytes);
            self.to.try_send(ToScreen::Output(copy, at)).is_ok()
        };
        if !sent {
            self.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
            self.skipped.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
    }

    /// Sends another message; returns whether it was queued.
    pub fn try_send(&self, thing: ToScreen) -> bool {
        self.to.try_send(thing).is_ok()
    }

    /// Whether the thread has ended.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self.ended.try_recv(), Err(crossbeam_channel::TryRecvError::Disconnected))
    }

    /// The bytes that undo the modes the program left on; empty if the thread does not answer in time.
    #[must_use]
    pub fn restore(&self, within: Duration) -> Vec<u8> {
        let (reply, answer) = bounded(1);
        match self.to.send_timeout(ToScreen::Restore(reply), within) {
            Ok(()) => answer.recv_timeout(within).unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }

    /// Ends the thread and waits until the sent events are stored, at most this long.
    pub fn end(self, within: Duration) {
        let Self { to, ended, .. } = self;
        drop(to);
        match ended.recv_timeout(within) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {}
            Err(RecvTimeoutError::Timeout) => tracing::warn!("the server did not store all events before the timeout"),
        }
    }
}
