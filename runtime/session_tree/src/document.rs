//! The contents of a session file: header, entries, and problems.
//!
//! A file whose first object is not a header is refused as a whole: it belongs to another program and is not touched.
//! In an accepted file, anything unreadable becomes a [`DocumentIssue`] and its line is preserved, so that rewriting
//! the file loses nothing.
//!
//! Reads files as pi 0.87.1 does (`loadEntriesFromFile`), and also accepts oh-my-pi's title slot before the header.
//! This module owns the text form and must not interpret entries. `migrate` upgrades older versions.

mod issues;
mod migrate;
mod position;

pub use issues::{DocumentIssue, IssueReason};
pub use position::FilePosition;

use crate::{
    entry::Entry,
    json::{Json, Object},
    stamp::{Stamp, session_id},
    time::to_iso,
};

/// The version this program writes.
pub const VERSION: u64 = 3;

/// The first line of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionHeader {
    fields: Object,
}

impl SessionHeader {
    /// A header for a new session.
    #[must_use]
    pub fn new(cwd: &str, parent_session: Option<&str>, stamp: Stamp) -> Self {
        let fields = Object::new()
            .with("type", "session")
            .with("version", VERSION)
            .with("id", session_id(stamp))
            .with("timestamp", to_iso(stamp.now_ms))
            .with("cwd", cwd)
            .with_some("parentSession", parent_session);
        Self { fields }
    }

    /// All fields that were read, including unknown ones.
    #[must_use]
    pub fn fields(&self) -> &Object {
        &self.fields
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.fields.text("id").unwrap_or_default()
    }

    /// The working directory of the session.
    #[must_use]
    pub fn cwd(&self) -> Option<&str> {
        self.fields.text("cwd")
    }

    /// When it began, as written.
    #[must_use]
    pub fn timestamp(&self) -> Option<&str> {
        self.fields.text("timestamp")
    }

    /// The file this session was forked from.
    #[must_use]
    pub fn parent_session(&self) -> Option<&str> {
        self.fields.text("parentSession")
    }

    /// The line of the file, without its end.
    #[must_use]
    pub fn to_line(&self) -> String {
        self.fields.to_text()
    }
}

/// A line that is not an entry; it is preserved when the file is rewritten.
#[derive(Debug, Clone, PartialEq)]
struct KeptLine {
    /// The number of entries before it; `None` for a line before the header.
    after: Option<usize>,
    text: Vec<u8>,
}

/// The contents of a file, migrated to version 3.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionDocument {
    /// The header.
    pub header: SessionHeader,
    /// The entries in the order of the file.
    pub entries: Vec<Entry>,
    /// The position of each entry.
    pub entry_positions: Vec<FilePosition>,
    /// The problems found in the file.
    pub issues: Vec<DocumentIssue>,
    /// Whether the file has an older version, so that it differs from this document.
    pub migrated: bool,
    /// Whether ids were generated here, since the file has none (version 1).
    pub minted_ids: bool,
    /// Whether the last line is not terminated, so that an append must start with a newline.
    pub open_end: bool,
    /// The title in oh-my-pi's slot.
    pub title: Option<String>,
    asides: Vec<KeptLine>,
}

/// Why a file is not a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DocumentRefusal {
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The file contains nothing readable.
    #[error("none of its lines is valid")]
    Unreadable,
    /// The first readable object is not a header.
    #[error("it does not start with a session header")]
    NoHeader,
    /// The header has no id.
    #[error("its header has no id")]
    NoId,
}

impl SessionDocument {
    /// Parses the bytes of a file.
    ///
    /// # Errors
    /// The file is not a session.
    pub fn read(bytes: &[u8]) -> Result<Self, DocumentRefusal> {
        if bytes.is_empty() {
            return Err(DocumentRefusal::Empty);
        }
        let mut reading = DocumentReader::default();
        let mut offset = 0;
        for (index, line) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
            reading.read_line(line, FilePosition { line: index + 1, offset })?;
            offset += line.len() as u64;
        }
        let header = reading.header.ok_or(DocumentRefusal::Unreadable)?;
        let mut document = Self {
            header: SessionHeader { fields: header },
            entries: Vec::new(),
            entry_positions: reading.entry_positions,
            issues: reading.issues,
            migrated: false,
            minted_ids: false,
            open_end: bytes.last() != Some(&b'\n'),
            title: reading.title,
            asides: reading.asides,
        };
        let version = document.header.fields.get("version").cloned();
        let mut objects = reading.objects;
        let migrated =
            migrate::migrate(version.as_ref(), &mut document.header.fields, &mut objects, &reading.positions);
        document.migrated = migrated.changed;
        document.minted_ids = migrated.minted_ids;
        document.entries = objects.into_iter().map(Entry::read).collect();
        issues::of_entries(&document.entries, &document.entry_positions, &mut document.issues);
        Ok(document)
    }

    /// Parses only the header from the start of a file.
    #[must_use]
    pub fn header_of(bytes: &[u8]) -> Option<SessionHeader> {
        let mut reading = DocumentReader::default();
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            reading.read_line(line, FilePosition { line: 0, offset: 0 }).ok()?;
            if let Some(fields) = reading.header {
                return Some(SessionHeader { fields });
            }
        }
        None
    }

    /// The current text of the file, including lines that could not be read.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut asides = self.asides.iter().peekable();
        let put = |line: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(line);
            out.push(b'\n');
        };
        while let Some(aside) = asides.next_if(|a| a.after.is_none()) {
            put(&aside.text, &mut out);
        }
        put(self.header.to_line().as_bytes(), &mut out);
        for (index, entry) in self.entries.iter().enumerate() {
            while let Some(aside) = asides.next_if(|a| a.after.is_some_and(|n| n <= index)) {
                put(&aside.text, &mut out);
            }
            put(entry.to_line().as_bytes(), &mut out);
        }
        for aside in asides {
            put(&aside.text, &mut out);
        }
        out
    }
}

/// The state of reading a file.
#[derive(Default)]
struct DocumentReader {
    header: Option<Object>,
    title: Option<String>,
    objects: Vec<Object>,
    /// The position of each object among all that pi would accept; the header is 0.
    positions: Vec<usize>,
    entry_positions: Vec<FilePosition>,
    issues: Vec<DocumentIssue>,
    asides: Vec<KeptLine>,
    taken: usize,
}

impl DocumentReader {
    fn read_line(&mut self, line: &[u8], file_position: FilePosition) -> Result<(), DocumentRefusal> {
        let whole = line.last() == Some(&b'\n');
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let text = String::from_utf8_lossy(line);
        if text.trim().is_empty() {
            return Ok(());
        }
        let value = match Json::parse(&text) {
            Ok(value) => value,
            Err(error) => {
                let reason = if whole { IssueReason::Malformed(error.to_string()) } else { IssueReason::Torn };
                self.put_aside(line, file_position, reason);
                return Ok(());
            }
        };
        // pi also skips values that are falsy in JavaScript, even before the header.
        if !value.is_truthy() {
            self.put_aside(line, file_position, IssueReason::NotAnObject);
            return Ok(());
        }
        let position = self.taken;
        self.taken += 1;
        let object = match value {
            Json::Object(object) => object,
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
                if self.header.is_none() {
                    return Err(DocumentRefusal::NoHeader);
                }
                self.put_aside(line, file_position, IssueReason::NotAnObject);
                return Ok(());
            }
        };
        let is_header = object.text("type") == Some("session");
        if self.header.is_none() {
            return self.read_header(object, is_header, line);
        }
        if is_header {
            self.put_aside(line, file_position, IssueReason::SecondHeader);
            return Ok(());
        }
        if matches!(text, std::borrow::Cow::Owned(_)) {
            self.issues.push(DocumentIssue { position: file_position, reason: IssueReason::NotUtf8 });
        }
        self.objects.push(object);
        self.positions.push(position);
        self.entry_positions.push(file_position);
        Ok(())
    }

    /// Reads the first object: the header, or oh-my-pi's title before it.
    fn read_header(&mut self, object: Object, is_header: bool, line: &[u8]) -> Result<(), DocumentRefusal> {
        if !is_header {
            let is_slot = self.title.is_none() && object.text("type") == Some("title");
            self.title = Some(object.text("title").filter(|_| is_slot).ok_or(DocumentRefusal::NoHeader)?.to_owned());
            self.asides.push(KeptLine { after: None, text: line.to_vec() });
            self.taken = 0;
            return Ok(());
        }
        if object.text("id").is_none() {
            return Err(DocumentRefusal::NoId);
        }
        self.header = Some(object);
        Ok(())
    }

    fn put_aside(&mut self, line: &[u8], file_position: FilePosition, reason: IssueReason) {
        self.issues.push(DocumentIssue { position: file_position, reason });
        let after = self.header.is_some().then_some(self.objects.len());
        self.asides.push(KeptLine { after, text: line.to_vec() });
    }
}

#[cfg(test)]
mod tests;
