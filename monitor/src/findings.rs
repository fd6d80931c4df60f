//! The findings of one session: each cause has at most one open finding.
//!
//! Owns how a finding is opened, updated, acknowledged and resolved, and which of these changes are reported. A cause
//! that was over at a time is not raised again for that time or an earlier one, so events that are read again after a
//! restart raise nothing twice.

use std::collections::{BTreeMap, VecDeque};

use events::{
    ApprovalId, Confidence, EventId, Finding, FindingId, FindingKind, FindingState, SessionId, Severity, Timestamp,
};

/// Maximum number of open findings in a session; further ones are raised when one is closed.
const OPEN: usize = 64;
/// Number of resolved causes whose end is remembered.
const OVER: usize = 128;
/// Maximum number of events per finding: half of them the oldest, half the newest.
const EVIDENCE: usize = 16;

/// A finding to be raised.
#[derive(Debug, Clone)]
pub(crate) struct NewFinding {
    pub(crate) kind: FindingKind,
    pub(crate) severity: Severity,
    pub(crate) key: String,
    pub(crate) what: String,
    pub(crate) why: String,
    pub(crate) subject: Option<String>,
    pub(crate) approval_id: Option<ApprovalId>,
    pub(crate) evidence: Vec<EventId>,
    pub(crate) first_at: Timestamp,
    pub(crate) count: u32,
    pub(crate) until: Option<Timestamp>,
}

impl NewFinding {
    /// A new finding that occurs once, with its kind as the key.
    pub(crate) fn new(kind: FindingKind, severity: Severity, what: String, why: String, at: Timestamp) -> Self {
        Self {
            kind,
            severity,
            key: kind.as_str().to_owned(),
            what,
            why,
            subject: None,
            approval_id: None,
            evidence: Vec::new(),
            first_at: at,
            count: 1,
            until: None,
        }
    }
}

#[derive(Debug)]
struct OpenFinding {
    finding: Finding,
    /// The count when the finding was last reported.
    told: u32,
}

/// The findings of a session.
#[derive(Debug)]
pub(crate) struct SessionFindings {
    session: SessionId,
    /// Whether findings may be raised now; false while history is replayed.
    pub(crate) audible: bool,
    open: BTreeMap<String, OpenFinding>,
    over: VecDeque<(String, Timestamp)>,
    off: Vec<FindingKind>,
    changed: Vec<Finding>,
    /// The confidence of the evidence that is being examined.
    by: Confidence,
}

impl SessionFindings {
    pub(crate) fn new(session: SessionId, off: &[FindingKind]) -> Self {
        Self {
            session,
            audible: false,
            open: BTreeMap::new(),
            over: VecDeque::new(),
            off: off.to_vec(),
            changed: Vec::new(),
            by: Confidence::High,
        }
    }

    /// Sets the confidence of the evidence that is examined next: findings are no more certain.
    pub(crate) const fn examine(&mut self, by: Confidence) {
        self.by = by;
    }

    /// Raises no findings of these kinds from now on.
    pub(crate) fn turn_off(&mut self, kinds: &[FindingKind]) {
        self.off = kinds.to_vec();
    }

    /// Restores a finding from before a restart.
    pub(crate) fn restore(&mut self, finding: Finding) {
        if finding.is_open() {
            let told = finding.count;
            self.open.insert(finding.key.clone(), OpenFinding { finding, told });
        } else {
            let over = finding.resolved_at.unwrap_or(finding.last_at);
            self.record_resolved(finding.key, over);
        }
    }

    /// Returns the findings that changed since the last call.
    pub(crate) fn drain(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.changed)
    }

    pub(crate) fn open(&self) -> impl Iterator<Item = &Finding> {
        self.open.values().map(|entry| &entry.finding)
    }

    pub(crate) fn is_open(&self, key: &str) -> bool {
        self.open.contains_key(key)
    }

    pub(crate) fn has(&self, kind: FindingKind) -> bool {
        self.open().any(|finding| finding.kind == kind)
    }

    /// Whether a cause that began at `since` has been neither raised nor resolved since then.
    pub(crate) fn is_news(&self, key: &str, since: Timestamp) -> bool {
        !self.is_open(key) && self.over_at(key).is_none_or(|over| over < since)
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len() + self.over.len()
    }

    fn over_at(&self, key: &str) -> Option<Timestamp> {
        self.over.iter().find(|(over, _)| over == key).map(|(_, at)| *at)
    }

    fn record_resolved(&mut self, key: String, at: Timestamp) {
        let before = self.over_at(&key);
        self.over.retain(|(over, _)| *over != key);
        if self.over.len() == OVER {
            self.over.pop_front();
        }
        self.over.push_back((key, before.map_or(at, |before| before.max(at))));
    }

    /// Opens a finding, or updates the open finding with the same key.
    pub(crate) fn raise(&mut self, raise: NewFinding, at: Timestamp) {
        if !self.audible || self.off.contains(&raise.kind) {
            return;
        }
        let over = self.over_at(&raise.key);
        if let Some(entry) = self.open.get_mut(&raise.key) {
            if let Some(changed) = entry.update(raise, self.by, at) {
                self.changed.push(changed);
            }
            return;
        }
        if self.open.len() == OPEN || over.is_some_and(|over| at <= over) {
            return;
        }
        // An earlier start belongs to the resolved finding.
        let first_at = over.filter(|over| raise.first_at <= *over).map_or(raise.first_at.min(at), |_| at);
        let finding = Finding {
            id: Finding::id_of(self.session, &raise.key, first_at),
            kind: raise.kind,
            severity: raise.severity,
            state: FindingState::Open,
            confidence: self.by,
            session_id: self.session,
            key: raise.key.clone(),
            what: raise.what,
            why: raise.why,
            subject: raise.subject,
            approval_id: raise.approval_id,
            evidence: shortened(raise.evidence),
            first_at,
            last_at: at,
            count: raise.count,
            until: raise.until,
            acknowledged_at: None,
            resolved_at: None,
            resolution: None,
        };
        self.changed.push(finding.clone());
        let told = finding.count;
        self.open.insert(raise.key, OpenFinding { finding, told });
    }

    /// Resolves the finding with this key, if there is one.
    pub(crate) fn resolve(&mut self, key: &str, at: Timestamp, resolution: &str) {
        // A report from before the finding was last seen does not resolve it: it is repeated or late.
        let Some(entry) = self.open.get(key).filter(|entry| entry.finding.last_at <= at) else { return };
        let mut finding = entry.finding.clone();
        self.open.remove(key);
        finding.state = FindingState::Resolved;
        finding.resolved_at = Some(at);
        finding.resolution = Some(resolution.to_owned());
        self.record_resolved(key.to_owned(), at);
        self.changed.push(finding);
    }

    /// Resolves the findings of these kinds.
    pub(crate) fn resolve_kinds(&mut self, kinds: &[FindingKind], at: Timestamp, resolution: &str) {
        if self.open.is_empty() {
            return;
        }
        let keys: Vec<String> = self.open().filter(|f| kinds.contains(&f.kind)).map(|f| f.key.clone()).collect();
        for key in keys {
            self.resolve(&key, at, resolution);
        }
    }

    /// Records that the user has seen a finding.
    pub(crate) fn acknowledge(&mut self, id: &FindingId, at: Timestamp) -> bool {
        let Some(entry) = self.open.values_mut().find(|entry| entry.finding.id == *id) else { return false };
        if entry.finding.state == FindingState::Open {
            entry.finding.state = FindingState::Acknowledged;
            entry.finding.acknowledged_at = Some(at);
            self.changed.push(entry.finding.clone());
        }
        true
    }
}

impl OpenFinding {
    /// Returns the finding if the change is worth reporting.
    fn update(&mut self, raise: NewFinding, by: Confidence, at: Timestamp) -> Option<Finding> {
        let finding = &mut self.finding;
        finding.confidence = finding.confidence.max(by);
        let grave = (raise.kind, raise.severity) != (finding.kind, finding.severity);
        let later = raise.until.is_some() && raise.until != finding.until;
        finding.kind = raise.kind;
        finding.severity = raise.severity;
        finding.last_at = finding.last_at.max(at);
        finding.until = raise.until.or(finding.until);
        finding.subject = raise.subject.or_else(|| finding.subject.take());
        if raise.count >= finding.count {
            finding.count = raise.count;
            finding.what = raise.what;
            finding.why = raise.why;
        }
        for id in raise.evidence {
            if !finding.evidence.contains(&id) {
                finding.evidence.push(id);
            }
        }
        finding.evidence = shortened(std::mem::take(&mut finding.evidence));
        let doubled = finding.count >= self.told.saturating_mul(2).max(2) && finding.count > self.told;
        if !(grave || later || doubled) {
            return None;
        }
        self.told = finding.count;
        Some(finding.clone())
    }
}

/// The oldest and the newest events.
fn shortened(mut evidence: Vec<EventId>) -> Vec<EventId> {
    if evidence.len() > EVIDENCE {
        evidence.drain(EVIDENCE / 2..evidence.len() - EVIDENCE / 2);
    }
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millisecond(seconds * 1_000)
    }

    fn seen(count: u32, seconds: i64) -> NewFinding {
        let raise =
            NewFinding::new(FindingKind::Loop, Severity::Warning, format!("{count} times"), "why".into(), at(seconds));
        NewFinding { count, ..raise }
    }

    fn findings() -> SessionFindings {
        SessionFindings { audible: true, ..SessionFindings::new(SessionId::from_bits(7), &[]) }
    }

    #[test]
    fn one_cause_has_one_finding_and_reports_only_relevant_changes() {
        let mut findings = findings();
        findings.raise(seen(5, 1), at(1));
        findings.raise(seen(6, 1), at(2));
        assert_eq!(findings.drain().len(), 1);
        findings.raise(seen(10, 1), at(3));
        let told = findings.drain();
        assert_eq!((told.len(), told[0].count, told[0].first_at, told[0].last_at), (1, 10, at(1), at(3)));
        findings.raise(NewFinding { severity: Severity::Error, ..seen(11, 1) }, at(4));
        assert_eq!(findings.drain().len(), 1);
        findings.resolve("loop", at(5), "over");
        assert_eq!(findings.drain()[0].state, FindingState::Resolved);
        findings.resolve("loop", at(6), "over");
        assert!(findings.drain().is_empty());
    }

    #[test]
    fn a_finding_is_no_more_certain_than_its_strongest_evidence() {
        let mut findings = findings();
        findings.examine(Confidence::Low);
        findings.raise(seen(5, 1), at(1));
        assert_eq!(findings.drain()[0].confidence, Confidence::Low);
        findings.examine(Confidence::Medium);
        findings.raise(seen(10, 1), at(2));
        findings.examine(Confidence::Low);
        findings.raise(seen(20, 1), at(3));
        let told: Vec<Confidence> = findings.drain().iter().map(|finding| finding.confidence).collect();
        assert_eq!(told, [Confidence::Medium, Confidence::Medium]);
    }

    #[test]
    fn a_resolved_finding_is_not_raised_again_by_earlier_evidence() {
        let mut findings = findings();
        findings.raise(seen(5, 1), at(3));
        findings.resolve("loop", at(5), "over");
        let old = findings.drain().remove(0);
        findings.raise(seen(5, 1), at(3));
        findings.raise(seen(5, 1), at(5));
        assert!(findings.drain().is_empty());
        findings.raise(seen(5, 1), at(9));
        let new = findings.drain().remove(0);
        assert_eq!(new.first_at, at(9), "it did not begin before the other ended");
        assert_ne!(new.id, old.id);
    }

    #[test]
    fn a_restored_finding_is_neither_raised_again_nor_resolved_early() {
        let mut before = findings();
        before.raise(seen(5, 1), at(3));
        let finding = before.drain().remove(0);
        let mut after = findings();
        after.restore(finding);
        after.resolve("loop", at(2), "said before");
        after.raise(seen(5, 1), at(3));
        assert!(after.drain().is_empty());
        after.resolve("loop", at(4), "over");
        let over = after.drain().remove(0);
        let mut again = findings();
        again.restore(over);
        again.raise(seen(5, 1), at(3));
        assert!(again.drain().is_empty());
    }

    #[test]
    fn an_acknowledged_finding_stays_acknowledged_when_raised_again() {
        let mut findings = findings();
        findings.raise(seen(5, 1), at(1));
        let id = findings.drain().remove(0).id;
        assert!(!findings.acknowledge(&"f0".into(), at(2)));
        assert!(findings.acknowledge(&id, at(2)));
        findings.raise(seen(20, 1), at(3));
        let told = findings.drain();
        assert_eq!(told.len(), 2);
        assert!(told.iter().all(|f| f.state == FindingState::Acknowledged && f.acknowledged_at == Some(at(2))));
    }
}
