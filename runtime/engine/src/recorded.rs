//! The state of a session derived from its entries alone.
//!
//! A fold: [`RecordedSession::apply`] processes each entry that is written, and each entry that is read when the
//! session is opened. Nothing else changes the state. After a kill, the next process therefore finds the state that the
//! killed one had after writing the last complete line.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use session_tree::{Entry, EntryBody, Json, Object, Tree, compaction::message_tokens};

use crate::{
    cache::CacheHistory,
    context::ContextKey,
    entries::{
        AnswerOrigin, Asked, BudgetSet, CONTEXT_TYPE, Decided, EndedRequest, Frozen, ModeSet, NOTE_TYPE, OWN_KEY,
        PauseRecord, QueuedRecord, RequestRecord, ResultOrigin, RuntimeEntry, Sent, Started, StoppedNote, TaskEnded,
        from_json,
    },
    guard::LoopGuard,
    ids::{CallId, RequestNumber, call_key},
    input::{
        AnswerUsage, CallDecision, CallFacts, MessageOrigin, PauseReason, QueueKind, SessionMode, SpendLimits,
        TurnOutcome, UserMessage,
    },
};

/// The recorded state of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedSession {
    pub(crate) frozen: Option<Frozen>,
    pub(crate) context: Option<ContextKey>,
    /// Provider and model id.
    pub(crate) model: Option<(String, String)>,
    pub(crate) thinking: Option<String>,
    pub(crate) limits: Option<SpendLimits>,
    pub(crate) mode: SessionMode,
    /// The highest request number.
    pub(crate) requests: u64,
    pub(crate) cache: CacheHistory,
    /// The tokens of the last request of a turn and its answer, as reported, and of the messages after it, as estimated;
    /// 0 if no request was answered since the last compaction.
    pub(crate) context_tokens: u64,
    /// Number of compactions in a row that saved little.
    pub(crate) compactions_in_vain: u32,
    /// Whether no request of a turn was answered since the last compaction: it may not have helped.
    pub(crate) is_unproven: bool,
    /// The tokens before the last compaction, until the next answer shows how many are left.
    compacted_from: Option<u64>,
    pub(crate) calls_started: u64,
    pub(crate) wall_ms: u64,
    pub(crate) turn: Option<RecordedTurn>,
    /// The calls of the last answer that have no result, in the model's order.
    pub(crate) calls: Vec<RecordedCall>,
    pub(crate) queue: VecDeque<QueuedMessage>,
    pub(crate) paused: Option<PauseReason>,
    pub(crate) guard: LoopGuard,
    /// Background commands not seen to end: ids and command lines.
    pub(crate) background: BTreeMap<String, String>,
    /// The keys by which the ids of all calls are distinguished.
    pub(crate) call_keys: BTreeSet<String>,
}

/// A turn that has not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RecordedTurn {
    /// Number of answers so far.
    pub(crate) rounds: u32,
    /// The outcome of the turn if its last answer has no calls.
    pub(crate) answered: Option<TurnOutcome>,
    /// Whether the last answer was empty.
    pub(crate) is_empty: bool,
    /// Whether the model was already told that its answer was empty.
    pub(crate) was_nudged: bool,
    began_ms: Option<i64>,
    last_ms: Option<i64>,
}

impl RecordedTurn {
    /// The time between its first and its last entry, in milliseconds.
    pub(crate) fn span_ms(&self) -> u64 {
        let span = self.began_ms.zip(self.last_ms).map_or(0, |(began, last)| last - began);
        u64::try_from(span).unwrap_or_default()
    }
}

/// A call without a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordedCall {
    pub(crate) id: CallId,
    pub(crate) model_id: String,
    pub(crate) tool: String,
    pub(crate) arguments: Object,
    /// The arguments as text if they were not a JSON object.
    pub(crate) malformed: Option<String>,
    pub(crate) stage: RecordedStage,
}

/// The stage a call has reached.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RecordedStage {
    /// The model requested it.
    Wanted,
    /// Permission was asked.
    Asked(CallFacts),
    /// The request was decided.
    Decided(Box<CallDecision>),
    /// It was started.
    Started {
        /// Whether it changes nothing.
        harmless: bool,
        /// When it was started.
        at_ms: Option<i64>,
    },
    /// Another program wrote the answer, and its file does not record the stage.
    Foreign,
}

/// A queued message.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedMessage {
    /// When it lands.
    pub kind: QueueKind,
    /// The message.
    pub message: UserMessage,
}

/// A call that was running when its process ended.
#[derive(Debug, Clone, PartialEq)]
pub struct InterruptedCall {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Object,
    /// When it was started, in milliseconds since 1970.
    pub started_at_ms: Option<i64>,
}

impl RecordedSession {
    /// The state from the entries on the path to the leaf. Entries on other branches count only for the amount spent.
    #[must_use]
    pub fn of(tree: &Tree) -> Self {
        let path = tree.leaf_path();
        let mut on_path = path.iter().map(|entry| std::ptr::from_ref::<Entry>(entry)).collect::<Vec<_>>();
        on_path.sort_unstable();
        let mut recorded = Self::default();
        for entry in tree.entries().iter().filter(|e| on_path.binary_search(&std::ptr::from_ref::<Entry>(e)).is_err()) {
            recorded.apply_elsewhere(entry);
        }
        for entry in path {
            recorded.apply(entry);
        }
        recorded
    }

    /// Tokens, cost, time and calls so far.
    #[must_use]
    pub fn spent(&self) -> SpendLimits {
        let total = self.cache.total();
        SpendLimits {
            tokens: Some(total.prompt_tokens().saturating_add(total.output)),
            cost_nano_usd: total.cost_nano_usd,
            wall_ms: Some(self.wall_ms),
            calls: Some(self.calls_started),
        }
    }

    /// The queued messages, in order.
    pub fn queue(&self) -> impl Iterator<Item = &QueuedMessage> {
        self.queue.iter()
    }

    /// The cache contents that earlier requests left.
    #[must_use]
    pub fn cache(&self) -> &CacheHistory {
        &self.cache
    }

    /// The mode.
    #[must_use]
    pub fn mode(&self) -> SessionMode {
        self.mode
    }

    /// Whether a turn or a call without a result is unfinished.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.turn.is_some() || !self.calls.is_empty()
    }

    /// Applies an entry of another branch, which counts only for the amount spent.
    fn apply_elsewhere(&mut self, entry: &Entry) {
        if let Some(record) = RequestRecord::of(entry) {
            self.apply_request(record, entry.at_ms().unwrap_or_default());
        } else if Started::of(entry).is_some() {
            self.calls_started += 1;
        } else if let Some(ended) = TaskEnded::of(entry) {
            self.wall_ms = self.wall_ms.saturating_add(ended.ms);
        }
    }

    /// Applies an entry that follows the last one.
    pub fn apply(&mut self, entry: &Entry) {
        match entry.body() {
            EntryBody::Message(Some(message)) => self.apply_message(message, entry),
            EntryBody::ModelChange(model) => {
                let of = |text: Option<&Json>| text.and_then(Json::as_str).unwrap_or_default().to_owned();
                self.model = Some((of(model.provider), of(model.id)));
            }
            EntryBody::ThinkingLevelChange(level) => self.thinking = level.and_then(Json::as_str).map(str::to_owned),
            EntryBody::Custom(_) => self.apply_own(entry),
            EntryBody::CustomMessage(_) => self.apply_injected(entry),
            EntryBody::Compaction(_) => self.apply_compaction(),
            EntryBody::Message(None)
            | EntryBody::BranchSummary(_)
            | EntryBody::Label(_)
            | EntryBody::SessionInfo(_)
            | EntryBody::SessionInit(_)
            | EntryBody::TtsrInjection(_)
            | EntryBody::ContextEdit(_)
            | EntryBody::Usage(_)
            | EntryBody::Unknown(_) => {}
        }
        if let Some(turn) = &mut self.turn {
            turn.last_ms = entry.at_ms().or(turn.last_ms);
        }
    }

    fn apply_compaction(&mut self) {
        self.compacted_from = Some(self.context_tokens).filter(|tokens| *tokens > 0);
        self.context_tokens = 0;
        self.is_unproven = true;
        // The session context is among the replaced messages.
        self.context = None;
        self.guard.clear();
    }

    /// Counts the tokens of the answer to a request of a turn.
    fn count_context(&mut self, usage: &AnswerUsage) {
        self.context_tokens = usage.prompt_tokens().saturating_add(usage.output);
        self.is_unproven = false;
        if let Some(before) = self.compacted_from.take() {
            let saved_little = self.context_tokens.saturating_mul(10) > before.saturating_mul(7);
            self.compactions_in_vain = if saved_little { self.compactions_in_vain + 1 } else { 0 };
        }
    }

    fn apply_message(&mut self, message: &Object, entry: &Entry) {
        if self.context_tokens > 0 && message.text("role") != Some("assistant") {
            self.context_tokens = self.context_tokens.saturating_add(message_tokens(message));
        }
        match message.text("role") {
            Some("user") => self.apply_user(message, entry),
            Some("assistant") => self.apply_answer(message),
            Some("toolResult") => self.apply_result(message),
            Some(_) | None => {}
        }
    }

    fn apply_user(&mut self, message: &Object, entry: &Entry) {
        if let Some(sent) = message.get(OWN_KEY).and_then(from_json::<Sent>) {
            self.queue.retain(|queued| queued.message.id != sent.id);
        }
        self.guard.clear();
        let turn = self.turn.get_or_insert_default();
        turn.began_ms = turn.began_ms.or(entry.at_ms());
        turn.answered = None;
        turn.is_empty = false;
        turn.was_nudged = false;
    }

    fn apply_answer(&mut self, message: &Object) {
        if let (Some(provider), Some(model)) = (message.text("provider"), message.text("model")) {
            self.model = Some((provider.to_owned(), model.to_owned()));
        }
        let stop = message.text("stopReason");
        if matches!(stop, Some("error" | "aborted")) {
            return;
        }
        let origin = message.get(OWN_KEY).and_then(from_json::<AnswerOrigin>);
        let request = origin.map_or(RequestNumber(0), |origin| origin.request);
        let stage = if origin.is_some() { RecordedStage::Wanted } else { RecordedStage::Foreign };
        self.calls = (0..)
            .zip(calls_of(message))
            .map(|(index, block)| RecordedCall {
                id: CallId { request, index },
                model_id: block.text("id").unwrap_or_default().to_owned(),
                tool: block.text("name").unwrap_or_default().to_owned(),
                arguments: block.get("arguments").and_then(Json::as_object).cloned().unwrap_or_default(),
                malformed: block.text("malformed").map(str::to_owned),
                stage: stage.clone(),
            })
            .collect();
        self.call_keys.extend(self.calls.iter().map(|call| call_key(&call.model_id)));
        if let Some(turn) = &mut self.turn {
            turn.rounds += 1;
            turn.is_empty = self.calls.is_empty() && !says_something(message);
            let outcome = if stop == Some("length") { TurnOutcome::Length } else { TurnOutcome::Done };
            turn.answered = (self.calls.is_empty() && !turn.is_empty).then_some(outcome);
        }
    }

    fn apply_result(&mut self, message: &Object) {
        let id = message.text("toolCallId").unwrap_or_default();
        if let Some(at) = self.calls.iter().position(|call| call.model_id == id) {
            let call = self.calls.remove(at);
            self.apply_background(&call, message);
        }
        if let Some(identity) = message.get(OWN_KEY).and_then(from_json::<ResultOrigin>).and_then(|o| o.identity) {
            self.guard.push(&identity);
        }
    }

    /// Updates the background commands: the details of a result name a running one, and the details of a later check
    /// say how it ended.
    fn apply_background(&mut self, call: &RecordedCall, result: &Object) {
        let Some(details) = result.get("details").and_then(Json::as_object) else { return };
        if let Some(id) = details.text("background") {
            if let Some(command) = call.arguments.text("command") {
                self.background.insert(id.to_owned(), command.to_owned());
            }
        } else if let (Some(id), Some(_)) = (call.arguments.text("id"), details.get("exit")) {
            self.background.remove(id);
        }
    }

    fn apply_injected(&mut self, entry: &Entry) {
        let EntryBody::CustomMessage(injected) = entry.body() else { return };
        match injected.custom_type() {
            Some(NOTE_TYPE) if entry.fields().get("details").and_then(from_json::<StoppedNote>).is_some() => {
                self.background.clear();
            }
            Some(CONTEXT_TYPE) => {
                self.context = entry.fields().get("details").and_then(from_json);
            }
            Some(NOTE_TYPE) => {
                if let Some(turn) = &mut self.turn {
                    turn.was_nudged = true;
                    turn.is_empty = false;
                }
            }
            Some(_) | None => {}
        }
    }

    fn apply_request(&mut self, record: RequestRecord, at_ms: i64) {
        if let RequestRecord::Sent(sent) = &record {
            self.requests = self.requests.max(sent.n.0);
        }
        self.cache.apply(record, at_ms);
    }

    fn apply_own(&mut self, entry: &Entry) {
        let EntryBody::Custom(custom) = entry.body() else { return };
        match custom.custom_type() {
            Some(Frozen::TYPE) => self.frozen = Frozen::of(entry),
            Some(Asked::TYPE) => {
                if let Some(asked) = Asked::of(entry) {
                    self.set_stage(asked.call, RecordedStage::Asked(asked.facts));
                }
            }
            Some(Decided::TYPE) => {
                if let Some(decided) = Decided::of(entry) {
                    self.set_stage(decided.call, RecordedStage::Decided(Box::new(decided.decision)));
                }
            }
            Some(Started::TYPE) => {
                if let Some(Started { call, harmless }) = Started::of(entry) {
                    self.calls_started += 1;
                    self.set_stage(call, RecordedStage::Started { harmless, at_ms: entry.at_ms() });
                }
            }
            Some(RequestRecord::TYPE) => {
                if let Some(record) = RequestRecord::of(entry) {
                    if let RequestRecord::Ended(EndedRequest { n, usage: Some(usage), failure: None, .. }) = &record
                        && !self.cache.is_summary(*n)
                    {
                        self.count_context(usage);
                    }
                    self.apply_request(record, entry.at_ms().unwrap_or_default());
                }
            }
            Some(TaskEnded::TYPE) => {
                if let Some(ended) = TaskEnded::of(entry) {
                    self.wall_ms = self.wall_ms.saturating_add(ended.ms);
                    self.turn = None;
                    self.paused = None;
                }
            }
            Some(BudgetSet::TYPE) => self.limits = BudgetSet::of(entry).map(|set| set.limits).or(self.limits),
            Some(ModeSet::TYPE) => self.mode = ModeSet::of(entry).map_or(self.mode, |set| set.mode),
            Some(PauseRecord::TYPE) => {
                if let Some(record) = PauseRecord::of(entry) {
                    self.paused = record.why;
                    if record.why.is_none() {
                        self.guard.clear();
                    }
                }
            }
            Some(QueuedRecord::TYPE) => match QueuedRecord::of(entry) {
                Some(QueuedRecord::Queued { id, kind, content, origin }) => {
                    self.queue.push_back(QueuedMessage { kind, message: UserMessage { id, content, origin } });
                }
                Some(QueuedRecord::Withdrawn { id }) => self.queue.retain(|queued| queued.message.id != id),
                None => {}
            },
            Some(_) | None => {}
        }
    }

    fn set_stage(&mut self, id: CallId, stage: RecordedStage) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == id) {
            call.stage = stage;
        }
    }
}

impl RecordedCall {
    /// The call as an interrupted one, if it may have taken effect.
    pub(crate) fn interrupted(&self) -> Option<InterruptedCall> {
        let started_at_ms = match self.stage {
            RecordedStage::Started { at_ms, .. } => at_ms,
            RecordedStage::Foreign => None,
            RecordedStage::Wanted | RecordedStage::Asked(_) | RecordedStage::Decided(_) => return None,
        };
        let (tool, arguments) = (self.tool.clone(), self.arguments.clone());
        Some(InterruptedCall { call: self.id, tool, arguments, started_at_ms })
    }
}

/// The calls of an answer.
pub(crate) fn calls_of(message: &Object) -> impl Iterator<Item = &Object> {
    let blocks = message.get("content").and_then(Json::as_array).unwrap_or_default();
    blocks.iter().filter_map(Json::as_object).filter(|block| block.text("type") == Some("toolCall"))
}

/// Whether an answer has a text.
pub(crate) fn says_something(message: &Object) -> bool {
    let is_said = |text: &str| !text.trim_start().is_empty();
    match message.get("content") {
        Some(Json::String(text)) => is_said(text),
        Some(Json::Array(blocks)) => {
            let texts = blocks.iter().filter_map(Json::as_object).filter(|block| block.text("type") == Some("text"));
            texts.filter_map(|block| block.text("text")).any(is_said)
        }
        Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_)) | None => false,
    }
}

/// The content of a user's or a program's message as sent to the model; a message not from the user says so.
pub(crate) fn content_of(message: &UserMessage) -> Json {
    let remark = match &message.origin {
        MessageOrigin::Person => return message.content.clone(),
        MessageOrigin::Monitor { finding } => {
            format!("[From the monitor because of finding {finding}; this is not the user's word.]\n")
        }
        MessageOrigin::Program { name } => format!("[From the program `{name}`; this is not the user's word.]\n"),
    };
    match &message.content {
        Json::String(text) => Json::String(remark + text),
        Json::Array(blocks) => {
            let remark = Object::new().with("type", "text").with("text", remark);
            Json::Array([Json::Object(remark)].into_iter().chain(blocks.iter().cloned()).collect())
        }
        other @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_)) => other.clone(),
    }
}
