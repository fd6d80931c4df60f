//! Why the policy decides as it does, for a person to read.

use serde::Serialize;

use crate::request::{Decision, Verdict};

/// A decision on a request, with its explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The decision on a request.
    pub decision: Decision,
    /// Why the command line could not be analysed, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_understood: Option<String>,
    /// The shell invocation (`bash -c`) that was removed from around the line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrapper: Vec<String>,
    /// Each command of the line; for another request, that as a whole.
    pub parts: Vec<ExplainedPart>,
}

/// How one command of a line, or another request, was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedPart {
    /// The words of the command, as the program gets them.
    pub words: Vec<String>,
    /// The decision on it.
    pub verdict: Verdict,
    /// The rule that decided.
    pub rule: String,
    /// Why.
    pub reason: String,
    /// Every rule that was tried, in order.
    pub tried: Vec<TriedRule>,
    /// How much the rule lets happen: of several allowed commands, the one that may do most speaks for the line.
    #[serde(skip)]
    pub(crate) reach: u8,
}

/// A rule that was compared with a part of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TriedRule {
    /// Its name.
    pub rule: String,
    /// What it decides.
    pub decision: Verdict,
    /// Whether it matched.
    pub matched: bool,
    /// Why, or why not.
    pub why: String,
}
