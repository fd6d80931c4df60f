//! opencode: decodes the event log in its database, as of 1.18.
//!
//! All sessions of a user are in one SQLite database, `opencode.db` (`opencode-CHANNEL.db` of other channels), whose table `event` is appended to with each
//! change of a session, a message or a part of a message. [`tailer`] reads its rows; here a row is a record. The
//! tables that hold the sessions as they are now are not read, nor the JSON files of versions before the database.
//!
//! What the log cannot tell (1.18.33): a permission that is asked for and a tool that runs are the same silence, so
//! nothing here claims `waiting_approval`. Text is written when its part is over, not while it streams.

mod content;
mod record;
mod tools;
mod transcript;

use std::path::Path;

use tailer::tail::RowTable;
pub use transcript::OpencodeDecoder;

/// The log.
pub static EVENTS: RowTable =
    RowTable { name: "event", id: "id", columns: &["id", "aggregate_id", "seq", "type", "data"] };

/// Whether a path, relative to the agent's home, is a database of its: of the release, or of another channel
/// (`opencode-local.db`).
#[must_use]
pub fn recognize(relative: &Path) -> bool {
    let name = relative.to_str().and_then(|path| path.strip_prefix("opencode")?.strip_suffix(".db"));
    let is_channel = |channel: &str| channel.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    name.is_some_and(|name| name.is_empty() || name.strip_prefix('-').is_some_and(is_channel))
}

#[cfg(test)]
mod tests;
