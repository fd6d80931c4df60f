//! Builds the replacement of an old text, in the style of the file.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::{
    find::{FoundText, Pass, Shift, indented, without_newline},
    fold::{Fold, Folded, plain, without_end},
};
use crate::arguments::Replacement;

/// The bytes that replace the match.
pub(super) fn replacement(text: &[u8], edit: &Replacement, found: &FoundText) -> Result<Vec<u8>, String> {
    let end = line_end(text, found);
    if found.pass == Pass::Exact {
        // An old text that contains CR determines the line ends of the new text.
        let verbatim = edit.old.contains('\r');
        return Ok(if verbatim { edit.new.clone().into_bytes() } else { with_ends(&edit.new, end) });
    }
    let region = &text[found.range.clone()];
    let copy = Copy::of(edit, region, found.pass);
    let mut out = Vec::new();
    let (old, new) = (&copy.old.contents, &copy.new.contents);
    for change in capture_diff_slices(Algorithm::Myers, old, new) {
        match change {
            DiffOp::Equal { old_index, len, .. } => {
                (old_index..old_index + len).for_each(|at| out.extend_from_slice(copy.own_line(at)));
            }
            DiffOp::Delete { .. } => {}
            DiffOp::Insert { new_index, new_len, .. } => {
                for at in new_index..new_index + new_len {
                    out.extend(copy.new_line(at, edit, found, end)?);
                }
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                let old = &copy.old.folded[old_index..old_index + old_len];
                let new = &copy.new.folded[new_index..new_index + new_len];
                let mut kept = vec![None; new_len];
                for same in capture_diff_slices(Algorithm::Myers, old, new) {
                    if let DiffOp::Equal { old_index: old, new_index: new, len } = same {
                        (0..len).for_each(|at| kept[new + at] = Some(old_index + old + at));
                    }
                }
                for (at, own) in kept.into_iter().enumerate() {
                    match own {
                        // They differ in a part that is not compared. If the copy was inexact there, the difference
                        // means nothing. An empty line could be any empty line, so it is written as given.
                        Some(own) if !copy.is_exact(own) && !copy.is_empty(own) => {
                            out.extend_from_slice(copy.own_line(own))
                        }
                        Some(_) | None => out.extend(copy.new_line(new_index + at, edit, found, end)?),
                    }
                }
            }
        }
    }
    Ok(out)
}

/// The old text, its match in the file, and the new text, line by line.
struct Copy<'a> {
    own: Vec<&'a [u8]>,
    region: &'a [u8],
    old: Lines<'a>,
    new: Lines<'a>,
}

/// A text by lines: complete, without line ends, and as compared with the file. Whether a line has an end matters.
struct Lines<'a> {
    pieces: Vec<&'a [u8]>,
    contents: Vec<(&'a [u8], bool)>,
    folded: Vec<Vec<u8>>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a [u8], pass: Pass) -> Self {
        let fold = if pass == Pass::Typography { Fold::Typography } else { Fold::LineEnds };
        let pieces: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let contents = pieces.iter().map(|piece| (without_newline(piece), piece.ends_with(b"\n"))).collect();
        let folded = pieces.iter().map(|piece| Folded::of(piece, fold).text).collect();
        Self { pieces, contents, folded }
    }
}

impl<'a> Copy<'a> {
    fn of(edit: &'a Replacement, region: &'a [u8], pass: Pass) -> Self {
        Self {
            own: region.split_inclusive(|byte| *byte == b'\n').collect(),
            region,
            old: Lines::of(edit.old.as_bytes(), pass),
            new: Lines::of(edit.new.as_bytes(), pass),
        }
    }

    /// The line of the file that corresponds to a line of the old text. Both have the same number of lines, since they
    /// were compared; only a last line of blanks may be missing.
    fn own_line(&self, at: usize) -> &'a [u8] {
        self.own.get(at).copied().unwrap_or_default()
    }

    /// Whether a line of the old text equals the file's line, ignoring its end.
    fn is_exact(&self, at: usize) -> bool {
        without_newline(self.old.pieces[at]) == without_newline(self.own_line(at))
    }

    /// Whether a line of the old text contains only blanks.
    fn is_empty(&self, at: usize) -> bool {
        without_end(self.old.pieces[at]).is_empty()
    }

    /// A line of the new text in the style of the file. A line that is also in the old text is written as in the file.
    fn new_line(&self, at: usize, edit: &Replacement, found: &FoundText, end: &[u8]) -> Result<Vec<u8>, String> {
        let (text, ended) = self.new.contents[at];
        let copied = self.old.contents.iter().position(|(old, _)| *old == text).filter(|at| *at < self.own.len());
        let mut line = match copied {
            Some(copied) => without_newline(self.own_line(copied)).to_vec(),
            None => as_the_file(text, edit, self.region, found)?,
        };
        if ended {
            line.extend_from_slice(end);
        }
        Ok(line)
    }
}

/// The content of a new line without its end, in the style of the file.
fn as_the_file(content: &[u8], edit: &Replacement, region: &[u8], found: &FoundText) -> Result<Vec<u8>, String> {
    match (&found.shift, found.pass) {
        (Some(shift), _) => shifted(content, shift),
        (None, Pass::Typography) => spelled(content, &Spelling::of(edit, region)),
        (None, Pass::Exact | Pass::LineEnds | Pass::Indentation) => Ok(content.to_vec()),
    }
}

/// A line with the indentation of the file.
fn shifted(line: &[u8], shift: &Shift) -> Result<Vec<u8>, String> {
    if without_end(line).is_empty() {
        // Blanks of an empty line are shifted as far as there are any.
        return Ok(match shift {
            Shift::Add(blanks) if !line.is_empty() => [blanks, line].concat(),
            Shift::Add(_) => Vec::new(),
            Shift::Remove(blanks) => line.strip_prefix(blanks.as_slice()).unwrap_or_default().to_vec(),
        });
    }
    match shift {
        Shift::Add(blanks) => Ok([blanks, line].concat()),
        Shift::Remove(blanks) => match line.strip_prefix(blanks.as_slice()) {
            Some(rest) => Ok(rest.to_vec()),
            None => Err(format!(
                "`old` was found with less indentation than given, and the line `{}` of `new` has too little to be \
                 shifted by the same amount; pass both with the file's indentation",
                String::from_utf8_lossy(indented(line).1).chars().take(80).collect::<String>()
            )),
        },
    }
}

/// The differences between the file and the old text in quotation marks, dashes and blanks.
struct Spelling {
    /// The old text has typographic characters where the file has plain ones.
    makes_plain: bool,
    /// Plain characters of the old text for which the file has typographic ones.
    ambiguous: Vec<u8>,
}

impl Spelling {
    fn of(edit: &Replacement, region: &[u8]) -> Self {
        let region = String::from_utf8_lossy(region);
        // Both fold to the same text, so characters with two spellings are in the same order.
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

/// Whether a plain character has typographic forms.
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
            "the file has typographic characters where `old` has `{}`, and `new` changes lines with it; pass \
             both with the file's characters",
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

/// The line end to use for a match: that of its first line, otherwise that of the line before.
fn line_end(text: &[u8], found: &FoundText) -> &'static [u8] {
    let ending = |newline: usize| if text[..newline].ends_with(b"\r") { &b"\r\n"[..] } else { b"\n" };
    let here = memchr::memchr(b'\n', &text[found.range.start..]).map(|at| found.range.start + at);
    let before = || memchr::memrchr(b'\n', &text[..found.range.start]);
    here.or_else(before).map_or(b"\n", ending)
}
