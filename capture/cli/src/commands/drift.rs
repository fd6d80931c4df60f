//! `capture drift`: how far the edits of a session are from what the person named.

use std::fmt::Write;

use api::routes::GetDrift;
use printing::{prose, safe, style};
use projections::{Ask, Distance, Drift, ScopedFile, Session};
use serde::Serialize;

use super::{
    check::named_or_here,
    context::{Context, print_line},
};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id [default: the last active session of this directory].
    session: Option<String>,
}

/// Maximum number of files named per distance.
const FILES: usize = 12;
/// Column at which a value begins.
const VALUE_COLUMN: usize = 12;

#[derive(Serialize)]
struct SessionDrift<'a> {
    session: &'a Session,
    #[serde(flatten)]
    drift: &'a Drift,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let client = context.client()?;
    let session = named_or_here(&client, arguments.session.as_deref())?;
    let drift = client.one::<GetDrift>(&session.id.to_string())?;
    if context.json {
        return context.print_json(&SessionDrift { session: &session, drift: &drift });
    }
    print_line(report(&session, &drift).trim_end())
}

/// Each prompt with its work, then where the session left its subject.
fn report(session: &Session, drift: &Drift) -> String {
    let mut text = String::new();
    let id = style::short(&session.id);
    let title = session.title.as_deref().unwrap_or("(no title)");
    let _ = writeln!(text, "{}", prose(&format!("{id}  {}  {}", session.provider, safe(title)), VALUE_COLUMN));
    if drift.earlier > 0 {
        let _ = writeln!(text, "\n({} earlier prompts are not listed)", drift.earlier);
    }
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{}", prose(&format!("{name:<VALUE_COLUMN$}{value}"), VALUE_COLUMN).trim_end());
    };
    for ask in &drift.asks {
        line("", "");
        let turn = if ask.turn == 0 { "turn ?".to_owned() } else { format!("turn {}", ask.turn) };
        line(&turn, &safe(&ask.prompt));
        for (name, distance) in [
            ("named", Some(Distance::Named)),
            ("near", Some(Distance::Near)),
            ("read first", Some(Distance::ReadFirst)),
            ("elsewhere", Some(Distance::Elsewhere)),
            ("unknown", None),
        ] {
            let files = files_at(session, ask, distance);
            if !files.is_empty() {
                line(name, &files);
            }
        }
        if ask.more_files {
            line("", "and more files");
        }
        if ask.commands > 0 {
            line("commands", &ask.commands.to_string());
        }
    }
    let _ = writeln!(text, "\n{}", conclusion(session, drift));
    text
}

/// The changed files with this distance, each with the number of its edits.
fn files_at(session: &Session, ask: &Ask, distance: Option<Distance>) -> String {
    let files: Vec<&ScopedFile> = ask.files.iter().filter(|file| file.distance == distance).collect();
    let mut shown: Vec<String> = Vec::new();
    for file in files.iter().take(FILES) {
        let name = shown_path(session, &file.file);
        shown.push(if file.edits > 1 { format!("{name} ×{}", file.edits) } else { name });
    }
    if files.len() > FILES {
        shown.push(format!("and {} more", files.len() - FILES));
    }
    shown.join(", ")
}

/// A path relative to the session's directory, if it is inside.
fn shown_path(session: &Session, file: &str) -> String {
    let inside = session.cwd.as_deref().and_then(|cwd| file.strip_prefix(cwd)).and_then(|rest| rest.strip_prefix('/'));
    safe(&inside.map_or_else(|| style::path(file), str::to_owned))
}

fn conclusion(session: &Session, drift: &Drift) -> String {
    if let Some(left) = &drift.left {
        let (file, id) = (shown_path(session, &left.file), style::short(&session.id));
        let first = format!("left the subject in turn {} with {file} (event {})", left.turn, left.event);
        let hint = format!("  see `capture events {id} --after {}`", left.sequence.saturating_sub(1));
        return format!("{}\n{}", prose(&first, 2), prose(&hint, 2));
    }
    let has = |distance| drift.asks.iter().flat_map(|ask| &ask.files).any(|file| file.distance == distance);
    let says = if drift.asks.iter().all(|ask| ask.files.is_empty()) {
        "no file was changed"
    } else if has(Some(Distance::ReadFirst)) || has(Some(Distance::Elsewhere)) {
        "some edits are elsewhere, but the session did not leave the subject"
    } else if !has(None) {
        "every edit is close to what you named"
    } else if drift.asks.iter().all(|ask| ask.named.is_empty()) {
        "you named no files, so distances are unknown"
    } else {
        "the other edits are close to what you named; those of prompts that name no files have no known distance"
    };
    prose(says, 2)
}
