//! Gemini CLI: decodes its chat files, from 0.24 on.
//!
//! Owns what the records of a chat file mean. Two formats hold the same messages: one record per
//! line, appended ([`GeminiDecoder`], 0.39.1 and later), and one JSON document rewritten as a
//! whole ([`GeminiLegacyDecoder`], up to 0.38.2). Both hand each message to `session_decoder`, which gives
//! a message the same identities whichever file it is read from.
//!
//! Reads no file: what is a chat file, and where its working directory is written, is said by
//! [`recognize`] and [`cwd_files`]; the caller looks on the disk. Does not read `logs.json`
//! (prompts at Enter): it is 0.1 to 0.2 s ahead of the chat file, keeps the old session id after
//! `/clear`, and would double every prompt.
//!
//! What a chat file cannot tell (0.61.0): a dialog, a running
//! tool and a stalled model are the same silence, so nothing here ever claims
//! `waiting_approval`. A text without a tool call is the end of the turn or a remark before a
//! tool; see `standing` for what is claimed then, and how firmly.

mod batch;
pub(crate) mod content;
mod legacy;
mod lines;
mod memory;
mod paths;
mod position;
pub(crate) mod record;
mod record_writer;
mod session_decoder;
mod standing;
pub(crate) mod tools;

pub use legacy::GeminiLegacyDecoder;
pub use lines::GeminiDecoder;
pub use paths::{
    ChatFile, cwd_files, cwd_from_project_root, cwd_from_projects, is_of_directory, recognize, supersedes,
};

#[cfg(test)]
mod tests;
