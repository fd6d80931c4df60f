//! A session of Claude Code in the project of a machine, written record by record.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{
    program::{Machine, Server},
    transcript::{answer, append, prompt, session, uuid},
};

/// What Claude Code records as the result of a call that its user refused.
pub const REFUSED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.";

/// A session of Claude Code in the project of a machine.
#[derive(Debug)]
pub struct ClaudeSession<'a> {
    machine: &'a Machine,
    /// Claude's id of the session.
    pub id: String,
    /// The first part of the ids of its records.
    writer: u64,
    records: u64,
    cwd: String,
    /// The sub-agent whose records these are.
    agent: Option<String>,
}

impl<'a> ClaudeSession<'a> {
    /// The `n`-th session, without records.
    #[must_use]
    pub fn new(machine: &'a Machine, n: u64) -> Self {
        let cwd = machine.project().to_str().unwrap().to_owned();
        Self { machine, id: session(n), writer: n, records: 0, cwd, agent: None }
    }

    /// The session in this directory, which need not exist.
    #[must_use]
    pub fn in_directory(self, cwd: &str) -> Self {
        Self { cwd: cwd.to_owned(), ..self }
    }

    /// A sub-agent of this session, without records.
    #[must_use]
    pub fn subagent(&self, agent: &str) -> Self {
        let file = self.machine.claude(&self.id).with_extension("").join("subagents");
        std::fs::create_dir_all(file).unwrap();
        let (id, cwd) = (self.id.clone(), self.cwd.clone());
        Self { machine: self.machine, id, writer: self.writer, records: 1_000, cwd, agent: Some(agent.to_owned()) }
    }

    fn file(&self) -> PathBuf {
        let file = self.machine.claude(&self.id);
        match &self.agent {
            Some(agent) => file.with_extension("").join(format!("subagents/agent-{agent}.jsonl")),
            None => file,
        }
    }

    fn next(&mut self) -> String {
        self.records += 1;
        uuid(self.writer, self.records)
    }

    /// Appends a record with the current time: a turn that ended long ago raises no finding.
    fn append(&self, line: &str) {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record["timestamp"] = home::clock::now().to_string().into();
        if let Some(agent) = &self.agent {
            record["isSidechain"] = true.into();
            record["agentId"] = agent.as_str().into();
        }
        append(&self.file(), &format!("{record}\n"));
    }

    /// Appends a prompt of the user.
    pub fn prompt(&mut self, text: &str) {
        let uuid = self.next();
        self.append(&prompt(&self.id, &uuid, &self.cwd, text));
    }

    /// Appends a prompt whose record says that a person wrote it.
    pub fn stated_prompt(&mut self, text: &str) {
        let uuid = self.next();
        let mut record: Value = serde_json::from_str(&prompt(&self.id, &uuid, &self.cwd, text)).unwrap();
        record["origin"] = json!({ "kind": "human" });
        self.append(&record.to_string());
    }

    /// Appends the boundary of a compaction.
    pub fn compacts(&mut self) {
        let record = json!({
            "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "uuid": self.next(),
            "sessionId": self.id, "cwd": self.cwd, "version": "2.1.328",
            "compactMetadata": { "trigger": "auto", "preTokens": 1000 },
        });
        self.append(&record.to_string());
    }

    /// Appends a message that ends the turn.
    pub fn says(&mut self, text: &str) {
        let uuid = self.next();
        self.append(&answer(&self.id, &uuid, &self.cwd, text));
    }

    /// Appends a tool call with its result.
    pub fn calls(&mut self, name: &str, input: &Value, output: &str, fails: bool) {
        let (call, result) = (self.next(), self.next());
        let id = format!("toolu_{}", self.records);
        let common = json!({ "sessionId": self.id, "cwd": self.cwd, "version": "2.1.39" });
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

    /// Appends a command with its output.
    pub fn runs(&mut self, command: &str, output: &str, fails: bool) {
        self.calls("Bash", &json!({ "command": command }), output, fails);
    }

    /// Appends an edit of a file of the project.
    pub fn edits(&mut self, file: &str) {
        let path = format!("{}/{file}", self.cwd);
        let input = json!({ "file_path": path, "old_string": "a", "new_string": "b" });
        self.calls("Edit", &input, "The file has been updated.", false);
    }

    /// Waits until the server has read all records.
    pub fn read_by(&self, server: &Server) {
        server.caught_up(self.agent.as_deref().unwrap_or(&self.id), &self.file());
    }
}

/// The exit code, the output and the errors of a command in the project.
#[must_use]
pub fn run(machine: &Machine, arguments: &[&str]) -> (i32, String, String) {
    let output = machine.command(arguments).current_dir(machine.project()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}
