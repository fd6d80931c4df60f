//! Finds out which process runs which session if the agent does not report it.

use std::collections::HashMap;

use events::{Confidence, Timestamp};
use processes::AgentProcess;
use projections::SessionState;

/// Name prefix of sessions of processes whose agent has not named them yet.
pub(super) const AWAITED: &str = "process-";
/// Name prefix of sessions of runs whose agent has not named them yet.
pub(super) const AWAITED_RUN: &str = "run-";

/// A session and the process found for it.
#[derive(Debug)]
pub(super) struct LinkedProcess<'a> {
    pub slot: usize,
    pub process: &'a AgentProcess,
    /// High if the process has the transcript open, medium if only the directory matches.
    pub strength: Confidence,
    /// Sessions the process ran earlier and has left.
    pub left: Vec<usize>,
}

/// Time without events after which a session is not linked by directory to a process that began later, ms.
const RECENT_MS: i64 = 10 * 60 * 1000;

/// Whether a session with this last event may be linked by directory to a process.
pub(super) fn is_recent(last_event_at: Timestamp, process: &AgentProcess, now: Timestamp) -> bool {
    now.since_ms(last_event_at) < RECENT_MS.max(process.age_ms)
}

/// Whether a process has one of the session's transcripts open.
pub(super) fn has_open(state: &SessionState, process: &AgentProcess) -> bool {
    state.session.transcripts.iter().any(|t| process.open_files.iter().any(|f| f.as_os_str() == t.path.as_str()))
}

/// Whether a session belongs to the directory a process runs in: by its own directory, else by the location of its
/// transcripts.
fn runs_in(state: &SessionState, process: &AgentProcess) -> bool {
    let session = &state.session;
    match session.cwd.as_deref() {
        Some(cwd) => process.cwd.as_os_str() == cwd,
        None => {
            let mut paths = session.transcripts.iter().map(|transcript| transcript.path.as_str());
            paths.any(|path| transcripts::providers::is_of_directory(session.provider, path, &process.cwd))
        }
    }
}

/// Finds processes for the sessions without one.
pub(super) fn link<'s, 'a>(
    sessions: impl Iterator<Item = (usize, &'s SessionState)>,
    agents: &'a [AgentProcess],
    now: Timestamp,
) -> Vec<LinkedProcess<'a>> {
    let sessions: Vec<(usize, &SessionState)> = sessions
        .filter(|(_, s)| {
            s.session.parent_session_id.is_none()
                && !s
                    .session
                    .provider_session_id
                    .as_deref()
                    .is_some_and(|id| id.starts_with(AWAITED) || id.starts_with(AWAITED_RUN))
        })
        .collect();
    let mut found: Vec<LinkedProcess<'a>> = Vec::new();
    for process in agents {
        let own = || sessions.iter().filter(|(_, s)| s.session.provider == process.provider);
        let linked: Vec<usize> = own()
            .filter(|(_, s)| s.process() == Some((process.pid, process.start_ticks)))
            .map(|(slot, _)| *slot)
            .collect();
        let opened: Vec<usize> = own()
            .filter(|(_, s)| s.process().is_none() && !s.is_gone() && has_open(s, process))
            .map(|(slot, _)| *slot)
            .collect();
        for slot in &opened {
            let left = if process.shared {
                Vec::new()
            } else {
                linked.iter().copied().filter(|l| !own().any(|(s, state)| s == l && has_open(state, process))).collect()
            };
            found.push(LinkedProcess { slot: *slot, process, strength: Confidence::High, left });
        }
        if process.shared || !linked.is_empty() || !opened.is_empty() {
            continue;
        }
        let here = own()
            .filter(|(_, s)| s.process().is_none() && !s.is_gone() && is_recent(s.session.last_event_at, process, now))
            .filter(|(_, s)| runs_in(s, process))
            .max_by_key(|(_, s)| s.session.last_event_at);
        if let Some((slot, _)) = here {
            found.push(LinkedProcess { slot: *slot, process, strength: Confidence::Medium, left: Vec::new() });
        }
    }
    // If several processes match a session, the strongest match wins, then the process that began first: a launcher
    // begins before its child.
    found.sort_by_key(|f| (f.slot, std::cmp::Reverse(f.strength), f.process.start_ticks, f.process.pid));
    let mut best: HashMap<usize, LinkedProcess<'a>> = HashMap::new();
    for candidate in found {
        best.entry(candidate.slot).or_insert(candidate);
    }
    let mut best: Vec<LinkedProcess<'a>> = best.into_values().collect();
    best.sort_by_key(|f| f.slot);
    best
}
