//! Compares the shown status with the truth.
//!
//! Agreement is the share of time with the true state, not counting 1 s after each true change. An approval counts as
//! seen if it is shown for half of its window (of 1 s or more), as false if `waiting_approval` is shown for more than
//! 0.3 s without touching a true window (widened by 0.5 s). For agents that write nothing before the first prompt the
//! time before it does not count, nor does the time from a later start of the program to its ready prompt.

use events::State;

use crate::recording::{Recording, What};

/// The status shown from this second on; `None` while there was no session.
pub type ShownStatus = (f64, Option<State>, Option<String>);

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// Share of time in agreement, percent.
    pub agree: f64,
    /// The number of approval windows.
    pub windows: usize,
    /// The number of approvals seen.
    pub hit: usize,
    /// The number of false approvals.
    pub false_approvals: usize,
    /// Share of the time in agreement in which the reason was right too, percent, where the reason matters.
    pub reason: Option<f64>,
    /// The number of changes shown beyond the true ones.
    pub flaps: usize,
    /// Whether the end was seen.
    pub exit_seen: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Span {
    from: f64,
    to: f64,
    state: State,
    reason: Option<String>,
}

/// Scores the shown statuses.
#[must_use]
pub fn score(recording: &Recording, shown: &[ShownStatus]) -> Score {
    let silent_before_prompt = recording.about.provider != events::Provider::Claude;
    let first = if silent_before_prompt {
        recording.truth.iter().position(|t| t.state == State::Running).unwrap_or(0)
    } else {
        0
    };
    let truth = &recording.truth[first..];
    let (begin, end) = (truth[0].at, truth[truth.len() - 1].at);
    let unscored: Vec<(f64, f64)> = recording
        .timeline
        .iter()
        .filter_map(|op| matches!(op.what, What::Spawn { .. }).then_some(op.at))
        .skip(1)
        .map(|start| (start, truth.iter().map(|t| t.at).filter(|at| *at > start).fold(end, f64::min)))
        .collect();
    let mut spans: Vec<Span> = Vec::new();
    for pair in truth.windows(2) {
        let span = Span { from: pair[0].at, to: pair[1].at, state: pair[0].state, reason: pair[0].reason.clone() };
        match spans.last_mut() {
            Some(last) if last.state == span.state && last.reason == span.reason => last.to = span.to,
            Some(_) | None => spans.push(span),
        }
    }
    let ends = shown.iter().skip(1).map(|s| s.0).chain([end + 5.0]);
    let told: Vec<(f64, f64, &Option<State>, &Option<String>)> =
        shown.iter().zip(ends).map(|(s, to)| (s.0, to, &s.1, &s.2)).collect();

    let cut = |from: f64, to: f64| -> Vec<(f64, f64)> {
        unscored.iter().fold(vec![(from, to)], |parts, (x, y)| {
            parts.into_iter().flat_map(|(c, d)| [(c, d.min(*x)), (c.max(*y), d)]).filter(|(c, d)| d > c).collect()
        })
    };
    let length = |from: f64, to: f64| cut(from, to).iter().map(|(c, d)| d - c).sum::<f64>();
    let overlap = |from: f64, to: f64, want: &dyn Fn(&Option<State>, &Option<String>) -> bool| -> f64 {
        cut(from, to)
            .iter()
            .map(|(c, d)| {
                told.iter().filter(|t| want(t.2, t.3)).map(|t| (d.min(t.1) - c.max(t.0)).max(0.0)).sum::<f64>()
            })
            .sum()
    };

    let (mut good, mut total, mut reason_ok, mut reason_all) = (0.0, 0.0, 0.0, 0.0);
    for span in spans.iter().filter(|s| s.to - s.from > 1.0) {
        let from = span.from + 1.0;
        total += length(from, span.to);
        good += overlap(from, span.to, &|s, _| *s == Some(span.state));
        let wanted: Option<Vec<&str>> = match (&span.reason, span.state) {
            (Some(reason), _) => Some(vec![reason]),
            (None, State::WaitingApproval) => Some(vec!["tool", "edit", "mcp", "fetch"]),
            (None, _) => None,
        };
        if let Some(wanted) = wanted {
            reason_all += overlap(from, span.to, &|s, _| *s == Some(span.state));
            reason_ok += overlap(from, span.to, &|s, r| {
                *s == Some(span.state) && r.as_deref().is_some_and(|r| wanted.contains(&r))
            });
        }
    }
    let approvals: Vec<&Span> = spans.iter().filter(|s| s.state == State::WaitingApproval).collect();
    let windows: Vec<&&Span> = approvals.iter().filter(|s| s.to - s.from >= 1.0).collect();
    let asks = |s: &Option<State>, _: &Option<String>| *s == Some(State::WaitingApproval);
    let hit = windows.iter().filter(|w| overlap(w.from, w.to, &asks) >= 0.5 * (w.to - w.from)).count();
    let false_approvals = told
        .iter()
        .filter(|t| asks(t.2, t.3) && t.1 - t.0 > 0.3 && t.0 < end)
        .filter(|t| !approvals.iter().any(|w| t.0 < w.to + 0.5 && t.1 > w.from - 0.5))
        .count();
    let states: Vec<&Option<State>> =
        shown.iter().filter(|s| begin - 0.5 <= s.0 && s.0 <= end - 1.5).map(|s| &s.1).collect();
    let changes = states.iter().enumerate().filter(|(i, s)| *i == 0 || states[i - 1] != **s).count();
    let true_changes = spans.iter().enumerate().filter(|(i, s)| *i == 0 || spans[i - 1].state != s.state).count();
    Score {
        agree: if total > 0.0 { 100.0 * good / total } else { 100.0 },
        windows: windows.len(),
        hit,
        false_approvals,
        reason: (reason_all > 0.0).then(|| 100.0 * reason_ok / reason_all),
        flaps: changes.saturating_sub(true_changes),
        exit_seen: shown.iter().any(|s| s.1 == Some(State::Exited) && s.0 >= end - 1.5),
    }
}
