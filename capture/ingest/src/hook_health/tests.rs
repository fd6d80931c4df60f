use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millisecond(1_795_149_432_000 + seconds * 1000)
}

fn heard(deliveries: &[i64], turns: &[i64]) -> AgentHookHealth {
    let heard = HookHealth::default();
    let mut all: Vec<_> = deliveries.iter().map(|s| (*s, true)).chain(turns.iter().map(|s| (*s, false))).collect();
    all.sort_unstable();
    for (seconds, delivery) in all {
        if delivery { heard.delivery(Provider::Codex, at(seconds)) } else { heard.turn(Provider::Codex, at(seconds)) }
    }
    assert_eq!(heard.of(Provider::Claude), AgentHookHealth::default(), "each agent for itself");
    heard.of(Provider::Codex)
}

#[test]
fn hook_silence_during_recent_turns_is_detected() {
    let hearing = heard(&[], &[0, 30, 100]);
    assert_eq!(hearing.silent_since(None, at(120)), None, "it may still come");
    assert_eq!(hearing.silent_since(None, at(121)), Some(at(0)));
    assert_eq!(hearing.silent_since(None, at(700)), Some(at(0)));
    assert_eq!(hearing.silent_since(None, at(701)), None, "nothing goes on any more");
}

#[test]
fn a_delivery_ends_the_silence_and_covers_its_turn() {
    assert_eq!(heard(&[101], &[0, 100]).silent_since(None, at(300)), None);
    assert_eq!(heard(&[0, 290], &[1, 291]).silent_since(None, at(500)), None, "a long turn between two calls");
    assert_eq!(heard(&[0], &[1, 100]).silent_since(None, at(300)), Some(at(100)), "it stopped");
    assert_eq!(heard(&[5], &[]).silent_since(None, at(900)), None, "no turn, no alarm");
    assert_eq!(heard(&[5, 3], &[]).last_delivery, Some(at(5)));
}

#[test]
fn silence_counts_only_from_the_installation_of_the_hooks() {
    let hearing = heard(&[], &[0, 100]);
    assert_eq!(hearing.silent_since(Some(at(90)), at(200)), None);
    assert_eq!(hearing.silent_since(Some(at(90)), at(211)), Some(at(90)));
    assert_eq!(hearing.silent_since(Some(at(101)), at(300)), None, "no turn since");
}
