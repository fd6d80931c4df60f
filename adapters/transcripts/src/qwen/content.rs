//! Converts a record to events.

use agents::borrowed::escapes::unescaped;
use events::{
    Annotation, AssistantMessage, Claim, Confidence, ContextCompacted, ErrorClass, ErrorReported, PromptOrigin,
    SessionForked, Severity, Signal, Stop, ToolCall, ToolKind, ToolOutcome, ToolResult, Topic, TurnOutcome,
    UsageReported, UserPrompt,
};

use super::{
    record::{CallResult, Compression, QwenLine, QwenPart, QwenTokens, ShellResult, SystemPayload, UiEvent, shape},
    transcript::{QwenRecordWriter, QwenState, words},
};
use crate::gemini::{content, tools};

/// Block numbers of identities, so that several events of one record differ; 1 is `SessionStarted`.
const USAGE: u32 = 2;
const END: u32 = 3;
const CALL: u32 = 1_000;

impl QwenRecordWriter<'_, '_> {
    pub(super) fn line(&mut self, line: &QwenLine<'_>, carried: &mut QwenState) {
        match (&*line.kind, line.subtype.as_deref()) {
            ("user", None) => self.prompt(line, PromptOrigin::Human, carried),
            ("user", Some("mid_turn_user_message")) => self.prompt(line, PromptOrigin::Steering, carried),
            ("user", Some("cron" | "notification" | "goal_runtime")) => {
                self.prompt(line, PromptOrigin::Wakeup, carried)
            }
            ("assistant", None) => self.answer(line, carried),
            ("tool_result", None) => self.result(line),
            ("system", Some(subtype)) => self.system(subtype, line, carried),
            (kind, subtype) => {
                let kind = subtype.map_or_else(|| kind.to_owned(), |subtype| format!("{kind}/{subtype}"));
                self.unrecognized(&kind);
            }
        }
        if line.kind.0 != "system" {
            carried.responded = false;
        }
    }

    fn prompt(&mut self, line: &QwenLine<'_>, origin: PromptOrigin, carried: &mut QwenState) {
        if let Some(follows) = &line.parent_uuid {
            carried.prompts.put(follows, self.identity(0).0);
        }
        let said = content::read(line.message.as_ref().and_then(|message| message.parts));
        let shown = words(shape::<SystemPayload<'_>>(line.system_payload).display_text.as_ref());
        let text = shown.or_else(|| Some(said.text.into_owned())).filter(|text| !text.is_empty());
        // Prompts that no person wrote have a subtype of their own.
        let prompt = UserPrompt { origin, stated: true, attachments: said.attachments, provider_turn_id: None };
        self.emit(0, prompt, text);
    }

    fn answer(&mut self, line: &QwenLine<'_>, carried: &QwenState) {
        let raw = line.message.as_ref().and_then(|message| message.parts);
        let parts = parts(line);
        let text = content::read(raw).text.into_owned();
        let thoughts = parts.iter().filter(|part| part.thought.0).filter_map(|part| part.text.and_then(unescaped));
        let thinking = thoughts.collect::<Vec<_>>().join("\n");
        let calls = parts.iter().filter(|part| part.function_call.is_some()).count();
        // An answer that was cut off has no usage, and no record before it reports the end of the response.
        let cut_off = calls == 0 && line.usage_metadata.is_none() && !carried.responded;
        let stop = match calls {
            0 if cut_off => Stop::Aborted,
            0 => Stop::EndTurn,
            _ => Stop::ToolUse,
        };
        let model = words(line.model.as_ref());
        let message_id = self.uuid.map(str::to_owned);
        let answer = AssistantMessage {
            message_id: message_id.clone(),
            model: model.clone(),
            stop: Some(stop),
            blocks: u32::try_from(parts.len()).unwrap_or(u32::MAX),
            tool_calls: u32::try_from(calls).unwrap_or(u32::MAX),
            thinking: (!thinking.is_empty()).then_some(thinking),
        };
        self.emit(0, answer, (!text.is_empty()).then_some(text));
        for (index, call) in (0..).zip(parts.iter().filter_map(|part| part.function_call.as_ref())) {
            let tool = tools::kind(call);
            let about = tools::about(call, tool);
            let told = ToolCall {
                call_id: call.id.to_string(),
                name: call.name.to_string(),
                tool,
                title: about.title,
                may_ask: tool.is_asked_for(),
                background: tool == ToolKind::Execute && about.background,
                ..ToolCall::default()
            };
            self.emit(CALL + index, told, call.args.map(|args| args.get().to_owned()));
        }
        if let Some(usage) = line.usage_metadata {
            let tokens: QwenTokens = shape(Some(usage));
            let usage = UsageReported {
                message_id,
                model,
                input_tokens: tokens.prompt.saturating_sub(tokens.cached),
                output_tokens: tokens.candidates,
                cache_read_tokens: tokens.cached,
                thinking_tokens: tokens.thoughts.min(tokens.candidates),
                ..UsageReported::default()
            };
            self.emit(USAGE, usage, None);
        }
        if cut_off {
            self.end(TurnOutcome::Interrupted, Confidence::Medium, "an answer that was cut off");
        }
    }

    fn result(&mut self, line: &QwenLine<'_>) {
        let result: CallResult<'_> = shape(line.tool_call_result);
        let response = parts(line).into_iter().find_map(|part| part.function_response);
        let Some(response) = response else { return self.unrecognized("tool_result without a result") };
        let exit_code = shape::<ShellResult>(result.result_display).exit_code;
        let refused = result.execution_status.as_deref() == Some("not_started");
        let outcome = match result.status.as_deref() {
            Some("cancelled") if refused => ToolOutcome::Denied,
            Some("cancelled") => ToolOutcome::Cancelled,
            Some("error") if result.error_type.as_deref() == Some("execution_denied") => ToolOutcome::Blocked,
            Some("error") => ToolOutcome::Error,
            _ if exit_code.is_some_and(|code| code != 0) => ToolOutcome::Error,
            _ => ToolOutcome::Ok,
        };
        let text = response.response.0.join("\n");
        let call_id = response.id.map(|id| id.to_string()).unwrap_or_default();
        let told = ToolResult { call_id, outcome, exit_code, ..ToolResult::default() };
        self.emit(0, told, (!text.is_empty()).then_some(text));
        // No answer follows a call that the user refused or stopped.
        match outcome {
            ToolOutcome::Denied => self.end(TurnOutcome::Denied, Confidence::Medium, "the user refused a call"),
            ToolOutcome::Cancelled => self.end(TurnOutcome::Interrupted, Confidence::Medium, "a call was stopped"),
            ToolOutcome::Ok | ToolOutcome::Error | ToolOutcome::Blocked => {}
        }
    }

    fn system(&mut self, subtype: &str, line: &QwenLine<'_>, carried: &mut QwenState) {
        let payload: SystemPayload<'_> = shape(line.system_payload);
        match subtype {
            "ui_telemetry" => self.telemetry(&shape(payload.ui_event), carried),
            "custom_title" => self.annotate(Topic::Title, words(payload.custom_title.as_ref())),
            "session_model" => self.annotate(Topic::Model, words(payload.model_id.as_ref())),
            "slash_command" => self.annotate(Topic::Command, words(payload.raw_command.as_ref())),
            "chat_compression" => {
                let info: Compression = shape(payload.info);
                let (tokens_before, tokens_after) = (info.original_token_count, info.new_token_count);
                self.emit(0, ContextCompacted { trigger: None, tokens_before, tokens_after }, None);
            }
            "rewind" => {
                let at = line.parent_uuid.as_ref().map(|id| id.to_string());
                let taken_back = at.as_deref().and_then(|at| carried.prompts.go_back(at));
                self.emit(0, SessionForked { from: self.session.to_string(), at, taken_back, turns: None }, None);
            }
            // Written by sessions that are controlled over a protocol.
            "turn_result" => match payload.state.as_deref() {
                Some("completed") => self.end(TurnOutcome::Completed, Confidence::High, "turn_result"),
                Some("cancelled") => self.end(TurnOutcome::Interrupted, Confidence::High, "turn_result"),
                Some("error") => self.end(TurnOutcome::Failed, Confidence::High, "turn_result"),
                Some(_) | None => self.unrecognized("system/turn_result"),
            },
            // The agent's own bookkeeping, which is irrelevant to readers of the conversation.
            "attribution_snapshot"
            | "file_history_snapshot"
            | "session_artifact_event"
            | "session_artifact_snapshot"
            | "session_sources_snapshot"
            | "session_source"
            | "branch_checkpoint"
            | "user_text_elements"
            | "at_command" => {}
            other => self.unrecognized(&format!("system/{other}")),
        }
    }

    /// Handles events of the agent's own telemetry; those of sub-agents are not part of the conversation.
    fn telemetry(&mut self, event: &UiEvent<'_>, carried: &mut QwenState) {
        if event.subagent_name.is_some() {
            return;
        }
        match event.name.as_deref() {
            Some("qwen-code.api_response") => carried.responded = true,
            Some("qwen-code.api_error") => self.failure(event),
            Some(_) | None => {}
        }
    }

    fn failure(&mut self, event: &UiEvent<'_>) {
        let message = words(event.error_message.as_ref()).unwrap_or_default();
        let code = event.status_code.map(|code| code.to_string());
        // The class is derived from the text; here the status code is a separate field.
        let worded = code.as_ref().map_or_else(|| message.clone(), |code| format!("{message} status: {code}"));
        let (class, _) = content::error_class(&worded);
        // The agent retries after transient errors, and records nothing when it gives up.
        let retrying = match class {
            ErrorClass::RateLimit | ErrorClass::Provider | ErrorClass::Network => true,
            ErrorClass::Auth | ErrorClass::Quota | ErrorClass::Context | ErrorClass::Other => false,
        };
        let reported = ErrorReported { class, code, ends_turn: !retrying, retrying };
        self.emit(0, reported, (!message.is_empty()).then_some(message));
        if let Some(error) = self.out.events.last_mut() {
            error.severity = Some(if retrying { Severity::Warning } else { Severity::Error });
        }
    }

    fn annotate(&mut self, topic: Topic, value: Option<String>) {
        if let Some(value) = value {
            self.emit(0, Annotation { topic, value }, None);
        }
    }

    fn end(&mut self, outcome: TurnOutcome, strength: Confidence, words: &str) {
        let claim = Claim::TurnEnded { outcome, pending_subagents: 0 };
        self.emit(END, Signal::new(claim, strength, Some(words.to_owned())), None);
    }
}

fn parts<'a>(line: &QwenLine<'a>) -> Vec<QwenPart<'a>> {
    let raw = line.message.as_ref().and_then(|message| message.parts);
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}
