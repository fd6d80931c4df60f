//! `read`, `edit` and `write`.

use std::{
    fmt::Write as _,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use similar::TextDiff;

use crate::{
    arguments::{EditArguments, Replacement, WriteArguments},
    edit::Edited,
    preview::Preview,
    replace,
    result::ToolResult,
    seen::{Knowledge, SeenFile, SeenFiles},
    text,
    workspace::{OpenedFile, Workspace},
};

mod check;
mod reading;

use check::{Check, CheckedWrite, Held, REFUSAL_BYTES, Refusal, cannot_write};
pub(crate) use reading::read;

/// Maximum size of a diff stored with a result, in bytes.
const DIFF_BYTES: usize = 16 * 1024;
/// Number of lines at the start of a diff that name the files.
const HEADER_LINES: usize = 2;

/// The files of a session.
pub(crate) struct Files {
    pub(crate) workspace: Workspace,
    seen: Mutex<SeenFiles>,
}

impl Files {
    pub(crate) fn new(workspace: Workspace) -> Self {
        Self { workspace, seen: Mutex::default() }
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, SeenFiles> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(clippy::result_large_err, reason = "a refusal carries what it shows, once for a call")]
    fn checked_edit(&self, path: &Path, arguments: &EditArguments) -> Result<(Held, Edited), Refusal> {
        Check { workspace: &self.workspace, seen: &self.seen() }.edit(path, arguments)
    }

    #[expect(clippy::result_large_err, reason = "a refusal carries what it shows, once for a call")]
    fn checked_write(&self, path: &Path, arguments: &WriteArguments) -> Result<CheckedWrite, Refusal> {
        Check { workspace: &self.workspace, seen: &self.seen() }.write(path, arguments)
    }

    /// Returns a refusal. If it shows the whole change, the file counts as seen again.
    fn refuse(&self, refusal: Refusal) -> ToolResult {
        let mut result = refusal.to_result();
        result.details.seen = refusal.shows.map(|(seen, content)| self.seen().record(seen, Some(&content)));
        result
    }

    /// What an edit would do.
    pub(crate) fn preview_edit(&self, path: &Path, arguments: &EditArguments) -> Preview {
        match self.checked_edit(path, arguments) {
            Ok((held, edited)) => {
                let shown = self.workspace.shown(path);
                Preview::WouldChange(preview_diff(&shown, &shown, &held.content, &edited.content))
            }
            Err(refusal) => Preview::Refused(refusal.why),
        }
    }

    /// What a write would do.
    pub(crate) fn preview_write(&self, path: &Path, arguments: &WriteArguments) -> Preview {
        let (shown, content) = (self.workspace.shown(path), arguments.content.as_bytes());
        match self.checked_write(path, arguments) {
            Ok(CheckedWrite::Creates) if content.is_empty() => {
                // A diff of two empty files would be empty.
                Preview::WouldChange(format!("--- /dev/null\n+++ {}\n", in_a_line(&shown)))
            }
            Ok(CheckedWrite::Creates) => Preview::WouldChange(preview_diff("/dev/null", &shown, b"", content)),
            Ok(CheckedWrite::Replaces(held)) => {
                Preview::WouldChange(preview_diff(&shown, &shown, &held.content, content))
            }
            Ok(CheckedWrite::Keeps(_)) => Preview::NoChange(kept(&shown)),
            Err(refusal) => Preview::Refused(refusal.why),
        }
    }

    pub(crate) fn edit(&self, path: &Path, arguments: &EditArguments) -> ToolResult {
        let (held, edited) = match self.checked_edit(path, arguments) {
            Ok(edited) => edited,
            Err(refusal) => return self.refuse(refusal),
        };
        let shown = self.workspace.shown(path);
        if let Err(error) = replace::replace(&self.workspace, path, &held.opened.stat, &edited.content) {
            return ToolResult::error(cannot_write(&shown, &error));
        }
        let (difference, removed) = diff(&shown, &shown, &held.content, &edited.content);
        let mut result = ToolResult::text(describe_edit(&shown, &arguments.edits, &edited, &difference));
        result.details.changed.push(path.to_owned());
        result.details.masked = removed.masked;
        result.details.removed = removed.removed;
        result.details.diff = Some(bounded(difference, DIFF_BYTES));
        let whole = held.knowledge == Knowledge::Current { whole: true };
        let lines = edited.places.iter().map(|place| (place.first as u64, place.last as u64)).collect();
        result.details.seen = self.written(path, &edited.content, lines, whole);
        result
    }

    /// The result of an edit that changes nothing; an edit that would now change something is not made.
    pub(crate) fn edit_without_effect(&self, path: &Path, arguments: &EditArguments) -> ToolResult {
        match self.checked_edit(path, arguments) {
            Ok(_) => self.not_made(path),
            Err(refusal) => self.refuse(refusal),
        }
    }

    /// The result of a write that changes nothing; a write that would now change something is not made.
    pub(crate) fn write_without_effect(&self, path: &Path, arguments: &WriteArguments) -> ToolResult {
        match self.checked_write(path, arguments) {
            Ok(CheckedWrite::Creates | CheckedWrite::Replaces(_)) => self.not_made(path),
            Ok(CheckedWrite::Keeps(held)) => self.keep(path, arguments, &held),
            Err(refusal) => self.refuse(refusal),
        }
    }

    fn not_made(&self, path: &Path) -> ToolResult {
        let shown = self.workspace.shown(path);
        ToolResult::error(format!("{shown} changed just now; nothing was written. Make the call again"))
    }

    /// Records the content of a file that was just written.
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

    /// The result of a write of the content that the file already has.
    fn keep(&self, path: &Path, arguments: &WriteArguments, held: &Held) -> ToolResult {
        let mut result = ToolResult::text(kept(&self.workspace.shown(path)));
        let seen = held.seen(path, all_lines(&arguments.content), true);
        result.details.seen = Some(self.seen().record(seen, Some(&held.content)));
        result
    }

    pub(crate) fn write(&self, path: &Path, arguments: &WriteArguments) -> ToolResult {
        let shown = self.workspace.shown(path);
        let content = arguments.content.as_bytes();
        let (made, difference) = match self.checked_write(path, arguments) {
            Err(refusal) => return self.refuse(refusal),
            Ok(CheckedWrite::Keeps(held)) => return self.keep(path, arguments, &held),
            Ok(CheckedWrite::Creates) => (replace::create(&self.workspace, path, content), None),
            Ok(CheckedWrite::Replaces(held)) => {
                let written = replace::replace(&self.workspace, path, &held.opened.stat, content);
                (written, Some(diff(&shown, &shown, &held.content, content)))
            }
        };
        if let Err(error) = made {
            return ToolResult::error(cannot_write(&shown, &error));
        }
        let what = if difference.is_some() { "replaced" } else { "created" };
        let lines = arguments.content.lines().count();
        let mut result = ToolResult::text(format!("{what} {shown} ({lines} lines, {} bytes)", content.len()));
        result.details.changed.push(path.to_owned());
        if let Some((difference, removed)) = difference {
            result.details.masked = removed.masked;
            result.details.removed = removed.removed;
            result.details.diff = Some(bounded(difference, DIFF_BYTES));
        }
        result.details.seen = self.written(path, content, all_lines(&arguments.content), true);
        result
    }
}

/// The text for the model after a write that changes nothing.
fn kept(shown: &str) -> String {
    format!("{shown} already has this content; nothing was written")
}

fn all_lines(content: &str) -> Vec<(u64, u64)> {
    let lines = content.lines().count() as u64;
    if lines == 0 { Vec::new() } else { vec![(1, lines)] }
}

fn modified_us(opened: &OpenedFile) -> i64 {
    let nanoseconds = i64::try_from(opened.stat.st_mtime_nsec).unwrap_or_default();
    opened.stat.st_mtime.saturating_mul(1_000_000).saturating_add(nanoseconds / 1000)
}

/// A unified diff for the model and the session, without secrets and control characters.
fn diff(from: &str, to: &str, before: &[u8], after: &[u8]) -> (String, text::Removed) {
    text::clean(unified(from, to, before, after).as_bytes())
}

/// A unified diff for the approver: lines that would be written are complete, with all their characters. In lines that
/// the file already has, secrets are masked.
fn preview_diff(from: &str, to: &str, before: &[u8], after: &[u8]) -> String {
    let diff = unified(from, to, before, after);
    let masked = text::without_secrets(&diff);
    // A secret may span several lines: if the lines no longer correspond, each one is masked separately.
    let is_lined_up = masked.lines().count() == diff.lines().count();
    let mut masked = masked.lines();
    let lines = diff.split_inclusive('\n').enumerate().map(|(at, line)| {
        let without = masked.next().filter(|_| is_lined_up).map(str::to_owned);
        if at >= HEADER_LINES && line.starts_with('+') {
            return line.to_owned();
        }
        let end = if line.ends_with('\n') { "\n" } else { "" };
        without.unwrap_or_else(|| text::without_secrets(line.trim_end_matches('\n'))) + end
    });
    lines.collect()
}

fn unified(from: &str, to: &str, before: &[u8], after: &[u8]) -> String {
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    let diff = TextDiff::configure()
        .timeout(std::time::Duration::from_millis(500))
        .diff_lines(before.as_ref(), after.as_ref());
    diff.unified_diff().context_radius(3).header(&in_a_line(from), &in_a_line(to)).to_string()
}

/// A file name for a diff header, in which a newline would start a new line.
fn in_a_line(name: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    name.chars().map(escaped).collect()
}

fn bounded(mut diff: String, most: usize) -> String {
    if diff.len() > most {
        let left = diff.len() - most;
        diff.truncate(diff.floor_char_boundary(most));
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
        // The file may contain something other than what was written, so the change is shown.
        let all = if edits.len() == 1 { "`old` was" } else { "some were" };
        write!(said, "\n{all} found except for {}. The change:\n", ignored.join("; ")).ok();
        said.push_str(text::first_bytes(difference, REFUSAL_BYTES));
    }
    said
}

#[cfg(test)]
mod tests;
