//! A simulated agent that speaks the agents' own protocols on standard input and output, selected by its first
//! arguments: stream-json, the app-server of Codex, ACP. It executes the steps in a file and records every answer it
//! receives.

use std::{
    fs::{self, OpenOptions},
    io::{BufRead, Write},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The variable with the path of the file of steps; the answers are written next to it, to the path with the suffix
/// `.heard`.
pub const STEPS: &str = "SIMULATED_STEPS";
/// The session id it reports.
pub const SESSION: &str = "5a6b7c8d-0000-4000-8000-00000000d01e";

/// A step that the agent executes after its prompt.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Sends a message.
    Say(String),
    /// Asks for permission to run a command, and waits for the answer.
    Ask(String),
    /// Sends a request of an unknown kind.
    AskStrangely,
    /// Asks and continues without waiting, as if its user had answered elsewhere.
    AskAndForget(String),
    /// Runs a script in its shell.
    Shell(String),
    /// Writes this to standard error once the file `go` exists, while it continues; then creates the file `said`.
    ComplainLater(String),
    /// Exits at once with this code.
    Exit(u8),
    /// Waits until it is interrupted.
    WaitForInterrupt,
}

/// The protocol it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaks {
    StreamJson,
    AppServer,
    Acp,
}

struct Agent {
    speaks: Speaks,
    cwd: String,
    asked: u32,
    heard: fs::File,
    lines: std::io::Lines<std::io::StdinLock<'static>>,
}

/// Runs the simulated agent.
#[must_use]
pub fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let has = |word: &str| words.iter().any(|w| w == word);
    let speaks = match () {
        () if has("stream-json") => Speaks::StreamJson,
        () if has("app-server") => Speaks::AppServer,
        () => Speaks::Acp,
    };
    let steps = crate::text_from_env(STEPS).unwrap();
    let heard = OpenOptions::new().create(true).append(true).open(format!("{steps}.heard")).unwrap();
    let steps: Vec<Step> = serde_json::from_str(&fs::read_to_string(&steps).unwrap()).unwrap();
    let cwd = std::env::current_dir().unwrap().to_str().unwrap().to_owned();
    let mut agent = Agent { speaks, cwd, asked: 0, heard, lines: std::io::stdin().lock().lines() };
    agent.begins();
    agent.plays(&steps)
}

impl Agent {
    fn writes(&self, line: &Value) {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}").unwrap();
        out.flush().unwrap();
    }

    /// The next line; exits at the end of its input.
    fn reads(&mut self) -> Value {
        let Some(Ok(line)) = self.lines.next() else { std::process::exit(0) };
        serde_json::from_str(&line).unwrap()
    }

    fn notes(&mut self, line: &Value) {
        writeln!(self.heard, "{line}").unwrap();
    }

    /// Plays the protocol up to the prompt.
    fn begins(&mut self) {
        match self.speaks {
            Speaks::StreamJson => {
                let greeting = self.reads();
                assert_eq!(greeting["request"]["hooks"]["PreToolUse"][0]["hookCallbackIds"][0], "capture-place");
                let response = json!({"subtype": "success", "request_id": greeting["request_id"], "response": {}});
                self.writes(&json!({"type": "control_response", "response": response}));
                self.reads();
                self.writes(&json!({"type": "system", "subtype": "init", "cwd": self.cwd, "session_id": SESSION}));
            }
            Speaks::AppServer => {
                let hello = self.reads();
                self.writes(&json!({"id": hello["id"], "result": {"userAgent": "simulated"}}));
                self.reads();
                let start = self.reads();
                self.writes(&json!({"id": start["id"], "result": {"thread": {"id": SESSION, "cwd": self.cwd}}}));
                let turn = self.reads();
                self.writes(&json!({"id": turn["id"], "result": {"turn": {"id": "turn", "status": "inProgress"}}}));
            }
            Speaks::Acp => {
                let hello = self.reads();
                self.writes(&json!({"jsonrpc": "2.0", "id": hello["id"], "result": {"protocolVersion": 1}}));
                let new = self.reads();
                self.writes(&json!({"jsonrpc": "2.0", "id": new["id"], "result": {"sessionId": SESSION}}));
                self.reads();
            }
        }
    }

    fn plays(&mut self, steps: &[Step]) -> ExitCode {
        let mut interrupted = false;
        for step in steps {
            match step {
                Step::Say(text) => self.says(text),
                Step::Ask(command) => self.asks(command, true),
                Step::AskAndForget(command) => self.asks(command, false),
                Step::AskStrangely => self.asks_strangely(),
                Step::Shell(script) => self.runs(script),
                Step::ComplainLater(words) => {
                    let (words, cwd) = (words.clone(), PathBuf::from(&self.cwd));
                    std::thread::spawn(move || {
                        crate::eventually("it may complain", || cwd.join("go").exists().then_some(()));
                        eprintln!("{words}");
                        fs::write(cwd.join("said"), "").unwrap();
                    });
                }
                Step::Exit(code) => return ExitCode::from(*code),
                Step::WaitForInterrupt => {
                    let stop = self.reads();
                    self.notes(&stop);
                    interrupted = true;
                }
            }
        }
        self.ends(interrupted);
        // Further lines do not belong to the turn; at the end of its input the agent exits.
        loop {
            let line = self.reads();
            self.notes(&line);
        }
    }

    fn says(&self, text: &str) {
        self.writes(&match self.speaks {
            Speaks::StreamJson => json!({"type": "assistant", "session_id": SESSION,
                "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}),
            Speaks::AppServer => json!({"method": "item/completed", "params": {"threadId": SESSION,
                "item": {"type": "agentMessage", "id": "m", "text": text}}}),
            Speaks::Acp => json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": SESSION,
                "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}}),
        });
    }

    fn asks(&mut self, command: &str, waits: bool) {
        self.asked += 1;
        let call = format!("call-{}", self.asked);
        let id = self.asked;
        match self.speaks {
            Speaks::StreamJson => {
                let input = json!({"command": command, "timeout": 5});
                let before = json!({"session_id": SESSION, "cwd": self.cwd, "tool_name": "Bash", "tool_use_id": call});
                let callback = json!({"subtype": "hook_callback", "callback_id": "capture-place", "input": before, "tool_use_id": call});
                self.writes(&json!({"type": "control_request", "request_id": format!("h{id}"), "request": callback}));
                assert_eq!(self.reads()["response"]["response"], json!({}));
                let asks = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": input, "tool_use_id": call});
                self.writes(&json!({"type": "control_request", "request_id": format!("r{id}"), "request": asks}));
            }
            Speaks::AppServer => {
                let line = format!("/bin/bash -lc '{command}'");
                self.writes(&json!({"method": "item/commandExecution/requestApproval", "id": id, "params": {
                    "kind": "command", "threadId": SESSION, "turnId": "turn", "itemId": call, "startedAtMs": 1,
                    "environmentId": "local", "reason": "May I?", "command": line, "cwd": self.cwd,
                    "availableDecisions": ["accept", "cancel"]}}));
            }
            Speaks::Acp => {
                let words = format!("[current working directory {}] (run it)", self.cwd);
                let content = json!([{"type": "content", "content": {"type": "text", "text": words}}]);
                let options = json!([
                    {"optionId": "proceed_always", "name": "Always", "kind": "allow_always"},
                    {"optionId": "proceed_once", "name": "Allow", "kind": "allow_once"},
                    {"optionId": "cancel", "name": "Reject", "kind": "reject_once"}]);
                let call = json!({"toolCallId": call, "status": "pending", "title": command, "content": content,
                    "locations": [], "kind": "execute"});
                self.writes(&json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission",
                    "params": {"sessionId": SESSION, "options": options, "toolCall": call}}));
            }
        }
        if !waits {
            match self.speaks {
                Speaks::StreamJson => {
                    self.writes(&json!({"type": "control_cancel_request", "request_id": format!("r{id}")}));
                }
                Speaks::AppServer => self.writes(&json!({"method": "serverRequest/resolved",
                    "params": {"threadId": SESSION, "requestId": id}})),
                Speaks::Acp => {}
            }
            return;
        }
        let answer = self.reads();
        self.notes(&answer);
        self.returns(&call, &answer);
    }

    /// Ends the call according to the answer.
    fn returns(&self, call: &str, answer: &Value) {
        match self.speaks {
            Speaks::StreamJson => {
                let allowed = answer["response"]["response"]["behavior"] == "allow";
                let decision = json!({"decision": if allowed { "accept" } else { "reject" }});
                let result = json!({"type": "tool_result", "tool_use_id": call, "content": "x", "is_error": !allowed});
                self.writes(
                    &json!({"type": "user", "session_id": SESSION, "message": {"role": "user", "content": [result]},
                    "tool_result_meta": [{"id": call, "permission_decision": decision}]}),
                );
            }
            Speaks::AppServer => {
                let status = if answer["result"]["decision"] == "accept" { "completed" } else { "declined" };
                let item = json!({"type": "commandExecution", "id": call, "status": status});
                self.writes(&json!({"method": "item/completed", "params": {"threadId": SESSION, "item": item}}));
            }
            Speaks::Acp if answer["result"]["outcome"]["optionId"] == "proceed_once" => {
                let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed"});
                self.writes(&json!({"jsonrpc": "2.0", "method": "session/update",
                    "params": {"sessionId": SESSION, "update": update}}));
            }
            Speaks::Acp => {}
        }
    }

    fn asks_strangely(&mut self) {
        self.writes(&match self.speaks {
            Speaks::StreamJson => json!({"type": "control_request", "request_id": "s",
                "request": {"subtype": "can_do_anything", "tool_name": "Bash", "input": {}}}),
            Speaks::AppServer => json!({"id": "s", "method": "item/permissions/requestApproval",
                "params": {"threadId": SESSION, "itemId": "i"}}),
            Speaks::Acp => json!({"jsonrpc": "2.0", "id": "s", "method": "fs/write_text_file", "params": {}}),
        });
        let answer = self.reads();
        self.notes(&answer);
    }

    /// Runs a script in the shell and records its output as well.
    fn runs(&mut self, script: &str) {
        let output = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let line = json!({"code": output.status.code(), "out": text(&output.stdout), "err": text(&output.stderr)});
        self.notes(&line);
    }

    fn ends(&self, interrupted: bool) {
        self.writes(&match self.speaks {
            Speaks::StreamJson if interrupted => json!({"type": "result", "subtype": "error_during_execution",
                "terminal_reason": "aborted_streaming", "is_error": true, "session_id": SESSION}),
            Speaks::StreamJson => json!({"type": "result", "subtype": "success", "terminal_reason": "completed",
                "is_error": false, "session_id": SESSION, "result": "done"}),
            Speaks::AppServer => {
                let status = if interrupted { "interrupted" } else { "completed" };
                json!({"method": "turn/completed", "params": {"threadId": SESSION, "turn": {"id": "turn", "status": status}}})
            }
            Speaks::Acp => {
                let reason = if interrupted { "cancelled" } else { "end_turn" };
                json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": reason}})
            }
        });
    }
}

/// Links the simulated agent into a directory under the name of an agent.
///
/// # Errors
/// If it cannot be linked or copied.
pub fn install(program: &str, dir: &Path, name: &str) -> std::io::Result<()> {
    fs::create_dir_all(dir)?;
    // Not a symbolic link, because a process is identified by its first argument.
    let to = dir.join(name);
    fs::hard_link(program, &to).or_else(|_| fs::copy(program, &to).map(drop))
}
