//! `grep`.

use std::{
    fmt::Write as _,
    io,
    path::Path,
    time::{Duration, Instant},
};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};

use crate::{
    arguments::{GrepArguments, GrepMode},
    cancel::Cancel,
    glob, limits,
    result::ToolResult,
    text::{self, cut_line},
    workspace::Workspace,
};

/// Maximum number of characters shown per line.
const LINE_CHARS: usize = 500;
/// Bytes collected before secrets are masked and the limit of a result applies.
const COLLECTED: usize = 2 * limits::RESULT_BYTES;

/// A regular expression in the syntax of ripgrep.
pub(crate) fn matcher(pattern: &str) -> Result<RegexMatcher, String> {
    RegexMatcherBuilder::new()
        .line_terminator(Some(b'\n'))
        .size_limit(10 << 20)
        .dfa_size_limit(10 << 20)
        .build(pattern)
        .map_err(|error| error.to_string().lines().last().unwrap_or("cannot be compiled").to_owned())
}

/// Why a search ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchEnd {
    Matches,
    Bytes,
    Time,
    Entries,
    Cancelled,
}

/// A search and its results so far.
struct Search<'a> {
    workspace: &'a Workspace,
    mode: GrepMode,
    limit: u64,
    cancel: &'a Cancel,
    deadline: Instant,
    found: String,
    matches: u64,
    cut: Option<SearchEnd>,
}

/// Searches files.
pub(crate) fn grep(workspace: &Workspace, root: &Path, arguments: &GrepArguments, cancel: &Cancel) -> ToolResult {
    grep_within(workspace, root, arguments, cancel, limits::GREP)
}

fn grep_within(
    workspace: &Workspace,
    root: &Path,
    arguments: &GrepArguments,
    cancel: &Cancel,
    within: Duration,
) -> ToolResult {
    let matcher = match matcher(&arguments.pattern) {
        Ok(matcher) => matcher,
        Err(why) => return ToolResult::error(format!("`pattern`: {why}")),
    };
    let only = match arguments.glob.as_deref().map(glob::matcher).transpose() {
        Ok(only) => only,
        Err(why) => return ToolResult::error(format!("`glob`: {why}")),
    };
    let mode = arguments.mode.unwrap_or_default();
    let context = if mode == GrepMode::Lines { arguments.context.unwrap_or(0) as usize } else { 0 };
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(2 * limits::FILE_BYTES_MEMORY))
        .build();
    let mut search = Search {
        workspace,
        mode,
        limit: arguments.limit.unwrap_or(limits::GREP_MATCHES).into(),
        cancel,
        deadline: Instant::now() + within,
        found: String::new(),
        matches: 0,
        cut: None,
    };
    let hidden = arguments.glob.as_deref().is_some_and(glob::names_hidden);
    let mut files = glob::walk(root, hidden);
    files.max_filesize(Some(limits::FILE_BYTES)).sort_by_file_path(Path::cmp);
    for (count, entry) in files.build().enumerate() {
        search.look_up();
        if count >= limits::WALKED {
            search.cut.get_or_insert(SearchEnd::Entries);
        }
        if search.cut.is_some() {
            break;
        }
        // Unreadable entries are skipped.
        let Ok(entry) = entry else { continue };
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let wanted = only.as_ref().is_none_or(|only| entry.depth() == 0 || only.is_match(below));
        if wanted {
            search.file(&mut searcher, &matcher, entry.path());
        }
    }
    search.result(root)
}

impl Search<'_> {
    fn look_up(&mut self) {
        if self.cancel.is_cancelled() {
            self.cut = Some(SearchEnd::Cancelled);
        } else if Instant::now() >= self.deadline {
            self.cut.get_or_insert(SearchEnd::Time);
        }
    }

    /// Searches one file, opened without following links.
    fn file(&mut self, searcher: &mut Searcher, matcher: &RegexMatcher, path: &Path) {
        let Ok(opened) = self.workspace.open_file(path) else { return };
        let name = self.workspace.shown(path).replace(['\n', '\r'], "\u{fffd}");
        let mut sink = FileSink { search: self, name, count: 0, wrote: false };
        // If a file cannot be read to its end, the earlier matches remain.
        searcher.search_file(matcher, &opened.file, &mut sink).ok();
        let (count, name, wrote) = (sink.count, sink.name, sink.wrote);
        match self.mode {
            GrepMode::Lines if wrote => self.found.push('\n'),
            GrepMode::Files if count > 0 => self.list(&name, None),
            GrepMode::Count if count > 0 => self.list(&name, Some(count)),
            GrepMode::Lines | GrepMode::Files | GrepMode::Count => {}
        }
    }

    fn list(&mut self, name: &str, count: Option<u64>) {
        match count {
            Some(count) => writeln!(self.found, "{name}: {count}").ok(),
            None => writeln!(self.found, "{name}").ok(),
        };
        self.matches += 1;
        if self.matches >= self.limit {
            self.cut = Some(SearchEnd::Matches);
        }
    }

    fn result(self, root: &Path) -> ToolResult {
        if self.cut == Some(SearchEnd::Cancelled) {
            return ToolResult::error("cancelled");
        }
        let (found, removed) = text::clean(self.found.trim_end().as_bytes());
        let mut cut = self.cut;
        let mut shown = text::first_bytes(&found, limits::RESULT_BYTES).to_owned();
        if shown.len() < found.len() {
            cut = Some(SearchEnd::Bytes);
            shown.truncate(shown.rfind('\n').unwrap_or(shown.len()));
        }
        if shown.is_empty() {
            shown.push_str("no matches");
        }
        let why = match cut {
            None => "",
            Some(SearchEnd::Matches) => "\n[stopped at the limit of matches; narrow the search]",
            Some(SearchEnd::Bytes) => "\n[cut at 30 KiB; narrow the search]",
            Some(SearchEnd::Time) => "\n[stopped after 10 s; not all files were searched: use a narrower path or glob]",
            Some(SearchEnd::Entries) => {
                "\n[stopped after 100,000 entries; not all files were searched: use a narrower path]"
            }
            Some(SearchEnd::Cancelled) => "\n[cancelled]",
        };
        shown.push_str(why);
        let mut result = ToolResult::text(shown);
        (result.details.masked, result.details.removed) = (removed.masked, removed.removed);
        result.details.untrusted = !self.workspace.contains(root);
        result
    }
}

/// Receives the matching lines of one file.
struct FileSink<'a, 'b> {
    search: &'a mut Search<'b>,
    name: String,
    count: u64,
    wrote: bool,
}

impl FileSink<'_, '_> {
    fn line(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) {
        if !self.wrote {
            writeln!(self.search.found, "{}", self.name).ok();
            self.wrote = true;
        }
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let number = number.unwrap_or_default();
        writeln!(self.search.found, "{number:>6}{mark}\t{}", cut_line(text, LINE_CHARS)).ok();
    }
}

impl Sink for FileSink<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.count += 1;
        match self.search.mode {
            GrepMode::Files => return Ok(false),
            GrepMode::Count => {}
            GrepMode::Lines => {
                self.line(':', found.line_number(), found.bytes());
                self.search.matches += 1;
                if self.search.matches >= self.search.limit {
                    self.search.cut = Some(SearchEnd::Matches);
                } else if self.search.found.len() >= COLLECTED {
                    self.search.cut = Some(SearchEnd::Bytes);
                }
            }
        }
        if self.count.is_multiple_of(256) {
            self.search.look_up();
        }
        Ok(self.search.cut.is_none())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        if self.search.mode == GrepMode::Lines {
            self.line(' ', context.line_number(), context.bytes());
        }
        Ok(self.search.found.len() < 2 * COLLECTED)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.search.found.push_str("    --\n");
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
