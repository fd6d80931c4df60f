//! opencode: decodes the event log in its database, as of 1.18.
//!
//! All sessions of a user are in one SQLite database, `opencode.db` (`opencode-CHANNEL.db` for other channels). Each
//! change of a session, a message or a part of a message appends a row to its table `event`. [`tailer`] reads the rows;
//! here a row is a record. The tables with the current state of the sessions are not read, nor the JSON files of
//! versions before the database.
//!
//! Limits of the log (1.18.33): an open permission request and a running tool look the same, so this decoder never
//! claims `waiting_approval`. Text is written when its part is complete, not while it streams.

mod content;
mod record;
mod tools;
mod transcript;

use std::path::Path;

use tailer::tail::RowTable;
pub use transcript::OpencodeDecoder;

/// The event log.
pub static EVENTS: RowTable =
    RowTable { name: "event", id: "id", columns: &["id", "aggregate_id", "seq", "type", "data"] };

/// Whether a path, relative to the agent's home, is one of its databases: of the release, or of another channel
/// (`opencode-local.db`).
#[must_use]
pub fn recognize(relative: &Path) -> bool {
    let name = relative.to_str().and_then(|path| path.strip_prefix("opencode")?.strip_suffix(".db"));
    let is_channel = |channel: &str| channel.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    name.is_some_and(|name| name.is_empty() || name.strip_prefix('-').is_some_and(is_channel))
}

#[cfg(test)]
mod tests;
