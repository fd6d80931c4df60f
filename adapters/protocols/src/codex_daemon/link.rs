//! The connection to the daemon of one home: disconnected, in the handshake, or open. Passes messages between the
//! socket and [`DaemonSession`] without blocking.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use events::{NewEvent, Timestamp};
use tungstenite::{
    Error, HandshakeError, Message, WebSocket,
    client::client_with_config,
    handshake::{MidHandshake, client::ClientHandshake},
    protocol::WebSocketConfig,
};

use super::{
    session::{DaemonSession, SessionOutput},
    socket::{self, DaemonSocket},
};
use crate::codex_daemon::timing::Timing;

/// Maximum size of a message, in bytes.
const MESSAGE_BYTES: usize = 8 << 20;
/// Size of one read, in bytes.
const BUFFER_BYTES: usize = 16 << 10;
/// Maximum number of messages read from one home before the next home is handled.
const MESSAGES: usize = 256;

/// The connection of one home.
pub(super) struct DaemonConnection {
    home: PathBuf,
    timing: Timing,
    stage: LinkStage,
    /// Number of consecutive failures; each lengthens the delay.
    failures: u32,
    /// The creation time of the socket that was last connected to.
    tried: Option<Timestamp>,
    /// That socket is not tried again before this time.
    avoid_until: Instant,
    /// Nothing is due before this time, unless the socket is ready.
    due: Instant,
    /// Whether the first attempt has ended, with or without a connection that reported the current states.
    pub(super) settled: bool,
    /// The state of the socket at the last check.
    pub(super) seen: DaemonState,
}

/// The state of a daemon, for the user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct DaemonState {
    /// Whether a socket ever existed.
    pub(super) ever: bool,
    /// Why it is not connected, unless there simply is no socket.
    pub(super) trouble: Option<String>,
}

enum LinkStage {
    Away,
    Shaking(Box<MidHandshake<ClientHandshake<UnixStream>>>),
    Open(Box<DaemonConversation>),
}

struct DaemonConversation {
    socket: WebSocket<UnixStream>,
    talk: DaemonSession,
}

/// The result of a turn.
#[derive(Debug, Default)]
pub(super) struct LinkTurn {
    pub(super) events: Vec<NewEvent>,
    pub(super) messages: u64,
    pub(super) errors: u64,
    /// Whether there may be more to read at once.
    pub(super) more: bool,
}

/// Why a connection ended.
enum LinkEnd {
    /// The daemon closed the connection, which is normal.
    Closed,
    /// An error occurred.
    Trouble(String),
}

impl From<Error> for LinkEnd {
    fn from(error: Error) -> Self {
        match error {
            Error::ConnectionClosed | Error::AlreadyClosed => Self::Closed,
            Error::Io(error) if matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
                Self::Closed
            }
            Error::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) => Self::Closed,
            Error::Io(_)
            | Error::Tls(_)
            | Error::Capacity(_)
            | Error::Protocol(_)
            | Error::WriteBufferFull(_)
            | Error::Utf8(_)
            | Error::AttackAttempt
            | Error::Url(_)
            | Error::Http(_)
            | Error::HttpFormat(_) => Self::Trouble(error.to_string()),
        }
    }
}

impl DaemonConnection {
    pub(super) fn new(home: PathBuf, timing: Timing, start: Instant) -> Self {
        Self {
            home,
            timing,
            stage: LinkStage::Away,
            failures: 0,
            tried: None,
            avoid_until: start,
            due: start,
            settled: false,
            seen: DaemonState::default(),
        }
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(&self.stage, LinkStage::Open(open) if !open.talk.is_strange())
    }

    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// The socket to wait on.
    pub(super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.stage {
            LinkStage::Away => None,
            LinkStage::Shaking(mid) => Some(mid.get_ref().get_ref().as_fd()),
            LinkStage::Open(open) => Some(open.socket.get_ref().as_fd()),
        }
    }

    /// The threads with a current claim.
    pub(super) fn threads(&self) -> impl Iterator<Item = &Arc<str>> {
        let open = if let LinkStage::Open(open) = &self.stage { Some(open) } else { None };
        open.into_iter().flat_map(|open| open.talk.threads())
    }

    /// The current claim of a thread.
    pub(super) fn again(&self, thread: &str) -> Option<&NewEvent> {
        match &self.stage {
            LinkStage::Open(open) => open.talk.again(thread),
            LinkStage::Away | LinkStage::Shaking(_) => None,
        }
    }

    /// Performs the actions possible now.
    pub(super) fn turn(&mut self, now: Timestamp, at: Instant) -> LinkTurn {
        let mut turn = LinkTurn::default();
        let outcome = match std::mem::replace(&mut self.stage, LinkStage::Away) {
            LinkStage::Away if at < self.due => Ok(LinkStage::Away),
            LinkStage::Away => self.find_daemon(now, at),
            LinkStage::Shaking(mid) => match mid.handshake() {
                Ok((socket, _)) => self.begin(socket, now, at),
                Err(HandshakeError::Interrupted(_)) if at >= self.due => {
                    Err(LinkEnd::Trouble("the Codex daemon did not answer the handshake".into()))
                }
                Err(HandshakeError::Interrupted(mid)) => Ok(LinkStage::Shaking(Box::new(mid))),
                Err(HandshakeError::Failure(error)) => Err(LinkEnd::from(error)),
            },
            LinkStage::Open(mut open) => match self.converse(&mut open, now, at, &mut turn) {
                Ok(()) => Ok(LinkStage::Open(open)),
                Err(end) => {
                    turn.events.extend(open.talk.lost(now));
                    Err(end)
                }
            },
        };
        match outcome {
            Ok(stage) => self.stage = stage,
            Err(end) => {
                self.settled = true;
                self.failures = self.failures.saturating_add(1);
                // A new socket is tried at once; a socket that was refused is checked less and less often.
                let pause = self.timing.pause(self.failures);
                self.avoid_until = at + pause;
                self.due = at + if self.tried.is_some() { self.timing.look_every.min(pause) } else { pause };
                if let LinkEnd::Trouble(trouble) = end {
                    tracing::debug!(home = %self.home.display(), %trouble, "cannot connect to the Codex daemon");
                    turn.errors += 1;
                    self.seen.trouble = Some(trouble);
                }
            }
        }
        turn
    }

    fn find_daemon(&mut self, now: Timestamp, at: Instant) -> Result<LinkStage, LinkEnd> {
        self.due = at + self.timing.look_every;
        let found = socket::find(&self.home).map_err(|refused| {
            self.seen.ever = true;
            self.tried = None;
            LinkEnd::Trouble(refused.to_string())
        })?;
        let Some(found) = found else {
            self.settled = true;
            self.failures = 0;
            self.seen.trouble = None;
            return Ok(LinkStage::Away);
        };
        self.seen.ever = true;
        if now.since_ms(found.made_at) < self.timing.leave_alone_ms && now >= found.made_at {
            return Ok(LinkStage::Away);
        }
        if self.tried == Some(found.made_at) && at < self.avoid_until {
            return Ok(LinkStage::Away);
        }
        self.tried = Some(found.made_at);
        self.shake(&found, now, at)
    }

    fn shake(&mut self, found: &DaemonSocket, now: Timestamp, at: Instant) -> Result<LinkStage, LinkEnd> {
        let stream = match found.connect() {
            Ok(stream) => stream,
            // A stale socket: there is no daemon.
            Err(socket::ConnectError::Io(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                return Err(LinkEnd::Closed);
            }
            Err(refused) => return Err(LinkEnd::Trouble(refused.to_string())),
        };
        self.due = at + self.timing.answer;
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER_BYTES)
            .max_message_size(Some(MESSAGE_BYTES))
            .max_frame_size(Some(MESSAGE_BYTES));
        match client_with_config("ws://localhost/", stream, Some(config)) {
            Ok((socket, _)) => self.begin(socket, now, at),
            Err(HandshakeError::Interrupted(mid)) => Ok(LinkStage::Shaking(Box::new(mid))),
            Err(HandshakeError::Failure(error)) => Err(LinkEnd::from(error)),
        }
    }

    fn begin(&mut self, mut socket: WebSocket<UnixStream>, now: Timestamp, at: Instant) -> Result<LinkStage, LinkEnd> {
        let (talk, hello) = DaemonSession::begin(&self.home.to_string_lossy(), now);
        send_text(&mut socket, hello)?;
        self.due = at + self.timing.answer;
        Ok(LinkStage::Open(Box::new(DaemonConversation { socket, talk })))
    }

    fn converse(
        &mut self,
        open: &mut DaemonConversation,
        now: Timestamp,
        at: Instant,
        turn: &mut LinkTurn,
    ) -> Result<(), LinkEnd> {
        for taken in 0.. {
            if taken == MESSAGES {
                turn.more = true;
                break;
            }
            let text = match open.socket.read() {
                Ok(Message::Text(text)) => text,
                Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => continue,
                Ok(Message::Close(_)) => return Err(LinkEnd::Closed),
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            };
            turn.messages += 1;
            match open.talk.receive(&text, now) {
                Ok(SessionOutput { send, events }) => {
                    turn.events.extend(events);
                    if !send.is_empty() {
                        self.due = at + self.timing.answer;
                    }
                    for text in send {
                        send_text(&mut open.socket, text)?;
                    }
                }
                Err(error) if open.talk.refused() => return Err(LinkEnd::Trouble(error)),
                Err(error) => {
                    turn.errors += 1;
                    self.seen.trouble = Some(format!("cannot decode a message from the Codex daemon: {error}"));
                }
            }
        }
        if open.talk.waits() && at >= self.due {
            if open.talk.is_strange() {
                return Err(LinkEnd::Trouble("the Codex daemon did not answer `initialize`".into()));
            }
            open.talk.stop_waiting();
        }
        if !open.talk.waits() {
            self.settled = true;
            self.failures = 0;
            self.due = at + Duration::from_secs(3_600);
        }
        Ok(())
    }
}

/// Sends one message. It is short; if the socket has no room for it, the connection is given up.
fn send_text(socket: &mut WebSocket<UnixStream>, text: String) -> Result<(), LinkEnd> {
    socket.send(Message::text(text)).map_err(LinkEnd::from)
}
