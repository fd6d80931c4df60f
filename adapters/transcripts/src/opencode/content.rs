//! Converts a record to events.

use events::{
    Annotation, AssistantMessage, Claim, Confidence, ContextCompacted, ErrorClass, ErrorReported, PromptOrigin,
    SessionStarted, Severity, Signal, StartKind, Stop, Timestamp, Topic, TurnOutcome, UsageReported, UserPrompt,
};

use super::{
    record::{Change, LogRecord, MessageError, MessageInfo, Model, Part, SessionInfo, Tokens, shape, words},
    transcript::{OpencodeRecordWriter, OpencodeState},
};
use crate::cost::nano_usd;

/// Block numbers of identities, so that several events about one item differ.
const SAID: u32 = 0;
const FINISH: u32 = 1;
const END: u32 = 2;
const USAGE: u32 = 3;

impl OpencodeRecordWriter<'_, '_> {
    pub(super) fn row(&mut self, row: &LogRecord<'_>, carried: &mut OpencodeState) {
        let Ok(change) = serde_json::from_str::<Change<'_>>(&row.data) else {
            return self.unrecognized(&row.kind);
        };
        self.at = change.time.map(Timestamp::from_millisecond);
        let kind = row.kind.rsplit_once('.').map_or(&*row.kind, |(kind, _)| kind);
        match kind {
            "session.created" => self.created(&shape(change.info), carried),
            "session.updated" => self.title(&shape(change.info)),
            "message.updated" => self.message(&shape(change.info), carried),
            "message.part.updated" => match change.part.map(|part| serde_json::from_str::<Part<'_>>(part.get())) {
                Some(Ok(part)) => self.part(&part, carried),
                Some(Err(_)) | None => self.unrecognized(&row.kind),
            },
            // Undone or deleted content stays recorded.
            "session.deleted" | "message.removed" | "message.part.removed" => {}
            _ => self.unrecognized(&row.kind),
        }
    }

    fn created(&mut self, info: &SessionInfo<'_>, carried: &mut OpencodeState) {
        self.at = info.time.created.map(Timestamp::from_millisecond);
        if let Some(at) = info.time.created {
            carried.began(self.session, at);
        }
        let started = SessionStarted {
            how: if info.parent.is_some() { StartKind::Subagent } else { StartKind::New },
            cwd: words(info.directory.as_ref()),
            model: words(shape::<Model<'_>>(info.model).id.as_ref()),
            cli_version: words(info.version.as_ref()),
            parent_provider_session_id: words(info.parent.as_ref()),
            agent_type: words(info.agent.as_ref()).filter(|_| info.parent.is_some()),
            ..SessionStarted::default()
        };
        self.emit(self.id, SAID, started, None);
        self.title(info);
    }

    /// Emits the title, which is part of each change of a session; its identity is derived from its text.
    fn title(&mut self, info: &SessionInfo<'_>) {
        let Some(value) = words(info.title.as_ref()).filter(|title| !title.starts_with("New session - ")) else {
            return;
        };
        let id = format!("{}/{value}", self.session);
        self.emit(&id, SAID, Annotation { topic: Topic::Title, value }, None);
    }

    fn message(&mut self, info: &MessageInfo<'_>, carried: &mut OpencodeState) {
        let Some(id) = info.id.as_deref() else { return self.unrecognized("message without an id") };
        self.at = info.time.completed.or(info.time.created).map(Timestamp::from_millisecond);
        let copied = carried.is_copied(self.session, info.time.created);
        let known = carried.message(id);
        known.copied = copied;
        known.user = info.role.as_deref() == Some("user");
        if known.user {
            return;
        }
        known.model = words(info.model.as_ref());
        let denied = known.denied;
        if info.finish.is_some() {
            self.finish(id, info);
        }
        if let Some(error) = &info.error {
            self.failure(id, error);
        }
        if info.time.completed.is_some() {
            if denied && info.error.is_none() {
                self.end(id, TurnOutcome::Denied, Confidence::Medium, "a tool call was rejected");
            }
            if info.summary.is_some_and(|summary| summary.get() == "true") {
                self.emit(id, END, ContextCompacted::default(), None);
            }
            // The parts of a copied message follow it.
            if !copied {
                carried.close(id);
            }
        }
    }

    /// Handles the end of the model's response. Recorded twice, before and after the message is completed.
    fn finish(&mut self, id: &str, info: &MessageInfo<'_>) {
        let finish = info.finish.as_deref().unwrap_or_default();
        let answer = AssistantMessage {
            message_id: Some(id.to_owned()),
            model: words(info.model.as_ref()),
            stop: Some(match finish {
                "stop" => Stop::EndTurn,
                "tool-calls" => Stop::ToolUse,
                "length" => Stop::MaxTokens,
                "content-filter" => Stop::Refusal,
                _ => Stop::Other,
            }),
            blocks: 0,
            tool_calls: u32::from(finish == "tool-calls"),
            thinking: None,
        };
        self.emit(id, FINISH, answer, None);
    }

    fn end(&mut self, id: &str, outcome: TurnOutcome, strength: Confidence, why: &str) {
        let claim = Claim::TurnEnded { outcome, pending_subagents: 0 };
        self.emit(id, END, Signal::new(claim, strength, Some(why.to_owned())), None);
    }

    fn failure(&mut self, id: &str, error: &MessageError<'_>) {
        let name = error.name.as_deref().unwrap_or_default();
        if name == "MessageAbortedError" {
            return self.end(id, TurnOutcome::Interrupted, Confidence::High, name);
        }
        let class = error_class(name, error.data.status_code);
        let code = error.data.status_code.map(|status| status.to_string()).or_else(|| Some(name.to_owned()));
        let reported = ErrorReported { class, code, ends_turn: true, retrying: false };
        self.emit(id, END, reported, words(error.data.message.as_ref()));
        if let Some(event) = self.out.events.last_mut() {
            event.severity = Some(Severity::Error);
        }
    }

    fn part(&mut self, part: &Part<'_>, carried: &mut OpencodeState) {
        let (Some(id), Some(message)) = (part.id.as_deref(), part.message.as_deref()) else {
            return self.unrecognized("part without an id");
        };
        match part.kind.as_deref().unwrap_or_default() {
            "text" => self.text(id, message, part, carried),
            "reasoning" if part.time.end.is_some() => {
                let model = carried.message(message).model.clone();
                let thinking = words(part.text.as_ref());
                let answer = AssistantMessage {
                    message_id: Some(message.to_owned()),
                    model,
                    blocks: 1,
                    thinking,
                    ..AssistantMessage::default()
                };
                self.emit(id, SAID, answer, None);
            }
            "tool" => self.tool(id, message, part, carried),
            "step-finish" => {
                // Usage that a fork copied was already counted in the original session.
                let tokens = part.tokens.as_ref().filter(|_| !carried.message(message).copied);
                let tokens = tokens.map(|tokens| usage(tokens, part.cost, message, carried));
                if let Some(tokens) = tokens {
                    self.emit(id, USAGE, tokens, None);
                }
            }
            "retry" => {
                let error = part.error.as_ref();
                let (name, status) =
                    error.map(|e| (e.name.as_deref().unwrap_or_default(), e.data.status_code)).unwrap_or_default();
                let (class, code) = (error_class(name, status), status.map(|status| status.to_string()));
                let reported = ErrorReported { class, code, ends_turn: false, retrying: true };
                self.emit(id, SAID, reported, error.and_then(|error| words(error.data.message.as_ref())));
            }
            "compaction" => {
                let value = if part.auto { "compaction, automatic" } else { "compaction" }.to_owned();
                self.emit(id, SAID, Annotation { topic: Topic::Notice, value }, None);
            }
            // Beginnings, and content that other parts also contain.
            "reasoning" | "step-start" | "snapshot" | "patch" | "file" | "agent" | "subtask" => {}
            other => self.unrecognized(&format!("part/{other}")),
        }
    }

    fn text(&mut self, id: &str, message: &str, part: &Part<'_>, carried: &mut OpencodeState) {
        let known = carried.message(message);
        let text = words(part.text.as_ref());
        if known.user {
            // opencode marks the parts that no person wrote.
            if !part.synthetic && !part.ignored {
                let prompt = UserPrompt { origin: PromptOrigin::Human, stated: true, ..UserPrompt::default() };
                self.emit(id, SAID, prompt, text);
            }
            return;
        }
        // A text part is empty when it begins.
        let Some(end) = part.time.end.filter(|_| text.is_some()) else { return };
        self.at = Some(Timestamp::from_millisecond(end));
        let answer = AssistantMessage {
            message_id: Some(message.to_owned()),
            model: known.model.clone(),
            blocks: 1,
            ..AssistantMessage::default()
        };
        self.emit(id, SAID, answer, text);
    }
}

fn usage(tokens: &Tokens, cost_usd: Option<f64>, message: &str, carried: &mut OpencodeState) -> UsageReported {
    UsageReported {
        message_id: Some(message.to_owned()),
        model: carried.message(message).model.clone(),
        input_tokens: tokens.input,
        output_tokens: tokens.output + tokens.reasoning,
        cache_read_tokens: tokens.cache.read,
        cache_write_tokens: tokens.cache.write,
        thinking_tokens: tokens.reasoning,
        cost_nano_usd: cost_usd.filter(|cost| *cost > 0.0).and_then(nano_usd),
        ..UsageReported::default()
    }
}

fn error_class(name: &str, status: Option<u16>) -> ErrorClass {
    match (name, status) {
        ("ProviderAuthError", _) | (_, Some(401 | 403)) => ErrorClass::Auth,
        ("ContextOverflowError", _) => ErrorClass::Context,
        (_, Some(402)) => ErrorClass::Quota,
        (_, Some(429)) => ErrorClass::RateLimit,
        (_, Some(500..=599)) => ErrorClass::Provider,
        _ => ErrorClass::Other,
    }
}
