//! Status reports of real agents (`fixtures/terminal/status-reports.jsonl`), compared with their true state.

use std::fmt::Write as _;

use serde::Deserialize;

use super::*;

/// The reports of an agent in one session and its true states; times in seconds from the start.
#[derive(Deserialize)]
struct Recording {
    agent: String,
    version: String,
    scenario: String,
    /// The time, the body of the OSC sequence, and its terminator.
    reports: Vec<(f64, String, String)>,
    truth: Vec<(f64, State)>,
}

fn recordings() -> Vec<Recording> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/terminal/status-reports.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The state derived from the reports, from each moment on.
fn read(recording: &Recording) -> Vec<(f64, Option<State>)> {
    // The rules for any program, so that only the reports count.
    let mut stage = Stage::sized(SIZE, Provider::Unknown, embedded());
    let begin = stage.now;
    let mut seen = Vec::new();
    let end = recording.truth.last().unwrap().0;
    let mut reports = recording.reports.iter().peekable();
    for step in 0..(end * 100.0) as i64 {
        let at = step as f64 / 100.0;
        while let Some((_, body, terminator)) = reports.next_if(|(reported_at, ..)| *reported_at <= at) {
            let terminator = if terminator == "BEL" { "\x07" } else { "\x1b\\" };
            stage.write(&format!("\x1b]{body}{terminator}"));
        }
        stage.pass(begin + step * 10 - stage.now);
        seen.push((at, stage.observer.picture().claim.map(|claim| claim.state)));
    }
    seen
}

#[test]
fn self_reported_states_match_the_true_state_in_recordings() {
    let mut table = String::new();
    let mut worst: f64 = 1.0;
    for recording in recordings() {
        let seen = read(&recording);
        // Counts from the first report on, and allows the agent 0.4 s to notice a change.
        let first = recording.reports[0].0;
        let state_at = |at: f64| recording.truth.iter().rev().find(|(from, _)| *from <= at).map(|(_, state)| *state);
        let changed = |at: f64| recording.truth.iter().any(|(from, _)| *from <= at + 0.1 && at < *from + 0.4);
        let judged: Vec<bool> = seen
            .iter()
            .filter(|(at, _)| *at >= first && !changed(*at))
            .map(|(at, state)| state_at(*at) == *state)
            .collect();
        let share = judged.iter().filter(|right| **right).count() as f64 / judged.len() as f64;
        let _ =
            writeln!(table, "{:5.1} % {} {} {}", 100.0 * share, recording.agent, recording.version, recording.scenario);
        // A background shell keeps Claude Code at `working`, although it accepts a prompt.
        if recording.scenario != "questions" {
            worst = worst.min(share);
        }
    }
    assert!(worst > 0.95, "{table}");
}
