//! `capture dataset`

use std::{fs, path::PathBuf};

use anyhow::Context as _;
use events::{Provider, Timestamp};
use home::paths;

use crate::commands::export::session::write_dataset;

use super::{context::Context, conversation::without_wrapping, export::to_file, report::sessions_since, when};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Only turns that began at this time or later: a day (2026-11-20, yesterday), RFC 3339, HH:MM[:SS] today, or an age (5m, 2h, 3d).
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<String>,
    /// Only sessions of these agents.
    #[arg(long, value_delimiter = ',', value_parser = super::words::one_of(Provider::ALL, Provider::as_str))]
    agent: Vec<Provider>,
    /// Directory to write to, one file per session; `-` writes everything to standard output.
    #[arg(long, value_name = "DIR|-")]
    out: PathBuf,
    /// Overwrite existing files.
    #[arg(long)]
    force: bool,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let since = when::since("--since", arguments.since.as_deref())?.unwrap_or(Timestamp::MIN);
    let client = context.client()?;
    let home = paths::home().ok().and_then(|home| home.to_str().map(str::to_owned)).filter(|home| home.len() > 1);
    let to_stdout = arguments.out.as_os_str() == "-";
    if !to_stdout {
        fs::create_dir_all(&arguments.out).with_context(|| format!("cannot create {}", arguments.out.display()))?;
    }
    let sessions = sessions_since(&client, since)?;
    for session in sessions.iter().filter(|s| arguments.agent.is_empty() || arguments.agent.contains(&s.provider)) {
        let write = |out: &mut dyn std::io::Write| {
            let written = write_dataset(&client, session, since, home.as_deref(), out);
            written.map_err(|error| without_wrapping(error.into()))
        };
        if to_stdout {
            write(&mut printing::stdout().without_colours())?;
        } else {
            let path = arguments.out.join(session.id.to_string()).with_extension("jsonl");
            to_file(&path, arguments.force, |out| write(out))?;
        }
    }
    Ok(())
}
