use engine::RequestNumber;
use outbound::SystemLookup;
use tools::Settings;

use super::*;

fn session_tools(workspace: &std::path::Path) -> SessionTools {
    let settings = Settings {
        cwd: workspace.to_owned(),
        workspace: workspace.to_owned(),
        outputs: workspace.join("outputs"),
        environment: Vec::new(),
        pass: Vec::new(),
        host: Vec::new(),
        allow_hosts: Vec::new(),
        lookup: Arc::new(SystemLookup),
    };
    SessionTools::new(Arc::new(Tools::new(settings).unwrap()))
}

fn run(tool: &str, arguments: &str) -> CallRun {
    CallRun {
        call: CallId { request: RequestNumber(1), index: 0 },
        model_id: "c".to_owned(),
        tool: tool.to_owned(),
        arguments: Json::parse(arguments).unwrap().as_object().unwrap().clone(),
    }
}

fn text(result: &CallOutput) -> String {
    session_tree::context::text_of(&Json::Array(result.content.clone()), "\n")
}

#[test]
fn a_decision_cannot_redirect_a_call_to_another_file() {
    let dir = tempfile::tempdir().unwrap();
    let tools = session_tools(dir.path());
    let asked = run("write", r#"{"path":"a.txt","content":"a"}"#);
    let facts = tools.inspect(&asked).unwrap();
    assert_eq!(facts.kind, CallClass::Write);
    assert!(facts.paths[0].ends_with("/a.txt"), "{facts:?}");
    let other = run("write", r#"{"path":"b.txt","content":"a"}"#);
    let result = tools.run(&other);
    assert!(result.is_error && text(&result).contains("changed the kind or the target"), "{}", text(&result));
    assert!(!dir.path().join("b.txt").exists());
    // It runs at most once, and only after it was inspected.
    assert!(text(&tools.run(&asked)).contains("not checked"));
    tools.inspect(&asked).unwrap();
    let result = tools.run(&run("write", r#"{"path":"a.txt","content":"another"}"#));
    assert!(!result.is_error, "{}", text(&result));
    assert_eq!(std::fs::read_to_string(dir.path().join("a.txt")).unwrap(), "another");
}

#[test]
fn a_call_that_is_cancelled_before_it_begins_does_not_begin() {
    let dir = tempfile::tempdir().unwrap();
    let tools = session_tools(dir.path());
    let asked = run("write", r#"{"path":"a.txt","content":"a"}"#);
    tools.inspect(&asked).unwrap();
    tools.cancel(asked.call);
    assert!(text(&tools.run(&asked)).contains("cancelled"));
    assert!(!dir.path().join("a.txt").exists());
}

#[test]
fn an_unknown_argument_is_rejected_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let error = session_tools(dir.path()).inspect(&run("read", r#"{"path":"a","lines":3}"#)).unwrap_err();
    assert!(error.contains("lines"), "{error}");
}

#[test]
fn only_process_and_todo_calls_are_classified_as_notes() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a"), "one\n").unwrap();
    let tools = session_tools(dir.path());
    let arguments = |tool: tools::Tool| match tool.name() {
        "ask" => r#"{"question":"Which?"}"#,
        "bash" => r#"{"command":"ls"}"#,
        "edit" => r#"{"path":"a","edits":[{"old":"one","new":"1"}]}"#,
        "fetch" => r#"{"url":"https://host.test/"}"#,
        "glob" | "grep" => r#"{"pattern":"a"}"#,
        "process" => r#"{"action":"list"}"#,
        "read" => r#"{"path":"a"}"#,
        "todo" => r#"{"items":[]}"#,
        "write" => r#"{"path":"a","content":""}"#,
        other => panic!("{other} is missing here"),
    };
    let notes: Vec<&str> = tools::Tool::ALL
        .into_iter()
        .filter(|tool| tools.inspect(&run(tool.name(), arguments(*tool))).unwrap().kind == CallClass::Note)
        .map(tools::Tool::name)
        .collect();
    assert_eq!(notes, ["process", "todo"]);
}

#[test]
fn a_call_previewed_without_effect_writes_nothing_even_if_the_file_changed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a");
    std::fs::write(&file, "two\n").unwrap();
    let tools = session_tools(dir.path());
    let edit = run("edit", r#"{"path":"a","edits":[{"old":"one","new":"1"}]}"#);
    tools.inspect(&edit).unwrap();
    assert!(matches!(tools.preview(edit.call), Some(Preview::Refused(_))));
    std::fs::write(&file, "one\n").unwrap();
    let result = tools.run_without_effect(&edit);
    assert!(result.is_error && text(&result).contains("nothing was written"), "{}", text(&result));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n");
    // It has already been answered.
    assert!(text(&tools.run(&edit)).contains("not checked"));
}
