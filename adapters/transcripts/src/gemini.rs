//! Gemini CLI: decodes its chat files, from 0.24 on.
//!
//! Interprets the records of a chat file. Two formats contain the same messages: one record per line, appended
//! ([`GeminiDecoder`], 0.39.1 and later), and one JSON document that is rewritten as a whole ([`GeminiLegacyDecoder`],
//! up to 0.38.2). Both pass each message to `session_decoder`, which gives a message the same identities whichever file
//! it is read from.
//!
//! Reads no files: [`recognize`] and [`cwd_files`] determine which files are chat files and where their working
//! directory is recorded; the caller accesses the disk. `logs.json` (prompts at Enter) is not read: it is 0.1 to 0.2 s
//! ahead of the chat file, keeps the old session id after `/clear`, and would duplicate every prompt.
//!
//! Limits of a chat file (0.61.0): an open dialog, a running tool and a stalled model look the same, so this decoder
//! never claims `waiting_approval`. A text without a tool call is either the end of the turn or a remark before a tool;
//! `standing` documents the resulting claim and its strength.

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
