//! `capture notify`: notification channels.

use api::{
    prompts::{ChannelTest, Receipt},
    routes::TestChannel,
};
use client::failure::Failed;
use home::{config::Config, desktop::has_desktop};
use printing::style;

use super::context::{Context, print_line};
use printing::safe;

/// How to configure channels, with an example.
pub(super) const EXPLAINED: &str = "\
List and test notification channels

Configure channels with `capture config edit`. If the configuration lists any channel, the desktop is used only if it \
is listed too. An example with the desktop and Slack:

    [[notify.channels]]
    type = \"desktop\"
    name = \"desktop\"

    [[notify.channels]]
    type = \"slack\"
    name = \"team\"
    url_file = \"/home/me/.config/capture/slack.url\"

Channel types and their required settings: desktop, webhook (url, secret_file), ntfy (topic), slack (url_file), \
discord (url_file), telegram (chat_id, token_file), command (argv), web_push, terminal. Files that contain secrets \
must be readable only by you (`chmod 600`). A running server applies a change within 2 seconds.";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: NotifyCommand,
}

#[derive(Debug, clap::Subcommand)]
enum NotifyCommand {
    /// Send a test message and report whether it was accepted.
    Test {
        /// The channel's name in the configuration [default: all channels].
        channel: Option<String>,
    },
    /// List the configured channels.
    Channels,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let configured: Vec<String> = context.config.notify.names().map(str::to_owned).collect();
    let named = match &arguments.what {
        NotifyCommand::Channels => {
            return if context.json {
                context.print_json(&serde_json::json!({ "channels": configured }))
            } else {
                configured.iter().try_for_each(|name| match name == DESKTOP && !has_desktop() {
                    true => print_line(&format!("{DESKTOP} (not in use: no desktop session)")),
                    false => print_line(&safe(name)),
                })?;
                if context.config.notify.channels == Config::default().notify.channels {
                    let hint = "capture: these are the defaults; `capture notify --help` shows how to add Slack, ntfy and others";
                    printing::print_error_line(hint);
                }
                Ok(())
            };
        }
        NotifyCommand::Test { channel } => channel.clone(),
    };
    let wanted = named.as_ref().map_or_else(|| configured.clone(), |name| vec![name.clone()]);
    let client = context.client()?;
    let mut receipts = Vec::new();
    for channel in &wanted {
        receipts.push(client.send::<TestChannel>("", &ChannelTest { channel: channel.clone() })?);
    }
    if let ([receipt], Some(wanted)) = (receipts.as_slice(), &named)
        && receipt.why.as_deref() == Some(NO_CHANNEL)
        && !configured.contains(wanted)
        && wanted != DESKTOP
        && !context.json
    {
        let text = format!("no channel `{}` is configured; `capture notify channels` lists them", safe(wanted));
        return Err(Failed::NotFound(text).into());
    }
    let failed = receipts.iter().filter(|receipt| receipt.outcome != "sent").count();
    if context.json {
        context.print_json(&serde_json::json!({ "receipts": receipts }))?;
    } else {
        for receipt in &receipts {
            let colour = if receipt.outcome == "sent" { style::GREEN } else { style::RED };
            let outcome = if receipt.outcome == "dropped" { "not sent" } else { &receipt.outcome };
            let why = reason(receipt).map(|why| format!(": {}", safe(&why))).unwrap_or_default();
            print_line(&format!("{}: {}{why}", safe(&receipt.channel), style::painted(outcome, colour)))?;
        }
    }
    if failed > 0 {
        let text = match receipts.as_slice() {
            [only] => format!("cannot send the message over channel `{}`", safe(&only.channel)),
            all => format!("cannot send the message over {failed} of {} channels", all.len()),
        };
        return Err(Failed::Other(text).into());
    }
    Ok(())
}

/// The channel that exists without configuration in a desktop session.
const DESKTOP: &str = "desktop";
/// The server's error code for an unknown channel.
const NO_CHANNEL: &str = "no_channel";

/// The reason a message was not sent.
fn reason(receipt: &Receipt) -> Option<String> {
    let why = receipt.error.as_deref().or(receipt.why.as_deref())?;
    Some(match why {
        NO_CHANNEL if receipt.channel == DESKTOP => "no desktop session is running".to_owned(),
        NO_CHANNEL => "the running server does not know this channel; run `capture serve --restart`".to_owned(),
        "queue_full" => "the channel's queue is full; try again".to_owned(),
        "stopping" => "the server is stopping".to_owned(),
        _ => why.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_example_parses_as_configuration() {
        let lines = EXPLAINED.lines().filter_map(|line| line.strip_prefix("    "));
        let example: String = lines.flat_map(|line| [line, "\n"]).collect();
        let config = home::config::Config::parse(&example, std::path::Path::new("config.toml")).unwrap();
        assert_eq!(config.notify.names().collect::<Vec<_>>(), ["desktop", "team"]);
    }
}
