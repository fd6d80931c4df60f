//! The single JSON file, built from the messages that 0.61.0 copied from 0.38.2 (S92).

use std::collections::HashSet;

use super::*;

fn document(messages: &[&str]) -> String {
    format!(
        "{{\n  \"sessionId\": \"s1\",\n  \"projectHash\": \"ab\",\n  \"startTime\": \"2026-11-20T04:51:33.370Z\",\n  \"lastUpdated\": \"2026-11-20T04:51:44.717Z\",\n  \"messages\": [{}],\n  \"kind\": \"main\"\n}}",
        messages.join(",\n")
    )
}

/// Decodes each version of the file with a new decoder that receives the previous one's state; returns the new events
/// of each version.
fn versions(documents: &[String]) -> Vec<Vec<String>> {
    let path = "/h/.gemini/tmp/p/chats/session-2026-11-20T04-51-a1975ea0.json";
    let mut known = HashSet::new();
    let mut state: Option<String> = None;
    documents
        .iter()
        .map(|document| {
            let mut decoder = GeminiLegacyDecoder::new(path, state.as_deref());
            let mut out = output(path);
            give(&mut decoder, &mut out, &[document]);
            decoder.pause(&mut out);
            state = decoder.state();
            out.events.iter().filter(|e| known.insert(e.identity)).map(short).collect()
        })
        .collect()
}

#[test]
fn each_rewrite_emits_only_new_records() {
    let update = with_calls(&call("read_file", r#"{"file_path":"notes.txt"}"#, "success", r#"{"output":"alpha"}"#));
    let seen = versions(&[
        document(&[PROMPT]),
        document(&[PROMPT, EMPTY]),
        document(&[PROMPT, &update]),
        document(&[PROMPT, &update, ANSWER]),
        document(&[PROMPT, &update, ANSWER, CANCELLED]),
    ]);
    assert_eq!(
        seen[0],
        [
            "session.started new cwd=- parent=- type=-",
            "user.prompt human | run the greeting command",
            "signal running thinking low"
        ]
    );
    assert_eq!(seen[1], ["assistant.message calls=0 thinking=-", "signal running tool low"]);
    assert_eq!(
        seen[2],
        [
            r#"tool.call read_file read `notes.txt` | {"file_path":"notes.txt"}"#,
            "tool.result ok None | alpha",
            "signal running thinking low"
        ]
    );
    assert_eq!(
        seen[3],
        [
            "assistant.message calls=0 thinking=- | The command printed a greeting.",
            "usage.reported 1000+200>65",
            "signal ended completed low"
        ]
    );
    assert_eq!(seen[4], ["signal ended interrupted high"]);
}

/// 0.10.0 writes no record that ends the turn.
#[test]
fn a_turn_whose_calls_were_all_denied_likely_ends() {
    let refused = r#"{"error":"[Operation Cancelled] Reason: User did not allow tool call"}"#;
    let announced = EMPTY.replace("\"content\":\"\"", "\"content\":\"I will run it.\"");
    let calls = call("run_shell_command", r#"{"command":"touch other"}"#, "cancelled", refused);
    let denied = format!("{},\"toolCalls\":[{calls}]}}", &announced[..announced.len() - 1]);
    let next = PROMPT.replace("u1", "u9").replace("run the greeting command", "go on");
    let messages: [&[&str]; 3] = [&[PROMPT, &announced], &[PROMPT, &denied], &[PROMPT, &denied, &next]];
    let seen = versions(&messages.map(document));
    assert_eq!(seen[0].last().unwrap(), "signal running tool low", "{:?}", seen[0]);
    assert_eq!(seen[1].last().unwrap(), "signal ended denied low", "{:?}", seen[1]);
    assert!(seen[2].contains(&"signal ended denied medium".to_owned()), "{:?}", seen[2]);
}

/// 0.24.5 writes the same whether Esc is pressed at the dialog of a call or while the call runs.
#[test]
fn a_cancelled_call_ends_the_turn_as_interrupted_with_medium_confidence() {
    let stopped = r#"{"error":"[Operation Cancelled] Reason: User cancelled the operation."}"#;
    let announced = EMPTY.replace("\"content\":\"\"", "\"content\":\"I will run it.\"");
    let calls = call("run_shell_command", r#"{"command":"touch made"}"#, "cancelled", stopped);
    let cancelled = format!("{},\"toolCalls\":[{calls}]}}", &announced[..announced.len() - 1]);
    let seen = versions(&[document(&[PROMPT, &announced]), document(&[PROMPT, &cancelled, CANCELLED])]);
    assert_eq!(seen[1].last().unwrap(), "signal ended interrupted medium", "{:?}", seen[1]);
}

#[test]
fn text_added_to_a_message_is_emitted_as_a_delta() {
    let longer = ANSWER.replace("a greeting.", "a greeting. And more.");
    let seen = versions(&[document(&[PROMPT, ANSWER]), document(&[PROMPT, &longer]), document(&[PROMPT, &longer])]);
    assert_eq!(seen[1], ["assistant.delta |  And more."]);
    assert!(seen[2].is_empty(), "{:?}", seen[2]);
}

/// 0.24.5 writes several rounds of tools into one message.
#[test]
fn a_tool_call_added_to_a_message_is_decoded_once() {
    let one = call("glob", "{}", "success", "{}");
    let two = one.replace("\"c1\"", "\"c2\"");
    let seen =
        versions(&[document(&[PROMPT, &with_calls(&one)]), document(&[PROMPT, &with_calls(&format!("{one},{two}"))])]);
    assert_eq!(seen[1], ["tool.call glob read `described` | {}", "tool.result ok None", "signal running thinking low"]);
}

#[test]
fn the_converted_jsonl_file_adds_no_events() {
    let update = with_calls(&call("read_file", "{}", "success", r#"{"output":"alpha"}"#));
    let messages = [PROMPT, &update, ANSWER, CANCELLED];
    let (mut old, mut new) = (output("/x.json"), output(SESSION));
    let mut decoder = GeminiLegacyDecoder::new("/x.json", None);
    give(&mut decoder, &mut old, &[&document(&messages)]);
    decoder.pause(&mut old);
    let mut decoder = GeminiDecoder::new(SESSION, None);
    give(&mut decoder, &mut new, &[HEADER]);
    give(&mut decoder, &mut new, &messages);
    decoder.pause(&mut new);
    let known: HashSet<_> = old.events.iter().map(|e| e.identity).collect();
    let added: Vec<String> = new.events.iter().filter(|e| !known.contains(&e.identity)).map(short).collect();
    assert!(added.is_empty(), "{added:?}");
    assert_eq!(old.events.len(), new.events.len());
}

#[test]
fn a_truncated_document_is_an_error_and_emits_nothing() {
    let mut decoder = GeminiLegacyDecoder::new("/x.json", None);
    let whole = document(&[PROMPT]);
    let mut out = output("/x.json");
    assert!(
        decoder
            .record(
                Record { bytes: &whole.as_bytes()[..whole.len() / 2], offset: 0, observed_at: Timestamp::MIN },
                &mut out
            )
            .is_err()
    );
    assert!(out.events.is_empty());
    give(&mut decoder, &mut out, &[&whole]);
    assert_eq!(out.events.len(), 2);
}

#[test]
fn calls_without_an_id_are_decoded_and_only_damaged_ones_are_lost() {
    let call = |id: &str, file: &str| {
        call("read_file", &format!(r#"{{"file_path":"{file}"}}"#), "success", r#"{"output":"x"}"#).replacen(
            r#""id":"c1""#,
            id,
            1,
        )
    };
    let whole = call(r#""id":"c1""#, "a.txt");
    let calls =
        [call(r#""x":1"#, "a.txt"), r#""damaged""#.into(), call(r#""x":1"#, "b.txt"), call(r#""id":"c9""#, "c.txt")];
    assert_ne!(calls[0], whole, "{whole}");
    let seen = versions(&[document(&[PROMPT, &with_calls(&calls.join(",")), ANSWER, "7"])]);
    let of = |kind: &str| seen[0].iter().filter(|line| line.starts_with(kind)).count();
    assert_eq!(
        [of("user.prompt"), of("tool.call"), of("tool.result"), of("assistant.message")],
        [1, 3, 3, 1],
        "{seen:#?}"
    );
}
