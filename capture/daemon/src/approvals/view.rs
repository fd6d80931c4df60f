//! Approvals as they are shown to whoever lists or decides them.

use events::DecidedVia;
use projections::Approval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An approval with what is needed to decide it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalView {
    /// The approval.
    #[serde(flatten)]
    pub approval: Approval,
    /// How a decision made now would reach the agent; absent when it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<DecidedVia>,
    /// The files the request names, as they were when it was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileView>,
    /// Whether it may run or change files that are not among these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_files: bool,
    /// What the policy says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyView>,
    /// A rule that would allow exactly this again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_rule: Option<String>,
}

/// A file that a request names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileView {
    /// Its path.
    pub path: String,
    /// Its size in bytes; absent when there is no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The BLAKE3 hash of its content; absent when it is too large, secret, or cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// What the policy says of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyView {
    /// Which way.
    pub decision: PolicyDecision,
    /// The rule that says so.
    pub rule: String,
    /// Why, in one sentence.
    pub reason: String,
}

/// Which way the policy decides.
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
