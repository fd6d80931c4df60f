//! Replaces files atomically: writes a draft in the same directory, then renames it. Also reads settings files,
//! whatever their name leads to ([`read_settings`]).
//!
//! A [`Draft`] is created with mode 0600 and an unpredictable name, and is removed on drop unless it was renamed. The
//! target is a name in a directory: a symbolic link with that name is replaced, never followed. To write the file that
//! a link points to, resolve the link first.
//!
//! There is one rule for fsync, with two cases in [`Durability`]. The directory is never synced: after a power cut the
//! name refers to the old file or the new one, and both are complete.

mod regular;

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
};

use tempfile::{Builder, NamedTempFile};

pub use regular::{Links, SETTINGS_MOST, open_regular, read_regular, read_settings};

/// What a power cut may destroy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: the content is on disk before the file gets its name. For files that people or other programs wrote or
    /// rely on: settings, policies, tokens, the address of the server.
    Synced,
    /// The content, if the system stops before it is written to disk. For files that are written often and can be
    /// recreated, or are checked when they are read: deliveries, descriptions of runs, the end of the audit record.
    Unsynced,
}

/// Writes a file with this content, mode 0600, at `path`.
///
/// # Errors
/// If it cannot be written; an existing file is unchanged.
pub fn replace(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let mut draft = Draft::beside(path, ".part")?;
    draft.file_mut().write_all(content)?;
    if durability == Durability::Synced {
        draft.sync()?;
    }
    draft.replace(path)
}

/// A file that is being written beside its target. It is removed on drop.
#[derive(Debug)]
pub struct Draft(NamedTempFile);

impl Draft {
    /// Creates an empty file in the directory of `path`, mode 0600, named after `path` with this `suffix`.
    ///
    /// # Errors
    /// If `path` has no file name, or the file cannot be created.
    pub fn beside(path: &Path, suffix: &str) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::other("not a name of a file"))?;
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Builder::new().prefix(&prefix).suffix(suffix).tempfile_in(dir).map(Self)
    }

    /// The created file.
    #[must_use]
    pub fn file(&self) -> &File {
        self.0.as_file()
    }

    /// The created file, for writing.
    pub fn file_mut(&mut self) -> &mut File {
        self.0.as_file_mut()
    }

    /// The current path of the draft. Another program, such as an editor, may have replaced the file there.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes the file to disk: see [`Durability::Synced`].
    ///
    /// # Errors
    /// If the system call fails.
    pub fn sync(&self) -> io::Result<()> {
        // Opened by name, because the file may have been replaced since it was created.
        File::open(self.path())?.sync_all()
    }

    /// Renames the draft to `path`, replacing any existing file.
    ///
    /// # Errors
    /// If it cannot be renamed; the draft is then removed.
    pub fn replace(self, path: &Path) -> io::Result<()> {
        self.0.persist(path).map(drop).map_err(|refused| refused.error)
    }

    /// Renames the draft to `path`, unless that exists.
    ///
    /// # Errors
    /// `AlreadyExists` if `path` exists, even if it was created in the meantime; another error if the file cannot be
    /// linked. The draft is then removed.
    pub fn place_new(self, path: &Path) -> io::Result<()> {
        self.0.persist_noclobber(path).map(drop).map_err(|refused| refused.error)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_replaced_file_has_the_new_content_and_mode_0600() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        for (content, durability) in [("one", Durability::Synced), ("two", Durability::Unsynced)] {
            replace(&path, content.as_bytes(), durability).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(names(dir.path()), ["a.json"]);
        }
    }

    #[test]
    fn replace_overwrites_a_symlink_instead_of_following_it() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("link"), dir.path().join("other"));
        fs::write(&other, "other's").unwrap();
        symlink(&other, &path).unwrap();
        replace(&path, b"ours", Durability::Synced).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "other's");
        assert!(path.symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn placing_a_draft_fails_if_the_file_was_created_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let draft = Draft::beside(&path, ".part").unwrap();
        fs::write(&path, "theirs").unwrap();
        let error = draft.place_new(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[test]
    fn a_failed_replace_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::create_dir_all(path.join("full")).unwrap();
        assert!(replace(&path, b"x", Durability::Synced).is_err());
        assert!(replace(Path::new("/"), b"x", Durability::Synced).is_err());
        assert!(replace(&dir.path().join("none/a"), b"x", Durability::Synced).is_err());
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[test]
    fn a_draft_rewritten_by_an_editor_replaces_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.toml");
        let draft = Draft::beside(&path, ".toml").unwrap();
        fs::write(dir.path().join("new"), "edited").unwrap();
        fs::rename(dir.path().join("new"), draft.path()).unwrap();
        draft.sync().unwrap();
        draft.replace(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "edited");
        assert_eq!(names(dir.path()), ["a.toml"]);
    }
}
