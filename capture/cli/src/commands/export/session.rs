//! Reads a session from the server, page by page, and writes it in a format of [`export`], without secrets.
//!
//! The formats are defined in [`export`], and the caller opens the file and passes a writer.

mod sanitize;

use std::{
    io::{self, Write},
    num::ParseIntError,
};

use agents::Agent;
use api::{
    Client, ClientError,
    history::{ConversationPage, ConversationQuery, ConversationTexts, EventsQuery, HistoryQuery},
    list::Limit,
    routes::{ListEvents, ListTurns, ReadConversation},
};
use events::{Kind, SessionId, Timestamp};
use export::{
    conversation::{ConversationFormat, heading, item, subagent_forgotten, subagent_heading},
    conversation_html::{self, HtmlOptions},
    dataset::{DatasetTurns, TurnRecord},
    otlp::{AgentTrace, OtlpOptions, SessionTrace},
};
use projections::{ConversationItem, ItemBody, Session, Subagent, Turn};

use self::sanitize::{names_secrets, without_home};
use printing::{safe_json, style};

/// Number of items per request.
const PAGE: usize = 200;
/// Number of turns per request.
const TURNS: usize = 1_000;
/// Maximum nesting depth: a session, its sub-agent, the sub-agent's sub-agent, and so on.
const DEPTH: usize = 8;
/// Number of spans per line of an OTLP file.
const SPANS: usize = 500;
/// The server's status code for an unknown session.
const NOT_FOUND: u16 = 404;

/// Why a session was not written.
#[derive(Debug, thiserror::Error)]
pub(in crate::commands) enum SessionExportError {
    /// The server did not answer as expected.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server's cursor cannot be parsed by this version.
    #[error("the server's cursor cannot be used: {0}")]
    Cursor(#[from] ParseIntError),
    /// A record cannot be converted to JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The writer failed.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Writes the conversation as Markdown.
pub(in crate::commands) fn write_markdown(
    client: &Client,
    session: &Session,
    out: &mut dyn Write,
) -> Result<(), SessionExportError> {
    let format = ConversationFormat { lines: None, thinking: true, time: &style::local };
    out.write_all(redact::text(&heading(session, format)).as_bytes())?;
    let mut depth = 0;
    each_part::<SessionExportError>(client, session, Subagents::Unfolded, |part| {
        let text = match part {
            // Redacted twice: before formatting, because markup would hide the context of a secret, and after it,
            // because a diff contains the texts of an edit without the escapes of its input.
            ConversationPart::Item(one) => nested(&redact::text(&item(&redact::of_item(one), format)), depth),
            ConversationPart::SubagentBegins(subagent) => {
                depth += 1;
                nested(&subagent_heading(&redact::of_subagent(subagent)), depth)
            }
            ConversationPart::SubagentForgotten => nested(&subagent_forgotten(), depth),
            ConversationPart::SubagentEnds => {
                depth -= 1;
                // Ends the quotation of the sub-agent.
                nested("\n", depth)
            }
        };
        Ok(out.write_all(text.as_bytes())?)
    })
}

/// Quotes the lines of a sub-agent, once per agent between it and the session.
fn nested(text: &str, depth: usize) -> String {
    if depth == 0 {
        return text.to_owned();
    }
    let quote = "> ".repeat(depth);
    text.lines().map(|line| format!("{}\n", format!("{quote}{line}").trim_end())).collect()
}

/// Writes the conversation as lines of JSON.
pub(in crate::commands) fn write_json(
    client: &Client,
    session: &Session,
    out: &mut dyn Write,
) -> Result<(), SessionExportError> {
    each_item::<SessionExportError>(client, session, |one| {
        let mut value = serde_json::to_value(&one)?;
        redact::value(&mut value);
        Ok(out.write_all(safe_json(&format!("{value}\n")).as_bytes())?)
    })
}

/// Writes the conversation as an HTML page.
pub(in crate::commands) fn write_html(
    client: &Client,
    session: &Session,
    out: &mut dyn Write,
) -> Result<(), SessionExportError> {
    let redact = |text: &str| redact::text(text).into_owned();
    let options = HtmlOptions { redact: &redact, time: &style::local, subagent: None };
    out.write_all(conversation_html::begin(session, options).as_bytes())?;
    let mut inside: Vec<SessionId> = Vec::new();
    each_part::<SessionExportError>(client, session, Subagents::Unfolded, |part| {
        let options = HtmlOptions { subagent: inside.last().copied(), ..options };
        match part {
            ConversationPart::Item(one) => {
                out.write_all(conversation_html::item(&redact::of_item(one), options).as_bytes())?;
            }
            ConversationPart::SubagentBegins(subagent) => {
                inside.push(subagent.session_id);
                let subagent = redact::of_subagent(subagent);
                out.write_all(conversation_html::begin_subagent(&subagent, options).as_bytes())?;
            }
            ConversationPart::SubagentForgotten => out.write_all(conversation_html::subagent_forgotten().as_bytes())?,
            ConversationPart::SubagentEnds => {
                inside.pop();
                out.write_all(conversation_html::end_subagent().as_bytes())?;
            }
        }
        Ok(())
    })?;
    Ok(out.write_all(conversation_html::end().as_bytes())?)
}

/// Writes the session as OpenTelemetry traces; with `texts`, including prompts, answers, and tool input and output.
pub(in crate::commands) fn write_otlp(
    client: &Client,
    session: &Session,
    texts: bool,
    out: &mut dyn Write,
) -> Result<(), SessionExportError> {
    let redact = |text: &str| redact::text(text).into_owned();
    let options = OtlpOptions {
        redact: &redact,
        texts,
        provider: Agent::of(session.provider).and_then(|agent| agent.gen_ai_provider),
        version: env!("CARGO_PKG_VERSION"),
    };
    let mut trace = SessionTrace::new(session, options);
    let mut spans = vec![trace.root()];
    each_trace(client, session, |own| trace.join(own))?;
    each_item::<SessionExportError>(client, session, |one| {
        let one = if texts { redact::of_item(&one) } else { one };
        spans.extend(trace.item(&one));
        if spans.len() >= SPANS {
            writeln!(out, "{}", safe_json(&trace.encode(std::mem::take(&mut spans))?))?;
        }
        Ok(())
    })?;
    each_turn(client, session, |turn| spans.push(trace.turn(&turn)))?;
    Ok(writeln!(out, "{}", safe_json(&trace.encode(spans)?))?)
}

/// Writes the turns of a session that began at or after a time, one record per line. Besides secrets, this removes the
/// path of the home directory, and the input and output of calls whose input names a file of secrets.
pub(in crate::commands) fn write_dataset(
    client: &Client,
    session: &Session,
    since: Timestamp,
    home: Option<&str>,
    out: &mut dyn Write,
) -> Result<(), SessionExportError> {
    let sanitize = |text: &str| {
        let text = redact::text(text).into_owned();
        home.map_or_else(|| text.clone(), |home| without_home(&text, home))
    };
    let mut write = |record: Option<TurnRecord>| match record.filter(|record| record.started_at >= since) {
        Some(record) => Ok(writeln!(out, "{}", safe_json(&serde_json::to_string(&record)?))?),
        None => Ok(()),
    };
    let mut turns = DatasetTurns::new(session, &sanitize, &names_secrets);
    each_item::<SessionExportError>(client, session, |item| write(turns.apply(&item)))?;
    write(turns.finish())
}

/// Calls the closure with each item of a conversation, in order, with complete texts.
pub(in crate::commands) fn each_item<E: From<SessionExportError>>(
    client: &Client,
    session: &Session,
    take: impl FnMut(ConversationItem) -> Result<(), E>,
) -> Result<(), E> {
    match items_of(&pages_of(client), session.id, take)? {
        ConversationEnd::Complete => Ok(()),
        ConversationEnd::Forgotten(error) => Err(SessionExportError::from(error).into()),
    }
}

/// Whether to read the conversations of sub-agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Subagents {
    /// Sub-agents are only named where they were started.
    Folded,
    /// The conversation of a sub-agent follows where it was started.
    Unfolded,
}

/// A part of a conversation, with sub-agents where they were started.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) enum ConversationPart<'a> {
    /// An item of the session, or of the innermost sub-agent that has begun and not ended.
    Item(&'a ConversationItem),
    /// A sub-agent begins; its items follow if they were requested.
    SubagentBegins(&'a Subagent),
    /// The items of the current sub-agent can no longer be read, because it was forgotten during the export.
    SubagentForgotten,
    /// The current sub-agent ends.
    SubagentEnds,
}

/// Calls the closure with each part of a conversation, in order, with complete texts.
pub(in crate::commands) fn each_part<E: From<SessionExportError>>(
    client: &Client,
    session: &Session,
    subagents: Subagents,
    mut take: impl FnMut(ConversationPart<'_>) -> Result<(), E>,
) -> Result<(), E> {
    parts(&pages_of(client), session.id, subagents, &mut take)
}

/// Reads a page of a conversation.
type ReadPage<'a> = dyn Fn(SessionId, &ConversationQuery) -> Result<ConversationPage, ClientError> + 'a;

fn pages_of(client: &Client) -> impl Fn(SessionId, &ConversationQuery) -> Result<ConversationPage, ClientError> {
    |id, query| client.get::<ReadConversation>(&id.to_string(), query)
}

fn parts<E: From<SessionExportError>>(
    read: &ReadPage<'_>,
    id: SessionId,
    subagents: Subagents,
    take: &mut TakePart<'_, E>,
) -> Result<(), E> {
    match parts_of(read, id, subagents, &mut vec![id], take)? {
        ConversationEnd::Complete => Ok(()),
        ConversationEnd::Forgotten(error) => Err(SessionExportError::from(error).into()),
    }
}

/// How reading a conversation ended.
enum ConversationEnd {
    /// All of it was read.
    Complete,
    /// The session was forgotten while it was read.
    Forgotten(ClientError),
}

/// Receives the parts of a conversation.
type TakePart<'a, E> = dyn FnMut(ConversationPart<'_>) -> Result<(), E> + 'a;

/// Reads the parts of a session or sub-agent; `inside` lists the enclosing sessions, ending with this one.
fn parts_of<E: From<SessionExportError>>(
    read: &ReadPage<'_>,
    id: SessionId,
    subagents: Subagents,
    inside: &mut Vec<SessionId>,
    take: &mut TakePart<'_, E>,
) -> Result<ConversationEnd, E> {
    items_of(read, id, |item| {
        take(ConversationPart::Item(&item))?;
        let started = match &item.body {
            ItemBody::ToolCall { subagents, .. } => subagents.as_slice(),
            ItemBody::Subagent(subagent) => std::slice::from_ref(subagent),
            ItemBody::Prompt { .. }
            | ItemBody::Message { .. }
            | ItemBody::Approval { .. }
            | ItemBody::Question { .. }
            | ItemBody::Error { .. }
            | ItemBody::Compaction { .. }
            | ItemBody::TurnEnd { .. } => &[],
        };
        for subagent in started {
            take(ConversationPart::SubagentBegins(subagent))?;
            let child = subagent.session_id;
            if subagents == Subagents::Unfolded && inside.len() < DEPTH && !inside.contains(&child) {
                inside.push(child);
                let end = parts_of(read, child, subagents, inside, take)?;
                inside.pop();
                if let ConversationEnd::Forgotten(_) = end {
                    take(ConversationPart::SubagentForgotten)?;
                }
            }
            take(ConversationPart::SubagentEnds)?;
        }
        Ok(())
    })
}

fn items_of<E: From<SessionExportError>>(
    read: &ReadPage<'_>,
    id: SessionId,
    mut take: impl FnMut(ConversationItem) -> Result<(), E>,
) -> Result<ConversationEnd, E> {
    let mut query = ConversationQuery {
        limit: Some(Limit::of(PAGE)),
        texts: Some(ConversationTexts::Whole),
        ..ConversationQuery::default()
    };
    loop {
        let page = match read(id, &query) {
            Ok(page) => page,
            Err(error) if error.status() == Some(NOT_FOUND) => return Ok(ConversationEnd::Forgotten(error)),
            Err(error) => return Err(SessionExportError::from(error).into()),
        };
        page.items.into_iter().try_for_each(&mut take)?;
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor.parse().map_err(SessionExportError::from)?),
            None => return Ok(ConversationEnd::Complete),
        }
    }
}

/// Calls the closure with each trace that the agent itself reported, in order.
fn each_trace(client: &Client, session: &Session, mut take: impl FnMut(AgentTrace)) -> Result<(), SessionExportError> {
    let kind = vec![Kind::Annotation].into();
    let mut query = EventsQuery { kind, limit: Some(Limit::of(TURNS)), ..EventsQuery::default() };
    loop {
        let page = client.get::<ListEvents>(&session.id.to_string(), &query)?;
        // An event this version cannot parse contains no trace it supports.
        page.events.iter().filter_map(|raw| AgentTrace::of(&raw.event().ok()?)).for_each(&mut take);
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor.parse()?),
            None => return Ok(()),
        }
    }
}

fn each_turn(client: &Client, session: &Session, mut take: impl FnMut(Turn)) -> Result<(), SessionExportError> {
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

#[cfg(test)]
mod tests;
