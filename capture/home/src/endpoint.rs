//! The files that a running server writes into the data directory for its clients: `endpoint.json` and the tokens.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use api::{Endpoint, endpoint::file};
use atomic_file::Durability;

/// Atomically writes `endpoint.json`.
///
/// # Errors
/// If it cannot be written.
pub fn publish(endpoint: &Endpoint, data: &Path) -> anyhow::Result<()> {
    write_private(&file(data), serde_json::to_string_pretty(endpoint)?.as_bytes())
}

/// Removes `endpoint.json` if it still describes this server.
pub fn withdraw(endpoint: &Endpoint, data: &Path) {
    if matches!(Endpoint::load(data), Ok(Some(found)) if found == *endpoint) {
        fs::remove_file(file(data)).ok();
    }
}

/// The text of a settings file; `None` if it does not exist.
///
/// # Errors
/// If the file exists and cannot be read, is not a regular file or is too large.
pub fn read_if_there(path: &Path) -> anyhow::Result<Option<String>> {
    atomic_file::read_settings(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Atomically writes a file that only its owner can read.
///
/// # Errors
/// If it cannot be written.
pub fn write_private(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    atomic_file::replace(path, content, Durability::Synced).with_context(|| format!("cannot write {}", path.display()))
}

/// The owner's token file.
#[must_use]
pub fn token_file(data: &Path) -> PathBuf {
    data.join("tokens/owner")
}

/// The file with the token that only allows sending events; it may be in an agent's environment.
#[must_use]
pub fn ingest_token_file(data: &Path) -> PathBuf {
    data.join("tokens/ingest")
}

#[cfg(test)]
mod tests;
