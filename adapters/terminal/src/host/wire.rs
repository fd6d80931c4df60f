//! The protocol between a launcher and a host: lines of JSON over a Unix socket, with the
//! descriptors of a terminal beside the first one.
//!
//! The launcher (`capture run`) speaks [`ToHost::Run`] over a socket pair, `capture attach` speaks
//! [`ToHost::Attach`] over the run's own socket; from there on both are the same. Bytes of the
//! terminal never come this way: the host reads and writes the terminal itself.

use std::{
    collections::VecDeque,
    ffi::OsString,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
};

use events::RunId;
use host_protocol::screen::Size;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, SendAncillaryBuffer, SendAncillaryMessage, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{child::Exit, keys::DetachKey};
use crate::os;

/// Most descriptors passed with one message: two of a terminal and the three streams.
const DESCRIPTORS: usize = 5;
/// Longest line, bytes. The longest message is a [`Spec`] with all the arguments a
/// program can have (2 MiB, four characters for each byte of them).
const LINE: usize = 16 << 20;

/// Where one of the program's three streams goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamTarget {
    /// To the terminal the host made.
    Terminal,
    /// Where it went anyway.
    Inherited,
}

/// What becomes of the program when its user's terminal is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnHangup {
    /// It goes on, and can be attached to.
    #[default]
    Keep,
    /// It is ended.
    End,
}

/// How the user is told, in the terminal itself, that an approval is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notify {
    /// By a notification of the terminal (OSC 9).
    Osc9,
    /// By its bell.
    Bell,
}

/// How a run is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordSpec {
    /// The file; without, one is chosen.
    pub file: Option<PathBuf>,
    /// `v2` or `v3` of asciicast.
    pub format: String,
    /// The recording ends at this size, MiB.
    pub max_mib: u32,
}

/// A run as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The run.
    pub run: RunId,
    /// The name its user gave it.
    pub name: Option<String>,
    /// The command, word by word.
    pub words: Vec<OsString>,
    /// The data directory.
    pub data: PathBuf,
    /// Standard input, output and error of the program.
    pub streams: [StreamTarget; 3],
    /// Whether the first two descriptors are a terminal to read and one to write.
    pub attached: bool,
    /// The size of its terminal when no terminal is attached that has one.
    pub size: Size,
    /// What is added to its environment.
    pub environment: Vec<(String, String)>,
    /// What becomes of it when the terminal is gone.
    pub on_hangup: OnHangup,
    /// The key that detaches.
    pub detach_key: DetachKey,
    /// How approvals are announced.
    pub notify: Option<Notify>,
    /// How it is recorded.
    pub record: Option<RecordSpec>,
}

/// A terminal that wants to be attached to a run. Its descriptors, to read and to write, come along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach {
    /// Only to watch.
    pub read_only: bool,
    /// To become the one who types, even when there is one.
    pub take: bool,
    /// The key that detaches.
    pub detach_key: DetachKey,
}

/// A line to the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToHost {
    /// Start this.
    Run(Box<Spec>),
    /// Attach this terminal.
    Attach(Attach),
    /// The terminal is raw now, if we are in its foreground: begin.
    Go {
        /// Whether the terminal may be read.
        foreground: bool,
    },
    /// The terminal has another size, perhaps.
    Resized,
    /// A signal for the program.
    Signal {
        /// Its number.
        number: i32,
    },
    /// We are about to be stopped: the terminal is neither read nor written until
    /// [`ToHost::Continued`].
    Suspended,
    /// We were stopped and go on.
    Continued {
        /// Whether the terminal may be read.
        foreground: bool,
    },
    /// The terminal is gone.
    Hangup,
    /// Detach the terminal.
    Detach,
    /// End the program: as when its terminal closes and after a grace period by force, or by force at once. The host
    /// says [`FromHost::Exited`] when it has ended.
    End {
        /// Whether to end it by force at once.
        now: bool,
    },
    /// Give the run another name, which the sender has claimed.
    Rename {
        /// The name.
        name: String,
    },
}

/// A line of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromHost {
    /// It knows how the terminal was; it may be made raw.
    Ready {
        /// Whether this terminal only watches, although it asked to type: another one types.
        #[serde(default)]
        watches: bool,
    },
    /// The program runs.
    Started {
        /// Its process.
        pid: u32,
        /// Where one attaches to it.
        socket: Option<PathBuf>,
    },
    /// The program was stopped, as by Ctrl-Z. The terminal is not read until [`ToHost::Continued`].
    Stopped,
    /// The program ended, and all its output was written.
    Exited(Exit),
    /// The terminal was detached; the program runs on.
    Detached {
        /// The run.
        run: RunId,
    },
    /// The run has the name that was asked for.
    Renamed,
    /// The host refuses.
    Refused {
        /// Why, for people.
        why: String,
    },
}

/// One end of the socket between launcher and host.
#[derive(Debug)]
pub struct LauncherSocket {
    socket: UnixStream,
    bytes: Vec<u8>,
    /// Bytes already searched without finding the end of a line.
    searched: usize,
    descriptors: VecDeque<OwnedFd>,
    closed: bool,
}

impl LauncherSocket {
    /// Speaks over this socket.
    #[must_use]
    pub fn new(socket: UnixStream) -> Self {
        Self { socket, bytes: Vec::new(), searched: 0, descriptors: VecDeque::new(), closed: false }
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Whether the other end is gone; what it said before was taken.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the other end is gone, or takes nothing.
    pub fn send<T: Serialize>(&self, message: &T) -> io::Result<()> {
        self.send_with(message, &[])
    }

    /// Sends a message with descriptors.
    ///
    /// # Errors
    /// When the other end is gone, or takes nothing.
    pub fn send_with<T: Serialize>(&self, message: &T, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut rest = line.as_slice();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut along = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !along.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::Error::other("too many descriptors for one message"));
        }
        while !rest.is_empty() {
            match sendmsg(&self.socket, &[IoSlice::new(rest)], &mut along, os::SEND) {
                Ok(sent) => {
                    rest = &rest[sent..];
                    along.clear();
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads what has arrived and returns the next message, `None` when none is complete yet; a
    /// socket that blocks is waited for once.
    ///
    /// # Errors
    /// When what came is not of this protocol.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        if let Some(message) = self.next()? {
            return Ok(Some(message));
        }
        let mut chunk = [0_u8; 16 << 10];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut along = RecvAncillaryBuffer::new(&mut space);
        match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut chunk)], &mut along, os::RECEIVE) {
            Ok(received) => {
                for message in along.drain() {
                    if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                        for descriptor in descriptors {
                            self.descriptors.push_back(os::received(descriptor)?);
                        }
                    }
                }
                self.descriptors.truncate(DESCRIPTORS);
                self.closed |= received.bytes == 0;
                self.bytes.extend_from_slice(&chunk[..received.bytes]);
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => self.closed = true,
        }
        self.next()
    }

    fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some(end) = memchr::memchr(b'\n', &self.bytes[self.searched..]) else {
            self.searched = self.bytes.len();
            if self.bytes.len() > LINE {
                return Err(io::Error::other("line longer than the limit"));
            }
            return Ok(None);
        };
        let line: Vec<u8> = self.bytes.drain(..=self.searched + end).collect();
        self.searched = 0;
        Ok(Some(serde_json::from_slice(&line)?))
    }

    /// The next descriptor that came.
    pub fn descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptors.pop_front()
    }
}

impl AsFd for LauncherSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_and_with_their_descriptors() {
        let (a, b) = UnixStream::pair().unwrap();
        let (ours, mut theirs) = (LauncherSocket::new(a), LauncherSocket::new(b));
        let file = std::fs::File::open("/dev/null").unwrap();
        let attach = ToHost::Attach(Attach { read_only: true, take: false, detach_key: DetachKey::USUAL });
        ours.send_with(&attach, &[file.as_fd(), file.as_fd()]).unwrap();
        // Longer than one read, and two in one.
        let why = "é".repeat(60_000);
        let sender = std::thread::spawn(move || {
            ours.send(&FromHost::Refused { why }).unwrap();
            ours.send(&ToHost::Resized).unwrap();
            ours.send(&ToHost::Detach).unwrap();
        });
        assert_eq!(theirs.receive::<ToHost>().unwrap(), Some(attach));
        assert!(theirs.descriptor().is_some() && theirs.descriptor().is_some() && theirs.descriptor().is_none());
        let refused = loop {
            if let Some(message) = theirs.receive::<FromHost>().unwrap() {
                break message;
            }
        };
        assert!(matches!(refused, FromHost::Refused { why } if why.len() == 120_000));
        sender.join().unwrap();
        assert_eq!(theirs.receive::<ToHost>().unwrap(), Some(ToHost::Resized));
        assert_eq!(theirs.receive::<ToHost>().unwrap(), Some(ToHost::Detach));
        assert!(!theirs.is_closed());
        assert_eq!(theirs.receive::<ToHost>().unwrap(), None);
        assert!(theirs.is_closed());
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        use std::io::Write;
        let (mut a, b) = UnixStream::pair().unwrap();
        a.write_all(b"{\"type\":\"nonsense\"}\n").unwrap();
        assert!(LauncherSocket::new(b).receive::<ToHost>().is_err());
    }
}
