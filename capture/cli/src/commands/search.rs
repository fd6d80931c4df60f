//! `capture search`: texts of all sessions that match a query, grouped by session.

use std::fmt::Write as _;

use api::{
    ClientError,
    list::Limit,
    routes::{EmptyBody, GetIndex, RebuildIndex, SearchTexts},
    search::{IndexState, IndexStatus, SearchHit, SearchPage, SearchQuery, SearchSort, Snippet, TextKind},
};
use client::failure::Failed;
use events::{Provider, Timestamp};
use home::clock;
use printing::style;

use super::{
    context::{Context, print_line},
    number::count,
    watch::show,
    when,
    words::{one_of, one_of_explained},
};
use printing::{safe, wrapped};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The query: words, "phrases", field:value, prefix*, fuzzy~1, AND, OR, NOT, -word, parentheses.
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    /// Only sessions of these agents.
    #[arg(long, value_delimiter = ',', value_name = "AGENT", value_parser = one_of(Provider::ALL, Provider::as_str))]
    agent: Vec<Provider>,
    /// Only texts of these kinds.
    #[arg(long, value_delimiter = ',', value_name = "KIND", value_parser = one_of_explained(TextKind::ALL, TextKind::as_str, meaning))]
    kind: Vec<TextKind>,
    /// Only this session: its id, the agent's id, or at least 3 characters from the start or end of its id.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Only calls and outputs of this tool, given by its name or kind.
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only sessions that began in a directory with this name.
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Only texts of sessions that were working in this directory or below it.
    #[arg(long, value_name = "DIR")]
    cwd: Option<std::path::PathBuf>,
    /// Only texts from this time on: a day (2026-11-20, yesterday), RFC 3339, HH:MM[:SS] today, or an age (5m, 2h, 3d).
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<String>,
    /// Only texts before this time, in the formats of --since.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
    /// Print the best matches first, or the newest.
    #[arg(long, value_name = "ORDER", default_value = "relevance", value_parser = ["relevance", "time"])]
    sort: String,
    /// Maximum number of hits.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = count, allow_negative_numbers = true)]
    limit: usize,
    /// Show the state of the search index.
    #[arg(long, conflicts_with_all = ["query", "rebuild"])]
    status: bool,
    /// Remove the search index and build it again.
    #[arg(long, conflicts_with = "query")]
    rebuild: bool,
}

fn meaning(kind: TextKind) -> &'static str {
    match kind {
        TextKind::Prompt => "prompts given to the agent",
        TextKind::Answer => "answers of the agent",
        TextKind::Thinking => "the thinking of the model",
        TextKind::Call => "inputs of tools: commands, paths, texts",
        TextKind::Output => "outputs of tools",
        TextKind::Error => "errors that the agent reported",
        TextKind::Question => "questions that the agent asked you",
        TextKind::Summary => "summaries of compacted conversations",
        TextKind::Title => "titles of sessions",
        TextKind::Note => "remarks, and lines of the agent's screen",
        TextKind::Approval => "permission requests and their decisions",
        TextKind::Finding => "findings: failures, limits, stuck sessions",
    }
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.status || arguments.rebuild {
        let client = context.client()?;
        let status = if arguments.rebuild {
            client.send::<RebuildIndex>("", &EmptyBody {})?
        } else {
            client.one::<GetIndex>("")?
        };
        return if context.json { context.print_json(&status) } else { print_line(&in_words(&status)) };
    }
    let query = query(arguments)?;
    if query.q.is_none() && !is_limited(&query) {
        let usage =
            "expected a query, such as `capture search connection refused`; `capture search --help` explains more";
        return Err(Failed::Usage(usage.into()).into());
    }
    let page = context.client()?.get::<SearchTexts>("", &query).map_err(without_parameter)?;
    if context.json { context.print_json(&page) } else { show(&rows(&page, clock::now())) }
}

/// The error without the name of the query's HTTP parameter.
fn without_parameter(mut error: ClientError) -> ClientError {
    if let ClientError::Refused { message, .. } = &mut error
        && let Some(rest) = message.strip_prefix("q: ")
    {
        *message = rest.to_owned();
    }
    error
}

/// Whether a query without words has a filter.
fn is_limited(query: &SearchQuery) -> bool {
    let texts = [&query.session, &query.tool, &query.project, &query.cwd];
    texts.into_iter().any(Option::is_some)
        || !query.agent.is_empty()
        || !query.kind.is_empty()
        || query.since.is_some()
        || query.until.is_some()
}

fn query(arguments: &Arguments) -> anyhow::Result<SearchQuery> {
    let cwd = arguments.cwd.as_ref().map(std::path::absolute).transpose()?;
    let text = arguments.query.join(" ");
    let (since, until) = when::period(arguments.since.as_deref(), arguments.until.as_deref())?;
    Ok(SearchQuery {
        q: (!text.trim().is_empty()).then_some(text),
        session: arguments.session.clone(),
        agent: arguments.agent.clone().into(),
        kind: arguments.kind.clone().into(),
        tool: arguments.tool.clone(),
        project: arguments.project.clone(),
        cwd: cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
        since,
        until,
        sort: Some(if arguments.sort == "time" { SearchSort::Time } else { SearchSort::Relevance }),
        cursor: None,
        limit: Some(Limit::of(arguments.limit)),
    })
}

/// The hits, grouped below the name of their session.
fn rows(page: &SearchPage, now: Timestamp) -> String {
    let mut text = String::new();
    let mut sessions: Vec<(&SearchHit, Vec<&SearchHit>)> = Vec::new();
    for hit in &page.hits {
        match sessions.iter_mut().find(|(first, _)| first.session_id == hit.session_id) {
            Some((_, hits)) => hits.push(hit),
            None => sessions.push((hit, vec![hit])),
        }
    }
    for (session, hits) in sessions {
        let title = session.title.as_deref().unwrap_or("(no title)");
        let head = style::painted(&style::short(&session.session_id), style::MAGENTA);
        let _ =
            writeln!(text, "{}", wrapped(&format!("{head}  {}  {}", session.agent, safe(title)), printing::width(), 4));
        for hit in hits {
            let turn = hit.turn.map(|turn| format!("#{turn}")).unwrap_or_default();
            let line =
                format!("  {:>4}  {turn:>4}  {:<8}  {}", style::age(hit.at, now), hit.kind, marked(&hit.snippet));
            let _ = writeln!(text, "{}", wrapped(&line, printing::width(), 24));
        }
        text.push('\n');
    }
    let shown = page.hits.len() as u64;
    let _ = match page.matches {
        0 => writeln!(text, "no matches"),
        matches if page.at_least => writeln!(text, "{shown} of at least {matches} matches; --limit shows more"),
        matches if matches > shown => writeln!(text, "{shown} of {matches} matches; --limit shows more"),
        1 => writeln!(text, "1 match"),
        matches => writeln!(text, "{matches} matches"),
    };
    if page.indexed < page.total {
        let _ = writeln!(text, "the index is being built: {} of {} events are searchable", page.indexed, page.total);
    }
    text
}

/// The text with the matches in colour.
fn marked(snippet: &Snippet) -> String {
    let part = |range: std::ops::Range<usize>| safe(snippet.text.get(range).unwrap_or_default());
    let mut text = String::new();
    let mut at = 0;
    for [from, to] in snippet.highlights.iter().copied() {
        text += &part(at..from);
        text += &style::painted(&part(from..to), style::ALARM);
        at = to;
    }
    text + &part(at..snippet.text.len())
}

fn in_words(status: &IndexStatus) -> String {
    let IndexStatus { state, indexed, total, texts, bytes, trouble } = status;
    let size = format!("{texts} texts, {:.1} MB", *bytes as f64 / 1e6);
    match state {
        IndexState::Ready => format!("ready: {size}"),
        IndexState::Building => format!("building: {indexed} of {total} events, {size}"),
        IndexState::Paused => {
            let why = trouble.as_deref().unwrap_or("unknown");
            format!("paused at {indexed} of {total} events, {size}: {}", safe(why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(session: u128, text: &str, highlights: &[[usize; 2]]) -> SearchHit {
        SearchHit {
            session_id: events::SessionId::from_bits(session),
            title: Some("Fix the parser".into()),
            agent: Provider::Claude,
            kind: TextKind::Output,
            at: Timestamp::from_millisecond(0),
            id: events::EventId::from_bits(1),
            position: 1,
            sequence: 1,
            turn_id: None,
            turn: Some(3),
            source: None,
            score: 1.0,
            snippet: Snippet { text: text.into(), highlights: highlights.to_vec() },
        }
    }

    #[test]
    fn hits_are_grouped_under_their_session() {
        let hits = vec![hit(1, "a needle", &[[2, 8]]), hit(2, "needle\u{1b}", &[[0, 6]]), hit(1, "more", &[])];
        let page =
            SearchPage { hits, matches: 7, at_least: false, indexed: 5, total: 9, took_us: 1, next_cursor: None };
        let text = rows(&page, Timestamp::from_millisecond(120_000));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("claude  Fix the parser"), "{text}");
        assert_eq!(lines[1], "    2m    #3  output    a needle");
        assert_eq!(lines[2], "    2m    #3  output    more");
        assert!(lines[5].contains("needle") && !lines[5].contains('\u{1b}'), "{text}");
        assert_eq!(lines[7], "3 of 7 matches; --limit shows more");
        assert_eq!(lines[8], "the index is being built: 5 of 9 events are searchable");
    }

    #[test]
    fn the_index_status_is_described_in_one_line() {
        let mut status = IndexStatus { state: IndexState::Ready, texts: 3, bytes: 1_500_000, ..IndexStatus::default() };
        assert_eq!(in_words(&status), "ready: 3 texts, 1.5 MB");
        status = IndexStatus { state: IndexState::Paused, trouble: Some("disk full".into()), ..status };
        assert_eq!(in_words(&status), "paused at 0 of 0 events, 3 texts, 1.5 MB: disk full");
    }
}
