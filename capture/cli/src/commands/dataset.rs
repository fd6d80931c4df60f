//! `capture dataset`

use std::{fs, io::Write, path::PathBuf};

use anyhow::Context as _;
use events::{Provider, Timestamp};
use export::dataset::{DatasetTurns, TurnRecord};
use jiff::tz::TimeZone;
use projections::Session;

use super::{Context, Failed, conversation::each_item, export::to_file, report::sessions_since, when};
use crate::{
    client::Client,
    terminal::{self, safe_json},
};
use daemon::{clock, paths};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Only turns that began at this time or later: RFC 3339, HH:MM[:SS] today, or an age such as 5m, 2h or 3d.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<String>,
    /// Only sessions of these agents.
    #[arg(long, value_delimiter = ',', value_parser = super::one_of(Provider::ALL, Provider::as_str))]
    agent: Vec<Provider>,
    /// The directory to write to, a file for each session; `-` writes everything to standard output.
    #[arg(long, value_name = "DIR|-")]
    out: PathBuf,
    /// Overwrite files that exist.
    #[arg(long)]
    force: bool,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let since = match &arguments.since {
        Some(given) => when::past("--since", given, clock::now(), &TimeZone::system()).map_err(Failed::Usage)?,
        None => Timestamp::MIN,
    };
    let client = context.client()?;
    let home = paths::home().ok().and_then(|home| home.to_str().map(str::to_owned)).filter(|home| home.len() > 1);
    let sanitize = |text: &str| {
        let text = redaction::text(text);
        home.as_deref().map_or_else(|| text.clone().into_owned(), |home| text.replace(home, "~"))
    };
    let to_stdout = arguments.out.as_os_str() == "-";
    if !to_stdout {
        fs::create_dir_all(&arguments.out).with_context(|| format!("cannot create {}", arguments.out.display()))?;
    }
    let sessions = sessions_since(&client, since)?;
    for session in sessions.iter().filter(|s| arguments.agent.is_empty() || arguments.agent.contains(&s.provider)) {
        if to_stdout {
            write_turns(&client, session, since, &sanitize, &mut terminal::stdout().without_colours())?;
        } else {
            let path = arguments.out.join(session.id.to_string()).with_extension("jsonl");
            to_file(&path, arguments.force, |out| write_turns(&client, session, since, &sanitize, out))?;
        }
    }
    Ok(())
}

/// Writes the turns of a session, one a line.
fn write_turns(
    client: &Client,
    session: &Session,
    since: Timestamp,
    sanitize: &dyn Fn(&str) -> String,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut write = |record: Option<TurnRecord>| match record.filter(|record| record.started_at >= since) {
        Some(record) => Ok(writeln!(out, "{}", safe_json(&serde_json::to_string(&record)?))?),
        None => anyhow::Ok(()),
    };
    let mut turns = DatasetTurns::new(session, sanitize);
    each_item(client, session, |item| write(turns.apply(&item)))?;
    write(turns.finish())
}
