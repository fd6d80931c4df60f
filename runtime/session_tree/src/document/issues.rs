//! The problems found in a session file that could still be read.

use std::{collections::HashMap, fmt};

use crate::{
    document::position::FilePosition,
    entry::{Entry, EntryKey, EntryKind},
};

/// A problem in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentIssue {
    /// The line with the problem.
    pub position: FilePosition,
    /// The problem.
    pub reason: IssueReason,
}

/// The problem of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssueReason {
    /// The line is not JSON; contains the parser's error.
    Malformed(String),
    /// The last line is truncated.
    Torn,
    /// The line is JSON but not an object.
    NotAnObject,
    /// A second header; only the first counts.
    SecondHeader,
    /// Invalid UTF-8 was replaced.
    NotUtf8,
    /// The entry has no id.
    NoId,
    /// An earlier entry has the same id; lookups find the later one.
    RepeatedId,
    /// No entry has the id of its parent; a context on this path begins here.
    UnknownParent,
    /// The entry is its own ancestor; a context on this path ends here.
    Cycle,
    /// A message entry without a message.
    NoMessage,
}

impl fmt::Display for IssueReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => write!(f, "not valid JSON: {error}"),
            Self::Torn => f.write_str("the line is cut off"),
            Self::NotAnObject => f.write_str("not a JSON object"),
            Self::SecondHeader => f.write_str("a second header"),
            Self::NotUtf8 => f.write_str("invalid UTF-8"),
            Self::NoId => f.write_str("an entry without an id"),
            Self::RepeatedId => f.write_str("an id that an earlier entry already has"),
            Self::UnknownParent => f.write_str("a parent that does not exist"),
            Self::Cycle => f.write_str("an entry that is its own ancestor"),
            Self::NoMessage => f.write_str("a message entry without a message"),
        }
    }
}

/// Adds the problems of entries, and sorts all issues by position in the file.
pub(super) fn of_entries(entries: &[Entry], entry_positions: &[FilePosition], issues: &mut Vec<DocumentIssue>) {
    let mut by_id: HashMap<&EntryKey, usize> = HashMap::new();
    let mut found = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let has_id = !matches!(entry.key(), EntryKey::Absent | EntryKey::Null);
        if by_id.insert(entry.key(), index).is_some() && has_id {
            found.push((index, IssueReason::RepeatedId));
        }
        if !has_id {
            found.push((index, IssueReason::NoId));
        }
        if entry.kind() == EntryKind::Message && entry.message().is_none() {
            found.push((index, IssueReason::NoMessage));
        }
    }
    let parents: Vec<Option<usize>> = entries.iter().map(|e| by_id.get(e.parent()).copied()).collect();
    for (index, entry) in entries.iter().enumerate() {
        if entry.parent() != &EntryKey::Null && entry.parent() != &EntryKey::Absent && parents[index].is_none() {
            found.push((index, IssueReason::UnknownParent));
        }
    }
    found.extend(cycles(&parents).into_iter().map(|index| (index, IssueReason::Cycle)));
    issues.extend(found.into_iter().map(|(index, reason)| DocumentIssue { position: entry_positions[index], reason }));
    issues.sort_by_key(|issue| issue.position.line);
}

/// The entries on cycles; each walk starts at an entry not visited before.
fn cycles(parents: &[Option<usize>]) -> Vec<usize> {
    let mut walk_of = vec![0_usize; parents.len()];
    let mut found = Vec::new();
    for start in 0..parents.len() {
        let walk = start + 1;
        let mut at = Some(start);
        while let Some(index) = at.filter(|i| walk_of[*i] == 0) {
            walk_of[index] = walk;
            at = parents[index];
        }
        let Some(entrance) = at.filter(|i| walk_of[*i] == walk) else { continue };
        let mut index = entrance;
        loop {
            found.push(index);
            match parents[index] {
                Some(next) if next != entrance => index = next,
                Some(_) | None => break,
            }
        }
    }
    found
}
