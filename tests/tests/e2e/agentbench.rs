//! The benchmark of our own agent measures, and says what is missed.

use std::process::{Command, Output};

const BENCH: &str = env!("CARGO_BIN_EXE_agentbench");

/// Runs a row with the program that was built with it.
fn bench(words: &[&str]) -> Output {
    Command::new(BENCH).args(words).args(["--binary", super::PROGRAM]).output().unwrap()
}

/// The table's lines of this row.
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
fn sessions_that_were_killed_are_taken_up() {
    assert_eq!(met(&["kill", "--random", "8"], "A5").len(), 1);
}

#[test]
fn a_second_session_begins_warm_and_a_switch_of_models_is_explained() {
    let words = ["cache", "--api", "anthropic,gemini", "--second-session", "--model-switch"];
    assert_eq!(met(&words, "A4").len(), 4);
}

/// A limit that is missed is the exit code, so that the table need not be read.
#[test]
fn what_is_missed_is_said() {
    // Nothing else can be written to: the first request fails, and so does what is measured.
    let output = Command::new(BENCH).args(["turns", "--n", "10", "--binary", "/bin/false"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("**missed**"), "{output:?}");
    let output = Command::new(BENCH).args(["turns", "--binary", "/nonexistent"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
