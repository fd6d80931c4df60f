//! Approvals: permission requests of agents, and people's decisions.

use std::collections::BTreeMap;

use events::{ApprovalId, ApprovalState, DecidedBy, DecidedVia, Timestamp};
use projections::Approval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::list::Limit;

/// Which approvals to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ApprovalsQuery {
    /// Only approvals in this state.
    pub state: Option<ApprovalState>,
    /// Only approvals of this session; any of its ids.
    pub session: Option<String>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// Approvals on a page (default 100, at most 1000).
    pub limit: Option<Limit>,
}

/// A page of approvals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalPage {
    /// The position of the log the page reflects.
    #[serde(default)]
    pub as_of: u64,
    /// The approvals.
    pub approvals: Vec<ApprovalView>,
    /// Continues the list; `null` on the last page.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// An approval with everything needed to decide it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalView {
    /// The approval.
    #[serde(flatten)]
    pub approval: Approval,
    /// How a decision made here would reach the agent; absent when it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<DecidedVia>,
    /// Why no decision made here would reach the agent, and what to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswerable: Option<String>,
    /// Why it can be denied here but not allowed, and what to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cannot_allow: Option<String>,
    /// The files the command would run or change, as they were when it was requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileView>,
    /// Whether it may run or change files that are not listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_files: bool,
    /// Whether it can be allowed for the rest of the session (`scope: "session"`): a repetition can be recognized.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
    /// What the user's policy says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyView>,
    /// Why it deserves a second look while it is pending, by a heuristic over its words; absent when no sign of danger is
    /// known, which does not make it harmless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<String>,
    /// A rule that would allow exactly this from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_rule: Option<String>,
    /// Names what the request says: a decision that repeats it is refused when the request says something else by then.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The other pending requests of the same agent for the same tool, input and directory. Lists leave it out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_as: Vec<ApprovalId>,
}

/// A file as it was.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct FileView {
    /// Its path.
    pub path: String,
    /// Its size, bytes; absent when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The BLAKE3 hash of its content, hexadecimal; absent when it could not be read or is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// What the user's policy says about an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyView {
    /// Its decision.
    pub decision: PolicyDecision,
    /// The rule that decided.
    pub rule: String,
    /// Why.
    pub reason: String,
}

/// A decision of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyDecision {
    /// It allows the request.
    Allow,
    /// It denies the request.
    Deny,
    /// It leaves the request to a person.
    Ask,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionRequest {
    /// `allow` or `deny`.
    pub decision: Verdict,
    /// The reason that the agent gets when it is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `once` (default), or `session` for the same request again in the same session.
    #[serde(default)]
    pub scope: DecisionScope,
    /// The answers to questions, by question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<BTreeMap<String, String>>,
    /// The `revision` of the request that was shown; 409 when the request says something else by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Also saves the `suggested_rule` in the policy, which allows the same from now on. Needs `revision` and the scope
    /// `admin`: a device has to be raised.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rule: bool,
}

/// A button of a message was pressed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ButtonPressed {
    /// The token of the button: it allows one request once or denies it, and is good once.
    pub token: String,
}

/// What a button decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ButtonAnswer {
    /// The request.
    pub approval_id: ApprovalId,
    /// Its state.
    pub state: ApprovalState,
}

/// Who decided a request before, in the `details` of a 409.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecidedBefore {
    /// The state of the request.
    pub state: ApprovalState,
    /// Who decided; absent when it was answered in the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<DecidedBy>,
    /// The name of the paired device on which a person decided; absent when it was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// How the decision reached the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_via: Option<DecidedVia>,
    /// When it was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
}

impl From<&Approval> for DecidedBefore {
    fn from(approval: &Approval) -> Self {
        let Approval { state, by, device, via, closed_at, .. } = approval;
        let (state, decided_by, decided_via, decided_at) = (*state, *by, *via, *closed_at);
        Self { state, decided_by, device: device.clone(), decided_via, decided_at }
    }
}

/// A person's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The request is allowed.
    Allow,
    /// The request is denied.
    Deny,
}

/// What a decision covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionScope {
    /// This request.
    #[default]
    Once,
    /// The same request again in the same session, until the server stops.
    Session,
}
