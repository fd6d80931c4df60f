//! The settings of one channel. They contain no secrets, only the places where these are stored.

use std::{fmt, path::PathBuf};

use outbound::AllowedHost;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    config::error::{ConfigError, range},
    secret::SecretSource,
};

/// Telegram's public server.
fn telegram() -> String {
    "https://api.telegram.org".to_owned()
}
/// ntfy's public server.
fn ntfy() -> String {
    "https://ntfy.sh".to_owned()
}
/// A chat of Telegram: its id, as a number or a text, or `@channel`.
fn chat_id<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected `chat_id` to be a number or \"@channel\"")]
    enum ChatId {
        Number(i64),
        Name(String),
    }

    Ok(match ChatId::deserialize(value)? {
        ChatId::Number(number) => number.to_string(),
        ChatId::Name(name) => name,
    })
}
const fn command_timeout_ms() -> u32 {
    10_000
}

/// The escape sequence that shows a notification in a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminalStyle {
    /// OSC 9: iTerm2, WezTerm, Windows Terminal, Ghostty.
    Osc9,
    /// OSC 777: rxvt, foot, VTE, Ghostty.
    Osc777,
    /// OSC 99: kitty.
    Osc99,
    /// A bell and nothing else.
    #[default]
    Bell,
}

/// One channel.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ChannelSettings {
    /// A notification of the desktop, over D-Bus.
    Desktop {
        /// The name used in rules and receipts.
        name: String,
    },
    /// A POST of JSON, signed in the form of Standard Webhooks.
    Webhook {
        /// The name used in rules and receipts.
        name: String,
        /// The address to post to.
        url: String,
        /// The file with the secret, `whsec_…`.
        secret_file: Option<PathBuf>,
        /// The variable with the secret, instead of a file.
        secret_env: Option<String>,
        /// Additional certificates to trust, PEM.
        ca_file: Option<PathBuf>,
    },
    /// A topic of ntfy.
    Ntfy {
        /// The name used in rules and receipts.
        name: String,
        /// The server.
        #[serde(default = "ntfy")]
        server: String,
        /// The topic. On a public server, anyone who knows its name can read it.
        topic: String,
        /// Whether permission requests get buttons that allow them once or deny them. Anyone who reads the topic can
        /// press them; needs `page_url`.
        #[serde(default)]
        buttons: bool,
        /// The file with the access token, if one is needed.
        token_file: Option<PathBuf>,
        /// The variable with the token, instead of a file.
        token_env: Option<String>,
        /// Additional certificates to trust, PEM.
        ca_file: Option<PathBuf>,
    },
    /// An incoming webhook of Slack. Its address is the secret.
    Slack {
        /// The name used in rules and receipts.
        name: String,
        /// The file with the address.
        url_file: Option<PathBuf>,
        /// The variable with the address, instead of a file.
        url_env: Option<String>,
    },
    /// A webhook of Discord. Its address is the secret.
    Discord {
        /// The name used in rules and receipts.
        name: String,
        /// The file with the address.
        url_file: Option<PathBuf>,
        /// The variable with the address, instead of a file.
        url_env: Option<String>,
    },
    /// A bot of Telegram.
    Telegram {
        /// The name used in rules and receipts.
        name: String,
        /// The server.
        #[serde(default = "telegram")]
        server: String,
        /// The recipient: a number, or `@channel`.
        #[serde(deserialize_with = "chat_id")]
        chat_id: String,
        /// The file with the bot's token.
        token_file: Option<PathBuf>,
        /// The variable with the token, instead of a file.
        token_env: Option<String>,
    },
    /// A program that gets the message as JSON on its standard input. No shell.
    Command {
        /// The name used in rules and receipts.
        name: String,
        /// The program, an absolute path, and its arguments.
        argv: Vec<String>,
        /// Time limit of the program, milliseconds.
        #[serde(default = "command_timeout_ms")]
        timeout_ms: u32,
    },
    /// The browsers that were subscribed on the page.
    WebPush {
        /// The name used in rules and receipts.
        name: String,
    },
    /// The terminal of the run that the notice is about.
    Terminal {
        /// The name used in rules and receipts.
        name: String,
        /// The escape sequence that the terminal supports.
        #[serde(default)]
        style: TerminalStyle,
    },
}

impl ChannelSettings {
    /// The name that rules and receipts use.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Desktop { name }
            | Self::WebPush { name }
            | Self::Webhook { name, .. }
            | Self::Ntfy { name, .. }
            | Self::Slack { name, .. }
            | Self::Discord { name, .. }
            | Self::Telegram { name, .. }
            | Self::Command { name, .. }
            | Self::Terminal { name, .. } => name,
        }
    }

    /// The name of its type.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Desktop { .. } => "desktop",
            Self::WebPush { .. } => "web_push",
            Self::Webhook { .. } => "webhook",
            Self::Ntfy { .. } => "ntfy",
            Self::Slack { .. } => "slack",
            Self::Discord { .. } => "discord",
            Self::Telegram { .. } => "telegram",
            Self::Command { .. } => "command",
            Self::Terminal { .. } => "terminal",
        }
    }

    /// Whether its messages may leave the machine.
    #[must_use]
    pub const fn leaves_machine(&self) -> bool {
        match self {
            Self::Desktop { .. } | Self::Terminal { .. } => false,
            // The program may send the message anywhere.
            Self::Command { .. } => true,
            Self::Webhook { .. }
            | Self::Ntfy { .. }
            | Self::WebPush { .. }
            | Self::Slack { .. }
            | Self::Discord { .. }
            | Self::Telegram { .. } => true,
        }
    }

    /// The place of its secret, if it has one.
    pub(crate) fn secret(&self) -> Option<SecretSource> {
        match self {
            Self::Webhook { secret_file: file, secret_env: env, .. }
            | Self::Ntfy { token_file: file, token_env: env, .. }
            | Self::Slack { url_file: file, url_env: env, .. }
            | Self::Discord { url_file: file, url_env: env, .. }
            | Self::Telegram { token_file: file, token_env: env, .. } => {
                file.clone().map(SecretSource::File).or_else(|| env.clone().map(SecretSource::Env))
            }
            Self::Desktop { .. } | Self::WebPush { .. } | Self::Command { .. } | Self::Terminal { .. } => None,
        }
    }

    pub(super) fn check(&self, allow_hosts: &[String]) -> Result<(), ConfigError> {
        let name = self.name();
        let key = |key: &str| format!("channels.{name}.{key}");
        let good = !name.is_empty()
            && name.len() <= 40
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        if !good {
            return Err(ConfigError::bad("channels.name", name, "must be 1 to 40 letters, digits, `-` or `_`"));
        }
        let needs = |what: &str| match self.secret() {
            Some(SecretSource::File(path)) if !path.is_absolute() => Err(ConfigError::bad(
                key(&format!("{what}_file")),
                path.display().to_string(),
                "is not an absolute path",
            )),
            Some(_) => Ok(()),
            None => Err(ConfigError::NoSecret { channel: name.to_owned(), what: what.to_owned() }),
        };
        match self {
            Self::Desktop { .. } | Self::WebPush { .. } | Self::Terminal { .. } => Ok(()),
            Self::Webhook { url, .. } => {
                needs("secret")?;
                address(&key("url"), url, allow_hosts)
            }
            Self::Ntfy { server, topic, .. } => {
                let good = (1..=64).contains(&topic.len())
                    && topic.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
                if !good {
                    // Anyone who knows a topic can read it, so it is not repeated.
                    return Err(ConfigError::bad(key("topic"), "…", "is not a valid topic name"));
                }
                address(&key("server"), server, allow_hosts)
            }
            Self::Slack { .. } | Self::Discord { .. } => needs("url"),
            Self::Telegram { server, chat_id, .. } => {
                needs("token")?;
                if chat_id.is_empty() {
                    return Err(ConfigError::bad(key("chat_id"), chat_id, "is required"));
                }
                address(&key("server"), server, allow_hosts)
            }
            Self::Command { argv, timeout_ms, .. } => {
                range(&key("timeout_ms"), *timeout_ms, 100, 300_000)?;
                match argv.first() {
                    Some(program) if program.starts_with('/') => Ok(()),
                    program => {
                        let program = program.cloned().unwrap_or_default();
                        Err(ConfigError::bad(key("argv"), program, "must begin with the absolute path of a program"))
                    }
                }
            }
        }
    }
}

/// Checks the address of a channel against the hosts that may be reached.
fn address(key: &str, text: &str, allow_hosts: &[String]) -> Result<(), ConfigError> {
    // The address itself is not repeated, because it may contain a token.
    let bad = |why: &str| Err(ConfigError::bad(key, "…", why));
    let Ok(url) = url::Url::parse(text) else { return bad("is not a URL") };
    if !url.username().is_empty() || url.password().is_some() {
        return bad("must not contain a user name or password");
    }
    let allowed = allow_hosts.iter().filter_map(|h| AllowedHost::parse(h).ok()).any(|h| h.covers(&url));
    match url.scheme() {
        "https" => Ok(()),
        "http" if allowed => Ok(()),
        "http" => bad("is not https, and its host is not in notify.allow_hosts"),
        _ => bad("is not https"),
    }
}

/// An address shown as its host only, because the rest may contain a token.
struct AddressHost<'a>(&'a str);

impl fmt::Debug for AddressHost<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match url::Url::parse(self.0) {
            Ok(url) => write!(f, "{}://{}/…", url.scheme(), url.host_str().unwrap_or_default()),
            Err(_) => f.write_str("…"),
        }
    }
}

impl fmt::Debug for ChannelSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct(self.kind());
        out.field("name", &self.name());
        match self {
            Self::Desktop { .. } | Self::WebPush { .. } | Self::Slack { .. } | Self::Discord { .. } => {}
            Self::Webhook { url, .. } => drop(out.field("url", &AddressHost(url))),
            // Anyone who knows a topic can read it.
            Self::Ntfy { server, .. } => drop(out.field("server", &AddressHost(server))),
            Self::Telegram { server, .. } => drop(out.field("server", &AddressHost(server))),
            Self::Command { argv, .. } => drop(out.field("program", &argv.first())),
            Self::Terminal { style, .. } => drop(out.field("style", style)),
        }
        if let Some(secret) = self.secret() {
            out.field("secret", &secret);
        }
        out.finish()
    }
}
