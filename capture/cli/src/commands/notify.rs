//! `capture notify`: notification channels.

use api::{prompts::ChannelTest, routes::TestChannel};

use super::{Context, Failed, print_line, style};
use crate::terminal::safe;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: NotifyCommand,
}

#[derive(Debug, clap::Subcommand)]
enum NotifyCommand {
    /// Send a test message over one channel, or over all of them, and report the outcome.
    Test {
        /// The channel's name in the configuration.
        channel: Option<String>,
    },
    /// List the configured channels.
    Channels,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let channels: Vec<String> = context.config.notify.names().map(str::to_owned).collect();
    let wanted = match &arguments.what {
        NotifyCommand::Channels => {
            return if context.json {
                context.print_json(&serde_json::json!({ "channels": channels }))
            } else {
                channels.iter().try_for_each(|name| print_line(&safe(name)))
            };
        }
        NotifyCommand::Test { channel: Some(channel) } => vec![channel.clone()],
        NotifyCommand::Test { channel: None } => channels,
    };
    let client = context.client()?;
    let mut receipts = Vec::new();
    for channel in &wanted {
        receipts.push(client.send::<TestChannel>("", &ChannelTest { channel: channel.clone() })?);
    }
    let failed = receipts.iter().filter(|receipt| receipt.outcome != "sent").count();
    if context.json {
        context.print_json(&serde_json::json!({ "receipts": receipts }))?;
    } else {
        for receipt in &receipts {
            let colour = if receipt.outcome == "sent" { style::GREEN } else { style::RED };
            let why = receipt
                .error
                .as_deref()
                .or(receipt.why.as_deref())
                .map(|why| format!(": {}", safe(why)))
                .unwrap_or_default();
            print_line(&format!("{}  {}{why}", style::painted(&receipt.outcome, colour), safe(&receipt.channel)))?;
        }
    }
    if failed > 0 {
        return Err(Failed::Other(format!("{failed} of {} channels did not accept the message", receipts.len())).into());
    }
    Ok(())
}
