//! Records a terminal's output: the interface of a recording format, and the thread that writes to it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use events::Timestamp;
use host_protocol::screen::Size;

/// Receives a recording. Called on one dedicated thread, one call after another.
pub trait RecordingSink: Send {
    /// The program wrote output.
    fn output(&mut self, at: Timestamp, bytes: &[u8]);
    /// The terminal has a new size.
    fn resize(&mut self, at: Timestamp, size: Size);
    /// This many bytes are missing here: they arrived faster than they could be recorded.
    fn gap(&mut self, at: Timestamp, bytes: u64);
    /// Nothing happened for a second.
    fn quiet(&mut self);
    /// The program ended, with this exit status as a shell would report it.
    fn end(&mut self, at: Timestamp, code: Option<i32>);
}

/// Maximum number of messages queued for the recorder.
const THINGS: usize = 4096;
/// Maximum bytes queued for the recorder.
const BYTES: usize = 8 << 20;
/// Silence after which [`RecordingSink::quiet`] is called.
const QUIET: Duration = Duration::from_secs(1);
/// Maximum wait for the end of a recording.
const END_WITHIN: Duration = Duration::from_secs(2);

enum RecorderMessage {
    Output(Timestamp, Vec<u8>),
    Resize(Timestamp, Size),
    End(Timestamp, Option<i32>),
}

/// Feeds a [`RecordingSink`] without ever waiting for it.
#[derive(Debug)]
pub struct Recorder {
    things: Sender<RecorderMessage>,
    waiting: Arc<AtomicUsize>,
    missed: Arc<AtomicU64>,
    ended: Receiver<()>,
    _thread: JoinHandle<()>,
}

impl Recorder {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the thread cannot be created.
    pub fn start(mut sink: Box<dyn RecordingSink>) -> std::io::Result<Self> {
        let (things, incoming) = bounded(THINGS);
        let (end, ended) = bounded(1);
        let (waiting, missed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
        let (left, lost) = (Arc::clone(&waiting), Arc::clone(&missed));
        let thread = std::thread::Builder::new().name("record".into()).spawn(move || {
            loop {
                let thing = match incoming.recv_timeout(QUIET) {
                    Ok(thing) => thing,
                    Err(RecvTimeoutError::Timeout) => {
                        sink.quiet();
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                };
                // The bytes were lost before this message, or slightly later: the gap is reported as soon as it is
                // known.
                let gap = lost.swap(0, Ordering::Relaxed);
                match thing {
                    RecorderMessage::Output(at, bytes) => {
                        left.fetch_sub(bytes.len(), Ordering::Relaxed);
                        if gap > 0 {
                            sink.gap(at, gap);
                        }
                        sink.output(at, &bytes);
                    }
                    RecorderMessage::Resize(at, size) => sink.resize(at, size),
                    RecorderMessage::End(at, code) => {
                        if gap > 0 {
                            sink.gap(at, gap);
                        }
                        sink.end(at, code);
                        end.try_send(()).ok();
                        return;
                    }
                }
            }
        })?;
        Ok(Self { things, waiting, missed, ended, _thread: thread })
    }

    /// The program wrote output.
    pub fn output(&self, at: Timestamp, bytes: &[u8]) {
        // Count before sending, or the other thread would subtract bytes that were not added yet.
        let waiting = self.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        if waiting > BYTES || self.things.try_send(RecorderMessage::Output(at, bytes.to_vec())).is_err() {
            self.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
            self.missed.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
    }

    /// The terminal has a new size.
    pub fn resize(&self, at: Timestamp, size: Size) {
        self.things.try_send(RecorderMessage::Resize(at, size)).ok();
    }

    /// The program ended; waits a short time until the recording is complete.
    pub fn end(self, at: Timestamp, code: Option<i32>) {
        if self.things.send_timeout(RecorderMessage::End(at, code), END_WITHIN).is_ok() {
            self.ended.recv_timeout(END_WITHIN).ok();
        }
    }
}
