//! `endpoint.json` in the data directory: the address of a running server.

use std::{
    io,
    path::{Path, PathBuf},
};

use atomic_file::read_settings;
use serde::{Deserialize, Serialize};

/// The content of `endpoint.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    /// The server's process.
    pub pid: u32,
    /// The start time of the process, in clock ticks since boot; 0 in files of releases that did not record it.
    /// Together with `pid` it identifies one process, even after the pid was reused.
    #[serde(default)]
    pub start_ticks: u64,
    /// Identifies this run of the server process.
    pub epoch: String,
    /// The Unix socket.
    pub socket: PathBuf,
    /// The file with the owner's token.
    pub token_file: PathBuf,
    /// The version of the server's program; empty in files of releases that did not record it.
    #[serde(default)]
    pub version: String,
    /// Whether a command started it in the background, so that a command may restart it.
    #[serde(default)]
    pub background: bool,
}

/// Why `endpoint.json` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is damaged.
    #[error("{} is damaged ({source}); `capture serve` writes it again", path.display())]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The error.
        source: serde_json::Error,
    },
}

/// The path of `endpoint.json`.
#[must_use]
pub fn file(data: &Path) -> PathBuf {
    data.join("endpoint.json")
}

impl Endpoint {
    /// Reads the file; `None` if no server has written it.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn load(data: &Path) -> Result<Option<Self>, EndpointError> {
        let path = file(data);
        // A pipe in place of the file would block forever.
        let text = match read_settings(&path) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(None),
            Err(source) => return Err(EndpointError::Read { path, source }),
        };
        serde_json::from_str(&text).map(Some).map_err(|source| EndpointError::Damaged { path, source })
    }

    /// Whether the named process is alive. If a file outlived its server (SIGKILL, power cut), its pid may belong to
    /// another process by now.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        processes::is_alive(self.pid, self.start_ticks)
    }
}
