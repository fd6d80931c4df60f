//! `read`, `edit` and `write`.

use std::{
    fmt::Write as _,
    io::{self, Read},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use similar::TextDiff;

use crate::{
    arguments::{EditArguments, Replacement, WriteArguments},
    edit::{self, Edited, Tolerance},
    limits, replace,
    result::ToolResult,
    seen::{Knowledge, SeenFile, SeenFiles},
    text,
    workspace::{OpenedFile, Workspace},
};

mod reading;

pub(crate) use reading::read;

/// Longest diff that is shown, bytes.
const DIFF_BYTES: usize = 16 * 1024;
/// Longest diff in a refusal, bytes. With a longer one the file is to be read again.
const REFUSAL_BYTES: usize = 4 * 1024;

/// The files of a session.
pub(crate) struct Files {
    pub(crate) workspace: Workspace,
    seen: Mutex<SeenFiles>,
}

/// A file that may be changed.
struct Held {
    opened: OpenedFile,
    content: Vec<u8>,
    hash: String,
    knowledge: Knowledge,
}

impl Files {
    pub(crate) fn new(workspace: Workspace) -> Self {
        Self { workspace, seen: Mutex::default() }
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, SeenFiles> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a file that is to be changed.
    fn hold(&self, path: &Path) -> Result<Held, String> {
        let cannot = |error: &io::Error| format!("cannot open {}: {error}", self.workspace.shown(path));
        let mut opened = self.workspace.open_file(path).map_err(|error| cannot(&error))?;
        let content = whole(&mut opened).map_err(|error| cannot(&error))?;
        let hash = blake3::hash(&content).to_hex().to_string();
        let knowledge = self.seen().knowledge(path, &hash);
        Ok(Held { opened, content, hash, knowledge })
    }

    /// Why a stale file is not changed. When the whole difference is shown, the model knows the file again.
    fn stale(&self, path: &Path, held: &Held, before: Option<&[u8]>) -> ToolResult {
        let shown = self.workspace.shown(path);
        let difference = before.map(|before| diff(&shown, before, &held.content));
        match difference {
            Some((difference, _)) if difference.len() <= REFUSAL_BYTES => {
                let seen = self.seen().record(seen_file(path, held, Vec::new(), false), Some(&held.content));
                let mut result = ToolResult::error(format!(
                    "{shown} changed since it was read; nothing was written. What changed:\n{difference}"
                ));
                result.details.seen = Some(seen);
                result
            }
            Some(_) | None => ToolResult::error(format!(
                "{shown} changed since it was read; nothing was written. Read it again and repeat the call"
            )),
        }
    }

    /// The content a file would have after an edit.
    fn edited(&self, path: &Path, edit: &EditArguments) -> Result<(Held, Edited), Box<ToolResult>> {
        let held = self.hold(path).map_err(|why| Box::new(ToolResult::error(why)))?;
        let tolerance = match &held.knowledge {
            Knowledge::Unseen => Tolerance::Exact,
            Knowledge::Current { .. } => Tolerance::All,
            Knowledge::Stale(before) => return Err(Box::new(self.stale(path, &held, before.as_deref()))),
        };
        if held.content.contains(&0) {
            return Err(Box::new(ToolResult::error(format!("{} is a binary file", self.workspace.shown(path)))));
        }
        let written = edit.edits.iter().map(|one| one.new.as_str());
        if let Some(mark) = written.filter_map(mark).find(|mark| !contains(&held.content, mark)) {
            return Err(Box::new(ToolResult::error(masked(&mark))));
        }
        let edited = edit::apply(&held.content, &edit.edits, tolerance).map_err(|why| {
            let (why, removed) = text::clean(why.as_bytes());
            let mut result = ToolResult::error(format!("{}: {why}", self.workspace.shown(path)));
            (result.details.masked, result.details.removed) = (removed.masked, removed.removed);
            Box::new(result)
        })?;
        if edited.content.len() > limits::FILE_BYTES_MEMORY {
            return Err(Box::new(ToolResult::error(format!(
                "{} would have {} bytes; the limit is {}",
                self.workspace.shown(path),
                edited.content.len(),
                limits::FILE_BYTES
            ))));
        }
        Ok((held, edited))
    }

    /// What an edit would change.
    pub(crate) fn edit_diff(&self, path: &Path, arguments: &EditArguments) -> Option<String> {
        let (held, edited) = self.edited(path, arguments).ok()?;
        Some(bounded(diff(&self.workspace.shown(path), &held.content, &edited.content).0))
    }

    pub(crate) fn edit(&self, path: &Path, arguments: &EditArguments) -> ToolResult {
        let (held, edited) = match self.edited(path, arguments) {
            Ok(edited) => edited,
            Err(refusal) => return *refusal,
        };
        let shown = self.workspace.shown(path);
        if let Err(error) = replace::replace(&self.workspace, path, &held.opened.stat, &edited.content) {
            return ToolResult::error(format!("cannot write {shown}: {error}"));
        }
        let (difference, removed) = diff(&shown, &held.content, &edited.content);
        let mut result = ToolResult::text(describe_edit(&shown, &arguments.edits, &edited, &difference));
        result.details.changed.push(path.to_owned());
        result.details.masked = removed.masked;
        result.details.removed = removed.removed;
        result.details.diff = Some(bounded(difference));
        let whole = held.knowledge == Knowledge::Current { whole: true };
        let lines = edited.places.iter().map(|place| (place.first as u64, place.last as u64)).collect();
        result.details.seen = self.written(path, &edited.content, lines, whole);
        result
    }

    /// Records what is in a file that was just written.
    fn written(&self, path: &Path, content: &[u8], lines: Vec<(u64, u64)>, whole: bool) -> Option<SeenFile> {
        let opened = self.workspace.open_file(path).ok()?;
        let hash = blake3::hash(content).to_hex().to_string();
        let file = SeenFile {
            path: path.to_owned(),
            hash,
            bytes: content.len() as u64,
            modified_us: modified_us(&opened),
            lines,
            whole,
        };
        Some(self.seen().record(file, Some(content)))
    }

    /// What a write would change; nothing for a new file, of which the content says it all.
    pub(crate) fn write_diff(&self, path: &Path, arguments: &WriteArguments) -> Option<String> {
        let held = self.hold(path).ok()?;
        Some(bounded(diff(&self.workspace.shown(path), &held.content, arguments.content.as_bytes()).0))
    }

    pub(crate) fn write(&self, path: &Path, arguments: &WriteArguments) -> ToolResult {
        let shown = self.workspace.shown(path);
        let content = arguments.content.as_bytes();
        let lines = arguments.content.lines().count() as u64;
        let (made, difference) = match self.workspace.open_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(mark) = mark(&arguments.content) {
                    return ToolResult::error(masked(&mark));
                }
                (replace::create(&self.workspace, path, content), None)
            }
            Err(error) => return ToolResult::error(format!("cannot open {shown}: {error}")),
            Ok(_) => {
                let held = match self.hold(path) {
                    Ok(held) => held,
                    Err(why) => return ToolResult::error(why),
                };
                match &held.knowledge {
                    Knowledge::Current { whole: true } => {}
                    Knowledge::Unseen | Knowledge::Current { whole: false } if held.content.is_empty() => {}
                    Knowledge::Unseen => {
                        return ToolResult::error(format!(
                            "{shown} exists and was not read; read it first, or change it with edit"
                        ));
                    }
                    Knowledge::Current { whole: false } => {
                        return ToolResult::error(format!(
                            "only a part of {shown} was read; read the rest first, or change it with edit"
                        ));
                    }
                    Knowledge::Stale(before) => return self.stale(path, &held, before.as_deref()),
                }
                if let Some(mark) = mark(&arguments.content).filter(|mark| !contains(&held.content, mark)) {
                    return ToolResult::error(masked(&mark));
                }
                let written = replace::replace(&self.workspace, path, &held.opened.stat, content);
                (written, Some(diff(&shown, &held.content, content)))
            }
        };
        if let Err(error) = made {
            return ToolResult::error(format!("cannot write {shown}: {error}"));
        }
        let what = if difference.is_some() { "replaced" } else { "created" };
        let mut result = ToolResult::text(format!("{what} {shown} ({lines} lines, {} bytes)", content.len()));
        result.details.changed.push(path.to_owned());
        if let Some((difference, removed)) = difference {
            result.details.masked = removed.masked;
            result.details.removed = removed.removed;
            result.details.diff = Some(bounded(difference));
        }
        let shown_lines = if lines == 0 { Vec::new() } else { vec![(1, lines)] };
        result.details.seen = self.written(path, content, shown_lines, true);
        result
    }
}

/// Reads a file whole, up to the limit of what is edited.
fn whole(opened: &mut OpenedFile) -> io::Result<Vec<u8>> {
    let too_long = || io::Error::other(format!("it is longer than {} MiB", limits::FILE_BYTES >> 20));
    if opened.size() > limits::FILE_BYTES {
        return Err(too_long());
    }
    let mut content = Vec::with_capacity(usize::try_from(opened.size()).unwrap_or_default());
    (&mut opened.file).take(limits::FILE_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limits::FILE_BYTES { Err(too_long()) } else { Ok(content) }
}

fn modified_us(opened: &OpenedFile) -> i64 {
    let nanoseconds = i64::try_from(opened.stat.st_mtime_nsec).unwrap_or_default();
    opened.stat.st_mtime.saturating_mul(1_000_000).saturating_add(nanoseconds / 1000)
}

fn seen_file(path: &Path, held: &Held, lines: Vec<(u64, u64)>, whole: bool) -> SeenFile {
    SeenFile {
        path: path.to_owned(),
        hash: held.hash.clone(),
        bytes: held.content.len() as u64,
        modified_us: modified_us(&held.opened),
        lines,
        whole,
    }
}

/// A unified diff without secrets.
fn diff(name: &str, before: &[u8], after: &[u8]) -> (String, text::Removed) {
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    let diff = TextDiff::configure()
        .timeout(std::time::Duration::from_millis(500))
        .diff_lines(before.as_ref(), after.as_ref());
    let unified = diff.unified_diff().context_radius(3).header(name, name).to_string();
    text::clean(unified.as_bytes())
}

fn bounded(mut diff: String) -> String {
    if diff.len() > DIFF_BYTES {
        let left = diff.len() - DIFF_BYTES;
        diff.truncate(diff.floor_char_boundary(DIFF_BYTES));
        write!(diff, "\n[{left} more bytes]").ok();
    }
    diff
}

fn describe_edit(shown: &str, edits: &[Replacement], edited: &Edited, difference: &str) -> String {
    let count = edited.places.len();
    let lines: Vec<String> = edited
        .places
        .iter()
        .take(20)
        .map(|place| {
            if place.last <= place.first { place.first.to_string() } else { format!("{}-{}", place.first, place.last) }
        })
        .collect();
    let more = if count > 20 { ", …" } else { "" };
    let noun = if count == 1 { "replacement" } else { "replacements" };
    let mut said = format!("edited {shown}: {count} {noun} (lines {}{more})", lines.join(", "));
    let mut ignored: Vec<&str> = edited.places.iter().filter_map(|place| place.pass.ignored()).collect();
    ignored.sort_unstable();
    ignored.dedup();
    if !ignored.is_empty() {
        // What the file has now may not be what was written: it is shown.
        let all = if edits.len() == 1 { "`old` was" } else { "some were" };
        write!(said, "\n{all} found except for {}. The change:\n", ignored.join("; ")).ok();
        said.push_str(text::first_bytes(difference, REFUSAL_BYTES));
    }
    said
}

/// A mark of a masked secret in a text.
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

#[cfg(test)]
mod tests;
