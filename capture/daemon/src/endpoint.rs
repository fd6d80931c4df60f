//! What a running server writes into the data directory for its clients: `endpoint.json` and the tokens.

use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use api::{Endpoint, endpoint::file};
use atomic_file::Durability;
use events::id::Hex;
use rustix::rand::{GetRandomFlags, getrandom};
use server::{Token, Tokens};

/// Writes `endpoint.json`, whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn publish(endpoint: &Endpoint, data: &Path) -> anyhow::Result<()> {
    write_private(&file(data), serde_json::to_string_pretty(endpoint)?.as_bytes())
}

/// Removes `endpoint.json`, if it is still that of this server.
pub fn withdraw(endpoint: &Endpoint, data: &Path) {
    if matches!(Endpoint::load(data), Ok(Some(found)) if found == *endpoint) {
        fs::remove_file(file(data)).ok();
    }
}

/// The text of a settings file; `None` when there is none.
///
/// # Errors
/// When it is there and cannot be read, is not a regular file or is too large.
pub fn read_if_there(path: &Path) -> anyhow::Result<Option<String>> {
    atomic_file::read_settings(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file only its owner can read, whole or not at all.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    atomic_file::replace(path, content, Durability::Synced).with_context(|| format!("cannot write {}", path.display()))
}

/// The owner's token file.
#[must_use]
pub fn token_file(data: &Path) -> PathBuf {
    data.join("tokens/owner")
}

/// The file with the token that opens nothing but handing in events; it may be in an agent's
/// environment.
#[must_use]
pub fn ingest_token_file(data: &Path) -> PathBuf {
    data.join("tokens/ingest")
}

/// Makes the directory of our own agent's sessions, so that it is watched before the first one begins. Without it the
/// first session is noticed by polling.
pub(crate) fn make_session_directory(data: &Path) {
    let directory = data.join("agent/sessions");
    if let Err(error) = fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory) {
        tracing::warn!(%error, directory = %directory.display(), "cannot create the directory of the agent's sessions");
    }
}

/// The tokens of this installation; made at the first start, 256 bits each from the system.
///
/// # Errors
/// When they cannot be read or made.
pub fn tokens(data: &Path) -> anyhow::Result<Tokens> {
    let dir = data.join("tokens");
    fs::create_dir_all(&dir)
        .and_then(|()| fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o700)))
        .with_context(|| format!("cannot create {}", dir.display()))?;
    let token = |scope: &str| -> anyhow::Result<Token> {
        let path = dir.join(scope);
        if !path.exists() {
            let mut bits = [0_u8; 32];
            getrandom(&mut bits, GetRandomFlags::empty()).context("cannot read random bytes from the system")?;
            write_private(&path, Hex(&bits).to_string().as_bytes())?;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Token::new(text.trim())
            .with_context(|| format!("{} does not hold a token; remove it to get a new one", path.display()))
    };
    Ok(Tokens {
        owner: token("owner")?,
        ingest: token("ingest")?,
        read: token("read")?,
        control: token("control")?,
        admin: token("admin")?,
    })
}

#[cfg(test)]
mod tests;
