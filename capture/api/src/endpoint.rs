//! `endpoint.json` in the data directory: the address of a running server.

use std::{
    io,
    path::{Path, PathBuf},
};

use atomic_file::read_settings;
use serde::{Deserialize, Serialize};

/// What `endpoint.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    /// The server's process.
    pub pid: u32,
    /// When that process started, in clock ticks since boot; 0 in files of releases that did not
    /// write it. Together with `pid` it names one process, also after the pid was used again.
    #[serde(default)]
    pub start_ticks: u64,
    /// Identifies this run of the server process.
    pub epoch: String,
    /// The Unix socket.
    pub socket: PathBuf,
    /// The file with the owner's token.
    pub token_file: PathBuf,
    /// Version of the server's program; empty in files of releases that did not write it.
    #[serde(default)]
    pub version: String,
    /// Whether a command started it in the background, so that a command may restart it.
    #[serde(default)]
    pub background: bool,
}

/// Why `endpoint.json` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is damaged.
    #[error("{} is damaged: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// The file that says where the server is.
#[must_use]
pub fn file(data: &Path) -> PathBuf {
    data.join("endpoint.json")
}

impl Endpoint {
    /// Reads it; `None` when no server said where it is.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn load(data: &Path) -> Result<Option<Self>, EndpointError> {
        let path = file(data);
        // A pipe in its place would never answer.
        let text = match read_settings(&path) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(None),
            Err(source) => return Err(EndpointError::Read { path, source }),
        };
        serde_json::from_str(&text).map(Some).map_err(|source| EndpointError::Damaged { path, source })
    }

    /// Whether the process it names is alive. A file that outlived its server (SIGKILL, power cut)
    /// may name a pid that another process has by now.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        processes::is_alive(self.pid, self.start_ticks)
    }
}
