//! Converts the activity of a session to the events of pi's JSON stream.
//!
//! A fold over the machine's notifications (frames) and the entries in the file, in order. Messages are reported as
//! stored. An agent run of pi (`agent_start` to `agent_end`) is one of our turns, including the messages queued for its
//! end; a turn of pi is one answer with the results of its calls. Our own events, which pi does not have:
//! `turn_paused`, `disk_trouble`, `file_lost`, `context_fills`, and `entry_appended` for every `custom` entry.

mod lines;

use engine::{
    AnswerUsage, CallId, CompactionReason, EngineActivity, QueueKind, RuntimeFrame, StepTime, TurnOutcome,
    entries::{OWN_KEY, QueuedRecord, RuntimeEntry},
};
use session_tree::{
    Entry, EntryBody, Json, Object,
    context::{messages_of, text_of},
};

use self::lines::{event, message_event, update};

/// The answering model, as named in messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerModel {
    /// The wire format.
    pub api: String,
    /// The provider.
    pub provider: String,
    /// The model.
    pub id: String,
}

/// Reports the activity of a session line by line.
#[derive(Debug, Clone, Default)]
pub struct EventStream {
    model: AnswerModel,
    /// Maximum number of retries of a request.
    retries: u32,
    queue: Vec<Queued>,
    run: Option<AgentRun>,
    turn: Option<AnswerTurn>,
    streaming: Option<Streaming>,
    /// Number of retries of the request, and why it failed.
    retry: Option<(u32, String)>,
    failure: Option<String>,
    /// Whether nothing has started since the end of the last run was reported.
    is_settled: bool,
}

#[derive(Debug, Clone)]
struct Queued {
    id: String,
    kind: QueueKind,
    text: String,
}

/// From `agent_start` to `agent_end`: the messages so far.
#[derive(Debug, Clone, Default)]
struct AgentRun {
    messages: Vec<Object>,
}

/// From `turn_start` to `turn_end`.
#[derive(Debug, Clone, Default)]
struct AnswerTurn {
    answer: Option<Object>,
    calls: Vec<ShownCall>,
    results: Vec<Object>,
}

#[derive(Debug, Clone)]
struct ShownCall {
    id: String,
    tool: String,
    arguments: Object,
    is_started: bool,
}

/// An answer whose message has started.
#[derive(Debug, Clone, Default)]
struct Streaming {
    /// The index of the next block.
    index: u64,
    open: Option<OpenBlock>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    Text,
    Thinking,
}

impl OpenBlock {
    const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Thinking => "thinking",
        }
    }
}

impl EventStream {
    /// The events of a session whose next answer is from this model. `retries`: maximum number of retries of a request.
    #[must_use]
    pub fn new(model: AnswerModel, retries: u32) -> Self {
        Self { model, retries, ..Self::default() }
    }

    /// Changes the model of further answers.
    pub fn set_model(&mut self, model: AnswerModel) {
        self.model = model;
    }

    /// The queued messages: their ids, when they land, and their texts.
    pub fn queued(&self) -> impl Iterator<Item = (&str, QueueKind, &str)> {
        self.queue.iter().map(|queued| (queued.id.as_str(), queued.kind, queued.text.as_str()))
    }

    /// The events for an appended entry.
    pub fn entry(&mut self, entry: &Entry) -> Vec<String> {
        let mut out = Vec::new();
        match entry.body() {
            EntryBody::Message(Some(message)) => match message.text("role") {
                Some("assistant") => self.answered(message, &mut out),
                Some("toolResult") => self.returned(message, &mut out),
                Some(_) | None => self.said(message, &mut out),
            },
            EntryBody::CustomMessage(_) => {
                for message in messages_of(entry) {
                    self.said(&message, &mut out);
                }
            }
            EntryBody::Custom(_) => {
                self.queue_changed(entry, &mut out);
                out.push(event("entry_appended").with("entry", entry.fields().clone()).to_text());
            }
            EntryBody::SessionInfo(name) => {
                let name = name.filter(|name| !name.trim().is_empty());
                out.push(event("session_info_changed").with_some("name", name).to_text());
            }
            EntryBody::Message(None)
            | EntryBody::ModelChange(_)
            // Reported when it is set.
            | EntryBody::ThinkingLevelChange(_)
            | EntryBody::Compaction(_)
            | EntryBody::BranchSummary(_)
            | EntryBody::Label(_)
            | EntryBody::SessionInit(_)
            | EntryBody::TtsrInjection(_)
            | EntryBody::ContextEdit(_)
            | EntryBody::Usage(_)
            | EntryBody::Unknown(_) => {}
        }
        out
    }

    /// The events for a notification of the machine.
    pub fn frame(&mut self, frame: &RuntimeFrame, now: StepTime) -> Vec<String> {
        let mut out = Vec::new();
        match frame {
            RuntimeFrame::Text(text) => self.delta(OpenBlock::Text, text, now, &mut out),
            RuntimeFrame::Thinking(text) => self.delta(OpenBlock::Thinking, text, now, &mut out),
            RuntimeFrame::CallOpened { .. } => drop(self.begin_answer(now, &mut out)),
            RuntimeFrame::Block(block) => self.block(block, now, &mut out),
            RuntimeFrame::CallStarted { call, .. } => self.started(*call, &mut out),
            RuntimeFrame::RequestEnded { failure: Some(_), error, .. } => {
                self.request_failed(error.as_deref(), now, &mut out)
            }
            RuntimeFrame::Activity(EngineActivity::Retrying { until_mono_ms, .. }) => {
                self.repeats(until_mono_ms.saturating_sub(now.mono_ms), &mut out);
            }
            RuntimeFrame::Activity(EngineActivity::Paused(why)) => {
                let why = serde_json::to_string(why).ok().and_then(|text| Json::parse(&text).ok());
                out.push(event("turn_paused").with_some("reason", why).to_text());
            }
            RuntimeFrame::TurnEnded { outcome, error } => self.run_ended(*outcome, error.as_deref(), now, &mut out),
            RuntimeFrame::DiskTrouble { error } => {
                out.push(event("disk_trouble").with_some("error", error.as_deref()).to_text());
            }
            RuntimeFrame::FileLost { error } => out.push(event("file_lost").with("error", error.as_str()).to_text()),
            RuntimeFrame::SecretsMasked { id, secrets } => {
                let masked = event("secrets_masked").with("message", id.as_str());
                out.push(masked.with("count", u64::try_from(*secrets).unwrap_or(u64::MAX)).to_text());
            }
            RuntimeFrame::CompactionStarted { reason } => {
                out.push(event("compaction_start").with("reason", reason.name()).to_text());
            }
            RuntimeFrame::Compacted { reason, tokens_before, summary_tokens } => {
                let result = Object::new().with("tokensBefore", *tokens_before).with("summaryTokens", *summary_tokens);
                let ended = event("compaction_end").with("reason", reason.name()).with("result", result);
                let will_retry = *reason == CompactionReason::Overflow;
                out.push(ended.with("aborted", false).with("willRetry", will_retry).to_text());
            }
            RuntimeFrame::CompactionFailed { reason, error } => {
                let ended = event("compaction_end").with("reason", reason.name()).with("aborted", true);
                out.push(ended.with("willRetry", false).with("errorMessage", error.as_str()).to_text());
            }
            RuntimeFrame::ContextFills { tokens, window } => {
                out.push(event("context_fills").with("tokens", *tokens).with("contextWindow", *window).to_text());
            }
            RuntimeFrame::TurnStarted => self.is_settled = false,
            RuntimeFrame::Activity(_)
            | RuntimeFrame::RequestEnded { failure: None, .. }
            | RuntimeFrame::CallDecided { .. }
            | RuntimeFrame::CallEnded { .. }
            | RuntimeFrame::Message { .. }
            | RuntimeFrame::Refused { .. } => {}
        }
        out
    }

    // Messages

    /// Reports a message of the user or of the program.
    fn said(&mut self, message: &Object, out: &mut Vec<String>) {
        self.begin_turn(out);
        self.land(message, out);
        let message = in_blocks(message);
        self.message(&message, out);
    }

    fn message(&mut self, message: &Object, out: &mut Vec<String>) {
        out.push(message_event("message_start", message));
        self.end_message(message, out);
    }

    fn end_message(&mut self, message: &Object, out: &mut Vec<String>) {
        out.push(message_event("message_end", message));
        if let Some(run) = &mut self.run {
            run.messages.push(message.clone());
        }
    }

    /// Reports a complete answer.
    fn answered(&mut self, message: &Object, out: &mut Vec<String>) {
        self.begin_turn(out);
        if self.streaming.take().is_none() {
            let pending = message.clone().with("content", Vec::new()).with("stopReason", "pending");
            out.push(message_event("message_start", &pending));
        }
        self.end_message(message, out);
        let is_broken = matches!(message.text("stopReason"), Some("error" | "aborted"));
        if !is_broken && let Some((attempt, _)) = self.retry.take() {
            out.push(event("auto_retry_end").with("success", true).with("attempt", u64::from(attempt)).to_text());
        }
        let blocks = message.get("content").and_then(Json::as_array).unwrap_or_default();
        let calls = blocks.iter().filter_map(Json::as_object).filter(|block| block.text("type") == Some("toolCall"));
        let call = |call: &Object| ShownCall {
            id: call.text("id").unwrap_or_default().to_owned(),
            tool: call.text("name").unwrap_or_default().to_owned(),
            arguments: call.get("arguments").and_then(Json::as_object).cloned().unwrap_or_default(),
            is_started: false,
        };
        let calls: Vec<ShownCall> = calls.map(call).collect();
        let is_last = calls.is_empty();
        if let Some(turn) = &mut self.turn {
            turn.answer = Some(message.clone());
            turn.calls = calls;
        }
        // What follows a broken answer is reported with the end of its request.
        if is_last && !is_broken {
            self.end_turn(out);
        }
    }

    fn returned(&mut self, message: &Object, out: &mut Vec<String>) {
        let id = message.text("toolCallId").unwrap_or_default();
        let call = self.turn.as_ref().and_then(|turn| turn.calls.iter().position(|call| call.id == id));
        if let Some(at) = call {
            self.start_call(at, out);
            let result = Object::new()
                .with_some("content", message.get("content").cloned())
                .with_some("details", message.get("details").cloned());
            let ended = event("tool_execution_end").with("toolCallId", id);
            let ended = ended.with_some("toolName", message.text("toolName")).with("result", result);
            out.push(ended.with_some("isError", message.get("isError").cloned()).to_text());
        }
        self.message(message, out);
        if let Some(turn) = &mut self.turn {
            turn.results.push(message.clone());
            if turn.answer.is_some() && turn.results.len() >= turn.calls.len() {
                self.end_turn(out);
            }
        }
    }

    fn started(&mut self, call: CallId, out: &mut Vec<String>) {
        if let Ok(at) = usize::try_from(call.index) {
            self.start_call(at, out);
        }
    }

    fn start_call(&mut self, at: usize, out: &mut Vec<String>) {
        let call = self.turn.as_mut().and_then(|turn| turn.calls.get_mut(at));
        if let Some(call) = call.filter(|call| !call.is_started) {
            call.is_started = true;
            let started = event("tool_execution_start").with("toolCallId", call.id.as_str());
            out.push(started.with("toolName", call.tool.as_str()).with("args", call.arguments.clone()).to_text());
        }
    }

    // Streaming answers

    /// Starts the message of the streaming answer, if it has not started.
    fn begin_answer(&mut self, now: StepTime, out: &mut Vec<String>) -> &mut Streaming {
        self.begin_turn(out);
        if self.streaming.is_none() {
            out.push(message_event("message_start", &self.own_answer("pending", None, now)));
        }
        self.streaming.get_or_insert_default()
    }

    fn delta(&mut self, kind: OpenBlock, text: &str, now: StepTime, out: &mut Vec<String>) {
        let streaming = self.begin_answer(now, out);
        let is_new = streaming.open.replace(kind) != Some(kind);
        let of = |phase: &str| update(kind.name(), phase, streaming.index);
        if is_new {
            out.push(of("start").line());
        }
        out.push(of("delta").with("delta", text).line());
    }

    fn block(&mut self, block: &Object, now: StepTime, out: &mut Vec<String>) {
        let of_text = |kind: OpenBlock| (kind, block.text(kind.name()).unwrap_or_default());
        let (kind, text) = match block.text("type") {
            Some("text") => of_text(OpenBlock::Text),
            Some("thinking") => of_text(OpenBlock::Thinking),
            other => {
                let is_call = other == Some("toolCall");
                let streaming = self.begin_answer(now, out);
                if is_call {
                    let of = |phase: &str| update("toolcall", phase, streaming.index);
                    let start = of("start").with("id", block.text("id").unwrap_or_default());
                    out.push(start.with("toolName", block.text("name").unwrap_or_default()).line());
                    let arguments = block.get("arguments").map(Json::to_text).unwrap_or_default();
                    out.push(of("delta").with("delta", arguments).line());
                    out.push(of("end").with("toolCall", block.clone()).line());
                }
                (streaming.open, streaming.index) = (None, streaming.index + 1);
                return;
            }
        };
        if self.streaming.as_ref().and_then(|streaming| streaming.open) != Some(kind) {
            self.delta(kind, text, now, out);
        }
        let streaming = self.begin_answer(now, out);
        out.push(update(kind.name(), "end", streaming.index).with("content", text).line());
        (streaming.open, streaming.index) = (None, streaming.index + 1);
    }

    /// An answer with nothing in the file.
    fn own_answer(&self, stop: &str, error: Option<&str>, now: StepTime) -> Object {
        Object::new()
            .with("role", "assistant")
            .with("content", Vec::new())
            .with("api", self.model.api.as_str())
            .with("provider", self.model.provider.as_str())
            .with("model", self.model.id.as_str())
            .with("usage", lines::usage(AnswerUsage::default()))
            .with("stopReason", stop)
            .with_some("errorMessage", error)
            .with("timestamp", now.wall_ms)
    }

    /// Ensures that the turn has an answer: the one in the file, or one that reports how it ended.
    fn break_off(&mut self, stop: &str, error: Option<&str>, now: StepTime, out: &mut Vec<String>) {
        let has_answer = self.turn.as_ref().is_some_and(|turn| turn.answer.is_some());
        if self.turn.is_some() && !has_answer {
            let answer = self.own_answer(stop, error, now);
            if self.streaming.take().is_none() {
                out.push(message_event("message_start", &answer));
            }
            self.end_message(&answer, out);
            if let Some(turn) = &mut self.turn {
                turn.answer = Some(answer);
            }
        }
        self.end_turn(out);
    }

    // Failures

    fn request_failed(&mut self, error: Option<&str>, now: StepTime, out: &mut Vec<String>) {
        self.failure = error.map(str::to_owned);
        self.begin_turn(out);
        self.break_off("error", error, now, out);
    }

    fn repeats(&mut self, delay_ms: u64, out: &mut Vec<String>) {
        let error = self.failure.take().unwrap_or_default();
        let attempt = self.retry.take().map_or(0, |(attempt, _)| attempt) + 1;
        self.end_run(true, out);
        let started = event("auto_retry_start").with("attempt", u64::from(attempt));
        let started = started.with("maxAttempts", u64::from(self.retries)).with("delayMs", delay_ms);
        out.push(started.with("errorMessage", error.as_str()).to_text());
        self.retry = Some((attempt, error));
    }

    // Turns and runs

    fn begin_turn(&mut self, out: &mut Vec<String>) {
        if self.run.is_none() {
            self.run = Some(AgentRun::default());
            self.is_settled = false;
            out.push(event("agent_start").to_text());
        }
        if self.turn.is_none() {
            self.turn = Some(AnswerTurn::default());
            out.push(event("turn_start").to_text());
        }
    }

    fn end_turn(&mut self, out: &mut Vec<String>) {
        let Some(turn) = self.turn.take() else { return };
        let results: Vec<Json> = turn.results.into_iter().map(Json::Object).collect();
        out.push(event("turn_end").with_some("message", turn.answer).with("toolResults", results).to_text());
    }

    fn end_run(&mut self, will_retry: bool, out: &mut Vec<String>) {
        let Some(run) = self.run.take() else { return };
        let messages: Vec<Json> = run.messages.into_iter().map(Json::Object).collect();
        out.push(event("agent_end").with("messages", messages).with("willRetry", will_retry).to_text());
    }

    fn run_ended(&mut self, outcome: TurnOutcome, error: Option<&str>, now: StepTime, out: &mut Vec<String>) {
        let goes_on = match outcome {
            TurnOutcome::Done | TurnOutcome::Length => !self.queue.is_empty(),
            TurnOutcome::Empty
            | TurnOutcome::Aborted
            | TurnOutcome::Interrupted
            | TurnOutcome::Failed
            | TurnOutcome::Refused
            | TurnOutcome::Rounds => false,
        };
        let is_aborted = matches!(outcome, TurnOutcome::Aborted | TurnOutcome::Interrupted);
        let stop = if is_aborted { "aborted" } else { "error" };
        self.break_off(stop, error, now, out);
        self.streaming = None;
        self.failure = None;
        if let Some((attempt, failure)) = self.retry.take() {
            let ended = event("auto_retry_end").with("success", false).with("attempt", u64::from(attempt));
            out.push(ended.with("finalError", error.unwrap_or(&failure)).to_text());
        }
        if !goes_on {
            self.end_run(false, out);
            // A turn whose end could not be written is reported again once it is in the file.
            if !std::mem::replace(&mut self.is_settled, true) {
                out.push(event("agent_settled").to_text());
            }
        }
    }

    // The queue

    fn queue_changed(&mut self, entry: &Entry, out: &mut Vec<String>) {
        match QueuedRecord::of(entry) {
            Some(QueuedRecord::Queued { id, kind, content, .. }) => {
                self.queue.push(Queued { id, kind, text: text_of(&content, "") });
            }
            Some(QueuedRecord::Withdrawn { id }) => self.queue.retain(|queued| queued.id != id),
            None => return,
        }
        out.push(self.queue_update());
    }

    /// Removes a queued message that is now part of the session.
    fn land(&mut self, message: &Object, out: &mut Vec<String>) {
        let id = message.get(OWN_KEY).and_then(Json::as_object).and_then(|own| own.text("id"));
        let before = self.queue.len();
        self.queue.retain(|queued| Some(queued.id.as_str()) != id);
        if self.queue.len() != before {
            out.push(self.queue_update());
        }
    }

    fn queue_update(&self) -> String {
        let of = |kind: QueueKind| -> Vec<Json> {
            let texts = self.queue.iter().filter(|queued| queued.kind == kind);
            texts.map(|queued| Json::from(queued.text.as_str())).collect()
        };
        let update = event("queue_update").with("steering", of(QueueKind::Steer));
        update.with("followUp", of(QueueKind::FollowUp)).to_text()
    }
}

/// A message with its content in blocks, as pi reports user messages.
fn in_blocks(message: &Object) -> Object {
    match (message.text("role"), message.text("content")) {
        (Some("user"), Some(text)) => {
            let block = Object::new().with("type", "text").with("text", text);
            message.clone().with("content", vec![Json::from(block)])
        }
        _ => message.clone(),
    }
}

#[cfg(test)]
mod tests;
