//! The interface through which decisions look up files. `policy_files` implements it on the disk; tests use [`StubFacts`].

use crate::search::{NamedFiles, SearchReader, SearchScope};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::{Component, Path, PathBuf},
};

/// Everything about the outside world that a decision depends on.
pub trait Facts {
    /// The file that a bare command word refers to on the PATH recorded at start: the path found there, and the path
    /// with links resolved. Empty if there is none.
    fn program(&self, word: &str) -> Vec<PathBuf>;

    /// The path with links resolved. The part of the path that does not exist keeps its name. `None` if it cannot be
    /// determined, for instance with `..` after a part that does not exist.
    fn canonical(&self, path: &Path) -> Option<PathBuf>;

    /// The bytes of a file, if it has at most `cap`.
    fn read(&self, path: &Path, cap: usize) -> FileContent;

    /// The absolute paths of the secrets that a program reaches when it reads below a directory. Links below it are not
    /// followed. A file inside a git directory counts if it contains a credential ([`crate::GitFile`]).
    fn reached(&self, search: &SearchScope) -> SecretsBelow;

    /// Reports whether a file that would be printed looks like a secret.
    fn inspect(&self, path: &Path) -> FileInspection;

    /// Metadata of a file that would be changed.
    fn entry(&self, path: &Path) -> FileEntry;

    /// Whether the path is a directory.
    fn is_directory(&self, path: &Path) -> bool;

    /// The names in a directory, if there are at most `most`. Without an implementation, no pattern is allowed.
    fn names(&self, dir: &Path, most: usize) -> Option<Vec<OsString>> {
        let _ = (dir, most);
        None
    }

    /// Whether the path is private to `capture`: its data, its configuration.
    fn is_private(&self, path: &Path) -> bool;

    /// The user's home, which never counts as a workspace.
    fn home(&self) -> Option<PathBuf>;
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// There is no such file.
    Missing,
    /// The file exists but cannot be read: a directory, longer than the limit, or without permission.
    Unreadable,
    /// Its bytes.
    Bytes(Vec<u8>),
}

/// Whether the content of a file looks like a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileInspection {
    /// The file does not exist.
    NoFile,
    /// Its content does not look like a secret.
    Plain,
    /// Its content looks like a secret.
    Secret,
    /// The file is too large or cannot be read.
    Unknown,
}

/// Metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEntry {
    /// The path does not exist.
    Missing,
    /// A file, with its number of hard links and whether it is executable.
    File {
        /// Number of hard links.
        links: u64,
        /// Whether any user may execute it.
        executable: bool,
    },
    /// A directory, a device, or unknown.
    Other,
}

/// The secret files below a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretsBelow {
    /// No secret files.
    Nothing,
    /// These secret files.
    Secrets(Vec<PathBuf>),
    /// Not known: there are more files than the limit.
    TooMuch,
}

/// Facts from memory instead of the disk, for tests.
#[derive(Debug, Clone, Default)]
pub struct StubFacts {
    /// Command words and the files they resolve to.
    pub programs: BTreeMap<String, PathBuf>,
    /// Files and their contents.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// Links and their targets, both absolute.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// Private directories.
    pub private: BTreeSet<PathBuf>,
    /// The user's home.
    pub home: Option<PathBuf>,
}

impl StubFacts {
    /// Facts of a machine whose programs are all in `/usr/bin`.
    #[must_use]
    pub fn usual(programs: &[&str]) -> Self {
        let programs = programs.iter().map(|name| ((*name).to_owned(), Path::new("/usr/bin").join(name))).collect();
        Self { programs, home: Some("/home/dev".into()), ..Self::default() }
    }

    /// The same facts with one more file.
    #[must_use]
    pub fn with_file(mut self, path: &str, content: &str) -> Self {
        self.files.insert(path.into(), content.into());
        self
    }

    /// The same facts with one more link.
    #[must_use]
    pub fn with_link(mut self, path: &str, to: &str) -> Self {
        self.links.insert(path.into(), to.into());
        self
    }
}

impl StubFacts {
    /// Whether a program reaches a file that is a secret. Of the files that ripgrep skips, this knows only hidden
    /// names, and that globs, types and exceptions in ignore files include them again.
    fn reaches(&self, search: &SearchScope, file: &Path) -> bool {
        let Ok(below) = file.strip_prefix(&search.dir) else { return false };
        let in_git = file.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == ".git"));
        let secret = match in_git.and_then(|git| file.strip_prefix(git).ok()) {
            Some(inside) => crate::git_file::GitFile::new(inside).holds_credential(&self.files[file]),
            None => crate::names::is_secret(file),
        };
        let hidden = below.iter().any(|part| part.as_encoded_bytes().starts_with(b"."));
        let shown = match &search.reader {
            SearchReader::Everything(filter) => {
                let name = file.file_name().unwrap_or_default();
                let included = |glob: &String| {
                    glob.strip_prefix('*').is_none_or(|end| name.as_encoded_bytes().ends_with(end.as_bytes()))
                };
                filter.include.is_empty() || filter.include.iter().any(included)
            }
            SearchReader::Ripgrep(options) => {
                let back = |file: &PathBuf, bytes: &[u8]| {
                    file.ends_with(".gitignore") && bytes.split(|b| *b == b'\n').any(|line| line.starts_with(b"!"))
                };
                let back = self.files.iter().any(|(file, bytes)| back(file, bytes));
                !hidden || options.hidden || back || !options.globs.is_empty() || !options.types.is_empty()
            }
        };
        secret && shown
    }
}

impl Facts for StubFacts {
    fn program(&self, word: &str) -> Vec<PathBuf> {
        let found = self.programs.get(word);
        found.into_iter().flat_map(|file| [Some(file.clone()), self.canonical(file)]).flatten().collect()
    }

    fn canonical(&self, path: &Path) -> Option<PathBuf> {
        let mut done = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    done.pop();
                }
                Component::RootDir | Component::Prefix(_) | Component::Normal(_) => done.push(part),
            }
            if let Some(to) = self.links.get(&done) {
                done = to.clone();
            }
        }
        done.is_absolute().then_some(done)
    }

    fn read(&self, path: &Path, cap: usize) -> FileContent {
        match self.files.get(path) {
            Some(bytes) if bytes.len() <= cap => FileContent::Bytes(bytes.clone()),
            Some(_) => FileContent::Unreadable,
            None if self.files.keys().any(|file| file.starts_with(path)) => FileContent::Unreadable,
            None => FileContent::Missing,
        }
    }

    fn reached(&self, search: &SearchScope) -> SecretsBelow {
        let named = search.named.unwrap_or(NamedFiles { read: true, ..NamedFiles::default() });
        let read = |file: &&PathBuf| named.read && self.reaches(search, file);
        let mut found: Vec<_> = self.files.keys().filter(read).cloned().collect();
        let below = |file: &&PathBuf| file.starts_with(&search.dir);
        if search.named.is_some() {
            found.extend(self.files.keys().filter(below).filter(|file| named.is_odd(file)).cloned());
        }
        if named.links {
            found.extend(self.links.keys().filter(below).cloned());
        }
        if found.is_empty() { SecretsBelow::Nothing } else { SecretsBelow::Secrets(found) }
    }

    fn inspect(&self, path: &Path) -> FileInspection {
        match self.files.get(path) {
            None => FileInspection::NoFile,
            Some(bytes) if bytes.windows(9).any(|text| text == b"password=") => FileInspection::Secret,
            Some(_) => FileInspection::Plain,
        }
    }

    fn entry(&self, path: &Path) -> FileEntry {
        match self.files.get(path) {
            Some(bytes) => FileEntry::File { links: 1, executable: bytes.starts_with(b"#!") },
            None if self.is_directory(path) => FileEntry::Other,
            None => FileEntry::Missing,
        }
    }

    fn is_directory(&self, path: &Path) -> bool {
        self.files.keys().any(|file| file != path && file.starts_with(path))
    }

    fn names(&self, dir: &Path, most: usize) -> Option<Vec<OsString>> {
        let all = self.files.keys().chain(self.links.keys());
        let names = all.filter_map(|file| Some(file.strip_prefix(dir).ok()?.iter().next()?.to_owned()));
        let names: BTreeSet<_> = names.collect();
        (names.len() <= most).then(|| names.into_iter().collect())
    }

    fn is_private(&self, path: &Path) -> bool {
        self.private.iter().any(|dir| path.starts_with(dir))
    }

    fn home(&self) -> Option<PathBuf> {
        self.home.clone()
    }
}
