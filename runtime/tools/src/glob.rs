//! `glob`, and patterns for file names.

use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;

use crate::{arguments::GlobArguments, cancel::Cancel, limits, result::ToolResult, text, workspace::Workspace};

/// A pattern for file names. One without a slash matches names at any depth.
pub(crate) fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
        return Err("must be relative and without `..`; put the directory in `path`".to_owned());
    }
    let whole = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
    let glob = GlobBuilder::new(&whole).literal_separator(true).empty_alternates(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
}

/// Whether a pattern explicitly names hidden files.
pub(crate) fn names_hidden(pattern: &str) -> bool {
    pattern.starts_with('.') && !pattern.starts_with("./") || pattern.contains("/.") || pattern.contains("{.")
}

/// The files below a directory as ripgrep lists them: without ignored files, without hidden ones unless requested,
/// never following links or entering `.git`.
pub(crate) fn walk(root: &Path, hidden: bool) -> WalkBuilder {
    let mut walk = WalkBuilder::new(root);
    walk.add_custom_ignore_filename(".rgignore");
    // The policy evaluates a search without the user's global ignore file, which could re-include hidden files.
    walk.git_global(false);
    walk.hidden(!hidden).follow_links(false).filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    walk
}

/// Lists files, newest first.
pub(crate) fn glob(workspace: &Workspace, root: &Path, arguments: &GlobArguments, cancel: &Cancel) -> ToolResult {
    let matcher = match matcher(&arguments.pattern) {
        Ok(matcher) => matcher,
        Err(why) => return ToolResult::error(format!("`pattern`: {why}")),
    };
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    let mut complete = true;
    for (count, entry) in walk(root, names_hidden(&arguments.pattern)).build().enumerate() {
        if cancel.is_cancelled() {
            return ToolResult::error("cancelled");
        }
        if count >= limits::WALKED {
            complete = false;
            break;
        }
        // Unreadable entries are skipped.
        let Ok(entry) = entry else { continue };
        let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink());
        if is_file && matcher.is_match(below) {
            let modified =
                entry.metadata().ok().and_then(|file| file.modified().ok()).unwrap_or(SystemTime::UNIX_EPOCH);
            found.push((modified, entry.into_path()));
        }
    }
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let total = found.len();
    let mut names = String::new();
    let mut listed = 0;
    for (_, path) in found.iter().take(limits::GLOB_RESULTS) {
        let name = workspace.shown(path);
        if names.len() + name.len() >= limits::RESULT_BYTES {
            break;
        }
        // One line per name.
        names.push_str(&name.replace(['\n', '\r'], "\u{fffd}"));
        names.push('\n');
        listed += 1;
    }
    let (mut shown, removed) = text::clean(names.as_bytes());
    if total == 0 {
        shown.push_str("no files match\n");
    } else if listed < total {
        shown.push_str(&format!("[the {listed} newest of {total}; use a narrower pattern or path]\n"));
    }
    if !complete {
        shown.push_str(&format!("[stopped after {} entries; use a narrower path]\n", limits::WALKED));
    }
    let mut result = ToolResult::text(shown);
    (result.details.masked, result.details.removed) = (removed.masked, removed.removed);
    result.details.untrusted = !workspace.contains(root);
    result
}

#[cfg(test)]
mod tests;
