//! The settings: `[notify]` in the configuration file. An unknown key is an error that names it. The settings contain
//! no secrets, only the places where they are stored.
//!
//! With the default settings nothing leaves the machine: the only channel is the desktop.

use std::collections::BTreeSet;

use outbound::AllowedHost;
use serde::Deserialize;

pub mod channel;
mod error;
pub mod quiet;
pub mod rule;

pub use channel::{ChannelSettings, TerminalStyle};
pub use error::ConfigError;
pub(crate) use error::range;
pub use quiet::{Hours, Quiet};
pub use rule::{Loudness, NotifyRule, ResolvedRule, WhilePresent};

/// Maximum number of channels.
const CHANNELS: usize = 32;
/// Maximum number of rules.
const RULES: usize = 256;

/// Settings of notifications.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifySettings {
    /// Whether notifications are sent at all.
    pub enabled: bool,
    /// The channels. Empty: the desktop.
    pub channels: Vec<ChannelSettings>,
    /// How notices are sent. The first matching rule applies; a setting that it leaves out has the default of the kind.
    pub rules: Vec<NotifyRule>,
    /// Quiet hours.
    pub quiet: Quiet,
    /// `host` or `host:port` that may be reached over plain `http`, and at addresses of this machine or a private
    /// network. Without a port: the default port of the scheme.
    pub allow_hosts: Vec<String>,
    /// Number of notices within the window from which they are sent as one list.
    pub group_at: u32,
    /// The window, milliseconds.
    pub group_window_ms: u32,
    /// How long notices are collected for a list, milliseconds.
    pub gather_ms: u32,
    /// Maximum number of messages per minute and channel; the rest is sent as one list.
    pub per_minute: u32,
    /// The address of the page for people who get messages, such as `https://box.tailnet.ts.net`. Messages link to it.
    /// Without it, they link to the page on this machine.
    pub page_url: Option<String>,
}

impl Default for NotifySettings {
    fn default() -> Self {
        Self {
            enabled: true,
            channels: vec![ChannelSettings::Desktop { name: "desktop".to_owned() }],
            rules: Vec::new(),
            quiet: Quiet::default(),
            allow_hosts: Vec::new(),
            group_at: 3,
            group_window_ms: 5_000,
            gather_ms: 200,
            per_minute: 60,
            page_url: None,
        }
    }
}

impl NotifySettings {
    /// Checks the settings.
    ///
    /// # Errors
    /// A number out of range, a duplicate or missing name, or an incomplete channel.
    pub fn check(&self) -> Result<(), ConfigError> {
        range("group_at", self.group_at, 2, 1_000)?;
        range("group_window_ms", self.group_window_ms, 0, 600_000)?;
        range("gather_ms", self.gather_ms, 0, 60_000)?;
        range("per_minute", self.per_minute, 1, 600)?;
        let count = |key: &str, length: usize, most: usize| {
            range(key, u32::try_from(length).unwrap_or(u32::MAX), 0, u32::try_from(most).unwrap_or(u32::MAX))
        };
        count("channels", self.channels.len(), CHANNELS)?;
        count("rules", self.rules.len(), RULES)?;
        if let Some(url) = self.page_url.as_deref().filter(|url| !is_page_url(url)) {
            return Err(ConfigError::bad("page_url", url, "must be a scheme and a host, such as https://box.example"));
        }
        let mut names = BTreeSet::new();
        for channel in &self.channels {
            channel.check(&self.allow_hosts)?;
            if !names.insert(channel.name()) {
                return Err(ConfigError::Twice(channel.name().to_owned()));
            }
        }
        for host in &self.allow_hosts {
            AllowedHost::parse(host).map_err(|why| ConfigError::bad("allow_hosts", host, why.to_string()))?;
        }
        for rule in &self.rules {
            rule.check()?;
            if let Some(missing) = rule.channels.iter().flatten().find(|n| !names.contains(n.as_str())) {
                return Err(ConfigError::NoChannel(missing.clone()));
            }
        }
        Ok(())
    }

    /// The names of all channels, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.channels.iter().map(ChannelSettings::name)
    }
}

/// Whether a text is the address of a server, without path, query or credentials.
fn is_page_url(text: &str) -> bool {
    let Ok(url) = url::Url::parse(text) else { return false };
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let is_plain = url.username().is_empty() && url.password().is_none() && url.host_str().is_some();
    matches!(url.scheme(), "http" | "https") && is_bare && is_plain
}

#[cfg(test)]
mod tests;
