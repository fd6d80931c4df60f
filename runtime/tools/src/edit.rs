//! Replaces text in a file, never at the wrong place.
//!
//! Four passes run strictly in this order; the first that finds the old text decides ([`find`]):
//!
//! 1. exact match;
//! 2. ignoring line ends and blanks at the ends of lines;
//! 3. whole lines whose indentation differs by the same blanks on every line;
//! 4. like 2, with typographic quotes, dashes and spaces equal to the plain ones.
//!
//! Each pass needs exactly one match in the whole file; several matches, or none, are a refusal. Nothing else is
//! tolerated: no collapsed blanks inside a line, no anchors, no similarity. The replaced text is always a range of the
//! file's own bytes, and lines that the edit does not change keep their line ends, blanks and quotes ([`splice`]). A
//! refusal shows the most similar region ([`nearest`]).
//!
//! This module does no I/O.

mod find;
mod fold;
mod nearest;
mod splice;

use std::ops::Range;

pub(crate) use find::Pass;

use crate::arguments::Replacement;

/// The byte order mark at the start of files of Windows programs.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A file after an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edited {
    /// Its new content.
    pub(crate) content: Vec<u8>,
    /// The replaced lines, numbered as in the new content, and how they were found.
    pub(crate) places: Vec<Place>,
}

/// A replaced place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The first line, counted from 1.
    pub(crate) first: usize,
    /// The last line.
    pub(crate) last: usize,
    /// How it was found.
    pub(crate) pass: Pass,
}

/// Returns the text with all replacements made, or an error and none: what `edit` does to a file that was read.
///
/// # Errors
/// The reason, as text for the model.
pub fn edited(file: &[u8], edits: &[Replacement]) -> Result<Vec<u8>, String> {
    apply(file, edits, Tolerance::All).map(|edited| edited.content)
}

/// How much an edit may tolerate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tolerance {
    /// Only exact matches: the model has not read the file.
    Exact,
    /// All four passes.
    All,
}

/// A range of the file and its replacement.
struct Splice {
    range: Range<usize>,
    new: Vec<u8>,
    pass: Pass,
    /// The index of the edit.
    edit: usize,
}

/// Makes all replacements, or none.
///
/// # Errors
/// The reason, as text for the model.
pub(crate) fn apply(file: &[u8], edits: &[Replacement], tolerance: Tolerance) -> Result<Edited, String> {
    let (mark, text) = match file.strip_prefix(BYTE_ORDER_MARK) {
        Some(text) => (BYTE_ORDER_MARK, text),
        None => (&b""[..], file),
    };
    let name = |at: usize| if edits.len() == 1 { String::new() } else { format!("edits[{at}]: ") };
    let mut splices = Vec::new();
    for (at, edit) in edits.iter().enumerate() {
        let found = if edit.all == Some(true) {
            find::all(text, edit)
        } else {
            find::one(text, edit, tolerance).map(|one| vec![one])
        };
        let found = found.map_err(|refusal| format!("{}{refusal}", name(at)))?;
        for one in found {
            let new = splice::replacement(text, edit, &one).map_err(|refusal| format!("{}{refusal}", name(at)))?;
            splices.push(Splice { range: one.range, new, pass: one.pass, edit: at });
        }
    }
    splices.sort_by_key(|one| (one.range.start, one.range.end));
    if let Some(pair) = splices.windows(2).find(|pair| pair[0].range.end > pair[1].range.start) {
        return Err(format!(
            "edits[{}] and edits[{}] overlap at line {}; combine them into one edit",
            pair[0].edit.min(pair[1].edit),
            pair[0].edit.max(pair[1].edit),
            line_of(text, pair[1].range.start)
        ));
    }
    let edited = spliced(mark, text, &splices);
    if edited.content == file {
        return Err(format!("{}the file already has the new text; nothing would change", name(0)));
    }
    Ok(edited)
}

fn spliced(mark: &[u8], text: &[u8], splices: &[Splice]) -> Edited {
    let mut content = mark.to_vec();
    let mut places = Vec::with_capacity(splices.len());
    let (mut at, mut line) = (0, 1);
    for one in splices {
        let between = &text[at..one.range.start];
        content.extend_from_slice(between);
        line += lines_in(between);
        content.extend_from_slice(&one.new);
        let lines = lines_in(&one.new);
        let ends = usize::from(one.new.ends_with(b"\n"));
        places.push(Place { first: line, last: line + lines - ends.min(lines), pass: one.pass });
        line += lines;
        at = one.range.end;
    }
    content.extend_from_slice(&text[at..]);
    Edited { content, places }
}

fn lines_in(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

/// The line of a position, counted from 1.
fn line_of(text: &[u8], at: usize) -> usize {
    lines_in(&text[..at]) + 1
}

#[cfg(test)]
mod tests;
