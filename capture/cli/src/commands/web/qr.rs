//! QR codes as text: two modules per character, dark on light whatever the terminal's colours.

use std::fmt::Write as _;

use fast_qr::{ECL, QRBuilder, QRCode};

/// Width of the light margin that readers need, modules.
const MARGIN: usize = 2;
/// Black on white.
const COLOURS: &str = "\x1b[38;5;16;48;5;231m";

/// A text as a QR code; `None` if it is too long.
pub(super) fn of(text: &str) -> Option<String> {
    let code = QRBuilder::new(text).ecl(ECL::M).build().ok()?;
    Some(drawn(&code))
}

fn drawn(code: &QRCode) -> String {
    let side = code.size + 2 * MARGIN;
    let is_dark = |row: usize, column: usize| {
        let inside = |at: usize| (MARGIN..MARGIN + code.size).contains(&at);
        inside(row) && inside(column) && code[row - MARGIN][column - MARGIN].value()
    };
    let mut out = String::new();
    for row in (0..side).step_by(2) {
        let line: String = (0..side)
            .map(|column| match (is_dark(row, column), is_dark(row + 1, column)) {
                (true, true) => '█',
                (true, false) => '▀',
                (false, true) => '▄',
                (false, false) => ' ',
            })
            .collect();
        let _ = writeln!(out, "{COLOURS}{line}\x1b[0m");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drawn_qr_code_has_every_module_and_a_margin() {
        let code = QRBuilder::new("https://box.tailnet.ts.net/pair#7K3M-9QXT").ecl(ECL::M).build().unwrap();
        let picture = drawn(&code);
        let lines: Vec<Vec<char>> = picture
            .lines()
            .map(|line| line.trim_start_matches(COLOURS).trim_end_matches("\x1b[0m").chars().collect())
            .collect();
        assert_eq!(lines.len(), (code.size + 2 * MARGIN).div_ceil(2));
        for row in 0..code.size {
            for column in 0..code.size {
                let shown = lines[(row + MARGIN) / 2][column + MARGIN];
                let is_dark = if (row + MARGIN).is_multiple_of(2) { "█▀" } else { "█▄" }.contains(shown);
                assert_eq!(is_dark, code[row][column].value(), "{row} {column}");
            }
        }
        assert!(lines[0].iter().all(|c| *c == ' '), "the margin is light");
        assert!(lines.iter().all(|line| line[..MARGIN].iter().all(|c| *c == ' ')));
    }

    #[test]
    fn text_too_long_for_a_qr_code_gives_none() {
        assert!(of(&"x".repeat(10_000)).is_none());
    }
}
