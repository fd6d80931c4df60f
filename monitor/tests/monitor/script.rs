//! Generated sessions: a script that advances in time, with randomness from a seed.

use events::{
    ApprovalId, ApprovalKind, ApprovalRequested, AssistantMessage, Claim, CompactTrigger, Confidence, ContextCompacted,
    ErrorClass, ErrorReported, Payload, PromptOrigin, Reason, SessionStarted, Signal, Source, State, Stop, ToolCall,
    ToolKind, ToolOutcome, ToolResult, UsageReported, UserPrompt,
};

use crate::stage::Line;

/// A session under construction.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) lines: Vec<Line>,
    /// The current time, ms.
    pub(crate) at: i64,
    calls: u32,
    approvals: u32,
    chance: u64,
    pub(crate) context: u64,
}

/// The text that an agent's own tool writes around the output of a command, different each time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Around {
    Nothing,
    /// As in `codex/S02-auto-tool--direct` (0.169.0).
    Chunk,
    /// The same agent in code mode.
    Script,
    /// As in `gemini/S03-shell-approve` (0.61.0).
    Group,
}

impl Around {
    pub(crate) const ALL: [Self; 4] = [Self::Nothing, Self::Chunk, Self::Script, Self::Group];

    /// Rewrites the session as if its agent's tool added this text.
    pub(crate) fn put(self, lines: &mut [Line]) {
        for (n, line) in lines.iter_mut().enumerate() {
            let Payload::ToolResult(result) = &line.payload else { continue };
            let said = line.text.take().unwrap_or_default();
            let code = result.exit_code.unwrap_or(0);
            let id = n.wrapping_mul(0x9e_3779) & 0xff_ffff;
            line.text = Some(match self {
                Self::Nothing => said,
                Self::Chunk => format!(
                    "Chunk ID: {id:06x}\nWall time: 0.{n} seconds\nProcess exited with code {code}\nOriginal token count: 7\nOutput:\n{said}\n"
                ),
                Self::Script => format!("Script completed\nWall time {n}.3 seconds\nOutput:\n{said}"),
                Self::Group => format!("Output: {said}\nProcess Group PGID: {}", 14_000 + n),
            });
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum End {
    Ok,
    Failed(i32),
}

impl Script {
    pub(crate) fn new(seed: u64) -> Self {
        let mut script = Self {
            lines: Vec::new(),
            at: 0,
            calls: 0,
            approvals: 0,
            chance: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d,
            context: 15_000,
        };
        let started = SessionStarted {
            model: Some("claude-opus-5-5".into()),
            cwd: Some("/p".into()),
            ..SessionStarted::default()
        };
        script.put(Line::new(0, started));
        script.put(Line::new(0, signal(Claim::ProcessAlive { pid: 7, start_ticks: 9 })).by(Source::Registry));
        script
    }

    /// A random number below `n`.
    pub(crate) fn dice(&mut self, n: u64) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance.wrapping_mul(0x2545_f491_4f6c_dd1d) % n.max(1)
    }

    /// A random number in this range.
    pub(crate) fn between(&mut self, from: i64, to: i64) -> i64 {
        from + i64::try_from(self.dice(u64::try_from(to - from).unwrap() + 1)).unwrap()
    }

    pub(crate) fn put(&mut self, line: Line) {
        self.lines.push(Line { at: self.at, ..line });
    }

    pub(crate) fn wait(&mut self, seconds: i64) {
        self.at += seconds * 1000;
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        self.asks(PromptOrigin::Human, text);
    }

    pub(crate) fn asks(&mut self, origin: PromptOrigin, text: &str) {
        self.put(Line::new(0, UserPrompt { origin, ..UserPrompt::default() }).text(text));
    }

    fn message(&mut self, stop: Stop, text: &str) {
        let message = AssistantMessage {
            message_id: Some(format!("m{}", self.lines.len())),
            model: Some("claude-opus-5-5".into()),
            stop: Some(stop),
            blocks: 1,
            ..AssistantMessage::default()
        };
        self.put(Line::new(0, message).text(text));
        self.context += 400;
        let usage = UsageReported {
            model: Some("claude-opus-5-5".into()),
            input_tokens: 10,
            output_tokens: 300,
            cache_read_tokens: self.context,
            ..UsageReported::default()
        };
        self.put(Line::new(0, usage));
    }

    /// The agent writes a message and continues; its context is compacted before it is full.
    pub(crate) fn say(&mut self, text: &str) {
        if self.context > 170_000 {
            self.compact();
        }
        self.message(Stop::ToolUse, text);
    }

    /// The agent ends its turn.
    pub(crate) fn answer(&mut self, text: &str) {
        self.message(Stop::EndTurn, text);
    }

    /// The agent thinks, then calls a tool.
    pub(crate) fn call(&mut self, name: &str, tool: ToolKind, title: &str, input: &str) -> String {
        let thinks = self.between(1, 8);
        self.wait(thinks);
        self.say("next");
        self.calls += 1;
        let call_id = format!("c{}", self.calls);
        let call = ToolCall {
            call_id: call_id.clone(),
            name: name.into(),
            tool,
            title: Some(title.into()),
            ..ToolCall::default()
        };
        self.put(Line::new(0, call).text(input));
        call_id
    }

    pub(crate) fn returns(&mut self, call_id: &str, end: End, output: &str) {
        let (outcome, exit_code) = match end {
            End::Ok => (ToolOutcome::Ok, None),
            End::Failed(code) => (ToolOutcome::Error, Some(code)),
        };
        self.context += output.len() as u64 / 4;
        let result = ToolResult { call_id: call_id.into(), outcome, exit_code, ..ToolResult::default() };
        self.put(Line::new(0, result).text(output));
    }

    /// Runs a command that takes this many seconds.
    pub(crate) fn run(&mut self, command: &str, seconds: i64, end: End, output: &str) {
        let input = serde_json::json!({ "command": command }).to_string();
        let id = self.call("Bash", ToolKind::Execute, command, &input);
        self.wait(seconds);
        self.returns(&id, end, output);
    }

    pub(crate) fn read(&mut self, file: &str, end: End, output: &str) {
        let input = serde_json::json!({ "file_path": file }).to_string();
        let id = self.call("Read", ToolKind::Read, file, &input);
        self.returns(&id, end, output);
    }

    pub(crate) fn search(&mut self, what: &str, output: &str) {
        let input = serde_json::json!({ "pattern": what }).to_string();
        let id = self.call("Grep", ToolKind::Read, what, &input);
        self.returns(&id, End::Ok, output);
    }

    pub(crate) fn edit(&mut self, file: &str, old: &str, new: &str) {
        let input = serde_json::json!({ "file_path": file, "old_string": old, "new_string": new }).to_string();
        let id = self.call("Edit", ToolKind::Edit, file, &input);
        self.returns(&id, End::Ok, &format!("The file {file} has been updated."));
    }

    /// Edits several files at once.
    pub(crate) fn patch(&mut self, files: &[&str]) {
        let input: String = files.iter().map(|file| format!("*** Update File: {file}\n@@\n+x\n")).collect();
        let id = self.call("apply_patch", ToolKind::Edit, &files.join(", "), &format!("*** Begin Patch\n{input}"));
        if let Some(Payload::ToolCall(call)) = self.lines.last_mut().map(|line| &mut line.payload) {
            call.files = files.iter().map(|file| (*file).to_owned()).collect();
        }
        self.returns(&id, End::Ok, "Done!");
    }

    pub(crate) fn write(&mut self, file: &str, content: &str) {
        let input = serde_json::json!({ "file_path": file, "content": content }).to_string();
        let id = self.call("Write", ToolKind::Edit, file, &input);
        self.returns(&id, End::Ok, &format!("The file {file} has been written."));
    }

    /// An attempt to reach the model fails and is repeated.
    pub(crate) fn retry(&mut self, class: ErrorClass, code: &str, text: &str) {
        let error = ErrorReported { class, code: Some(code.into()), ends_turn: false, retrying: true };
        self.put(Line::new(0, error).text(text));
    }

    /// An error ends the turn.
    pub(crate) fn fails(&mut self, class: ErrorClass, code: &str, text: &str) {
        let error = ErrorReported { class, code: Some(code.into()), ends_turn: true, retrying: false };
        self.put(Line::new(0, error).text(text));
    }

    /// Requests permission for a command, which is allowed `waits` seconds later; then the command runs.
    pub(crate) fn approval(&mut self, command: &str, waits: i64, seconds: i64, output: &str) {
        let input = serde_json::json!({ "command": command }).to_string();
        let id = self.call("Bash", ToolKind::Execute, command, &input);
        self.request(command);
        self.wait(waits);
        let key = format!("k{}", self.approvals);
        self.put(Line::new(0, Signal { key: Some(key), ..signal(Claim::Withdrawn) }).by(Source::Hook));
        self.wait(seconds);
        self.returns(&id, End::Ok, output);
    }

    /// A hook requests permission, and the session waits.
    pub(crate) fn request(&mut self, command: &str) -> ApprovalId {
        let id = self.asked(command);
        let claim = Claim::State { state: State::WaitingApproval, reason: Some(Reason::Tool) };
        let key = format!("k{}", self.approvals);
        self.put(Line::new(0, Signal { key: Some(key), ..signal(claim) }).by(Source::Hook));
        id
    }

    /// A hook requests permission, which other sources may still answer.
    pub(crate) fn asked(&mut self, command: &str) -> ApprovalId {
        self.approvals += 1;
        let key = format!("k{}", self.approvals);
        let id = ApprovalId::from(format!("a{}", self.approvals));
        let asked = ApprovalRequested {
            approval_id: id.clone(),
            about: Some(ApprovalKind::Command),
            tool: Some("Bash".into()),
            command: Some(command.into()),
            input: Some("{}".into()),
            key: Some(key),
            ..ApprovalRequested::default()
        };
        self.put(Line::new(0, asked).by(Source::Hook));
        id
    }

    pub(crate) fn compact(&mut self) {
        self.context = 20_000;
        let compacted =
            ContextCompacted { trigger: Some(CompactTrigger::Auto), tokens_before: None, tokens_after: None };
        self.put(Line::new(0, compacted));
    }

    /// The user ends the session.
    pub(crate) fn leave(&mut self) {
        self.put(Line::new(0, signal(Claim::ProcessGone { pid: 7, clean: true })).by(Source::Process));
    }

    /// The process is killed.
    pub(crate) fn killed(&mut self) {
        self.put(Line::new(0, signal(Claim::State { state: State::Running, reason: None })).by(Source::Registry));
        self.put(Line::new(0, signal(Claim::ProcessGone { pid: 7, clean: false })).by(Source::Process));
    }
}

pub(crate) fn signal(claim: Claim) -> Signal {
    Signal::new(claim, Confidence::High, None)
}
