//! Holds what was said against what was true. Knows numbers only, no clock and no server.

use std::fmt;

use events::{Confidence, Reason, State};

/// How much earlier or later than the truth something may be said, ms.
pub const TOLERANCE_MS: i64 = 1000;
/// How closely is looked, ms.
const GRAIN_MS: i64 = 20;

/// What is said from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgedStatus {
    /// When, ms of the wall clock.
    pub at: i64,
    /// The state.
    pub state: State,
    /// Why.
    pub reason: Option<Reason>,
    /// How sure.
    pub confidence: Confidence,
}

/// What is so from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truth {
    /// It began then or later, ms of the wall clock.
    pub from: i64,
    /// It was so then at the latest, ms; mostly the same.
    pub by: i64,
    /// The state.
    pub state: State,
    /// Why, when there is one reason only.
    pub reason: Option<Reason>,
}

impl Truth {
    /// Whether this is what is said.
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

/// The first moment at which what was said is not what was true, in words; both are in order. Nothing is judged in the
/// time before the first truth and after `end`.
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

/// Longest times without a break in which what was said was not true, ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WrongMs {
    /// While it was said with high confidence.
    pub high: i64,
    /// With medium confidence.
    pub medium: i64,
    /// With low confidence.
    pub low: i64,
}

/// How long what was said was wrong, by how sure it was; both are in order. Nothing is judged before the first truth and
/// after `end`, and what became true between two moments may be said from the first on.
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

/// How often a state was entered, of those gone through in order.
#[must_use]
pub fn times(states: impl IntoIterator<Item = State>, wanted: State) -> usize {
    let mut before = None;
    states.into_iter().filter(|state| before.replace(*state) != Some(*state) && *state == wanted).count()
}
