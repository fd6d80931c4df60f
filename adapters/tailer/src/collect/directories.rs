//! The directories that are scanned and watched.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use events::FileKey;

/// A directory that may contain files to read.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(super) path: Arc<str>,
    pub(super) root: u16,
    pub(super) key: FileKey,
    /// The ctime at the last listing; `None` if it must be listed in any case.
    pub(super) listed_ns: Option<i64>,
    pub(super) again_at: Option<Duration>,
    pub(super) watched: bool,
    /// Whether, as far as is known, only this system can change its content: changes by other systems cause no hints.
    pub(super) local: bool,
}

impl Directory {
    /// Whether a change in it causes a hint.
    pub(super) const fn is_hinted(&self) -> bool {
        self.watched && self.local
    }
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

    /// Whether a change in any of them causes a hint.
    pub(super) fn is_hinted(&self) -> bool {
        self.directories.iter().all(Directory::is_hinted)
    }

    /// Whether a change of the file with this path causes a hint.
    pub(super) fn is_hinted_at(&self, file: &str) -> bool {
        let above = file.rsplit_once('/').and_then(|(above, _)| self.index.get(above));
        above.is_some_and(|at| self.directories[*at].is_hinted())
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
            local: false,
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
