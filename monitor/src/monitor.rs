//! The monitor of all sessions: the list of watched sessions, and the session with the next deadline.

use std::collections::{BTreeSet, HashMap};

use events::{Event, Finding, FindingId, FindingKind, SessionId, Timestamp};
use projections::Session;

use crate::{
    rules::DetectorLimits,
    together::{Effect, EventContext, Together},
    watch::{SessionWatch, is_past},
};

/// Watches sessions. Every method with an input returns the findings that it changed, for the caller to store: opened,
/// substantially changed, acknowledged or resolved. The same log results in the same findings.
///
/// An event costs a comparison with the last steps of its session: some microseconds for the result of a tool, less for
/// other events. The memory of each session is bounded, and so is the number of sessions.
#[derive(Debug)]
pub struct Monitor {
    rules: DetectorLimits,
    sessions: HashMap<SessionId, WatchedSession>,
    due: BTreeSet<(Timestamp, SessionId)>,
    together: Together,
    /// The position up to which events were applied before a restart.
    taken: u64,
}

#[derive(Debug)]
struct WatchedSession {
    watch: SessionWatch,
    due: Option<Timestamp>,
}

impl Monitor {
    /// Creates a monitor without sessions.
    #[must_use]
    pub fn new(rules: DetectorLimits) -> Self {
        Self { rules, sessions: HashMap::new(), due: BTreeSet::new(), together: Together::default(), taken: 0 }
    }

    /// Restores the state from before a restart: the open findings, and the position of the last event that was
    /// applied. Call it first. Then apply the last events of each active session again, which raise no findings up to
    /// that position, and check the sessions. If the position is unknown, pass 0, and also pass the newest state of
    /// resolved findings, as far back as the first of these events. Then no finding is raised for a time at which its
    /// cause is known to have been over.
    pub fn restore(&mut self, findings: impl IntoIterator<Item = Finding>, taken: u64) {
        self.taken = self.taken.max(taken);
        for finding in findings {
            let id = finding.session_id;
            if finding.is_open() {
                self.together.restore(id, finding.kind, finding.last_at, finding.count);
            }
            self.watched(id).0.restore(finding);
            self.schedule(id);
        }
    }

    /// Applies other limits. Open findings remain until their cause is over.
    pub fn configure(&mut self, rules: DetectorLimits) {
        self.rules = rules;
        let ids: Vec<SessionId> = self.sessions.keys().copied().collect();
        for id in ids {
            let (watch, rules) = self.watched(id);
            watch.findings.turn_off(&rules.off);
            self.schedule(id);
        }
    }

    /// Applies a committed event; the events of a session must be in order. History raises no findings.
    pub fn apply(&mut self, event: &Event) -> Vec<Finding> {
        let id = event.session_id;
        let mut changed = self.make_room(id);
        let again = event.position <= self.taken;
        let (watch, rules) = self.watched(id);
        watch.apply(event, again, rules);
        let (edited, at) = (watch.take_edited(), watch.clock());
        let past = again || is_past(event);
        let effects = self.together.apply(event, edited, EventContext { at, past, rules: &self.rules });
        changed.extend(self.carry_out(effects, at));
        changed.extend(self.settle(id, event.observed_at));
        changed
    }

    /// Compares a session with the reducer's state, after its events were applied. This adds the information of events
    /// from before a restart, and ends findings that are over according to the reducer. For a session without any event
    /// it raises nothing.
    pub fn check(&mut self, session: &Session, now: Timestamp) -> Vec<Finding> {
        let id = session.id;
        let mut changed = self.make_room(id);
        let (watch, rules) = self.watched(id);
        watch.check(session, now, rules);
        let has_quota_finding = watch.findings.has(FindingKind::SharedQuota);
        self.together.check(session, has_quota_finding);
        changed.extend(self.settle(id, now));
        changed
    }

    /// Advances the time.
    pub fn advance(&mut self, now: Timestamp) -> Vec<Finding> {
        let mut changed = Vec::new();
        // The earliest deadline first; at the same time, deadlines of single sessions first.
        while let Some(due) = self.next_deadline().filter(|due| *due <= now) {
            let Some((due, id)) = self.due.first().copied().filter(|(of_session, _)| *of_session <= due) else {
                let effects = self.together.pass(due, &self.rules);
                if effects.is_empty() {
                    break;
                }
                changed.extend(self.carry_out(effects, due));
                continue;
            };
            self.due.remove(&(due, id));
            if let Some(watched) = self.sessions.get_mut(&id) {
                watched.due = None;
                watched.watch.pass(due, &self.rules);
            }
            changed.extend(self.settle(id, due));
        }
        changed
    }

    /// The next time at which [`advance`](Self::advance) would change something; `None` if only an event can.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _)| *due).into_iter().chain(self.together.due(&self.rules)).min()
    }

    /// Records that the user has seen a finding. Returns nothing if there is no open finding with this id, or if it was
    /// already acknowledged.
    pub fn acknowledge(&mut self, id: &FindingId, now: Timestamp) -> Vec<Finding> {
        let found =
            self.sessions.values_mut().find(|watched| watched.watch.findings.open().any(|finding| finding.id == *id));
        let Some(watched) = found else { return Vec::new() };
        watched.watch.findings.acknowledge(id, now);
        watched.watch.findings.drain()
    }

    /// The open findings of all sessions.
    pub fn open(&self) -> impl Iterator<Item = &Finding> {
        self.sessions.values().flat_map(|watched| watched.watch.findings.open())
    }

    /// The number of watched sessions.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Number of steps, calls and findings remembered for all sessions.
    #[must_use]
    pub fn memory_size(&self) -> usize {
        self.sessions.values().map(|watched| watched.watch.memory_size()).sum::<usize>() + self.together.len()
    }

    fn watched(&mut self, id: SessionId) -> (&mut SessionWatch, &DetectorLimits) {
        let rules = &self.rules;
        let watched = self
            .sessions
            .entry(id)
            .or_insert_with(|| WatchedSession { watch: SessionWatch::new(id, rules), due: None });
        (&mut watched.watch, rules)
    }

    /// Drops the session that has been quiet for longest if there is no room for a new one.
    fn make_room(&mut self, id: SessionId) -> Vec<Finding> {
        if self.sessions.len() < self.rules.sessions.max(1) || self.sessions.contains_key(&id) {
            return Vec::new();
        }
        let oldest = self.sessions.iter().min_by_key(|(id, watched)| (watched.watch.clock(), **id)).map(|(id, _)| *id);
        let Some(mut oldest) = oldest.and_then(|oldest| self.forget(oldest)) else { return Vec::new() };
        oldest.watch.abandon();
        oldest.watch.findings.drain()
    }

    fn forget(&mut self, id: SessionId) -> Option<WatchedSession> {
        let watched = self.sessions.remove(&id)?;
        self.together.forget(id);
        if let Some(due) = watched.due {
            self.due.remove(&(due, id));
        }
        Some(watched)
    }

    /// Applies the effects of several sessions.
    fn carry_out(&mut self, effects: Vec<Effect>, at: Timestamp) -> Vec<Finding> {
        let mut changed = Vec::new();
        for effect in effects {
            let (Effect::Raise(id, _) | Effect::Resolve(id, ..)) = &effect;
            let id = *id;
            let Some(watched) = self.sessions.get_mut(&id) else { continue };
            let watch = &mut watched.watch;
            match effect {
                Effect::Raise(_, finding) => watch.raise_shared(finding, at.max(watch.clock())),
                Effect::Resolve(_, kind, why) => watch.findings.resolve(kind.as_str(), at.max(watch.clock()), why),
            }
            changed.extend(watch.findings.drain());
            self.schedule(id);
        }
        changed
    }

    fn settle(&mut self, id: SessionId, now: Timestamp) -> Vec<Finding> {
        let Some(watched) = self.sessions.get_mut(&id) else { return Vec::new() };
        let changed = watched.watch.findings.drain();
        let now = now.max(watched.watch.clock());
        if watched.watch.is_over(now) {
            self.forget(id);
        } else {
            self.schedule(id);
        }
        changed
    }

    fn schedule(&mut self, id: SessionId) {
        let Some(watched) = self.sessions.get_mut(&id) else { return };
        let due = watched.watch.due(&self.rules);
        if due == watched.due {
            return;
        }
        if let Some(before) = watched.due {
            self.due.remove(&(before, id));
        }
        watched.due = due;
        if let Some(due) = due {
            self.due.insert((due, id));
        }
    }
}
