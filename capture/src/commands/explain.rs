//! `capture explain`

use std::io::Write;

use events::{Confidence, Reason, State, Timestamp};
use projections::{Evidence, Session, Status};
use serde::{Deserialize, Serialize};

use super::{Context, find, style};
use crate::{clock, terminal::safe};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session: its id as `ps` shows it, the agent's id, or the beginning of either.
    session: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Change {
    at: Timestamp,
    observed_at: Timestamp,
    from: Option<State>,
    to: State,
    reason: Option<Reason>,
    confidence: Confidence,
    evidence: Vec<String>,
}

#[derive(Serialize)]
struct Explained<'a> {
    session: &'a Session,
    history: &'a [Change],
}

/// So many of the last changes are shown.
const CHANGES: usize = 10;

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let client = context.client()?;
    let session = find(&client, &arguments.session)?;
    let history: Vec<Change> =
        client.get(&format!("/api/v1/sessions/{}/status/history?limit={CHANGES}", session.id))?;
    if context.json {
        return context.print_json(&Explained { session: &session, history: &history });
    }
    let mut out = std::io::stdout().lock();
    let Status { since, confidence, activity, evidence, disagreements, .. } = &session.status;
    let now = clock::now();
    writeln!(
        out,
        "{}  since {} ({} ago), confidence {confidence}",
        style::state(&session.status, style::colours()),
        style::local(*since),
        style::age(*since, now)
    )?;
    if let Some(activity) = activity {
        writeln!(out, "activity: {}", safe(activity))?;
    }
    let claims = |out: &mut dyn Write, title: &str, claims: &[Evidence]| -> std::io::Result<()> {
        if !claims.is_empty() {
            writeln!(out, "\n{title}")?;
        }
        for claim in claims {
            writeln!(
                out,
                "  {:<11} {:<7} {:>5} ago  {}",
                claim.source,
                claim.strength,
                style::age(claim.at, now),
                safe(&claim.claim)
            )?;
        }
        Ok(())
    };
    claims(&mut out, "because", evidence)?;
    claims(&mut out, "against it (weaker, or overruled)", disagreements)?;
    writeln!(out, "\nlast changes")?;
    for change in &history {
        let reason = change.reason.map_or("", |r| r.as_str());
        writeln!(
            out,
            "  {}  {:<16} {reason:<14} {}",
            style::local(change.at),
            change.to,
            safe(&change.evidence.join("; "))
        )?;
    }
    Ok(())
}
