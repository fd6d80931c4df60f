//! `capture screen`: shows the current screen of a run's terminal.

use std::io::Write;

use api::routes::RunScreen;
use home::clock;
use printing::style;

use super::context::Context;
use printing::safe;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its name, its id, at least 3 characters from the start or end of its id, or the session that it hosts.
    target: String,
    /// Print only the rows of the screen.
    #[arg(long)]
    plain: bool,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let client = context.client()?;
    let picture = client.one::<RunScreen>(&arguments.target)?;
    if context.json {
        return context.print_json(&picture);
    }
    let mut out = printing::stdout();
    let filled = picture.lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    if arguments.plain {
        for line in &picture.lines[..filled] {
            writeln!(out, "{}", safe(&row(line)))?;
        }
        return Ok(());
    }
    let title = picture.title.as_deref().map(safe).unwrap_or_default();
    writeln!(out, "┌─ {title}")?;
    for line in &picture.lines[..filled] {
        writeln!(out, "│{}", safe(&row(line)))?;
    }
    let (rows, columns) = (picture.size.rows, picture.size.columns);
    writeln!(out, "└─ {columns}×{rows}, last output {} ago", style::age(picture.at, clock::now()))?;
    if picture.skipped_bytes > 0 {
        writeln!(
            out,
            "   {} bytes were not parsed: the screen may be wrong until it is redrawn",
            picture.skipped_bytes
        )?;
    }
    if let Some(claim) = &picture.claim {
        let reason = claim.reason.map_or("", |r| r.as_str());
        writeln!(out, "   {} {reason}: {}", claim.state, safe(&row(&claim.words)))?;
        for option in claim.dialog.iter().flat_map(|d| &d.options) {
            let key = option.key.as_deref().map_or_else(String::new, |key| format!(" [{}]", safe(key)));
            writeln!(out, "   {} {}{key}", if option.selected { ">" } else { " " }, safe(&row(&option.label)))?;
        }
    }
    Ok(())
}

/// A row as the terminal shows it. Agents also write non-breaking spaces.
fn row(line: &str) -> String {
    line.replace(['\u{a0}', '\u{2007}', '\u{202f}'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unicode_blanks_on_the_screen_become_spaces() {
        assert_eq!(safe(&row("❯\u{a0}fix\u{202f}it\u{2007}now")), "❯ fix it now");
        assert_eq!(safe(&row("x\u{202e}y")), r"x\u{202e}y");
    }
}
