//! The quality of sessions.

use std::collections::{BTreeMap, HashMap};

use api::usage::{ApprovalLatency, Quality, QualityReport, SessionQuality};
use events::{DecidedBy, SessionId, Timestamp, TurnOutcome};
use projections::{Approval, Turn};
use store::{EntityFilter, ReadError, Reader, SessionFacts};

use crate::SessionPeriod;

/// A longer time between two turns counts as idle: the user was away.
const IDLE_MS: i64 = 30 * 60_000;
/// Number of turns and approvals read at a time.
const PAGE: usize = 1_000;

/// Selects the sessions to evaluate.
#[derive(Debug, Clone)]
pub struct QualityRequest {
    /// The sessions and the period, for ended turns and permission requests.
    pub of: SessionPeriod,
    /// Maximum number of sessions.
    pub limit: usize,
}

/// Evaluates the quality of sessions.
///
/// # Errors
/// When the store cannot be read.
pub fn quality(reader: &Reader, request: &QualityRequest) -> Result<QualityReport, ReadError> {
    let (since, until) = request.of.bounds();
    let facts = reader.session_facts(since)?;
    // A sub-agent's work is part of its parent's turn.
    let sessions: HashMap<SessionId, &SessionFacts> = facts
        .iter()
        .filter(|session| request.of.session.map_or(session.parent.is_none(), |id| session.id == id))
        .filter(|session| request.of.has(session))
        .map(|session| (session.id, session))
        .collect();
    let approvals = approvals(reader, request, (since, until), &sessions)?;
    let mut waits: HashMap<SessionId, i64> = HashMap::new();
    for approval in &approvals {
        *waits.entry(approval.session_id).or_default() += waited(approval);
    }
    let mut judged = Vec::new();
    for (id, turns) in turns(reader, request, since)? {
        let Some(session) = sessions.get(&id) else { continue };
        let ended = turns.iter().filter_map(|turn| Some((turn, turn.completed_at?)));
        let ended: Vec<(&Turn, Timestamp)> = ended.filter(|(_, end)| *end >= since && *end < until).collect();
        let Some(last_turn_at) = ended.iter().map(|(_, end)| *end).max() else { continue };
        let quality = of_turns(&ended, waits.get(&id).copied().unwrap_or_default());
        let (provider, title) = (session.provider, session.title.clone());
        judged.push(SessionQuality { session_id: id, provider, title, last_turn_at, quality });
    }
    judged.sort_by_key(|session| (std::cmp::Reverse(session.last_turn_at), session.session_id));
    let mut total = Quality::default();
    judged.iter().for_each(|session| add(&mut total, &session.quality));
    let more_sessions = judged.len().saturating_sub(request.limit) as u64;
    judged.truncate(request.limit);
    let (since, until) = (request.of.since, request.of.until);
    Ok(QualityReport { since, until, total, sessions: judged, more_sessions, approvals: latencies(&approvals) })
}

/// The turns by session, in order.
fn turns(
    reader: &Reader,
    request: &QualityRequest,
    since: Timestamp,
) -> Result<BTreeMap<SessionId, Vec<Turn>>, ReadError> {
    let mut all: BTreeMap<SessionId, Vec<Turn>> = BTreeMap::new();
    if let Some(id) = request.of.session {
        let turns = all.entry(id).or_default();
        loop {
            let page = reader.turns(id, turns.last().map_or(0, |turn| turn.number), PAGE)?;
            let more = page.len() == PAGE;
            turns.extend(page);
            if !more {
                return Ok(all);
            }
        }
    }
    let mut after = None;
    loop {
        let page = reader.turns_since(since, after, PAGE)?;
        after = page.last().map(|(id, turn)| (*id, turn.number)).filter(|_| page.len() == PAGE);
        for (id, turn) in page {
            all.entry(id).or_default().push(turn);
        }
        if after.is_none() {
            return Ok(all);
        }
    }
}

/// The closed permission requests.
fn approvals(
    reader: &Reader,
    request: &QualityRequest,
    (since, until): (Timestamp, Timestamp),
    sessions: &HashMap<SessionId, &SessionFacts>,
) -> Result<Vec<Approval>, ReadError> {
    let mut all = Vec::new();
    let mut filter = EntityFilter::<Approval> { states: None, session: request.of.session, behind: None, limit: PAGE };
    loop {
        let page = reader.entities(&filter)?;
        let last = page.last().map(|approval| (approval.opened_at, approval.id.clone()));
        let more = page.len() == PAGE && last.as_ref().is_some_and(|(at, _)| *at >= since);
        all.extend(page.into_iter().filter(|approval| {
            approval.opened_at >= since
                && approval.opened_at < until
                && approval.waited_ms.is_some()
                && sessions.contains_key(&approval.session_id)
        }));
        if !more {
            return Ok(all);
        }
        filter.behind = last;
    }
}

fn waited(approval: &Approval) -> i64 {
    i64::try_from(approval.waited_ms.unwrap_or_default()).unwrap_or(i64::MAX)
}

fn of_turns(turns: &[(&Turn, Timestamp)], approvals_ms: i64) -> Quality {
    let mut quality = Quality::default();
    let (mut ran, mut waiting, mut idle) = (0_i64, 0_i64, 0_i64);
    let mut before: Option<Timestamp> = None;
    for (turn, end) in turns {
        quality.turns += 1;
        quality.completed_turns += u64::from(turn.outcome == Some(TurnOutcome::Completed));
        quality.tool_calls += u64::from(turn.tool_calls);
        quality.failed_calls += u64::from(turn.tool_errors);
        for (kind, count) in &turn.failures {
            *quality.failures.entry(*kind).or_default() += u64::from(*count);
        }
        if let Some(loops) = turn.test_fix_loops {
            *quality.test_fix_loops.get_or_insert(0) += u64::from(loops);
        }
        ran = ran.saturating_add(end.since_ms(turn.started_at).max(0));
        match before.map(|before| turn.started_at.since_ms(before).max(0)) {
            Some(gap @ ..=IDLE_MS) => waiting = waiting.saturating_add(gap),
            Some(gap) => idle = idle.saturating_add(gap),
            None => {}
        }
        before = Some(*end);
    }
    // Requests may overlap, and a turn may have ended while its request was still open.
    let approvals_ms = approvals_ms.clamp(0, ran);
    let ms = |n: i64| u64::try_from(n).unwrap_or_default();
    quality.active_ms = ms(ran - approvals_ms);
    quality.waiting_ms = ms(waiting.saturating_add(approvals_ms));
    quality.idle_ms = ms(idle);
    quality
}

fn add(total: &mut Quality, one: &Quality) {
    total.turns += one.turns;
    total.completed_turns += one.completed_turns;
    total.tool_calls += one.tool_calls;
    total.failed_calls += one.failed_calls;
    for (kind, count) in &one.failures {
        *total.failures.entry(*kind).or_default() += count;
    }
    if let Some(loops) = one.test_fix_loops {
        *total.test_fix_loops.get_or_insert(0) += loops;
    }
    total.active_ms += one.active_ms;
    total.waiting_ms += one.waiting_ms;
    total.idle_ms += one.idle_ms;
}

/// How long users took to decide: all tools together, then each tool, the most frequent first.
fn latencies(approvals: &[Approval]) -> Vec<ApprovalLatency> {
    let by_people = approvals.iter().filter(|approval| match approval.by {
        // A request that capture did not decide was answered in the agent's own dialog.
        Some(DecidedBy::Person) | None => approval.allowed.is_some(),
        Some(DecidedBy::Policy | DecidedBy::Grant) => false,
    });
    let mut all: Vec<u64> = Vec::new();
    let mut by_tool: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for approval in by_people {
        let waited = approval.waited_ms.unwrap_or_default();
        all.push(waited);
        by_tool.entry(approval.tool.as_deref().unwrap_or("(unknown)")).or_default().push(waited);
    }
    if all.is_empty() {
        return Vec::new();
    }
    let mut tools: Vec<ApprovalLatency> =
        by_tool.into_iter().map(|(tool, times)| latency(Some(tool.to_owned()), times)).collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(tool.answered));
    std::iter::once(latency(None, all)).chain(tools).collect()
}

fn latency(tool: Option<String>, mut times: Vec<u64>) -> ApprovalLatency {
    let (p50_ms, p90_ms) = (rank(&mut times, 50), rank(&mut times, 90));
    ApprovalLatency { tool, answered: times.len() as u64, p50_ms, p90_ms }
}

/// The percentile of the times.
pub(crate) fn rank(times: &mut [u64], percent: usize) -> u64 {
    times.sort_unstable();
    let rank = (times.len() * percent).div_ceil(100).max(1);
    times.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
