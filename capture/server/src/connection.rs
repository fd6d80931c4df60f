//! The connection of a request and its peer.

use std::{net::SocketAddr, sync::Arc};

use live_view::Peer;

use crate::{
    clients::{Admission, StreamSlot},
    error::ApiError,
    peer::Client,
};

/// The transport of a request.
#[derive(Debug, Clone)]
pub(crate) enum Transport {
    /// The TCP port: the client's address, the server's address, and the client.
    Tcp(SocketAddr, SocketAddr, Client),
    /// The Unix socket: a process of our own user.
    Unix(Peer),
}

impl Transport {
    /// The client at the other end.
    pub(crate) fn client(&self) -> Client {
        match self {
            Self::Tcp(_, _, client) => *client,
            Self::Unix(_) => Client::Own,
        }
    }
}

/// The connection of a request.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    /// The transport.
    pub(crate) transport: Transport,
    /// The connection's slot in its client's limits; `None` without a connection.
    pub(crate) admission: Option<Arc<Admission>>,
}

impl Connection {
    /// Counts the connection among the streams while the slot is held.
    pub(crate) fn stream(&self) -> Result<Option<StreamSlot>, ApiError> {
        self.admission.as_ref().map(Admission::stream).transpose()
    }
}
