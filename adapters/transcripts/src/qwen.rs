//! Qwen Code: decodes its chat files, as of 0.24.
//!
//! A fork of Gemini CLI that stores its conversations in another format: one record per line, appended, each with an
//! id, the record it follows, and a message of Gemini's API. The content of a message is parsed with functions of
//! [`crate::gemini`].
//!
//! Limits of a chat file (0.24.4): an open dialog and a running tool look the same, so this decoder never claims
//! `waiting_approval`. An error that the agent retries can only be distinguished by its class from the one after which
//! it gave up. The files of sub-agents (`subagents/`) and the file that names a session's process (`<id>.runtime.json`)
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
            // The agent itself ignores these files.
            name.is_some_and(|name| !name.ends_with(".ledger"))
        }
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests;
