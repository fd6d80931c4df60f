//! Follows Codex's shared daemon as a live source of its threads' status.
//!
//! Plain `codex` uses a shared daemon (`codex app-server`), whose socket below the home speaks WebSocket and sends a
//! message for each change of a thread's status. [`Daemons::start`] follows the daemons of all homes on one thread and
//! reports claims of the source `protocol`.
//!
//! The follower is passive. It identifies itself, asks once for the loaded threads and their status, and sends nothing
//! else (`wire::DaemonRequest` has no other messages): it does not subscribe to threads, since subscribers are asked
//! for permission, and does not answer requests.
//!
//! A daemon takes its name from its first client. Therefore a new socket is left alone until the program that started
//! the daemon has connected.
//!
//! `wire` defines the messages, `session` interprets them, `link` is one connection, `socket` finds the socket.

mod link;
mod session;
mod socket;
#[cfg(test)]
mod tests;
mod timing;
mod wire;

use std::{
    io,
    os::fd::AsFd,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, bounded};
use events::{NewEvent, Timestamp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use agents::Stopped;
use link::DaemonConnection;
use processes::wake;
pub use session::PROVIDER;
pub use timing::Timing;

/// Maximum number of unknown threads queued to be reported again.
const STRANGERS: usize = 256;
/// How long the claim of a thread without a known transcript is repeated, in ms.
const AGAIN_MS: i64 = 30_000;
/// Interval between repetitions.
const AGAIN_EVERY: Duration = Duration::from_millis(250);

/// What the follower reports.
#[derive(Debug)]
pub enum DaemonEvent {
    /// Claims, oldest first.
    Claims(Vec<NewEvent>, UnknownThreads),
    /// Every daemon has been searched for once: claims made before the start no longer apply to threads other than
    /// these.
    Only(Vec<Arc<str>>),
}

/// Receives threads without a known session; their claims are repeated for a while.
#[derive(Debug, Clone)]
pub struct UnknownThreads(Sender<Arc<str>>, wake::Wake);

impl UnknownThreads {
    /// Asks for the claim of this thread to be repeated.
    pub fn report(&self, thread: Arc<str>) {
        // If the channel is full, the claim is not repeated.
        self.0.try_send(thread).ok();
        self.1.wake();
    }
}

/// The health of the follower.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DaemonHealth {
    /// Whether a daemon's socket was ever seen.
    pub seen: bool,
    /// Number of connected daemons.
    pub connected: u64,
    /// Number of messages received.
    pub messages: u64,
    /// When the last message was received.
    pub last_at: Option<Timestamp>,
    /// Number of messages not understood and of failed connections.
    pub errors: u64,
    /// Why a daemon is not connected, or the last message not understood.
    pub trouble: Option<String>,
}

/// The thread that follows the daemons.
#[derive(Debug)]
pub struct Daemons {
    stop: Arc<AtomicBool>,
    wake: wake::Wake,
    health: HealthHandle,
    thread: JoinHandle<()>,
}

/// Gives access to the health.
#[derive(Debug, Clone, Default)]
pub struct HealthHandle(Arc<Mutex<DaemonHealth>>);

impl HealthHandle {
    /// The current health.
    #[must_use]
    pub fn get(&self) -> DaemonHealth {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, DaemonHealth> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Daemons {
    /// Follows the daemons of these homes; `clock` reads the wall clock. Events are passed to `sink`, which may block.
    ///
    /// # Errors
    /// If the thread or a descriptor cannot be created.
    pub fn start<C, S>(homes: Vec<PathBuf>, timing: Timing, clock: C, sink: S) -> io::Result<Self>
    where
        C: Fn() -> Timestamp + Send + 'static,
        S: FnMut(DaemonEvent) -> Result<(), Stopped> + Send + 'static,
    {
        let (wake, woken) = wake::pair()?;
        let (strangers, strange) = bounded(STRANGERS);
        let health = HealthHandle::default();
        let stop = Arc::new(AtomicBool::new(false));
        let start = Instant::now();
        let follower = DaemonFollower {
            links: homes.into_iter().map(|home| DaemonConnection::new(home, timing, start)).collect(),
            settled: false,
            waiting: Vec::new(),
            strange,
            strangers: UnknownThreads(strangers, wake.clone()),
            offer_due: start,
            health: health.clone(),
            stop: Arc::clone(&stop),
            woken,
            clock,
            sink,
        };
        let thread = std::thread::Builder::new().name("codex-daemon".into()).spawn(move || follower.run())?;
        Ok(Self { stop, wake, health, thread })
    }

    /// A handle to the follower's health.
    #[must_use]
    pub fn health(&self) -> HealthHandle {
        self.health.clone()
    }

    /// Stops the thread and waits for it. Its claims remain, since the daemon continues.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake.wake();
        if self.thread.join().is_err() {
            tracing::error!("the thread that follows the Codex daemon panicked");
        }
    }
}

struct DaemonFollower<C, S> {
    links: Vec<DaemonConnection>,
    /// Whether [`DaemonEvent::Only`] was reported.
    settled: bool,
    /// Threads without a known session when a notification named them.
    waiting: Vec<Arc<str>>,
    strange: Receiver<Arc<str>>,
    strangers: UnknownThreads,
    /// When the claims of waiting threads are reported again.
    offer_due: Instant,
    health: HealthHandle,
    stop: Arc<AtomicBool>,
    woken: wake::WakeReceiver,
    clock: C,
    sink: S,
}

impl<C, S> DaemonFollower<C, S>
where
    C: Fn() -> Timestamp,
    S: FnMut(DaemonEvent) -> Result<(), Stopped>,
{
    fn run(mut self) {
        let mut more = false;
        while !self.stop.load(Ordering::Relaxed) {
            self.wait(more);
            more = match self.round() {
                Ok(more) => more,
                Err(Stopped) => return,
            };
        }
    }

    /// Waits until a socket is ready, an action is due, or the thread is to stop.
    fn wait(&self, more: bool) {
        let now = Instant::now();
        let again = if self.waiting.is_empty() { None } else { Some(self.offer_due) };
        let due = self.links.iter().map(DaemonConnection::due).chain(again).min();
        let wait = if more { Some(Duration::ZERO) } else { due.map(|due| due.saturating_duration_since(now)) };
        // `poll` has a resolution of milliseconds; rounding down would turn the last one into a busy wait.
        let wait = wait.map(|wait| if wait.is_zero() { wait } else { wait + Duration::from_millis(1) });
        let timeout = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let sockets = self.links.iter().filter_map(DaemonConnection::socket);
        let mut fds: Vec<PollFd<'_>> = std::iter::once(self.woken.as_fd())
            .chain(sockets)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        // An interrupt is treated like a wake-up.
        poll(&mut fds, timeout.as_ref()).ok();
    }

    /// Handles every home once; returns whether there is more to read at once.
    fn round(&mut self) -> Result<bool, Stopped> {
        self.woken.drain();
        let now = (self.clock)();
        let (mut events, mut more) = (Vec::new(), false);
        let (mut messages, mut errors) = (0, 0);
        for link in &mut self.links {
            let turn = link.turn(now, Instant::now());
            events.extend(turn.events);
            messages += turn.messages;
            errors += turn.errors;
            more |= turn.more;
        }
        self.report(now, messages, errors);
        self.offer_again(now, &mut events);
        if !events.is_empty() {
            (self.sink)(DaemonEvent::Claims(events, self.strangers.clone()))?;
        }
        if !self.settled && self.links.iter().all(|link| link.settled) {
            self.settled = true;
            let threads = self.links.iter().flat_map(DaemonConnection::threads).cloned().collect();
            (self.sink)(DaemonEvent::Only(threads))?;
        }
        Ok(more)
    }

    /// Repeats valid claims of threads whose transcript had not been found yet.
    fn offer_again(&mut self, now: Timestamp, events: &mut Vec<NewEvent>) {
        self.waiting.extend(self.strange.try_iter());
        let instant = Instant::now();
        if self.waiting.is_empty() || instant < self.offer_due {
            return;
        }
        self.offer_due = instant + AGAIN_EVERY;
        for thread in std::mem::take(&mut self.waiting) {
            let told = events.iter().any(|event| event.provider_session_id == thread);
            let event = self.links.iter().find_map(|link| link.again(&thread));
            let recent = event.filter(|event| now.since_ms(event.observed_at) < AGAIN_MS);
            events.extend(recent.filter(|_| !told).cloned());
        }
    }

    fn report(&self, now: Timestamp, messages: u64, errors: u64) {
        let mut health = self.health.lock();
        health.seen = self.links.iter().any(|link| link.seen.ever);
        health.connected = self.links.iter().filter(|link| link.is_open()).count() as u64;
        health.messages += messages;
        health.errors += errors;
        if messages > 0 {
            health.last_at = Some(now);
        }
        let trouble = self.links.iter().find_map(|link| Some((link.home(), link.seen.trouble.as_ref()?)));
        health.trouble = trouble.map(|(home, trouble)| format!("{}: {trouble}", home.display()));
    }
}
