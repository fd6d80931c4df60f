//! The errors of the program: their messages and exit codes.

use api::ClientError;

/// Failures with specific exit codes.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// Exit code 1.
    #[error("{0}")]
    Other(String),
    /// Exit code 2, as for all usage errors.
    #[error("{0}")]
    Usage(String),
    /// Exit code 3.
    #[error("{0}")]
    TimedOut(String),
    /// Exit code 4.
    #[error("{0}")]
    NotFound(String),
    /// Exit code 5.
    #[error("{0}")]
    Refused(String),
    /// Exit code [`IN_USE`].
    #[error("{0}")]
    InUse(String),
    /// Exit code 7: the audit record could not be read, so it is unknown whether it is intact.
    #[error("{0}")]
    Unreadable(String),
}

/// Exit code for a refusal.
pub const REFUSED: u8 = 5;
/// Exit code of `capture serve` if another server uses the data directory.
pub const IN_USE: u8 = 6;

impl Failed {
    /// The exit code.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::Other(_) => 1,
            Self::Usage(_) => 2,
            Self::TimedOut(_) => 3,
            Self::NotFound(_) => 4,
            Self::Refused(_) => REFUSED,
            Self::InUse(_) => IN_USE,
            Self::Unreadable(_) => 7,
        }
    }
}

/// The error with its causes. Many errors include their cause in their message; such a cause is not repeated.
#[must_use]
pub fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// The exit code for a request that failed.
#[must_use]
pub fn code_of(error: &ClientError) -> u8 {
    match error.status() {
        Some(404) => Failed::NotFound(String::new()).code(),
        Some(408) => Failed::TimedOut(String::new()).code(),
        Some(401 | 403 | 409) => REFUSED,
        Some(_) | None => 1,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot listen on {address}: {source}")]
    struct Listen {
        address: &'static str,
        source: io::Error,
    }

    #[test]
    fn a_cause_already_in_the_error_message_is_not_repeated() {
        let listen = Listen { address: "127.0.0.1:80", source: io::Error::other("permission denied") };
        let error = anyhow::Error::new(listen).context("cannot start the server");
        assert_eq!(with_causes(&error), "cannot start the server: cannot listen on 127.0.0.1:80: permission denied");
        let error = anyhow::anyhow!("no space left").context("cannot write").context("cannot save");
        assert_eq!(with_causes(&error), "cannot save: cannot write: no space left");
    }
}
