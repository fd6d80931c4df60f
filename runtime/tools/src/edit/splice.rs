//! What comes in the place of an old text: the new one, as the file writes.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::{
    find::{Found, Pass, Shift, indented},
    fold::{Fold, Folded, plain, without_end},
};
use crate::arguments::Replacement;

/// The bytes to put in the place of what was found.
pub(super) fn replacement(text: &[u8], edit: &Replacement, found: &Found) -> Result<Vec<u8>, String> {
    let end = line_end(text, found);
    if found.pass == Pass::Exact {
        // An old text that shows line ends of its own shows how the new one is meant.
        let verbatim = edit.old.contains('\r');
        return Ok(if verbatim { edit.new.clone().into_bytes() } else { with_ends(&edit.new, end) });
    }
    let region = &text[found.range.clone()];
    let (old, new) = (Lines::of(edit.old.as_bytes(), found.pass), Lines::of(edit.new.as_bytes(), found.pass));
    let own: Vec<&[u8]> = region.split_inclusive(|byte| *byte == b'\n').collect();
    // They have as many lines, as that is what was compared. A last line of nothing but blanks is one of them.
    let own_line = |at: usize| own.get(at).copied().unwrap_or_default();
    // Where the copy has blanks at the ends of lines that the file has not, those of new lines are no more meant.
    let adds_blanks = old.pieces.iter().zip(&own).any(|(old, own)| has_blanks(old) && !has_blanks(own));
    let mut out = Vec::new();
    for change in capture_diff_slices(Algorithm::Myers, &old.compared, &new.compared) {
        match change {
            DiffOp::Equal { old_index, len, .. } => {
                (old_index..old_index + len).for_each(|at| out.extend_from_slice(own_line(at)));
            }
            DiffOp::Delete { .. } => {}
            DiffOp::Insert { new_index, new_len, .. } | DiffOp::Replace { new_index, new_len, .. } => {
                for piece in &new.pieces[new_index..new_index + new_len] {
                    let line = as_the_file(piece, edit, region, found)?;
                    out.extend_from_slice(if adds_blanks { without_end(&line) } else { &line });
                    if piece.ends_with(b"\n") {
                        out.extend_from_slice(end);
                    }
                }
            }
        }
    }
    Ok(out)
}

/// Whether there are blanks between a line and its end.
fn has_blanks(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.ends_with(b" ") || line.ends_with(b"\t")
}

/// A text by lines, and as its lines are compared.
struct Lines<'a> {
    pieces: Vec<&'a [u8]>,
    compared: Vec<Vec<u8>>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a [u8], pass: Pass) -> Self {
        let fold = if pass == Pass::Typography { Fold::Typography } else { Fold::LineEnds };
        let pieces: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let compared = pieces.iter().map(|piece| Folded::of(piece, fold).text).collect();
        Self { pieces, compared }
    }
}

/// The content of a new line, without its end, as the file writes it.
fn as_the_file(piece: &[u8], edit: &Replacement, region: &[u8], found: &Found) -> Result<Vec<u8>, String> {
    let content = match piece.strip_suffix(b"\n") {
        Some(content) => content.strip_suffix(b"\r").unwrap_or(content),
        None => piece,
    };
    match (&found.shift, found.pass) {
        (Some(shift), _) => shifted(content, shift),
        (None, Pass::Typography) => spelled(content, &Spelling::of(edit, region)),
        (None, Pass::Exact | Pass::LineEnds | Pass::Indentation) => Ok(content.to_vec()),
    }
}

/// A line with the indentation of the file.
fn shifted(line: &[u8], shift: &Shift) -> Result<Vec<u8>, String> {
    if without_end(line).is_empty() {
        return Ok(Vec::new());
    }
    match shift {
        Shift::Add(blanks) => Ok([blanks, line].concat()),
        Shift::Remove(blanks) => match line.strip_prefix(blanks.as_slice()) {
            Some(rest) => Ok(rest.to_vec()),
            None => Err(format!(
                "`old` was found with less indentation than given, and the line `{}` of `new` has too little to be \
                 shifted alike; give both with the indentation of the file",
                String::from_utf8_lossy(indented(line).1).chars().take(80).collect::<String>()
            )),
        },
    }
}

/// How the file spells the characters of which there are plain and typographic ones, against how the old text does.
struct Spelling {
    /// The old text has typographic characters where the file has plain ones.
    makes_plain: bool,
    /// Plain characters of the old text for which the file has typographic ones.
    ambiguous: Vec<u8>,
}

impl Spelling {
    fn of(edit: &Replacement, region: &[u8]) -> Self {
        let region = String::from_utf8_lossy(region);
        // Both fold to the same text, so what can be spelled in two ways comes in the same order.
        let spelled = |text: &str| -> Vec<(char, u8)> {
            text.lines()
                .flat_map(|line| line.trim_end_matches(|c: char| c == ' ' || plain(c) == Some(b' ')).chars())
                .filter_map(|c| plain(c).map(|plain| (c, plain)).or_else(|| both_ways(c).map(|plain| (c, plain))))
                .collect()
        };
        let mut spelling = Self { makes_plain: false, ambiguous: Vec::new() };
        for ((file, kind), (old, _)) in spelled(&region).into_iter().zip(spelled(&edit.old)) {
            match (plain(file).is_some(), plain(old).is_some()) {
                (false, true) => spelling.makes_plain = true,
                (true, false) => spelling.ambiguous.push(kind),
                (true, true) | (false, false) => {}
            }
        }
        spelling
    }
}

/// Whether a plain character has typographic ones.
fn both_ways(c: char) -> Option<u8> {
    match c {
        '-' => Some(b'-'),
        '\'' => Some(b'\''),
        '"' => Some(b'"'),
        ' ' => Some(b' '),
        _ => None,
    }
}

fn spelled(line: &[u8], spelling: &Spelling) -> Result<Vec<u8>, String> {
    let text = String::from_utf8_lossy(line);
    if let Some(kind) =
        text.chars().filter_map(both_ways).find(|kind| *kind != b' ' && spelling.ambiguous.contains(kind))
    {
        return Err(format!(
            "the file has typographic characters where `old` has `{}`, and `new` changes lines with it; give both with the \
             characters of the file",
            char::from(kind)
        ));
    }
    if !spelling.makes_plain {
        return Ok(line.to_vec());
    }
    Ok(text.chars().map(|c| plain(c).map_or(c, char::from)).collect::<String>().into_bytes())
}

/// The new text with this line end.
fn with_ends(new: &str, end: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(new.len());
    for piece in new.as_bytes().split_inclusive(|byte| *byte == b'\n') {
        match piece.strip_suffix(b"\n") {
            Some(content) => {
                out.extend_from_slice(content.strip_suffix(b"\r").unwrap_or(content));
                out.extend_from_slice(end);
            }
            None => out.extend_from_slice(piece),
        }
    }
    out
}

/// The line end that is used where something was found: that of the first line of it, else of the line before.
fn line_end(text: &[u8], found: &Found) -> &'static [u8] {
    let ending = |newline: usize| if text[..newline].ends_with(b"\r") { &b"\r\n"[..] } else { b"\n" };
    let here = memchr::memchr(b'\n', &text[found.range.start..]).map(|at| found.range.start + at);
    let before = || memchr::memrchr(b'\n', &text[..found.range.start]);
    here.or_else(before).map_or(b"\n", ending)
}
