//! Markdown on a terminal: agents' plans and messages with their headings, code and quotes in colour.
//!
//! Only colours are added. A user who decides about a text must see every character, so links keep their targets,
//! comments stay, and nothing is wrapped or omitted.

use anstyle::Style;

use crate::style;

/// The colour of headings.
const HEADING: Style = style::CYAN.bold();

/// The text with colours, line by line, if the terminal shows them. The text must already be escaped.
pub fn painted(text: &str) -> String {
    if style::colours() { coloured(text) } else { text.to_owned() }
}

fn coloured(text: &str) -> String {
    let mut is_code = false;
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        let (words, end) = line.strip_suffix('\n').map_or((line, ""), |words| (words, "\n"));
        let start = words.trim_start();
        let is_fence = start.starts_with("```") || start.starts_with("~~~");
        let whole = if is_fence || is_code {
            Some(style::GREEN)
        } else if is_heading(start) {
            Some(HEADING)
        } else if start.starts_with('>') {
            Some(style::DIM)
        } else {
            None
        };
        match whole {
            Some(style) if !words.is_empty() => out += &style::coloured(words, style),
            Some(_) => {}
            None => spans(words, &mut out),
        }
        out += end;
        is_code ^= is_fence;
    }
    out
}

/// `# ` to `###### `.
fn is_heading(line: &str) -> bool {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    (1..=6).contains(&level) && line[level..].starts_with(' ')
}

/// A line with coloured code and strong words.
fn spans(line: &str, out: &mut String) {
    let mut rest = line;
    while let Some((at, mark)) = first_mark(rest) {
        let behind = &rest[at + mark.len()..];
        let Some(length) = behind.find(mark).filter(|length| *length > 0) else { break };
        let end = at + mark.len() + length + mark.len();
        let style = if mark == "`" { style::GREEN } else { Style::new().bold() };
        *out += &rest[..at];
        *out += &style::coloured(&rest[at..end], style);
        rest = &rest[end..];
    }
    *out += rest;
}

fn first_mark(text: &str) -> Option<(usize, &'static str)> {
    ["`", "**"].into_iter().filter_map(|mark| Some((text.find(mark)?, mark))).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a text with its colours written as `<` and `>`.
    fn check(text: &str, expected: &str) {
        let shown = coloured(text);
        let mut plain = String::new();
        let mut rest = shown.as_str();
        while let Some(at) = rest.find("\x1b[") {
            plain += &rest[..at];
            let end = at + rest[at..].find('m').unwrap() + 1;
            let sequence = &rest[at..end];
            if sequence == "\x1b[0m" {
                plain.push('>');
            } else if !plain.ends_with('<') {
                plain.push('<');
            }
            rest = &rest[end..];
        }
        assert_eq!(plain + rest, expected);
    }

    #[test]
    fn headings_code_and_quotes_are_coloured_and_every_character_stays() {
        check("# Plan\n\n1. edit `a.rs`\n> **why**\n", "<# Plan>\n\n1. edit <`a.rs`>\n<> **why**>\n");
        check("```sh\nrm -rf x\n```\ndone", "<```sh>\n<rm -rf x>\n<```>\ndone");
        check(
            "**now** and `then`, [text](https://example.org) <!-- x -->",
            "<**now**> and <`then`>, [text](https://example.org) <!-- x -->",
        );
        for plain in ["#hash", "a ` b", "2 ** 3", "", "``", "####### seven"] {
            check(plain, plain);
        }
    }
}
