//! Whether an edit or a write would be made in the current state. Previews and runs share this code, so that a preview
//! matches the run.
//!
//! Nothing here can write a file or record that the model has seen one: it borrows [`SeenFiles`] immutably.

#![expect(clippy::result_large_err, reason = "a refusal carries what it shows, once for a call")]

use std::{
    io::{self, Read},
    path::Path,
};

use super::{diff, modified_us};
use crate::{
    arguments::{EditArguments, WriteArguments},
    edit::{self, Edited, Tolerance},
    limits, replace,
    result::ToolResult,
    seen::{Knowledge, SeenFile, SeenFiles},
    text::{self, Removed},
    workspace::{OpenedFile, Workspace},
};

/// Maximum size of a diff in a refusal, in bytes. If it is longer, the model has to read the file again.
pub(super) const REFUSAL_BYTES: usize = 4 * 1024;

/// The inputs of a check.
#[derive(Clone, Copy)]
pub(super) struct Check<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) seen: &'a SeenFiles,
}

/// A file that may be changed.
pub(super) struct Held {
    pub(super) opened: OpenedFile,
    pub(super) content: Vec<u8>,
    hash: String,
    pub(super) knowledge: Knowledge,
}

impl Held {
    pub(super) fn seen(&self, path: &Path, lines: Vec<(u64, u64)>, whole: bool) -> SeenFile {
        SeenFile {
            path: path.to_owned(),
            hash: self.hash.clone(),
            bytes: self.content.len() as u64,
            modified_us: modified_us(&self.opened),
            lines,
            whole,
        }
    }
}

/// What a write would do.
pub(super) enum CheckedWrite {
    /// Create a file.
    Creates,
    /// Replace the file.
    Replaces(Held),
    /// Nothing: the file already has this content.
    Keeps(Held),
}

/// Why a call is not made.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) why: String,
    removed: Removed,
    /// The file, if the text shows the whole change: after reading the text, the model has seen the file again.
    pub(super) shows: Option<(SeenFile, Vec<u8>)>,
}

impl Refusal {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), removed: Removed::default(), shows: None }
    }

    /// The result for the model. Does not record that the file was shown.
    pub(super) fn to_result(&self) -> ToolResult {
        let mut result = ToolResult::error(self.why.as_str());
        (result.details.masked, result.details.removed) = (self.removed.masked, self.removed.removed);
        result
    }
}

impl Check<'_> {
    /// Reads a file that is to be changed.
    fn hold(self, path: &Path) -> Result<Held, Refusal> {
        let cannot = |error: &io::Error| Refusal::new(format!("cannot open {}: {error}", self.workspace.shown(path)));
        let mut opened = self.workspace.open_file(path).map_err(|error| cannot(&error))?;
        let content = whole(&mut opened).map_err(|error| cannot(&error))?;
        let hash = blake3::hash(&content).to_hex().to_string();
        let knowledge = self.seen.knowledge(path, &hash);
        Ok(Held { opened, content, hash, knowledge })
    }

    /// Why a file that changed since the model saw it is not written.
    fn stale(self, path: &Path, held: Held, before: Option<&[u8]>) -> Refusal {
        let shown = self.workspace.shown(path);
        let difference = before.map(|before| diff(&shown, &shown, before, &held.content).0);
        match difference.filter(|difference| difference.len() <= REFUSAL_BYTES) {
            Some(difference) => Refusal {
                shows: Some((held.seen(path, Vec::new(), false), held.content)),
                ..Refusal::new(format!(
                    "{shown} changed since it was read; nothing was written. What changed:\n{difference}"
                ))
            },
            None => Refusal::new(format!(
                "{shown} changed since it was read; nothing was written. Read it again and repeat the call"
            )),
        }
    }

    /// Whether the file can be replaced, or created if `before` is absent.
    fn writable(self, path: &Path, before: Option<&Held>) -> Result<(), Refusal> {
        let checked = replace::check(self.workspace, path, before.map(|held| &held.opened.stat));
        checked.map_err(|error| Refusal::new(cannot_write(&self.workspace.shown(path), &error)))
    }

    /// A file, and its content after an edit.
    pub(super) fn edit(self, path: &Path, arguments: &EditArguments) -> Result<(Held, Edited), Refusal> {
        let shown = self.workspace.shown(path);
        let mut held = self.hold(path)?;
        let tolerance = match &mut held.knowledge {
            Knowledge::Unseen => Tolerance::Exact,
            Knowledge::Current { .. } => Tolerance::All,
            Knowledge::Stale(before) => {
                let before = before.take();
                return Err(self.stale(path, held, before.as_deref()));
            }
        };
        if held.content.contains(&0) {
            return Err(Refusal::new(format!("{shown} is a binary file")));
        }
        let written = arguments.edits.iter().map(|one| one.new.as_str());
        if let Some(mark) = written.filter_map(mark).find(|mark| !contains(&held.content, mark)) {
            return Err(Refusal::new(masked(&mark)));
        }
        let edited = edit::apply(&held.content, &arguments.edits, tolerance).map_err(|why| {
            let (why, removed) = text::clean(why.as_bytes());
            Refusal { removed, ..Refusal::new(format!("{shown}: {why}")) }
        })?;
        if edited.content.len() > limits::FILE_BYTES_MEMORY {
            let (bytes, most) = (edited.content.len(), limits::FILE_BYTES);
            return Err(Refusal::new(format!("{shown} would have {bytes} bytes; the limit is {most}")));
        }
        self.writable(path, Some(&held))?;
        Ok((held, edited))
    }

    /// What a write would do.
    pub(super) fn write(self, path: &Path, arguments: &WriteArguments) -> Result<CheckedWrite, Refusal> {
        let shown = self.workspace.shown(path);
        match self.workspace.open_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(mark) = mark(&arguments.content) {
                    return Err(Refusal::new(masked(&mark)));
                }
                self.writable(path, None)?;
                return Ok(CheckedWrite::Creates);
            }
            Err(error) => return Err(Refusal::new(format!("cannot open {shown}: {error}"))),
            Ok(_) => {}
        }
        let mut held = self.hold(path)?;
        match &mut held.knowledge {
            Knowledge::Current { whole: true } => {}
            Knowledge::Unseen | Knowledge::Current { whole: false } if held.content.is_empty() => {}
            Knowledge::Unseen => {
                return Err(Refusal::new(format!(
                    "{shown} exists and was not read; read it first, or change it with edit"
                )));
            }
            Knowledge::Current { whole: false } => {
                return Err(Refusal::new(format!(
                    "only a part of {shown} was read; read the rest first, or change it with edit"
                )));
            }
            Knowledge::Stale(before) => {
                let before = before.take();
                return Err(self.stale(path, held, before.as_deref()));
            }
        }
        if let Some(mark) = mark(&arguments.content).filter(|mark| !contains(&held.content, mark)) {
            return Err(Refusal::new(masked(&mark)));
        }
        if held.content == arguments.content.as_bytes() {
            return Ok(CheckedWrite::Keeps(held));
        }
        self.writable(path, Some(&held))?;
        Ok(CheckedWrite::Replaces(held))
    }
}

pub(super) fn cannot_write(shown: &str, error: &io::Error) -> String {
    format!("cannot write {shown}: {error}")
}

/// Reads a whole file, up to the size limit for edits.
fn whole(opened: &mut OpenedFile) -> io::Result<Vec<u8>> {
    let too_long = || io::Error::other(format!("it is longer than {} MiB", limits::FILE_BYTES >> 20));
    if opened.size() > limits::FILE_BYTES {
        return Err(too_long());
    }
    let mut content = Vec::with_capacity(usize::try_from(opened.size()).unwrap_or_default());
    (&mut opened.file).take(limits::FILE_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limits::FILE_BYTES { Err(too_long()) } else { Ok(content) }
}

/// The first mark of a masked secret in a text.
fn mark(text: &str) -> Option<String> {
    let start = text.find("[redacted:")?;
    let length = text[start..].char_indices().take(64).find(|(_, c)| *c == ']')?.0;
    Some(text[start..=start + length].to_owned())
}

fn contains(content: &[u8], mark: &str) -> bool {
    memchr::memmem::find(content, mark.as_bytes()).is_some()
}

fn masked(mark: &str) -> String {
    format!(
        "the new text contains `{mark}`, which stands for a secret that was masked when it was read; nothing was written. \
         Edit around the secret and leave it as it is"
    )
}
