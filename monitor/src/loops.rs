//! Detects loops: the same steps with the same results, attempts of one kind that all fail in the same way, edits that
//! revert each other.
//!
//! Examines a window of the last steps. A new prompt by the user starts a new window. [`crate::polling`] handles
//! waiting.

use std::collections::{BTreeSet, VecDeque};

use events::{EventId, FindingKind, Severity, Timestamp};

use crate::{
    findings::{NewFinding, SessionFindings},
    rules::DetectorLimits,
    step::{Edit, ToolStep},
};

/// Number of last steps in which loops are searched.
const WINDOW: usize = 40;
/// Number of last edits in which reverts are searched.
const EDITS: usize = 24;
/// Number of steps from which a round of a loop counts as wide.
const WIDE: usize = 10;
/// Number of new steps after which a loop is over.
const ELSEWHERE: u32 = 3;

/// The key of these findings.
pub(crate) const KEY: &str = "loop";

#[derive(Debug, Clone, Copy)]
struct WindowStep {
    same: (u64, u64),
    alike: Option<(u64, u64)>,
    /// Whether it is a successful edit or another successful step that may be a new idea.
    works: bool,
    began_at: Timestamp,
    event: EventId,
}

/// The state of loop detection.
#[derive(Debug, Default)]
pub(crate) struct LoopDetector {
    window: VecDeque<WindowStep>,
    edits: VecDeque<(Edit, bool, EventId, Timestamp)>,
    /// The steps of the detected loop, and its number of rounds.
    found: BTreeSet<(u64, u64)>,
    rounds: u32,
    elsewhere: u32,
}

impl LoopDetector {
    pub(crate) fn len(&self) -> usize {
        self.window.len() + self.edits.len() + self.found.len()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn apply(
        &mut self,
        step: &ToolStep,
        at: Timestamp,
        rules: &DetectorLimits,
        findings: &mut SessionFindings,
    ) {
        if step.refused || step.unrecorded {
            return;
        }
        let fails = step.failed.is_some() || step.barren;
        let seen = WindowStep {
            same: (step.same, step.result),
            alike: fails.then_some((step.kin, step.shape)),
            works: !fails && step.edit.is_some(),
            began_at: step.began_at,
            event: step.evidence(),
        };
        if self.window.len() == WINDOW {
            self.window.pop_front();
        }
        self.window.push_back(seen);
        let reverted = step.edit.is_some_and(|edit| self.edited(edit, seen, rules));
        if !self.found.is_empty() {
            self.extend(seen, reverted, step, at, findings);
            return;
        }
        if reverted {
            return self.raise_reverts(step, at, findings);
        }
        if let Some(round) = self.same_again(seen, rules) {
            let what = format!("{} was repeated with the same result", step.words());
            let why = format!(
                "{} steps with the same result in each of {} rounds; only {} of the last {} steps were different",
                step.words(),
                round.count,
                round.different,
                round.steps
            );
            self.raise(round, what, why, step, at, findings);
        } else if let Some(round) = self.alike_again(seen, step.barren, rules) {
            let (what, why) = if self.is_one_call(seen, &round) {
                (
                    format!("{} failed in the same way {} times", step.words(), round.count),
                    format!("its last {} runs failed in the same way, apart from some numbers", round.count),
                )
            } else {
                (
                    format!("{} attempts like {} failed in the same way", round.count, step.words()),
                    format!(
                        "the last {} attempts differ only in their arguments, and failed in the same way",
                        round.count
                    ),
                )
            };
            self.raise(round, what, why, step, at, findings);
        }
    }

    fn raise(
        &mut self,
        round: LoopFound,
        what: String,
        why: String,
        step: &ToolStep,
        at: Timestamp,
        findings: &mut SessionFindings,
    ) {
        self.found = round.found;
        self.rounds = round.count;
        self.elsewhere = 0;
        let raise = NewFinding::new(FindingKind::Loop, Severity::Warning, what, why, round.first_at);
        let subject = Some(step.words());
        findings
            .raise(NewFinding { key: KEY.into(), evidence: round.evidence, count: round.count, subject, ..raise }, at);
    }

    /// Finds the same step with the same result, with few different steps since its first occurrence.
    fn same_again(&self, seen: WindowStep, rules: &DetectorLimits) -> Option<LoopFound> {
        let alike = |other: &WindowStep| other.same == seen.same;
        let round = |wanted| self.round(alike, |other| other.same, wanted, rules.loop_novelty_percent);
        // A wide loop is detected after fewer rounds.
        let wide = || round(rules.loop_repeats.saturating_sub(1)).filter(|round| round.steps >= WIDE);
        round(rules.loop_repeats).or_else(wide)
    }

    /// Finds attempts of one kind that fail alike, without a success in between.
    fn alike_again(&self, seen: WindowStep, barren: bool, rules: &DetectorLimits) -> Option<LoopFound> {
        seen.alike?;
        // A search without results is not a failure yet.
        let wanted = if barren { rules.loop_attempts + 3 } else { rules.loop_attempts };
        let alike = |other: &WindowStep| other.alike == seen.alike;
        let round = self.round(alike, |other| other.alike.unwrap_or(other.same), wanted, rules.loop_novelty_percent)?;
        let worked = self.window.iter().rev().take(round.steps).any(|seen| seen.works);
        (!worked).then_some(round)
    }

    /// Whether the similar failures were all the same call.
    fn is_one_call(&self, seen: WindowStep, round: &LoopFound) -> bool {
        let mut alike = self.window.iter().rev().take(round.steps).filter(|other| other.alike == seen.alike);
        alike.all(|other| other.same.0 == seen.same.0)
    }

    fn round(
        &self,
        alike: impl Fn(&WindowStep) -> bool,
        name: impl Fn(&WindowStep) -> (u64, u64),
        wanted: u32,
        percent: u32,
    ) -> Option<LoopFound> {
        let wanted = wanted.max(2) as usize;
        let first = self.window.iter().enumerate().rev().filter(|(_, other)| alike(other)).nth(wanted - 1)?.0;
        let span = self.window.range(first..);
        let different: BTreeSet<(u64, u64)> = span.clone().map(&name).collect();
        let steps = self.window.len() - first;
        // The last step closes the last round.
        (different.len() * 100 <= percent as usize * steps).then(|| LoopFound {
            count: u32::try_from(wanted).unwrap_or(u32::MAX),
            different: different.len(),
            steps,
            first_at: self.window[first].began_at,
            evidence: span.filter(|other| alike(other)).map(|other| other.event).collect(),
            found: self.window.range(first..).map(|other| other.same).collect(),
        })
    }

    /// Records an edit; returns whether enough edits have reverted earlier ones.
    fn edited(&mut self, edit: Edit, seen: WindowStep, rules: &DetectorLimits) -> bool {
        let back = match edit.old {
            Some(old) => self.edits.iter().any(|(other, ..)| {
                other.file == edit.file && other.old == Some(edit.new) && other.new == old && edit.new != old
            }),
            // A whole file written with the content it had before something else was written.
            None => {
                let mut whole =
                    self.edits.iter().rev().filter(|(other, ..)| other.file == edit.file && other.old.is_none());
                whole.next().is_some_and(|(last, ..)| last.new != edit.new)
                    && self.edits.iter().any(|(other, ..)| other.file == edit.file && other.new == edit.new)
            }
        };
        if self.edits.len() == EDITS {
            self.edits.pop_front();
        }
        self.edits.push_back((edit, back, seen.event, seen.began_at));
        let backs = self
            .edits
            .iter()
            .filter(|(other, back, ..)| *back && other.file == edit.file && is_same_place(other, &edit));
        back && backs.count() >= rules.loop_reverts.max(1) as usize
    }

    fn raise_reverts(&mut self, step: &ToolStep, at: Timestamp, findings: &mut SessionFindings) {
        let Some((last, ..)) = self.edits.back().copied() else { return };
        let of_it: Vec<_> =
            self.edits.iter().filter(|(other, ..)| other.file == last.file && is_same_place(other, &last)).collect();
        let count = u32::try_from(of_it.iter().filter(|(_, back, ..)| *back).count()).unwrap_or(u32::MAX);
        let round = LoopFound {
            count,
            different: 2,
            steps: of_it.len(),
            first_at: of_it.first().map_or(at, |(.., began_at)| *began_at),
            evidence: of_it.iter().map(|(.., event, _)| *event).collect(),
            found: self.window.iter().rev().take(4).map(|seen| seen.same).collect(),
        };
        let what = format!("{} changes the same lines back and forth", step.words());
        let why = format!("{count} of its last {} edits reverted an earlier one", round.steps);
        self.raise(round, what, why, step, at, findings);
    }

    /// Handles a step after a loop was found: decides whether the loop continues.
    fn extend(
        &mut self,
        seen: WindowStep,
        reverted: bool,
        step: &ToolStep,
        at: Timestamp,
        findings: &mut SessionFindings,
    ) {
        let alike =
            seen.alike.is_some() && self.window.iter().rev().skip(1).take(8).any(|other| other.alike == seen.alike);
        if self.found.contains(&seen.same) || reverted || alike {
            self.elsewhere = 0;
            self.found.insert(seen.same);
            if self.found.len() > WINDOW {
                self.found.pop_first();
            }
            self.rounds = self.rounds.saturating_add(1);
            let what = format!("{} was repeated with the same result", step.words());
            let why = format!("the loop has continued for {} more steps since capture found it", self.rounds);
            let raise = NewFinding::new(FindingKind::Loop, Severity::Warning, what, why, seen.began_at);
            findings.raise(NewFinding { key: KEY.into(), evidence: vec![seen.event], count: self.rounds, ..raise }, at);
            return;
        }
        self.elsewhere += 1;
        if self.elsewhere >= ELSEWHERE {
            self.clear();
            findings.resolve(KEY, at, "the agent is doing something else");
        }
    }
}

/// Whether two edits replace the same two texts, in either direction.
fn is_same_place(one: &Edit, other: &Edit) -> bool {
    match (one.old, other.old) {
        (Some(a), Some(b)) => (a, one.new) == (b, other.new) || (a, one.new) == (other.new, b),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

struct LoopFound {
    count: u32,
    different: usize,
    steps: usize,
    first_at: Timestamp,
    evidence: Vec<EventId>,
    found: BTreeSet<(u64, u64)>,
}
