//! Explains how a screen was read: every region and every rule, with what matched and what did not. `capture explain`
//! prints it.

use events::Timestamp;
use host_protocol::screen::{Check, Explanation, FileUsed, Need, RegionText, RuleMatch, RuleOutcome};

use super::{form::Pattern, judge::ScreenJudge, view::View};

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

/// The checks worth showing: for a matching rule those that matched, for another those that failed.
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
