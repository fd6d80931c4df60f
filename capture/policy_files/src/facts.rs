//! Looks up on disk the facts the approver needs. It only reads, follows no links except those it was asked to resolve,
//! and stops at limits.

use std::{
    ffi::{OsStr, OsString},
    io::Read,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Component, Path, PathBuf},
};

use approver::{Facts, FileContent, FileEntry, FileInspection, SearchScope, SecretsBelow};
use rustix::fs::OFlags;

mod reach;

/// Maximum size of a file searched for secrets, bytes.
const MAX_LOOK: usize = 4 * 1024 * 1024;

/// The file system of this machine, for a process with a given PATH.
#[derive(Debug, Clone)]
pub struct OnDisk {
    path: Vec<PathBuf>,
    /// The PATH of the agent, if known.
    agents_path: Option<Vec<PathBuf>>,
    private: Vec<PathBuf>,
    home: Option<PathBuf>,
}

impl OnDisk {
    /// The same facts for an agent with a different PATH: a word names a program only if it resolves to the same
    /// program on both.
    #[must_use]
    pub fn also_on(&self, path: &str) -> Self {
        Self { agents_path: Some(std::env::split_paths(path).collect()), ..self.clone() }
    }

    /// Facts for this PATH. Files below `private` count as secrets.
    #[must_use]
    pub fn new(path: Vec<PathBuf>, private: impl IntoIterator<Item = PathBuf>, home: Option<PathBuf>) -> Self {
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let private = private.into_iter().map(real).collect();
        Self { path, agents_path: None, private, home: home.map(real) }
    }
}

impl OnDisk {
    /// Inspects a file of at most `cap` bytes.
    fn inspect_file(&self, path: &Path, cap: usize) -> FileInspection {
        match self.read(path, cap) {
            FileContent::Missing => FileInspection::NoFile,
            FileContent::Unreadable if path.is_dir() => FileInspection::NoFile,
            FileContent::Unreadable => FileInspection::Unknown,
            FileContent::Bytes(bytes) if secrets::holds_secret(&bytes) => FileInspection::Secret,
            FileContent::Bytes(_) => FileInspection::Plain,
        }
    }
}

/// The file that a word resolves to on a PATH: as found, and with links resolved.
fn on_path(path: &[PathBuf], word: &str) -> Vec<PathBuf> {
    if word.is_empty() || word.contains('/') {
        return Vec::new();
    }
    // The content of a relative directory depends on the working directory, so entries after one are not trusted.
    let certain = path.iter().take_while(|dir| dir.is_absolute());
    let Ok(file) = processes::find_program(certain, OsStr::new(word)) else { return Vec::new() };
    let dir = file.parent().and_then(|dir| dir.canonicalize().ok());
    match (dir, file.canonicalize()) {
        (Some(dir), Ok(real)) => vec![file, dir.join(word), real],
        (Some(_) | None, _) => Vec::new(),
    }
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
            // A dangling link leads somewhere once its target is created.
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

    fn read(&self, path: &Path, cap: usize) -> FileContent {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = match std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                return FileContent::Missing;
            }
            Err(_) => return FileContent::Unreadable,
        };
        let cap = u64::try_from(cap).unwrap_or(u64::MAX);
        if !file.metadata().is_ok_and(|told| told.is_file() && told.len() <= cap) {
            return FileContent::Unreadable;
        }
        let mut bytes = Vec::new();
        match file.take(cap.saturating_add(1)).read_to_end(&mut bytes) {
            Ok(read) if u64::try_from(read).is_ok_and(|read| read <= cap) => FileContent::Bytes(bytes),
            Ok(_) | Err(_) => FileContent::Unreadable,
        }
    }

    fn reached(&self, search: &SearchScope) -> SecretsBelow {
        reach::reached(self, search)
    }

    fn inspect(&self, path: &Path) -> FileInspection {
        match reach::in_git(self, path) {
            Some(true) => FileInspection::Secret,
            Some(false) | None => self.inspect_file(path, MAX_LOOK),
        }
    }

    fn entry(&self, path: &Path) -> FileEntry {
        match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => FileEntry::Missing,
            Ok(about) if about.is_file() => {
                FileEntry::File { links: about.nlink(), executable: about.permissions().mode() & 0o111 != 0 }
            }
            Ok(_) | Err(_) => FileEntry::Other,
        }
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
