//! Detects facts that only several sessions together show: two sessions edit the same file at the same time, a quota
//! stops several sessions of an agent, several sessions wait for the user.
//!
//! Owns the data that is compared between sessions: the last edited files of each session, and which sessions have an
//! open turn, are stopped by a quota, or wait for the user. A session and its sub-agents count as one. Returns what to
//! raise and resolve in which session; past events raise nothing. The memory is bounded by the number of watched
//! sessions.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use events::{
    Event, EventId, FindingKind, Payload, Provider, Reason, SessionId, Severity, State, StatusChanged, Timestamp, Topic,
};
use projections::Session;

use crate::{findings::NewFinding, rules::DetectorLimits};

/// Maximum number of files whose last edits are remembered; the one edited longest ago is dropped first.
const FILES: usize = 512;
/// Maximum number of sessions whose edits of a file are remembered.
const WRITERS: usize = 4;
/// Maximum nesting of sub-agents.
const DEPTH: usize = 16;
/// Number of last characters of an id that name a session in a sentence.
const SHORT_ID: usize = 8;

/// A file that a step of a session changed.
#[derive(Debug)]
pub(crate) struct EditedFile {
    /// The path, as the agent names it.
    pub(crate) path: String,
    /// The event that reports the edit.
    pub(crate) event: EventId,
}

/// The time of an event, and the limits by which it is judged.
#[derive(Clone, Copy)]
pub(crate) struct EventContext<'a> {
    /// The time.
    pub(crate) at: Timestamp,
    /// Whether the event was already over when it was observed; it then raises nothing.
    pub(crate) past: bool,
    /// The limits.
    pub(crate) rules: &'a DetectorLimits,
}

/// The change to make in a session.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Raise or update a finding.
    Raise(SessionId, NewFinding),
    /// Resolve the finding of this kind.
    Resolve(SessionId, FindingKind, &'static str),
}

/// The state of sessions that work at the same time.
#[derive(Debug, Default)]
pub(crate) struct Together {
    members: HashMap<SessionId, Member>,
    files: HashMap<String, VecDeque<FileEdit>>,
    /// The sessions stopped by a quota or a rate limit, and since when.
    stopped: BTreeMap<SessionId, (Provider, Timestamp)>,
    /// The sessions that wait for a decision or an answer, and since when.
    waits: BTreeMap<SessionId, Timestamp>,
    /// The open findings about shared files: the session that edited last, and the other session.
    shared: BTreeMap<SessionId, SharedFile>,
    /// The session with the finding about the quota of its agent.
    quota: BTreeMap<Provider, SessionId>,
    /// The session with the finding that several sessions wait.
    blocked: Option<SessionId>,
}

/// The facts about a session that matter to others.
#[derive(Debug)]
struct Member {
    provider: Provider,
    parent: Option<SessionId>,
    cwd: Option<String>,
    /// Whether a turn is open.
    works: bool,
}

#[derive(Debug)]
struct FileEdit {
    session: SessionId,
    at: Timestamp,
    event: EventId,
}

#[derive(Debug)]
struct SharedFile {
    /// The other session; unknown for a finding from before a restart.
    other: Option<SessionId>,
    last_at: Timestamp,
    count: u32,
}

impl Together {
    /// Restores a finding from before a restart.
    pub(crate) fn restore(&mut self, session: SessionId, kind: FindingKind, last_at: Timestamp, count: u32) {
        if kind == FindingKind::SharedFiles {
            self.shared.insert(session, SharedFile { other: None, last_at, count });
        } else if kind == FindingKind::SeveralBlocked {
            self.blocked = Some(session);
        }
    }

    /// Forgets a session that is no longer watched.
    pub(crate) fn forget(&mut self, session: SessionId) {
        self.members.remove(&session);
        self.stopped.remove(&session);
        self.waits.remove(&session);
        self.shared.remove(&session);
        self.quota.retain(|_, owner| *owner != session);
        self.blocked = self.blocked.filter(|owner| *owner != session);
    }

    /// Number of sessions and files remembered.
    pub(crate) fn len(&self) -> usize {
        self.members.len() + self.files.len() + self.shared.len() + self.stopped.len() + self.waits.len()
    }

    /// Applies an event, and the files that it reports as changed.
    pub(crate) fn apply(&mut self, event: &Event, edited: Vec<EditedFile>, now: EventContext<'_>) -> Vec<Effect> {
        let id = event.session_id;
        let mut effects = Vec::new();
        #[expect(clippy::wildcard_enum_match_arm, reason = "few kinds of events say something of others")]
        match &event.payload {
            Payload::SessionStarted(started) => {
                let member = self.member(id, event.provider);
                member.parent = started.parent_session_id.or(member.parent);
                member.cwd = started.cwd.clone().or_else(|| member.cwd.take());
            }
            Payload::Annotation(note) if note.topic == Topic::Cwd => {
                self.member(id, event.provider).cwd = Some(note.value.clone());
            }
            Payload::Annotation(note) if note.topic == Topic::MergedInto => {
                self.leave(id, now, &mut effects);
            }
            Payload::TurnStarted(_) => {
                self.member(id, event.provider).works = true;
                self.stopped.remove(&id);
                self.settle_quota(event.provider, id, now, &mut effects);
            }
            Payload::TurnCompleted(_) => {
                self.member(id, event.provider).works = false;
                self.part(id, "a session that edited the file has ended its turn", &mut effects);
            }
            Payload::SessionExited(_) if event.derived => self.leave(id, now, &mut effects),
            Payload::StatusChanged(change) => self.changed(id, event.provider, change, now, &mut effects),
            Payload::ToolResult(_) => {
                for edited in &edited {
                    self.edited(id, event.provider, edited, now, &mut effects);
                }
            }
            _ => {}
        }
        effects
    }

    /// Compares a session with the reducer's state; raises nothing. Once the session has events, these decide whether
    /// it works, because they may be newer.
    pub(crate) fn check(&mut self, session: &Session, has_quota_finding: bool) {
        let is_new = !self.members.contains_key(&session.id);
        let member = self.member(session.id, session.provider);
        member.parent = session.parent_session_id.or(member.parent);
        member.cwd = session.cwd.clone().or_else(|| member.cwd.take());
        member.works |= is_new && session.turn.is_some();
        if has_quota_finding {
            self.quota.entry(session.provider).or_insert(session.id);
        }
    }

    /// The next time at which time alone would change something.
    pub(crate) fn due(&self, rules: &DetectorLimits) -> Option<Timestamp> {
        let parts = self.shared.values().map(|shared| shared.last_at.plus_ms(rules.shared_files_ms));
        let waits = self.blocked.is_none().then(|| self.waiting()).and_then(|waiting| {
            let enough = (rules.blocked.max(2) as usize).checked_sub(1)?;
            waiting.get(enough).map(|(since, _)| since.plus_ms(rules.blocked_ms))
        });
        parts.chain(waits).min()
    }

    /// Advances the time.
    pub(crate) fn pass(&mut self, at: Timestamp, rules: &DetectorLimits) -> Vec<Effect> {
        let mut effects = Vec::new();
        let over: Vec<SessionId> = self
            .shared
            .iter()
            .filter(|(_, shared)| shared.last_at.plus_ms(rules.shared_files_ms) <= at)
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            self.shared.remove(&id);
            effects.push(Effect::Resolve(id, FindingKind::SharedFiles, "they edit different files now"));
        }
        self.settle_blocked(EventContext { at, past: false, rules }, &mut effects);
        effects
    }

    fn member(&mut self, id: SessionId, provider: Provider) -> &mut Member {
        self.members.entry(id).or_insert_with(|| Member { provider, parent: None, cwd: None, works: false })
    }

    /// The topmost session: the session itself, or the ancestor that started it as a sub-agent.
    fn root(&self, id: SessionId) -> SessionId {
        let mut root = id;
        for _ in 0..DEPTH {
            let Some(parent) = self.members.get(&root).and_then(|member| member.parent) else { break };
            root = parent;
        }
        root
    }

    fn leave(&mut self, id: SessionId, now: EventContext<'_>, effects: &mut Vec<Effect>) {
        self.part(id, "a session that edited the file has ended", effects);
        // All its findings end with it.
        self.forget(id);
        for edits in self.files.values_mut() {
            edits.retain(|edit| edit.session != id);
        }
        self.files.retain(|_, edits| !edits.is_empty());
        self.settle_blocked(now, effects);
    }

    /// Ends the session's findings about shared files, because it does not edit for now.
    fn part(&mut self, id: SessionId, why: &'static str, effects: &mut Vec<Effect>) {
        let over: Vec<SessionId> = self
            .shared
            .iter()
            .filter(|(session, shared)| **session == id || shared.other == Some(id))
            .map(|(session, _)| *session)
            .collect();
        for session in over {
            self.shared.remove(&session);
            effects.push(Effect::Resolve(session, FindingKind::SharedFiles, why));
        }
    }

    fn edited(
        &mut self,
        id: SessionId,
        provider: Provider,
        file: &EditedFile,
        now: EventContext<'_>,
        effects: &mut Vec<Effect>,
    ) {
        let at = now.at;
        let cwd = self.member(id, provider).cwd.clone();
        // The directory of a relative path is unknown.
        let path = match (file.path.starts_with('/'), cwd) {
            (true, _) => file.path.clone(),
            (false, Some(cwd)) => format!("{}/{}", cwd.trim_end_matches('/'), file.path.trim_start_matches("./")),
            (false, None) => return,
        };
        let root = self.root(id);
        let meets = |edit: &&FileEdit| {
            at.since_ms(edit.at) <= now.rules.shared_files_ms
                && self.root(edit.session) != root
                && self.members.get(&edit.session).is_some_and(|member| member.works)
        };
        let met = self.files.get(&path).and_then(|edits| edits.iter().rev().find(meets));
        if let Some((other, before, evidence)) = met.map(|edit| (edit.session, edit.at, edit.event))
            && !now.past
        {
            self.meet((id, other), &path, (before, at), [evidence, file.event], effects);
        }
        let edits = self.files.entry(path).or_default();
        edits.retain(|edit| edit.session != id);
        if edits.len() == WRITERS {
            edits.pop_front();
        }
        edits.push_back(FileEdit { session: id, at, event: file.event });
        if self.files.len() > FILES {
            let last = |edits: &VecDeque<FileEdit>| edits.back().map(|edit| edit.at);
            let oldest = self.files.iter().min_by(|a, b| (last(a.1), a.0).cmp(&(last(b.1), b.0)));
            if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                self.files.remove(&oldest);
            }
        }
    }

    /// Handles two sessions that edited the same file, `other` first.
    fn meet(
        &mut self,
        (id, other): (SessionId, SessionId),
        path: &str,
        (before, at): (Timestamp, Timestamp),
        evidence: [EventId; 2],
        effects: &mut Vec<Effect>,
    ) {
        // One finding for both sessions, in the session that edited second at first.
        let owner = match self.shared.get(&other) {
            Some(shared) if shared.other == Some(id) => other,
            Some(_) | None => id,
        };
        let shared = self.shared.entry(owner).or_insert(SharedFile { other: None, last_at: at, count: 0 });
        shared.other = Some(if owner == id { other } else { id });
        shared.last_at = at;
        shared.count = shared.count.saturating_add(1);
        let agent = |id: SessionId| self.members.get(&id).map_or("an agent", |member| member.provider.as_str());
        let why = format!(
            "{} (session {}) edited it {} s after {} (session {}), and both are working",
            agent(id),
            short(id),
            at.since_ms(before) / 1_000,
            agent(other),
            short(other),
        );
        let count = self.shared.get(&owner).map_or(1, |shared| shared.count);
        let what = format!("two sessions edit the same file: {path}");
        let finding = NewFinding {
            subject: Some(path.to_owned()),
            evidence: evidence.to_vec(),
            count,
            ..NewFinding::new(FindingKind::SharedFiles, Severity::Warning, what, why, at)
        };
        effects.push(Effect::Raise(owner, finding));
    }

    fn changed(
        &mut self,
        id: SessionId,
        provider: Provider,
        change: &StatusChanged,
        now: EventContext<'_>,
        effects: &mut Vec<Effect>,
    ) {
        let at = now.at;
        if change.to.awaits_answer(change.reason) {
            self.waits.entry(id).or_insert(at);
        } else {
            self.waits.remove(&id);
        }
        let finding = change.reason.filter(|_| change.to == State::Waiting).and_then(Reason::finding);
        if finding == Some(FindingKind::Quota) {
            self.stopped.insert(id, (provider, at));
        } else if matches!(change.to, State::Running | State::WaitingApproval | State::Exited) {
            self.stopped.remove(&id);
        }
        self.settle_quota(provider, id, now, effects);
        self.settle_blocked(now, effects);
    }

    /// The sessions of an agent that a quota stopped within the time limit, each counted once with its sub-agents.
    fn stopped(&self, provider: Provider, rules: &DetectorLimits) -> BTreeSet<SessionId> {
        let of_agent = || self.stopped.iter().filter(|(_, (of, _))| *of == provider);
        let last = of_agent().map(|(_, (_, at))| *at).max();
        let near = |at: Timestamp| last.is_some_and(|last| last.since_ms(at) <= rules.shared_quota_ms);
        of_agent().filter(|(_, (_, at))| near(*at)).map(|(id, _)| self.root(*id)).collect()
    }

    fn settle_quota(&mut self, provider: Provider, id: SessionId, now: EventContext<'_>, effects: &mut Vec<Effect>) {
        let EventContext { at, past, rules } = now;
        if past || !self.stopped.contains_key(&id) && !self.quota.contains_key(&provider) {
            return;
        }
        let stopped = self.stopped(provider, rules);
        if stopped.len() < 2 {
            if let Some(owner) = self.quota.remove(&provider) {
                let why = "fewer than two sessions are stopped";
                effects.push(Effect::Resolve(owner, FindingKind::SharedQuota, why));
            }
            return;
        }
        let owner = *self.quota.entry(provider).or_insert(id);
        let names: Vec<String> = stopped.iter().map(|id| short(*id)).collect();
        let what = format!("{} sessions of {provider} are stopped by a quota or a rate limit", stopped.len());
        let why = format!("each of these sessions reported this limit as its reason: {}", names.join(", "));
        let count = u32::try_from(stopped.len()).unwrap_or(u32::MAX);
        let finding = NewFinding { count, ..NewFinding::new(FindingKind::SharedQuota, Severity::Error, what, why, at) };
        effects.push(Effect::Raise(owner, finding));
    }

    /// The sessions that wait for the user, the longest waiting first, each counted once with its sub-agents.
    fn waiting(&self) -> Vec<(Timestamp, SessionId)> {
        let mut waiting: BTreeMap<SessionId, Timestamp> = BTreeMap::new();
        for (id, since) in &self.waits {
            let first = waiting.entry(self.root(*id)).or_insert(*since);
            *first = (*since).min(*first);
        }
        let mut waiting: Vec<_> = waiting.into_iter().map(|(id, since)| (since, id)).collect();
        waiting.sort_unstable();
        waiting
    }

    fn settle_blocked(&mut self, now: EventContext<'_>, effects: &mut Vec<Effect>) {
        let EventContext { at, past, rules } = now;
        if past {
            return;
        }
        let waiting = self.waiting();
        let least = rules.blocked.max(2) as usize;
        if self.blocked.is_some() {
            if waiting.len() < least {
                self.end_blocked(effects);
            }
            return;
        }
        let long = waiting.iter().filter(|(since, _)| at.since_ms(*since) >= rules.blocked_ms).count();
        let Some((since, owner)) = waiting.first().copied().filter(|_| long >= least) else { return };
        self.blocked = Some(owner);
        let names: Vec<String> = waiting.iter().map(|(_, id)| short(*id)).collect();
        let what = format!("{} sessions wait for you", waiting.len());
        let why = format!("each asks for a decision or an answer: {}", names.join(", "));
        let count = u32::try_from(waiting.len()).unwrap_or(u32::MAX);
        let finding = NewFinding {
            count,
            first_at: since,
            ..NewFinding::new(FindingKind::SeveralBlocked, Severity::Warning, what, why, at)
        };
        effects.push(Effect::Raise(owner, finding));
    }

    fn end_blocked(&mut self, effects: &mut Vec<Effect>) {
        if let Some(owner) = self.blocked.take() {
            effects.push(Effect::Resolve(owner, FindingKind::SeveralBlocked, "fewer sessions wait"));
        }
    }
}

/// The end of an id, as lists show it.
fn short(id: SessionId) -> String {
    let id = id.to_string();
    id.get(id.len().saturating_sub(SHORT_ID)..).unwrap_or_default().to_owned()
}
