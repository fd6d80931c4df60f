//! The notification channels: one type for each kind, built from the settings and the environment of the program.
//!
//! A channel makes one attempt at a time and returns whether another attempt may help; [`crate::delivery`] decides
//! about attempts. The text passed to a channel is safe to display ([`crate::text`]); the channel escapes characters
//! with a meaning in its own format.

use std::sync::Arc;
use std::time::Duration;

use events::Timestamp;

use crate::{config::channel::ChannelSettings, message::OutgoingMessage, secret::SecretError};

mod chat;
mod command;
mod desktop;
mod ntfy;
mod terminal;
mod web_push;
mod webhook;
pub mod wire;

use crate::attempt::{AttemptFailure, Channel};
pub use crate::context::{ChannelContext, Clock, Env, PushPost, PushSink, SinkError, TerminalSink};
use crate::http::HttpClient;

/// A channel that cannot work; every message fails with this error.
struct BrokenChannel(String);

impl Channel for BrokenChannel {
    fn deliver(&mut self, _: &OutgoingMessage, _: Timestamp) -> Result<(), AttemptFailure> {
        Err(AttemptFailure::never(&self.0))
    }
}

/// The reason why a channel cannot work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    /// Its secret cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Any other reason.
    #[error("{0}")]
    Other(String),
}

/// Builds a channel. If it cannot work, the receipt of each message states the reason.
pub(crate) fn build(settings: &ChannelSettings, allow_hosts: &[String], context: &ChannelContext) -> Box<dyn Channel> {
    try_build(settings, allow_hosts, context).unwrap_or_else(|trouble| Box::new(BrokenChannel(trouble.to_string())))
}

/// The reason why a channel cannot work, as far as it can be determined without sending anything.
pub(crate) fn trouble(settings: &ChannelSettings, allow_hosts: &[String], context: &ChannelContext) -> Option<String> {
    try_build(settings, allow_hosts, context).err().map(|trouble| trouble.to_string())
}

fn try_build(
    settings: &ChannelSettings,
    allow_hosts: &[String],
    context: &ChannelContext,
) -> Result<Box<dyn Channel>, ChannelError> {
    let secret = || match settings.secret() {
        Some(source) => Ok(Some(source.read(&*context.env)?)),
        None => Ok::<_, ChannelError>(None),
    };
    let needed = || secret()?.ok_or_else(|| ChannelError::Other("the channel's secret is not set".to_owned()));
    let client = |ca: Option<&std::path::Path>| HttpClient::new(allow_hosts, ca, context).map_err(ChannelError::Other);
    match settings {
        ChannelSettings::Desktop { .. } => Ok(Box::new(desktop::DesktopChannel::new(context))),
        ChannelSettings::Command { argv, timeout_ms, .. } => {
            Ok(Box::new(command::CommandChannel::new(argv, Duration::from_millis(u64::from(*timeout_ms)), context)))
        }
        ChannelSettings::Terminal { style, .. } => match &context.terminals {
            Some(sink) => Ok(Box::new(terminal::TerminalChannel::new(*style, sink.clone()))),
            None => Err(ChannelError::Other("terminal notifications are not available here".to_owned())),
        },
        ChannelSettings::Webhook { url, ca_file, .. } => Ok(Box::new(
            webhook::WebhookChannel::new(url, &needed()?, client(ca_file.as_deref())?).map_err(ChannelError::Other)?,
        )),
        ChannelSettings::Ntfy { server, topic, ca_file, buttons, .. } => {
            let client = client(ca_file.as_deref())?;
            Ok(Box::new(ntfy::NtfyChannel::new(server, topic, *buttons, secret()?, client)))
        }
        ChannelSettings::WebPush { .. } => match &context.push {
            // Endpoints belong to push services, so the hosts that the user allows for other channels do not apply.
            Some(sink) => {
                let client = HttpClient::new(&[], None, context).map_err(ChannelError::Other)?;
                Ok(Box::new(web_push::WebPushChannel::new(Arc::clone(sink), client)))
            }
            None => Err(ChannelError::Other("web push is not available here".to_owned())),
        },
        ChannelSettings::Slack { .. } => Ok(Box::new(chat::ChatChannel::slack(needed()?, client(None)?))),
        ChannelSettings::Discord { .. } => Ok(Box::new(chat::ChatChannel::discord(needed()?, client(None)?))),
        ChannelSettings::Telegram { server, chat_id, .. } => {
            Ok(Box::new(chat::ChatChannel::telegram(server, chat_id, &needed()?, client(None)?)))
        }
    }
}
