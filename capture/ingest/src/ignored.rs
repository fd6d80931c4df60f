//! Decides which directories are ignored, so that their sessions are not captured. Paths are compared as written and
//! with symbolic links resolved, because an agent reports its directory with links resolved.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
};

/// The ignored directories.
#[derive(Debug, Default)]
pub(crate) struct Ignored {
    dirs: Vec<IgnoredDir>,
}

#[derive(Debug)]
struct IgnoredDir {
    written: PathBuf,
    /// The path with links resolved, once the directory exists.
    real: RefCell<Option<PathBuf>>,
}

impl Ignored {
    /// Resolves the directories' links; for directories that do not exist yet, this is retried at each lookup.
    #[must_use]
    pub(crate) fn new(dirs: Vec<PathBuf>) -> Self {
        let dir = |written: PathBuf| IgnoredDir { real: RefCell::new(written.canonicalize().ok()), written };
        Self { dirs: dirs.into_iter().map(dir).collect() }
    }

    /// Whether the list is empty.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.dirs.is_empty()
    }

    /// Whether a directory is one of the ignored directories or below one.
    #[must_use]
    pub(crate) fn holds(&self, directory: &Path) -> bool {
        if self.dirs.is_empty() {
            return false;
        }
        let real = real(directory);
        self.dirs.iter().any(|dir| {
            let below = |parent: &Path| directory.starts_with(parent) || real.starts_with(parent);
            below(&dir.written) || dir.real().is_some_and(|dir| below(&dir))
        })
    }
}

impl IgnoredDir {
    fn real(&self) -> Option<PathBuf> {
        let mut real = self.real.borrow_mut();
        // A link may have changed. While it cannot be resolved, its last target counts.
        if let Ok(now) = self.written.canonicalize() {
            *real = Some(now);
        }
        real.clone()
    }
}

/// The directory with links resolved; if it no longer exists, its longest existing ancestor is resolved.
fn real(directory: &Path) -> PathBuf {
    for ancestor in directory.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            return real.join(directory.strip_prefix(ancestor).unwrap_or(Path::new("")));
        }
    }
    directory.to_owned()
}

#[cfg(test)]
mod tests;
