//! A history that is repeated: resumed, rewound, restored.

use super::*;

#[test]
fn a_rewritten_history_emits_no_known_record_again() {
    let restated = format!(
        r#"{{"$set":{{"messages":[{PROMPT},{}],"lastUpdated":"2026-11-20T05:00:00.000Z"}}}}"#,
        ANSWER.replace("\"The command printed a greeting.\"", r#"[{"text":"The command printed a greeting."}]"#)
    );
    check(
        &[PROMPT, TOUCH, ANSWER, TOUCH, &restated],
        &[
            "user.prompt human | run the greeting command",
            "assistant.message calls=0 thinking=- | The command printed a greeting.",
            "usage.reported 1000+200>65",
            "signal ended completed low",
        ],
    );
}

#[test]
fn a_rewritten_history_emits_unknown_records_as_history() {
    let restated = format!(r#"{{"$set":{{"messages":[{PROMPT},{ANSWER}],"lastUpdated":"2026-11-20T05:00:00.000Z"}}}}"#);
    check(
        &[&restated],
        &[
            "!user.prompt human | run the greeting command",
            "!assistant.message calls=0 thinking=- | The command printed a greeting.",
            "usage.reported 1000+200>65",
            "signal ended completed low",
        ],
    );
}

#[test]
fn a_history_rewritten_during_a_turn_leaves_the_turn_open() {
    let old = PROMPT.replace("u1", "u0").replace("04:39:20", "04:30:20");
    let restated = format!(r#"{{"$set":{{"messages":[{old}],"lastUpdated":"2026-11-20T05:00:00.000Z"}}}}"#);
    let update = with_calls(&call("glob", "{}", "success", "{}"));
    check(
        &[PROMPT, TOUCH, EMPTY, &restated, &update],
        &[
            "user.prompt human | run the greeting command",
            "assistant.message calls=0 thinking=-",
            "!user.prompt human | run the greeting command",
            "tool.call glob read `described` | {}",
            "tool.result ok None",
            "signal running thinking medium",
        ],
    );
}

#[test]
fn resuming_a_session_ends_its_open_turn_as_exited() {
    let restated = format!(r#"{{"$set":{{"messages":[{PROMPT}],"lastUpdated":"2026-11-20T05:00:00.000Z"}}}}"#);
    check(
        &[PROMPT, TOUCH, r#"{"$set":{"sessionId":"s1"}}"#, &restated],
        &[
            "user.prompt human | run the greeting command",
            "signal ended exited medium",
            "session.started resume cwd=- parent=- type=-",
        ],
    );
}

#[test]
fn a_rewind_is_a_fork_within_the_same_session() {
    check(
        &[PROMPT, TOUCH, ANSWER, r#"{"$rewindTo":"u1"}"#],
        &[
            "user.prompt human | run the greeting command",
            "assistant.message calls=0 thinking=- | The command printed a greeting.",
            "usage.reported 1000+200>65",
            "signal ended completed medium",
            "session.forked s1 u1",
        ],
    );
}

#[test]
fn a_rewind_names_the_turn_it_undoes() {
    let (mut decoder, mut out) = (GeminiDecoder::new(SESSION, None), output(SESSION));
    give(&mut decoder, &mut out, &[HEADER, PROMPT, TOUCH, ANSWER, r#"{"$rewindTo":"u1"}"#]);
    let prompt = out.events.iter().find(|event| matches!(event.payload, Payload::UserPrompt(_))).unwrap();
    let rewind = out.events.iter().find_map(|event| match &event.payload {
        Payload::SessionForked(fork) => fork.taken_back,
        _ => None,
    });
    assert_eq!(rewind, Some(prompt.identity.event_id().into()));
}

/// Built from a description of 0.61.0: `/resume resume tag` appends the tagged history under new ids, all with one
/// timestamp.
#[test]
fn records_of_a_restored_checkpoint_are_marked_as_history() {
    let at = |line: &str, id: &str| {
        line.replace("04:39:20.821Z", "06:00:00.000Z")
            .replace("04:39:28.743Z", "06:00:00.001Z")
            .replace("\"u1\"", id)
            .replace("\"g1\"", id)
    };
    let bare = at(
        r#"{"id":"g1","timestamp":"2026-11-20T04:39:28.743Z","type":"gemini","content":[{"text":"An answer."}]}"#,
        "\"g7\"",
    );
    check(
        &[&at(PROMPT, "\"u7\""), &bare, &at(PROMPT, "\"u8\""), &bare.replace("g7", "g8")],
        &[
            "!user.prompt human | run the greeting command",
            "!assistant.message calls=0 thinking=- | An answer.",
            "signal ended completed medium",
            "!user.prompt human | run the greeting command",
            "!assistant.message calls=0 thinking=- | An answer.",
            "signal ended completed low",
        ],
    );
}
