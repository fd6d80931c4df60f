//! `capture check` and `capture why`: what an agent said, held against what its commands showed, and what is
//! wrong with a session.

use std::{cmp::Reverse, fmt::Write, path::Path};

use api::{
    check::{CheckQuery, CheckedTurn},
    list::{Limit, MAX_LIMIT},
    routes::{CheckSession, HealthSources, ListSessions, NoQuery},
    sessions::{ActiveFilter, SessionsQuery},
};
use client::{Client, failure::Failed};
use events::{ClaimVerdict, Finding};
use home::clock;
use printing::{prose, safe, style};
use projections::Session;
use serde::Serialize;

use super::{
    context::{Context, find, print_line},
    report::findings_of,
};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id [default: the last active session of this directory].
    session: Option<String>,
    /// Check all turns (at most the last 1000), not only the last finished one.
    #[arg(long)]
    all: bool,
    /// Accept a statement that was true before the last edits.
    #[arg(long)]
    stale_ok: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Why {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id [default: the last active session of this directory].
    session: Option<String>,
}

/// Number of sessions among which that of this directory is looked for.
const SESSIONS: usize = 500;
/// Maximum number of findings shown.
const FINDINGS: usize = 20;
/// Column at which a value begins.
const VALUE_COLUMN: usize = 10;

#[derive(Serialize)]
struct Checked<'a> {
    session: &'a Session,
    turns: &'a [CheckedTurn],
    /// Number of statements that do not agree with the record.
    accusations: usize,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let client = context.client()?;
    let session = named_or_here(&client, arguments.session.as_deref())?;
    let last = if arguments.all { MAX_LIMIT } else { 1 };
    let query = CheckQuery { last: Some(Limit::of(last)) };
    let turns = client.get::<CheckSession>(&session.id.to_string(), &query)?.turns;
    if turns.is_empty() {
        let id = style::short(&session.id);
        return Err(Failed::NotFound(format!("session {id} has no finished turn to check")).into());
    }
    let accuses = |verdict: ClaimVerdict| verdict.accuses() && !(arguments.stale_ok && verdict == ClaimVerdict::Stale);
    let claims = turns.iter().flat_map(|checked| &checked.turn.receipt.claims);
    let accusations = claims.filter(|claim| accuses(claim.verdict)).count();
    if context.json {
        context.print_json(&Checked { session: &session, turns: &turns, accusations })?;
    } else {
        print_line(report(&session, &turns).trim_end())?;
    }
    match accusations {
        0 => Ok(()),
        1 => Err(Failed::Other("1 statement does not agree with the record".into()).into()),
        n => Err(Failed::Other(format!("{n} statements do not agree with the record")).into()),
    }
}

/// What the checks of each turn showed, and what the agent said about them.
fn report(session: &Session, turns: &[CheckedTurn]) -> String {
    let mut text = String::new();
    let title = session.title.as_deref().unwrap_or("(no title)");
    let _ = writeln!(text, "{}  {}  {}", style::short(&session.id), session.provider, safe(title));
    let last = turns.last().map(|checked| checked.turn.number);
    for CheckedTurn { turn, checks, subagents } in turns {
        let claims = &turn.receipt.claims;
        // In a long session, turns without checks and statements are left out.
        if checks.is_none() && subagents.is_empty() && claims.is_empty() && last != Some(turn.number) {
            continue;
        }
        let ended = turn.completed_at.map(style::local).unwrap_or_default();
        let _ = writeln!(text, "\nturn {}, ended {ended}", turn.number);
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{}", prose(&format!("{name:<VALUE_COLUMN$}{}", safe(value)), VALUE_COLUMN));
        };
        line("checks", checks.as_deref().unwrap_or("no checks ran"));
        for subagent in subagents {
            let id = style::short(&subagent.session_id);
            let title = subagent.title.as_deref().unwrap_or("(no title)");
            line("", &format!("{}  (sub-agent {id}: {title})", subagent.checks));
        }
        for claim in claims {
            line("said", &format!("“{}”", claim.said));
            line("", &format!("{}: {}", claim.verdict.as_str(), claim.why));
        }
        if claims.is_empty() {
            line("said", "nothing about checks, commits or pushes that capture recognizes");
        }
    }
    text
}

pub(super) fn why(context: &Context, arguments: &Why) -> anyhow::Result<()> {
    let client = context.client()?;
    let session = named_or_here(&client, arguments.session.as_deref())?;
    let mut findings = findings_of(&client, &session, FINDINGS)?;
    findings.sort_by_key(|finding| Reverse(finding.severity));
    if context.json {
        #[derive(Serialize)]
        struct Reasons<'a> {
            session: &'a Session,
            findings: &'a [Finding],
        }
        return context.print_json(&Reasons { session: &session, findings: &findings });
    }
    print_line(reasons(&session, &findings).trim_end())
}

/// The status in one line, then each open finding with its cause and what to do about it.
fn reasons(session: &Session, findings: &[Finding]) -> String {
    let mut text = String::new();
    let status = &session.status;
    let (state, age) = (style::state(status, style::colours()), style::age(status.since, clock::now()));
    let doing = status.activity.as_deref().map(|activity| format!(": {}", safe(activity))).unwrap_or_default();
    let _ = writeln!(text, "{}", prose(&format!("{}  {state} for {age}{doing}", style::short(&session.id)), 2));
    for finding in findings {
        let _ = writeln!(text, "\n{}", prose(&safe(&finding.what), 2));
        let _ = writeln!(text, "  {}", prose(&format!("why: {}", safe(&finding.why)), 4));
        let _ = writeln!(text, "  {}", prose(&format!("to do: {}", without_links(finding.kind.facts().advice)), 4));
    }
    if findings.is_empty() {
        let _ = writeln!(text, "nothing is wrong: no finding is open");
    }
    text
}

/// A text without links of Markdown: only their words.
fn without_links(text: &str) -> String {
    let mut parts = text.split("](");
    let mut out = parts.next().unwrap_or_default().replace('[', "");
    for part in parts {
        let (_, rest) = part.split_once(')').unwrap_or(("", part));
        out.push_str(&rest.replace('[', ""));
    }
    out
}

/// The session with this name, or else the last active one of the current directory: one that runs in it, above it or
/// below it.
pub(super) fn named_or_here(client: &Client, given: Option<&str>) -> anyhow::Result<Session> {
    if let Some(given) = given {
        return find(client, given);
    }
    let here = std::env::current_dir()?;
    let query =
        SessionsQuery { active: Some(ActiveFilter::All), limit: Some(Limit::of(SESSIONS)), ..SessionsQuery::default() };
    let sessions = client.get::<ListSessions>("", &query)?.sessions;
    let is_here = |session: &Session| {
        let cwd = session.cwd.as_deref().map(Path::new);
        session.parent_session_id.is_none()
            && session.merged_into.is_none()
            && cwd.is_some_and(|cwd| here.starts_with(cwd) || cwd.starts_with(&here))
    };
    sessions.into_iter().find(is_here).ok_or_else(|| {
        let here = style::path(&here.display().to_string());
        let reads = client
            .get::<HealthSources>("", &NoQuery {})
            .is_ok_and(|health| health.sources.iter().any(|source| source.reading.is_some()));
        let why = if reads { "; the history is still being read, so try again in a moment" } else { "" };
        Failed::NotFound(format!("no session ran in {here}{why}; name one (`capture ps --all` lists all)")).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_shown_as_their_words() {
        assert_eq!(without_links("See [boundaries](#boundaries). Or [a](b) and c."), "See boundaries. Or a and c.");
        assert_eq!(without_links("Run `capture check`."), "Run `capture check`.");
    }
}
