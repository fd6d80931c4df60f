//! Converts an entry to events.

use std::sync::Arc;

use events::{
    Annotation, AssistantMessage, Claim, Confidence, ContextCompacted, ErrorClass, ErrorReported, Identity,
    PromptOrigin, Provider, Reason, SessionExited, Severity, Signal, State, Stop, Timestamp, ToolCall, ToolResult,
    Topic, TurnOutcome, UsageReported, UserPrompt,
};
use serde::Deserialize;

use super::{
    record::{Cost, Line, Message, PiField, Sent, Tokens, amount, count, is_true, parts, readable, shape, text, words},
    words::{error_class, outcome, stop, title, tool_kind},
};
use crate::{cost::nano_usd, pi::state::PiState};
use tailer::decode::{Decoded, Record};

/// Block numbers of identities, so that several events of one entry differ.
const USAGE: u32 = 1;
const END: u32 = 2;
const ERROR: u32 = 3;
const MODEL: u32 = 4;
const CALL: u32 = 1_000;

/// Number of automatic retries by pi after a transient error.
const RETRIES: u32 = 3;

/// One entry and the receiver of its events.
pub(super) struct EntryWriter<'a, 'r> {
    pub(super) provider: Provider,
    /// The session it belongs to.
    pub(super) owner: Arc<str>,
    /// Its id and time; `None` if it has no id.
    pub(super) name: Option<String>,
    pub(super) at: Option<Timestamp>,
    pub(super) record: &'a Record<'r>,
    pub(super) out: &'a mut Decoded,
}

/// The origin of a user message. Between a result and the next answer, only prompts typed in the meantime are inserted.
/// capture's own agent also records the sender.
fn origin(message: &Message<'_>, worked: bool) -> PromptOrigin {
    match text(shape::<Sent<'_>>(message.capture).by).as_deref() {
        Some("monitor") => PromptOrigin::Monitor,
        Some("program") => PromptOrigin::Agent,
        Some(_) | None if worked => PromptOrigin::Steering,
        Some(_) | None => PromptOrigin::Human,
    }
}

impl EntryWriter<'_, '_> {
    pub(super) fn entry(&mut self, kind: &str, line: &Line<'_>, message: &Message<'_>, carried: &mut PiState) {
        match kind {
            "message" => self.message(line, message, carried),
            "model_change" => self.model(line),
            "thinking_level_change" => self.notice("thinking level", text(line.thinking_level).as_deref()),
            "compaction" => self.compaction(line),
            "branch_summary" => {
                let value = "summary of the branch that was left".into();
                self.put(0, Annotation { topic: Topic::Notice, value }, words(line.summary));
                self.usage(line.usage, None);
            }
            "custom" => self.custom(line),
            "custom_message" => self.injected(line.custom_type, line.content),
            "label" => {
                let (target, label) = (text(line.target_id).unwrap_or_default(), words(line.label));
                let value = label.map_or_else(|| format!("label off {target}"), |l| format!("label on {target}: {l}"));
                self.put(0, Annotation { topic: Topic::Note, value }, None);
            }
            "session_info" | "title" | "title_change" => {
                if let Some(value) = words(line.name).or_else(|| words(line.title)) {
                    self.put(0, Annotation { topic: Topic::Title, value }, None);
                }
            }
            "context_edit" => {
                let target = text(line.target_id);
                let what = if line.replacement.is_some() { "context edited" } else { "left out of the context" };
                self.notice(what, target.as_deref());
            }
            "usage" | "model_usage" if shape::<Tokens<'_>>(line.usage).input.is_some() => {
                self.usage(line.usage, words(line.model));
            }
            "mode_change" => {
                if let Some(value) = words(line.mode) {
                    self.put(0, Annotation { topic: Topic::PermissionMode, value }, None);
                }
            }
            "session_init" => self.notice("set up", text(line.task).as_deref()),
            "ttsr_injection" => self.notice("rules were shown to the model", None),
            "service_tier_change" => self.notice("service tier", text(line.service_tier).as_deref()),
            "reset_boundary" => self.notice("the context begins again", None),
            // Its content is internal to oh-my-pi.
            "credential_pin" => self.notice("credential pinned", None),
            other => self.unknown(other),
        }
    }

    /// The position of the leaf according to our own record.
    pub(super) fn leaf(&self, line: &Line<'_>) -> Option<String> {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Moved<'a> {
            #[serde(borrow)]
            leaf_id: PiField<'a>,
        }
        words(shape::<Moved<'_>>(line.data).leaf_id)
    }

    fn unknown(&mut self, kind: &str) {
        let identity = match &self.name {
            Some(name) => events::Identity::record(self.provider, name, 0),
            None => tailer::decode::line_identity(self.provider, &self.owner, self.record.bytes, 0),
        };
        self.out.unrecognized(self.record, &self.owner, identity, kind, self.at);
        if let Some(event) = self.out.events.last_mut().filter(|_| self.name.is_none()) {
            event.repeat = events::Repeat::Next;
        }
    }

    fn notice(&mut self, what: &str, more: Option<&str>) {
        let value = more.map_or_else(|| what.to_owned(), |more| format!("{what}: {more}"));
        self.put(0, Annotation { topic: Topic::Notice, value }, None);
    }

    fn signal(&mut self, block: u32, claim: Claim, strength: Confidence, words: &str) {
        self.put(block, Signal::new(claim, strength, Some(words.to_owned())), None);
    }

    fn end(&mut self, outcome: TurnOutcome, strength: Confidence, words: &str) {
        self.signal(END, Claim::TurnEnded { outcome, pending_subagents: 0 }, strength, words);
    }

    fn message(&mut self, line: &Line<'_>, message: &Message<'_>, carried: &mut PiState) {
        let role = text(message.role).unwrap_or_default();
        let worked = carried.working;
        if matches!(&*role, "user" | "assistant" | "toolResult") {
            carried.working = role == "toolResult";
        }
        match &*role {
            "user" => {
                let (text, attachments) = readable(message.content);
                let origin = origin(message, worked);
                carried.failures = 0;
                if let Some(name) = &self.name {
                    let follows = super::record::text(line.parent_id);
                    let prompt = Identity::record(self.provider, name, 0);
                    carried.prompts.put(follows.as_deref().unwrap_or_default(), prompt);
                }
                // Texts that no person wrote are entries of another type.
                self.put(0, UserPrompt { origin, stated: true, attachments, provider_turn_id: None }, text);
            }
            "assistant" => self.answer(message, carried),
            "toolResult" => {
                let (output, _) = readable(message.content);
                let (outcome, exit_code) = outcome(is_true(message.is_error), output.as_deref().unwrap_or_default());
                let call_id = words(message.tool_call_id).unwrap_or_default();
                let name = words(message.tool_name);
                let exit_code = exit_code.filter(|_| name.as_deref() == Some("bash"));
                self.put(0, ToolResult { call_id, outcome, exit_code, ..ToolResult::default() }, output);
            }
            "bashExecution" => {
                let value = format!("!{}", text(message.command).unwrap_or_default());
                self.put(0, Annotation { topic: Topic::Command, value }, words(message.output));
            }
            "system" => {
                let (text, _) = readable(message.content);
                self.put(0, Annotation { topic: Topic::Notice, value: "system prompt".into() }, text);
            }
            "custom" | "hookMessage" => self.injected(message.custom_type, message.content),
            _ if line.message.is_none() => self.unknown("message without a message"),
            role => self.unknown(&format!("message/{role}")),
        }
    }

    /// Handles a message of an extension, which the model reads as the user's.
    fn injected(&mut self, custom_type: PiField<'_>, content: PiField<'_>) {
        let value = text(custom_type).unwrap_or_default().into_owned();
        let (text, _) = readable(content);
        self.put(0, Annotation { topic: Topic::Notice, value }, text);
    }

    fn answer(&mut self, message: &Message<'_>, carried: &mut PiState) {
        let parts = parts(message.content);
        let (answer, _) = readable(message.content);
        let thinking: Vec<String> = parts.iter().filter_map(|part| words(part.thinking)).collect();
        let is_call = |part: &&super::record::Part<'_>| text(part.kind).as_deref() == Some("toolCall");
        let calls = u32::try_from(parts.iter().filter(is_call).count()).unwrap_or(u32::MAX);
        let reason = text(message.stop_reason);
        let stop = stop(reason.as_deref(), calls);
        let model = words(message.model);
        let message_id = self.name.clone();
        carried.working = stop == Some(Stop::ToolUse);
        let said = AssistantMessage {
            message_id,
            model: model.clone(),
            stop,
            blocks: u32::try_from(parts.len()).unwrap_or(u32::MAX),
            tool_calls: calls,
            thinking: (!thinking.is_empty()).then(|| thinking.join("\n")),
        };
        self.put(0, said, answer);
        for (index, part) in (0..).zip(parts.iter().filter(is_call)) {
            let name = words(part.name).unwrap_or_default();
            let tool = tool_kind(&name);
            let call = ToolCall {
                call_id: words(part.id).unwrap_or_default(),
                tool,
                title: title(&name, tool, part.arguments),
                name,
                ..ToolCall::default()
            };
            self.put(CALL + index, call, part.arguments.map(|a| a.get().to_owned()));
        }
        self.usage(message.usage, model);
        let failed = reason.as_deref() == Some("error");
        carried.failures = if failed { carried.failures.saturating_add(1) } else { 0 };
        match reason.as_deref() {
            Some("aborted") => self.end(TurnOutcome::Interrupted, Confidence::High, "stopReason aborted"),
            Some("error") => self.failure(message, carried.failures),
            // pi only continues automatically if the context was too long.
            Some("length") if calls == 0 => self.end(TurnOutcome::Completed, Confidence::Medium, "stopReason length"),
            Some(_) | None => {}
        }
    }

    /// Handles an answer that is an error. pi retries after transient ones without recording it.
    fn failure(&mut self, message: &Message<'_>, failures: u32) {
        let words = words(message.error_message);
        let (class, code) = error_class(words.as_deref().unwrap_or_default());
        let passes = match class {
            ErrorClass::RateLimit | ErrorClass::Network | ErrorClass::Provider | ErrorClass::Context => true,
            ErrorClass::Auth | ErrorClass::Quota | ErrorClass::Other => false,
        };
        let retrying = passes && failures <= RETRIES;
        self.put(ERROR, ErrorReported { class, code, ends_turn: !retrying, retrying }, words);
        if let Some(event) = self.out.events.last_mut() {
            event.severity = Some(if retrying { Severity::Warning } else { Severity::Error });
        }
    }

    fn usage(&mut self, raw: PiField<'_>, model: Option<String>) {
        let tokens: Tokens<'_> = shape(raw);
        let [input, output, read, write] =
            [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write].map(|n| count(n).unwrap_or(0));
        if input + output + read + write == 0 {
            return;
        }
        // Our own agent marks an unknown price; pi writes 0 then.
        let cost = amount(shape::<Cost<'_>>(tokens.cost).total).filter(|_| !is_true(tokens.cost_unknown));
        let usage = UsageReported {
            message_id: self.name.clone(),
            model,
            input_tokens: input,
            output_tokens: output,
            cache_read_tokens: read,
            cache_write_tokens: write,
            cost_nano_usd: cost.filter(|cost| *cost > 0.0).and_then(nano_usd),
            ..UsageReported::default()
        };
        self.put(USAGE, usage, None);
    }

    fn model(&mut self, line: &Line<'_>) {
        // oh-my-pi: `provider/id`, and the role of the model.
        let both = words(line.model);
        let id = words(line.model_id).or_else(|| Some(both?.split_once('/')?.1.to_owned()));
        let Some(id) = id else { return };
        let role = words(line.role).filter(|role| role != "default");
        if let Some(role) = role {
            return self.notice(&format!("model for {role}"), Some(&id));
        }
        self.put(MODEL, Annotation { topic: Topic::Model, value: id }, None);
    }

    fn compaction(&mut self, line: &Line<'_>) {
        let compacted = ContextCompacted {
            trigger: None,
            tokens_before: count(line.tokens_before),
            tokens_after: count(line.tokens_after),
        };
        self.put(0, compacted, words(line.summary));
        self.usage(line.usage, None);
    }

    /// Handles the state of extensions, and two entries of oh-my-pi itself about the state of the session.
    fn custom(&mut self, line: &Line<'_>) {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Data<'a> {
            #[serde(borrow)]
            tool_name: PiField<'a>,
            #[serde(borrow)]
            code: PiField<'a>,
        }
        let custom_type = text(line.custom_type).unwrap_or_default();
        match &*custom_type {
            // The message with the call follows later and describes it.
            "tool_execution_start" => {
                let name = words(shape::<Data<'_>>(line.data).tool_name).unwrap_or_default();
                let claim = Claim::State { state: State::Running, reason: Some(Reason::Tool) };
                self.signal(0, claim, Confidence::Medium, &format!("tool_execution_start {name}"));
            }
            "session_exit" => {
                // Only our own agent writes the code.
                let code: Option<i32> = shape::<Data<'_>>(line.data).code.and_then(|code| code.get().parse().ok());
                let reason = code.map(|code| if code == 0 { Reason::Clean } else { Reason::Failed });
                self.put(0, SessionExited { reason, code }, line.data.map(|data| data.get().to_owned()));
            }
            other => {
                let note = Annotation { topic: Topic::Notice, value: other.to_owned() };
                self.put(0, note, line.data.map(|data| data.get().to_owned()));
                if other == "capture.task" {
                    self.own_turn_ended(line);
                }
            }
        }
    }

    /// Handles our own agent's record of the end of a turn. The last answer also has it, but not every turn has an
    /// answer.
    fn own_turn_ended(&mut self, line: &Line<'_>) {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct TurnEndNote<'a> {
            #[serde(borrow)]
            outcome: PiField<'a>,
        }
        let outcome = words(shape::<TurnEndNote<'_>>(line.data).outcome).unwrap_or_default();
        let ended = match &*outcome {
            "aborted" | "interrupted" => TurnOutcome::Interrupted,
            // The model did not finish: it reached the limit of answers, or answered with nothing.
            "failed" | "refused" | "rounds" | "empty" => TurnOutcome::Failed,
            _ => return,
        };
        self.end(ended, Confidence::High, &format!("capture.task {outcome}"));
    }
}
