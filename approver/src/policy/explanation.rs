//! The explanation of a decision of the policy, for the user.

use serde::Serialize;

use crate::request::{Decision, Verdict};

/// A decision on a request, with its explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The decision.
    pub decision: Decision,
    /// The reason why the command line could not be analysed, if it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_understood: Option<String>,
    /// The shell invocation (`bash -c`) that was removed from around the line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrapper: Vec<String>,
    /// Each command of the line; another kind of request is one part.
    pub parts: Vec<ExplainedPart>,
}

/// How one command of a line, or another kind of request, was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedPart {
    /// The words of the command, as the program would receive them.
    pub words: Vec<String>,
    /// The decision on this part.
    pub verdict: Verdict,
    /// The rule that decided.
    pub rule: String,
    /// The reason.
    pub reason: String,
    /// Every rule that was tried, in order.
    pub tried: Vec<TriedRule>,
    /// How much the rule permits. If several commands are allowed, the one that permits the most represents the line.
    #[serde(skip)]
    pub(crate) reach: u8,
}

/// A rule that was compared with a part of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TriedRule {
    /// Its name.
    pub rule: String,
    /// The decision of the rule.
    pub decision: Verdict,
    /// Whether it matched.
    pub matched: bool,
    /// The reason why it matched or did not.
    pub why: String,
}
