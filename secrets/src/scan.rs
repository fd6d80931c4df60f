//! Scans a text in one pass: finds trigger words, runs the detectors they start, and returns the secrets as disjoint
//! ranges.

use std::ops::Range;

use crate::{
    address, assigned, block, call, command, encoded,
    found::{FoundSecret, Span},
    header, inserted, printed,
    rules::{self, KeyRule, RulesError},
    table, text,
    triggers::{Detector, Triggers},
    unescaped::Unescaped,
};

/// Maximum number of scans of a text, each after the found secrets were removed. Two are usual: if the second finds
/// nothing, redacting twice has the same result as once.
const MOST_ROUNDS: usize = 6;
/// Maximum nesting of encoded text that is decoded: an address in a file of credentials in a manifest.
const DEEPEST: usize = 3;

/// The rules and their trigger words.
#[derive(Debug)]
pub(crate) struct Scanner {
    rules: Vec<KeyRule>,
    triggers: Triggers,
}

impl Scanner {
    pub(crate) fn new() -> Result<Self, RulesError> {
        let rules = rules::built_in()?;
        let triggers = Triggers::new(&rules)?;
        Ok(Self { rules, triggers })
    }

    /// The secrets in the bytes, in order.
    ///
    /// Removing a secret may reveal another one, because the mark separates words that were joined before. So the
    /// remaining text is scanned again until nothing more is found.
    pub(crate) fn find(&self, bytes: &[u8]) -> Vec<FoundSecret> {
        let mut found = self.scan(bytes, 0);
        for _ in 0..MOST_ROUNDS {
            if found.is_empty() {
                break;
            }
            let more = self.scan(&text::replaced(bytes, &found), 0);
            if more.is_empty() {
                break;
            }
            found = joined(&found, &more);
        }
        found
    }

    /// A single scan of the bytes. Secrets inside redaction marks are ignored.
    fn scan(&self, bytes: &[u8], depth: usize) -> Vec<FoundSecret> {
        let mut spans = Vec::new();
        let mut escapes = Vec::new();
        let mut calls: Vec<(usize, usize)> = Vec::new();
        let mut last_name = usize::MAX;
        // How far each detector has read, so that a text that starts one at every position is still read only once.
        let mut seen = ScanProgress::default();
        self.triggers.each(bytes, |look, start, end| match look {
            Detector::Rules(from, to) => calls.extend(self.triggers.rules[from..to].iter().map(|&rule| (rule, start))),
            Detector::Name if start < seen.value => {}
            Detector::Name => {
                let (from, to) = assigned::name_around(bytes, start);
                if last_name != to {
                    last_name = to;
                    let found = assigned::find(bytes, from, to, &mut seen.bare);
                    seen.value = found.as_ref().map_or(seen.value, |span| span.end);
                    spans.extend(found);
                    if from >= seen.table {
                        seen.table = table::find(bytes, from, to, &mut spans);
                    }
                }
            }
            Detector::Address => spans.extend(address::find(bytes, start)),
            Detector::Block | Detector::Body if start < seen.block => {}
            Detector::Block | Detector::Body => {
                let found = if look == Detector::Block {
                    block::find(bytes, start, end)
                } else {
                    block::headless(bytes, start)
                };
                seen.block = found.as_ref().map_or(seen.block, |span| span.end);
                spans.extend(found);
            }
            Detector::WebToken => spans.extend(header::web_token(bytes, start)),
            Detector::Scheme => spans.extend(header::scheme(bytes, start, end - 1)),
            Detector::Authorization => header::authorization(bytes, start, end, &mut spans),
            Detector::Cookie if start < seen.cookie => {}
            Detector::Cookie if bytes[start..end].contains(&b'-') => {
                let from = text::until(bytes, end, 8, |b| !matches!(b, b' ' | b'"' | b'\'' | b'=' | b'\\'));
                seen.cookie = header::pairs(bytes, from, &mut spans);
            }
            Detector::Cookie => seen.cookie = header::cookies(bytes, end, &mut spans),
            Detector::Command if start < seen.command => {}
            Detector::Command => seen.command = command::find(bytes, start, &mut spans),
            Detector::Pgpass => spans.extend(command::pgpass(bytes, start)),
            Detector::Piped => spans.extend(command::piped(bytes, start)),
            Detector::Quoted => spans.extend(command::quoted(bytes, end)),
            Detector::Pair => spans.extend(command::pair(bytes, end)),
            Detector::Call => spans.extend(call::find(bytes, start, end)),
            Detector::Printed => spans.extend(printed::find(bytes, start, end, &mut seen.printed)),
            Detector::Rows if start < seen.rows => {}
            Detector::Rows => seen.rows = inserted::find(bytes, start, end, &mut spans),
            Detector::Manifest if start < seen.manifest => {}
            Detector::Manifest => seen.manifest = encoded::manifest(bytes, start, end, &mut spans),
            Detector::Escape => escapes.push(start),
        });
        calls.sort_unstable();
        for of_rule in calls.chunk_by(|a, b| a.0 == b.0) {
            let places: Vec<usize> = of_rule.iter().map(|&(_, place)| place).collect();
            self.rules[of_rule[0].0].find(bytes, &places, &mut spans);
        }
        if depth < DEEPEST {
            encoded::find(bytes, |text| !self.scan(text, depth + 1).is_empty(), &mut spans);
        }
        if depth == 0 && !escapes.is_empty() {
            // Trigger words are reported in the order of their ends.
            escapes.sort_unstable();
            let unescaped = Unescaped::around(bytes, &escapes);
            spans.extend(self.scan(&unescaped.text, DEEPEST - 1).into_iter().map(|one| {
                let range = unescaped.in_text(&one.range);
                Span { start: range.start, end: range.end, kind: one.kind }
            }));
        }
        if spans.is_empty() {
            return Vec::new();
        }
        let marks = text::marks(bytes);
        let ranges = spans.into_iter().flat_map(|span| outside(&marks, span));
        merged(
            ranges
                .map(|span| FoundSecret { range: text::whole_characters(bytes, span.start..span.end), kind: span.kind })
                .collect(),
        )
    }
}

/// For each detector that reads ahead, the offset it has read up to.
#[derive(Default)]
struct ScanProgress {
    value: usize,
    block: usize,
    cookie: usize,
    command: usize,
    rows: usize,
    printed: usize,
    bare: usize,
    table: usize,
    manifest: usize,
}

/// The parts of a span outside the marks: none if a mark covers it, the whole span if it overlaps no mark.
fn outside(marks: &[Range<usize>], span: Span) -> Vec<Span> {
    let first = marks.partition_point(|mark| mark.end <= span.start);
    let mut out = Vec::new();
    let mut at = span.start;
    for mark in marks[first..].iter().take_while(|mark| mark.start < span.end) {
        // Short remains between marks are not secrets.
        if mark.start > at + 3 {
            out.push(Span { start: at, end: mark.start, kind: span.kind.clone() });
        }
        at = mark.end;
    }
    if span.end > at + 3 || at == span.start && span.end > at {
        out.push(Span { start: at, end: span.end, kind: span.kind });
    }
    out
}

/// The ranges in order, with overlapping ranges merged. The kind of the longer range is kept.
fn merged(mut found: Vec<FoundSecret>) -> Vec<FoundSecret> {
    found.retain(|one| one.range.start < one.range.end);
    found.sort_by(|a, b| a.range.start.cmp(&b.range.start).then(b.range.end.cmp(&a.range.end)));
    let mut out: Vec<FoundSecret> = Vec::with_capacity(found.len());
    let mut longest = 0;
    for one in found {
        match out.last_mut() {
            Some(last) if one.range.start < last.range.end => {
                // For equal lengths the vendor's rule, which was searched last, is more specific.
                if one.range.len() >= longest {
                    longest = one.range.len();
                    last.kind = one.kind;
                }
                last.range.end = last.range.end.max(one.range.end);
            }
            _ => {
                longest = one.range.len();
                out.push(one);
            }
        }
    }
    out
}

/// The secrets found first, and then in the text without them, as ranges of the original text.
fn joined(found: &[FoundSecret], more: &[FoundSecret]) -> Vec<FoundSecret> {
    let mut all = found.to_vec();
    let mut marks = Vec::with_capacity(found.len());
    let mut grown: isize = 0;
    for one in found {
        let start = one.range.start.saturating_add_signed(grown);
        let len = text::mark_len(&one.kind);
        grown += len as isize - one.range.len() as isize;
        marks.push((start..start + len, grown));
    }
    for one in more {
        let start = before(found, &marks, one.range.start, false);
        let end = before(found, &marks, one.range.end, true);
        all.push(FoundSecret { kind: one.kind.clone(), range: start..end });
    }
    merged(all)
}

/// The position in the original text for a position in the text with marks. Inside a mark it is one end of the secret.
/// Each mark is paired with the growth of the text after it.
fn before(found: &[FoundSecret], marks: &[(Range<usize>, isize)], place: usize, to_end: bool) -> usize {
    let index = marks.partition_point(|(mark, _)| mark.start < place);
    let Some(last) = index.checked_sub(1) else { return place };
    let (mark, grown) = &marks[last];
    if place < mark.end {
        return if to_end { found[last].range.end } else { found[last].range.start };
    }
    place.saturating_add_signed(-grown)
}
