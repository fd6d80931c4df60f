//! Judges the shown statuses and summarizes the figures.

use std::{collections::BTreeMap, fmt::Write};

use events::{Confidence, State};
use serde_json::{Value, json};

use super::{Mode, Source, case::Case, play::Shown};
use crate::terminal::{PlayedTerminal, Score, ScreenStatus, judged, score_where};

/// The probability that each confidence stands for in the Brier score.
const CONFIDENCES: [(Confidence, &str, f64); 3] =
    [(Confidence::High, "high", 0.98), (Confidence::Medium, "medium", 0.85), (Confidence::Low, "low", 0.6)];

/// The result of one recording in one mode.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// `provider/scenario`.
    pub recording: String,
    /// The mode that was played.
    pub mode: Mode,
    /// The figures, or the error.
    pub result: Result<Figures, String>,
    /// The shown statuses.
    pub shown: Vec<Shown>,
}

/// The figures of one or several recordings.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// The comparison with the truth.
    pub score: Score,
    /// The number of ends that could be seen, and of those that were.
    pub exits: (usize, usize),
    /// For high, medium and low confidence: for how long it was shown, ms, and for how much of that time the status was
    /// right.
    pub confidence: [(i64, i64); 3],
}

impl Figures {
    fn add(&mut self, other: &Self) {
        self.score.add(&other.score);
        self.exits = (self.exits.0 + other.exits.0, self.exits.1 + other.exits.1);
        for (sum, more) in self.confidence.iter_mut().zip(other.confidence) {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
    }

    /// The mean squared error of the probability of a confidence, over the time a status was shown: 0 is best.
    #[must_use]
    pub fn brier(&self) -> Option<f64> {
        let time: i64 = self.confidence.iter().map(|(time, _)| time).sum();
        let off =
            self.confidence.iter().zip(CONFIDENCES).map(|((time, right), (_, _, p))| {
                *right as f64 * (1.0 - p).powi(2) + (time - right) as f64 * p.powi(2)
            });
        (time > 0).then(|| off.sum::<f64>() / time as f64)
    }
}

/// Compares the shown statuses with the truth.
#[must_use]
pub fn judge(case: &Case, mode: Mode, shown: Result<Vec<Shown>, String>) -> Outcome {
    let outcome = |result, shown| Outcome { recording: case.name.clone(), mode, result, shown };
    let shown = match shown {
        Ok(shown) => shown,
        Err(words) => return outcome(Err(words), Vec::new()),
    };
    let terminal = case.judged_as(mode);
    if terminal.truth.len() < 2 {
        return outcome(Err("nothing of the truth can be judged".to_owned()), shown);
    }
    let mut said: Vec<ScreenStatus> = Vec::new();
    for s in &shown {
        if said.last().is_none_or(|last| (last.state, last.reason) != (s.state, s.reason)) {
            said.push(ScreenStatus { at: s.at, state: s.state, reason: s.reason });
        }
    }
    let played = PlayedTerminal { shown: said, ..PlayedTerminal::default() };
    // With only hooks an approval can be seen if the agent called a hook for it.
    let hooks = case.permission_hooks();
    let by_hooks = mode.has(Source::Hooks) && !mode.has(Source::Pty);
    let asked = |from: i64, to: i64| {
        !by_hooks || hooks.iter().any(|hook| (from - 3000..=from + 1000).contains(hook) && *hook <= to)
    };
    let score = score_where(&terminal, &played, 0, &asked);
    let mut confidence = [(0, 0); 3];
    let ends = shown.iter().skip(1).map(|s| s.at).chain([i64::MAX]);
    for (s, end) in shown.iter().zip(ends) {
        let Some(slot) = CONFIDENCES.iter().position(|(c, ..)| Some(*c) == s.confidence) else { continue };
        for (from, to, truth) in judged(&terminal) {
            let time = (end.min(to) - s.at.max(from)).max(0);
            confidence[slot].0 += time;
            confidence[slot].1 += if s.state == truth.state { time } else { 0 };
        }
    }
    let last = terminal.truth[terminal.truth.len() - 1];
    let told_of_ends = mode.has(Source::Pty) || case.provider == events::Provider::Claude;
    let exits = if last.state == Some(State::Exited) && told_of_ends {
        (1, usize::from(shown.iter().any(|s| s.state == Some(State::Exited) && s.at >= last.at - 1500)))
    } else {
        (0, 0)
    };
    outcome(Ok(Figures { score, exits, confidence }), shown)
}

/// The sums by mode and provider, with the number played and failed; `all` is the sum over all providers.
#[must_use]
pub fn sums(outcomes: &[Outcome]) -> BTreeMap<(Mode, String), (usize, usize, Figures)> {
    let mut sums: BTreeMap<(Mode, String), (usize, usize, Figures)> = BTreeMap::new();
    for outcome in outcomes {
        let provider = outcome.recording.split('/').next().unwrap_or_default();
        for of in [provider, "all"] {
            let (count, failed, figures) = sums.entry((outcome.mode, of.to_owned())).or_default();
            *count += 1;
            match &outcome.result {
                Ok(more) => figures.add(more),
                Err(_) => *failed += 1,
            }
        }
    }
    sums
}

fn share((all, part): (i64, i64)) -> String {
    if all == 0 { "-".to_owned() } else { format!("{:.2}%", 100.0 * part as f64 / all as f64) }
}

fn brier(figures: &Figures) -> String {
    figures.brier().map_or("-".to_owned(), |score| format!("{score:.4}"))
}

/// The tables as text.
#[must_use]
pub fn table(outcomes: &[Outcome], worst: usize) -> String {
    let sums = sums(outcomes);
    let wide = sums.keys().map(|(mode, _)| mode.as_str().len()).max().unwrap_or_default().max("files".len());
    let mut out = String::new();
    writeln!(
        out,
        "{:<wide$} {:<8} {:>3} {:>6} {:>8} {:>8} {:>8} {:>6} {:>6} {:>5} {:>7} {:>8} {:>5} {:>6} {:>7}",
        "mode",
        "provider",
        "n",
        "failed",
        "agree",
        "raw",
        "recall",
        "p50ms",
        "p90ms",
        "false",
        "stuck s",
        "reason",
        "flaps",
        "exits",
        "brier"
    )
    .ok();
    for ((mode, provider), (count, failed, figures)) in &sums {
        let Figures { score, exits, .. } = figures;
        let delay = |of| if score.delays.is_empty() { "-".to_owned() } else { score.delay(of).to_string() };
        writeln!(
            out,
            "{:<wide$} {provider:<8} {count:>3} {failed:>6} {:>8} {:>8} {:>8} {:>6} {:>6} {:>5} {:>7.1} {:>8} {:>5} {:>6} {:>7}",
            mode.as_str(),
            share(score.time),
            share(score.raw),
            format!("{}/{}", score.approvals.1, score.approvals.0),
            delay(0.5),
            delay(0.9),
            score.false_approvals,
            score.stuck as f64 / 1000.0,
            share(score.reason),
            score.flaps,
            format!("{}/{}", exits.1, exits.0),
            brier(figures),
        )
        .ok();
    }
    writeln!(out, "\nconfidence: how much of the time it was said, and how often it was right then").ok();
    writeln!(out, "(of the Brier score: high = 0.98, medium = 0.85, low = 0.6; 0 is best)").ok();
    writeln!(out, "{:<wide$} {:<8} {:>18} {:>18} {:>18}", "mode", "provider", "high", "medium", "low").ok();
    for ((mode, provider), (.., figures)) in &sums {
        write!(out, "{:<wide$} {provider:<8}", mode.as_str()).ok();
        for time in figures.confidence {
            write!(out, " {:>18}", format!("{:.1} s {}", time.0 as f64 / 1000.0, share(time))).ok();
        }
        writeln!(out).ok();
    }
    let mut good: Vec<(&Outcome, &Figures)> =
        outcomes.iter().filter_map(|o| Some((o, o.result.as_ref().ok()?))).collect();
    good.sort_by(|a, b| a.1.score.agree().total_cmp(&b.1.score.agree()));
    writeln!(out, "\nworst:").ok();
    for (outcome, Figures { score, .. }) in good.into_iter().take(worst) {
        writeln!(
            out,
            "  {:6.2}%  {:<wide$} {}  recall {}/{}  false {}  stuck {:.1} s  flaps {}",
            score.agree(),
            outcome.mode.as_str(),
            outcome.recording,
            score.approvals.1,
            score.approvals.0,
            score.false_approvals,
            score.stuck as f64 / 1000.0,
            score.flaps
        )
        .ok();
    }
    for outcome in outcomes {
        if let Err(words) = &outcome.result {
            writeln!(out, "  failed   {:<wide$} {}: {words}", outcome.mode.as_str(), outcome.recording).ok();
        }
    }
    out
}

/// All figures as JSON; times in ms.
#[must_use]
pub fn json(outcomes: &[Outcome]) -> Value {
    let figures = |f: &Figures| {
        let s = &f.score;
        let confidence: BTreeMap<&str, Value> = CONFIDENCES
            .iter()
            .zip(f.confidence)
            .map(|((_, name, p), (ms, right))| (*name, json!({ "probability": p, "ms": ms, "right_ms": right })))
            .collect();
        json!({
            "judged_ms": s.time.0, "agree_ms": s.time.1, "raw_ms": s.raw.0, "raw_agree_ms": s.raw.1,
            "approvals": s.approvals.0, "approvals_seen": s.approvals.1, "delays_ms": s.delays,
            "false_approvals": s.false_approvals, "stuck_ms": s.stuck, "reason_ms": s.reason.0,
            "reason_right_ms": s.reason.1, "flaps": s.flaps, "exits": f.exits.0, "exits_seen": f.exits.1,
            "confidence": confidence, "brier": f.brier(),
        })
    };
    let recordings: Vec<Value> = outcomes
        .iter()
        .map(|o| {
            let shown: Vec<Value> =
                o.shown.iter().map(|s| json!([s.at, s.state, s.reason, s.confidence])).collect();
            let (result, error) = match &o.result {
                Ok(f) => (Some(figures(f)), None),
                Err(words) => (None, Some(words)),
            };
            json!({ "recording": o.recording, "mode": o.mode.as_str(), "figures": result, "error": error, "shown": shown })
        })
        .collect();
    let sums: Vec<Value> = sums(outcomes)
        .iter()
        .map(|((mode, provider), (count, failed, f))| {
            json!({ "mode": mode.as_str(), "provider": provider, "recordings": count, "failed": failed, "figures": figures(f) })
        })
        .collect();
    json!({ "sums": sums, "recordings": recordings })
}
