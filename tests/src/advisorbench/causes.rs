//! Commands that do not end: what each waits for.

use std::path::Path;

use monitor::hang_cause;
use serde::Deserialize;

use super::{Figures, labelled};

/// A recorded run of a command.
#[derive(Debug, Deserialize)]
struct Recorded {
    id: String,
    command: String,
    output: String,
    screen: Option<String>,
    cause: Option<String>,
    unblock: Option<String>,
}

/// Names the causes of the recorded runs of a set.
///
/// # Panics
/// If the set cannot be read.
#[must_use]
pub fn named(set: &Path) -> Figures {
    let (mut right, mut with_cause, mut false_names, mut wrong) = (0, 0, 0, Vec::new());
    let runs: Vec<Recorded> = labelled(set);
    for run in &runs {
        let found = hang_cause(&run.command, Some(&run.output), run.screen.as_deref());
        let name = found.as_ref().map(monitor::HangCause::name);
        with_cause += usize::from(run.cause.is_some());
        right += usize::from(name.is_some() && name == run.cause.as_deref());
        if name != run.cause.as_deref() {
            false_names += usize::from(name.is_some());
            wrong.push(format!("{}: {:?} expected, {name:?}", run.id, run.cause));
        }
        if let (Some(found), Some(unblock)) = (found, &run.unblock)
            && found.unblock != *unblock
        {
            wrong.push(format!("{}: {unblock} expected, {}", run.id, found.unblock));
        }
    }
    let lines = vec![
        format!("causes named: {right} of {with_cause}"),
        format!("named wrongly: {false_names} of {}", runs.len()),
    ];
    Figures { lines, wrong }
}
