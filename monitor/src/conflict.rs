//! Detects merges with conflicts, until they are committed or aborted.

use events::{FindingKind, Severity, Timestamp, ToolKind};
use projections::FailureKind;

use crate::{
    findings::{NewFinding, SessionFindings},
    step::ToolStep,
};

/// The key of these findings.
pub(crate) const KEY: &str = "merge_conflict";

/// Applies a step.
pub(crate) fn apply(step: &ToolStep, at: Timestamp, findings: &mut SessionFindings) {
    let Some(title) = step.title.as_deref().filter(|_| step.tool == ToolKind::Execute) else { return };
    if step.failed == Some(FailureKind::MergeConflict) {
        let what = format!("{} has conflicts", step.words());
        let why = "git reported a merge conflict".to_owned();
        let raise = NewFinding::new(FindingKind::MergeConflict, Severity::Warning, what, why, at);
        findings.raise(NewFinding { subject: Some(step.words()), evidence: vec![step.evidence()], ..raise }, at);
        return;
    }
    if step.failed.is_some() || step.refused || !findings.is_open(KEY) || !title.contains("git") {
        return;
    }
    let ends =
        ["commit", "--continue", "--abort", "--skip", "--quit", "reset --hard", "reset --merge", "merge ", "rebase "];
    if ends.iter().any(|verb| title.contains(verb)) {
        findings.resolve(KEY, at, "the merge was finished or aborted");
    }
}
