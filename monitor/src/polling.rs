//! Detects polling without change. Polling is not a loop while the polled output changes, nor for some time when it
//! does not.

use std::collections::VecDeque;

use events::{EventId, FindingKind, Severity, Timestamp};

use crate::{
    findings::{NewFinding, SessionFindings},
    rules::DetectorLimits,
    step::ToolStep,
};

/// Maximum number of polled steps remembered in a session.
const WATCHED: usize = 8;

/// Number of unrelated steps after which polling counts from the start.
const ELSEWHERE: u32 = 3;

/// The key of these findings.
pub(crate) const KEY: &str = "loop:poll";

#[derive(Debug)]
struct PolledStep {
    same: u64,
    exact: u64,
    unchanged: u32,
    first_at: Timestamp,
    evidence: VecDeque<EventId>,
}

/// The polled steps of a session.
#[derive(Debug, Default)]
pub(crate) struct Polling {
    watched: VecDeque<PolledStep>,
    /// Whether the last step only waited, so that the next one checks.
    waited: bool,
    /// Number of unrelated steps since then.
    elsewhere: u32,
}

impl Polling {
    pub(crate) fn len(&self) -> usize {
        self.watched.len()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Records that the agent was woken as requested: its next step is an expected check, not a repeated poll.
    pub(crate) fn woken(&mut self) {
        self.watched.clear();
        self.waited = true;
    }

    /// Applies a step of an agent that waits; returns false if the step is something else.
    pub(crate) fn apply(
        &mut self,
        step: &ToolStep,
        at: Timestamp,
        rules: &DetectorLimits,
        findings: &mut SessionFindings,
    ) -> bool {
        let known = self.watched.iter().position(|watched| watched.same == step.same);
        let waited = std::mem::replace(&mut self.waited, false);
        let looks = step.poll || waited || known.is_some();
        if !looks || step.edit.is_some() || step.refused {
            self.elsewhere += 1;
            // An agent that works in between is not only polling.
            if (step.edit.is_some() || self.elsewhere >= ELSEWHERE) && !self.watched.is_empty() {
                self.watched.clear();
                findings.resolve(KEY, at, "the agent is doing something else");
            }
            return false;
        }
        self.elsewhere = 0;
        self.waited = step.poll;
        let mut watched = match known.and_then(|index| self.watched.remove(index)) {
            Some(watched) if watched.exact == step.exact => watched,
            // A pause without a check.
            Some(_) | None => {
                if known.is_some() {
                    findings.resolve(KEY, at, "the polled output changed");
                }
                PolledStep {
                    same: step.same,
                    exact: step.exact,
                    unchanged: 0,
                    first_at: step.began_at,
                    evidence: VecDeque::new(),
                }
            }
        };
        watched.unchanged = watched.unchanged.saturating_add(1);
        if watched.evidence.len() == 8 {
            watched.evidence.pop_front();
        }
        watched.evidence.push_back(step.evidence());
        let long = at.since_ms(watched.first_at) >= rules.poll_ms;
        let fails = step.failed.is_some();
        if watched.unchanged >= rules.poll_repeats && (fails || long) && !is_only_waiting(step) {
            let what = format!("{} keeps polling without any change", step.words());
            let why = format!(
                "the last {} polls {} with the same output over {} min",
                watched.unchanged,
                if fails { "failed" } else { "returned" },
                at.since_ms(watched.first_at) / 60_000
            );
            let raise = NewFinding::new(FindingKind::Loop, Severity::Warning, what, why, watched.first_at);
            let evidence = watched.evidence.iter().copied().collect();
            let subject = Some(step.words());
            findings.raise(NewFinding { key: KEY.into(), evidence, count: watched.unchanged, subject, ..raise }, at);
        }
        if self.watched.len() == WATCHED {
            self.watched.pop_front();
        }
        self.watched.push_back(watched);
        true
    }
}

/// Whether the step is only a pause, which never has output.
fn is_only_waiting(step: &ToolStep) -> bool {
    step.failed.is_none()
        && step.title.as_deref().is_some_and(|title| {
            let mut words = title.split_whitespace();
            words.next() == Some("sleep") && words.count() == 1
        })
}
