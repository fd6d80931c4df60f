//! The reasons why settings are invalid.

/// The reason why the settings are invalid.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A number is out of range.
    #[error("notify.{key} = {value} is out of range: expected {low} to {high}")]
    Range {
        /// The key.
        key: String,
        /// Its value.
        value: u64,
        /// The lowest valid value.
        low: u64,
        /// The highest valid value.
        high: u64,
    },
    /// Two channels have the same name.
    #[error("two channels of notify.channels are named `{0}`")]
    Twice(String),
    /// A rule names a channel that does not exist.
    #[error("notify.rules: no channel `{0}` is configured")]
    NoChannel(String),
    /// A channel needs a secret, which must be stored outside the configuration.
    #[error(
        "notify channel `{channel}`: the configuration must not contain the secret `{what}`; set `{what}_file` or \
         `{what}_env` instead"
    )]
    NoSecret {
        /// The channel.
        channel: String,
        /// The kind of secret: the start of the keys.
        what: String,
    },
    /// A value cannot be used.
    #[error("notify.{key}: `{value}` {why}")]
    Bad {
        /// The key.
        key: String,
        /// Its value; never a secret.
        value: String,
        /// The reason.
        why: String,
    },
}

impl ConfigError {
    pub(crate) fn bad(key: impl Into<String>, value: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Bad { key: key.into(), value: value.into(), why: why.into() }
    }
}

/// Checks a number against its range.
pub(crate) fn range(key: &str, value: u32, low: u32, high: u32) -> Result<(), ConfigError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::Range { key: key.to_owned(), value: value.into(), low: low.into(), high: high.into() })
}
