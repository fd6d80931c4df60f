//! Explains how a screen was read: every region and every rule, with what matched and what did not. `capture explain`
//! prints it.

use events::{Confidence, Provider, Reason, State, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{form::Pattern, judge::ScreenJudge, view::View};
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

/// Explains a judge's view of a frame.
pub(crate) fn explain(
    judge: &ScreenJudge,
    view: &View<'_>,
    version: Option<&str>,
    panics: u64,
    now: Timestamp,
) -> Explanation {
    let set = &judge.set;
    let current = judge.current.as_ref();
    let chosen = current.filter(|c| !c.over).map(|c| c.rule);
    let mut rules = Vec::new();
    let mut kept = current.is_some();
    let mut above = true;
    for (at, rule) in set.rules.iter().enumerate() {
        let checks: Vec<Check> = [(&rule.all, Need::All), (&rule.any, Need::Any), (&rule.none, Need::None)]
            .into_iter()
            .flat_map(|(patterns, need)| patterns.iter().map(move |p| check(p, need, view)))
            .collect();
        let any_ok = rule.any.is_empty() || checks.iter().any(|c| c.need == Need::Any && c.ok);
        let ok = any_ok && checks.iter().all(|c| c.ok || c.need == Need::Any);
        let outcome = if !ok {
            RuleMatch::NoMatch
        } else if chosen == Some(at) {
            kept = false;
            RuleMatch::Chosen
        } else if above {
            let since = judge.since[at].unwrap_or(now);
            match judge.counts_at(rule, since).since_ms(now) {
                ms if ms > 0 => RuleMatch::Debouncing { ms },
                _ => RuleMatch::Held,
            }
        } else {
            RuleMatch::Below
        };
        above &= chosen != Some(at) || !ok;
        rules.push(RuleOutcome {
            name: rule.name.clone(),
            priority: rule.priority,
            state: rule.state,
            reason: rule.reason,
            strength: rule.strength,
            outcome,
            checks: relevant_checks(checks, ok, any_ok),
        });
    }
    Explanation {
        provider: set.provider,
        version: version.map(str::to_owned),
        files: set
            .files
            .iter()
            .map(|(name, versions)| FileUsed { name: name.clone(), versions: versions.clone() })
            .collect(),
        regions: set
            .regions
            .iter()
            .map(|(name, _)| RegionText { name: name.clone(), text: view.region(name).map(str::to_owned) })
            .collect(),
        rules,
        claim: current.map(|c| c.claim.clone()),
        rule: current.map(|c| set.rules[c.rule].name.clone()),
        kept,
        panics,
    }
}

fn check(pattern: &Pattern, need: Need, view: &View<'_>) -> Check {
    let found = view.find(pattern).map(|text| text.chars().take(200).collect::<String>());
    Check {
        need,
        region: pattern.place.name.clone(),
        pattern: pattern.regex.text.clone(),
        ok: found.is_some() != (need == Need::None),
        found,
    }
}

/// The checks worth showing: of a rule that matches those that matched, of another what it failed by.
fn relevant_checks(checks: Vec<Check>, ok: bool, any_ok: bool) -> Vec<Check> {
    checks
        .into_iter()
        .filter(|c| match (ok, c.need) {
            (true, Need::All | Need::Any) => c.ok,
            (true, Need::None) => false,
            (false, Need::Any) => !any_ok,
            (false, Need::All | Need::None) => !c.ok,
        })
        .collect()
}
