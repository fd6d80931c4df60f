//! Finding the run a person means.

use serde::Deserialize;

use super::{Failed, find, percent};
use crate::client::Client;

#[derive(Deserialize)]
struct List {
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    id: String,
    name: Option<String>,
}

/// The path of the run with this id, unique beginning of an id, or name; else of the session that
/// fits, whose run is meant.
pub(super) fn place(client: &Client, given: &str) -> anyhow::Result<String> {
    let List { runs } = client.get("/api/v1/runs")?;
    let upper = given.to_ascii_uppercase();
    let exact = runs.iter().find(|run| run.name.as_deref() == Some(given) || run.id == upper);
    let mut alike = runs.iter().filter(|run| run.id.starts_with(&upper) || run.id.ends_with(&upper));
    let found = exact.or_else(|| alike.next().filter(|_| alike.next().is_none() && upper.len() >= 4));
    if let Some(run) = found {
        return Ok(format!("/api/v1/runs/{}", run.id));
    }
    match find(client, given) {
        Ok(session) => Ok(format!("/api/v1/sessions/{}", percent(&session.id.to_string()))),
        Err(error) if matches!(error.downcast_ref(), Some(Failed::NotFound(_))) => {
            Err(Failed::NotFound(format!("there is no run and no session `{given}`; `capture ps` lists them")).into())
        }
        Err(error) => Err(error),
    }
}
