//! Delivery: a thread and a bounded queue for each channel, so that no channel waits for another.
//!
//! The outcome of a message is a [`Receipt`]: sent, failed after a number of attempts, or dropped. Every message gets
//! exactly one receipt. An attempt that may succeed later is repeated at growing intervals with the same id.

use std::{
    convert::Infallible,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use events::{MessageId, Timestamp};
use serde::Serialize;

use crate::{
    attempt::{Channel, RetryHint, Stopper},
    channel,
    config::{ConfigError, NotifySettings},
    context::{ChannelContext, Clock},
    message::OutgoingMessage,
};

/// Maximum number of messages queued for one channel.
pub const QUEUE_CAPACITY: usize = 64;
/// Maximum number of attempts per message.
pub const ATTEMPTS: u32 = 5;
/// Longest delay between the first and the second attempt, milliseconds; it doubles with each further attempt.
const BACKOFF_MS: u64 = 500;
/// Longest delay between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// The outcome of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Receipt {
    /// The message.
    pub message_id: MessageId,
    /// The causes of the message.
    pub causes: Vec<String>,
    /// The channel.
    pub channel: String,
    /// The time of the outcome.
    pub at: Timestamp,
    /// Its outcome.
    #[serde(flatten)]
    pub outcome: DeliveryOutcome,
}

/// The outcome of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum DeliveryOutcome {
    /// The channel accepted the message.
    Sent,
    /// All attempts failed.
    Failed {
        /// The error of the last attempt; safe to show, without secrets.
        error: String,
        /// Number of attempts.
        attempts: u32,
    },
    /// No attempt was made.
    Dropped {
        /// The reason.
        why: DropReason,
    },
}

/// The reason why a message was not tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// The channel's queue is full.
    QueueFull,
    /// The program is shutting down.
    Stopping,
    /// There is no such channel.
    NoChannel,
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::QueueFull => "queue_full",
            Self::Stopping => "stopping",
            Self::NoChannel => "no_channel",
        })
    }
}

/// Outcome counters of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChannelCounts {
    /// The channel.
    pub channel: String,
    /// Its type.
    pub kind: &'static str,
    /// Number of messages that were accepted.
    pub sent: u64,
    /// Number of messages that failed.
    pub failed: u64,
    /// Number of messages that were dropped.
    pub dropped: u64,
}

#[derive(Debug, Default)]
struct ChannelTally {
    sent: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

impl ChannelTally {
    fn count(&self, outcome: &DeliveryOutcome) {
        let counter = match outcome {
            DeliveryOutcome::Sent => &self.sent,
            DeliveryOutcome::Failed { .. } => &self.failed,
            DeliveryOutcome::Dropped { .. } => &self.dropped,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Receives the receipt of each message. Called on the threads of the channels; must not block.
pub type ReceiptSink = Arc<dyn Fn(Receipt) + Send + Sync>;

/// Sends messages, and owns all threads of the channels.
pub struct Delivery {
    threads: Vec<ChannelThread>,
    context: ChannelContext,
    on_receipt: ReceiptSink,
    /// Dropped to end all pauses.
    running: Sender<Infallible>,
    /// Set when no more attempts are made.
    over: Arc<AtomicBool>,
    /// Disconnected when all threads have ended.
    done: Receiver<Infallible>,
}

struct ChannelThread {
    name: String,
    kind: &'static str,
    queue: Sender<DeliveryJob>,
    tally: Arc<ChannelTally>,
    stopper: Option<Stopper>,
    thread: JoinHandle<()>,
}

struct DeliveryJob {
    message: OutgoingMessage,
    /// Also receives the receipt, for a test message.
    asker: Option<Sender<Receipt>>,
}

impl Delivery {
    /// Builds the channels and starts their threads. If a channel cannot work, the receipt of each message states the
    /// reason.
    ///
    /// # Errors
    /// If the settings cannot be used.
    pub fn start(
        settings: &NotifySettings,
        context: ChannelContext,
        on_receipt: ReceiptSink,
    ) -> Result<Self, StartError> {
        settings.check()?;
        let channels = settings.channels.iter().map(|channel| {
            let built = channel::build(channel, &settings.allow_hosts, &context);
            (channel.name().to_owned(), channel.kind(), built)
        });
        Self::begin(channels.collect(), context.clone(), on_receipt)
    }

    fn begin(
        channels: Vec<(String, &'static str, Box<dyn Channel>)>,
        context: ChannelContext,
        on_receipt: ReceiptSink,
    ) -> Result<Self, StartError> {
        let (running, paused) = bounded(0);
        let (finished, done) = bounded(0);
        let over = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for (name, kind, channel) in channels {
            let (queue, jobs) = bounded(QUEUE_CAPACITY);
            let tally = Arc::new(ChannelTally::default());
            let stopper = channel.stopper();
            let worker = ChannelWorker {
                name: name.clone(),
                channel,
                clock: context.clock.clone(),
                on_receipt: on_receipt.clone(),
                tally: tally.clone(),
                paused: paused.clone(),
                over: over.clone(),
            };
            let finished: Sender<Infallible> = finished.clone();
            let thread = std::thread::Builder::new()
                .name(format!("notify-{name}"))
                .spawn(move || {
                    worker.run(&jobs);
                    drop(finished);
                })
                .map_err(|error| StartError::Thread { channel: name.clone(), error })?;
            threads.push(ChannelThread { name, kind, queue, tally, stopper, thread });
        }
        Ok(Self { threads, context, on_receipt, running, over, done })
    }

    /// Queues a message for its channel and returns immediately; its receipt follows.
    pub fn send(&self, message: OutgoingMessage) {
        self.enqueue(message, None);
    }

    fn enqueue(&self, message: OutgoingMessage, asker: Option<Sender<Receipt>>) {
        let job = DeliveryJob { message, asker };
        let thread = self.threads.iter().find(|thread| thread.name == job.message.channel);
        let (why, job) = match thread {
            Some(thread) => match thread.queue.try_send(job) {
                Ok(()) => return,
                Err(TrySendError::Full(job)) => (DropReason::QueueFull, job),
                Err(TrySendError::Disconnected(job)) => (DropReason::Stopping, job),
            },
            None => (DropReason::NoChannel, job),
        };
        let outcome = DeliveryOutcome::Dropped { why };
        if let Some(thread) = thread {
            thread.tally.count(&outcome);
        }
        send_receipt(&self.on_receipt, job, (self.context.clock)(), outcome);
    }

    /// Sends a test message over a channel, and waits for its outcome; `None` if the outcome is not known in time.
    #[must_use]
    pub fn test(&self, channel: &str, within: Duration) -> Option<Receipt> {
        let message = OutgoingMessage::test(channel, (self.context.clock)());
        let (tell, told) = bounded(1);
        self.enqueue(message, Some(tell));
        told.recv_timeout(within).ok()
    }

    /// The number of messages of each channel, by outcome.
    #[must_use]
    pub fn counts(&self) -> Vec<ChannelCounts> {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.threads
            .iter()
            .map(|ChannelThread { name, kind, tally, .. }| ChannelCounts {
                channel: name.clone(),
                kind,
                sent: count(&tally.sent),
                failed: count(&tally.failed),
                dropped: count(&tally.dropped),
            })
            .collect()
    }

    /// Ends delivery: each waiting message is tried once more until the deadline, the others are dropped, and running
    /// attempts are interrupted. Returns whether all threads ended.
    pub fn stop(self, deadline: Duration) -> bool {
        const AFTER: Duration = Duration::from_millis(500);
        let Self { threads, running, over, done, .. } = self;
        drop(running);
        let mut rest = Vec::new();
        for ChannelThread { queue, stopper, thread, .. } in threads {
            drop(queue);
            rest.push((stopper, thread));
        }
        let ended = |within| matches!(done.recv_timeout(within), Err(RecvTimeoutError::Disconnected));
        let in_time = ended(deadline);
        if !in_time {
            over.store(true, Ordering::Relaxed);
            rest.iter_mut().filter_map(|(stopper, _)| stopper.take()).for_each(|stop| stop());
            if !ended(AFTER) {
                return false;
            }
        }
        rest.into_iter().all(|(_, thread)| thread.join().is_ok())
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery").field("channels", &self.counts()).finish_non_exhaustive()
    }
}

/// The reason why delivery could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The thread of a channel could not be started.
    #[error("cannot start the thread of channel `{channel}`: {error}")]
    Thread {
        /// The channel.
        channel: String,
        /// The error of the operating system.
        error: std::io::Error,
    },
}

/// The reasons why channels cannot work, as far as they can be determined without sending anything.
#[must_use]
pub fn troubles(settings: &NotifySettings, context: &ChannelContext) -> Vec<(String, String)> {
    let trouble = |channel| channel::trouble(channel, &settings.allow_hosts, context);
    settings.channels.iter().filter_map(|c| Some((c.name().to_owned(), trouble(c)?))).collect()
}

/// The thread of one channel.
struct ChannelWorker {
    name: String,
    channel: Box<dyn Channel>,
    clock: Clock,
    on_receipt: ReceiptSink,
    tally: Arc<ChannelTally>,
    /// Disconnected when the program shuts down.
    paused: Receiver<Infallible>,
    over: Arc<AtomicBool>,
}

impl ChannelWorker {
    fn run(mut self, jobs: &Receiver<DeliveryJob>) {
        for job in jobs {
            let outcome = if self.over.load(Ordering::Relaxed) {
                DeliveryOutcome::Dropped { why: DropReason::Stopping }
            } else {
                self.attempts(&job.message)
            };
            self.tally.count(&outcome);
            send_receipt(&self.on_receipt, job, (self.clock)(), outcome);
        }
    }

    fn attempts(&mut self, message: &OutgoingMessage) -> DeliveryOutcome {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let Err(failure) = self.channel.deliver(message, (self.clock)()) else { return DeliveryOutcome::Sent };
            let pause = match failure.again {
                RetryHint::Never => None,
                RetryHint::Soon => Some(backoff(&message.id, attempts)),
                // If the other side asks for a longer delay, no further attempt is made.
                RetryHint::After(pause) => Some(pause).filter(|pause| *pause <= LONGEST_PAUSE),
            };
            let failed = DeliveryOutcome::Failed { error: failure.error, attempts };
            let Some(pause) = pause.filter(|_| attempts < ATTEMPTS) else { return failed };
            match self.paused.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return failed,
                Ok(never) => match never {},
            }
        }
    }
}

impl fmt::Debug for ChannelWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelWorker").field("name", &self.name).finish_non_exhaustive()
    }
}

fn send_receipt(on_receipt: &ReceiptSink, job: DeliveryJob, at: Timestamp, outcome: DeliveryOutcome) {
    let DeliveryJob { message, asker } = job;
    let causes = message.causes();
    let receipt = Receipt { message_id: message.id, causes, channel: message.channel, at, outcome };
    if let Some(asker) = asker {
        // The receiver may have timed out.
        let _ = asker.try_send(receipt.clone());
    }
    on_receipt(receipt);
}

/// Delay after an attempt: between half and all of the maximum, different for each message and attempt, so that retries
/// are spread.
fn backoff(id: &MessageId, attempts: u32) -> Duration {
    let most = BACKOFF_MS << attempts.saturating_sub(1).min(8);
    let drawn = blake3::hash(format!("{id}/{attempts}").as_bytes()).as_bytes()[0];
    Duration::from_millis(most / 2 + most / 2 * u64::from(drawn) / 255).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests;
