//! `capture show --all`: a session as a conversation.

use std::io::Write;

use export::conversation::{ConversationFormat, heading, item};
use projections::Session;
use session_export::{SessionExportError, each_item};

use super::{Context, markdown, report::fitted, style};
use crate::terminal::{self, is_seen, safe_lines};
use client::Client;

/// Most lines of an input or output of a tool that are shown on a terminal.
const LINES: usize = 20;

/// Prints the whole conversation.
pub(super) fn show(context: &Context, client: &Client, session: &Session) -> anyhow::Result<()> {
    if context.json {
        return each_item(client, session, |one| context.print_json(&one)).map_err(without_wrapping);
    }
    let mut out = terminal::stdout();
    let lines = is_seen().then_some(LINES);
    let format = ConversationFormat { lines, thinking: true, time: &style::local };
    let mut write = |text: String| out.write_all(fitted(&markdown::painted(&safe_lines(&text))).as_bytes());
    write(heading(session, format))?;
    each_item(client, session, |one| Ok(write(item(&one, format))?)).map_err(without_wrapping)
}

/// An error of the client as such, which decides the exit code.
pub(super) fn without_wrapping(error: anyhow::Error) -> anyhow::Error {
    match error.downcast() {
        Ok(SessionExportError::Client(error)) => error.into(),
        Ok(error) => error.into(),
        Err(error) => error,
    }
}
