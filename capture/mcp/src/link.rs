//! The connection to the capture server, made when a tool first needs it.

use std::sync::{Arc, Mutex, PoisonError};

use api::{Client, ClientError};

/// Connects to the capture server, or starts one if the user allows it. The error is a sentence for the user.
pub type Connect = Box<dyn Fn() -> Result<Client, String> + Send + Sync>;

/// Why a tool received no answer.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// No server is running, and starting one failed or is turned off.
    #[error("{0}")]
    NoServer(String),
    /// The server refused or failed.
    #[error(transparent)]
    Request(#[from] ClientError),
}

/// A connection that is made again if its server has exited.
pub(crate) struct Link {
    connect: Connect,
    client: Mutex<Option<Arc<Client>>>,
}

impl Link {
    pub(crate) fn new(connect: Connect) -> Self {
        Self { connect, client: Mutex::new(None) }
    }

    /// Sends an idempotent request; sends it once more, to a new server, if the known one has exited.
    pub(crate) fn read<T>(&self, request: impl Fn(&Client) -> Result<T, ClientError>) -> Result<T, LinkError> {
        let (client, is_new) = self.client()?;
        match request(&client) {
            Err(error) if !is_new && is_gone(&error) => {
                self.forget(&client);
                Ok(request(&self.client()?.0)?)
            }
            answer => Ok(answer?),
        }
    }

    /// Sends a request once.
    pub(crate) fn write<T>(&self, request: impl FnOnce(&Client) -> Result<T, ClientError>) -> Result<T, LinkError> {
        let (client, _) = self.client()?;
        let answer = request(&client);
        if answer.as_ref().is_err_and(is_gone) {
            self.forget(&client);
        }
        Ok(answer?)
    }

    /// The client, and whether it was just connected.
    fn client(&self) -> Result<(Arc<Client>, bool), LinkError> {
        let mut known = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*known {
            return Ok((Arc::clone(client), false));
        }
        let client = Arc::new((self.connect)().map_err(LinkError::NoServer)?);
        *known = Some(Arc::clone(&client));
        Ok((client, true))
    }

    fn forget(&self, gone: &Arc<Client>) {
        let mut known = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_some_and(|client| Arc::ptr_eq(client, gone)) {
            *known = None;
        }
    }
}

/// Whether no server answered, as after a restart.
const fn is_gone(error: &ClientError) -> bool {
    match error {
        ClientError::Connect { .. } | ClientError::Silent { .. } | ClientError::BrokeOff { .. } => true,
        ClientError::Endpoint(_)
        | ClientError::Address { .. }
        | ClientError::Token { .. }
        | ClientError::Unexpected { .. }
        | ClientError::Refused { .. } => false,
    }
}
