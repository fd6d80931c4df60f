//! The directories that are looked through and watched.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use events::FileKey;

/// A directory in which files of interest can be.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(super) path: Arc<str>,
    pub(super) root: u16,
    pub(super) key: FileKey,
    /// Its ctime when it was listed last; `None` when it has to be listed in any case.
    pub(super) listed_ns: Option<i64>,
    pub(super) again_at: Option<Duration>,
    pub(super) watched: bool,
}

/// All directories.
#[derive(Debug, Default)]
pub(crate) struct DirTree {
    pub(super) directories: Vec<Directory>,
    pub(super) index: HashMap<Arc<str>, usize>,
    pub(super) to_watch: VecDeque<Arc<str>>,
}

impl DirTree {
    pub(super) fn len(&self) -> usize {
        self.directories.len()
    }

    pub(super) fn has_to_watch(&self) -> bool {
        !self.to_watch.is_empty()
    }

    pub(super) fn add(&mut self, path: Arc<str>, root: u16) -> usize {
        let at = self.directories.len();
        let directory = Directory {
            path: Arc::clone(&path),
            root,
            key: FileKey::default(),
            listed_ns: None,
            again_at: None,
            watched: false,
        };
        self.directories.push(directory);
        self.index.insert(path, at);
        at
    }

    pub(super) fn remove(&mut self, at: usize) -> Directory {
        let removed = self.directories.swap_remove(at);
        self.index.remove(&removed.path);
        if let Some(moved) = self.directories.get(at) {
            self.index.insert(Arc::clone(&moved.path), at);
        }
        removed
    }
}
