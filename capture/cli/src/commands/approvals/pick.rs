//! Lets the user choose a pending request.

use std::io::Write;

use api::{
    approvals::{ApprovalView, ApprovalsQuery},
    list::Limit,
    routes::ListApprovals,
};
use client::{Client, failure::Failed};
use events::ApprovalState;
use home::clock;
use printing::style;

use super::one;
use crate::{
    commands::context::{Context, flush_typed, typed},
    show::request::headline,
};
use printing::{is_with_a_person, safe};

/// Maximum number of requests to choose from.
const MOST: usize = 30;

/// Returns the request with this id, or the one the user picks, and whether it was picked.
pub(super) fn picked(context: &Context, client: &Client, id: Option<&str>) -> anyhow::Result<(ApprovalView, bool)> {
    if let Some(id) = id {
        return Ok((one(client, id)?, false));
    }
    let query = ApprovalsQuery {
        state: Some(ApprovalState::Pending),
        limit: Some(Limit::of(MOST)),
        ..ApprovalsQuery::default()
    };
    let mut pending = client.get::<ListApprovals>("", &query)?.approvals;
    if pending.is_empty() {
        return Err(Failed::NotFound("no permission request is pending".into()).into());
    }
    pending.retain(|shown| shown.answer.is_some());
    if pending.is_empty() {
        let nothing = "capture cannot answer any of the pending requests; `capture approvals` shows why";
        return Err(Failed::NotFound(nothing.into()).into());
    }
    if context.json || !is_with_a_person() {
        let ids: Vec<String> = pending.iter().map(|shown| style::short(&shown.approval.id)).collect();
        let why = format!("give the id of a request; these are pending: {}", ids.join(", "));
        return Err(Failed::Usage(why).into());
    }
    let at = if pending.len() == 1 { 0 } else { choose(&pending)? };
    // Read the request again by its full id, so that the decision applies to what is shown next.
    Ok((one(client, pending[at].approval.id.as_str())?, true))
}

fn choose(pending: &[ApprovalView]) -> anyhow::Result<usize> {
    let mut err = printing::stderr();
    let now = clock::now();
    for (index, shown) in pending.iter().enumerate() {
        let approval = &shown.approval;
        let directory = style::path(approval.cwd.as_deref().map(safe).as_deref().unwrap_or(""));
        let age = style::age(approval.opened_at, now);
        writeln!(
            err,
            "{:>3}  {}  {age:>4}  {}  {directory}",
            index + 1,
            style::short(&approval.id),
            approval.provider
        )?;
        writeln!(err, "     {}", headline(approval))?;
        if let Some(risk) = &shown.risk {
            writeln!(err, "     risk: {}", safe(risk))?;
        }
        if let Some(boundary) = &shown.boundary {
            writeln!(err, "     {}", super::you_said(boundary))?;
        }
    }
    drop(err);
    flush_typed();
    let answer = typed(&format!("Which one? [1-{}, Enter for none] ", pending.len()))?;
    let chosen = answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    chosen
        .filter(|at| *at < pending.len())
        .ok_or_else(|| Failed::Refused("no request was chosen, so nothing was decided".into()).into())
}
