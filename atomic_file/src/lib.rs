//! Replaces files atomically: writes a draft in the same directory, then renames it. Reads settings files, whatever their
//! name leads to ([`read_settings`]).
//!
//! A [`Draft`] is made with mode 0600 and a name nobody can guess, and goes away unless it is put in its place. Its
//! place is a name in a directory: a symbolic link of that name is replaced, never followed. Whoever wants the file a
//! link leads to resolves the link first.
//!
//! There is one rule for fsync, and [`Durability`] names its two cases. The directory is synced by nobody: after a
//! power cut the name means the old file or the new one, and both are whole.

mod regular;

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
};

use tempfile::{Builder, NamedTempFile};

pub use regular::{Links, SETTINGS_MOST, open_regular, read_regular, read_settings};

/// What a power cut may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: the content is on the disk before it has its name. For what people or other programs wrote or
    /// rely on: settings, policies, tokens, where a server is.
    Synced,
    /// The content, when the system stops before it wrote it. For what is written often and can be told again, or
    /// is checked when it is read: deliveries, descriptions of runs, the end of the audit record.
    Unsynced,
}

/// Puts a file with this content, mode 0600, at `path`.
///
/// # Errors
/// When it cannot be written; what was there stays.
pub fn replace(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let mut draft = Draft::beside(path, ".part")?;
    draft.file_mut().write_all(content)?;
    if durability == Durability::Synced {
        draft.sync()?;
    }
    draft.replace(path)
}

/// A file that is being written beside its place. Dropped, it is removed.
#[derive(Debug)]
pub struct Draft(NamedTempFile);

impl Draft {
    /// A new, empty file in the directory of `path`, mode 0600, named after it with this `suffix`.
    ///
    /// # Errors
    /// When `path` has no name, or the file cannot be made.
    pub fn beside(path: &Path, suffix: &str) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::other("not a name of a file"))?;
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Builder::new().prefix(&prefix).suffix(suffix).tempfile_in(dir).map(Self)
    }

    /// The file that was made.
    #[must_use]
    pub fn file(&self) -> &File {
        self.0.as_file()
    }

    /// The same, to be written.
    pub fn file_mut(&mut self) -> &mut File {
        self.0.as_file_mut()
    }

    /// Where it is now. A program may have put another file there, an editor for instance.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Makes it durable: see [`Durability::Synced`].
    ///
    /// # Errors
    /// When the system cannot.
    pub fn sync(&self) -> io::Result<()> {
        // By its name: it need not be the file that was made any more.
        File::open(self.path())?.sync_all()
    }

    /// Gives it the name `path`, in the place of whatever has it.
    ///
    /// # Errors
    /// When it cannot be renamed; then it is removed.
    pub fn replace(self, path: &Path) -> io::Result<()> {
        self.0.persist(path).map(drop).map_err(|refused| refused.error)
    }

    /// Gives it the name `path` unless something has it.
    ///
    /// # Errors
    /// `AlreadyExists` when something has it, also when it was made meanwhile; or when the file cannot be linked. Then
    /// it is removed.
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
    fn a_file_is_replaced_whole_and_is_private() {
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
    fn a_link_is_replaced_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("link"), dir.path().join("other"));
        fs::write(&other, "other's").unwrap();
        symlink(&other, &path).unwrap();
        replace(&path, b"ours", Durability::Synced).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "other's");
        assert!(path.symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn what_came_meanwhile_is_not_replaced() {
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
    fn one_that_fails_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::create_dir_all(path.join("full")).unwrap();
        assert!(replace(&path, b"x", Durability::Synced).is_err());
        assert!(replace(Path::new("/"), b"x", Durability::Synced).is_err());
        assert!(replace(&dir.path().join("none/a"), b"x", Durability::Synced).is_err());
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[test]
    fn what_an_editor_put_there_is_kept() {
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
