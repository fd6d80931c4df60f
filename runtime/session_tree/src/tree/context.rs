//! The context at an entry of a tree.

use crate::{context::messages::Context, entry::Entry, tree::entries::Tree};

impl<'a> Context<'a> {
    /// The context at an entry; empty for `None`.
    #[must_use]
    pub fn of(tree: &'a Tree, leaf: Option<&'a Entry>) -> Self {
        Self::of_path(&tree.path(leaf))
    }
}
