//! Selects the sessions to remove: one with its sub-agents, or the oldest resting ones.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use api::retention::RemovedSession;
use events::{SessionId, State, Timestamp};
use projections::Session;
use store::{About, PrunedSession, ReadError, Reader, SessionFilter};

/// Time without events after which a session without a process counts as resting, ms.
const RESTS_MS: i64 = 3_600_000;

/// What is removed automatically; nothing by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrunePolicy {
    /// The rule for all sessions.
    pub all: PruneRule,
    /// Additional rules for the sessions of a directory.
    pub projects: Vec<PruneRule>,
}

impl PrunePolicy {
    /// The rules that set a limit.
    pub(crate) fn rules(&self) -> Vec<PruneRule> {
        let asks = |rule: &&PruneRule| rule.older_than_ms.is_some() || rule.larger_than_bytes.is_some();
        // Rules with a size limit come last, because they depend on what the others leave.
        let mut rules: Vec<PruneRule> = self.projects.iter().chain([&self.all]).filter(asks).cloned().collect();
        rules.sort_by_key(|rule| rule.larger_than_bytes.is_some());
        rules
    }
}

/// Selects sessions to remove. Running sessions are never selected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneRule {
    /// Sessions whose last event is older than this, ms.
    pub older_than_ms: Option<i64>,
    /// The oldest sessions, until the database is at most this large, bytes.
    pub larger_than_bytes: Option<u64>,
    /// Only sessions that began in this directory or below it.
    pub project: Option<PathBuf>,
}

impl PruneRule {
    fn is_of_project(&self, session: &Session) -> bool {
        let Some(project) = &self.project else { return true };
        let began_in = session.began_in.as_deref().or(session.cwd.as_deref());
        began_in.is_some_and(|dir| Path::new(dir).starts_with(project))
    }
}

/// The sessions to remove.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) sessions: Vec<(RemovedSession, About)>,
}

/// All sessions.
pub(crate) fn all_sessions(reader: &Reader) -> Result<Vec<Session>, ReadError> {
    reader.sessions(&SessionFilter { before: None, limit: usize::MAX })
}

/// A session with its sub-agents and the sessions merged into it.
#[derive(Debug)]
struct Family<'a>(Vec<&'a Session>);

impl Family<'_> {
    fn last_event_at(&self) -> Timestamp {
        self.0.iter().map(|session| session.last_event_at).max().unwrap_or(Timestamp::MIN)
    }

    fn rests(&self, now: Timestamp) -> bool {
        self.0.iter().all(|session| !seems_to_run(session)) && now.since_ms(self.last_event_at()) > RESTS_MS
    }
}

fn seems_to_run(session: &Session) -> bool {
    let is_at_work = matches!(session.status.state, State::Running | State::WaitingApproval);
    session.status.state != State::Exited && (session.pid.is_some() || is_at_work)
}

/// Groups sessions into families by their topmost session.
fn families(sessions: &[Session]) -> Vec<Family<'_>> {
    let by_id: HashMap<SessionId, &Session> = sessions.iter().map(|session| (session.id, session)).collect();
    let mut families: HashMap<SessionId, Vec<&Session>> = HashMap::new();
    for session in sessions {
        let (mut head, mut seen) = (session, HashSet::from([session.id]));
        while let Some(above) = above(head).and_then(|id| by_id.get(&id))
            && seen.insert(above.id)
        {
            head = above;
        }
        families.entry(head.id).or_default().push(session);
    }
    let mut families: Vec<Family<'_>> = families.into_values().map(Family).collect();
    families.sort_by_key(Family::last_event_at);
    families
}

fn above(session: &Session) -> Option<SessionId> {
    session.merged_into.or(session.parent_session_id)
}

impl Plan {
    /// A session with its sub-agents, including pruned ones; `None` if it does not exist.
    pub(crate) fn of_family(reader: &Reader, id: SessionId) -> Result<Option<Self>, ReadError> {
        let (sessions, pruned) = (all_sessions(reader)?, reader.pruned()?);
        let listed = sessions.iter().map(|session| (session.id, above(session)));
        let unlisted = pruned.iter().map(|session| (session.known.id, session.about.above));
        let links: Vec<(SessionId, Option<SessionId>)> = listed.chain(unlisted).collect();
        let mut family = HashSet::from([id]);
        loop {
            let before = family.len();
            let below = links.iter().filter(|(_, above)| above.is_some_and(|above| family.contains(&above)));
            let below: Vec<SessionId> = below.map(|(id, _)| *id).collect();
            family.extend(below);
            if family.len() == before {
                break;
            }
        }
        let members: Vec<&Session> = sessions.iter().filter(|session| family.contains(&session.id)).collect();
        let mut plan = Self::default();
        plan.add(reader, &members)?;
        let pruned = pruned.into_iter().filter(|session| family.contains(&session.known.id));
        plan.sessions.extend(pruned.map(of_pruned));
        // The session itself first.
        plan.sessions.sort_by_key(|(session, _)| session.id != id);
        Ok(plan.sessions.first().is_some_and(|(first, _)| first.id == id).then_some(plan))
    }

    /// The oldest resting families that the rules select.
    pub(crate) fn of_rules(
        reader: &Reader,
        sessions: &[Session],
        rules: &[PruneRule],
        now: Timestamp,
    ) -> Result<Self, ReadError> {
        let (mut plan, mut gone) = (Self::default(), HashSet::new());
        let mut left = reader.used_bytes()?;
        let families = families(sessions);
        for rule in rules {
            for family in families.iter().filter(|family| family.rests(now)) {
                let head = family.0.first().map(|session| session.id);
                let fits = family.0.iter().all(|session| rule.is_of_project(session));
                let age = now.since_ms(family.last_event_at());
                let is_old = rule.older_than_ms.is_some_and(|limit| age > limit);
                let is_too_much = rule.larger_than_bytes.is_some_and(|limit| left > limit);
                let is_unlimited = rule.older_than_ms.is_none() && rule.larger_than_bytes.is_none();
                if fits && (is_old || is_too_much || is_unlimited) && head.is_some_and(|head| gone.insert(head)) {
                    left = left.saturating_sub(plan.add(reader, &family.0)?);
                }
            }
        }
        Ok(plan)
    }

    /// Adds sessions; returns their approximate size in bytes.
    fn add(&mut self, reader: &Reader, sessions: &[&Session]) -> Result<u64, ReadError> {
        let mut sum = 0;
        for session in sessions {
            let (events, bytes) = reader.size_of(session.id)?;
            sum += bytes;
            let removed = RemovedSession {
                id: session.id,
                provider: session.provider,
                title: session.title.clone(),
                last_event_at: session.last_event_at,
                parent_session_id: session.parent_session_id,
                is_running: seems_to_run(session),
                was_pruned: false,
                events,
                bytes,
            };
            self.sessions.push((removed, About::of(session)));
        }
        Ok(sum)
    }

    pub(crate) fn about(&self) -> impl Iterator<Item = &About> {
        self.sessions.iter().map(|(_, about)| about)
    }
}

/// Describes a pruned session, whose events are gone and which can still be forgotten.
fn of_pruned(session: PrunedSession) -> (RemovedSession, About) {
    let PrunedSession { known, about } = session;
    let removed = RemovedSession {
        id: known.id,
        provider: known.provider,
        title: None,
        last_event_at: about.last_event_at.unwrap_or(Timestamp::MIN),
        parent_session_id: about.above,
        is_running: false,
        was_pruned: true,
        events: 0,
        bytes: 0,
    };
    (removed, about)
}

#[cfg(test)]
pub(crate) mod tests;
