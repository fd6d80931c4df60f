//! Damaged lines.

use super::*;

const PROMPT: &str = r#"{"timestamp":"2026-11-20T04:39:08.299Z","ordinal":12,"type":"event_msg","payload":{"type":"item_completed","thread_id":"t","turn_id":"u1","item":{"type":"UserMessage","id":"p1","content":[{"type":"text","text":"touch the file"}]}}}"#;

fn damaged(line: &[u8]) -> (Vec<String>, u64) {
    let (events, issues) = decode("/x", line);
    (events.iter().map(show).collect(), issues)
}

#[test]
fn a_record_joined_to_a_skipped_or_truncated_one_is_recovered() {
    let copy = r#"{"timestamp":"2026-11-20T04:39:08.299Z","ordinal":11,"type":"response_item","payload":{"type":"message","id":"m","role":"user","content":[]}}"#;
    let prompt = "user.prompt human \"touch the file\"".to_owned();
    assert_eq!(damaged(format!("{copy}{PROMPT}").as_bytes()), (vec![prompt.clone()], 0));
    // The event of the lost record comes before that of the recovered one, as in the file.
    let both = vec!["unrecognized damaged".to_owned(), prompt];
    assert_eq!(damaged(format!("{}{PROMPT}", &copy[..90]).as_bytes()), (both, 1));
    let (seen, issues) = damaged(format!("{}\0\0\0", &copy[..90]).as_bytes());
    assert_eq!((seen.as_slice(), issues), (&["unrecognized damaged".to_owned()][..], 2));
}

#[test]
fn a_record_after_a_truncated_output_is_recovered() {
    let cut = r#"{"timestamp":"2026-11-20T04:39:08.299Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"half of it"#;
    let both = ["unrecognized damaged", "user.prompt human \"touch the file\""].map(str::to_owned).to_vec();
    assert_eq!(damaged(format!("{cut}{PROMPT}").as_bytes()), (both, 1));
}

#[test]
fn invalid_utf8_is_replaced_and_counted_as_an_issue() {
    let line = br#"{"timestamp":"2026-11-20T04:39:08.299Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"a~b"}}"#;
    let line: Vec<u8> = line.iter().map(|byte| if *byte == b'~' { 0xff } else { *byte }).collect();
    assert_eq!(damaged(&line), (vec!["tool.result c ok \"a\u{fffd}b\"".to_owned()], 1));
}

#[test]
fn lines_without_a_valid_envelope_are_kept_as_damaged() {
    for line in ["{}", r#"{"type":"event_msg"}"#, r#"{"payload":{}}"#, "[1,2]", "7", "rollout"] {
        let (seen, issues) = damaged(line.as_bytes());
        assert_eq!((seen, issues), (vec!["unrecognized damaged".to_owned()], 1), "{line}");
    }
}

#[test]
fn a_field_of_the_wrong_type_does_not_lose_its_record() {
    check(
        r#"
        @event_msg {"type":"item_completed","turn_id":7,"item":{"type":"UserMessage","id":{"x":1},"content":[{"type":"text","text":"a"},3]}}
        @event_msg {"type":"task_complete","turn_id":null,"error":"bad"}
        @response_item {"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},{"type":"input_image"},4]}
        @response_item {"type":"function_call_output","call_id":"d","output":null}
        @response_item {"type":"function_call_output","call_id":"e","output":{"content":"no","success":false}}
        @event_msg {"type":"token_count","info":{"last_token_usage":"x"}}
        @turn_context {"model":3,"cwd":null,"approval_policy":{"granular":{}}}
        "#,
        &[
            "user.prompt human \"a\"",
            "error other - ends_turn \"bad\"",
            "signal ended failed",
            "tool.result c ok \"a\"",
            "tool.result d ok \"\"",
            "tool.result e error \"no\"",
            "annotation permission_mode {\"granular\":{}}",
        ],
    );
}
