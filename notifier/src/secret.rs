//! Secrets of channels: the places where they are stored, and a type that is never printed.

use std::{
    fmt,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use atomic_file::{Links, open_regular};

/// Maximum length of a secret, bytes.
const SECRET_BYTES: u64 = 4_096;

/// A text that is not printed, logged or serialized.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text as a secret.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for sending it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// The place where a secret is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In a file that only its owner can read.
    File(PathBuf),
    /// In a variable of the environment.
    Env(String),
}

/// The reason why a secret could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("cannot read the secret in {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// Other users can read the file too.
    #[error("{path} can be read by others (mode {mode:03o}); `chmod 600` it")]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file or variable is empty, too long, or not text.
    #[error("no usable secret in {place}: it is {what}")]
    Bad {
        /// The file or variable.
        place: String,
        /// The reason: empty, too long, not text.
        what: &'static str,
    },
    /// The variable is not set.
    #[error("the environment variable {0} is not set")]
    Unset(String),
}

impl SecretSource {
    /// Reads the secret, without surrounding white space.
    ///
    /// # Errors
    /// If it does not exist, is empty, too long or not text, or is in a file that others can read.
    pub fn read(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<Secret, SecretError> {
        let (place, text) = match self {
            Self::File(path) => (path.display().to_string(), read_file(path)?),
            Self::Env(name) => (name.clone(), env(name).ok_or_else(|| SecretError::Unset(name.clone()))?),
        };
        let bad = |what| SecretError::Bad { place: place.clone(), what };
        let secret = text.trim();
        if secret.is_empty() {
            return Err(bad("empty"));
        }
        if secret.len() as u64 > SECRET_BYTES {
            return Err(bad("too long"));
        }
        if secret.chars().any(char::is_control) {
            return Err(bad("not one line"));
        }
        Ok(Secret::new(secret))
    }
}

fn read_file(path: &Path) -> Result<String, SecretError> {
    let unreadable = |error: std::io::Error| SecretError::Unreadable { path: path.to_owned(), error };
    let file = open_regular(path, Links::Followed).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(SecretError::Open { path: path.to_owned(), mode });
    }
    let mut text = String::new();
    file.take(SECRET_BYTES + 2).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_comes_from_a_private_file_or_the_environment_and_is_never_printed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        std::fs::write(&path, " hunter2\n").unwrap();
        let source = SecretSource::File(path.clone());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(source.read(&|_| None), Err(SecretError::Open { mode: 0o644, .. })));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let secret = source.read(&|_| None).unwrap();
        assert_eq!(secret.expose(), "hunter2");
        assert_eq!(format!("{secret:?}"), "[secret]");
        let env = SecretSource::Env("X".into());
        assert_eq!(env.read(&|n| (n == "X").then(|| "v".into())).unwrap().expose(), "v");
        assert!(matches!(env.read(&|_| None), Err(SecretError::Unset(_))));
        assert!(matches!(env.read(&|_| Some("a\nb".into())), Err(SecretError::Bad { .. })));
        assert!(matches!(
            SecretSource::File(dir.path().join("no")).read(&|_| None),
            Err(SecretError::Unreadable { .. })
        ));
    }
}
