//! Finds the active run that the user names, from the description its terminal host wrote.

use std::path::Path;

use api::{routes::GetRun, runs::Run};
use client::{Client, Connection, failure::Failed};
use host_protocol::runs::{self, Description, FoundRun};

use super::context::run_of_session;
use printing::safe;

/// Returns the run with this name or id, or the run that hosts this session.
///
/// # Errors
/// If no run matches, or several do.
pub(super) fn find(data: &Path, given: &str) -> Result<Description, Failed> {
    let found = match runs::find(data, given) {
        FoundRun::None => match run_of_session(data, given) {
            Some(run) => runs::find(data, &run.to_string()),
            None => FoundRun::None,
        },
        found @ (FoundRun::One(_) | FoundRun::Several(_)) => found,
    };
    match found {
        FoundRun::One(run) => Ok(*run),
        FoundRun::Several(runs) => {
            let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
            Err(Failed::NotFound(format!("`{}` matches several runs: {}", safe(given), runs.join(", "))))
        }
        FoundRun::None => {
            if let Some(run) = without_terminal(data, given) {
                return Err(Failed::Refused(no_terminal(&run)));
            }
            let active: Vec<String> = runs::list(data)
                .iter()
                .map(|r| format!("{}{}", r.run, r.name.as_ref().map(|n| format!(" ({})", safe(n))).unwrap_or_default()))
                .collect();
            let given = safe(given);
            Err(Failed::NotFound(if active.is_empty() {
                format!("no active run `{given}`; start one with `capture run -- PROGRAM`")
            } else {
                format!("no active run `{given}`; active runs: {}", active.join(", "))
            }))
        }
    }
}

/// Returns the active run with this name or id whose host has no terminal, if a server lists one.
fn without_terminal(data: &Path, given: &str) -> Option<Run> {
    let client = Client::running(data, Connection::Unix).ok()??;
    let run = client.one::<GetRun>(given).ok()?;
    (run.ended_at.is_none() && !run.hello.takes.is_empty()).then_some(run)
}

/// Explains why a run without its own terminal cannot be used here, and how to reach it.
fn no_terminal(run: &Run) -> String {
    let id = run.hello.name.as_deref().map_or_else(|| run.id.to_string(), safe);
    let command = safe(&run.hello.command.join(" "));
    format!(
        "run {id} is `{command}`, which has no terminal: `capture send {id} TEXT` sends it a message, and `capture \
         stop {id}` stops it"
    )
}

/// The name of a run, or its id if it has no name, escaped for printing.
pub(super) fn name_of(run: &Description) -> String {
    run.name.as_deref().map_or_else(|| run.run.to_string(), safe)
}
