//! The protocol between a launcher and a host: lines of JSON over a Unix socket. The first line carries the descriptors
//! of a terminal.
//!
//! The launcher (`capture run`) sends [`ToHost::Run`] over a socket pair, `capture attach` sends [`ToHost::Attach`]
//! over the run's socket; after that both use the same messages. The terminal's bytes are never sent over this socket:
//! the host reads and writes the terminal itself.

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

/// Maximum number of descriptors passed with one message: two of a terminal and the three streams.
const DESCRIPTORS: usize = 5;
/// Maximum length of a line, bytes. The longest message is a [`Spec`] with the largest possible arguments (2 MiB, at
/// four characters per byte).
const LINE: usize = 16 << 20;

/// The target of one of the program's three streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamTarget {
    /// The terminal created by the host.
    Terminal,
    /// The stream the launcher inherited.
    Inherited,
}

/// What happens to the program when its user's terminal is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnHangup {
    /// It keeps running and can be attached to.
    #[default]
    Keep,
    /// It is ended.
    End,
}

/// How the terminal alerts the user that an approval is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notify {
    /// A terminal notification (OSC 9).
    Osc9,
    /// The terminal's bell.
    Bell,
}

/// How a run is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordSpec {
    /// The file; `None` chooses one.
    pub file: Option<PathBuf>,
    /// Asciicast version: `v2` or `v3`.
    pub format: String,
    /// The recording ends at this size, MiB.
    pub max_mib: u32,
}

/// The parameters of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The run.
    pub run: RunId,
    /// The name the user chose.
    pub name: Option<String>,
    /// The command, word by word.
    pub words: Vec<OsString>,
    /// The data directory.
    pub data: PathBuf,
    /// Standard input, output and error of the program.
    pub streams: [StreamTarget; 3],
    /// Whether the first two descriptors are a terminal, one for reading and one for writing.
    pub attached: bool,
    /// The size of the program's terminal while no attached terminal has a size.
    pub size: Size,
    /// Variables added to the program's environment.
    pub environment: Vec<(String, String)>,
    /// What happens to the program when the terminal is closed.
    pub on_hangup: OnHangup,
    /// The key that detaches.
    pub detach_key: DetachKey,
    /// How the terminal announces approvals.
    pub notify: Option<Notify>,
    /// How the run is recorded.
    pub record: Option<RecordSpec>,
}

/// A request to attach a terminal to a run. Its descriptors, one for reading and one for writing, are sent along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach {
    /// Only watch.
    pub read_only: bool,
    /// Take over typing, even if another terminal types now.
    pub take: bool,
    /// The key that detaches.
    pub detach_key: DetachKey,
}

/// A line sent to the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToHost {
    /// Start this run.
    Run(Box<Spec>),
    /// Attach this terminal.
    Attach(Attach),
    /// The terminal is raw now if we are in its foreground: begin.
    Go {
        /// Whether the terminal may be read.
        foreground: bool,
    },
    /// The size of the terminal may have changed.
    Resized,
    /// A signal for the program.
    Signal {
        /// Its number.
        number: i32,
    },
    /// We are about to be stopped: do not read or write the terminal until [`ToHost::Continued`].
    Suspended,
    /// We were stopped and are running again.
    Continued {
        /// Whether the terminal may be read.
        foreground: bool,
    },
    /// The terminal was closed.
    Hangup,
    /// Detach the terminal.
    Detach,
    /// End the program: first as if its terminal was closed and by force after a grace period, or by force at once. The
    /// host sends [`FromHost::Exited`] after the program has ended.
    End {
        /// Whether to end it by force at once.
        now: bool,
    },
    /// Rename the run to a name that the sender has claimed.
    Rename {
        /// The name.
        name: String,
    },
}

/// A line sent by the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromHost {
    /// The host has saved the terminal's settings; the terminal may be made raw.
    Ready {
        /// Whether this terminal only watches, although it asked to type: another terminal is typing.
        #[serde(default)]
        watches: bool,
    },
    /// The program is running.
    Started {
        /// Its process ID.
        pid: u32,
        /// The socket for attaching to the run.
        socket: Option<PathBuf>,
    },
    /// The program was stopped, for example by Ctrl-Z. The host does not read the terminal until [`ToHost::Continued`].
    Stopped,
    /// The program has ended and all its output was written.
    Exited(Exit),
    /// The terminal was detached; the program is still running.
    Detached {
        /// The run.
        run: RunId,
    },
    /// The run was renamed as requested.
    Renamed,
    /// The host refused the request.
    Refused {
        /// The reason, as text for the user.
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
    /// Uses this socket.
    #[must_use]
    pub fn new(socket: UnixStream) -> Self {
        Self { socket, bytes: Vec::new(), searched: 0, descriptors: VecDeque::new(), closed: false }
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Whether the other end has closed the socket and all its messages were received.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the other end has closed the socket or does not accept data.
    pub fn send<T: Serialize>(&self, message: &T) -> io::Result<()> {
        self.send_with(message, &[])
    }

    /// Sends a message with descriptors.
    ///
    /// # Errors
    /// When the other end has closed the socket or does not accept data.
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

    /// Reads pending bytes and returns the next message, `None` if none is complete yet. On a blocking socket it waits
    /// once.
    ///
    /// # Errors
    /// When the received bytes are not of this protocol.
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

    /// The next received descriptor.
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
    fn messages_and_descriptors_arrive_complete_across_split_reads() {
        let (a, b) = UnixStream::pair().unwrap();
        let (ours, mut theirs) = (LauncherSocket::new(a), LauncherSocket::new(b));
        let file = std::fs::File::open("/dev/null").unwrap();
        let attach = ToHost::Attach(Attach { read_only: true, take: false, detach_key: DetachKey::USUAL });
        ours.send_with(&attach, &[file.as_fd(), file.as_fd()]).unwrap();
        // One message longer than a read, then two messages in one read.
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
    fn an_unknown_message_is_an_error() {
        use std::io::Write;
        let (mut a, b) = UnixStream::pair().unwrap();
        a.write_all(b"{\"type\":\"nonsense\"}\n").unwrap();
        assert!(LauncherSocket::new(b).receive::<ToHost>().is_err());
    }
}
