//! What the server cannot answer itself: it asks capture, over a bounded channel.

use events::SessionId;
use tokio::sync::oneshot;

/// A request to the program around the server.
#[derive(Debug)]
pub enum Command {
    /// Turns the capture of a session on or off.
    SetCapture {
        /// Which session.
        session: SessionId,
        /// On or off.
        enabled: bool,
        /// Takes the answer. Dropped without one: the client is told 503.
        reply: oneshot::Sender<Result<(), Refusal>>,
    },
}

/// Why a command was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// It cannot be done as things stand.
    #[error("{0}")]
    Conflict(String),
    /// It went wrong; the text goes to the log, not to the client.
    #[error("{0}")]
    Failed(String),
}
