//! Approvals: permission requests of agents, and people's decisions.

use std::collections::BTreeMap;

use events::{ApprovalId, ApprovalState, DecidedBy, DecidedVia, EventId, Timestamp};
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
    /// Only approvals of this session. Any of its ids is accepted.
    pub session: Option<String>,
    /// The `next_cursor` of the previous page.
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

/// What the user forbade in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoundaryView {
    /// The sentence of the prompt, shortened and without secrets.
    pub said: String,
    /// When the user wrote the prompt.
    pub at: Timestamp,
    /// The event of the prompt.
    pub event: EventId,
}

/// An approval with everything needed to decide it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalView {
    /// The approval.
    #[serde(flatten)]
    pub approval: Approval,
    /// How a decision made through capture would reach the agent; absent if it would not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<DecidedVia>,
    /// Why a decision made through capture would not reach the agent, and what to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswerable: Option<String>,
    /// Why capture can deny the request but not allow it, and what to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cannot_allow: Option<String>,
    /// The files the command would run or change, as they were when it was requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileView>,
    /// Whether the command may run or change more files than `files` lists.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_files: bool,
    /// Whether it can be allowed for the rest of the session (`scope: "session"`), because capture can recognize a
    /// repetition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
    /// The decision of the user's policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyView>,
    /// Why a heuristic over its words considers the pending request risky. If absent, the heuristic found no sign of
    /// danger; the request may still do harm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<String>,
    /// What the user forbade in a prompt of the session and the pending request would do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<BoundaryView>,
    /// A rule that would allow exactly this request from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_rule: Option<String>,
    /// Identifies the content of the request. A decision that includes this value is refused if the content has changed
    /// since.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The other pending requests of the same agent for the same tool, input and directory. Omitted in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_as: Vec<ApprovalId>,
}

/// A file, as it was when the request was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct FileView {
    /// Its path.
    pub path: String,
    /// Its size, bytes; absent if the file did not exist or could not be opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The BLAKE3 hash of its content, hexadecimal; absent if it could not be read or is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// The decision of the user's policy about an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyView {
    /// Its decision.
    pub decision: PolicyDecision,
    /// The rule that decided.
    pub rule: String,
    /// The reason.
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
    /// The reason given to the agent if the request is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `once` (default), or `session`, which also covers repetitions of the request in the same session.
    #[serde(default)]
    pub scope: DecisionScope,
    /// The answers to questions, by question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<BTreeMap<String, String>>,
    /// The `revision` of the request as it was shown to the person. If the request has changed since, the answer is
    /// 409.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Also saves the `suggested_rule` in the policy, which allows such requests from now on. Requires `revision` and
    /// the scope `admin`; a device must be elevated first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rule: bool,
}

/// The press of a button in a notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ButtonPressed {
    /// The single-use token of the button. It allows one request once, or denies it.
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

/// The earlier decision about a request, in the `details` of a 409.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecidedBefore {
    /// The state of the request.
    pub state: ApprovalState,
    /// Who decided; absent if the request was answered in the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<DecidedBy>,
    /// The name of the paired device on which a person decided; absent if it was not a paired device.
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

/// The requests that a decision covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionScope {
    /// Only this request.
    #[default]
    Once,
    /// This request and its repetitions in the same session, until the server stops.
    Session,
}
