//! `capture show --all` and `capture export SESSION`: a session as a conversation.

use std::io::Write;

use agents::Agent;
use api::{
    history::{ConversationQuery, ConversationTexts, HistoryQuery},
    list::Limit,
    routes::{ListTurns, ReadConversation},
};
use export::{
    conversation::{ConversationFormat, heading, item},
    conversation_html::{self, HtmlOptions},
    otlp::{OtlpOptions, RedactText, SessionTrace},
};
use projections::{ConversationItem, Session, Turn};

use super::{Context, markdown, report::fitted, style};
use crate::{
    client::Client,
    terminal::{self, is_seen, safe_json, safe_lines},
};

/// Items requested at a time.
const PAGE: usize = 200;
/// Turns requested at a time.
const TURNS: usize = 1_000;
/// Spans in a line of an OTLP file.
const SPANS: usize = 500;
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

/// Writes the conversation as a page, without secrets.
pub(super) fn write_html(client: &Client, session: &Session, out: &mut dyn Write) -> anyhow::Result<()> {
    let options = HtmlOptions { redact: &|text| redaction::text(text).into_owned(), time: &style::local };
    out.write_all(conversation_html::begin(session, options).as_bytes())?;
    each_item(client, session, |one| Ok(out.write_all(conversation_html::item(&one, options).as_bytes())?))?;
    Ok(out.write_all(conversation_html::end().as_bytes())?)
}

/// Writes the session as OpenTelemetry traces, without secrets; with `texts` also what was said and done.
pub(super) fn write_otlp(client: &Client, session: &Session, texts: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let redact = |text: &str| redaction::text(text).into_owned();
    let options = OtlpOptions {
        texts: texts.then_some(&redact as RedactText<'_>),
        provider: Agent::of(session.provider).and_then(|agent| agent.gen_ai_provider),
        version: env!("CARGO_PKG_VERSION"),
    };
    let mut trace = SessionTrace::new(session, options);
    let mut spans = vec![trace.root()];
    each_item(client, session, |one| {
        spans.extend(trace.item(&one));
        if spans.len() >= SPANS {
            writeln!(out, "{}", safe_json(&trace.encode(std::mem::take(&mut spans))?))?;
        }
        Ok(())
    })?;
    each_turn(client, session, |turn| spans.push(trace.turn(&turn)))?;
    Ok(writeln!(out, "{}", safe_json(&trace.encode(spans)?))?)
}

fn each_turn(client: &Client, session: &Session, mut take: impl FnMut(Turn)) -> anyhow::Result<()> {
    let mut query = HistoryQuery { limit: Some(Limit::of(TURNS)), ..HistoryQuery::default() };
    loop {
        let page = client.get::<ListTurns>(&session.id.to_string(), &query)?;
        page.turns.into_iter().for_each(&mut take);
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor.parse()?),
            None => return Ok(()),
        }
    }
}

/// Calls this with each item of a conversation, in order, with its texts in full.
pub(super) fn each_item(
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
