//! A reported status counts as right up to one second before and after it is true; one that is no longer true counts as
//! wrong.

use events::{Confidence, Reason, State};
use tests::live::judge::{JudgedStatus, Truth, WrongMs, first_wrong, times, wrong_ms};

/// Running, waits for approval at second 10, turn complete at second 20.
fn truth() -> Vec<Truth> {
    let truth = |at, state, reason| Truth { from: at, by: at, state, reason };
    vec![
        truth(0, State::Running, None),
        truth(10_000, State::WaitingApproval, Some(Reason::Tool)),
        truth(20_000, State::Waiting, Some(Reason::TurnComplete)),
    ]
}

fn said(said: &[(i64, State, Option<Reason>)]) -> Vec<JudgedStatus> {
    said.iter().map(|(at, state, reason)| sure(*at, *state, *reason, Confidence::High)).collect()
}

fn sure(at: i64, state: State, reason: Option<Reason>, confidence: Confidence) -> JudgedStatus {
    JudgedStatus { at, state, reason, confidence }
}

fn judged(all: &[(i64, State, Option<Reason>)]) -> Option<String> {
    first_wrong(&truth(), &said(all), 30_000)
}

const WORKS: (i64, State, Option<Reason>) = (100, State::Running, Some(Reason::Thinking));
const DONE: (i64, State, Option<Reason>) = (20_100, State::Waiting, Some(Reason::TurnComplete));

#[test]
fn a_status_off_by_less_than_a_second_counts_as_right() {
    for at in [9_100, 10_000, 10_900] {
        assert_eq!(judged(&[WORKS, (at, State::WaitingApproval, Some(Reason::Tool)), DONE]), None, "from {at}");
    }
}

#[test]
fn a_status_off_by_more_than_a_second_counts_as_wrong() {
    for at in [8_500, 11_500] {
        let wrong = judged(&[WORKS, (at, State::WaitingApproval, Some(Reason::Tool)), DONE]);
        assert!(wrong.is_some(), "from {at}");
    }
    let wrong = judged(&[WORKS, DONE]).unwrap();
    assert_eq!(wrong, "running (thinking) is said 1000 ms into waiting_approval (tool)");
    assert_eq!(judged(&[]).unwrap(), "nothing is said 1000 ms into running");
}

#[test]
fn a_brief_return_to_an_outdated_status_counts_as_wrong() {
    let asks = (10_000, State::WaitingApproval, Some(Reason::Tool));
    let wrong = judged(&[WORKS, asks, (15_000, State::Running, None), (15_100, asks.1, asks.2), DONE]);
    assert!(wrong.unwrap().starts_with("running is said 50"));
}

#[test]
fn a_wrong_reason_counts_as_a_wrong_status() {
    let wrong = judged(&[WORKS, (10_000, State::WaitingApproval, Some(Reason::Edit)), DONE]).unwrap();
    assert!(wrong.starts_with("waiting_approval (edit) is said 1020 ms"), "{wrong}");
}

#[test]
fn a_change_within_an_interval_may_be_reported_anywhere_in_it() {
    let exited = Truth { from: 10_000, by: 14_000, state: State::Exited, reason: Some(Reason::Killed) };
    let truth = [truth()[0], exited];
    for (at, is_right) in [(8_500, false), (9_500, true), (12_000, true), (14_500, true), (15_500, false)] {
        let said = said(&[WORKS, (at, State::Exited, Some(Reason::Killed))]);
        assert_eq!(first_wrong(&truth, &said, 30_000).is_none(), is_right, "from {at}");
    }
}

#[test]
fn wrong_time_is_summed_per_confidence() {
    let tool = Some(Reason::Tool);
    let said = [
        sure(0, State::Running, None, Confidence::High),
        // Wrong from second 10 on: 4 s with low confidence, then 1 s with medium.
        sure(10_000, State::Running, tool, Confidence::Low),
        sure(14_000, State::Running, tool, Confidence::Medium),
        sure(15_000, State::WaitingApproval, tool, Confidence::High),
        // Wrong from second 20 on.
        sure(22_000, State::Waiting, Some(Reason::TurnComplete), Confidence::High),
        // The reason is wrong.
        sure(23_000, State::Waiting, Some(Reason::Interrupted), Confidence::Medium),
        sure(23_500, State::Waiting, Some(Reason::TurnComplete), Confidence::High),
    ];
    assert_eq!(wrong_ms(&truth(), &said, 30_000), WrongMs { high: 2_000, medium: 1_000, low: 4_000 });
    assert_eq!(wrong_ms(&[], &said, 30_000), WrongMs::default());
}

#[test]
fn repeated_reports_of_a_state_count_as_one_entry() {
    let states = [State::Waiting, State::Waiting, State::Running, State::Waiting];
    assert_eq!([State::Waiting, State::Running, State::Exited].map(|state| times(states, state)), [2, 1, 0]);
}
