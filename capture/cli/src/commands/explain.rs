//! `capture explain`: why a session has or had its status, down to the rule that matched its screen.

use std::io::Write;

use api::{
    history::{HistoryQuery, StatusChange},
    list::Limit,
    routes::{ExplainSession, GetStatus, StatusHistory},
    sessions::{StatusAt, StatusQuery},
};
use client::{Client, ClientError, failure::Failed};
use events::Timestamp;
use home::clock;
use host_protocol::screen::{Explanation, Need, RuleMatch};
use printing::style;
use projections::{Session, SessionStatus, WeighedClaim, status::ClaimStanding};
use serde::Serialize;

use super::{
    context::{Context, find},
    when,
};
use printing::{prose, safe};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id.
    session: String,
    /// Explain the status at this time: a day (2026-11-20, yesterday), RFC 3339, HH:MM[:SS] today, or an age (5m, 2h, 3d).
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    at: Option<String>,
    /// Also show how capture reads the session's screen: the parts it looks at, and why each screen rule matches or
    /// does not.
    #[arg(long)]
    screen: bool,
}

#[derive(Serialize)]
struct Explained<'a> {
    session: &'a Session,
    /// The status at the requested time, all claims in effect then, and the rule that decided.
    moment: &'a StatusAt,
    /// The last changes up to that time.
    history: &'a [StatusChange],
    /// How the screen of the session's run is interpreted, while its terminal host is connected.
    screen: Option<&'a Explanation>,
}

/// Number of most recent changes shown.
const CHANGES: usize = 10;
/// Number of most recent changes searched for those before a past time.
const LOOKED_THROUGH: usize = 1000;

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let now = clock::now();
    let at = when::since("--at", arguments.at.as_deref())?;
    let client = context.client()?;
    let session = find(&client, &arguments.session)?;
    let moment = client.get::<GetStatus>(&session.id.to_string(), &StatusQuery { at });
    let moment = moment.map_err(|error| unseen(error, &session, at))?;
    let history = changes(&client, &session, at)?;
    let screen = if session.run_id.is_some() && at.is_none() { screen_of(&client, &session)? } else { None };
    if context.json {
        let (moment, history, screen) = (&moment, &history, screen.as_ref());
        return context.print_json(&Explained { session: &session, moment, history, screen });
    }
    let mut out = printing::stdout();
    if let Some(at) = at {
        writeln!(out, "at {}, {} ago:", style::local(at), style::age(at, now))?;
    }
    explain_status(&mut out, &moment, at.unwrap_or(now))?;
    writeln!(out, "\nlast changes")?;
    for change in &history {
        let reason = change.reason.map_or("", |r| r.as_str());
        let evidence = safe(&change.evidence.join("; "));
        let line = format!("  {}  {:<16} {reason:<14} {evidence}", style::local(change.at), change.to);
        writeln!(out, "{}", prose(&line, INDENT))?;
    }
    match &screen {
        Some(screen) if arguments.screen => explain_screen(&mut out, screen)?,
        Some(_) => writeln!(out, "\n--screen shows how capture reads the session's screen")?,
        None if arguments.screen => writeln!(out, "\nno screen: the session is not in a terminal of `capture run`")?,
        None => {}
    }
    Ok(())
}

/// The error for a time before the session: when capture first saw it, in local time.
fn unseen(error: ClientError, session: &Session, at: Option<Timestamp>) -> anyhow::Error {
    match (error.status(), at) {
        (Some(404), Some(at)) if session.started_at > at => {
            let (id, first) = (style::short(&session.id), style::local(session.started_at));
            Failed::NotFound(format!("capture first saw session {id} at {first}, after the requested time")).into()
        }
        _ => error.into(),
    }
}

/// The last changes up to a time.
fn changes(client: &Client, session: &Session, at: Option<Timestamp>) -> anyhow::Result<Vec<StatusChange>> {
    let limit = if at.is_some() { LOOKED_THROUGH } else { CHANGES };
    let last = HistoryQuery { limit: Some(Limit::of(limit)), ..HistoryQuery::default() };
    let mut all: Vec<StatusChange> = client.get::<StatusHistory>(&session.id.to_string(), &last)?;
    all.retain(|change| at.is_none_or(|at| change.at <= at));
    all.drain(..all.len().saturating_sub(CHANGES));
    Ok(all)
}

/// Indentation of the continuation lines of a sentence, columns.
const INDENT: usize = 4;

fn explain_status(out: &mut dyn Write, moment: &StatusAt, now: Timestamp) -> std::io::Result<()> {
    let SessionStatus { since, confidence, activity, .. } = &moment.status;
    writeln!(
        out,
        "{}  since {} ({} ago), confidence {confidence}",
        style::state(&moment.status, style::colours()),
        style::local(*since),
        style::age(*since, now)
    )?;
    if let Some(activity) = activity {
        writeln!(out, "{}", prose(&format!("activity: {}", safe(activity)), INDENT))?;
    }
    writeln!(out, "{}", prose(&format!("decided: {}", moment.account.rule.words()), INDENT))?;
    for (title, standings) in [
        ("evidence for this state", &[ClaimStanding::Decides, ClaimStanding::Agrees][..]),
        ("evidence against this state", &[ClaimStanding::Weaker, ClaimStanding::Overruled]),
        ("not counted", &[ClaimStanding::NotYet, ClaimStanding::Over]),
    ] {
        let claims: Vec<_> = moment.account.claims.iter().filter(|c| standings.contains(&c.standing)).collect();
        if !claims.is_empty() {
            writeln!(out, "\n{title}")?;
        }
        for claim in claims {
            writeln!(out, "{}", prose(&format!("  {}", line(claim, now)), INDENT))?;
        }
    }
    Ok(())
}

/// A claim in one line: its source, strength, standing, start and end, and state.
fn line(claim: &WeighedClaim, now: Timestamp) -> String {
    let WeighedClaim { source, strength, standing, state, at, .. } = claim;
    let age = style::age(*at, now);
    let seconds = |of: Timestamp| format!("{:.1}s", of.since_ms(now).max(0) as f64 / 1000.0);
    let limit = match (claim.standing, claim.from, claim.until) {
        (ClaimStanding::NotYet, Some(from), _) => format!(", takes effect in {}", seconds(from)),
        (ClaimStanding::Over, _, _) => ", expired".to_owned(),
        (_, _, Some(until)) => format!(", expires in {}", seconds(until)),
        (_, _, None) => String::new(),
    };
    let agent = claim.agent.as_deref().map_or_else(String::new, |agent| format!("sub-agent {}: ", safe(agent)));
    let standing = standing.words();
    format!("{source:<11} {strength:<7} {standing:<9} {age:>5} ago{limit}  {agent}{} [{state}]", safe(&claim.claim))
}

/// How the screen of a session's run is interpreted; `None` if the run is over or its terminal host is not connected.
fn screen_of(client: &Client, session: &Session) -> anyhow::Result<Option<Explanation>> {
    match client.one::<ExplainSession>(&session.id.to_string()) {
        Ok(screen) => Ok(Some(screen)),
        Err(error) if matches!(error.status(), Some(401 | 403 | 404 | 409)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Maximum number of characters shown of a region or an expression.
const SHOWN: usize = 76;

fn explain_screen(out: &mut dyn Write, screen: &Explanation) -> std::io::Result<()> {
    let version = screen.version.as_deref().unwrap_or("of unknown version");
    let files: Vec<String> = screen.files.iter().map(|f| format!("{} (for {})", safe(&f.name), f.versions)).collect();
    writeln!(out, "\nthe screen: {} {}, read by {}", screen.provider, safe(version), files.join(", "))?;
    for region in &screen.regions {
        let text = match region.text.as_deref().map(str::trim_end) {
            None => "is not on the screen".to_owned(),
            Some("") => "is empty".to_owned(),
            Some(text) => {
                let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
                let last = lines.last().copied().unwrap_or_default().trim();
                let more = if lines.len() > 1 { format!("({} lines) … ", lines.len()) } else { String::new() };
                format!("{more}{}", shortened(last))
            }
        };
        writeln!(out, "  region {:<14} {text}", region.name)?;
    }
    writeln!(out, "rules, highest priority first")?;
    for rule in &screen.rules {
        let reason = rule.reason.map_or("", |r| r.as_str());
        let outcome = match rule.outcome {
            RuleMatch::Chosen => "MATCHES, and decides".to_owned(),
            RuleMatch::Below => "matches; a rule above it decides".to_owned(),
            RuleMatch::Debouncing { ms } => format!("matches; must keep matching for {ms} ms"),
            RuleMatch::Held => "matches; the previous rule's claim is kept for a moment".to_owned(),
            RuleMatch::NoMatch => "no".to_owned(),
        };
        writeln!(out, "  {:>4} {:<22} {:<16} {reason:<13} {outcome}", rule.priority, safe(&rule.name), rule.state)?;
        for check in rule.checks.iter().filter(|c| c.ok == (rule.outcome != RuleMatch::NoMatch)) {
            let (region, pattern) = (safe(&check.region), shortened(&check.pattern));
            let words = match (check.need, check.found.as_deref()) {
                (Need::None, Some(found)) => {
                    format!("in {region}: `{}`, which must not appear ({pattern})", shortened(found))
                }
                (Need::None, None) => continue,
                (Need::All | Need::Any, Some(found)) => format!("in {region}: `{}`", shortened(found)),
                (Need::All | Need::Any, None) => format!("in {region}: not found: {pattern}"),
            };
            writeln!(out, "{}", prose(&format!("       {words}"), 2 * INDENT))?;
        }
    }
    if screen.kept {
        writeln!(out, "no rule matches now; the last claim still applies")?;
    }
    if screen.panics > 0 {
        writeln!(out, "the parser failed {} times; the screen was reset", screen.panics)?;
    }
    Ok(())
}

fn shortened(text: &str) -> String {
    let one_line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.char_indices().nth(SHOWN) {
        Some((end, _)) => safe(&one_line[..end]) + "…",
        None => safe(&one_line),
    }
}
