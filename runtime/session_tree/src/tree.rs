//! The entries of a session as a tree, and where in it the conversation is.
//!
//! Finding an entry, its children and its label takes the same time however long the session is, and so does
//! appending. Nothing recurses over entries: a chain may have any length, and damaged files have cycles.
//!
//! Ids are looked up as pi does: of entries with the same id the last is found, an unknown parent ends a
//! path. Owns entries, labels and leaf. Must not do I/O; [`crate::Session`] writes what is appended.

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
