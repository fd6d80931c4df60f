use proptest::{collection::vec, prelude::*};
use session_tree::{Json, Object};

use super::draft::{InputForm, call_block};
use crate::{
    Api, CacheTtl, Decoder, EndReason, FailureKind, Marker, MarkerPlace, Prefix, StreamEvent, Target, Thinking,
    Transcript, Usage,
};

mod answers;
mod images;

pub(crate) const APIS: [Api; 4] = [Api::Anthropic, Api::Responses, Api::Chat, Api::Gemini];

pub(crate) fn target(api: Api) -> Target {
    let model = match api {
        Api::Anthropic => "claude-opus-4-5",
        Api::Responses | Api::Chat => "gpt-5.5",
        Api::Gemini => "gemini-3-pro",
    };
    Target::new(api, "vendor", model, 8192)
}

pub(crate) fn prefix() -> Prefix {
    let message = r#"{"role":"system","content":"You are careful.","sections":{"style":"Be brief."},
        "toolsAdded":[{"name":"bash","description":"Run a command","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}},
        {"name":"read","description":"Read a file","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}]}"#;
    Prefix::of_message(&object(message))
}

pub(crate) fn object(text: &str) -> Object {
    match Json::parse(text).unwrap() {
        Json::Object(object) => object,
        other => panic!("{other:?} is not an object"),
    }
}

fn transcript(api: Api) -> Transcript {
    Transcript::new(target(api), &prefix()).unwrap()
}

pub(crate) fn user(text: &str) -> Object {
    object(r#"{"role":"user","content":"","timestamp":1}"#).with("content", text)
}

pub(crate) fn result(call: &str, text: &str) -> Object {
    let content = Json::Array(vec![Object::new().with("type", "text").with("text", text).into()]);
    Object::new()
        .with("role", "toolResult")
        .with("toolCallId", call)
        .with("toolName", "bash")
        .with("content", content)
        .with("isError", false)
}

pub(crate) fn assistant(target: &Target, blocks: Vec<Object>) -> Object {
    Object::new()
        .with("role", "assistant")
        .with("content", blocks.into_iter().map(Json::Object).collect::<Vec<_>>())
        .with("api", target.api.name())
        .with("provider", target.provider.as_str())
        .with("model", target.model.as_str())
        .with("stopReason", "toolUse")
}

fn body(transcript: &Transcript) -> String {
    let body = String::from_utf8(transcript.request(Some("session"), &[]).unwrap().body.to_vec().unwrap()).unwrap();
    serde_json::from_str::<serde_json::Value>(&body).unwrap();
    body
}

/// The events of an answer whose bytes are split at these offsets.
fn decode(api: Api, answer: &str, cuts: &[usize]) -> Vec<StreamEvent> {
    let mut decoder = Decoder::new(api, "7");
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (answer.len() + 1)).collect();
    cuts.sort_unstable();
    cuts.push(answer.len());
    let (mut events, mut from) = (Vec::new(), 0);
    for cut in cuts {
        events.extend(decoder.feed(&answer.as_bytes()[from..cut]));
        from = cut;
    }
    events.extend(decoder.finish());
    events
}

fn blocks(events: &[StreamEvent]) -> Vec<Object> {
    let block = |event: &StreamEvent| match event {
        StreamEvent::Block(block) => Some(block.clone()),
        _ => None,
    };
    events.iter().filter_map(block).collect()
}

fn last_usage(events: &[StreamEvent]) -> Option<Usage> {
    events.iter().rev().find_map(|event| match event {
        StreamEvent::Usage(usage) => Some(*usage),
        _ => None,
    })
}

/// The bytes sent back for an answer: those of the blocks it adds to a request.
fn sent_back(api: Api, answer: &str) -> String {
    let blocks = blocks(&decode(api, answer, &[]));
    let mut transcript = transcript(api);
    transcript.push(&user("Begin"));
    let before: usize = transcript.chain().map(|block| block.bytes).sum();
    transcript.push(&assistant(&target(api), blocks));
    let after: usize = transcript.chain().map(|block| block.bytes).sum();
    let body = body(&transcript);
    body[before..after].to_owned()
}

#[test]
fn an_anthropic_answer_is_decoded_and_sent_back_unchanged() {
    let events = decode(Api::Anthropic, answers::ANTHROPIC, &[]);
    let texts: Vec<String> = blocks(&events).iter().map(Object::to_text).collect();
    assert_eq!(
        texts,
        [
            r#"{"type":"thinking","thinking":"Let me \"see\".","thinkingSignature":"EqQBCg=="}"#,
            r#"{"type":"thinking","thinking":"[Reasoning redacted]","thinkingSignature":"EmwKAhgB","redacted":true}"#,
            r#"{"type":"text","text":"I look: ü\n"}"#,
            r#"{"type":"toolCall","id":"toolu_01","name":"bash","arguments":{"command":"ls","n":1}}"#,
            r#"{"type":"toolCall","id":"toolu_02","name":"read","arguments":{"path":"a"},"raw":"{\"type\":\"tool_use\",\"id\":\"toolu_02\",\"name\":\"read\",\"input\":{\"path\":\"a\"},\"caller\":{\"type\":\"direct\"}}"}"#,
            r#"{"type":"opaque","raw":"{\"type\":\"container_upload\", \"file_id\":\"f_1\"}"}"#,
        ]
    );
    assert_eq!(events.last(), Some(&StreamEvent::Ended(EndReason::ToolUse)));
    let usage = Usage { input: 12, read: 5000, write_5m: 100, write_1h: 20, output: 77, reasoning: Some(30) };
    assert_eq!(last_usage(&events), Some(usage));
    let expected = [
        r#"]},{"role":"assistant","content":[{"type":"thinking","thinking":"Let me \"see\".","signature":"EqQBCg=="}"#,
        r#"{"type":"redacted_thinking","data":"EmwKAhgB"}"#,
        r#"{"type":"text","text":"I look: ü\n"}"#,
        r#"{"type":"tool_use","id":"toolu_01","name":"bash","input":{"command":"ls","n":1}}"#,
        r#"{"type":"tool_use","id":"toolu_02","name":"read","input":{"path":"a"},"caller":{"type":"direct"}}"#,
        r#"{"type":"container_upload", "file_id":"f_1"}"#,
    ];
    assert_eq!(sent_back(Api::Anthropic, answers::ANTHROPIC), expected.join(","));
}

#[test]
fn a_responses_answer_is_decoded_and_sent_back_unchanged() {
    let events = decode(Api::Responses, answers::RESPONSES, &[]);
    let blocks = blocks(&events);
    assert_eq!(blocks[0].text("thinking"), Some("**Plan**"));
    assert_eq!(blocks[0].text("thinkingSignature"), Some(answers::REASONING));
    assert_eq!(blocks[1].text("textSignature"), Some(r#"{"v":1,"id":"msg_1","phase":"commentary"}"#));
    assert_eq!(blocks[2].text("id"), Some("call_1|fc_1"));
    assert_eq!(blocks[2].text("argumentsText"), Some("{\"command\": \"ls\"}"));
    assert_eq!(blocks[3].text("type"), Some("opaque"));
    assert_eq!(events.last(), Some(&StreamEvent::Ended(EndReason::ToolUse)));
    let usage = Usage { input: 100, read: 1024, write_5m: 76, write_1h: 0, output: 60, reasoning: Some(10) };
    assert_eq!(last_usage(&events), Some(usage));
    let expected = format!(
        r#",{},{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"Looking.","annotations":[]}}],"status":"completed","id":"msg_1","phase":"commentary"}},{{"type":"function_call","id":"fc_1","call_id":"call_1","name":"bash","arguments":"{{\"command\": \"ls\"}}"}},{{"type":"web_search_call", "id":"ws_1","status":"completed"}}"#,
        answers::REASONING
    );
    assert_eq!(sent_back(Api::Responses, answers::RESPONSES), expected);
}

#[test]
fn reasoning_that_azure_encrypts_late_is_stored_in_its_block() {
    let events = decode(Api::Responses, answers::AZURE, &[]);
    let texts: Vec<Option<String>> =
        blocks(&events).iter().map(|b| b.text("thinkingSignature").map(str::to_owned)).collect();
    let whole = r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}"#;
    assert_eq!(texts, [Some(whole.to_owned()), None]);
}

#[test]
fn a_chat_answer_is_decoded_and_sent_back_unchanged() {
    let events = decode(Api::Chat, answers::CHAT, &[]);
    let texts: Vec<String> = blocks(&events).iter().map(Object::to_text).collect();
    assert_eq!(
        texts,
        [
            r#"{"type":"thinking","thinking":"Hm, so","thinkingSignature":"reasoning_content"}"#,
            r#"{"type":"text","text":"I look."}"#,
            r#"{"type":"toolCall","id":"call_a","name":"bash","arguments":{"command":"ls"}}"#,
            r#"{"type":"toolCall","id":"call_b","name":"read","arguments":{"path":"a"},"raw":"{\"id\":\"call_b\",\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":\"{\\\"path\\\":\\\"a\\\"}\"},\"extra_content\":{\"google\":{\"thought_signature\":\"c2ln\"}}}"}"#,
        ]
    );
    assert_eq!(events.last(), Some(&StreamEvent::Ended(EndReason::ToolUse)));
    let usage = Usage { input: 200, read: 1000, write_5m: 0, write_1h: 0, output: 60, reasoning: Some(10) };
    assert_eq!(last_usage(&events), Some(usage));
    let expected = r#",{"role":"assistant","content":"I look.","tool_calls":[{"id":"call_a","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"id":"call_b","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]}"#;
    assert_eq!(sent_back(Api::Chat, answers::CHAT), expected);
}

#[test]
fn a_gemini_answer_is_decoded_and_sent_back_unchanged() {
    let events = decode(Api::Gemini, answers::GEMINI, &[]);
    assert_eq!(events.last(), Some(&StreamEvent::Ended(EndReason::ToolUse)));
    let usage = Usage { input: 200, read: 1000, write_5m: 0, write_1h: 0, output: 65, reasoning: Some(25) };
    assert_eq!(last_usage(&events), Some(usage));
    // The second call was received without an id and is sent back without one.
    assert_eq!(blocks(&events)[4].text("id"), Some("gemini-call-7-4"));
    let expected = [
        r#"]},{"role":"model","parts":[{"thought":true,"text":"I think so."}"#,
        r#"{"text":"Two words"}"#,
        r#"{"text":"","thoughtSignature":"c2lnMQ=="}"#,
        r#"{"functionCall":{"name":"bash","args":{"command":"ls","n":2},"id":"fc-1"},"thoughtSignature":"c2lnMg=="}"#,
        r#"{"functionCall":{"name":"read","args":{}}}"#,
        r#"{"executableCode":{"language":"PYTHON", "code":"1"}}"#,
    ];
    assert_eq!(sent_back(Api::Gemini, answers::GEMINI), expected.join(","));
}

#[test]
fn a_truncated_answer_is_a_network_failure() {
    for (api, answer) in answers::ALL {
        // Gemini's last chunk is its end.
        let cut = answer.trim_end().rfind("\n\n").or(answer.trim_end().rfind("\r\n\r\n")).unwrap();
        let events = decode(api, &answer[..cut], &[]);
        let Some(StreamEvent::Failed(failure)) = events.last() else { panic!("{api}: {:?}", events.last()) };
        assert_eq!(failure.kind, FailureKind::Network, "{api}");
    }
}

#[test]
fn an_answer_without_its_last_line_end_is_complete() {
    for (api, answer) in answers::ALL {
        assert_eq!(decode(api, answer.trim_end(), &[]), decode(api, answer, &[]), "{api}");
    }
}

#[test]
fn unencrypted_reasoning_is_dropped_together_with_its_ids() {
    let sent = sent_back(Api::Responses, &answers::AZURE.replace("encrypted_content", "other"));
    assert_eq!(sent, r#",{"type":"function_call","call_id":"call_1","name":"bash","arguments":"{}"}"#);
    assert!(sent_back(Api::Responses, answers::AZURE).contains(r#""id":"fc_1""#));
    let mut target = target(Api::Responses);
    target.thinking = Thinking::Absent;
    let transcript = Transcript::new(target, &prefix()).unwrap();
    assert!(!body(&transcript).contains("reasoning"));
}

#[test]
fn errors_inside_a_stream_are_classified() {
    let check = |api, data: &str, kind| {
        let events = decode(api, &format!("data: {data}\n\n"), &[]);
        assert!(matches!(events.last(), Some(StreamEvent::Failed(f)) if f.kind == kind), "{data}: {events:?}");
    };
    check(
        Api::Anthropic,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        FailureKind::Overloaded,
    );
    check(
        Api::Responses,
        r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow"}}}"#,
        FailureKind::Rate,
    );
    check(Api::Responses, r#"{"type":"error","code":"server_error","message":"oops"}"#, FailureKind::Overloaded);
    check(
        Api::Chat,
        r#"{"error":{"message":"maximum context length is 8192 tokens","code":400}}"#,
        FailureKind::TooLong,
    );
    check(Api::Gemini, r#"{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}"#, FailureKind::Overloaded);
    check(Api::Gemini, r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#, FailureKind::Refused);
    check(Api::Anthropic, "<html>", FailureKind::Network);
}

#[test]
fn a_tool_call_with_truncated_input_is_marked_malformed() {
    let half = answers::ANTHROPIC.replace(r#"{"type":"content_block_stop","index":3}"#, r#"{"type":"ping"}"#);
    let events = decode(Api::Anthropic, &half, &[]);
    assert!(matches!(events.last(), Some(StreamEvent::Failed(f)) if f.kind == FailureKind::Network), "{events:?}");
    let block = call_block("c", "bash", r#"{"command": "l"#, InputForm::Value);
    assert_eq!(
        block.to_text(),
        r#"{"type":"toolCall","id":"c","name":"bash","arguments":{},"malformed":"{\"command\": \"l"}"#
    );
    // The vendor gets an object nevertheless.
    for api in APIS {
        let mut transcript = transcript(api);
        transcript.push(&user("x"));
        transcript.push(&assistant(&target(api), vec![block.clone()]));
        transcript.push(&result("c", "not JSON"));
        assert!(!body(&transcript).contains("malformed"));
    }
}

#[test]
fn duplicate_call_ids_in_an_answer_are_made_unique() {
    let twice = answers::ANTHROPIC.replace("toolu_02", "toolu_01");
    let ids: Vec<String> =
        blocks(&decode(Api::Anthropic, &twice, &[])).iter().filter_map(|b| b.text("id").map(str::to_owned)).collect();
    assert_eq!(ids, ["toolu_01", "toolu_01-2"]);
}

#[test]
fn unusual_number_spellings_in_arguments_are_preserved() {
    let answer = answers::ANTHROPIC.replace(r#"\"n\":1"#, r#"\"n\":1.0"#);
    assert!(sent_back(Api::Anthropic, &answer).contains(r#""input":{"command":"ls","n":1.0}"#));
    let answer = answers::GEMINI.replace(r#""n":2"#, r#""n":2.50"#);
    let sent = sent_back(Api::Gemini, &answer);
    assert!(sent.contains(r#""n":2.5"#), "{sent}");
}

#[test]
fn another_model_receives_no_thinking_signatures_or_opaque_blocks() {
    for (from, answer) in answers::ALL {
        for to in APIS.into_iter().filter(|to| *to != from) {
            let mut transcript = transcript(to);
            transcript.push(&user("Begin"));
            let blocks = blocks(&decode(from, answer, &[]));
            let ids: Vec<String> = blocks.iter().filter_map(|b| b.text("id").map(str::to_owned)).collect();
            transcript.push(&assistant(&target(from), blocks));
            for id in &ids {
                transcript.push(&result(id, "done"));
            }
            let body = body(&transcript);
            for secret in ["EqQBCg==", "EmwKAhgB", "gAAAAB", "c2lnM", "container_upload", "executableCode"] {
                assert!(!body.contains(secret), "{from} → {to}: {secret} in {body}");
            }
            assert!(!body.contains("No result provided"), "{from} → {to}");
        }
    }
}

#[test]
fn calls_without_a_result_get_one_and_results_without_a_call_are_left_out() {
    for api in APIS {
        let mut transcript = transcript(api);
        transcript.push(&user("x"));
        transcript.push(&assistant(&target(api), vec![call_block("c1", "bash", "{}", InputForm::Value)]));
        transcript.push(&user("y"));
        transcript.push(&result("c1", "too late"));
        let body = body(&transcript);
        assert_eq!(body.matches("No result provided").count(), 1, "{api}");
        assert!(!body.contains("too late"), "{api}");
    }
}

#[test]
fn cache_markers_are_placed_where_requested() {
    let mut transcript = transcript(Api::Anthropic);
    transcript.push(&user("one"));
    let thinking = object(r#"{"type":"thinking","thinking":"t","thinkingSignature":"s"}"#);
    transcript.push(&assistant(&target(Api::Anthropic), vec![object(r#"{"type":"text","text":"a"}"#), thinking]));
    transcript.push(&user("two"));
    let marker = |place| Marker { place, ttl: CacheTtl::FiveMinutes };
    let places = [MarkerPlace::Entry(2), MarkerPlace::System, MarkerPlace::Entry(1)];
    let request = transcript.request(None, &places.map(marker)).unwrap();
    assert_eq!(request.markers, [MarkerPlace::System, MarkerPlace::Entry(1), MarkerPlace::Entry(2)]);
    let body = String::from_utf8(request.body.to_vec().unwrap()).unwrap();
    let mark = r#""cache_control":{"type":"ephemeral"}"#;
    for place in [
        format!(r#"You are careful.\n\nBe brief.",{mark}}}],"messages""#),
        // Thinking cannot have a marker.
        format!(r#"{{"type":"text","text":"a",{mark}}},{{"type":"thinking""#),
        format!(r#"{{"type":"text","text":"two",{mark}}}]}}],"max_tokens""#),
    ] {
        assert!(body.contains(&place), "{place} in {body}");
    }
    assert_eq!(body.matches("cache_control").count(), 3);
    // Apart from the markers, it equals the request without markers.
    let bare = transcript.request(None, &[]).unwrap();
    assert_eq!(body.replace(&format!(",{mark}"), "").as_bytes(), bare.body.to_vec().unwrap());
}

#[test]
fn invalid_cache_markers_are_refused() {
    let mut transcript = transcript(Api::Anthropic);
    transcript.push(&user("one"));
    let at = |place, ttl| Marker { place, ttl };
    let five = at(MarkerPlace::System, CacheTtl::FiveMinutes);
    assert_eq!(transcript.request(None, &[five; 5]).unwrap_err(), crate::MarkerError::TooMany(5));
    let hour = at(MarkerPlace::Entry(0), CacheTtl::Hour);
    assert_eq!(transcript.request(None, &[five, hour]).unwrap_err(), crate::MarkerError::HourAfterFiveMinutes);
    let beyond = at(MarkerPlace::Entry(1), CacheTtl::Hour);
    assert_eq!(transcript.request(None, &[beyond]).unwrap_err(), crate::MarkerError::NoEntry(1));
}

#[test]
fn chat_requests_carry_cache_markers_if_the_server_supports_them() {
    let mut chat = target(Api::Chat);
    chat.chat.cache_control = true;
    let mut transcript = Transcript::new(chat.clone(), &prefix()).unwrap();
    transcript.push(&user("one"));
    transcript.push(&assistant(
        &chat,
        vec![object(r#"{"type":"text","text":"a"}"#), call_block("c", "bash", "{}", InputForm::Text)],
    ));
    transcript.push(&result("c", "out"));
    let marker = |place| Marker { place, ttl: CacheTtl::Hour };
    let places = [MarkerPlace::System, MarkerPlace::Entry(1), MarkerPlace::Entry(2)];
    let body = transcript.request(None, &places.map(marker)).unwrap().body.to_vec().unwrap();
    let body = String::from_utf8(body).unwrap();
    let value: serde_json::Value = serde_json::from_str(&body).unwrap();
    for message in [0, 2, 3] {
        assert_eq!(value["messages"][message]["content"][0]["cache_control"]["ttl"], "1h", "{body}");
    }
}

/// A piece of a conversation; any sequence is valid.
#[derive(Debug, Clone)]
enum Piece {
    User(String),
    /// Text, thinking with a signature, and `calls` calls, of which `answered` have results.
    Answer {
        text: String,
        signature: String,
        calls: usize,
        answered: usize,
    },
    Failed,
}

fn piece() -> impl Strategy<Value = Piece> {
    let text = || "[ a-z\"\\\\\n\u{1}ü€\u{2028}]{0,12}";
    prop_oneof![
        text().prop_map(Piece::User),
        (text(), "[A-Za-z0-9+/]{0,8}", 0..4_usize, 0..5_usize)
            .prop_map(|(text, signature, calls, answered)| Piece::Answer { text, signature, calls, answered }),
        Just(Piece::Failed),
    ]
}

fn messages(target: &Target, pieces: &[Piece]) -> Vec<Object> {
    let mut messages = Vec::new();
    for (n, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::User(text) => messages.push(user(text)),
            Piece::Failed => messages.push(assistant(target, vec![]).with("stopReason", "error")),
            Piece::Answer { text, signature, calls, answered } => {
                let id = |call: &usize| format!("c{n}-{call}");
                let mut blocks = vec![
                    object(r#"{"type":"thinking"}"#)
                        .with("thinking", text.as_str())
                        .with("thinkingSignature", signature.as_str()),
                    object(r#"{"type":"text"}"#).with("text", text.as_str()),
                ];
                blocks.extend(
                    (0..*calls).map(|call| call_block(&id(&call), "bash", r#"{"command":"ls"}"#, InputForm::Value)),
                );
                messages.push(assistant(target, blocks));
                messages.extend((0..*answered).map(|call| result(&id(&call), text)));
            }
        }
    }
    messages
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn decoding_does_not_depend_on_how_an_answer_is_split(cuts in vec(any::<usize>(), 0..24)) {
        for (api, answer) in answers::ALL {
            prop_assert_eq!(decode(api, answer, &cuts), decode(api, answer, &[]), "{}", api);
        }
    }

    #[test]
    fn each_request_extends_the_previous_one_byte_for_byte(pieces in vec(piece(), 0..8)) {
        for api in APIS {
            let target = target(api);
            let mut transcript = transcript(api);
            let mut before: Option<(String, Vec<crate::ChainBlock>)> = None;
            for message in messages(&target, &pieces) {
                transcript.push(&message);
                let chain: Vec<_> = transcript.chain().collect();
                let body = body(&transcript);
                if let Some((old, old_chain)) = &before {
                    let bytes: usize = old_chain.iter().map(|block| block.bytes).sum();
                    prop_assert_eq!(&old[..bytes], &body[..bytes], "{}", api);
                    prop_assert_eq!(&old_chain[..], &chain[..old_chain.len()]);
                }
                before = Some((body, chain));
            }
        }
    }

    #[test]
    fn a_session_that_was_read_again_sends_the_same_bytes(pieces in vec(piece(), 0..8), back in 0..8_usize) {
        for api in APIS {
            let messages = messages(&target(api), &pieces);
            let mut lived = transcript(api);
            messages.iter().for_each(|message| { lived.push(message); });
            // Read from the file.
            let mut read = transcript(api);
            messages.iter().for_each(|message| { read.push(&object(&message.to_text())); });
            prop_assert_eq!(body(&lived), body(&read));
            prop_assert_eq!(lived.chain().collect::<Vec<_>>(), read.chain().collect::<Vec<_>>());
            // After going back and forth.
            lived.truncate(messages.len().saturating_sub(back));
            lived.push(&user("elsewhere"));
            lived.truncate(messages.len().saturating_sub(back));
            messages.iter().skip(messages.len().saturating_sub(back)).for_each(|message| { lived.push(message); });
            prop_assert_eq!(body(&lived), body(&read));
        }
    }

    #[test]
    fn signatures_go_back_byte_for_byte(signature in "[A-Za-z0-9+/]{1,40}={0,2}", thinking in "\\PC{0,20}") {
        let text = |text: &str| serde_json::to_string(text).unwrap();
        let events = format!(
            "data: {{\"type\":\"message_start\",\"message\":{{}}}}\n\n\
             data: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}}}\n\n\
             data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"thinking_delta\",\"thinking\":{}}}}}\n\n\
             data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"signature_delta\",\"signature\":{}}}}}\n\n\
             data: {{\"type\":\"content_block_stop\",\"index\":0}}\n\n\
             data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\"}}}}\n\n\
             data: {{\"type\":\"message_stop\"}}\n\n",
            text(&thinking), text(&signature),
        );
        let sent = sent_back(Api::Anthropic, &events);
        let block = format!(r#"{{"type":"thinking","thinking":{},"signature":{}}}"#, text(&thinking), text(&signature));
        prop_assert!(sent.ends_with(&block), "{} in {}", block, sent);
    }

    #[test]
    fn decoding_any_bytes_ends_with_exactly_one_final_event(bytes in vec(any::<u8>(), 0..400), json in "\\PC{0,60}") {
        for api in APIS {
            let mut decoder = Decoder::new(api, "1");
            let mut events = decoder.feed(&bytes);
            events.extend(decoder.feed(format!("\n\ndata: {json}\n\n").as_bytes()));
            events.extend(decoder.finish());
            prop_assert!(events.last().is_some_and(StreamEvent::is_last));
            prop_assert_eq!(events.iter().filter(|event| event.is_last()).count(), 1);
        }
    }
}

#[test]
fn only_anthropic_requests_carry_a_token_limit_when_none_is_set() {
    for (api, wanted) in [
        (Api::Anthropic, Some(r#""max_tokens":32000"#)),
        (Api::Responses, None),
        (Api::Chat, None),
        (Api::Gemini, None),
    ] {
        let target = Target::new(api, "p", "unknown-model", None);
        target.check().unwrap();
        let mut transcript = Transcript::new(target, &Prefix::default()).unwrap();
        transcript.push(&Object::new().with("role", "user").with("content", "hello"));
        let body = transcript.request(None, &[]).unwrap().body.to_vec().unwrap();
        let body = String::from_utf8(body).unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
        assert!(parsed.is_object());
        match wanted {
            Some(wanted) => assert!(body.contains(wanted), "{body}"),
            None => assert!(!body.to_lowercase().contains("max"), "{body}"),
        }
    }
}
