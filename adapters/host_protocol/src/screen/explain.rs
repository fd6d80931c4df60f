//! How a screen was read: every region and every rule, and which of them matched.

use events::{Confidence, Provider, Reason, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::ScreenClaim;

/// Why the screen is read the way it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ScreenExplanation")]
pub struct Explanation {
    /// The agent whose rules are used.
    pub provider: Provider,
    /// The agent's version, as shown on its screen.
    pub version: Option<String>,
    /// The files that contain the rules.
    pub files: Vec<FileUsed>,
    /// Each region as it is now.
    pub regions: Vec<RegionText>,
    /// Each rule, the most urgent first.
    pub rules: Vec<RuleOutcome>,
    /// The current claim.
    pub claim: Option<ScreenClaim>,
    /// The rule that makes the claim.
    pub rule: Option<String>,
    /// Whether that rule does not match at this moment, and its claim is kept because no other claim has replaced it.
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

/// The result of a rule for the screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleOutcome {
    /// Its name.
    pub name: String,
    /// Its priority.
    pub priority: i64,
    /// The state it would claim.
    pub state: State,
    /// The reason it would claim.
    pub reason: Option<Reason>,
    /// The confidence of its claim.
    pub strength: Confidence,
    /// Whether it matches.
    pub outcome: RuleMatch,
    /// The expressions that decided: the first that failed, or all that matched.
    pub checks: Vec<Check>,
}

/// Whether a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[schemars(rename = "RuleMatch")]
pub enum RuleMatch {
    /// It matches, and its claim is made.
    Chosen,
    /// It matches, but a rule above it was chosen.
    Below,
    /// It matches, but not for long enough yet.
    Debouncing {
        /// How long it must still match, ms.
        ms: i64,
    },
    /// It matches, but the rule that matched last is kept for a while.
    Held,
    /// It does not match.
    NoMatch,
}

/// One expression of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RuleCheck")]
pub struct Check {
    /// How it counts.
    pub need: Need,
    /// The region in which it was searched for.
    pub region: String,
    /// The expression.
    pub pattern: String,
    /// The text it matched.
    pub found: Option<String>,
    /// Whether this is what the rule requires.
    pub ok: bool,
}

/// How an expression counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RuleNeed")]
pub enum Need {
    /// It must match.
    All,
    /// This expression or another one must match.
    Any,
    /// It must not match.
    None,
}
