//! Raises a finding for each statement of the agent's last message that its commands do not support.
//!
//! [`projections`] compares the statements with the receipt of the turn; this module only reports the result.

use events::{
    CheckClass, CheckVerdict, ClaimCheck, ClaimSubject, ClaimVerdict, EventId, FindingKind, Receipt, Severity,
    Timestamp, TurnCompleted,
};

use crate::findings::{NewFinding, SessionFindings};

/// Handles the end of a turn.
pub(crate) fn turn_completed(event: EventId, completed: &TurnCompleted, at: Timestamp, findings: &mut SessionFindings) {
    let receipt = &completed.receipt;
    for claim in receipt.claims.iter().filter(|claim| claim.verdict.accuses()) {
        let what = format!("said “{}”, but {}", claim.said, claim.why);
        let why = format!("the agent's last message is {}: {}", claim.verdict.as_str(), claim.why);
        let evidence = claim.event.into_iter().chain([event]).collect();
        let raise = NewFinding::new(FindingKind::Claim, severity(claim, receipt), what, why, at);
        let subject = Some(claim.said.clone());
        findings.raise(NewFinding { key: key(claim.about).into(), subject, evidence, ..raise }, at);
    }
}

/// A stale statement is information, unless the agent also published the edits that were not checked.
fn severity(claim: &ClaimCheck, receipt: &Receipt) -> Severity {
    let is_published = |class| receipt.check(class).is_some_and(|check| check.verdict == CheckVerdict::Passed);
    let publishes = [CheckClass::Commit, CheckClass::Push, CheckClass::Merge, CheckClass::Deploy];
    match claim.verdict {
        ClaimVerdict::Stale if claim.about == ClaimSubject::Commit || !publishes.into_iter().any(is_published) => {
            Severity::Info
        }
        ClaimVerdict::Stale | ClaimVerdict::Contradicted | ClaimVerdict::Unsupported => Severity::Warning,
        ClaimVerdict::Supported | ClaimVerdict::Undecided => Severity::Info,
    }
}

const fn key(about: ClaimSubject) -> &'static str {
    match about {
        ClaimSubject::Tests => "claim:tests",
        ClaimSubject::Build => "claim:build",
        ClaimSubject::Types => "claim:types",
        ClaimSubject::Lint => "claim:lint",
        ClaimSubject::Commit => "claim:commit",
        ClaimSubject::Push => "claim:push",
        ClaimSubject::Merge => "claim:merge",
        ClaimSubject::Deploy => "claim:deploy",
        ClaimSubject::Todo => "claim:todo",
    }
}
