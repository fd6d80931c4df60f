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
fn a_question_says_why_a_call_would_change_nothing() {
    let arguments = || Object::new().with("path", "a").with("content", "x");
    for why in ["a changed since it was read; nothing was written", "a exists and was not read", "a is a binary file"] {
        for preview in [Preview::Refused(why.to_owned()), Preview::NoChange(why.to_owned())] {
            let question = asked(CallClass::Write, "write", arguments(), Some(preview));
            assert!(question.title.contains("would change nothing"), "{question:?}");
            assert!(question.details.contains(why) && question.details.contains("nothing changes"), "{question:?}");
        }
    }
    let diff = "--- w\n+++ w\n@@ -1 +1,2 @@\n-a\n+x\u{202e}\n+y\n";
    let question = asked(CallClass::Write, "write", arguments(), Some(Preview::WouldChange(diff.to_owned())));
    assert_eq!(question.title, "The agent wants to write files (+2 \u{2212}1)");
    let block = question.change.unwrap().block;
    assert!(block.contains("    +x\\u{202e}\n    +y\n") && block.contains("1 of them hidden"), "{block}");
}

#[test]
fn an_edit_question_names_the_file_and_counts_changed_lines() {
    let facts = |paths: &[&str]| CallFacts {
        kind: CallClass::Edit,
        cwd: "/w".to_owned(),
        paths: paths.iter().map(|&path| path.to_owned()).collect(),
        ..CallFacts::default()
    };
    let question = |facts: CallFacts, diff: &str| {
        let call = CallRun {
            call: CallId { request: RequestNumber(1), index: 0 },
            model_id: "c".to_owned(),
            tool: "edit".to_owned(),
            arguments: Object::new(),
        };
        let asked = AskedPermission { call, facts, mode: SessionMode::Ask };
        PermissionQuestion::of(&PreviewedCall {
            asked,
            preview: Some(Preview::WouldChange(diff.to_owned())),
            why: None,
        })
    };
    // Lines of a file that look like a diff header count as lines.
    let diff = "--- src/a.py\n+++ src/a.py\n@@ -1,3 +1,4 @@\n x\n--- a\n+++ b\n+c\n+d\n@@ -9 +10,0 @@\n-e\n";
    for (path, named) in [
        ("/w/src/a.py", "src/a.py"),
        ("/elsewhere/a.py", "/elsewhere/a.py"),
        ("/w2/a.py", "/w2/a.py"),
        ("/w/a\n(+0)", "a\\n(+0)"),
    ] {
        let asked = question(facts(&[path]), diff);
        assert_eq!(asked.title, format!("The agent wants to edit {named} (+3 \u{2212}2)"));
        assert_eq!(asked.details, "in /w\n");
        assert_eq!(asked.change.unwrap().path, path);
    }
    let several = question(facts(&["/w/a", "/w/b"]), diff);
    assert_eq!(several.title, "The agent wants to edit files (+3 \u{2212}2)");
    assert_eq!(several.details, "in /w\nfile /w/a\nfile /w/b\n");
    let empty = question(facts(&["/w/a"]), "--- /dev/null\n+++ a\n");
    assert_eq!(empty.title, "The agent wants to edit a (empty)");
}

#[test]
fn a_long_command_is_shown_with_its_hidden_lines_pointed_out() {
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
    // A character that looks like another one.
    let alike = asked(CallClass::Command, "bash", Object::new().with("command", "sh ./d\u{435}ploy"), None);
    assert!(alike.details.ends_with("command (11 characters, 1 not ASCII):\n    sh ./d\u{435}ploy\n"), "{alike:?}");
}

#[test]
fn newlines_in_paths_and_urls_are_escaped() {
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
        (question.title.as_str(), question.details.as_str()),
        ("The agent wants to write a\\ncommand: ls", "in /w\\nsandbox all\naddress https://a\\nfile b\n"),
        "{question:?}"
    );
}
