//! `capture standup` and `capture handoff`: redacted reports of what sessions did.

use std::collections::{BTreeMap, BTreeSet};

use agents::directory::resume_line;
use api::{
    findings::FindingsQuery,
    history::{HistoryQuery, RecentTurnsQuery, SessionTurn},
    list::Limit,
    routes::{GetWork, ListFindings, ListRecentTurns, ListSessions, ListTurns},
    sessions::{ActiveFilter, SessionsQuery},
};
use client::Client;
use events::{Finding, SessionId, Timestamp};
use export::report::{Handoff, Markup, ReportFormat, SessionWork, standup};
use home::clock;
use printing::{markdown, style};
use projections::{Session, Turn};
use serde_json::Value;

use super::{
    context::{Context, find},
    watch::show,
    when,
};
use printing::{is_seen, safe_lines, wrapped};

#[derive(Debug, clap::Args)]
pub(super) struct Standup {
    /// Start of the period: a day (2026-11-20, yesterday), RFC 3339, HH:MM[:SS] today, or an age (5m, 2h, 3d).
    #[arg(long, default_value = "24h", value_name = "TIME", allow_hyphen_values = true)]
    since: String,
    /// Only sessions in or below this directory.
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct HandoffOf {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id.
    session: String,
}

/// Number of turns or findings per request.
const PAGE: usize = 1_000;
/// Number of sessions per request.
const SESSIONS: usize = 500;
/// Maximum number of findings of one session in a report.
const FINDINGS: usize = 50;

pub(super) fn standup_of_all(context: &Context, arguments: &Standup) -> anyhow::Result<()> {
    let now = clock::now();
    let since = when::since("--since", Some(&arguments.since))?.unwrap_or(now);
    let client = context.client()?;
    let mut open = open_findings(&client)?;
    let mut ended = turns_since(&client, since)?;
    let mut work = Vec::new();
    for session in sessions_since(&client, since)? {
        let inside = |dir: &String| std::path::Path::new(session.cwd.as_deref().unwrap_or_default()).starts_with(dir);
        if !arguments.cwd.as_ref().is_none_or(inside) {
            continue;
        }
        let turns = ended.remove(&session.id).unwrap_or_default();
        let mut findings = open.remove(&session.id).unwrap_or_default();
        findings.truncate(FINDINGS);
        let one = SessionWork { session, turns, findings };
        // A session without work counts only if it needs attention.
        if one.count() > 0 || !one.findings.is_empty() {
            work.push(one);
        }
    }
    if context.json {
        #[derive(serde::Serialize)]
        struct StandupReport {
            since: Timestamp,
            sessions: Vec<SessionWork>,
        }
        return print_redacted(context, serde_json::to_value(StandupReport { since, sessions: work })?);
    }
    show_report(&format!("# Since {}\n\n{}", style::local(since), standup(&work, since, now, format())))
}

pub(super) fn handoff(context: &Context, arguments: &HandoffOf) -> anyhow::Result<()> {
    let client = context.client()?;
    let session = find(&client, &arguments.session)?;
    let turns = turns_of(&client, &session, 0)?;
    let findings = findings_of(&client, &session, FINDINGS)?;
    let work = client.one::<GetWork>(&session.id.to_string())?;
    let transcripts = session.transcripts.iter().map(|transcript| transcript.path.as_str());
    let resume = session.provider_session_id.as_deref();
    let resume = resume.and_then(|id| resume_line(session.provider, id, transcripts));
    let note = Handoff { resume, ..Handoff::new(session, turns, work, findings) };
    if context.json {
        return print_redacted(context, serde_json::to_value(&note)?);
    }
    show_report(&note.text(format()))
}

/// Markdown in a file or pipe, whose readers may render it; on a terminal nothing is escaped.
fn format() -> ReportFormat<'static> {
    let markup = if is_seen() { Markup::Terminal } else { Markup::Markdown };
    ReportFormat { markup, path: &style::path, time: &style::local }
}

fn show_report(text: &str) -> anyhow::Result<()> {
    show(&fitted(&markdown::painted(&safe_lines(&redact::text(text))), 0))
}

/// Markdown whose lines fit the terminal, with this many columns left free. In a file or pipe, lines are not wrapped,
/// whatever `COLUMNS` says.
pub(super) fn fitted(text: &str, free: usize) -> String {
    let width = printing::width().filter(|_| is_seen()).map(|width| width.saturating_sub(free));
    text.lines().flat_map(|line| [wrapped(line, width, indentation(line)), "\n".to_owned()]).collect()
}

/// The column at which the text of a list item, or of any other line, begins.
fn indentation(line: &str) -> usize {
    let text = line.trim_start_matches(' ');
    let first = text.split(' ').next().unwrap_or_default();
    let number = first.strip_suffix('.').unwrap_or_default();
    let is_item = first == "-" || !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    line.len() - text.len() + if is_item { first.len() + 1 } else { 0 }
}

fn print_redacted(context: &Context, mut value: Value) -> anyhow::Result<()> {
    redact::value(&mut value);
    context.print_json(&value)
}

/// Sessions with an event since this time, newest first.
pub(super) fn sessions_since(client: &Client, since: Timestamp) -> anyhow::Result<Vec<Session>> {
    let mut sessions = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let query = SessionsQuery {
            active: Some(ActiveFilter::All),
            cursor: cursor.take(),
            limit: Some(Limit::of(SESSIONS)),
            ..SessionsQuery::default()
        };
        let page = client.get::<ListSessions>("", &query)?;
        // The server sorts by the time of the last event, newest first.
        let is_past = page.sessions.last().is_none_or(|last| last.last_event_at < since);
        sessions.extend(page.sessions.into_iter().filter(|session| session.last_event_at >= since));
        cursor = page.next_cursor;
        if cursor.is_none() || is_past {
            break;
        }
    }
    let mut seen = BTreeSet::new();
    sessions.retain(|session| session.merged_into.is_none() && seen.insert(session.id));
    Ok(sessions)
}

/// The turns of a session after the turn with this number.
fn turns_of(client: &Client, session: &Session, after: u32) -> anyhow::Result<Vec<Turn>> {
    let mut turns: Vec<Turn> = Vec::new();
    loop {
        let after = turns.last().map_or(after, |turn| turn.number);
        let query = HistoryQuery { after: Some(after.into()), cursor: None, limit: Some(Limit::of(PAGE)) };
        let page = client.get::<ListTurns>(&session.id.to_string(), &query)?.turns;
        let more = page.len() == PAGE;
        turns.extend(page);
        if !more {
            return Ok(turns);
        }
    }
}

/// The turns of all sessions that ended since this time.
fn turns_since(client: &Client, since: Timestamp) -> anyhow::Result<BTreeMap<SessionId, Vec<Turn>>> {
    let mut turns: BTreeMap<SessionId, Vec<Turn>> = BTreeMap::new();
    let mut query = RecentTurnsQuery { since: Some(since), cursor: None, limit: Some(Limit::of(PAGE)) };
    loop {
        let page = client.get::<ListRecentTurns>("", &query)?;
        for SessionTurn { session_id, turn } in page.turns {
            turns.entry(session_id).or_default().push(turn);
        }
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => return Ok(turns),
        }
    }
}

/// The newest open findings of a session.
pub(super) fn findings_of(client: &Client, session: &Session, most: usize) -> anyhow::Result<Vec<Finding>> {
    let query = FindingsQuery {
        session: Some(session.id.to_string()),
        limit: Some(Limit::of(most)),
        ..FindingsQuery::default()
    };
    Ok(client.get::<ListFindings>("", &query)?.findings)
}

/// The open findings of all sessions, each session's newest first.
fn open_findings(client: &Client) -> anyhow::Result<BTreeMap<SessionId, Vec<Finding>>> {
    let mut all: BTreeMap<SessionId, Vec<Finding>> = BTreeMap::new();
    let mut query = FindingsQuery { limit: Some(Limit::of(PAGE)), ..FindingsQuery::default() };
    loop {
        let page = client.get::<ListFindings>("", &query)?;
        for finding in page.findings {
            all.entry(finding.session_id).or_default().push(finding);
        }
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => return Ok(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::indentation;

    #[test]
    fn continuation_lines_align_with_the_text_of_a_list_item() {
        for (line, columns) in [("- a b", 2), ("  - a", 4), ("12. a", 4), ("   a b", 3), ("plain a", 0), ("", 0)] {
            assert_eq!(indentation(line), columns, "{line}");
        }
    }
}
