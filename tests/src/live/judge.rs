//! Holds what was said against what was true. Knows numbers only, no clock and no server.

use std::fmt;

use events::{Reason, State};

/// How much earlier or later than the truth something may be said, ms.
pub const TOLERANCE_MS: i64 = 1000;
/// How closely is looked, ms.
const GRAIN_MS: i64 = 20;

/// What is so from a moment on, or is said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// When, ms of the wall clock.
    pub at: i64,
    /// The state.
    pub state: State,
    /// Why; of a truth: when there is one reason only.
    pub reason: Option<Reason>,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.state)?;
        self.reason.map_or(Ok(()), |reason| write!(f, " ({reason})"))
    }
}

/// The first moment at which what was said is not what was true, in words; both are in order.
/// Nobody is asked about the time before the first truth and after `end`.
#[must_use]
pub fn first_wrong(truth: &[Moment], said: &[Moment], end: i64) -> Option<String> {
    let begin = truth.first()?.at + TOLERANCE_MS;
    let step = usize::try_from(GRAIN_MS).unwrap_or(1);
    (begin..end).step_by(step).find_map(|now| {
        let true_now = at(truth, now)?;
        let since = now - true_now.at;
        let Some(said_now) = at(said, now) else {
            return Some(format!("nothing is said {since} ms into {true_now}"));
        };
        let is_near = |(i, truth_at): (usize, &Moment)| {
            let until = truth.get(i + 1).map_or(i64::MAX, |next| next.at + TOLERANCE_MS);
            truth_at.state == said_now.state && (truth_at.at - TOLERANCE_MS..until).contains(&now)
        };
        if !truth.iter().enumerate().any(is_near) {
            return Some(format!("{said_now} is said {since} ms into {true_now}"));
        }
        let reason = true_now.reason.filter(|_| since > TOLERANCE_MS && said_now.state == true_now.state)?;
        (said_now.reason != Some(reason)).then(|| format!("{said_now} is said {since} ms into {true_now}"))
    })
}

/// How often this state was entered.
#[must_use]
pub fn times(said: &[Moment], state: State) -> usize {
    let before = std::iter::once(None).chain(said.iter().map(|moment| Some(moment.state)));
    before.zip(said).filter(|(before, moment)| moment.state == state && *before != Some(state)).count()
}

fn at(moments: &[Moment], now: i64) -> Option<Moment> {
    moments.iter().rev().find(|moment| moment.at <= now).copied()
}
