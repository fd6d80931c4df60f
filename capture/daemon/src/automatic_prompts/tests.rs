use events::{Finding, PromptId, Provider, QueuedState};
use store::Writer;

use super::*;

const DAY_MS: i64 = 24 * 3_600_000;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(1_795_149_432_000 + ms)
}

fn session(n: u128) -> SessionId {
    SessionId::from_bits(n)
}

fn finding(n: i64) -> FindingId {
    Finding::id_of(session(1), "loop", at(n))
}

/// A store with prompts queued at these times.
fn stored(prompts: &[(QueuedBy, i64)]) -> (tempfile::TempDir, Reader) {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(dir.path()).unwrap();
    writer.begin().unwrap();
    let row = writer.add_session(session(1), Provider::Claude, "s").unwrap();
    for (n, (by, ms)) in prompts.iter().enumerate() {
        let prompt = Prompt {
            id: PromptId::mint(at(*ms), [n as u8; 10]),
            session_id: session(1),
            state: QueuedState::Delivered,
            by: *by,
            text: "go on".into(),
            redacted: false,
            why: None,
            queued_at: at(*ms),
            ended_at: Some(at(*ms)),
        };
        writer.put_entity(row, &prompt).unwrap();
    }
    writer.commit().unwrap();
    let reader = writer.reader();
    (dir, reader)
}

#[test]
fn rules_send_one_prompt_per_finding_and_three_per_session_and_day() {
    let (_dir, reader) = stored(&[]);
    let mut sent = AutomaticPrompts::default();
    let mut admit = |n: i64, of: u128, ms: i64| sent.admit(session(of), &finding(n), at(ms), &reader);
    assert_eq!(admit(1, 1, 0), Ok(()));
    assert!(admit(1, 1, 1).unwrap_err().contains("for this finding"), "two rules for one finding");
    assert_eq!([admit(2, 1, 2), admit(3, 1, 3)], [Ok(()), Ok(())]);
    let refused = admit(4, 1, 4).unwrap_err();
    assert!(refused.contains("3 prompts to this session within 24 hours"), "{refused}");
    assert_eq!(admit(4, 2, 5), Ok(()), "another session has its own limit");
    assert!(admit(5, 1, DAY_MS - 1).is_err());
    assert_eq!(admit(5, 1, DAY_MS), Ok(()), "the first is a day old");
    assert!(admit(6, 1, DAY_MS).is_err());
}

#[test]
fn rules_send_twenty_prompts_a_day_in_all() {
    let (_dir, reader) = stored(&[]);
    let mut sent = AutomaticPrompts::default();
    let admitted = (0..100).filter(|n| sent.admit(session(*n), &finding(*n as i64), at(0), &reader).is_ok()).count();
    assert_eq!(admitted, 20);
}

#[test]
fn prompts_of_rules_from_before_a_restart_count_and_those_of_a_person_do_not() {
    use QueuedBy::{Monitor, Person};
    let (_dir, reader) = stored(&[(Monitor, -DAY_MS), (Monitor, -5), (Person, -4), (Person, -3), (Monitor, -2)]);
    let mut sent = AutomaticPrompts::default();
    assert_eq!(sent.admit(session(1), &finding(1), at(0), &reader), Ok(()));
    assert!(sent.admit(session(1), &finding(2), at(0), &reader).is_err());
}

#[test]
fn a_prompt_of_a_rule_is_refused_while_the_earlier_ones_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let reader = Reader::new(dir.path().join("capture.db"));
    let refused = AutomaticPrompts::default().admit(session(1), &finding(1), at(0), &reader).unwrap_err();
    assert!(refused.contains("cannot be read"), "{refused}");
}
