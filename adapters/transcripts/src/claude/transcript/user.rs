//! Lines of the type `user`: prompts and tool results.

use std::sync::Arc;

use agents::borrowed::Text;
use events::{
    Identity, PromptOrigin, QuestionAnswered, SessionForked, Severity, ToolOutcome, ToolResult, Topic, TurnOutcome,
    UserPrompt,
};
use tailer::decode::{Decoded, Record};

use super::{ANSWER, CALL, CLAUDE, EXTRA, HeldPrompt, REWIND, TranscriptDecoder, state::LastCommand};
use crate::claude::{
    record::{ClaudeLine, INTERRUPTED, MessageBlock, MessageContent},
    words::{Speaker, is_human, who},
};

/// Part of the result of a call that was not run because another call failed.
const SIBLING_FAILED: &str = "Sibling tool call errored";
/// The beginning of the result of a call that the user refused; in 2.1.200, with a `toolDenialKind`, also of a call
/// that the user stopped.
const REJECTED: &str = "The user doesn't want to proceed with this tool use.";

impl TranscriptDecoder {
    pub(super) fn user(&mut self, mut line: ClaudeLine<'_>, record: &Record<'_>, out: &mut Decoded) {
        let undecided = self.undecided(&line);
        let owner = match (undecided, line.copied_from()) {
            _ if self.carried.resumed => self.resumed(&line, record, out),
            (true, Some(parent)) => self.copied(parent, record, out),
            (true, None) => Arc::clone(&self.session),
            (false, _) => self.owner(&line, record, out),
        };
        self.carried.may_have_ended = false;
        let before = out.events.len();
        let written_for = self.written_for(&line);
        let Some(message) = line.message.take() else { return };
        match message.content {
            MessageContent::Empty => {}
            MessageContent::Text(text) => self.prompt(&line, record, &owner, text, 0, out),
            MessageContent::Blocks(blocks) => self.user_blocks(&line, record, &owner, blocks, out),
        }
        if undecided && !self.carried.own {
            let hold = |event| HeldPrompt { event, written_for: written_for.clone() };
            self.held.extend(out.events.drain(before..).map(hold));
        }
    }

    fn user_blocks(
        &mut self,
        line: &ClaudeLine<'_>,
        record: &Record<'_>,
        owner: &Arc<str>,
        blocks: Vec<MessageBlock<'_>>,
        out: &mut Decoded,
    ) {
        let mut texts: Option<Text<'_>> = None;
        let mut attachments = 0;
        for (index, block) in blocks.into_iter().enumerate() {
            match &*block.kind {
                "tool_result" => self.result(line, record, owner, block, index as u32, out),
                "text" => {
                    let Some(text) = block.text else { continue };
                    texts = Some(match texts.take() {
                        None => text,
                        Some(first) => Text(format!("{}\n{}", &*first, &*text).into()),
                    });
                }
                _ => attachments += 1,
            }
        }
        if let Some(text) = texts {
            self.prompt(line, record, owner, text, attachments, out);
        } else if attachments > 0 {
            self.prompt(line, record, owner, Text("(attachment)".into()), attachments, out);
        }
    }

    fn result(
        &mut self,
        line: &ClaudeLine<'_>,
        record: &Record<'_>,
        owner: &Arc<str>,
        block: MessageBlock<'_>,
        index: u32,
        out: &mut Decoded,
    ) {
        let call_id = block.tool_use_id.map(Text::into_string).unwrap_or_default();
        let outcome = match line.tool_denial_kind.as_deref() {
            Some("user-rejected") if line.tool_denial_before_run => {
                self.carried.denied = true;
                ToolOutcome::Denied
            }
            Some("user-rejected") => ToolOutcome::Cancelled,
            Some(_) => ToolOutcome::Blocked,
            None if block.is_error == Some(true) => ToolOutcome::Error,
            None => ToolOutcome::Ok,
        };
        let text = block.content.text();
        // The call was not run because another call of the same message failed.
        let skipped = text.as_deref().is_some_and(|text| text.contains(SIBLING_FAILED) && text.len() < 200);
        let rejected = text.as_deref().is_some_and(|text| text.starts_with(REJECTED));
        self.carried.likely_denied |= rejected && outcome != ToolOutcome::Denied;
        let outcome = match outcome {
            // Up to 2.1.104 nothing else distinguishes a refusal from an error of the tool. A command stopped by the
            // user (1.0.100, 2.0.60, 2.1.55, 2.1.90) returns "[Request interrupted by user for tool use]".
            ToolOutcome::Error if rejected => ToolOutcome::Denied,
            ToolOutcome::Error if skipped => ToolOutcome::Cancelled,
            ToolOutcome::Ok
            | ToolOutcome::Error
            | ToolOutcome::Denied
            | ToolOutcome::Cancelled
            | ToolOutcome::Blocked => outcome,
        };
        let exit_code = match (&text, outcome) {
            (Some(text), ToolOutcome::Error) => {
                text.strip_prefix("Exit code ").and_then(|t| t.split_whitespace().next()).and_then(|n| n.parse().ok())
            }
            _ => None,
        };
        let parent = line.source_tool_assistant_uuid.as_deref().map(|uuid| Identity::record(CLAUDE, uuid, CALL));
        let result = ToolResult { call_id: call_id.clone(), outcome, exit_code, duration_ms: None, detail: false };
        self.emit(line, record, owner, index, result, text, out);
        if let Some(event) = out.events.last_mut() {
            event.parent = parent;
            if outcome == ToolOutcome::Error {
                event.severity = Some(Severity::Warning);
            }
        }
        if let Some(at) = self.carried.questions.iter().position(|q| *q == call_id) {
            self.carried.questions.remove(at);
            self.emit(line, record, owner, ANSWER + index, QuestionAnswered { call_id: Some(call_id) }, None, out);
        }
    }

    fn prompt(
        &mut self,
        line: &ClaudeLine<'_>,
        record: &Record<'_>,
        owner: &Arc<str>,
        text: Text<'_>,
        attachments: u32,
        out: &mut Decoded,
    ) {
        let start = text.trim_start();
        if start.starts_with(INTERRUPTED) {
            // 2.1.200 names the message that was interrupted, and none if a dialog was open.
            let likely = std::mem::take(&mut self.carried.likely_denied) && line.interrupted_message_id.is_none();
            let outcome = if std::mem::take(&mut self.carried.denied) || likely {
                TurnOutcome::Denied
            } else {
                TurnOutcome::Interrupted
            };
            self.end(line, record, owner, outcome, 0, "[Request interrupted by user]", out);
            return;
        }
        let (origin, text) = match who(line, &text, self.parent.is_some() && !self.carried.prompted) {
            Speaker::Prompt(origin, text) => (origin, text),
            Speaker::Command(command) => {
                if command == "/clear" && self.foreign.is_none() && !self.carried.own {
                    self.begin_own(out);
                }
                self.annotate(line, record, owner, EXTRA, Topic::Command, &command, out);
                self.carried.command = line.uuid.as_deref().map(|uuid| LastCommand { uuid: uuid.to_owned(), command });
                return;
            }
            Speaker::CommandOutput => {
                if let (Some(command), Some(uuid)) = (self.follows_command(line), line.uuid.as_deref()) {
                    command.uuid = uuid.to_owned();
                }
                return;
            }
            // If a command passes text to the model in the user's name, the command is a prompt.
            Speaker::Machine => match self.follows_command(line).map(std::mem::take) {
                Some(LastCommand { command, .. }) if line.is_meta == Some(true) => {
                    self.carried.command = None;
                    (PromptOrigin::Human, command)
                }
                Some(_) | None => return,
            },
        };
        self.carried.command = None;
        self.carried.prompted = true;
        self.carried.denied = false;
        self.carried.likely_denied = false;
        self.take_back(line, record, owner, out);
        let stated = origin != PromptOrigin::Human || is_human(line);
        let prompt = UserPrompt { origin, stated, attachments, provider_turn_id: None };
        self.emit(line, record, owner, 0, prompt, Some(text), out);
    }

    /// Emits a rewind if a prompt does not follow the end of the conversation.
    fn take_back(&mut self, line: &ClaudeLine<'_>, record: &Record<'_>, owner: &Arc<str>, out: &mut Decoded) {
        let (Some(follows), Some(uuid)) = (line.parent_uuid.as_deref(), line.uuid.as_deref()) else { return };
        if let Some(first) = self.carried.prompts.put(follows, Identity::record(CLAUDE, uuid, 0)) {
            let (from, at) = (owner.to_string(), Some(follows.to_owned()));
            let rewind = SessionForked { from, at, taken_back: Some(first), turns: None };
            self.emit(line, record, owner, REWIND, rewind, None, out);
        }
    }

    /// The last slash command, if the line follows it or its output.
    fn follows_command(&mut self, line: &ClaudeLine<'_>) -> Option<&mut LastCommand> {
        let follows = line.parent_uuid.as_deref();
        self.carried.command.as_mut().filter(|command| follows == Some(command.uuid.as_str()))
    }
}
