//! Decides which directories are ignored, so that their sessions are not captured. Paths are compared as written and
//! with symbolic links resolved, because an agent reports its directory with links resolved.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
};

/// The directories.
#[derive(Debug, Default)]
pub(crate) struct Ignored {
    dirs: Vec<IgnoredDir>,
}

#[derive(Debug)]
struct IgnoredDir {
    written: PathBuf,
    /// Where it really is, once it was there.
    real: RefCell<Option<PathBuf>>,
}

impl Ignored {
    /// Looks where these directories really are; those that do not exist yet are looked for again when they are asked for.
    #[must_use]
    pub(crate) fn new(dirs: Vec<PathBuf>) -> Self {
        let dir = |written: PathBuf| IgnoredDir { real: RefCell::new(written.canonicalize().ok()), written };
        Self { dirs: dirs.into_iter().map(dir).collect() }
    }

    /// Whether there are none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.dirs.is_empty()
    }

    /// Whether a directory is one of these or below one.
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
        // A link may point elsewhere by now: what it pointed to counts until it is there again.
        if let Ok(now) = self.written.canonicalize() {
            *real = Some(now);
        }
        real.clone()
    }
}

/// Where a directory really is. Of one that is gone the part counts that is still there.
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
