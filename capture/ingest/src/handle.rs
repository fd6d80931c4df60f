//! The bounded channel into ingest. Senders, threads and tasks alike, wait in order of arrival, so history cannot
//! starve live input. Batches are also limited by size.
//!
//! When the [`Inputs`] are dropped, pending inputs and their reply channels are dropped with them, so a caller that
//! waits for a reply learns that ingest has stopped. A plain flume channel would keep them until the last sender is
//! dropped.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use flume::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, TrySendError};
use tokio::sync::oneshot;

use super::IngestInput;
use room::Room;

pub(super) mod room;

/// Sends into the ingest channel. Clones share it.
#[derive(Clone)]
pub struct IngestHandle {
    sender: Sender<IngestInput>,
    end: Arc<ReceivingEnd>,
}

/// The receiving end: inputs that ingest has not received yet.
pub struct Inputs(Arc<ReceivingEnd>);

/// Shared with the senders, which drain it after the receiver is gone.
struct ReceivingEnd {
    is_dropped: AtomicBool,
    receiver: Receiver<IngestInput>,
    room: Arc<Room>,
}

/// Ingest has stopped: the input is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("ingest has stopped")]
pub struct IngestStopped;

/// Why an input was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// The channel is full.
    #[error("ingest is busy")]
    Full,
    /// Ingest has stopped.
    #[error(transparent)]
    Stopped(#[from] IngestStopped),
}

/// Creates a channel into ingest with room for `capacity` inputs.
#[must_use]
pub fn channel(capacity: usize) -> (IngestHandle, Inputs) {
    let (sender, receiver) = flume::bounded(capacity);
    let end = Arc::new(ReceivingEnd { is_dropped: AtomicBool::new(false), receiver, room: Arc::default() });
    (IngestHandle { sender, end: Arc::clone(&end) }, Inputs(end))
}

impl IngestHandle {
    /// Sends an input. Blocks the thread while the channel is full or the waiting batches use up their room.
    ///
    /// # Errors
    /// When ingest has stopped.
    pub fn send(&self, mut input: IngestInput) -> Result<(), IngestStopped> {
        if let IngestInput::Batch(batch) = &mut input {
            batch.room = Some(self.end.room.take(batch.size()));
        }
        self.sender.send(input).map_err(|_| IngestStopped)?;
        self.end.check()
    }

    /// Sends an input; the task waits while the channel is full. The input may have been sent even if the future is
    /// dropped before it completes.
    ///
    /// # Errors
    /// When ingest has stopped.
    pub async fn send_async(&self, input: IngestInput) -> Result<(), IngestStopped> {
        self.sender.send_async(input).await.map_err(|_| IngestStopped)?;
        self.end.check()
    }

    /// Waits until everything sent earlier is committed.
    ///
    /// # Errors
    /// When ingest has stopped.
    pub async fn commit(&self) -> Result<(), IngestStopped> {
        let (done, committed) = oneshot::channel();
        self.send_async(IngestInput::Commit(done)).await?;
        committed.await.map_err(|_| IngestStopped)
    }

    /// Sends an input if there is room now.
    ///
    /// # Errors
    /// When the channel is full, or ingest has stopped.
    pub fn try_send(&self, input: IngestInput) -> Result<(), NotSent> {
        self.sender.try_send(input).map_err(|error| match error {
            TrySendError::Full(_) => NotSent::Full,
            TrySendError::Disconnected(_) => NotSent::Stopped(IngestStopped),
        })?;
        Ok(self.end.check()?)
    }

    /// Sends an input; blocks the thread while the channel is full, but no longer than `timeout`.
    ///
    /// # Errors
    /// When there is no room in time, or ingest has stopped.
    pub fn send_timeout(&self, input: IngestInput, timeout: Duration) -> Result<(), NotSent> {
        self.sender.send_timeout(input, timeout).map_err(|error| match error {
            SendTimeoutError::Timeout(_) => NotSent::Full,
            SendTimeoutError::Disconnected(_) => NotSent::Stopped(IngestStopped),
        })?;
        Ok(self.end.check()?)
    }
}

impl Inputs {
    /// Waits up to `timeout` for the next input; `None` on timeout.
    ///
    /// # Errors
    /// When all senders are gone.
    pub fn recv(&self, timeout: Duration) -> Result<Option<IngestInput>, flume::RecvError> {
        match self.0.receiver.recv_timeout(timeout) {
            Ok(input) => Ok(Some(taken(input))),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(flume::RecvError::Disconnected),
        }
    }

    /// The inputs that are waiting now.
    pub fn try_iter(&self) -> impl Iterator<Item = IngestInput> {
        self.0.receiver.try_iter().map(taken)
    }
}

/// Releases the room of an input that was received.
fn taken(mut input: IngestInput) -> IngestInput {
    if let IngestInput::Batch(batch) = &mut input {
        batch.room = None;
    }
    input
}

impl Drop for Inputs {
    fn drop(&mut self) {
        self.0.is_dropped.store(true, Ordering::SeqCst);
        self.0.drain();
    }
}

impl ReceivingEnd {
    /// Checks after a send that the receiver still exists, and otherwise drains the channel. Either the sender sees the
    /// flag, or [`Inputs`] were dropped later and drained the input themselves.
    fn check(&self) -> Result<(), IngestStopped> {
        if self.is_dropped.load(Ordering::SeqCst) {
            self.drain();
            return Err(IngestStopped);
        }
        Ok(())
    }

    /// Makes room for waiting senders too, whose inputs are then dropped as well.
    fn drain(&self) {
        while self.receiver.drain().next().is_some() {}
    }
}

#[cfg(test)]
mod tests;
