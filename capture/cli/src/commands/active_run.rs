//! The active run that a person names: what its terminal host wrote about it.

use std::path::Path;

use client::failure::Failed;
use host_protocol::runs::{self, Description, FoundRun};

use super::context::run_of_session;
use crate::terminal::safe;

/// The run with this name or id, or the one that hosts this session.
///
/// # Errors
/// When there is none, or several.
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

/// The name of a run, else its id, as text that is safe to print.
pub(super) fn name_of(run: &Description) -> String {
    run.name.as_deref().map_or_else(|| run.run.to_string(), safe)
}
