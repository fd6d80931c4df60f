//! Finds the old text of an edit: the four passes.

use std::ops::Range;

use memchr::memmem;

use super::{
    fold::{Fold, Folded, without_end},
    line_of, nearest,
};
use crate::{arguments::Replacement, edit::Tolerance};

/// How an old text was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pass {
    /// Exactly.
    Exact,
    /// Ignoring line ends and the blanks before them.
    LineEnds,
    /// Ignoring the same difference in indentation on all lines.
    Indentation,
    /// Ignoring typographic characters.
    Typography,
}

impl Pass {
    /// The ignored difference, as text for the model.
    pub(crate) const fn ignored(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::LineEnds => Some("line ends and trailing blanks"),
            Self::Indentation => Some("a constant difference of indentation"),
            Self::Typography => Some("typographic quotes, dashes and spaces"),
        }
    }
}

/// The difference of indentation between the file and the old text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shift {
    /// Lines of the file have these extra blanks before the old text.
    Add(Vec<u8>),
    /// Lines of the old text have these extra blanks before the file's text.
    Remove(Vec<u8>),
}

/// The location of an old text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundText {
    pub(super) range: Range<usize>,
    pub(super) pass: Pass,
    pub(super) shift: Option<Shift>,
}

/// A pass: returns all locations of the old text of an edit.
type Look = fn(&[u8], &Replacement) -> Vec<FoundText>;

/// Minimum number of letters and digits in an old text for a match that ignores more than line ends.
const TELLING: usize = 4;
/// Maximum number of line numbers in a refusal.
const LINES: usize = 10;

/// Finds the only location of an old text.
pub(super) fn one(text: &[u8], edit: &Replacement, tolerance: Tolerance) -> Result<FoundText, String> {
    let all: [Look; 4] = [exact, line_ends, indentation, typography];
    let passes = match tolerance {
        Tolerance::Exact => &all[..1],
        Tolerance::All => &all[..],
    };
    for pass in passes {
        let mut found = pass(text, edit);
        match found.len() {
            0 => {}
            1 => {
                let one = found.remove(0);
                begins_with_a_line(text, edit, &one)?;
                return if is_there(text, edit, &one.range) {
                    Err(format!(
                        "the new text is already there, at line {}; to insert it once more, include the lines that \
                         follow in `old`",
                        line_of(text, one.range.start)
                    ))
                } else {
                    no_rival(text, edit, &one).map(|()| one)
                };
            }
            count => return Err(several(text, &found, count)),
        }
    }
    let unread = match tolerance {
        Tolerance::Exact => " exactly as given; the file was not read in this session: read it first",
        Tolerance::All => "",
    };
    Err(format!("`old` was not found{unread}. {}", nearest::describe(text, edit)))
}

/// Finds all exact locations of an old text.
pub(super) fn all(text: &[u8], edit: &Replacement) -> Result<Vec<FoundText>, String> {
    let exact = |start: usize| FoundText { range: start..start + edit.old.len(), pass: Pass::Exact, shift: None };
    let found: Vec<FoundText> = memmem::find_iter(text, edit.old.as_bytes()).map(exact).collect();
    if found.is_empty() {
        return Err(format!("`old` was not found. {}", nearest::describe(text, edit)));
    }
    if found.iter().any(|one| is_there(text, edit, &one.range)) {
        return Err(
            "some matches already contain the new text, and `all` would change them again; edit the others one by one"
                .to_owned(),
        );
    }
    Ok(found)
}

fn several(text: &[u8], found: &[FoundText], count: usize) -> String {
    let lines: Vec<String> = found.iter().take(LINES).map(|one| line_of(text, one.range.start).to_string()).collect();
    let more = if count > LINES { ", …" } else { "" };
    let how =
        found.first().and_then(|one| one.pass.ignored()).map_or(String::new(), |what| format!(" except for {what}"));
    let all = if how.is_empty() { ", or set `all` to replace each" } else { "" };
    format!(
        "`old` matches {count} places{how} (lines {}{more}); add surrounding lines until it matches one{all}",
        lines.join(", ")
    )
}

/// All matches, including overlapping ones.
fn matches<'a>(text: &'a [u8], pattern: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let finder = memmem::Finder::new(pattern).into_owned();
    let mut at = 0;
    std::iter::from_fn(move || {
        let found = at + finder.find(text.get(at..)?)?;
        at = found + 1;
        Some(found)
    })
}

/// Pass 1.
fn exact(text: &[u8], edit: &Replacement) -> Vec<FoundText> {
    let found: Vec<FoundText> = matches(text, edit.old.as_bytes())
        .filter(|start| !splits_an_end(text, *start) && !splits_an_end(text, start + edit.old.len()))
        .map(|start| FoundText { range: start..start + edit.old.len(), pass: Pass::Exact, shift: None })
        .collect();
    // There is one match, and it is exact only because the file has more indentation: pass 3 indents the new lines
    // correctly.
    match found.as_slice() {
        [only] if starts_in_indentation(text, edit, &only.range) && indentation(text, edit).len() == 1 => Vec::new(),
        _ => found,
    }
}

/// Whether a position is between the two characters of a CRLF.
fn splits_an_end(text: &[u8], at: usize) -> bool {
    at > 0 && text[at - 1] == b'\r' && text.get(at) == Some(&b'\n')
}

/// Whether an indented old text matches after further blanks of its line.
fn starts_in_indentation(text: &[u8], edit: &Replacement, range: &Range<usize>) -> bool {
    edit.old.starts_with([' ', '\t']) && !blanks_before(text, range).is_empty()
}

/// The blanks between the start of a line and a match in it; empty if there is other text.
fn blanks_before<'a>(text: &'a [u8], range: &Range<usize>) -> &'a [u8] {
    let line = memchr::memrchr(b'\n', &text[..range.start]).map_or(0, |end| end + 1);
    let before = &text[line..range.start];
    if before.iter().all(|byte| matches!(byte, b' ' | b'\t')) { before } else { &[] }
}

/// Refuses ambiguous edits: the old text starts after the indentation of its line, and it
///
/// - is the rest of a line with its end, so that the indentation would be put before the next line;
/// - has part of that indentation and further lines, which are indented as in the file;
/// - is one line, and the new lines are indented less, which may or may not be meant to be shifted.
fn begins_with_a_line(text: &[u8], edit: &Replacement, found: &FoundText) -> Result<(), String> {
    let before = blanks_before(text, &found.range);
    if before.is_empty() || found.shift.is_some() {
        return Ok(());
    }
    let line = line_of(text, found.range.start);
    if edit.old.ends_with('\n') && !edit.new.ends_with('\n') {
        return Err(format!(
            "`old` begins after the indentation of line {line} and ends with a line end that `new` does not have; pass \
             both with the full indentation of each line"
        ));
    }
    let old = edit.old.trim_end_matches(['\r', '\n']);
    if old.contains('\n') && edit.old.starts_with([' ', '\t']) {
        return Err(format!(
            "`old` begins within the indentation of line {line}, but its other lines do not omit the same indentation; \
             pass `old` and `new` with the full indentation of each line"
        ));
    }
    if old.contains('\n') {
        return Ok(());
    }
    let own = &old.as_bytes()[..old.len() - old.trim_start_matches([' ', '\t']).len()];
    let whole = [before, own].concat();
    if edit.new.lines().skip(1).any(|line| !line.trim().is_empty() && !line.as_bytes().starts_with(&whole)) {
        return Err(format!(
            "`old` begins after the indentation of line {line}, and `new` has lines that are indented less; pass both \
             with the full indentation of each line"
        ));
    }
    Ok(())
}

/// Refuses an inexact match if another place may be meant: a place with half of the old lines exactly as given, one of
/// them closer than the match; or a place where the edit was already made. Also refuses an old text with hardly any
/// letters if more than line ends differ.
fn no_rival(text: &[u8], edit: &Replacement, found: &FoundText) -> Result<(), String> {
    let Some(ignored) = found.pass.ignored() else { return Ok(()) };
    let place = line_of(text, found.range.start);
    let refused = |why: &str| {
        Err(format!(
            "`old` was found at line {place} except for {ignored}, {why}; include more lines, exactly as in the file"
        ))
    };
    let old: Vec<&[u8]> = edit.old.as_bytes().split_inclusive(|byte| *byte == b'\n').map(without_newline).collect();
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').map(without_newline).collect();
    let has_content = |line: &[u8]| line.iter().any(u8::is_ascii_alphanumeric);
    let content = old.iter().filter(|line| has_content(line)).count();
    let own = lines.get(place - 1..).unwrap_or_default();
    let letters = edit.old.bytes().filter(u8::is_ascii_alphanumeric).count();
    if letters < TELLING && old.iter().zip(own).any(|(old, own)| old != own) {
        return refused("and contains hardly any letters");
    }
    let rival = (0..lines.len()).filter(|start| start + 1 != place).find(|start| {
        let pairs = || old.iter().zip(&lines[*start..]);
        let same = pairs().filter(|(old, line)| has_content(old) && old == line).count();
        let better = pairs().zip(own).any(|((old, line), own)| old == line && old != own);
        same > 0 && 2 * same >= content && better
    });
    if let Some(rival) = rival {
        return refused(&format!("and part of it matches line {} exactly", rival + 1));
    }
    let new = Folded::of(edit.new.as_bytes(), Fold::LineEnds);
    let file = Folded::of(text, Fold::LineEnds);
    let elsewhere = |at: usize| {
        let there = file.original(at, at + new.text.len())?;
        (there.end <= found.range.start || there.start >= found.range.end).then(|| line_of(text, there.start))
    };
    match matches(&file.text, &new.text).filter(|_| has_content(&new.text)).find_map(elsewhere) {
        Some(line) => refused(&format!("and the new text is already there at line {line}")),
        None => Ok(()),
    }
}

/// A line without its end, but with trailing blanks.
pub(super) fn without_newline(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Pass 2.
fn line_ends(text: &[u8], edit: &Replacement) -> Vec<FoundText> {
    folded(text, edit, Fold::LineEnds, Pass::LineEnds)
}

/// Pass 4.
fn typography(text: &[u8], edit: &Replacement) -> Vec<FoundText> {
    folded(text, edit, Fold::Typography, Pass::Typography)
}

fn folded(text: &[u8], edit: &Replacement, fold: Fold, pass: Pass) -> Vec<FoundText> {
    let old = Folded::of(edit.old.as_bytes(), fold);
    if old.text.iter().all(u8::is_ascii_whitespace) {
        return Vec::new();
    }
    let file = Folded::of(text, fold);
    // Blanks were removed from the end of the old text: they mean that its line ends there.
    let last = edit.old.rsplit('\n').next().unwrap_or_default();
    let ends_line = last.ends_with([' ', '\t', '\r']) && !last.trim().is_empty();
    matches(&file.text, &old.text)
        .filter(|start| {
            let behind = file.text.get(start + old.text.len());
            !ends_line || behind.is_none_or(|byte| *byte == b'\n')
        })
        .filter_map(|start| {
            let range = file.original(start, start + old.text.len())?;
            (!starts_in_indentation(text, edit, &range)).then_some(FoundText { range, pass, shift: None })
        })
        .collect()
}

/// Pass 3.
fn indentation(text: &[u8], edit: &Replacement) -> Vec<FoundText> {
    let old: Vec<&[u8]> = edit.old.as_bytes().split_inclusive(|byte| *byte == b'\n').map(without_end).collect();
    if old.iter().all(|line| line.is_empty()) {
        return Vec::new();
    }
    let pieces: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let lines: Vec<&[u8]> = pieces.iter().map(|piece| without_end(piece)).collect();
    let ends_line = edit.old.ends_with('\n');
    let mut found = Vec::new();
    let mut start = 0;
    for (at, window) in lines.windows(old.len()).enumerate() {
        if let Some(shift) = shift(window, &old) {
            let last = at + old.len() - 1;
            let before: usize = pieces[at..last].iter().map(|piece| piece.len()).sum();
            let end = if ends_line { pieces[last].len() } else { lines[last].len() };
            // An old text with a final newline does not match a last line without one.
            if !ends_line || pieces[last].ends_with(b"\n") {
                let range = start..start + before + end;
                found.push(FoundText { range, pass: Pass::Indentation, shift: Some(shift) });
            }
        }
        start += pieces[at].len();
    }
    found
}

/// The difference in indentation of all lines; `None` if it is not the same on all lines, or there is none.
fn shift(lines: &[&[u8]], old: &[&[u8]]) -> Option<Shift> {
    let mut shift: Option<Shift> = None;
    for (line, old) in lines.iter().zip(old) {
        let (indent, content) = indented(line);
        let (old_indent, old_content) = indented(old);
        if content != old_content {
            return None;
        }
        if content.is_empty() {
            continue;
        }
        let this = match indent.strip_suffix(old_indent) {
            Some([]) => return None,
            Some(more) => Shift::Add(more.to_vec()),
            None => Shift::Remove(old_indent.strip_suffix(indent)?.to_vec()),
        };
        match &shift {
            None => shift = Some(this),
            Some(that) if *that == this => {}
            Some(_) => return None,
        }
    }
    shift
}

/// The leading blanks of a line, and the rest.
pub(super) fn indented(line: &[u8]) -> (&[u8], &[u8]) {
    line.split_at(line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count())
}

/// Whether the new text is already where the old text was found, because the edit was made before.
fn is_there(text: &[u8], edit: &Replacement, range: &Range<usize>) -> bool {
    if edit.new.is_empty() {
        return false;
    }
    let covers = |start: usize, end: usize| start <= range.start && end >= range.end;
    if memmem_near(text, edit.new.as_bytes(), range).any(|start| covers(start, start + edit.new.len())) {
        return true;
    }
    // Compare again, ignoring line ends and blanks. Only nearby matches can cover the range.
    let new = Folded::of(edit.new.as_bytes(), Fold::LineEnds);
    let old = Folded::of(edit.old.as_bytes(), Fold::LineEnds);
    if new.text.is_empty() || new.text == old.text {
        return false;
    }
    let from = text[..range.start.saturating_sub(edit.new.len())].iter().rposition(|byte| *byte == b'\n');
    let from = from.map_or(0, |end| end + 1);
    let behind = (range.end + 2 * edit.new.len() + 4096).min(text.len());
    let near = Folded::of(&text[from..behind], Fold::LineEnds);
    let (first, last) = near.within(range.start - from, range.end - from);
    matches(&near.text, &new.text).any(|start| start <= first && start + new.text.len() >= last)
}

/// Matches of a pattern close enough to cover a range.
fn memmem_near<'a>(text: &'a [u8], pattern: &'a [u8], range: &Range<usize>) -> impl Iterator<Item = usize> + 'a {
    let from = range.end.saturating_sub(pattern.len());
    let to = (range.start + pattern.len()).min(text.len());
    matches(text.get(from..to).unwrap_or_default(), pattern).map(move |at| from + at)
}
