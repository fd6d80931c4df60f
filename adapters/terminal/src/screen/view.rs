//! The input of screen rules: the screen as one text, and the regions cut from it.

use std::{cell::OnceCell, ops::Range};

use super::{
    form::{Cut, Pattern},
    rules::RuleSet,
    terminal::Terminal,
};

/// Rules examine at most this much of a screen, from its end, so that the cost is bounded for large screens.
const MOST_ROWS: usize = 200;
const MOST_COLUMNS: u16 = 400;
/// Number of rows above the blank end of the screen in which backgrounds are examined.
const SHADED_ROWS: usize = 6;

/// One frame of a screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ScreenFrame {
    /// The rows, without trailing blanks and without blank rows at the end.
    pub(crate) text: String,
    /// The title.
    pub(crate) title: String,
    /// The agent's own state (OSC 7501), as [`ProgramStatus::root`](super::program_status::ProgramStatus::root) writes it.
    pub(crate) state: String,
    /// The line of the cursor.
    pub(crate) cursor: String,
    /// The texts with a distinct background in the lowest rows, if any rule uses them.
    pub(crate) shaded: Vec<String>,
}

impl ScreenFrame {
    /// The current screen, prepared for these rules.
    pub(crate) fn of(terminal: &Terminal, set: &RuleSet) -> Self {
        let lines = terminal.lines(MOST_COLUMNS);
        let cursor = lines.get(usize::from(terminal.screen().cursor_position().0)).cloned().unwrap_or_default();
        let mut text = lines[lines.len().saturating_sub(MOST_ROWS)..].join("\n");
        text.truncate(text.trim_end().len());
        let signals = terminal.signals();
        let filled = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
        let rows = filled.saturating_sub(SHADED_ROWS)..filled;
        let shaded = if set.has_rows { terminal.shaded(rows, MOST_COLUMNS) } else { Vec::new() };
        let title = signals.title.clone().unwrap_or_default();
        Self { text, title, state: signals.status.root(), cursor, shaded }
    }
}

/// A frame with the regions of one set of rules, each cut on first use.
pub(crate) struct View<'a> {
    frame: &'a ScreenFrame,
    set: &'a RuleSet,
    cut: Vec<OnceCell<Option<Range<usize>>>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(frame: &'a ScreenFrame, set: &'a RuleSet) -> Self {
        Self { frame, set, cut: vec![OnceCell::new(); set.regions.len()] }
    }

    /// The text of a region; `None` if it is not on the screen.
    pub(crate) fn region(&self, name: &str) -> Option<&'a str> {
        match name {
            "title" => Some(&self.frame.title),
            "osc_state" => Some(&self.frame.state),
            "cursor" => Some(&self.frame.cursor),
            name => self.range(name, 0).map(|range| &self.frame.text[range]),
        }
    }

    /// Whether exactly one text with a distinct background equals `text`.
    pub(crate) fn is_shaded(&self, text: &str) -> bool {
        self.frame.shaded.iter().filter(|shaded| *shaded == text).count() == 1
    }

    /// The match of an expression in its region.
    pub(crate) fn find(&self, pattern: &Pattern) -> Option<&'a str> {
        let text = self.region(&pattern.place.name)?;
        pattern.regex.regex()?.find(text).map(|m| m.as_str())
    }

    /// The range of a region in the text. Regions may refer to other regions, but not in a cycle.
    fn range(&self, name: &str, depth: usize) -> Option<Range<usize>> {
        if name == "screen" {
            return Some(0..self.frame.text.len());
        }
        let index = self.set.regions.iter().position(|(known, _)| known == name)?;
        if let Some(range) = self.cut[index].get() {
            return range.clone();
        }
        let range = self.set.regions[index].1.as_ref().and_then(|cut| self.make(cut, depth));
        self.cut[index].get_or_init(|| range).clone()
    }

    fn make(&self, cut: &Cut, depth: usize) -> Option<Range<usize>> {
        let text = self.frame.text.as_str();
        match cut {
            Cut::Last(lines) => last_lines(text, *lines),
            Cut::Bottom(rows) => {
                let start = text.rmatch_indices('\n').nth(rows.checked_sub(1)?).map_or(0, |(at, _)| at + 1);
                Some(start..text.len())
            }
            Cut::From(from, to) => {
                let lines: Vec<Range<usize>> = text
                    .split('\n')
                    .scan(0, |at, line| {
                        let start = *at;
                        *at += line.len() + 1;
                        Some(start..start + line.len())
                    })
                    .collect();
                let from = from.regex()?;
                let first = lines.iter().rposition(|line| from.is_match(&text[line.clone()]))?;
                let end = to
                    .as_ref()
                    .and_then(|to| to.regex())
                    .and_then(|to| lines[first + 1..].iter().find(|line| to.is_match(&text[(*line).clone()])))
                    .map_or(text.len(), |line| line.start);
                Some(lines[first].start..end)
            }
            Cut::Find(expression) => expression.regex()?.find(text).map(|m| m.range()),
            Cut::Above(place, lines) => {
                let below = if depth < 4 { self.range(&place.name, depth + 1)? } else { return None };
                last_lines(&text[..below.start], *lines)
            }
        }
    }
}

/// From the `lines`-th last non-blank line to the end.
fn last_lines(text: &str, lines: usize) -> Option<Range<usize>> {
    let text = text.trim_end();
    let mut start = None;
    let mut left = lines;
    let mut end = text.len();
    while left > 0 {
        let begin = text[..end].rfind('\n').map_or(0, |at| at + 1);
        if !text[begin..end].trim().is_empty() {
            start = Some(begin);
            left -= 1;
        }
        if begin == 0 {
            break;
        }
        end = begin - 1;
    }
    start.map(|start| start..text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_counted_without_blank_lines() {
        let check = |text: &str, lines: usize| last_lines(text, lines).map(|range| text[range].to_owned());
        assert_eq!(check("a\n\nb\n\nc\n\n", 2).as_deref(), Some("b\n\nc"));
        assert_eq!(check("a", 3).as_deref(), Some("a"));
        assert_eq!(check("\n\n", 3), None);
        assert_eq!(check("", 3), None);
    }
}
