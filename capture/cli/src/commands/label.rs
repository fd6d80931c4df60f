//! `capture label`: labels of sessions.

use api::{routes::LabelSession, sessions::Labels};
use client::failure::Failed;

use super::context::{Context, find, print_line};
use printing::safe;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id.
    session: String,
    /// `KEY=VALUE` adds a label, `KEY-` removes it; without labels, list them.
    #[arg(value_name = "KEY=VALUE")]
    labels: Vec<String>,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let labels = arguments.labels.iter().map(|given| parsed(given)).collect::<anyhow::Result<_>>()?;
    let client = context.client()?;
    let session = find(&client, &arguments.session)?;
    if !arguments.labels.is_empty() {
        client.send::<LabelSession>(&session.id.to_string(), &Labels { labels })?;
    }
    let session = find(&client, &session.id.to_string())?;
    if context.json {
        return context.print_json(&serde_json::json!({ "id": session.id, "labels": session.labels }));
    }
    if session.labels.is_empty() {
        return print_line("no labels");
    }
    for (key, value) in &session.labels {
        print_line(&format!("{}={}", safe(key), safe(value)))?;
    }
    Ok(())
}

fn parsed(given: &str) -> anyhow::Result<(String, Option<String>)> {
    let wrong = || Failed::Usage(format!("expected KEY=VALUE or KEY-, got `{}`", safe(given)));
    match (given.split_once('='), given.strip_suffix('-')) {
        (Some((key, value)), _) if !key.is_empty() => Ok((key.to_owned(), Some(value.to_owned()))),
        (None, Some(key)) if !key.is_empty() => Ok((key.to_owned(), None)),
        _ => Err(wrong().into()),
    }
}
