//! pi, oh-my-pi, and our own agent: decodes the session files below `sessions/`.
//!
//! The three write one format (pi's, versions 1 to 3): a header, then a line for each entry, which names the entry
//! it follows. Owns what these lines mean as events. Reads no file, and builds no tree: that is `session_tree`'s,
//! and an observer needs to know of the tree only where the next line goes on.
//!
//! Written against pi 0.31.1 to 0.87.1 and oh-my-pi 13.19 and 18.2.3. What a file cannot tell: nothing is written
//! while a message is streamed or a tool runs, and nothing when pi ends, so that a turn that hangs is a prompt
//! or a call without an answer. Dialogs are extensions' and leave no trace.

mod entry;
mod record;
mod state;
mod transcript;
mod words;

use std::path::{Component, Path};

pub use transcript::PiDecoder;

/// Whether a path, relative to the agent's directory, is a session: `sessions/<folder of the working
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
        // `.name.lock` and what is being written (`.name.tmp`) begin with a dot.
        Some(["sessions", _, file]) => {
            !file.starts_with('.') && file.len() > ".jsonl".len() && file.ends_with(".jsonl")
        }
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests;
