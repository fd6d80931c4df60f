//! The sessions that need the user, in order of urgency, determined by their status and their open findings.

use std::collections::{BTreeMap, HashMap};

use events::{ApprovalId, Finding, FindingId, FindingKind, FindingState, Need, Provider, SessionId, State, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Session, SessionStatus};

/// A session that needs a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttentionItem {
    /// The session.
    pub session_id: SessionId,
    /// Its agent.
    pub provider: Provider,
    /// Its title.
    pub title: Option<String>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// What it needs first.
    pub need: Need,
    /// When the need arose.
    pub since: Timestamp,
    /// Whether the request could do irreversible harm.
    pub risky: bool,
    /// The subject, in a few words.
    pub what: Option<String>,
    /// The reason, if a finding states one.
    pub why: Option<String>,
    /// Its pending approvals and those of its sub-agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<ApprovalId>,
    /// Its open findings of this need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingId>,
}

/// The sessions that need the user and what they need, most urgent first: ordered by need, then risk, then how long
/// they have waited. A session is listed once, under its most urgent need. Findings that the user has acknowledged do
/// not count. The needs of a sub-agent are listed under its parent if the parent is among the sessions, except the need
/// for a prompt, because a user does not prompt sub-agents.
#[must_use]
pub fn attention(sessions: &[Session], findings: &[Finding]) -> Vec<AttentionItem> {
    let known: HashMap<SessionId, &Session> = sessions.iter().map(|session| (session.id, session)).collect();
    let top = |session: &Session| top_of(&known, session);
    let mut open: BTreeMap<SessionId, Vec<(Need, &Finding)>> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| finding.state == FindingState::Open) {
        if let Some(need) = finding.kind.facts().need {
            let listed = known.get(&finding.session_id).map_or(finding.session_id, |session| top(session));
            open.entry(listed).or_default().push((need, finding));
        }
    }
    let mut below: BTreeMap<SessionId, Vec<&Session>> = BTreeMap::new();
    for session in sessions.iter().filter(|session| session.merged_into.is_none()) {
        let listed = top(session);
        if listed != session.id {
            below.entry(listed).or_default().push(session);
        }
    }
    let mut items: Vec<AttentionItem> = sessions
        .iter()
        .filter(|session| session.merged_into.is_none())
        .filter(|session| top(session) == session.id)
        .filter_map(|session| {
            let open = open.get(&session.id).map_or(&[][..], Vec::as_slice);
            let below = below.get(&session.id).map_or(&[][..], Vec::as_slice);
            item(session, below, open)
        })
        .collect();
    items.sort_by_key(|item| (item.need, !item.risky, item.since, item.session_id));
    items
}

// The session under which `session` is listed. Sessions whose parents form a cycle are listed under themselves.
fn top_of(known: &HashMap<SessionId, &Session>, session: &Session) -> SessionId {
    let mut top = session;
    for _ in 0..known.len() {
        let Some(parent) = top.parent_session_id.and_then(|parent| known.get(&parent)) else { return top.id };
        top = parent;
    }
    session.id
}

fn item(session: &Session, below: &[&Session], open: &[(Need, &Finding)]) -> Option<AttentionItem> {
    let own = Need::of_status(session.status.state, session.status.reason).map(|need| (need, &session.status));
    let of_others = below.iter().filter_map(|child| {
        let need = Need::of_status(child.status.state, child.status.reason)?;
        (need != Need::Prompt).then_some((need, &child.status))
    });
    let by_status: Vec<(Need, &SessionStatus)> = own.into_iter().chain(of_others).collect();
    // A session that works again or has ended does not wait for a prompt.
    let is_at_rest = matches!(session.status.state, State::Waiting | State::Idle);
    let open: Vec<&(Need, &Finding)> = open.iter().filter(|(need, _)| *need != Need::Prompt || is_at_rest).collect();
    let need = open.iter().map(|(need, _)| *need).chain(by_status.iter().map(|(need, _)| *need)).min()?;
    let waiting: Vec<&SessionStatus> = by_status.iter().filter(|(of, _)| *of == need).map(|(_, of)| *of).collect();
    let of_need: Vec<&Finding> = open.iter().filter(|(of, _)| *of == need).map(|(_, finding)| *finding).collect();
    let since = of_need.iter().map(|finding| finding.first_at).chain(waiting.iter().map(|of| of.since));
    let risky = of_need.iter().find(|finding| finding.kind == FindingKind::RiskyApproval);
    let first = risky.or_else(|| of_need.first());
    Some(AttentionItem {
        session_id: session.id,
        provider: session.provider,
        title: session.title.clone(),
        cwd: session.cwd.clone(),
        need,
        since: since.min().unwrap_or(session.status.since),
        risky: risky.is_some(),
        what: waiting.iter().find_map(|of| of.activity.clone()).or_else(|| first.map(|f| f.what.clone())),
        why: first.map(|finding| finding.why.clone()),
        approvals: [session].iter().chain(below).flat_map(|of| of.pending_approvals.iter().cloned()).collect(),
        findings: of_need.iter().map(|finding| finding.id.clone()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use events::{Confidence, Reason, Severity};

    use super::*;
    use crate::{SessionState, StatusRules};

    fn session(id: u128, state: State, reason: Reason, since: i64) -> Session {
        let (id, at) = (SessionId::from_bits(id), Timestamp::from_millisecond(0));
        let session = SessionState::new(id, Provider::Claude, None, at, StatusRules::default()).view().clone();
        let status = SessionStatus {
            state,
            reason: Some(reason),
            since: Timestamp::from_millisecond(since),
            confidence: Confidence::High,
            activity: None,
            evidence: Vec::new(),
            disagreements: Vec::new(),
        };
        Session { status, ..session }
    }

    fn finding(id: u128, kind: FindingKind, first_at: i64) -> Finding {
        let (session_id, at) = (SessionId::from_bits(id), Timestamp::from_millisecond(first_at));
        Finding {
            confidence: events::Confidence::High,
            id: Finding::id_of(session_id, "key", at),
            kind,
            severity: Severity::Warning,
            state: FindingState::Open,
            session_id,
            key: "key".into(),
            what: "what".into(),
            why: "why".into(),
            subject: None,
            approval_id: None,
            evidence: Vec::new(),
            first_at: at,
            last_at: at,
            count: 1,
            until: None,
            acknowledged_at: None,
            resolved_at: None,
            resolution: None,
        }
    }

    fn order(sessions: &[Session], findings: &[Finding]) -> Vec<(u128, Need)> {
        let items = attention(sessions, findings);
        items.iter().map(|item| (u128::from_be_bytes(item.session_id.to_bytes()), item.need)).collect()
    }

    #[test]
    fn blocked_sessions_come_first_then_risky_then_longest_waiting() {
        let sessions = [
            session(1, State::Waiting, Reason::TurnComplete, 10),
            session(2, State::WaitingApproval, Reason::Tool, 50),
            session(3, State::Running, Reason::Tool, 20),
            session(4, State::Waiting, Reason::Question, 5),
            session(5, State::WaitingApproval, Reason::Tool, 60),
            session(6, State::Running, Reason::Thinking, 1),
            session(7, State::WaitingApproval, Reason::Edit, 40),
            session(8, State::Waiting, Reason::NewSession, 1),
            session(9, State::Waiting, Reason::Quota, 70),
        ];
        let findings = [finding(3, FindingKind::Stuck, 30), finding(5, FindingKind::RiskyApproval, 61)];
        let expected = [
            (5, Need::Approval),
            (7, Need::Approval),
            (2, Need::Approval),
            (4, Need::Question),
            (9, Need::Failure),
            (3, Need::Stuck),
            (1, Need::Prompt),
        ];
        assert_eq!(order(&sessions, &findings), expected);
        let items = attention(&sessions, &findings);
        assert!(items[0].risky && !items[1].risky);
        assert_eq!(items[0].since.as_millisecond(), 60, "since the earlier of both");
        assert_eq!(items[5].what.as_deref(), Some("what"));
    }

    #[test]
    fn acknowledged_findings_need_nothing_and_subagent_needs_go_to_the_parent() {
        let seen = Finding { state: FindingState::Acknowledged, ..finding(1, FindingKind::Stuck, 1) };
        let parent = session(1, State::Running, Reason::Subagents, 1);
        let child =
            Session { parent_session_id: Some(parent.id), ..session(2, State::WaitingApproval, Reason::Tool, 2) };
        let sessions = [parent.clone(), child.clone()];
        assert_eq!(order(&sessions, std::slice::from_ref(&seen)), [(1, Need::Approval)]);
        assert_eq!(attention(&sessions, &[])[0].since.as_millisecond(), 2, "since the sub-agent waits");
        let done =
            Session { parent_session_id: Some(parent.id), ..session(2, State::Waiting, Reason::TurnComplete, 2) };
        assert_eq!(order(&[parent.clone(), done.clone()], &[seen]), []);
        let below = Session { parent_session_id: Some(done.id), ..session(3, State::Running, Reason::Tool, 3) };
        let stuck = finding(3, FindingKind::Stuck, 4);
        assert_eq!(order(&[parent, done, below], &[stuck]), [(1, Need::Stuck)], "of a sub-agent's sub-agent");
        let [one, other] =
            [session(4, State::WaitingApproval, Reason::Tool, 1), session(5, State::Running, Reason::Tool, 1)];
        let (a, b) = (one.id, other.id);
        let cycle = [Session { parent_session_id: Some(b), ..one }, Session { parent_session_id: Some(a), ..other }];
        assert_eq!(order(&cycle, &[]), [(4, Need::Approval)], "none is lost where parents form a cycle");
        assert_eq!(order(&[child], &[]), [(2, Need::Approval)], "a sub-agent whose parent is not there");
    }
}
