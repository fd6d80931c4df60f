//! The labelled sets of `fixtures/advisor`, played through the real program.

use tests::{
    advisorbench::{boundaries, causes, claims::Claims, fixture, receipts},
    program::Machine,
};

use super::PROGRAM;

/// An accusation must be right in 98 % of the cases, and 70 % of them must be found.
#[test]
fn statements_of_the_labelled_pairs_are_judged() {
    let claims = Claims::played(&Machine::new(PROGRAM), &fixture("claims.jsonl"));
    let (accused, rightly, guilty) = (claims.accused, claims.rightly, claims.guilty);
    let shown = claims.figures();
    println!("{}\n{}", shown.wrong.join("\n"), shown.lines.join("\n"));
    assert!(accused > 0 && rightly * 100 >= accused * 98, "{rightly} of {accused} accusations are right");
    assert!(rightly * 100 >= guilty * 70, "{rightly} of {guilty} accusations are found");
}

#[test]
fn every_breach_of_the_labelled_sessions_is_found_and_no_twin() {
    let figures = boundaries::played(&Machine::new(PROGRAM), &fixture("boundaries.jsonl"));
    assert!(figures.wrong.is_empty(), "{}\n{}", figures.wrong.join("\n"), figures.lines.join("\n"));
    assert_eq!(figures.lines[0], "breaches found: 39 of 39");
}

#[test]
fn receipts_of_the_labelled_turns_are_right() {
    let figures = receipts::compared(&Machine::new(PROGRAM), &fixture("turns.jsonl"), None);
    assert!(figures.wrong.is_empty(), "{}\n{}", figures.wrong.join("\n"), figures.lines.join("\n"));
}

#[test]
fn the_causes_of_recorded_runs_are_named() {
    let figures = causes::named(&fixture("causes.jsonl"));
    assert!(figures.wrong.is_empty(), "{}\n{}", figures.wrong.join("\n"), figures.lines.join("\n"));
}
