use session_tree::{NewEntry, SessionHeader, Stamp};

use super::*;

/// A tree of messages, each `role:content`; calls as `a:text<id id>`, results as `t:id`, context as `c:text`.
fn tree(messages: &[&str]) -> Tree {
    let mut tree = Tree::new(SessionHeader::new("/w", None, Stamp { now_ms: 0, random: 1 }), Vec::new());
    for (n, message) in messages.iter().enumerate() {
        let stamp = Stamp { now_ms: i64::try_from(n).unwrap(), random: n as u128 + 2 };
        tree.append(entry(message), stamp).unwrap();
    }
    tree
}

fn entry(message: &str) -> NewEntry {
    let (role, rest) = message.split_once(':').unwrap();
    let text = |text: &str| Json::from(Object::new().with("type", "text").with("text", text));
    let of = |role: &str, content: Vec<Json>| Object::new().with("role", role).with("content", content);
    NewEntry::Message(match role {
        "s" => {
            let tool = Object::new().with("name", "read").with("description", "d").with("parameters", Object::new());
            let tools = Object::new().with("role", "system").with("content", rest);
            tools.with("toolsAdded", vec![Json::from(tool)]).with("timestamp", 1_i64)
        }
        "u" => of("user", vec![text(rest)]),
        "a" | "error" | "aborted" => {
            let (said, calls) = rest.split_once('<').unwrap_or((rest, ""));
            let mut content: Vec<Json> = if said.is_empty() { Vec::new() } else { vec![text(said)] };
            for id in calls.trim_end_matches('>').split_whitespace() {
                content.push(Object::new().with("type", "toolCall").with("id", id).with("name", "read").into());
            }
            let stop = if role == "a" { "stop" } else { role };
            of("assistant", content).with("stopReason", stop)
        }
        "think" => of("assistant", vec![Object::new().with("type", "thinking").with("thinking", rest).into()]),
        "t" => of("toolResult", vec![text(rest)]).with("toolCallId", rest).with("toolName", "read"),
        "c" => {
            return NewEntry::CustomMessage {
                custom_type: CONTEXT_TYPE.to_owned(),
                content: Json::from(rest),
                display: false,
                details: None,
            };
        }
        other => panic!("{other}"),
    })
}

#[track_caller]
fn check(messages: &[&str], expected: &[&str]) {
    let tree = tree(messages);
    let outline = outline(&tree);
    let told = |message: &WireMessage<'_>| {
        let message = &message.message;
        let mut text = text_of(message.get("content").unwrap(), "");
        text += &calls_of(message).map(|call| format!("<{}>", call.text("id").unwrap())).collect::<String>();
        if message.text("role") == Some("toolResult") && text == LOST_RESULT {
            text = format!("lost {}", message.text("toolCallId").unwrap());
        }
        format!("{}:{text}", &message.text("role").unwrap()[..1])
    };
    assert_eq!(outline.messages.iter().map(told).collect::<Vec<_>>(), expected);
}

#[test]
fn failed_and_empty_messages_are_not_sent() {
    check(
        &["s:sys", "c:today", "u:hello", "error:half", "aborted:x<1>", "think:hm", "a:", "a:ok", "u: ", "u:more"],
        &["u:today", "u:hello", "a:x", "u:[The user interrupted this answer here.]", "a:ok", "u:more"],
    );
}

#[test]
fn every_call_is_paired_with_one_result_in_call_order() {
    check(&["u:go", "a:<1 2>", "t:1", "t:2", "a:ok"], &["u:go", "a:<1><2>", "t:1", "t:2", "a:ok"]);
    // A result is missing at the end, at the start, or altogether; one is superfluous.
    check(&["u:go", "a:<1 2>", "t:1", "u:on"], &["u:go", "a:<1><2>", "t:1", "t:lost 2", "u:on"]);
    check(&["u:go", "a:<1 2>", "t:2", "u:on"], &["u:go", "a:<1><2>", "t:lost 1", "t:2", "u:on"]);
    check(&["u:go", "a:<1>", "error:x", "u:on"], &["u:go", "a:<1>", "t:lost 1", "u:on"]);
    check(&["u:go", "t:9", "a:<1>", "t:9", "t:1", "t:1"], &["u:go", "a:<1>", "t:1"]);
}

#[test]
fn prompt_and_tools_come_from_the_session() {
    let tree = tree(&["s:be good", "u:go"]);
    let outline = outline(&tree);
    assert_eq!(outline.system, "be good");
    assert_eq!(outline.tools[0].to_text(), r#"{"name":"read","description":"d","parameters":{}}"#);
    assert_eq!(outline.messages.len(), 1);
    assert_eq!(outline.messages[0].entry.role(), Some("user"));
}

/// The marks, each `message.block`.
#[track_caller]
fn check_markers(messages: &[&str], expected: &[&str]) {
    let tree = tree(messages);
    let markers: Vec<String> = outline(&tree).markers.iter().map(|m| format!("{}.{}", m.message, m.block)).collect();
    assert_eq!(markers, expected, "{messages:?}");
}

#[test]
fn cache_markers_are_set_on_the_last_two_messages() {
    check_markers(&[], &[]);
    check_markers(&["c:today", "u:go"], &["1.0"]);
    check_markers(&["c:today"], &[]);
    check_markers(&["c:today", "u:go", "a:<1 2>", "t:1", "t:2"], &["2.1", "4.0"]);
    check_markers(&["u:go", "a:ok", "u:more"], &["1.0", "2.0"]);
    // A message that the program added is not marked; the message before it is.
    check_markers(&["u:go", "a:ok", "u:more", "c:another day"], &["1.0", "2.0"]);
}

#[test]
fn a_long_answer_gets_an_additional_cache_marker() {
    let ids: Vec<String> = (0..24).map(|n| format!("c{n}")).collect();
    let results: Vec<String> = ids.iter().map(|id| format!("t:{id}")).collect();
    let answer = format!("a:text<{}>", ids.join(" "));
    let mut messages = vec!["u:go", answer.as_str()];
    messages.extend(results.iter().map(String::as_str));
    // One block of the user, then 15 of the answer.
    check_markers(&messages, &["1.14", "1.24", "25.0"]);
    let short = format!("a:text<{}>", ids[..14].join(" "));
    let mut messages = vec!["u:go", short.as_str()];
    messages.extend(results[..14].iter().map(String::as_str));
    check_markers(&messages, &["1.14", "15.0"]);
}

#[test]
fn thinking_blocks_get_no_cache_marker() {
    let mut tree = tree(&["u:go"]);
    let text = Object::new().with("type", "text").with("text", "so");
    let thought = Object::new().with("type", "thinking").with("thinking", "hm");
    let content: Vec<Json> = vec![text.into(), thought.into()];
    let answer = Object::new().with("role", "assistant").with("content", content).with("stopReason", "stop");
    tree.append(NewEntry::Message(answer), Stamp { now_ms: 9, random: 9 }).unwrap();
    assert_eq!(outline(&tree).markers, [CacheMarker { message: 0, block: 0 }, CacheMarker { message: 1, block: 0 }]);
}
