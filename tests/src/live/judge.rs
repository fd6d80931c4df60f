//! Compares reported statuses with the truth. Works only on numbers, without a clock or a server.

use std::fmt;

use events::{Confidence, Reason, State};

/// How much earlier or later than the truth a status may be reported, ms.
pub const TOLERANCE_MS: i64 = 1000;
/// The resolution of the comparison, ms.
const GRAIN_MS: i64 = 20;

/// A status reported from a certain time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgedStatus {
    /// The time of the report, ms of the wall clock.
    pub at: i64,
    /// The state.
    pub state: State,
    /// The reported reason.
    pub reason: Option<Reason>,
    /// The reported confidence.
    pub confidence: Confidence,
}

/// The true status from a certain time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truth {
    /// The earliest time at which it began, ms of the wall clock.
    pub from: i64,
    /// The latest time at which it began, ms; usually equal to `from`.
    pub by: i64,
    /// The state.
    pub state: State,
    /// The true reason, if there is only one.
    pub reason: Option<Reason>,
}

impl Truth {
    /// Whether the reported status equals the truth.
    #[must_use]
    pub fn is_said(&self, said: &JudgedStatus) -> bool {
        said.state == self.state && self.reason.is_none_or(|reason| said.reason == Some(reason))
    }
}

impl fmt::Display for JudgedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tell(f, self.state, self.reason)
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tell(f, self.state, self.reason)
    }
}

fn tell(f: &mut fmt::Formatter<'_>, state: State, reason: Option<Reason>) -> fmt::Result {
    write!(f, "{state}")?;
    reason.map_or(Ok(()), |reason| write!(f, " ({reason})"))
}

/// The first time at which the reported status differs from the truth, as text; both lists are in order. Times before
/// the first truth and after `end` are not judged.
#[must_use]
pub fn first_wrong(truth: &[Truth], said: &[JudgedStatus], end: i64) -> Option<String> {
    let begin = truth.first()?.by + TOLERANCE_MS;
    let step = usize::try_from(GRAIN_MS).unwrap_or(1);
    (begin..end).step_by(step).find_map(|now| {
        let true_now = truth.iter().rev().find(|truth| truth.by <= now)?;
        let since = now - true_now.by;
        let Some(said_now) = said.iter().rev().find(|said| said.at <= now) else {
            return Some(format!("nothing is said {since} ms into {true_now}"));
        };
        let is_near = |(i, near): (usize, &Truth)| {
            let until = truth.get(i + 1).map_or(i64::MAX, |next| next.by + TOLERANCE_MS);
            near.state == said_now.state && (near.from - TOLERANCE_MS..until).contains(&now)
        };
        let is_right = if since > TOLERANCE_MS && said_now.state == true_now.state {
            true_now.is_said(said_now)
        } else {
            truth.iter().enumerate().any(is_near)
        };
        (!is_right).then(|| format!("{said_now} is said {since} ms into {true_now}"))
    })
}

/// Longest uninterrupted times during which the reported status was wrong, ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WrongMs {
    /// With high confidence.
    pub high: i64,
    /// With medium confidence.
    pub medium: i64,
    /// With low confidence.
    pub low: i64,
}

/// How long the reported status was wrong, by its confidence; both lists are in order. Times before the first truth and
/// after `end` are not judged. A status whose start is known only to be between `from` and `by` may be reported from
/// `from` on.
#[must_use]
pub fn wrong_ms(truth: &[Truth], said: &[JudgedStatus], end: i64) -> WrongMs {
    let mut longest = WrongMs::default();
    let Some(begin) = truth.first().map(|first| first.by) else { return longest };
    let step = usize::try_from(GRAIN_MS).unwrap_or(1);
    let mut since: Option<(Confidence, i64)> = None;
    for now in (begin..end).step_by(step) {
        let is_true = |said: &JudgedStatus| {
            let in_force = truth.iter().rposition(|truth| truth.by <= now);
            let next = in_force.and_then(|at| truth.get(at + 1)).filter(|next| next.from <= now);
            in_force.and_then(|at| truth.get(at)).into_iter().chain(next).any(|truth| truth.is_said(said))
        };
        let wrong = said.iter().rev().find(|said| said.at <= now).filter(|said| !is_true(said));
        since = wrong.map(|wrong| match since {
            Some((confidence, from)) if confidence == wrong.confidence => (confidence, from),
            Some(_) | None => (wrong.confidence, now),
        });
        let Some((confidence, from)) = since else { continue };
        let longest = match confidence {
            Confidence::High => &mut longest.high,
            Confidence::Medium => &mut longest.medium,
            Confidence::Low => &mut longest.low,
        };
        *longest = (*longest).max(now + GRAIN_MS - from);
    }
    longest
}

/// How often a state was entered in this sequence of states.
#[must_use]
pub fn times(states: impl IntoIterator<Item = State>, wanted: State) -> usize {
    let mut before = None;
    states.into_iter().filter(|state| before.replace(*state) != Some(*state) && *state == wanted).count()
}
