//! Decides the claim for a screen, frame by frame: which rule matches, since when, and whether it has matched for long
//! enough.
//!
//! Among the matching rules, the one with the highest priority that has matched for its `debounce_ms` wins. The last
//! winner is held for `hold_ms` against lower rules, and kept for `keep_ms` against lower rules that claim the same
//! state with less detail. A frame without a match changes nothing, because agents draw frames in pieces; but a claim
//! that no rule supports for [`UNSUPPORTED_MS`] is repeated with low strength until a rule matches again.

use std::sync::Arc;

use events::{Confidence, State, Timestamp};
use host_protocol::claim::ScreenClaim;

use super::{
    dialog::{self, DialogReading},
    form::ScreenRule,
    rules::RuleSet,
    view::View,
};

/// How long a different dialog of the same rule must be visible before it counts as a new one, ms, so that a dialog
/// drawn in pieces counts as one dialog.
const SETTLE_MS: i64 = 60;
/// Time without a matching rule after which a claim gets low strength, ms: longer than drawing a frame in pieces takes.
const UNSUPPORTED_MS: i64 = 1_500;
/// Time without a matching rule after which a claim is withdrawn, ms.
const WITHDRAW_MS: i64 = 300_000;
/// Maximum length of a claim's words copied from a screen, in characters.
const MAX_WORDS: usize = 80;

/// The current claim and its rule.
#[derive(Debug, Clone)]
pub(crate) struct Current {
    /// The index of the rule.
    pub(crate) rule: usize,
    /// The rule no longer matches, and its `then` state is claimed.
    pub(crate) over: bool,
    /// Since when the rule does not match; `None` while it does.
    gone_since: Option<Timestamp>,
    /// The claim.
    pub(crate) claim: ScreenClaim,
    /// The claim's strength while a rule supported it; set once none has for long.
    supported: Option<Confidence>,
    /// The dialog as it was reported.
    pub(crate) reading: Option<DialogReading>,
    /// A different dialog of the same rule, and since when it is visible.
    other: Option<(DialogReading, Timestamp)>,
}

/// A change of the claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClaimChange {
    /// A new claim.
    Claimed(ScreenClaim),
    /// The same claim with another strength.
    Weighed(ScreenClaim),
    /// Nothing is claimed any more.
    Withdrawn,
}

/// Follows the frames of one terminal.
#[derive(Debug)]
pub(crate) struct ScreenJudge {
    pub(crate) set: Arc<RuleSet>,
    /// For each rule, since when it matches.
    pub(crate) since: Vec<Option<Timestamp>>,
    pub(crate) current: Option<Current>,
    /// When the passing of time alone changes something.
    pub(crate) deadline: Option<Timestamp>,
    /// Number of dialogs that have disappeared.
    pub(crate) appearance: u64,
    /// When the text of the screen last changed.
    pub(crate) changed_at: Timestamp,
}

impl ScreenJudge {
    pub(crate) fn new(set: Arc<RuleSet>, appearance: u64) -> Self {
        Self {
            since: vec![None; set.rules.len()],
            set,
            current: None,
            deadline: None,
            appearance,
            changed_at: Timestamp::MIN,
        }
    }

    /// Switches to other rules; the claim remains until they change it.
    pub(crate) fn change_rules(&mut self, set: Arc<RuleSet>) {
        let rule = self.current.as_ref().map(|c| self.set.rules[c.rule].name.clone());
        self.since = vec![None; set.rules.len()];
        match rule.and_then(|name| set.rules.iter().position(|r| r.name == name)) {
            Some(at) => {
                if let Some(current) = &mut self.current {
                    current.rule = at;
                }
            }
            None => self.current = None,
        }
        self.set = set;
    }

    /// Judges a new frame, or the same frame again at a later time.
    pub(crate) fn update(&mut self, view: &View<'_>, now: Timestamp) -> Option<ClaimChange> {
        let set = Arc::clone(&self.set);
        self.deadline = None;
        let mut winner = None;
        let mut current_matches = false;
        for (at, rule) in set.rules.iter().enumerate() {
            // Rules below the winner are not evaluated, so their match times start over.
            let since = match (winner, matches(rule, view)) {
                (None, true) => self.since[at].unwrap_or(now),
                (Some(_), _) | (None, false) => {
                    self.since[at] = None;
                    continue;
                }
            };
            self.since[at] = Some(since);
            let counts_at = self.counts_at(rule, since);
            let is_current = self.current.as_ref().is_some_and(|c| c.rule == at && !c.over);
            current_matches |= is_current;
            if counts_at <= now || is_current {
                winner = Some(at);
            } else {
                self.wait_until(counts_at);
            }
        }
        if let Some(current) = &mut self.current {
            if !current_matches && current.gone_since.is_none() && current.reading.is_some() {
                // If the same words reappear, they are another dialog.
                self.appearance += 1;
            }
            current.gone_since = if current_matches { None } else { Some(current.gone_since.unwrap_or(now)) };
        }
        match winner {
            Some(at) => self.won(at, view, now),
            None => self.no_match(now),
        }
    }

    /// When a rule that matches since `since` starts to count.
    pub(crate) fn counts_at(&self, rule: &ScreenRule, since: Timestamp) -> Timestamp {
        let debounced = since.plus_ms(rule.debounce_ms);
        if rule.still_ms == 0 { debounced } else { debounced.max(self.changed_at.plus_ms(rule.still_ms)) }
    }

    fn wait_until(&mut self, at: Timestamp) {
        self.deadline = Some(self.deadline.map_or(at, |known| known.min(at)));
    }

    fn won(&mut self, at: usize, view: &View<'_>, now: Timestamp) -> Option<ClaimChange> {
        let set = Arc::clone(&self.set);
        let rule = &set.rules[at];
        if let Some(current) = &self.current {
            if current.rule == at && !current.over {
                return self.same(rule, view, now);
            }
            let held = &set.rules[current.rule];
            let keep_ms = if held.state == rule.state { held.hold_ms.max(held.keep_ms) } else { held.hold_ms };
            let until = current.gone_since.unwrap_or(now).plus_ms(keep_ms);
            if !current.over && held.priority > rule.priority && now < until {
                self.wait_until(until);
                return None;
            }
        }
        let reading = self.read(rule, view);
        let claim = claim_of(&set, rule, reading.as_ref(), view);
        self.replace_claim(Current {
            rule: at,
            over: false,
            gone_since: None,
            claim,
            supported: None,
            reading,
            other: None,
        })
    }

    /// The same rule still wins: only its dialog may be another.
    fn same(&mut self, rule: &ScreenRule, view: &View<'_>, now: Timestamp) -> Option<ClaimChange> {
        let set = Arc::clone(&self.set);
        let reading = self.read(rule, view);
        let current = self.current.as_mut()?;
        let restored = current.supported.take().map(|strength| {
            current.claim.strength = strength;
            ClaimChange::Weighed(current.claim.clone())
        });
        let Some(mut reading) = reading else { return restored };
        if let Some(told) = current.reading.as_ref().filter(|told| told.is_same(&reading)) {
            current.other = None;
            // Without distinguishing text of its own, it is the dialog reported before.
            reading.dialog.mark.clone_from(&told.dialog.mark);
            current.claim.dialog = Some(Box::new(reading.dialog.clone()));
            current.reading = Some(reading);
            return restored;
        }
        let since = match &current.other {
            Some((other, since)) if other.is_same(&reading) => *since,
            Some(_) | None => now,
        };
        let settled_at = since.plus_ms(SETTLE_MS);
        if now < settled_at {
            current.other = Some((reading, since));
            self.wait_until(settled_at);
            return restored;
        }
        let claim = claim_of(&set, rule, Some(&reading), view);
        current.other = None;
        current.claim = claim.clone();
        current.reading = Some(reading);
        Some(ClaimChange::Claimed(claim))
    }

    /// The dialog of a rule, as shown by this frame.
    pub(crate) fn read(&self, rule: &ScreenRule, view: &View<'_>) -> Option<DialogReading> {
        let form = rule.dialog.as_ref()?;
        let mut reading = dialog::read(rule, form, view, self.appearance);
        if rule.state == State::WaitingApproval {
            let cut = form.whole.is_some() && reading.whole.is_none();
            let cut = cut.then(|| "the terminal does not show all of the request".to_owned());
            let fault = || dialog::layout_fault(form, &reading, view).map(str::to_owned);
            reading.dialog.unanswerable = self.set.unanswerable(form).or(cut).or_else(fault);
        }
        Some(reading)
    }

    /// The reported dialog, if every word of it is still on the screen.
    pub(crate) fn watched(&self) -> Option<(&ScreenRule, &DialogReading)> {
        let current = self.current.as_ref().filter(|c| !c.over)?;
        let reading = current.reading.as_ref().filter(|r| r.whole.is_some() && r.appearance == self.appearance)?;
        Some((&self.set.rules[current.rule], reading))
    }

    /// The reported dialog as this frame shows it, if it is open and nothing else is.
    pub(crate) fn standing(&self, view: &View<'_>) -> Result<(&ScreenRule, DialogReading), &'static str> {
        let current =
            self.current.as_ref().filter(|c| !c.over && c.claim.dialog.is_some()).ok_or("no dialog is open")?;
        let rule = &self.set.rules[current.rule];
        let told = current.reading.as_ref().ok_or("no dialog is open")?;
        if told.whole.is_none() {
            return Err("the screen rule does not define where the dialog begins and ends");
        }
        let shown = self.set.rules.iter().find(|rule| matches(rule, view)).ok_or("the dialog is not on the screen")?;
        let fresh = self.read(rule, view).ok_or("the dialog is not on the screen")?;
        if shown.name != rule.name || current.gone_since.is_some() || current.other.is_some() || !told.is_same(&fresh) {
            return Err("the screen changed since it was reported");
        }
        Ok((rule, fresh))
    }

    /// Handles a frame that no rule matches.
    fn no_match(&mut self, now: Timestamp) -> Option<ClaimChange> {
        let set = Arc::clone(&self.set);
        let current = self.current.as_ref()?;
        let rule = &set.rules[current.rule];
        let (at, gone_since) = (current.rule, current.gone_since.unwrap_or(now));
        if let Some(then) = rule.then.filter(|_| !current.over) {
            let due = gone_since.plus_ms(then.after_ms.max(rule.hold_ms));
            if now < due {
                self.wait_until(due);
                return None;
            }
            self.wait_until(gone_since.plus_ms(UNSUPPORTED_MS));
            let words = format!("{}/{}: gone, and nothing else is there", set.provider, rule.name);
            let strength = strength_of(&set, rule);
            let claim = ScreenClaim { state: then.state, reason: then.reason, strength, words, dialog: None };
            return self.replace_claim(Current {
                rule: at,
                over: true,
                gone_since: Some(gone_since),
                claim,
                supported: None,
                reading: None,
                other: None,
            });
        }
        let unsupported_at = gone_since.plus_ms(UNSUPPORTED_MS);
        if now < unsupported_at {
            self.wait_until(unsupported_at);
            return None;
        }
        let due = gone_since.plus_ms(WITHDRAW_MS);
        if let Some(current) = self.current.as_mut().filter(|c| c.supported.is_none() && now < due) {
            current.supported = Some(current.claim.strength);
            current.claim.strength = Confidence::Low;
            let claim = current.claim.clone();
            self.wait_until(due);
            return Some(ClaimChange::Weighed(claim));
        }
        if now < due {
            self.wait_until(due);
            return None;
        }
        self.current = None;
        Some(ClaimChange::Withdrawn)
    }

    /// Replaces the claim; reports it if it is new or stronger.
    fn replace_claim(&mut self, next: Current) -> Option<ClaimChange> {
        let news = self.current.as_ref().is_none_or(|old| {
            let same_dialog = match (&old.reading, &next.reading) {
                (Some(a), Some(b)) => a.is_same(b),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            (old.claim.state, old.claim.reason) != (next.claim.state, next.claim.reason)
                || !same_dialog
                || old.supported.is_some()
        });
        let stronger = self.current.as_ref().is_some_and(|old| old.claim.strength < next.claim.strength);
        let claim = next.claim.clone();
        self.current = Some(next);
        if news { Some(ClaimChange::Claimed(claim)) } else { stronger.then_some(ClaimChange::Weighed(claim)) }
    }
}

/// Whether all conditions of a rule are met.
pub(crate) fn matches(rule: &ScreenRule, view: &View<'_>) -> bool {
    rule.all.iter().all(|p| view.find(p).is_some())
        && (rule.any.is_empty() || rule.any.iter().any(|p| view.find(p).is_some()))
        && rule.none.iter().all(|p| view.find(p).is_none())
}

/// The strength of a rule's claim: rules that were not made for the agent's version may be wrong about it.
fn strength_of(set: &RuleSet, rule: &ScreenRule) -> Confidence {
    if set.outside { rule.strength.min(Confidence::Medium) } else { rule.strength }
}

fn claim_of(set: &RuleSet, rule: &ScreenRule, reading: Option<&DialogReading>, view: &View<'_>) -> ScreenClaim {
    let saw = rule.all.iter().chain(&rule.any).filter_map(|p| Some((view.find(p)?, &p.place.name)));
    let saw = saw.clone().find(|(text, _)| text.chars().any(char::is_alphanumeric)).or_else(|| saw.clone().next());
    let words = saw.map_or_else(String::new, |(text, region)| {
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_WORDS).collect();
        format!(": \"{text}\" in {region}")
    });
    ScreenClaim {
        state: rule.state,
        reason: rule.reason,
        strength: strength_of(set, rule),
        words: format!("{}/{}{words}", set.provider, rule.name),
        dialog: reading.map(|r| Box::new(r.dialog.clone())),
    }
}
