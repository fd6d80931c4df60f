//! What an agent says, held against what its commands showed: the finding, and `capture check`.

use serde_json::{Value, json};
use tests::{
    claude_session::{ClaudeSession, run},
    eventually,
    program::Machine,
};

use super::PROGRAM;

#[test]
fn a_statement_that_edits_made_stale_is_found_and_fails_the_check() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let mut agent = ClaudeSession::new(&machine, 1);
    agent.prompt("fix the parser");
    agent.runs("cargo test", "test result: ok. 297 passed; 0 failed; 0 ignored", false);
    agent.edits("src/parser.rs");
    agent.runs("git commit -m x", "Exit code 1\nhook exited with 1", true);
    agent.says("Done. **All 297 tests pass** and I committed the changes.");
    agent.read_by(&server);

    let (code, out, err) = run(&machine, &["check"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("tests 297 passed, then 1 edit · commit failed"), "{out}");
    assert!(out.contains("stale: tests 297 passed, then 1 edit (parser.rs)"), "{out}");
    assert!(out.contains("contradicted: the last commit failed"), "{out}");
    assert!(err.contains("2 statements do not agree with the record"), "{err}");
    // Only the commit is left.
    assert!(run(&machine, &["check", "--stale-ok"]).2.contains("1 statement does not agree"));

    let findings = eventually("both findings are raised", || {
        let page = server.client.json("/api/v1/findings?kind=claim")?;
        page["findings"].as_array().filter(|all| all.len() == 2).cloned()
    });
    assert!(findings.iter().all(|finding| finding["evidence"].as_array().unwrap().len() == 2), "{findings:?}");
    let (code, out, _) = run(&machine, &["why", &agent.id]);
    assert_eq!(code, 0);
    assert!(out.contains("the last commit failed") && out.contains("to do: Run `capture check`"), "{out}");

    agent.prompt("really?");
    agent.runs("cargo test", "test result: ok. 297 passed; 0 failed; 0 ignored", false);
    agent.runs("git commit -m x", "[main abc1234] x\n 1 file changed", false);
    agent.says("All tests pass now, and the changes are committed.");
    agent.read_by(&server);
    let (code, out, err) = run(&machine, &["check", &agent.id]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("supported: tests 297 passed"), "{out}");
    let (code, out, _) = run(&machine, &["check", "--all"]);
    assert!(code == 1 && out.contains("turn 1") && out.contains("turn 2"), "{out}");
    let json: Value = serde_json::from_str(&run(&machine, &["check", "--all", "--json"]).1).unwrap();
    assert_eq!(json["accusations"], 2, "{json}");
    assert_eq!(json["turns"][1]["checks"], "tests 297 passed · committed", "{json}");
    eventually("the findings are over", || {
        let page = server.client.json("/api/v1/findings?kind=claim")?;
        page["findings"].as_array()?.is_empty().then_some(())
    });
}

#[test]
fn a_session_without_a_finished_turn_or_a_directory_without_a_session_is_named() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let (code, _, err) = run(&machine, &["check"]);
    assert!(code == 4 && err.contains("no session ran in"), "{code} {err}");
    let mut agent = ClaudeSession::new(&machine, 1);
    agent.prompt("fix the parser");
    agent.read_by(&server);
    let (code, _, err) = run(&machine, &["check", &agent.id]);
    assert!(code == 4 && err.contains("has no finished turn to check"), "{code} {err}");
}

#[test]
fn a_check_shows_the_checks_of_the_subagents_of_a_turn() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let mut agent = ClaudeSession::new(&machine, 1);
    agent.prompt("fix the parser");
    agent.read_by(&server);
    let mut subagent = agent.subagent("a77");
    subagent.prompt("test it");
    subagent.runs("cargo test", "test result: FAILED. 8 passed; 2 failed; 0 ignored", true);
    subagent.says("Two tests fail.");
    subagent.read_by(&server);
    agent.calls("Task", &json!({ "description": "Test it", "prompt": "test it" }), "Two tests fail.", false);
    agent.says("All tests pass.");
    agent.read_by(&server);
    let (code, out, err) = run(&machine, &["check", &agent.id]);
    // Which of them the statement is about is not known.
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("checks    no checks ran\n          tests 2 of 10 failed  (sub-agent "), "{out}");
    assert!(out.contains("undecided: "), "{out}");
    let json: Value = serde_json::from_str(&run(&machine, &["check", &agent.id, "--json"]).1).unwrap();
    assert_eq!(json["turns"][0]["subagents"][0]["receipt"]["checks"][0]["counts"]["failed"], 2, "{json}");
}
