//! The session file that a command uses, and the point in it.

use std::{fs, io::ErrorKind, path::Path, str::FromStr};

use home::clock;
use session_tree::{
    DocumentIssue, DocumentRefusal, Entry, EntryKey, SessionDocument, SessionError, SessionHeader, Stamp, Tree,
    TreeError,
};

use super::Failed;
use printing::safe;

/// Maximum number of issues printed without `--issues`.
const ISSUES: usize = 20;

/// A point in the tree, as typed by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Leaf {
    /// The point before all entries.
    Before,
    /// An entry.
    Entry(String),
    /// An entry, or the last one if this one does not exist.
    EntryOrLast(String),
}

impl FromStr for Leaf {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.strip_prefix("raw:") {
            _ if text == "null" => Self::Before,
            Some(id) => Self::EntryOrLast(id.to_owned()),
            None => Self::Entry(text.to_owned()),
        })
    }
}

/// The point a command starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Point {
    /// The session's current leaf.
    Leaf,
    Before,
    Entry(EntryKey),
}

/// A file after reading.
pub(super) struct Loaded {
    pub(super) tree: Tree,
    pub(super) title: Option<String>,
    pub(super) issues: Vec<DocumentIssue>,
    /// Whether the file is empty: opening it for writing would begin a session.
    pub(super) is_empty: bool,
    /// Whether opening the file for writing would rewrite it; its sizes before and after are below.
    pub(super) is_rewritten: bool,
    /// Whether the file has an older format version.
    pub(super) is_old: bool,
    pub(super) size_before: u64,
    pub(super) size_after: u64,
    /// Whether we generated the ids because the file has none.
    minted_ids: bool,
    point: Point,
}

impl Loaded {
    /// Reads the file and prints its problems to standard error.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = fs::read(path).map_err(|error| {
            if error.kind() == ErrorKind::NotFound {
                return anyhow::Error::new(Failed::NotFound(format!("{}: no such file", path.display())));
            }
            anyhow::Error::new(error).context(path.display().to_string())
        })?;
        let size_before = bytes.len() as u64;
        let document = match SessionDocument::read(&bytes) {
            Ok(document) => document,
            Err(DocumentRefusal::Empty) => return Self::empty(),
            Err(refusal) => {
                return Err(failed(SessionError::Refused { path: path.to_owned(), refusal }));
            }
        };
        drop(bytes);
        complain(path, &document.issues);
        let size_after = match (document.migrated, document.open_end) {
            (true, _) => document.to_bytes().len() as u64,
            (false, open_end) => size_before + u64::from(open_end),
        };
        Ok(Self {
            title: document.title.clone(),
            issues: document.issues.clone(),
            is_empty: false,
            is_rewritten: document.migrated || document.open_end,
            is_old: document.migrated,
            size_before,
            size_after,
            minted_ids: document.minted_ids,
            point: Point::Leaf,
            tree: Tree::from(document),
        })
    }

    fn empty() -> anyhow::Result<Self> {
        let header = SessionHeader::new(&working_directory()?, None, stamp()?);
        let size_after = header.to_line().len() as u64 + 1;
        Ok(Self {
            tree: Tree::new(header, Vec::new()),
            title: None,
            issues: Vec::new(),
            is_empty: true,
            is_rewritten: true,
            is_old: false,
            size_before: 0,
            size_after,
            minted_ids: false,
            point: Point::Leaf,
        })
    }

    /// The same file, starting from another point.
    pub(super) fn at(mut self, leaf: Option<&Leaf>) -> anyhow::Result<Self> {
        self.point = match leaf {
            None => Point::Leaf,
            Some(Leaf::Before) => Point::Before,
            Some(Leaf::Entry(id) | Leaf::EntryOrLast(id)) => {
                let key = EntryKey::Text(self.meant(id));
                match (self.tree.by_key(&key).is_some(), leaf) {
                    (true, _) => Point::Entry(key),
                    (false, Some(Leaf::EntryOrLast(_))) => Point::Leaf,
                    (false, _) => return Err(failed(TreeError::NotFound(id.clone()).into())),
                }
            }
        };
        Ok(self)
    }

    /// The entry at the point.
    pub(super) fn leaf(&self) -> Option<&Entry> {
        match &self.point {
            Point::Leaf => self.tree.leaf(),
            Point::Before => None,
            Point::Entry(key) => self.tree.by_key(key),
        }
    }

    /// An id as shown. An id that the file does not contain yet is shown as its position.
    pub(super) fn shown(&self, id: &str) -> String {
        match u64::from_str_radix(id, 16) {
            Ok(place) if self.minted_ids => format!("gen-{place}"),
            Ok(_) | Err(_) => id.to_owned(),
        }
    }

    /// The id that a shown id refers to.
    fn meant(&self, shown: &str) -> String {
        let place = shown.strip_prefix("gen-").and_then(|place| place.parse::<u64>().ok());
        place.filter(|_| self.minted_ids).map_or_else(|| shown.to_owned(), |place| format!("{place:08x}"))
    }
}

/// Prints the problems of a file.
fn complain(path: &Path, issues: &[DocumentIssue]) {
    for issue in issues.iter().take(ISSUES) {
        let position = issue.position;
        let text = format!("{}: line {}, byte {}: {}", path.display(), position.line, position.offset, issue.reason);
        printing::print_error_line(&format!("capture: warning: {}", safe(&text)));
    }
    if let Some(more) = issues.len().checked_sub(ISSUES).filter(|more| *more > 0) {
        printing::print_error_line(&format!(
            "capture: and {more} more; `capture agent session load --json --issues` lists them"
        ));
    }
}

/// Converts an error of a session to one of ours, with its exit code.
pub(super) fn failed(error: SessionError) -> anyhow::Error {
    let text = error.to_string();
    let failed = match error {
        SessionError::Refused { .. }
        | SessionError::Locked { .. }
        | SessionError::Changed { .. }
        | SessionError::Gone { .. } => Failed::Refused(text),
        SessionError::Tree(TreeError::NotFound(_)) => Failed::NotFound(text),
        SessionError::Tree(
            TreeError::NotOnPath(_) | TreeError::NotEditable(_) | TreeError::NoContent | TreeError::NotAUserMessage(_),
        ) => Failed::Refused(text),
        SessionError::Io { source, .. } if source.kind() == ErrorKind::NotFound => Failed::NotFound(text),
        SessionError::Io { .. } => Failed::Other(text),
    };
    failed.into()
}

/// The current time, with randomness.
pub(super) fn stamp() -> anyhow::Result<Stamp> {
    let mut random = [0; 16];
    clock::fill_random(&mut random)?;
    Ok(Stamp { now_ms: clock::now().as_millisecond(), random: u128::from_ne_bytes(random) })
}

pub(super) fn working_directory() -> anyhow::Result<String> {
    Ok(std::env::current_dir()?.to_string_lossy().into_owned())
}
