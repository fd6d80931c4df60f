//! Qwen Code: decodes its chat files, as of 0.24.
//!
//! A relative of Gemini CLI that keeps its conversations in another form: one record a line, appended, each with
//! an id, the record it follows, and a message of Gemini's API. What a message holds is read with
//! [`crate::gemini`]'s parts.
//!
//! What a chat file cannot tell (0.24.4): a dialog and a running tool are the same silence, so nothing here claims
//! `waiting_approval`. An error that the agent tries again is not told from the one it gave up with, but by its
//! sort. The files of sub-agents (`subagents/`) and the file that names a session's process (`<id>.runtime.json`)
//! are not read.

mod content;
mod record;
mod transcript;

use std::path::{Component, Path};

pub use transcript::QwenDecoder;

/// Whether a path, relative to the agent's home, is a session: `projects/<folder>/chats/<session id>.jsonl`.
#[must_use]
pub fn recognize(relative: &Path) -> bool {
    let parts: Option<Vec<&str>> = relative
        .components()
        .map(|c| match c {
            Component::Normal(part) => part.to_str(),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect();
    match parts.as_deref() {
        Some(["projects", _, "chats", file]) => {
            let name = file.strip_suffix(".jsonl").filter(|name| !name.is_empty() && !name.starts_with('.'));
            // The agent itself passes over these.
            name.is_some_and(|name| !name.ends_with(".ledger"))
        }
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests;
