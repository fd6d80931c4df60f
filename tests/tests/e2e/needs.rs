//! What a session needs from the user is decided by `projections::attention`, and again by the page, because a stream
//! brings sessions and findings one by one. `capture/server/web/test/needs.jsonl` has the decisions of the first for many
//! combinations; a unit test of the page compares its own with them.
//!
//! `UPDATE_VIEWS=1` writes the file.

use std::{fs, path::Path};

use events::{Confidence, Finding, FindingKind, FindingState, Provider, Reason, SessionId, Severity, State, Timestamp};
use projections::{Session, SessionState, SessionStatus, StatusRules, attention};
use serde_json::{Value, json};

const CASES: &str = "../capture/server/web/test/needs.jsonl";

/// A state with its reason, the time since when it lasts, and its activity.
type Status = (State, Reason, i64, Option<&'static str>);

/// A kind of finding, whether the sub-agent has it, when it was first seen, and its state.
type Found = (FindingKind, bool, i64, FindingState);

/// Each state with each of its reasons.
fn own() -> impl Iterator<Item = Status> {
    let of = |reason: &Reason| {
        let (reason, facts) = (*reason, reason.facts());
        let activity = facts.has_subject.then_some("cargo test");
        facts.uses.iter().map(move |of| (of.state, reason, 100, activity))
    };
    Reason::ALL.iter().flat_map(of)
}

const BELOW: [Option<Status>; 4] = [
    None,
    Some((State::WaitingApproval, Reason::Edit, 50, Some("edit a.rs"))),
    Some((State::Waiting, Reason::TurnComplete, 50, None)),
    Some((State::Waiting, Reason::Question, 200, Some("Which?"))),
];

fn session(id: u128, (state, reason, since, activity): Status) -> Session {
    let at = Timestamp::from_millisecond(0);
    let mut new = SessionState::new(SessionId::from_bits(id), Provider::Claude, None, at, StatusRules::default());
    let status = SessionStatus {
        state,
        reason: Some(reason),
        since: Timestamp::from_millisecond(since),
        confidence: Confidence::High,
        activity: activity.map(str::to_owned),
        evidence: Vec::new(),
        disagreements: Vec::new(),
    };
    Session { status, ..new.view().clone() }
}

fn finding((kind, is_below, first_at, state): Found) -> Finding {
    let (session_id, at) = (SessionId::from_bits(1 + u128::from(is_below)), Timestamp::from_millisecond(first_at));
    Finding {
        confidence: events::Confidence::High,
        id: Finding::id_of(session_id, kind.as_str(), at),
        kind,
        severity: Severity::Warning,
        state,
        session_id,
        key: kind.to_string(),
        what: format!("what {kind} is"),
        why: format!("why {kind}"),
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

fn case(own: Status, below: Option<Status>, found: &[Found]) -> Value {
    let parent = session(1, own);
    let child = below.map(|status| Session { parent_session_id: Some(parent.id), ..session(2, status) });
    let sessions: Vec<Session> = [Some(parent), child].into_iter().flatten().collect();
    let findings: Vec<Finding> = found.iter().copied().map(finding).collect();
    let items = attention(&sessions, &findings);
    let need = items.first().map(|item| {
        json!({ "need": item.need, "since": item.since, "risky": item.risky, "what": item.what, "why": item.why })
    });
    let status = |(state, reason, since, activity): Status| json!({ "state": state, "reason": reason, "since": Timestamp::from_millisecond(since), "activity": activity });
    let found = found.iter().map(|(kind, is_below, ..)| json!({ "kind": kind, "below": is_below }));
    let findings = found.zip(&findings).map(|(mut one, finding)| {
        one["state"] = json!(finding.state);
        one["first_at"] = json!(finding.first_at);
        one["what"] = json!(finding.what);
        one["why"] = json!(finding.why);
        one
    });
    json!({ "own": status(own), "below": below.map(status), "findings": findings.collect::<Vec<_>>(), "need": need })
}

#[test]
fn the_committed_attention_cases_for_the_web_page_are_current() {
    let (open, seen) = (FindingState::Open, FindingState::Acknowledged);
    let mut several: Vec<Vec<Found>> = vec![
        vec![],
        vec![(FindingKind::Stuck, false, 70, seen)],
        vec![(FindingKind::Approval, false, 60, open), (FindingKind::RiskyApproval, false, 90, open)],
        vec![(FindingKind::Stuck, false, 80, open), (FindingKind::Stuck, true, 30, open)],
        vec![(FindingKind::RiskyApproval, true, 40, open), (FindingKind::Completion, false, 20, open)],
    ];
    several.extend(FindingKind::ALL.iter().map(|kind| vec![(*kind, false, 150, open)]));
    let mut cases = String::new();
    for own in own() {
        for (at, found) in several.iter().enumerate() {
            for below in BELOW {
                let has_child = below.is_some();
                // One finding of each kind is enough without sub-agents, and a finding of a sub-agent needs one.
                if (at >= 5 && has_child) || (!has_child && found.iter().any(|found| found.1)) {
                    continue;
                }
                cases += &format!("{}\n", case(own, below, found));
            }
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(CASES);
    if tests::text_from_env("UPDATE_VIEWS").is_some() {
        fs::write(&path, &cases).unwrap();
    }
    let current = fs::read_to_string(&path).unwrap();
    assert!(current == cases, "{CASES} is not what `attention` decides: UPDATE_VIEWS=1 writes it");
}
