//! A scripted daemon of Codex: it answers the requests of a passive client, sends the messages the test chooses, and
//! records everything it receives.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use serde_json::{Value, json};
use tungstenite::{Error, Message, WebSocket};

/// How a daemon behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// As Codex does.
    Plain,
    /// Writes one byte at a time.
    Slow,
    /// Accepts connections and sends nothing.
    Silent,
    /// Performs the handshake and sends nothing more.
    Mute,
    /// Answers only the request for its identity.
    Curt,
}

/// A running daemon. Dropping it ends it; its socket file stays, as after a kill.
#[derive(Debug)]
pub struct Daemon {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    ended: AtomicBool,
    threads: Mutex<BTreeMap<String, Value>>,
    /// Messages to send to the next client.
    out: Mutex<Vec<Message>>,
    heard: Mutex<Vec<Value>>,
    connections: Mutex<u32>,
}

/// A stream that writes one byte at a time.
struct Trickle(UnixStream, bool);

impl Read for Trickle {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Trickle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.1 { self.0.write(&bytes[..bytes.len().min(1)]) } else { self.0.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Daemon {
    /// Starts a daemon below this home, replacing an earlier one.
    #[must_use]
    pub fn start(home: &Path, manner: Manner) -> Self {
        let dir = home.join("app-server-control");
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("app-server-control.sock");
        fs::remove_file(&path).ok();
        let listener = UnixListener::bind(path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let shared = Arc::new(Shared::default());
        let thread = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.serve(&listener, manner))
        };
        Self { shared, thread: Some(thread) }
    }

    /// Sets the status of a thread and notifies clients.
    pub fn set(&self, thread: &str, status: &Value) {
        self.shared.threads.lock().unwrap().insert(thread.to_owned(), status.clone());
        self.tell(&json!({
            "method": "thread/status/changed", "params": {"threadId": thread, "status": status},
        }));
    }

    /// Sets the status of a thread without notifying clients.
    pub fn has(&self, thread: &str, status: &Value) {
        self.shared.threads.lock().unwrap().insert(thread.to_owned(), status.clone());
    }

    /// Sends a message.
    pub fn tell(&self, message: &Value) {
        self.say(Message::text(message.to_string()));
    }

    /// Sends a WebSocket message, which need not be valid in the protocol.
    pub fn say(&self, message: Message) {
        self.shared.out.lock().unwrap().push(message);
    }

    /// All messages received.
    #[must_use]
    pub fn heard(&self) -> Vec<Value> {
        self.shared.heard.lock().unwrap().clone()
    }

    /// The number of connections so far.
    #[must_use]
    pub fn connections(&self) -> u32 {
        *self.shared.connections.lock().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

impl Shared {
    fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    fn serve(&self, listener: &UnixListener, manner: Manner) {
        while !self.ended() {
            let Ok((stream, _)) = listener.accept() else {
                std::thread::park_timeout(Duration::from_millis(10));
                continue;
            };
            *self.connections.lock().unwrap() += 1;
            stream.set_nonblocking(false).unwrap();
            if manner == Manner::Silent {
                while !self.ended() && !has_hung_up(&stream) {
                    std::thread::park_timeout(Duration::from_millis(10));
                }
                continue;
            }
            stream.set_read_timeout(Some(PATIENT)).unwrap();
            let Ok(mut socket) = tungstenite::accept(Trickle(stream, manner == Manner::Slow)) else { continue };
            socket.get_ref().0.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
            while !self.ended() {
                if self.turn(&mut socket, manner).is_err() {
                    break;
                }
            }
        }
    }

    fn turn(&self, socket: &mut WebSocket<Trickle>, manner: Manner) -> Result<(), Error> {
        match socket.read() {
            Ok(Message::Text(text)) => {
                let message: Value = serde_json::from_str(&text).unwrap();
                self.heard.lock().unwrap().push(message.clone());
                let initializes = message["method"] == "initialize";
                let answers = match manner {
                    Manner::Plain | Manner::Slow => true,
                    Manner::Curt => initializes,
                    Manner::Silent | Manner::Mute => false,
                };
                if let Some(answer) = self.answer(&message).filter(|_| answers) {
                    socket.send(Message::text(json!({"id": message["id"], "result": answer}).to_string()))?;
                }
            }
            Ok(_) => {}
            Err(Error::Io(error)) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        let out = std::mem::take(&mut *self.out.lock().unwrap());
        out.into_iter().try_for_each(|message| socket.send(message))
    }

    fn answer(&self, message: &Value) -> Option<Value> {
        let threads = self.threads.lock().unwrap();
        match message["method"].as_str()? {
            "initialize" => Some(json!({"userAgent": "scripted"})),
            "thread/loaded/list" => Some(json!({"data": threads.keys().collect::<Vec<_>>(), "nextCursor": null})),
            "thread/read" => {
                let id = message["params"]["threadId"].as_str()?;
                Some(json!({"thread": {"id": id, "ephemeral": false, "status": threads.get(id)?}}))
            }
            _ => None,
        }
    }
}

/// How long the handshake may take.
const PATIENT: Duration = Duration::from_secs(10);

fn has_hung_up(stream: &UnixStream) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(stream, PollFlags::RDHUP)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok()
        && fds[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP)
}
