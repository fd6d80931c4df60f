//! Delivers frames from ingest to the streams.
//!
//! Publishing puts a frame in the inbox and wakes one task, [`Feed::relay_frames`], which puts the frame in the queue
//! of each stream that wants it. Everything is bounded. A full queue or inbox breaks the stream: its queue is emptied,
//! the stream is notified, and it restarts with a snapshot.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

use events::SessionId;
use tokio::sync::Notify;

use crate::{Frame, frame::FrameKind, locks::lock};

/// Maximum number of frames in the inbox.
const INBOX_FRAMES: usize = 16_384;
/// Maximum size of the frames in the inbox, bytes.
const INBOX_BYTES: usize = 8 << 20;
/// Number of deliveries after which the task yields to others.
const BREATH: usize = 4096;

/// The frames a stream wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interest {
    /// All frames.
    All,
    /// The frames of these sessions.
    Sessions(Vec<SessionId>),
    /// All frames about states, but events and deltas only of these sessions.
    StatesAndEventsOf(Vec<SessionId>),
}

impl Interest {
    /// The sessions the stream is limited to; `None` for all.
    #[must_use]
    pub fn sessions(&self) -> Option<&[SessionId]> {
        match self {
            Self::All | Self::StatesAndEventsOf(_) => None,
            Self::Sessions(ids) => Some(ids),
        }
    }

    /// Whether the stream wants the events of a session.
    #[must_use]
    pub fn wants_events_of(&self, session: SessionId) -> bool {
        match self {
            Self::All => true,
            Self::Sessions(ids) | Self::StatesAndEventsOf(ids) => ids.contains(&session),
        }
    }

    fn wants(&self, frame: &Frame) -> bool {
        match frame.kind {
            FrameKind::Event(_) | FrameKind::Delta => self.wants_events_of(frame.session),
            FrameKind::Status(_) | FrameKind::Approval | FrameKind::Finding => {
                self.sessions().is_none_or(|ids| ids.contains(&frame.session))
            }
        }
    }
}

/// The current point of the feed. Every frame up to this order was published before, so rows read later, and the log up
/// to `position`, include its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// The order of the last frame.
    pub order: u64,
    /// The last committed position.
    pub position: u64,
}

/// Why a stream broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedEnd {
    /// The stream did not receive its frames in time.
    Slow,
    /// Events were committed without being published.
    Skipped,
}

/// Counters for the metrics.
#[derive(Debug, Clone, Copy, Default)]
pub struct FeedCounts {
    /// Open streams and waits.
    pub subscribers: usize,
    /// Number of published frames and commits.
    pub published: u64,
    /// Number of frames queued for streams.
    pub delivered: u64,
    /// Number of times a stream was broken.
    pub broken: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Feed {
    inbox: Mutex<Inbox>,
    arrived: Notify,
    streams: Mutex<Streams>,
    subscribers: AtomicUsize,
    delivered: AtomicU64,
    broken: AtomicU64,
}

#[derive(Debug, Default)]
struct Inbox {
    mark: Mark,
    frames: Vec<Arc<Frame>>,
    bytes: usize,
    /// The reason for which all streams must be broken.
    broken: Option<FeedEnd>,
    /// Number of streams that want the events of all sessions.
    events_of_all: usize,
    /// Number of streams that want the events of single sessions; absent means 0.
    events_of: HashMap<SessionId, usize>,
}

impl Inbox {
    fn wants_events_of(&self, session: SessionId) -> bool {
        self.events_of_all > 0 || self.events_of.contains_key(&session)
    }

    fn join(&mut self, interest: &Interest) {
        match interest {
            Interest::All => self.events_of_all += 1,
            Interest::Sessions(ids) | Interest::StatesAndEventsOf(ids) => {
                ids.iter().for_each(|id| *self.events_of.entry(*id).or_default() += 1);
            }
        }
    }

    fn leave(&mut self, interest: &Interest) {
        match interest {
            Interest::All => self.events_of_all -= 1,
            Interest::Sessions(ids) | Interest::StatesAndEventsOf(ids) => {
                for id in ids {
                    if let Entry::Occupied(mut streams) = self.events_of.entry(*id) {
                        *streams.get_mut() -= 1;
                        if *streams.get() == 0 {
                            streams.remove();
                        }
                    }
                }
            }
        }
    }
}

#[derive(Debug, Default)]
struct Streams {
    next: u64,
    all: HashMap<u64, Arc<Mailbox>>,
    by_session: HashMap<SessionId, HashMap<u64, Arc<Mailbox>>>,
}

impl Feed {
    pub(crate) fn publish(&self, mut frame: Frame) {
        let mut inbox = lock(&self.inbox);
        inbox.mark.order += 1;
        if let Some(position) = frame.position {
            inbox.mark.position = inbox.mark.position.max(position);
        }
        if self.subscribers.load(Ordering::Relaxed) == 0 {
            return;
        }
        frame.order = inbox.mark.order;
        if inbox.frames.len() >= INBOX_FRAMES || inbox.bytes >= INBOX_BYTES {
            inbox.frames.clear();
            inbox.bytes = 0;
            inbox.broken = Some(FeedEnd::Slow);
        }
        inbox.bytes += frame.weight();
        inbox.frames.push(Arc::new(frame));
        drop(inbox);
        self.arrived.notify_one();
    }

    /// Publishes a committed event; encodes it only if a stream wants it.
    pub(crate) fn publish_event(&self, position: u64, session: SessionId, frame: impl FnOnce() -> Option<Frame>) {
        let mut inbox = lock(&self.inbox);
        if !inbox.wants_events_of(session) {
            inbox.mark.order += 1;
            inbox.mark.position = inbox.mark.position.max(position);
            return;
        }
        drop(inbox);
        if let Some(frame) = frame() {
            self.publish(frame);
        }
    }

    /// Whether any stream wants events.
    pub(crate) fn wants_events(&self) -> bool {
        let inbox = lock(&self.inbox);
        inbox.events_of_all > 0 || !inbox.events_of.is_empty()
    }

    /// Publishes a frame that is never committed, unless many frames are already waiting. Returns true if it was
    /// dropped.
    pub(crate) fn publish_delta(&self, frame: Frame) -> bool {
        let inbox = lock(&self.inbox);
        let crowded = inbox.frames.len() >= INBOX_FRAMES / 2 || inbox.bytes >= INBOX_BYTES / 2;
        drop(inbox);
        if !crowded {
            self.publish(frame);
        }
        crowded
    }

    pub(crate) fn advance(&self, position: u64) {
        let mut inbox = lock(&self.inbox);
        if position <= inbox.mark.position {
            return;
        }
        inbox.mark.position = position;
        inbox.mark.order += 1;
        if self.subscribers.load(Ordering::Relaxed) == 0 {
            return;
        }
        inbox.frames.clear();
        inbox.bytes = 0;
        inbox.broken.get_or_insert(FeedEnd::Skipped);
        drop(inbox);
        self.arrived.notify_one();
    }

    pub(crate) fn mark(&self) -> Mark {
        lock(&self.inbox).mark
    }

    pub(crate) fn subscribers(&self) -> usize {
        self.subscribers.load(Ordering::Relaxed)
    }

    pub(crate) fn counts(&self) -> FeedCounts {
        FeedCounts {
            subscribers: self.subscribers(),
            published: self.mark().order,
            delivered: self.delivered.load(Ordering::Relaxed),
            broken: self.broken.load(Ordering::Relaxed),
        }
    }

    /// Waits for frames and puts them in the queues of the streams that want them.
    pub(crate) async fn relay_frames(&self) {
        self.arrived.notified().await;
        let (frames, broken) = {
            let mut inbox = lock(&self.inbox);
            inbox.bytes = 0;
            (std::mem::take(&mut inbox.frames), inbox.broken.take())
        };
        if let Some(reason) = broken {
            self.break_all(reason);
        }
        let mut since_breath = 0;
        for frame in frames {
            let delivered = self.deliver(&frame);
            self.delivered.fetch_add(delivered as u64, Ordering::Relaxed);
            since_breath += delivered + 1;
            if since_breath >= BREATH {
                since_breath = 0;
                tokio::task::yield_now().await;
            }
        }
    }

    fn deliver(&self, frame: &Arc<Frame>) -> usize {
        let streams = lock(&self.streams);
        let of_session = streams.by_session.get(&frame.session).into_iter().flat_map(HashMap::values);
        let mut delivered = 0;
        for mailbox in streams.all.values().chain(of_session).filter(|mailbox| mailbox.interest.wants(frame)) {
            if mailbox.push(frame) {
                delivered += 1;
            } else {
                self.broken.fetch_add(1, Ordering::Relaxed);
            }
        }
        delivered
    }

    fn break_all(&self, reason: FeedEnd) {
        let streams = lock(&self.streams);
        let of_sessions = streams.by_session.values().flat_map(HashMap::values);
        for mailbox in streams.all.values().chain(of_sessions) {
            mailbox.interrupt(reason);
            self.broken.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn add(&self, mailbox: &Arc<Mailbox>) -> u64 {
        let mut streams = lock(&self.streams);
        streams.next += 1;
        let id = streams.next;
        match mailbox.interest.sessions() {
            None => {
                streams.all.insert(id, Arc::clone(mailbox));
            }
            Some(sessions) => {
                for session in sessions {
                    streams.by_session.entry(*session).or_default().insert(id, Arc::clone(mailbox));
                }
            }
        }
        id
    }

    fn drop_out(&self, id: u64, interest: &Interest) {
        let mut streams = lock(&self.streams);
        match interest.sessions() {
            None => {
                streams.all.remove(&id);
            }
            Some(sessions) => {
                for session in sessions {
                    if let Some(of_session) = streams.by_session.get_mut(session) {
                        of_session.remove(&id);
                        if of_session.is_empty() {
                            streams.by_session.remove(session);
                        }
                    }
                }
            }
        }
    }
}

/// The queue of one stream, emptied by one task.
#[derive(Debug)]
struct Mailbox {
    interest: Interest,
    queue: Mutex<Queue>,
    max_frames: usize,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Arc<Frame>>,
    bytes: usize,
    broken: Option<FeedEnd>,
    /// The task that waits for frames.
    waiting: Option<Waker>,
}

impl Mailbox {
    /// Queues a frame; false if that broke the stream.
    fn push(&self, frame: &Arc<Frame>) -> bool {
        let mut queue = lock(&self.queue);
        if queue.broken.is_some() {
            return true;
        }
        // A slow stream gets stored content, but no deltas.
        let crowded = queue.frames.len() >= self.max_frames / 2 || queue.bytes + frame.weight() > self.max_bytes / 2;
        if frame.kind == FrameKind::Delta && crowded {
            return true;
        }
        let fits = queue.frames.len() < self.max_frames && queue.bytes + frame.weight() <= self.max_bytes;
        if fits {
            queue.bytes += frame.weight();
            queue.frames.push_back(Arc::clone(frame));
        } else {
            queue.interrupt(FeedEnd::Slow);
        }
        let waiting = queue.waiting.take();
        drop(queue);
        if let Some(task) = waiting {
            task.wake();
        }
        fits
    }

    fn interrupt(&self, reason: FeedEnd) {
        let mut queue = lock(&self.queue);
        queue.interrupt(reason);
        let waiting = queue.waiting.take();
        drop(queue);
        if let Some(task) = waiting {
            task.wake();
        }
    }

    /// Removes all frames from the queue, or registers the task to be woken when some arrive.
    fn poll_take(&self, into: &mut VecDeque<Arc<Frame>>, context: &mut Context<'_>) -> Poll<Result<(), FeedEnd>> {
        let mut queue = lock(&self.queue);
        if let Some(reason) = queue.broken {
            return Poll::Ready(Err(reason));
        }
        if queue.frames.is_empty() {
            match &mut queue.waiting {
                Some(task) => task.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
            return Poll::Pending;
        }
        queue.bytes = 0;
        if into.is_empty() {
            std::mem::swap(&mut queue.frames, into);
        } else {
            into.append(&mut queue.frames);
        }
        Poll::Ready(Ok(()))
    }
}

impl Queue {
    /// Empties the queue; the first reason is kept.
    fn interrupt(&mut self, reason: FeedEnd) {
        self.frames = VecDeque::new();
        self.bytes = 0;
        self.broken.get_or_insert(reason);
    }
}

/// A subscription of a stream. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Subscription {
    live_view: Arc<crate::Shared>,
    id: u64,
    mailbox: Arc<Mailbox>,
}

impl crate::LiveView {
    /// Subscribes a stream, with a queue of at most this many frames and bytes.
    #[must_use]
    pub fn subscribe(&self, interest: Interest, max_frames: usize, max_bytes: usize) -> Subscription {
        let mailbox = Arc::new(Mailbox { interest, queue: Mutex::default(), max_frames, max_bytes });
        let feed = &self.0.feed;
        // Under the inbox lock: every frame with a later order sees the new subscriber.
        let mut inbox = lock(&feed.inbox);
        feed.subscribers.fetch_add(1, Ordering::Relaxed);
        inbox.join(&mailbox.interest);
        drop(inbox);
        let id = feed.add(&mailbox);
        Subscription { live_view: Arc::clone(&self.0), id, mailbox }
    }
}

impl Subscription {
    /// Waits for frames and removes them from the queue. A break empties the queue, and nothing is queued until
    /// [`Subscription::mend`]. Cancel safe.
    ///
    /// # Errors
    /// When the stream broke.
    pub async fn take(&self, into: &mut VecDeque<Arc<Frame>>) -> Result<(), FeedEnd> {
        poll_fn(|context| self.mailbox.poll_take(into, context)).await
    }

    /// Whether the stream is broken.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        lock(&self.mailbox.queue).broken.is_some()
    }

    /// Resumes after a break. A [`Mark`] read afterwards covers the missed frames.
    pub fn mend(&self) {
        lock(&self.mailbox.queue).broken = None;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.live_view.feed.drop_out(self.id, &self.mailbox.interest);
        lock(&self.live_view.feed.inbox).leave(&self.mailbox.interest);
        self.live_view.feed.subscribers.fetch_sub(1, Ordering::Relaxed);
    }
}
