//! The tokens of an installation, in the data directory.

use std::{fs, path::Path};

use anyhow::Context;
use events::id::Hex;
use home::endpoint::write_private;
use server::{Token, Tokens};

/// The tokens of this installation, created at the first start with 256 random bits each.
///
/// # Errors
/// When they cannot be read or created.
pub(crate) fn tokens(data: &Path) -> anyhow::Result<Tokens> {
    let dir = data.join("tokens");
    fs::create_dir_all(&dir)
        .and_then(|()| fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o700)))
        .with_context(|| format!("cannot create {}", dir.display()))?;
    let token = |scope: &str| -> anyhow::Result<Token> {
        let path = dir.join(scope);
        if !path.exists() {
            let mut bits = [0_u8; 32];
            home::clock::fill_random(&mut bits).context("cannot read random bytes from the system")?;
            write_private(&path, Hex(&bits).to_string().as_bytes())?;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Token::new(text.trim())
            .with_context(|| format!("{} does not contain a token; remove the file to get a new one", path.display()))
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
