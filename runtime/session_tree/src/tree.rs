//! The entries of a session as a tree, and the current position of the conversation.
//!
//! Finding an entry, its children and its label takes constant time, and so does appending. Nothing recurses over
//! entries: a chain may have any length, and damaged files have cycles.
//!
//! Ids are looked up as in pi: among entries with the same id the last one is found, and an unknown parent ends a path.
//! This module owns entries, labels and leaf. It must not do I/O; [`crate::Session`] writes what is appended.

mod append;
mod branched;
mod context;
mod entries;
mod outline;

pub use append::TreeError;
pub use entries::{EntryLabel, Tree};
pub use outline::{Node, Outline};

#[cfg(test)]
mod tests;
