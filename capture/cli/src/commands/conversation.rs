//! `capture show --all` and `capture export SESSION`: a session as a conversation.

use std::io::Write;

use api::{
    history::{ConversationQuery, ConversationTexts},
    list::Limit,
    routes::ReadConversation,
};
use export::conversation::{ConversationFormat, heading, item};
use projections::{ConversationItem, Session};

use super::{Context, markdown, report::fitted, style};
use crate::{
    client::Client,
    terminal::{self, is_seen, safe_json, safe_lines},
};

/// Items requested at a time.
const PAGE: usize = 200;
/// Most lines of an input or output of a tool that are shown on a terminal.
const LINES: usize = 20;

/// Prints the whole conversation.
pub(super) fn show(context: &Context, client: &Client, session: &Session) -> anyhow::Result<()> {
    if context.json {
        return each_item(client, session, |one| context.print_json(&one));
    }
    let mut out = terminal::stdout();
    let lines = is_seen().then_some(LINES);
    let format = ConversationFormat { lines, thinking: true, time: &style::local };
    let mut write = |text: String| out.write_all(fitted(&markdown::painted(&safe_lines(&text))).as_bytes());
    write(heading(session, format))?;
    each_item(client, session, |one| Ok(write(item(&one, format))?))
}

/// Writes the conversation as Markdown, without secrets.
pub(super) fn write_markdown(client: &Client, session: &Session, out: &mut dyn Write) -> anyhow::Result<()> {
    let format = ConversationFormat { lines: None, thinking: true, time: &style::local };
    out.write_all(redaction::text(&heading(session, format)).as_bytes())?;
    each_item(client, session, |one| Ok(out.write_all(redaction::text(&item(&one, format)).as_bytes())?))
}

/// Writes the conversation as lines of JSON, without secrets.
pub(super) fn write_json(client: &Client, session: &Session, out: &mut dyn Write) -> anyhow::Result<()> {
    each_item(client, session, |one| {
        let mut value = serde_json::to_value(&one)?;
        redaction::value(&mut value);
        Ok(out.write_all(safe_json(&format!("{value}\n")).as_bytes())?)
    })
}

fn each_item(
    client: &Client,
    session: &Session,
    mut take: impl FnMut(ConversationItem) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let id = session.id.to_string();
    let mut query = ConversationQuery {
        limit: Some(Limit::of(PAGE)),
        texts: Some(ConversationTexts::Whole),
        ..ConversationQuery::default()
    };
    loop {
        let page = client.get::<ReadConversation>(&id, &query)?;
        page.items.into_iter().try_for_each(&mut take)?;
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor.parse()?),
            None => return Ok(()),
        }
    }
}
