//! A merge that has conflicts, until it is committed or given up.

use events::{FindingKind, Severity, Timestamp, ToolKind};
use projections::FailureKind;

use crate::{
    book::{NewFinding, SessionFindings},
    step::ToolStep,
};

/// The key of these findings.
pub(crate) const KEY: &str = "merge_conflict";

/// Takes a step.
pub(crate) fn take(step: &ToolStep, at: Timestamp, book: &mut SessionFindings) {
    let Some(title) = step.title.as_deref().filter(|_| step.tool == ToolKind::Execute) else { return };
    if step.failed == Some(FailureKind::MergeConflict) {
        let what = format!("{} has conflicts", step.words());
        let why = "git says that it could not merge by itself".to_owned();
        let raise = NewFinding::new(FindingKind::MergeConflict, Severity::Warning, what, why, at);
        book.raise(NewFinding { subject: Some(step.words()), evidence: vec![step.evidence()], ..raise }, at);
        return;
    }
    if step.failed.is_some() || step.refused || !book.is_open(KEY) || !title.contains("git") {
        return;
    }
    let ends =
        ["commit", "--continue", "--abort", "--skip", "--quit", "reset --hard", "reset --merge", "merge ", "rebase "];
    if ends.iter().any(|verb| title.contains(verb)) {
        book.resolve(KEY, at, "the merge was finished or given up");
    }
}
