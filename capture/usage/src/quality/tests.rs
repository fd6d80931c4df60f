use events::{Provider, TurnId, TurnTrigger};
use projections::{FailureKind, Usage};

use super::*;

const MINUTE: i64 = 60_000;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_millisecond(minute * MINUTE)
}

fn turn(number: u32, from: i64, to: i64, outcome: TurnOutcome) -> Turn {
    Turn {
        id: TurnId::from_bits(number.into()),
        number,
        trigger: TurnTrigger::Prompt,
        prompt: None,
        text: None,
        messages: 1,
        tool_calls: 4,
        tool_errors: 1,
        approvals: 0,
        steering: 0,
        outcome: Some(outcome),
        started_at: at(from),
        completed_at: Some(at(to)),
        usage: Usage::default(),
        failures: BTreeMap::from([(FailureKind::TestFailure, 1)]),
        test_fix_loops: Some(1),
        work: projections::TurnWork::default(),
        receipt: events::Receipt::default(),
    }
}

#[test]
fn time_is_active_waiting_or_idle() {
    let turns = [
        turn(1, 0, 10, TurnOutcome::Completed),
        turn(2, 15, 20, TurnOutcome::Interrupted),
        turn(3, 100, 101, TurnOutcome::Completed),
        // From a different clock: it began before the previous turn ended.
        turn(4, 100, 102, TurnOutcome::Completed),
    ];
    let ended: Vec<(&Turn, Timestamp)> = turns.iter().map(|turn| (turn, turn.completed_at.unwrap())).collect();
    let quality = of_turns(&ended, 3 * MINUTE);
    let minutes = |ms: u64| ms / 60_000;
    assert_eq!((minutes(quality.active_ms), minutes(quality.waiting_ms), minutes(quality.idle_ms)), (15, 8, 80));
    assert_eq!((quality.turns, quality.completed_turns, quality.tool_calls, quality.failed_calls), (4, 3, 16, 4));
    assert_eq!(quality.failures, BTreeMap::from([(FailureKind::TestFailure, 4)]));
    let all_waited = of_turns(&ended, 1_000 * MINUTE);
    assert_eq!((all_waited.active_ms, minutes(all_waited.waiting_ms)), (0, 5 + 18));
}

#[test]
fn latency_percentiles_are_nearest_rank_values() {
    let times: Vec<u64> = (1..=10).map(|n| n * 100).collect();
    let all = latency(None, times.clone());
    assert_eq!((all.answered, all.p50_ms, all.p90_ms), (10, 500, 900));
    let one = latency(Some("Bash".into()), vec![7]);
    assert_eq!((one.p50_ms, one.p90_ms), (7, 7));
    assert!(latencies(&[]).is_empty());
}

#[test]
fn quality_is_reported_only_for_sessions_with_turns_in_the_period() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = store::Writer::open(dir.path()).unwrap();
    let id = SessionId::mint(at(1), Provider::Claude, "s");
    writer.begin().unwrap();
    let row = writer.add_session(id, Provider::Claude, "s").unwrap();
    writer.put_session(row, at(200), r#"{"title":"T"}"#, "{}").unwrap();
    writer.commit().unwrap();
    let reader = writer.reader();
    let report = |of: SessionPeriod| quality(&reader, &QualityRequest { of, limit: 9 }).unwrap();
    assert!(report(SessionPeriod::default()).sessions.is_empty());
    writer.begin().unwrap();
    let turns = [turn(1, 0, 10, TurnOutcome::Completed), turn(2, 100, 110, TurnOutcome::Failed)];
    for turn in turns {
        writer.put_turn(row, &turn).unwrap();
    }
    writer.commit().unwrap();
    let all = report(SessionPeriod::default());
    assert_eq!((all.total.turns, all.total.test_fix_loops, all.sessions.len()), (2, Some(2), 1));
    assert_eq!((all.sessions[0].title.as_deref(), all.sessions[0].last_turn_at), (Some("T"), at(110)));
    let late = report(SessionPeriod { since: Some(at(50)), ..SessionPeriod::default() });
    assert_eq!((late.total.turns, late.since, late.until), (1, Some(at(50)), None));
    let one = report(SessionPeriod { session: Some(id), until: Some(at(50)), ..SessionPeriod::default() });
    assert_eq!(one.total.turns, 1);
}

#[test]
fn test_fix_loops_are_unknown_for_turns_that_did_not_record_them() {
    let old = Turn { test_fix_loops: None, ..turn(1, 0, 10, TurnOutcome::Completed) };
    let new = Turn { test_fix_loops: Some(3), ..turn(2, 20, 30, TurnOutcome::Completed) };
    let ended = |turns: &[Turn]| {
        let ended: Vec<(&Turn, Timestamp)> = turns.iter().map(|turn| (turn, turn.completed_at.unwrap())).collect();
        of_turns(&ended, 0).test_fix_loops
    };
    assert_eq!(ended(std::slice::from_ref(&old)), None, "not known");
    assert_eq!(ended(&[old, new.clone(), new]), Some(6));
}
