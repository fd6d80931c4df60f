//! `capture log`

mod lines;

use std::collections::HashMap;

use api::{
    history::{RawEvent, TimelinePage, TimelineQuery, TimelineSession},
    list::{Limit, MAX_LIMIT},
    routes::{GetApproval, GetSession, ListTimeline, Stream, StreamQuery},
};
use client::Client;
use events::{ApprovalId, Event, Kind, Provider, SessionId};
use printing::style;
use store::{NOTABLE_KINDS, is_failure, is_notable};

use self::lines::{LogLine, LogLines};
use super::{
    context::{Context, find, print_line},
    events::behind,
    meanings,
    number::count,
    output::has_template,
    when,
    words::{one_of, one_of_explained},
};
use printing::{safe, width};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Keep printing new events.
    #[arg(long, short, conflicts_with = "until")]
    follow: bool,
    /// Only this session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Only sessions of these agents.
    #[arg(long, value_delimiter = ',', value_name = "AGENT", value_parser = one_of(Provider::ALL, Provider::as_str))]
    agent: Vec<Provider>,
    /// Only events of these kinds.
    #[arg(long, value_delimiter = ',', value_name = "KIND", value_parser = one_of_explained(NOTABLE_KINDS, Kind::as_str, meanings::of_event))]
    kind: Vec<Kind>,
    /// Only sessions that work in this directory or below it.
    #[arg(long, value_name = "DIR")]
    cwd: Option<std::path::PathBuf>,
    /// Only failures: errors, findings and failed tools.
    #[arg(long)]
    failures: bool,
    /// Only events from this time on: a day (2026-11-20, yesterday), RFC 3339, HH:MM[:SS] today, or an age (5m, 2h, 3d).
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<String>,
    /// Only events before this time, in the formats of --since.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
    /// Maximum number of events. If there are more, only the newest are printed, in chronological order.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = count, allow_negative_numbers = true)]
    limit: usize,
}

/// Columns for the name of a session, and the same on a narrow terminal.
const NAME: usize = 24;
const NARROW_NAME: usize = 13;
/// Width from which a terminal is not narrow, columns.
const WIDE: usize = 110;

type Names = HashMap<SessionId, TimelineSession>;

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let query = query(arguments)?;
    let client = context.client()?;
    let session = arguments.session.as_ref().map(|given| find(&client, given)).transpose()?.map(|found| found.id);
    // Open the stream before reading the list, so that no event is missed between them.
    let of_session = StreamQuery { session: session.map(|id| id.to_string()), ..StreamQuery::default() };
    let stream = arguments.follow.then(|| client.stream::<Stream>("", &of_session)).transpose()?;
    let query = TimelineQuery { session: session.map(|id| id.to_string()), ..query };
    let (mut names, mut seen) = (Names::new(), 0);
    let events = newest(&client, query.clone(), arguments.limit, &mut names)?;
    let read = |id: &ApprovalId| Some(client.one::<GetApproval>(id.as_str()).ok()?.approval);
    let mut lines = LogLines::new(&read);
    let listed: Vec<Event> = events.iter().rev().filter_map(|raw| raw.event().ok()).collect();
    lines.look_ahead(&listed);
    for raw in events.iter().rev() {
        seen = raw.event().map_or(seen, |event| seen.max(event.position));
        print(context, raw.json(), &names, &mut lines)?;
    }
    for news in stream.into_iter().flatten() {
        let (name, data) = news?;
        if name != "event" {
            continue;
        }
        let event = Event::from_json(&data)?;
        if event.position <= seen || event.history || !is_wanted(&event, &query) {
            continue;
        }
        if let std::collections::hash_map::Entry::Vacant(entry) = names.entry(event.session_id)
            && let Ok(session) = client.one::<GetSession>(&event.session_id.to_string())
        {
            let projections::Session { id, provider, title, cwd, .. } = session;
            entry.insert(TimelineSession { id, provider, title, cwd });
        }
        if query.cwd.as_deref().is_none_or(|cwd| names.get(&event.session_id).is_some_and(|named| is_below(named, cwd)))
        {
            print(context, &data, &names, &mut lines)?;
        }
    }
    Ok(())
}

/// The events that the arguments select, of all sessions.
fn query(arguments: &Arguments) -> anyhow::Result<TimelineQuery> {
    let cwd = arguments.cwd.as_ref().map(std::path::absolute).transpose()?;
    let (since, until) = when::period(arguments.since.as_deref(), arguments.until.as_deref())?;
    Ok(TimelineQuery {
        session: None,
        agent: arguments.agent.clone().into(),
        kind: arguments.kind.clone().into(),
        cwd: cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
        failures: arguments.failures.then_some(true),
        since,
        until,
        cursor: None,
        limit: None,
    })
}

/// Returns the newest events, newest first, and adds the names of their sessions to `names`.
fn newest(client: &Client, mut query: TimelineQuery, most: usize, names: &mut Names) -> anyhow::Result<Vec<RawEvent>> {
    let mut events = Vec::new();
    while events.len() < most {
        query.limit = Some(Limit::of((most - events.len()).min(MAX_LIMIT)));
        let page: TimelinePage = client.get::<ListTimeline>("", &query)?;
        names.extend(page.sessions.into_iter().map(|session| (session.id, session)));
        events.extend(page.events);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    Ok(events)
}

/// Whether a live event matches the query. Its directory is not checked.
fn is_wanted(event: &Event, query: &TimelineQuery) -> bool {
    is_notable(event)
        && (is_failure(event) || query.failures != Some(true))
        && (query.kind.is_empty() || query.kind.0.contains(&event.payload.kind()))
        && (query.agent.is_empty() || query.agent.0.contains(&event.provider))
}

fn is_below(session: &TimelineSession, directory: &str) -> bool {
    session.cwd.as_deref().is_some_and(|cwd| std::path::Path::new(cwd).starts_with(directory))
}

fn print(context: &Context, json: &str, names: &Names, lines: &mut LogLines<'_>) -> anyhow::Result<()> {
    if context.json || has_template() {
        return context.print_json(&serde_json::from_str::<serde_json::Value>(json)?);
    }
    let event = Event::from_json(json)?;
    match lines.line(&event) {
        Some(line) => print_line(&in_one_line(&event, &line, names, width())),
        None => Ok(()),
    }
}

/// A line of the log: time, session, event.
fn in_one_line(event: &Event, line: &LogLine, names: &Names, width: Option<usize>) -> String {
    let title = names.get(&event.session_id).and_then(|session| session.title.as_deref());
    let name = title.map_or_else(|| style::short(&event.session_id), |title| safe(title).to_string());
    let is_narrow = width.is_some_and(|width| width < WIDE);
    let columns = if is_narrow { NARROW_NAME } else { NAME };
    let name = projections::shorten::verbatim_line(&name, columns);
    let padding = " ".repeat(columns.saturating_sub(name.chars().count()));
    let (at, agent) = (style::local(event.created_at), event.provider);
    // Without the year and the seconds.
    let at = if is_narrow { at.get(5..16).unwrap_or(&at) } else { &at };
    behind(format!("{at}  {agent:<8} {name}{padding}  {:<9}  ", line.word), &line.text, width)
}
