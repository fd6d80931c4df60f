//! `capture show`

use std::io::Write;

use api::{history::HistoryQuery, list::Limit, routes::ListTurns};
use home::clock;
use printing::style;
use projections::{Session, Turn};
use serde::Serialize;

use printing::{prose, safe};

use crate::commands::export::session::Subagents;

use super::{
    context::{Context, find},
    conversation, ps, seen,
};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id.
    session: String,
    /// Show the whole conversation: prompts, answers, tool calls with their results, approvals.
    #[arg(long)]
    all: bool,
    /// With --all, show the conversations of sub-agents too, where they were started.
    #[arg(long, requires = "all")]
    subagents: bool,
}

#[derive(Serialize)]
struct SessionDetails<'a> {
    session: &'a Session,
    turns: &'a [Turn],
}

/// Column at which a value begins.
const VALUE_COLUMN: usize = 12;
/// Column at which the description of a turn begins.
const TURN_COLUMN: usize = 6;
/// Number of most recent turns shown.
const TURNS: u32 = 10;

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let client = context.client()?;
    let session = find(&client, &arguments.session)?;
    if !context.json && printing::is_seen() && printing::is_with_a_person() {
        seen::completion(&client, session.id);
    }
    if arguments.all {
        let subagents = if arguments.subagents { Subagents::Unfolded } else { Subagents::Folded };
        return conversation::show(context, &client, &session, subagents);
    }
    let after = session.turns.saturating_sub(TURNS);
    let last = HistoryQuery { after: Some(after.into()), limit: Some(Limit::of(TURNS as usize)), cursor: None };
    let turns = client.get::<ListTurns>(&session.id.to_string(), &last)?.turns;
    if context.json {
        return context.print_json(&SessionDetails { session: &session, turns: &turns });
    }
    let mut out = printing::stdout();
    let now = clock::now();
    writeln!(
        out,
        "{}  for {}",
        style::state(&session.status, style::colours()),
        style::age(session.status.since, now)
    )?;
    let mut line = |name: &str, value: Option<&str>| -> std::io::Result<()> {
        match value.filter(|v| !v.is_empty()) {
            Some(value) => writeln!(out, "{}", prose(&format!("{name:<12}{}", safe(value)), VALUE_COLUMN)),
            None => Ok(()),
        }
    };
    line("finding", ps::needs(&client)?.hidden(&session).as_deref())?;
    let headless = session.headless.then_some("a program runs the agent, so you cannot type into it");
    line("headless", headless)?;
    line("title", session.title.as_deref())?;
    line("now", session.summary.current.as_deref())?;
    line("checks", session.summary.checks.as_deref())?;
    line("last prompt", session.summary.last_prompt.as_deref())?;
    line("recent", session.summary.recent.as_deref())?;
    let agent = format!("{} {}", session.provider, session.cli_version.as_deref().unwrap_or(""));
    line("agent", Some(agent.trim()))?;
    line("model", session.model.as_deref())?;
    line("directory", session.cwd.as_deref().map(style::path).as_deref())?;
    line("branch", session.git_branch.as_deref())?;
    line("mode", session.permission_mode.as_deref())?;
    line("process", session.pid.map(|p| p.to_string()).as_deref())?;
    line("id", Some(&session.id.to_string()))?;
    line("agent's id", session.provider_session_id.as_deref())?;
    line("started", Some(&style::local(session.started_at)))?;
    let failures: Vec<String> = session.failures.iter().map(|(kind, n)| format!("{} {n}", kind.as_str())).collect();
    line("failures", Some(&failures.join(", ")))?;
    let usage = session.usage;
    line(
        "tokens",
        Some(&format!(
            "{} in, {} out, {} from cache, {} to cache",
            usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens
        )),
    )?;
    for file in &session.transcripts {
        let issues = if file.issues > 0 { format!(", {} damaged records", file.issues) } else { String::new() };
        line("transcript", Some(&format!("{} ({} of {} bytes read{issues})", file.path, file.offset, file.size)))?;
    }
    if !turns.is_empty() {
        writeln!(out, "\nTURNS")?;
    }
    for turn in &turns {
        let outcome = turn.outcome.map_or("open", |o| o.as_str());
        let prompt = safe(&projections::shorten::verbatim_line(turn.prompt.as_deref().unwrap_or("(no prompt)"), 90));
        let (number, began, calls) = (turn.number, style::local(turn.started_at), turn.tool_calls);
        let line = format!("{number:>4}  {began}  {outcome:<11} {calls:>3} calls  {prompt}");
        writeln!(out, "{}", prose(&line, TURN_COLUMN))?;
        if let Some(text) = &turn.text {
            let line = format!("      → {}", safe(&projections::shorten::verbatim_line(text, 100)));
            writeln!(out, "{}", prose(&line, TURN_COLUMN + 2))?;
        }
        if let Some(checks) = turn.receipt.line() {
            writeln!(out, "{}", prose(&format!("      checks: {}", safe(&checks)), TURN_COLUMN + 2))?;
        }
        for claim in turn.receipt.claims.iter().filter(|claim| claim.verdict.accuses()) {
            let line =
                format!("      {}: said “{}”, but {}", claim.verdict.as_str(), safe(&claim.said), safe(&claim.why));
            writeln!(out, "{}", prose(&line, TURN_COLUMN + 2))?;
        }
    }
    Ok(())
}
