//! The monitor of all sessions: which are monitored, and which has the next deadline.

use std::collections::{BTreeSet, HashMap};

use events::{Event, Finding, FindingId, FindingKind, SessionId, Timestamp};
use projections::Session;

use crate::{
    rules::DetectorLimits,
    together::{Effect, EventContext, Together},
    watch::{SessionWatch, is_past},
};

/// Watches sessions. Every method that takes something gives the findings that changed by it, for the caller
/// to store: opened, changed in what matters, acknowledged, resolved. The same log gives the same findings.
///
/// An event costs a look at the last steps of its session: some microseconds for a result of a tool, less for
/// anything else. What is remembered of a session is bounded, and so is the number of sessions.
#[derive(Debug)]
pub struct Monitor {
    rules: DetectorLimits,
    sessions: HashMap<SessionId, WatchedSession>,
    due: BTreeSet<(Timestamp, SessionId)>,
    together: Together,
    /// Up to this position events were taken before a restart.
    taken: u64,
}

#[derive(Debug)]
struct WatchedSession {
    watch: SessionWatch,
    due: Option<Timestamp>,
}

impl Monitor {
    /// A monitor that knows of nothing yet.
    #[must_use]
    pub fn new(rules: DetectorLimits) -> Self {
        Self { rules, sessions: HashMap::new(), due: BTreeSet::new(), together: Together::default(), taken: 0 }
    }

    /// Takes over what was known before a restart: the findings that are open, and the position of the last
    /// event that was taken. Call it first; then take the last events of each active session again, which only
    /// inform up to that position, and look at the sessions. Where the position is not known, 0: then give the
    /// newest state of resolved findings too, as far back as the first of these events, and no finding is
    /// raised for a time at which its cause is known to have been over.
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

    /// Puts other limits in force. Findings that are open stay until their cause is over.
    pub fn configure(&mut self, rules: DetectorLimits) {
        self.rules = rules;
        let ids: Vec<SessionId> = self.sessions.keys().copied().collect();
        for id in ids {
            let (watch, rules) = self.watched(id);
            watch.findings.turn_off(&rules.off);
            self.schedule(id);
        }
    }

    /// Takes a committed event; those of a session in their order. History informs and raises nothing.
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

    /// Takes the reducer's word on a session, after its events. It adds what events of before a restart said,
    /// and ends what is over by the reducer's account; of a session nothing was heard of it raises nothing.
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

    /// Lets time pass.
    pub fn advance(&mut self, now: Timestamp) -> Vec<Finding> {
        let mut changed = Vec::new();
        // What is due first is done first; of the same moment, what is of one session.
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

    /// When [`advance`](Self::advance) would next change something; nothing when only an event can.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _)| *due).into_iter().chain(self.together.due(&self.rules)).min()
    }

    /// Notes that somebody knows of a finding; nothing when there is no open one with this id, or somebody did.
    pub fn acknowledge(&mut self, id: &FindingId, now: Timestamp) -> Vec<Finding> {
        let found =
            self.sessions.values_mut().find(|watched| watched.watch.findings.open().any(|finding| finding.id == *id));
        let Some(watched) = found else { return Vec::new() };
        watched.watch.findings.acknowledge(id, now);
        watched.watch.findings.drain()
    }

    /// The findings that are open, of all sessions.
    pub fn open(&self) -> impl Iterator<Item = &Finding> {
        self.sessions.values().flat_map(|watched| watched.watch.findings.open())
    }

    /// How many sessions are watched.
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

    /// Gives up the session that was quiet longest, when a new one has no room.
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

    /// Does what several sessions bring about.
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
