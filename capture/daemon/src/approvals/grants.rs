//! Requests that the user allowed for the rest of a session. They are forgotten when the server stops.

use std::collections::HashSet;

use events::{ApprovalKind, SessionId};
use projections::Approval;

use super::files::{FileMark, has_more_files};

/// Maximum number of grants remembered at once.
const GRANTS: usize = 1_024;

/// An allowed request: every property that makes two requests the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Grant {
    session: SessionId,
    kind: Option<ApprovalKind>,
    tool: Option<String>,
    input: Option<String>,
    cwd: Option<String>,
    files: Vec<FileMark>,
}

impl Grant {
    /// `None` unless every byte of the request and the content of each of its files is known. An edit or a write
    /// changes its files, so the same request never comes again.
    pub(super) fn of(approval: &Approval, files: &[FileMark]) -> Option<Self> {
        let repeatable = match approval.kind {
            Some(ApprovalKind::Question | ApprovalKind::Plan | ApprovalKind::Edit | ApprovalKind::Write) | None => {
                false
            }
            Some(
                ApprovalKind::Command
                | ApprovalKind::Mcp
                | ApprovalKind::Fetch
                | ApprovalKind::Trust
                | ApprovalKind::Read,
            ) => !has_more_files(approval, files),
        };
        (approval.exact && repeatable).then(|| Self {
            session: approval.session_id,
            kind: approval.kind,
            tool: approval.tool.clone(),
            input: approval.input.clone(),
            cwd: approval.cwd.clone(),
            files: files.to_vec(),
        })
    }
}

/// The grants of all sessions.
#[derive(Default)]
pub(super) struct Grants(HashSet<Grant>);

impl Grants {
    /// Whether there is no room for another grant.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= GRANTS
    }

    /// Remembers a grant if there is room.
    pub(super) fn add(&mut self, grant: Grant) {
        if self.0.len() < GRANTS {
            self.0.insert(grant);
        }
    }

    /// Forgets the grants of these sessions.
    pub(super) fn forget(&mut self, sessions: &[SessionId]) {
        self.0.retain(|grant| !sessions.contains(&grant.session));
    }

    /// Whether the same request was allowed before.
    pub(super) fn allow(&self, approval: &Approval, files: &[FileMark]) -> bool {
        Grant::of(approval, files).is_some_and(|grant| self.0.contains(&grant))
    }
}
