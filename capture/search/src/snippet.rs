//! Snippets: the part of a text that matches a query, on one line, with the matches marked.

use std::ops::Range;

use api::search::Snippet;

use crate::{
    query::Condition,
    tokens::{Piece, Scanner, floor},
};

/// Length of a snippet, bytes.
const SNIPPET_BYTES: usize = 240;
/// Length of the text shown before the first match, bytes.
const BEFORE_BYTES: usize = 60;
/// Distance behind the first match up to which further matches are searched, bytes.
const LOOK_BYTES: usize = 2 * SNIPPET_BYTES;

/// Finds the tokens that conditions match.
struct Matcher<'a> {
    conditions: Vec<Progress<'a>>,
}

/// The progress of a condition along a sequence of tokens.
struct Progress<'a> {
    condition: &'a Condition,
    /// For each started sequence: the number of parts seen, and its beginning.
    begun: Vec<(usize, usize)>,
}

impl<'a> Matcher<'a> {
    fn new(conditions: &[&'a Condition]) -> Self {
        let progress = |condition: &&'a Condition| Progress { condition, begun: Vec::new() };
        Self { conditions: conditions.iter().map(progress).collect() }
    }

    /// The range that a token completes, if any.
    fn feed(&mut self, piece: &Piece, folded: &str) -> Option<Range<usize>> {
        let ranges = self.conditions.iter_mut().filter_map(|progress| progress.feed(piece, folded));
        ranges.min_by_key(|range| range.start)
    }
}

impl Progress<'_> {
    fn feed(&mut self, piece: &Piece, folded: &str) -> Option<Range<usize>> {
        match self.condition {
            Condition::Words { parts, .. } => self.row(parts, false, piece, folded),
            Condition::Prefix(parts) => self.row(parts, true, piece, folded),
            Condition::Fuzzy { word, distance } => {
                is_within(word, folded, usize::from(*distance)).then(|| piece.range.clone())
            }
            Condition::Exact(_) | Condition::Begins(_) | Condition::During(_) => None,
        }
    }

    fn row(&mut self, parts: &[String], is_prefix: bool, piece: &Piece, folded: &str) -> Option<Range<usize>> {
        let fits = |index: usize, part: &String| {
            *part == folded || is_prefix && index + 1 == parts.len() && folded.starts_with(part.as_str())
        };
        if let [part] = parts {
            return fits(0, part).then(|| piece.range.clone());
        }
        if !piece.is_part {
            return None;
        }
        let mut found = None;
        self.begun.push((0, piece.range.start));
        self.begun.retain_mut(|(seen, start)| {
            if !parts.get(*seen).is_some_and(|part| fits(*seen, part)) {
                return false;
            }
            *seen += 1;
            let is_whole = *seen == parts.len();
            if is_whole {
                found.get_or_insert(*start..piece.range.end);
            }
            !is_whole
        });
        found
    }
}

/// Whether two words differ by at most this many letters that are added, omitted, replaced or swapped with the next.
fn is_within(a: &str, b: &str, most: usize) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > most {
        return false;
    }
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect::<Vec<usize>>(), vec![0; b.len() + 1]];
    for (i, x) in a.iter().enumerate() {
        let [before, last, now] = &mut rows;
        if let Some(first) = now.first_mut() {
            *first = i + 1;
        }
        let mut left = i + 1;
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX / 2);
            let mut cost = (at(last, j) + usize::from(x != y)).min(at(last, j + 1) + 1).min(left + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                cost = cost.min(at(before, j - 1) + 1);
            }
            if let Some(cell) = now.get_mut(j + 1) {
                *cell = cost;
            }
            left = cost;
        }
        rows.rotate_left(1);
    }
    rows.get(1).and_then(|last| last.last()).is_some_and(|distance| *distance <= most)
}

/// The beginning of the first match.
pub(crate) fn first_match(text: &str, conditions: &[&Condition]) -> Option<usize> {
    let mut matcher = Matcher::new(conditions);
    let mut scanner = Scanner::default();
    let mut folded = String::new();
    while let Some(piece) = scanner.next(text) {
        piece.fold(text, &mut folded);
        if let Some(range) = matcher.feed(&piece, &folded) {
            return Some(range.start);
        }
    }
    None
}

/// The matches from the first one on that a snippet can reach.
fn matches(text: &str, conditions: &[&Condition]) -> Vec<Range<usize>> {
    let mut matcher = Matcher::new(conditions);
    let mut scanner = Scanner::default();
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut folded = String::new();
    while let Some(piece) = scanner.next(text) {
        if found.first().is_some_and(|first| piece.range.start > first.start + LOOK_BYTES) {
            break;
        }
        piece.fold(text, &mut folded);
        found.extend(matcher.feed(&piece, &folded));
    }
    found.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(found.len());
    for range in found {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            Some(_) | None => merged.push(range),
        }
    }
    merged
}

/// The part of a text around its first matches, or its beginning if there are none.
pub(crate) fn snippet(text: &str, conditions: &[&Condition]) -> Snippet {
    let found = matches(text, conditions);
    let first = found.first().map_or(0, |range| range.start);
    let mut start = floor(text, first.saturating_sub(BEFORE_BYTES));
    let mut end = floor(text, start + SNIPPET_BYTES);
    if start > 0 {
        // Begin with a complete word.
        let lead = text.get(start..first).unwrap_or_default();
        start += lead.find(char::is_whitespace).map_or(0, |space| space + 1);
        start = (start..=first).find(|at| text.is_char_boundary(*at)).unwrap_or(first);
    }
    if end < text.len() {
        let shown = text.get(start..end).unwrap_or_default();
        let space = shown.rfind(char::is_whitespace).map(|space| start + space);
        end = space.filter(|space| *space > first && *space - start > SNIPPET_BYTES / 2).unwrap_or(end);
    }
    let mut out = SnippetLine::default();
    if start > 0 {
        out.text.push('…');
    }
    let mut at = start;
    for range in found.iter().filter(|range| range.start < end) {
        out.push(text.get(at..range.start).unwrap_or_default());
        let begins = out.text.len();
        let mark = range.start..range.end.min(end);
        out.push(text.get(mark.clone()).unwrap_or_default());
        // `push` may have written a space before the match.
        let begins = begins + usize::from(out.text.get(begins..).is_some_and(|t| t.starts_with(' ')));
        out.highlights.push([begins, out.text.len()]);
        at = mark.end;
    }
    out.push(text.get(at..end).unwrap_or_default());
    if end < text.len() {
        out.text.push('…');
    }
    Snippet { text: out.text, highlights: out.highlights }
}

/// A text on one line: runs of spaces and control characters become one space.
#[derive(Default)]
struct SnippetLine {
    text: String,
    highlights: Vec<[usize; 2]>,
    space_is_due: bool,
}

impl SnippetLine {
    fn push(&mut self, text: &str) {
        for c in text.chars() {
            if c.is_whitespace() || c.is_control() {
                self.space_is_due = !self.text.is_empty();
            } else {
                if std::mem::take(&mut self.space_is_due) {
                    self.text.push(' ');
                }
                self.text.push(c);
            }
        }
    }
}

#[cfg(test)]
mod tests;
