//! How a screen was read: every region and every rule, and which of them matched.

use events::{Confidence, Provider, Reason, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::ScreenClaim;

/// Why the screen is read the way it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ScreenExplanation")]
pub struct Explanation {
    /// Whose rules.
    pub provider: Provider,
    /// The agent's version, as its screen says it.
    pub version: Option<String>,
    /// The files the rules are from.
    pub files: Vec<FileUsed>,
    /// Each region as it is now.
    pub regions: Vec<RegionText>,
    /// Each rule, the most urgent first.
    pub rules: Vec<RuleOutcome>,
    /// What is claimed.
    pub claim: Option<ScreenClaim>,
    /// The rule it is claimed by.
    pub rule: Option<String>,
    /// That rule does not match at this moment: its claim stands because no other has taken its place.
    pub kept: bool,
    /// How often the parser failed and the screen was reset.
    pub panics: u64,
}

/// A file of rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RuleFile")]
pub struct FileUsed {
    /// Its name.
    pub name: String,
    /// The versions it is for.
    pub versions: String,
}

/// A region of the screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegionText {
    /// Its name.
    pub name: String,
    /// Its text; absent when it is not on the screen.
    pub text: Option<String>,
}

/// What a rule says of the screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleOutcome {
    /// Its name.
    pub name: String,
    /// Its priority.
    pub priority: i64,
    /// The state it would claim.
    pub state: State,
    /// And why.
    pub reason: Option<Reason>,
    /// How strong.
    pub strength: Confidence,
    /// Whether it matches.
    pub outcome: RuleMatch,
    /// What decided: the first that failed, or all that matched.
    pub checks: Vec<Check>,
}

/// Whether a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[schemars(rename = "RuleMatch")]
pub enum RuleMatch {
    /// It does, and its claim is made.
    Chosen,
    /// It does, but one above it was chosen.
    Below,
    /// It does, but not for long enough yet.
    Debouncing {
        /// How long it must still match, ms.
        ms: i64,
    },
    /// It does, but the rule that matched last is kept for a while.
    Held,
    /// It does not.
    NoMatch,
}

/// One expression of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RuleCheck")]
pub struct Check {
    /// Whether it had to match.
    pub need: Need,
    /// The region it was looked for in.
    pub region: String,
    /// The expression.
    pub pattern: String,
    /// What it found.
    pub found: Option<String>,
    /// Whether that is as the rule wants it.
    pub ok: bool,
}

/// How an expression counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RuleNeed")]
pub enum Need {
    /// It must match.
    All,
    /// It or another must match.
    Any,
    /// It must not match.
    None,
}
