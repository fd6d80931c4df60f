use super::*;

#[track_caller]
fn wrong(name: &str, arguments: &str, part: &str) {
    let error = Call::parse(name, arguments).unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}

#[test]
fn arguments_are_read_strictly() {
    let call = Call::parse("read", r#"{"path": "a", "offset": 3}"#).unwrap();
    assert_eq!(call, Call::Read(ReadArguments { path: "a".into(), offset: Some(3), limit: None }));
    assert_eq!(call.tool(), Tool::Read);
    wrong("reed", "{}", "unknown tool `reed`; the tools are ask, bash");
    wrong("read", "", "missing field `path`");
    wrong("read", "{\"path\": ", "not valid JSON");
    wrong("read", "[]", "expected a JSON object");
    wrong("read", r#"{"path": "a", "file": "b"}"#, "unknown field `file`, expected one of `path`, `offset`, `limit`");
    wrong("read", r#"{"path": "a", "path": "b"}"#, "duplicate field `path`");
    wrong("read", r#"{"path": 7}"#, "`path`: invalid type: integer `7`, expected a string");
    wrong("read", r#"{"path": "a", "offset": "3"}"#, "`offset`: invalid type");
    wrong("read", r#"{"path": "a", "offset": -1}"#, "`offset`: invalid value");
    wrong("edit", r#"{"path": "a", "edits": [{"old": "x", "new": 1}]}"#, "`edits[0].new`: invalid type");
    wrong("edit", r#"{"path": "a", "edits": [{"old": "x"}]}"#, "missing field `new`");
    wrong(
        "grep",
        r#"{"pattern": "a", "mode": "all"}"#,
        "unknown variant `all`, expected one of `lines`, `files`, `count`",
    );
    wrong("todo", r#"{"items": [{"text": "a", "state": "started"}]}"#, "`in_progress`");
}

#[test]
fn invalid_or_out_of_range_tool_arguments_are_refused() {
    wrong("read", r#"{"path": ""}"#, "`path` is empty");
    wrong("read", "{\"path\": \"a\\u0000\"}", "`path` contains a NUL character");
    wrong("read", r#"{"path": "a", "limit": 2001}"#, "`limit` is 2001; it must be between 1 and 2000");
    wrong("read", r#"{"path": "a", "offset": 0}"#, "`offset` is 0");
    wrong("bash", r#"{"command": "x", "timeout_s": 601}"#, "`timeout_s` is 601");
    wrong("bash", r#"{"command": "x", "timeout_s": 5, "background": true}"#, "`timeout_s` does not apply");
    wrong("bash", &format!(r#"{{"command": "{}"}}"#, "x".repeat(limits::COMMAND_BYTES + 1)), "the limit is 102400");
    wrong("edit", r#"{"path": "a", "edits": []}"#, "`edits` is empty");
    wrong("edit", r#"{"path": "a", "edits": [{"old": "", "new": "x"}]}"#, "`edits[0].old` is empty; use write");
    wrong("edit", r#"{"path": "a", "edits": [{"old": "x", "new": "x"}]}"#, "nothing would change");
    wrong(
        "ask",
        r#"{"question": "?", "options": ["1", "2", "3", "4", "5"]}"#,
        "`options` has 5 options; the limit is 4",
    );
    wrong("fetch", r#"{"url": "file:///etc/passwd"}"#, "`url`: is neither http nor https");
    wrong("fetch", r#"{"url": "http://u:p@a.test/"}"#, "password");
    wrong("glob", r#"{"pattern": "../*"}"#, "`pattern`: must be relative");
    wrong("glob", r#"{"pattern": "{a"}"#, "`pattern`: ");
    wrong("grep", r#"{"pattern": "(a"}"#, "`pattern`: ");
    wrong("grep", r#"{"pattern": "a", "limit": 251}"#, "between 1 and 250");
    wrong("process", r#"{"action": "stop"}"#, "missing field `id`");
    wrong("todo", &format!(r#"{{"items": [{{"text": "{}", "state": "done"}}]}}"#, "x".repeat(501)), "`items[0].text`");
    assert!(Call::parse("bash", r#"{"command": "x", "timeout_s": 600, "background": false}"#).is_ok());
}
