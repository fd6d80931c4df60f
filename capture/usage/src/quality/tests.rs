use events::{TurnId, TurnTrigger};
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
    }
}

#[test]
fn time_is_active_waiting_or_idle() {
    let turns = [
        turn(1, 0, 10, TurnOutcome::Completed),
        turn(2, 15, 20, TurnOutcome::Interrupted),
        turn(3, 100, 101, TurnOutcome::Completed),
        // By another clock: it began before the one before it ended.
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
fn latencies_are_ranks_of_what_people_answered() {
    let times: Vec<u64> = (1..=10).map(|n| n * 100).collect();
    let all = latency(None, times.clone());
    assert_eq!((all.answered, all.p50_ms, all.p90_ms), (10, 500, 900));
    let one = latency(Some("Bash".into()), vec![7]);
    assert_eq!((one.p50_ms, one.p90_ms), (7, 7));
    assert!(latencies(&[]).is_empty());
}

#[test]
fn a_store_without_turns_has_no_figures() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = store::Writer::open(dir.path()).unwrap();
    let id = SessionId::mint(at(1), Provider::Claude, "s");
    writer.begin().unwrap();
    let row = writer.add_session(id, Provider::Claude, "s").unwrap();
    writer.put_session(row, at(200), r#"{"title":"T"}"#, "{}").unwrap();
    writer.commit().unwrap();
    let request =
        QualityRequest { since: None, until: None, session: None, agents: Vec::new(), project: None, limit: 9 };
    assert!(quality(&writer.reader(), &request).unwrap().sessions.is_empty());
    writer.begin().unwrap();
    for turn in [turn(1, 0, 10, TurnOutcome::Completed), turn(2, 100, 110, TurnOutcome::Failed)] {
        writer.put_turn(row, &turn).unwrap();
    }
    writer.commit().unwrap();
    let report = quality(&writer.reader(), &request).unwrap();
    assert_eq!((report.total.turns, report.total.test_fix_loops, report.sessions.len()), (2, Some(0), 1));
    assert_eq!((report.sessions[0].title.as_deref(), report.sessions[0].last_turn_at), (Some("T"), at(110)));
    let late = QualityRequest { since: Some(at(50)), ..request.clone() };
    assert_eq!(quality(&writer.reader(), &late).unwrap().total.turns, 1);
    let one = QualityRequest { session: Some(id), until: Some(at(50)), ..request };
    assert_eq!(quality(&writer.reader(), &one).unwrap().total.turns, 1);
}
