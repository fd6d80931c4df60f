//! The host's connection to the server.
//!
//! A thread of its own: connects, says hello, sends frames, keeps them until they are
//! acknowledged, connects again when the server went away. The one who tells never waits.

use std::path::PathBuf;

use crossbeam_channel::Sender;
use events::Timestamp;

use super::frame::{Ask, Hello, Told};

/// A question of the server, with the way back.
pub struct Asked {
    /// What.
    pub ask: Ask,
    /// Takes the answer; may be dropped, which is an answer too.
    pub reply: Box<dyn FnOnce(Result<serde_json::Value, String>) + Send>,
}

/// The connection. Dropping it waits until what was told is stored, but not for long.
pub struct Link {}

impl Link {
    /// Starts the thread. `asked` gets the server's questions; it must not block for long.
    /// `find` gives the socket of the server that runs now, starting one if that is wanted.
    ///
    /// # Errors
    /// When the thread cannot be made.
    pub fn start(
        hello: Hello,
        find: Box<dyn FnMut() -> Option<PathBuf> + Send>,
        asked: Sender<Asked>,
    ) -> std::io::Result<Self> {
        let _ = (hello, find, asked);
        Ok(Self {})
    }

    /// Tells the server something; never waits.
    pub fn tell(&self, at: Timestamp, told: Told) {
        let _ = (at, told);
    }

    /// The hello changed: the size, the version, the agent in the foreground.
    pub fn hello(&self, hello: Hello) {
        let _ = hello;
    }
}
