//! `capture note`: notes on sessions.

use api::{
    routes::{AddNote, ListNotes},
    sessions::NoteRequest,
};
use printing::style;

use super::context::{Context, find, print_line};
use printing::{safe, safe_lines};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id.
    session: String,
    /// The text of a new note; without it, list the notes.
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let client = context.client()?;
    let id = find(&client, &arguments.session)?.id.to_string();
    let notes = if arguments.text.is_empty() {
        client.one::<ListNotes>(&id)?
    } else {
        client.send::<AddNote>(&id, &NoteRequest { text: arguments.text.join(" ") })?
    };
    if context.json {
        return context.print_json(&notes);
    }
    if notes.notes.is_empty() {
        return print_line("no notes");
    }
    for note in &notes.notes {
        let text = safe_lines(&redact::text(&note.text));
        let at = style::painted(&safe(&note.at.to_string()), style::DIM);
        print_line(&format!("{at}  {}", text.trim_end().replace('\n', "\n  ")))?;
    }
    Ok(())
}
