//! pi, oh-my-pi, and our own agent: decodes the session files below `sessions/`.
//!
//! All three write one format (pi's, versions 1 to 3): a header, then one line per entry, which names the entry it
//! follows. This module defines the meaning of the lines as events. It reads no files and builds no tree:
//! `session_tree` does that, and an observer only needs to know where the next line continues.
//!
//! Written against pi 0.31.1 to 0.87.1 and oh-my-pi 13.19 and 18.2.3. Limits of a file: nothing is written while a
//! message streams or a tool runs, or when pi exits, so that a turn that hangs looks like a prompt or call without an
//! answer. Dialogs are shown by extensions and not recorded.

mod entry;
mod record;
mod state;
mod transcript;
mod words;

use std::path::{Component, Path};

pub use transcript::PiDecoder;

/// Whether a path, relative to the agent's directory, is a session: `sessions/<directory derived from the working
/// directory>/<time>_<session id>.jsonl`.
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
        // `.name.lock` and files being written (`.name.tmp`) begin with a dot.
        Some(["sessions", _, file]) => {
            !file.starts_with('.') && file.len() > ".jsonl".len() && file.ends_with(".jsonl")
        }
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests;
