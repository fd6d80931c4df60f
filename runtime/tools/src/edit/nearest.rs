//! The details in a refusal: whether the new text is already there, and the region most similar to the old text.

use std::fmt::Write as _;

use super::{
    fold::{Fold, Folded, without_end},
    line_of,
};
use crate::{arguments::Replacement, limits, text::cut_line};

/// Maximum number of lines of a region shown.
const SHOWN: usize = 30;
/// Number of lines shown around a region.
const AROUND: usize = 2;
/// Maximum number of lines of a file compared one by one with a line of the old text.
const COMPARED: usize = 20_000;
/// Maximum number of characters of a line compared.
const COMPARED_CHARS: usize = 200;
/// Minimum similarity of two lines for the region to be shown, in percent.
const ALIKE: usize = 40;

/// Explains to the model why nothing was found.
pub(super) fn describe(text: &[u8], edit: &Replacement) -> String {
    let mut said = String::new();
    if let Some(line) = there(text, &edit.new) {
        write!(said, "The new text is already there, at line {line}. ").ok();
    }
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').map(without_end).collect();
    let old: Vec<&[u8]> = edit.old.as_bytes().split_inclusive(|byte| *byte == b'\n').map(without_end).collect();
    match region(&lines, &old) {
        Some(start) => {
            said.push_str("The nearest region (`>` marks lines that differ):\n");
            show(&mut said, &lines, &old, start);
        }
        None => said.push_str("No line of the file is similar; read the file again."),
    }
    said
}

/// The line at which the new text already is, ignoring line ends. A text without letters or digits could be anywhere
/// and is not searched.
fn there(text: &[u8], new: &str) -> Option<usize> {
    if new.trim().len() < 4 || !new.contains(char::is_alphanumeric) {
        return None;
    }
    let (file, new) = (Folded::of(text, Fold::LineEnds), Folded::of(new.as_bytes(), Fold::LineEnds));
    let at = memchr::memmem::find(&file.text, &new.text)?;
    Some(line_of(text, file.original(at, at + 1)?.start))
}

fn trimmed(line: &[u8]) -> &[u8] {
    line.trim_ascii()
}

/// The start of the region with the most lines of the old text in the same positions, otherwise the line most similar
/// to the longest old line.
fn region(lines: &[&[u8]], old: &[&[u8]]) -> Option<usize> {
    let has_content = |line: &&[u8]| line.iter().any(u8::is_ascii_alphanumeric);
    let most = (0..lines.len())
        .map(|start| {
            let pairs = old.iter().zip(&lines[start..]);
            pairs.filter(|(old, line)| has_content(old) && trimmed(old) == trimmed(line)).count()
        })
        .enumerate()
        .max_by_key(|(start, same)| (*same, std::cmp::Reverse(*start)));
    if let Some((start, same)) = most
        && same > 0
    {
        return Some(start);
    }
    let (at, longest) =
        old.iter().enumerate().max_by_key(|(at, line)| (trimmed(line).len(), std::cmp::Reverse(*at)))?;
    let wanted = Pairs::of(longest);
    let alike = lines.iter().take(COMPARED).map(|line| wanted.alike(&Pairs::of(line))).enumerate();
    let (best, score) = alike.max_by_key(|(line, score)| (*score, std::cmp::Reverse(*line)))?;
    (score >= ALIKE).then(|| best.saturating_sub(at))
}

/// The pairs of adjacent characters in a line, sorted.
struct Pairs(Vec<[u8; 2]>);

impl Pairs {
    fn of(line: &[u8]) -> Self {
        let line = trimmed(line);
        let line = &line[..line.len().min(COMPARED_CHARS)];
        let mut pairs: Vec<[u8; 2]> = line.windows(2).map(|pair| [pair[0], pair[1]]).collect();
        pairs.sort_unstable();
        Self(pairs)
    }

    /// The similarity of two lines in percent: twice the shared pairs divided by all pairs (Dice).
    fn alike(&self, other: &Self) -> usize {
        let (mut here, mut there, mut shared) = (0, 0, 0_usize);
        while let (Some(a), Some(b)) = (self.0.get(here), other.0.get(there)) {
            match a.cmp(b) {
                std::cmp::Ordering::Less => here += 1,
                std::cmp::Ordering::Greater => there += 1,
                std::cmp::Ordering::Equal => {
                    shared += 1;
                    here += 1;
                    there += 1;
                }
            }
        }
        (200 * shared).checked_div(self.0.len() + other.0.len()).unwrap_or(0)
    }
}

fn show(said: &mut String, lines: &[&[u8]], old: &[&[u8]], start: usize) {
    let length = old.len().min(SHOWN);
    let (first, last) = (start.saturating_sub(AROUND), (start + length + AROUND).min(lines.len()));
    for (at, line) in lines.iter().enumerate().take(last).skip(first) {
        let differs = at.checked_sub(start).and_then(|at| old.get(at)).is_some_and(|old| old != line);
        let line = String::from_utf8_lossy(line);
        let mark = if differs { '>' } else { ' ' };
        writeln!(said, "{mark}{:>6}\t{}", at + 1, cut_line(&line, limits::LINE_CHARS / 4)).ok();
    }
}
