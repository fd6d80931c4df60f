//! Limits the number of connections of each client, so that no client uses up the share of another.
//!
//! A client is either one user of this machine or one remote machine. Requests and streams of our own user are counted
//! separately, so that streams always leave room for commands and hooks. A share of both limits is reserved for the
//! Unix socket, which only our own user can open. Other users get a few connections each, within a common limit.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use api::ErrorCode;
use live_view::locks::lock;

use crate::{error::ApiError, peer::Client};

/// Divisor for the share of the process's open files that connections may use: ingest needs files too.
const FILES_PER_CONNECTION: usize = 2;

/// The transport of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransportKind {
    /// The TCP port.
    Tcp,
    /// The Unix socket.
    Unix,
}

/// Maximum numbers of concurrent connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// Connections of our own user for requests.
    pub requests: usize,
    /// The part of `requests` reserved for the Unix socket.
    pub requests_reserved: usize,
    /// Connections of our own user that have become streams: server-sent events, WebSockets, hosts of runs.
    pub streams: usize,
    /// The part of `streams` reserved for the Unix socket.
    pub streams_reserved: usize,
    /// Connections of one other user or machine, streams included.
    pub another: usize,
    /// Connections of all other users and machines together.
    pub others: usize,
    /// Time limit for reading the headers of a request of another user or machine.
    pub others_read: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            requests: 1_024,
            requests_reserved: 128,
            streams: 5_376,
            streams_reserved: 256,
            another: 16,
            others: 64,
            others_read: Duration::from_secs(5),
        }
    }
}

impl ClientLimits {
    /// The number of files a process must be allowed to open so that [`ClientLimits::within`] lowers nothing.
    #[must_use]
    pub fn files(&self) -> usize {
        FILES_PER_CONNECTION * (self.requests + self.streams + self.others)
    }

    /// The same limits, lowered if a process that may open `files` files would run out of them. Streams are lowered
    /// first, so that commands and hooks keep their room.
    #[must_use]
    pub fn within(self, files: usize) -> Self {
        if files >= self.files() {
            return self;
        }
        let room = files / FILES_PER_CONNECTION;
        let requests = self.requests.min(room / 3);
        let others = self.others.min(room / 32).max(1);
        let streams = self.streams.min(room.saturating_sub(requests + others));
        Self {
            requests,
            requests_reserved: self.requests_reserved * requests / self.requests.max(1),
            streams,
            streams_reserved: self.streams_reserved * streams / self.streams.max(1),
            another: self.another.min(others.div_ceil(2)),
            others,
            ..self
        }
    }
}

#[derive(Debug, Default)]
struct ConnectionCounts {
    requests: usize,
    streams: usize,
    others: HashMap<Client, usize>,
    all_others: usize,
}

/// The open connections, by client.
#[derive(Debug)]
pub(crate) struct Clients {
    limits: ClientLimits,
    counts: Mutex<ConnectionCounts>,
}

impl Clients {
    pub(crate) fn new(limits: ClientLimits) -> Arc<Self> {
        Arc::new(Self { limits, counts: Mutex::default() })
    }

    /// Counts a connection; `None` if its client already has the maximum.
    pub(crate) fn admit(self: &Arc<Self>, client: Client, kind: TransportKind) -> Option<Admission> {
        let limits = &self.limits;
        let mut counts = lock(&self.counts);
        match client {
            Client::Own => {
                if counts.requests >= room(limits.requests, limits.requests_reserved, kind) {
                    return None;
                }
                counts.requests += 1;
            }
            Client::User(_) | Client::Unnamed | Client::Machine(_) => {
                if counts.all_others >= limits.others {
                    return None;
                }
                let count = counts.others.entry(client).or_default();
                if *count >= limits.another {
                    return None;
                }
                *count += 1;
                counts.all_others += 1;
            }
        }
        drop(counts);
        Some(Admission { clients: Arc::clone(self), client, kind })
    }
}

/// The maximum for one transport, given a total and the part reserved for the Unix socket.
fn room(most: usize, reserved: usize, kind: TransportKind) -> usize {
    match kind {
        TransportKind::Tcp => most.saturating_sub(reserved),
        TransportKind::Unix => most,
    }
}

/// An admitted connection; dropping this frees its slot.
#[derive(Debug)]
pub(crate) struct Admission {
    clients: Arc<Clients>,
    client: Client,
    kind: TransportKind,
}

impl Admission {
    /// Counts the connection among the streams while the slot is held.
    ///
    /// # Errors
    /// If the maximum number of streams is open.
    pub(crate) fn stream(self: &Arc<Self>) -> Result<StreamSlot, ApiError> {
        // Other clients may use their few connections as they like.
        if self.client == Client::Own {
            let limits = &self.clients.limits;
            let most = room(limits.streams, limits.streams_reserved, self.kind);
            let mut counts = lock(&self.clients.counts);
            if counts.streams >= most {
                return Err(too_many_streams(most));
            }
            counts.streams += 1;
            counts.requests = counts.requests.saturating_sub(1);
        }
        Ok(StreamSlot(Arc::clone(self)))
    }
}

fn too_many_streams(most: usize) -> ApiError {
    ApiError::new(ErrorCode::TooManyStreams, format!("the limit of {most} open streams is reached"))
        .hint("close one, or repeat the request without a stream")
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut counts = lock(&self.clients.counts);
        match self.client {
            Client::Own => counts.requests = counts.requests.saturating_sub(1),
            Client::User(_) | Client::Unnamed | Client::Machine(_) => {
                counts.all_others = counts.all_others.saturating_sub(1);
                if let Some(count) = counts.others.get_mut(&self.client) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        counts.others.remove(&self.client);
                    }
                }
            }
        }
    }
}

/// A connection counted among the streams; dropping this counts it as a request connection again.
#[derive(Debug)]
pub(crate) struct StreamSlot(Arc<Admission>);

impl Drop for StreamSlot {
    fn drop(&mut self) {
        if self.0.client == Client::Own {
            let mut counts = lock(&self.0.clients.counts);
            counts.streams = counts.streams.saturating_sub(1);
            counts.requests += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> ClientLimits {
        ClientLimits {
            requests: 4,
            requests_reserved: 1,
            streams: 3,
            streams_reserved: 1,
            another: 2,
            others: 5,
            ..ClientLimits::default()
        }
    }

    fn admit(clients: &Arc<Clients>, client: Client, kind: TransportKind, count: usize) -> Vec<Arc<Admission>> {
        (0..count).filter_map(|_| clients.admit(client, kind)).map(Arc::new).collect()
    }

    #[test]
    fn connections_are_limited_per_client() {
        let clients = Clients::new(small());
        let first = admit(&clients, Client::User(7), TransportKind::Tcp, 3);
        assert_eq!(first.len(), 2, "one over the limit of another user");
        let more = [Client::User(8), Client::Unnamed, Client::Machine([10, 0, 0, 1].into())];
        let more: Vec<_> = more.into_iter().map(|client| admit(&clients, client, TransportKind::Tcp, 2)).collect();
        assert_eq!(more.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 0], "all others have five");
        let own = admit(&clients, Client::Own, TransportKind::Tcp, 4);
        assert_eq!(own.len(), 3, "the last is for the Unix socket");
        assert_eq!(admit(&clients, Client::Own, TransportKind::Unix, 2).len(), 1);
        drop((first, more, own));
        assert_eq!(
            admit(&clients, Client::User(7), TransportKind::Tcp, 3).len(),
            2,
            "what was given back counts again"
        );
        assert_eq!(admit(&clients, Client::Own, TransportKind::Unix, 9).len(), 4);
    }

    #[test]
    fn streams_leave_room_for_requests() {
        let clients = Clients::new(small());
        let streams = |kind, count| -> Vec<_> {
            (0..count)
                .filter_map(|_| Arc::new(clients.admit(Client::Own, kind).unwrap()).stream().ok())
                .collect::<Vec<_>>()
        };
        let tcp = streams(TransportKind::Tcp, 4);
        assert_eq!(tcp.len(), 2, "the last is for the Unix socket");
        let unix = streams(TransportKind::Unix, 2);
        assert_eq!(unix.len(), 1);
        assert_eq!(admit(&clients, Client::Own, TransportKind::Tcp, 9).len(), 3, "as without streams");
        drop(tcp);
        assert_eq!(streams(TransportKind::Tcp, 4).len(), 1, "beside the one of the Unix socket");
        drop(unix);
        assert_eq!(streams(TransportKind::Tcp, 4).len(), 2);
        let counts = lock(&clients.counts);
        assert_eq!((counts.requests, counts.streams), (0, 0));
    }

    #[test]
    fn a_low_open_file_limit_lowers_the_client_limits() {
        let usual = ClientLimits::default();
        assert_eq!(usual.within(usual.files()), usual);
        let less = usual.within(usual.files() - 1);
        assert_eq!((less.requests, less.requests_reserved), (usual.requests, usual.requests_reserved));
        assert!(less.streams < usual.streams, "{less:?}");
        let half = usual.within(usual.files() / 2);
        assert!(half.requests == usual.requests && half.streams < usual.streams / 2, "streams go first: {half:?}");
        let few = usual.within(1_024);
        assert!(few.requests + few.streams + few.others <= 512, "{few:?}");
        assert!(few.requests > 100 && few.requests_reserved > 10 && few.streams_reserved > 10, "{few:?}");
        assert!(few.another <= few.others / 2 + 1 && few.another > 0, "{few:?}");
    }
}
