//! The notification channels: one type for each, built from the settings and the environment of the program.
//!
//! A channel makes one attempt at a time and says whether another may help; [`crate::delivery`]
//! decides about attempts. Text it is given is safe to show ([`crate::text`]); what its own format
//! gives a meaning to, it escapes.

use std::{fmt, sync::Arc, time::Duration};

use events::Timestamp;

use crate::{OutgoingMessage, config::ChannelSettings, secret::SecretError};

#[cfg(feature = "http")]
mod chat;
mod command;
#[cfg(feature = "desktop")]
mod desktop;
#[cfg(feature = "http")]
mod ntfy;
mod terminal;
#[cfg(feature = "http")]
mod webhook;
pub mod wire;

#[cfg(feature = "http")]
use crate::http::{HttpClient, Lookup};

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AttemptFailure {
    /// For people and logs; holds no secret and no address with one.
    pub(crate) error: String,
    /// Whether, and when, another attempt may succeed.
    pub(crate) again: RetryHint,
}

/// Whether, and when, another attempt may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "without HTTP little is worth another attempt"))]
pub(crate) enum RetryHint {
    /// It will fail the same way.
    Never,
    /// It may, later.
    Soon,
    /// It may, after as long as the other side asked for.
    After(Duration),
}

impl AttemptFailure {
    pub(crate) fn never(error: impl fmt::Display) -> Self {
        Self { error: error.to_string(), again: RetryHint::Never }
    }

    #[cfg(any(feature = "http", feature = "desktop", test))]
    pub(crate) fn soon(error: impl fmt::Display) -> Self {
        Self { error: error.to_string(), again: RetryHint::Soon }
    }
}

/// Ends what a channel waits for; from another thread.
pub(crate) type Stopper = Box<dyn FnOnce() + Send + Sync>;

/// One channel.
pub(crate) trait Channel: Send {
    /// Makes one attempt, which ends by itself within the time of an attempt.
    fn deliver(&mut self, message: &OutgoingMessage, now: Timestamp) -> Result<(), AttemptFailure>;

    /// What ends an attempt that is under way.
    fn stopper(&self) -> Option<Stopper> {
        None
    }
}

/// Why nothing could be written to a terminal.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum SinkError {
    /// The run does not exist, or has no terminal attached.
    #[error("no terminal is attached to the run")]
    NoTerminal,
    /// The terminal does not accept output.
    #[error("the run's terminal accepts no output: {0}")]
    Busy(String),
}

/// The terminals of runs. What is written is text without controls inside a sequence of ours.
pub trait TerminalSink: Send + Sync {
    /// Writes bytes to the terminal of a run, between the output of its program. Must not block.
    ///
    /// # Errors
    /// When the run has no terminal, or the terminal does not accept output.
    fn write(&self, run: &str, bytes: &[u8]) -> Result<(), SinkError>;
}

/// Reads a variable of the environment.
pub type Env = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;
/// Reads the clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What the channels need to know of the context; the caller owns it.
#[derive(Clone)]
pub struct ChannelContext {
    /// Reads a variable of the environment.
    pub env: Env,
    /// Reads the clock.
    pub clock: Clock,
    /// The terminals of runs; without it nothing is written there.
    pub terminals: Option<Arc<dyn TerminalSink>>,
    /// How names become addresses.
    #[cfg(feature = "http")]
    pub lookup: Arc<dyn Lookup>,
    /// How long an attempt may take.
    pub attempt: Duration,
}

impl ChannelContext {
    /// How long an attempt may take, unless somebody says otherwise.
    pub const ATTEMPT: Duration = Duration::from_secs(10);

    /// Surroundings without terminals, where names are looked up as the system does it.
    #[must_use]
    pub fn new(env: Env, clock: Clock) -> Self {
        Self {
            env,
            clock,
            terminals: None,
            #[cfg(feature = "http")]
            lookup: Arc::new(crate::http::SystemLookup),
            attempt: Self::ATTEMPT,
        }
    }
}

impl fmt::Debug for ChannelContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

/// A channel that cannot work; every message fails with this error.
struct BrokenChannel(String);

impl Channel for BrokenChannel {
    fn deliver(&mut self, _: &OutgoingMessage, _: Timestamp) -> Result<(), AttemptFailure> {
        Err(AttemptFailure::never(&self.0))
    }
}

/// Why a channel cannot work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    /// Its secret cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Any other reason.
    #[error("{0}")]
    Other(String),
}

/// Builds a channel. One that cannot work tells so with each message.
pub(crate) fn build(settings: &ChannelSettings, allow_hosts: &[String], context: &ChannelContext) -> Box<dyn Channel> {
    try_build(settings, allow_hosts, context).unwrap_or_else(|trouble| Box::new(BrokenChannel(trouble.to_string())))
}

/// Says why a channel cannot work, as far as that shows without sending anything.
pub(crate) fn trouble(settings: &ChannelSettings, allow_hosts: &[String], context: &ChannelContext) -> Option<String> {
    try_build(settings, allow_hosts, context).err().map(|trouble| trouble.to_string())
}

#[cfg_attr(not(feature = "http"), expect(unused_variables, reason = "only HTTP channels have hosts"))]
fn try_build(
    settings: &ChannelSettings,
    allow_hosts: &[String],
    context: &ChannelContext,
) -> Result<Box<dyn Channel>, ChannelError> {
    #[cfg(feature = "http")]
    let secret = || match settings.secret() {
        Some(source) => Ok(Some(source.read(&*context.env)?)),
        None => Ok::<_, ChannelError>(None),
    };
    #[cfg(feature = "http")]
    let needed = || secret()?.ok_or_else(|| ChannelError::Other("the channel's secret is not set".to_owned()));
    #[cfg(feature = "http")]
    let client = |ca: Option<&std::path::Path>| HttpClient::new(allow_hosts, ca, context).map_err(ChannelError::Other);
    match settings {
        #[cfg(feature = "desktop")]
        ChannelSettings::Desktop { .. } => Ok(Box::new(desktop::DesktopChannel::new(context))),
        #[cfg(not(feature = "desktop"))]
        ChannelSettings::Desktop { .. } => {
            Err(ChannelError::Other("this build has no desktop notifications".to_owned()))
        }
        ChannelSettings::Command { argv, timeout_ms, .. } => {
            Ok(Box::new(command::CommandChannel::new(argv, Duration::from_millis(u64::from(*timeout_ms)), context)))
        }
        ChannelSettings::Terminal { style, .. } => match &context.terminals {
            Some(sink) => Ok(Box::new(terminal::TerminalChannel::new(*style, sink.clone()))),
            None => Err(ChannelError::Other("terminal notifications are not available here".to_owned())),
        },
        #[cfg(feature = "http")]
        ChannelSettings::Webhook { url, ca_file, .. } => Ok(Box::new(
            webhook::WebhookChannel::new(url, &needed()?, client(ca_file.as_deref())?).map_err(ChannelError::Other)?,
        )),
        #[cfg(feature = "http")]
        ChannelSettings::Ntfy { server, topic, ca_file, .. } => {
            Ok(Box::new(ntfy::NtfyChannel::new(server, topic, secret()?, client(ca_file.as_deref())?)))
        }
        #[cfg(feature = "http")]
        ChannelSettings::Slack { .. } => Ok(Box::new(chat::ChatChannel::slack(needed()?, client(None)?))),
        #[cfg(feature = "http")]
        ChannelSettings::Discord { .. } => Ok(Box::new(chat::ChatChannel::discord(needed()?, client(None)?))),
        #[cfg(feature = "http")]
        ChannelSettings::Telegram { server, chat_id, .. } => {
            Ok(Box::new(chat::ChatChannel::telegram(server, chat_id, &needed()?, client(None)?)))
        }
        #[cfg(not(feature = "http"))]
        ChannelSettings::Webhook { .. }
        | ChannelSettings::Ntfy { .. }
        | ChannelSettings::Slack { .. }
        | ChannelSettings::Discord { .. }
        | ChannelSettings::Telegram { .. } => Err(ChannelError::Other("this build has no HTTP channels".to_owned())),
    }
}
