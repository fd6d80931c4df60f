//! The terminal host's connection to the server.
//!
//! A separate thread connects, sends the hello, sends frames, keeps them until they are acknowledged, and reconnects
//! when the connection is lost. Senders never wait: events that cannot be queued are counted, and the count is reported
//! instead ([`HostEvent::Gap`]).

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, select};
use events::Timestamp;
use serde::Deserialize;

use crate::{
    claim::HostEvent,
    frame::{Hello, HostFrame, HostMessage, HostRequest, PROTOCOL, ServerMessage},
};

/// Maximum number of frames kept until the server acknowledges them; the oldest are dropped for new ones.
const SPOOL: usize = 4096;
/// Maximum number of commands queued for the thread while it connects.
const COMMANDS: usize = 1024;
/// Maximum number of queued lines from the server and answers to it.
const LINES: usize = 64;
/// Connect, handshake and write timeout; after it the connection is dropped.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Wait before the first attempt to reconnect; it doubles with each further attempt.
const RETRY_FIRST: Duration = Duration::from_millis(50);
/// Longest wait between attempts to reconnect.
const RETRY_LONGEST: Duration = Duration::from_secs(1);
/// How long the host tries to send the remaining frames before it exits.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest line of the server's HTTP response, bytes.
const HEAD_BYTES: u64 = 16 << 10;

/// Answer to a request that this version does not know.
const NOT_UNDERSTOOD: &str =
    "the run was started by another version of capture, which does not support this request; start the run again";

/// The field that every request contains.
#[derive(Deserialize)]
struct RequestHeader {
    id: u64,
}

/// A request of the server, with the callback for its answer.
pub struct PendingRequest {
    /// The request.
    pub ask: HostRequest,
    /// Called with the answer; dropped without a call if there is none.
    pub reply: Box<dyn FnOnce(Result<serde_json::Value, String>) + Send>,
}

/// Finds the socket of the running server; the argument permits starting a server.
pub type FindSocket = Box<dyn FnMut(bool) -> Option<PathBuf> + Send>;

/// The connection. Dropping it waits briefly until everything sent is stored.
pub struct HostLink {
    orders: Option<Sender<LinkCommand>>,
    /// Events dropped because the channel to the thread was full.
    missed: Arc<AtomicU64>,
    connected: Arc<AtomicBool>,
    tried: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

enum LinkCommand {
    Event(Timestamp, HostEvent),
    Hello(Box<Hello>),
}

impl HostLink {
    /// Starts the thread. `requests` receives the server's requests; they are refused while it is full.
    ///
    /// # Errors
    /// If the thread cannot be created.
    pub fn start(hello: Hello, find: FindSocket, requests: Sender<PendingRequest>) -> std::io::Result<Self> {
        let (orders, incoming) = bounded(COMMANDS);
        let missed = Arc::new(AtomicU64::new(0));
        let (connected, tried) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let worker = LinkWorker {
            hello,
            find,
            requests,
            missed: Arc::clone(&missed),
            connected: Arc::clone(&connected),
            tried: Arc::clone(&tried),
            spool: VecDeque::new(),
            next: 1,
            sent: 0,
            connection: None,
            wait: RETRY_FIRST,
            started: false,
        };
        let thread = std::thread::Builder::new().name("link".into()).spawn(move || worker.run(&incoming))?;
        Ok(Self { orders: Some(orders), missed, connected, tried, thread: Some(thread) })
    }

    /// Sends an event to the server; never waits.
    pub fn send_event(&self, at: Timestamp, event: HostEvent) {
        self.send_command(LinkCommand::Event(at, event));
    }

    /// Sends an updated description: size, version, agent in the foreground.
    pub fn hello(&self, hello: Hello) {
        self.send_command(LinkCommand::Hello(Box::new(hello)));
    }

    /// Whether the server is connected now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// Whether a connection was attempted at least once, including the start of a server if permitted.
    #[must_use]
    pub fn has_tried(&self) -> bool {
        self.tried.load(Ordering::Relaxed)
    }

    /// Ends without waiting for a server that is not connected: unsent events are in the session's file.
    pub fn close(mut self) {
        if !self.is_connected() {
            // The thread ends on its own, or with the process.
            self.orders = None;
            self.thread = None;
        }
    }

    fn send_command(&self, order: LinkCommand) {
        let Some(orders) = &self.orders else { return };
        match orders.try_send(order) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for HostLink {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// An event of a connection.
enum ConnectionEvent {
    Message(ServerMessage),
    /// The answer to a request of the server.
    Answered(u64, Result<serde_json::Value, String>),
    Closed,
}

enum LinkInput {
    /// A command; `None` if all senders are dropped.
    Order(Option<LinkCommand>),
    Back(ConnectionEvent),
    Time,
}

struct ServerConnection {
    stream: UnixStream,
    back: Receiver<ConnectionEvent>,
    answers: Sender<ConnectionEvent>,
    reader: JoinHandle<()>,
}

struct LinkWorker {
    hello: Hello,
    find: FindSocket,
    requests: Sender<PendingRequest>,
    missed: Arc<AtomicU64>,
    connected: Arc<AtomicBool>,
    tried: Arc<AtomicBool>,
    /// Frames that are not acknowledged yet.
    spool: VecDeque<HostFrame>,
    next: u64,
    /// The last frame that was sent on this connection.
    sent: u64,
    connection: Option<ServerConnection>,
    wait: Duration,
    /// Whether a server start was requested once: a server that is stopped later is not started again.
    started: bool,
}

impl LinkWorker {
    fn run(mut self, orders: &Receiver<LinkCommand>) {
        let mut retry = Instant::now();
        let mut ending: Option<Instant> = None;
        loop {
            let over = ending.is_some() && self.spool.is_empty();
            if self.connection.is_none() && !over && Instant::now() >= retry {
                self.connect();
                self.tried.store(true, Ordering::Relaxed);
                retry = Instant::now() + self.wait;
                self.wait = (self.wait * 2).min(RETRY_LONGEST);
            }
            if ending.is_some_and(|deadline| self.spool.is_empty() || Instant::now() >= deadline) {
                break;
            }
            let due = match (self.connection.is_none(), ending) {
                (true, None) => Some(retry),
                (true, Some(deadline)) => Some(retry.min(deadline)),
                (false, deadline) => deadline,
            };
            let back = self.connection.as_ref().map_or_else(crossbeam_channel::never, |c| c.back.clone());
            let timer = due.map_or_else(crossbeam_channel::never, crossbeam_channel::at);
            let nothing = crossbeam_channel::never();
            let orders = if ending.is_some() { &nothing } else { orders };
            let event = select! {
                recv(orders) -> order => LinkInput::Order(order.ok()),
                recv(back) -> events => LinkInput::Back(events.unwrap_or(ConnectionEvent::Closed)),
                recv(timer) -> _ => LinkInput::Time,
            };
            // Dropped first, because closing the connection waits for its reader, and the reader must not wait for this
            // end of the channel.
            drop(back);
            match event {
                LinkInput::Order(Some(order)) => self.apply(order),
                LinkInput::Order(None) => ending = Some(Instant::now() + FLUSH_TIMEOUT),
                LinkInput::Back(back) => self.receive(back),
                LinkInput::Time => {}
            }
        }
        self.disconnect();
    }

    fn apply(&mut self, order: LinkCommand) {
        match order {
            LinkCommand::Event(at, event) => {
                let missed = self.missed.swap(0, Ordering::Relaxed);
                if missed > 0 {
                    self.spool(at, HostEvent::Gap { frames: missed });
                }
                self.spool(at, event);
                self.send_frames();
            }
            LinkCommand::Hello(hello) => {
                self.hello = *hello;
                let hello = HostMessage::Hello(Box::new(self.hello.clone()));
                if self.connection.is_some() && !self.send(&hello) {
                    self.disconnect();
                }
            }
        }
    }

    /// Keeps a frame until it is acknowledged. If the spool is full, the oldest frame is dropped and counted in a gap.
    fn spool(&mut self, at: Timestamp, event: HostEvent) {
        while self.spool.len() >= SPOOL {
            let Some(oldest) = self.spool.pop_front() else { break };
            let lost = if let HostEvent::Gap { frames } = oldest.event { frames } else { 1 };
            match self.spool.front_mut() {
                Some(HostFrame { event: HostEvent::Gap { frames }, .. }) => *frames += lost,
                Some(front) => {
                    front.event = HostEvent::Gap { frames: lost + 1 };
                }
                None => {}
            }
        }
        self.spool.push_back(HostFrame { n: self.next, at, event });
        self.next += 1;
    }

    fn receive(&mut self, back: ConnectionEvent) {
        match back {
            ConnectionEvent::Message(ServerMessage::Ack { n }) => {
                while self.spool.front().is_some_and(|f| f.n <= n) {
                    self.spool.pop_front();
                }
            }
            ConnectionEvent::Message(ServerMessage::Ask { id, ask }) => self.forward_request(id, ask),
            ConnectionEvent::Answered(id, answer) => {
                if !self.send(&HostMessage::Answer { id, answer }) {
                    self.disconnect();
                }
            }
            ConnectionEvent::Closed => self.disconnect(),
        }
    }

    fn forward_request(&mut self, id: u64, ask: HostRequest) {
        let Some(connection) = &self.connection else { return };
        let answers = connection.answers.clone();
        let reply: Box<dyn FnOnce(Result<serde_json::Value, String>) + Send> = Box::new(move |answer| {
            // The connection may have been closed since the request.
            answers.send(ConnectionEvent::Answered(id, answer)).ok();
        });
        if let Err(TrySendError::Full(refused) | TrySendError::Disconnected(refused)) =
            self.requests.try_send(PendingRequest { ask, reply })
        {
            drop(refused);
            if !self.send(&HostMessage::Answer { id, answer: Err("the run is busy; try again".into()) }) {
                self.disconnect();
            }
        }
    }

    fn connect(&mut self) {
        let may_start = !std::mem::replace(&mut self.started, true);
        let Some(path) = (self.find)(may_start) else { return };
        match ServerConnection::open(&path) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => {
                tracing::debug!(%error, path = %path.display(), "cannot reach the server");
                return;
            }
        }
        self.sent = 0;
        let hello = HostMessage::Hello(Box::new(self.hello.clone()));
        if self.send(&hello) {
            self.wait = RETRY_FIRST;
            self.connected.store(true, Ordering::Relaxed);
            self.send_frames();
        } else {
            self.disconnect();
        }
    }

    fn send_frames(&mut self) {
        while self.connection.is_some() {
            let Some(frame) = self.spool.iter().find(|f| f.n > self.sent).cloned() else { return };
            self.sent = frame.n;
            if !self.send(&HostMessage::Frame(frame)) {
                self.disconnect();
            }
        }
    }

    fn send(&mut self, line: &HostMessage) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        let Ok(mut text) = serde_json::to_string(line) else { return true };
        text.push('\n');
        connection.stream.write_all(text.as_bytes()).is_ok()
    }

    fn disconnect(&mut self) {
        self.connected.store(false, Ordering::Relaxed);
        if let Some(connection) = self.connection.take() {
            connection.stream.shutdown(std::net::Shutdown::Both).ok();
            // The reader may be blocked by a full channel.
            drop(connection.back);
            connection.reader.join().ok();
        }
    }
}

impl ServerConnection {
    fn open(path: &Path) -> std::io::Result<Self> {
        let (mut stream, _) = processes::local_socket::connect(path, WRITE_TIMEOUT)?;
        stream.set_read_timeout(Some(WRITE_TIMEOUT))?;
        let head = format!(
            "GET /api/v1/host HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        let mut lines = BufReader::new(stream.try_clone()?);
        let mut status = String::new();
        lines.by_ref().take(HEAD_BYTES).read_line(&mut status)?;
        if status.split(' ').nth(1) != Some("101") {
            return Err(std::io::Error::other(format!("the server answered `{}`", status.trim_end())));
        }
        let mut header = String::new();
        while {
            header.clear();
            lines.by_ref().take(HEAD_BYTES).read_line(&mut header)? > 2
        } {}
        stream.set_read_timeout(None)?;
        let (answers, back) = bounded(LINES);
        let events = answers.clone();
        let reader = std::thread::Builder::new().name("link-reader".into()).spawn(move || read(lines, &events))?;
        Ok(Self { stream, back, answers, reader })
    }
}

fn read(lines: BufReader<UnixStream>, events: &Sender<ConnectionEvent>) {
    for line in lines.lines() {
        let Ok(line) = line else { break };
        match serde_json::from_str(&line) {
            Ok(down) => {
                if events.send(ConnectionEvent::Message(down)).is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::debug!(%error, "cannot decode a message from the server");
                // A request of a later version is answered immediately.
                if let Ok(RequestHeader { id }) = serde_json::from_str(&line)
                    && events.send(ConnectionEvent::Answered(id, Err(NOT_UNDERSTOOD.into()))).is_err()
                {
                    return;
                }
            }
        }
    }
    events.send(ConnectionEvent::Closed).ok();
}

#[cfg(test)]
mod tests;
