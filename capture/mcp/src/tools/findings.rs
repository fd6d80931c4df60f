//! The monitor's findings.

use api::{
    findings::{FindingsQuery, StateFilter},
    routes::ListFindings,
};
use events::{ApprovalId, FindingId, FindingKind, FindingState, SessionId, Severity, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ToolError,
    sessions::{find, limited},
};
use crate::{
    link::Link,
    text::{NOTE, line, maybe_line},
};

/// Default and maximum number of findings in an answer.
const FINDINGS: (usize, usize) = (20, 100);
/// Maximum length of a line, characters.
const LINE: usize = 300;

/// Which findings to list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FindingsArguments {
    /// Only findings in this state (default: those that are not resolved).
    state: Option<StateFilter>,
    /// Only findings of these kinds.
    kind: Vec<FindingKind>,
    /// Only findings of this session. Any of its ids is accepted.
    session: Option<String>,
    /// Findings in the answer (default 20, at most 100).
    limit: Option<usize>,
    /// The `next_cursor` of the previous answer.
    cursor: Option<String>,
}

/// Findings.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FindingsAnswer {
    /// How to read the texts of this answer.
    note: &'static str,
    /// The findings.
    findings: Vec<FindingRow>,
    /// Continues the list; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A fact that a person should know about a session.
#[derive(Debug, Serialize, JsonSchema)]
struct FindingRow {
    /// Its id.
    #[schemars(with = "String")]
    id: FindingId,
    /// The session.
    session: SessionId,
    /// The kind.
    kind: FindingKind,
    /// How severe it is.
    severity: Severity,
    /// Its state.
    state: FindingState,
    /// The finding in a few words.
    what: String,
    /// The reason for the finding.
    why: String,
    /// The permission request it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<ApprovalId>,
    /// When it began.
    first_at: Timestamp,
    /// When it was last seen.
    last_at: Timestamp,
    /// How often it was seen.
    count: u32,
    /// When it is expected to end by itself, such as the reset of a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    /// Why it was resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution: Option<String>,
}

pub(super) fn list(link: &Link, arguments: &FindingsArguments) -> Result<FindingsAnswer, ToolError> {
    let session = match &arguments.session {
        Some(given) => Some(find(link, given)?.id.to_string()),
        None => None,
    };
    let query = FindingsQuery {
        state: arguments.state,
        kind: arguments.kind.clone().into(),
        session,
        cursor: arguments.cursor.clone(),
        limit: Some(limited(arguments.limit, FINDINGS)),
    };
    let page = link.read(|client| client.get::<ListFindings>("", &query))?;
    let findings = page.findings.into_iter().map(|finding| FindingRow {
        id: finding.id,
        session: finding.session_id,
        kind: finding.kind,
        severity: finding.severity,
        state: finding.state,
        what: line(&finding.what, LINE),
        why: line(&finding.why, LINE),
        approval_id: finding.approval_id,
        first_at: finding.first_at,
        last_at: finding.last_at,
        count: finding.count,
        until: finding.until,
        resolution: maybe_line(finding.resolution.as_deref(), LINE),
    });
    Ok(FindingsAnswer { note: NOTE, findings: findings.collect(), next_cursor: page.next_cursor })
}
