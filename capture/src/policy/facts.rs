//! What the approver has to look up, looked up on the disk. Reads only, follows no link it was not
//! asked to resolve, and stops at limits.

use std::{
    ffi::OsString,
    io::Read,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Component, Path, PathBuf},
};

use approver::{Below, Content, Facts, is_secret};
use rustix::fs::OFlags;

use crate::places;

/// Below directories with more entries nobody looks for secrets.
const MAX_ENTRIES: usize = 30_000;
/// Of the secrets below a directory so many are named.
const MAX_SECRETS: usize = 32;

/// The world as this process finds it. The PATH is that of the moment it was made.
#[derive(Debug, Clone)]
pub struct OnDisk {
    path: Vec<PathBuf>,
    /// The PATH of the agent, when it is known.
    agents_path: Option<Vec<PathBuf>>,
    private: Vec<PathBuf>,
    home: Option<PathBuf>,
}

impl OnDisk {
    /// Records the PATH of this process; what lies in `data` and in the configuration directory is
    /// private.
    #[must_use]
    pub fn recorded(data: &Path) -> Self {
        let path = places::variable("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
        let config = places::policy_file().ok().and_then(|file| file.parent().map(Path::to_path_buf));
        Self::new(path, std::iter::once(data.to_owned()).chain(config), places::home().ok())
    }

    /// The same world for an agent with a PATH of its own: a word means a program only when it means the
    /// same on both.
    #[must_use]
    pub fn also_on(&self, path: &str) -> Self {
        Self { agents_path: Some(std::env::split_paths(path).collect()), ..self.clone() }
    }

    /// The world with this PATH.
    #[must_use]
    pub fn new(path: Vec<PathBuf>, private: impl IntoIterator<Item = PathBuf>, home: Option<PathBuf>) -> Self {
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        Self { path, agents_path: None, private: private.into_iter().map(real).collect(), home: home.map(real) }
    }
}

/// The file a word means on a PATH: as it is found, and with links resolved.
fn on_path(path: &[PathBuf], word: &str) -> Vec<PathBuf> {
    if word.is_empty() || word.contains('/') {
        return Vec::new();
    }
    for dir in path {
        // What a relative directory holds depends on where one stands.
        if !dir.is_absolute() {
            return Vec::new();
        }
        let file = dir.join(word);
        let runs = file.metadata().is_ok_and(|told| told.is_file() && told.permissions().mode() & 0o111 != 0);
        if runs {
            let found = dir.canonicalize().map(|dir| dir.join(word));
            return match (found, file.canonicalize()) {
                (Ok(found), Ok(real)) => vec![file, found, real],
                (Ok(_) | Err(_), _) => Vec::new(),
            };
        }
    }
    Vec::new()
}

impl Facts for OnDisk {
    fn program(&self, word: &str) -> Vec<PathBuf> {
        let ours = on_path(&self.path, word);
        match &self.agents_path {
            Some(path) if on_path(path, word) != ours => Vec::new(),
            Some(_) | None => ours,
        }
    }

    fn canonical(&self, path: &Path) -> Option<PathBuf> {
        if !path.is_absolute() {
            return None;
        }
        let mut missing = Vec::new();
        let mut there = path;
        loop {
            match there.canonicalize() {
                Ok(real) => return Some(missing.into_iter().rev().fold(real, |path, name| path.join(name))),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(_) => return None,
            }
            // A link to nowhere leads somewhere once that is made.
            if there.is_symlink() {
                return None;
            }
            match there.components().next_back() {
                Some(Component::Normal(name)) => missing.push(name),
                Some(Component::CurDir | Component::ParentDir | Component::RootDir | Component::Prefix(_)) | None => {
                    return None;
                }
            }
            there = there.parent()?;
        }
    }

    fn read(&self, path: &Path, cap: usize) -> Content {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = match std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                return Content::Missing;
            }
            Err(_) => return Content::Unreadable,
        };
        let cap = u64::try_from(cap).unwrap_or(u64::MAX);
        if !file.metadata().is_ok_and(|told| told.is_file() && told.len() <= cap) {
            return Content::Unreadable;
        }
        let mut bytes = Vec::new();
        match file.take(cap.saturating_add(1)).read_to_end(&mut bytes) {
            Ok(read) if u64::try_from(read).is_ok_and(|read| read <= cap) => Content::Bytes(bytes),
            Ok(_) | Err(_) => Content::Unreadable,
        }
    }

    fn secrets_below(&self, dir: &Path) -> Below {
        let (mut open, mut left, mut found) = (vec![dir.to_owned()], MAX_ENTRIES, Vec::new());
        while let Some(at) = open.pop() {
            let Ok(entries) = std::fs::read_dir(&at) else { continue };
            for entry in entries.flatten() {
                let Some(fewer) = left.checked_sub(1) else { return Below::TooMuch };
                left = fewer;
                let path = entry.path();
                let Ok(kind) = entry.file_type() else { continue };
                let secret = is_secret(&path);
                if secret && !kind.is_dir() {
                    found.push(path);
                    if found.len() == MAX_SECRETS {
                        return Below::Secrets(found);
                    }
                } else if kind.is_dir() && entry.file_name() != ".git" {
                    open.push(path);
                }
            }
        }
        if found.is_empty() { Below::Nothing } else { Below::Secrets(found) }
    }

    fn is_directory(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn names(&self, dir: &Path, most: usize) -> Option<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir).ok()? {
            names.push(entry.ok()?.file_name());
            if names.len() > most {
                return None;
            }
        }
        Some(names)
    }

    fn is_private(&self, path: &Path) -> bool {
        self.private.iter().any(|dir| path.starts_with(dir))
    }

    fn home(&self) -> Option<PathBuf> {
        self.home.clone()
    }
}
