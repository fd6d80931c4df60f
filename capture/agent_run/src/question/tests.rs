use engine::{AskedPermission, CallFacts, CallId, CallRun, RequestNumber, SessionMode};
use session_tree::Object;

use super::*;

fn asked(kind: CallClass, tool: &str, arguments: Object, preview: Option<Preview>) -> PermissionQuestion {
    let call = CallRun {
        call: CallId { request: RequestNumber(1), index: 0 },
        model_id: "c".to_owned(),
        tool: tool.to_owned(),
        arguments,
    };
    let facts = CallFacts { kind, cwd: "/w".to_owned(), ..CallFacts::default() };
    PermissionQuestion::of(&PreviewedCall {
        asked: AskedPermission { call, facts, mode: SessionMode::Ask },
        preview,
        why: None,
    })
}

#[test]
fn a_call_without_effect_is_asked_about_with_its_own_reason() {
    let arguments = || Object::new().with("path", "a").with("content", "x");
    for why in ["a changed since it was read; nothing was written", "a exists and was not read", "a is a binary file"] {
        for preview in [Preview::Refused(why.to_owned()), Preview::NoChange(why.to_owned())] {
            let question = asked(CallClass::Write, "write", arguments(), Some(preview));
            assert!(question.title.contains("changes nothing"), "{question:?}");
            assert!(question.details.contains(why) && question.details.contains("nothing changes"), "{question:?}");
        }
    }
    let question =
        asked(CallClass::Write, "write", arguments(), Some(Preview::WouldChange("+x\u{202e}\n+y\n".to_owned())));
    assert_eq!(
        question.title,
        "The agent wants to write a file (2 lines, 7 characters, 1 of them hidden and shown as escapes, 1 not ASCII)"
    );
    assert!(question.details.contains("    +x\\u{202e}\n    +y\n"), "{question:?}");
}

#[test]
fn the_end_of_a_command_stands_above_the_answer() {
    let command = format!("echo safe\n{}rm -rf ~/work\n{}echo safe", "\n".repeat(60), "\n".repeat(60));
    let arguments = Object::new().with("command", command.as_str()).with("timeout_s", 600_u64);
    let question = asked(CallClass::Command, "bash", arguments, None);
    assert_eq!(question.title, format!("The agent wants to run a command (123 lines, {} characters)", command.len()));
    let lines: Vec<&str> = question.details.lines().collect();
    assert!(lines.len() < 16 && lines.contains(&"    [60 blank lines]"), "{question:?}");
    assert!(lines.last().unwrap().starts_with("look at line 62: rm -rf ~/work: "), "{question:?}");
    assert!(question.details.contains("timeout_s: 600\n"), "{question:?}");
    let short = asked(CallClass::Command, "bash", Object::new().with("command", "touch made"), None);
    assert!(short.details.ends_with("\ncommand: touch made\n"), "{short:?}");
    // A letter that looks like another one.
    let alike = asked(CallClass::Command, "bash", Object::new().with("command", "sh ./d\u{435}ploy"), None);
    assert!(alike.details.ends_with("command (11 characters, 1 not ASCII):\n    sh ./d\u{435}ploy\n"), "{alike:?}");
}

#[test]
fn what_is_named_is_one_line() {
    let call = CallRun {
        call: CallId { request: RequestNumber(1), index: 0 },
        model_id: "c".to_owned(),
        tool: "write".to_owned(),
        arguments: Object::new(),
    };
    let facts = CallFacts {
        kind: CallClass::Write,
        cwd: "/w\nsandbox all".to_owned(),
        paths: vec!["a\ncommand: ls".to_owned()],
        url: Some("https://a\nfile b".to_owned()),
        ..CallFacts::default()
    };
    let asked = AskedPermission { call, facts, mode: SessionMode::Ask };
    let question = PermissionQuestion::of(&PreviewedCall { asked, preview: None, why: None });
    assert_eq!(
        question.details, "in /w\\nsandbox all\nfile a\\ncommand: ls\naddress https://a\\nfile b\n",
        "{question:?}"
    );
}
