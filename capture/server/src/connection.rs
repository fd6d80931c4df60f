//! How a request arrived: the connection and who is at the other end.

use std::{net::SocketAddr, sync::Arc};

use live_view::Peer;

use crate::{
    clients::{Admission, StreamSlot},
    error::ApiError,
    peer::Client,
};

/// How a request arrived.
#[derive(Debug, Clone)]
pub(crate) enum Transport {
    /// The TCP port: from where, to where, by whom.
    Tcp(SocketAddr, SocketAddr, Client),
    /// The Unix socket: a process of our own user.
    Unix(Peer),
}

impl Transport {
    /// Who came in.
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
    /// How it arrived.
    pub(crate) transport: Transport,
    /// Its place among those of its client; `None` without a connection.
    pub(crate) admission: Option<Arc<Admission>>,
}

impl Connection {
    /// Counts the connection among the streams while the slot is held.
    pub(crate) fn stream(&self) -> Result<Option<StreamSlot>, ApiError> {
        self.admission.as_ref().map(Admission::stream).transpose()
    }
}
