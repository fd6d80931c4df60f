//! The benchmark of our own agent produces its figures and reports missed limits.

use std::process::{Command, Output};

const BENCH: &str = env!("CARGO_BIN_EXE_agentbench");

/// Runs a row of the benchmark with the program from the same build.
fn bench(words: &[&str]) -> Output {
    Command::new(BENCH).args(words).args(["--binary", super::PROGRAM]).output().unwrap()
}

/// The lines of the table for this row.
#[track_caller]
fn met(words: &[&str], row: &str) -> Vec<String> {
    let output = bench(words);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{words:?} {output:?}");
    let rows: Vec<String> =
        text.lines().filter(|line| line.starts_with(&format!("| {row} |"))).map(str::to_owned).collect();
    assert!(rows.iter().all(|row| !row.contains("missed")), "{rows:?}");
    rows
}

#[test]
fn a_script_ends_with_the_same_files_in_two_apis() {
    assert_eq!(met(&["turns", "--api", "anthropic,gemini", "--n", "10", "--strict"], "A1").len(), 2);
}

#[test]
fn killed_sessions_are_resumed() {
    assert_eq!(met(&["kill", "--random", "8"], "A5").len(), 1);
}

#[test]
fn cache_figures_cover_a_second_session_and_a_model_switch() {
    let words = ["cache", "--api", "anthropic,gemini", "--second-session", "--model-switch"];
    assert_eq!(met(&words, "A4").len(), 4);
}

/// A missed limit makes the exit code 1, so scripts need not parse the table.
#[test]
fn a_missed_limit_exits_with_1_and_a_failed_start_with_2() {
    // `/bin/false` accepts no input: the first request fails, and with it the measurement.
    let output = Command::new(BENCH).args(["turns", "--n", "10", "--binary", "/bin/false"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("**missed**"), "{output:?}");
    let output = Command::new(BENCH).args(["turns", "--binary", "/nonexistent"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
