//! Decides which directories are ignored, so that their sessions are not captured. Paths are compared as written and
//! with symbolic links resolved, because an agent reports its directory with links resolved.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
};

/// The directories.
#[derive(Debug, Default)]
pub struct Ignored {
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
    pub fn new(dirs: Vec<PathBuf>) -> Self {
        let dir = |written: PathBuf| IgnoredDir { real: RefCell::new(written.canonicalize().ok()), written };
        Self { dirs: dirs.into_iter().map(dir).collect() }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.dirs.is_empty()
    }

    /// Whether a directory is one of these or below one.
    #[must_use]
    pub fn holds(&self, directory: &Path) -> bool {
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
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn directories_are_the_same_by_whatever_way_they_are_reached() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |below: &str| root.join(below);
        fs::create_dir_all(at("real/secret/deep")).unwrap();
        fs::create_dir_all(at("real/secrets")).unwrap();
        symlink(at("real"), at("link")).unwrap();
        for written in ["real/secret", "link/secret", "link/../link/secret", "real/secret/"] {
            let ignored = Ignored::new(vec![at(written)]);
            for held in ["real/secret", "link/secret", "link/secret/deep", "real/secret/deep", "real/secret/gone/below"]
            {
                assert!(ignored.holds(&at(held)), "{written} holds {held}");
            }
            for other in ["real", "link", "real/secrets", "elsewhere"] {
                assert!(!ignored.holds(&at(other)), "{written} does not hold {other}");
            }
        }
        assert!(!Ignored::new(Vec::new()).holds(&at("real")));
    }

    #[test]
    fn a_directory_may_appear_later_and_go_away() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let ignored = Ignored::new(vec![root.join("link/secret")]);
        assert!(ignored.holds(&root.join("link/secret/x")));
        fs::create_dir_all(root.join("real/secret")).unwrap();
        assert!(!ignored.holds(&root.join("real/secret")));
        symlink(root.join("real"), root.join("link")).unwrap();
        assert!(ignored.holds(&root.join("real/secret")));
        fs::remove_file(root.join("link")).unwrap();
        assert!(ignored.holds(&root.join("real/secret")));
    }
}
