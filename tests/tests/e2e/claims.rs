//! What an agent says, held against what its commands showed: the finding, and `capture check`.

use serde_json::{Value, json};
use tests::{
    eventually,
    program::{Machine, Server},
    transcript::{answer, append, prompt, session, uuid},
};

use super::PROGRAM;

/// A session of Claude Code in the project of a machine.
struct Agent<'a> {
    machine: &'a Machine,
    id: String,
    records: u64,
}

impl<'a> Agent<'a> {
    fn new(machine: &'a Machine, n: u64) -> Self {
        Self { machine, id: session(n), records: 0 }
    }

    fn cwd(&self) -> String {
        self.machine.project().to_str().unwrap().to_owned()
    }

    fn next(&mut self) -> String {
        self.records += 1;
        uuid(1, self.records)
    }

    /// Appends a record with the current time: a turn that ended long ago raises no finding.
    fn append(&self, line: &str) {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record["timestamp"] = home::clock::now().to_string().into();
        append(&self.machine.claude(&self.id), &format!("{record}\n"));
    }

    fn prompt(&mut self, text: &str) {
        let uuid = self.next();
        self.append(&prompt(&self.id, &uuid, &self.cwd(), text));
    }

    fn says(&mut self, text: &str) {
        let uuid = self.next();
        self.append(&answer(&self.id, &uuid, &self.cwd(), text));
    }

    fn calls(&mut self, name: &str, input: &Value, output: &str, fails: bool) {
        let (call, result) = (self.next(), self.next());
        let id = format!("toolu_{}", self.records);
        let common = json!({ "sessionId": self.id, "cwd": self.cwd(), "version": "2.1.39" });
        let of = |uuid: &str, kind: &str, message: Value| {
            let mut record = common.clone();
            record["uuid"] = uuid.into();
            record["type"] = kind.into();
            record["message"] = message;
            format!("{record}\n")
        };
        let content = json!([{ "type": "tool_use", "id": id, "name": name, "input": input }]);
        let message =
            json!({ "role": "assistant", "id": id, "content": content, "stop_reason": "tool_use", "model": "m" });
        self.append(&of(&call, "assistant", message));
        let content = json!([{ "type": "tool_result", "tool_use_id": id, "content": output, "is_error": fails }]);
        self.append(&of(&result, "user", json!({ "role": "user", "content": content })));
    }

    fn runs(&mut self, command: &str, output: &str, fails: bool) {
        self.calls("Bash", &json!({ "command": command }), output, fails);
    }

    fn edits(&mut self, file: &str) {
        let path = format!("{}/{file}", self.cwd());
        let input = json!({ "file_path": path, "old_string": "a", "new_string": "b" });
        self.calls("Edit", &input, "The file has been updated.", false);
    }

    fn read_by(&self, server: &Server) {
        server.caught_up(&self.id, &self.machine.claude(&self.id));
    }
}

/// The exit code, the output and the errors of a command.
fn run(machine: &Machine, arguments: &[&str]) -> (i32, String, String) {
    let output = machine.command(arguments).current_dir(machine.project()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_statement_that_edits_made_stale_is_found_and_fails_the_check() {
    let machine = Machine::new(PROGRAM);
    let server = machine.serve();
    let mut agent = Agent::new(&machine, 1);
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
    let mut agent = Agent::new(&machine, 1);
    agent.prompt("fix the parser");
    agent.read_by(&server);
    let (code, _, err) = run(&machine, &["check", &agent.id]);
    assert!(code == 4 && err.contains("has no finished turn to check"), "{code} {err}");
}
