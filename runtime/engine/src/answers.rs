//! Requests to the model and their answers.

use std::collections::BTreeSet;

use session_tree::{FailureKind, Json, NewEntry, Object};

use crate::{
    cache::{self, RequestDigest},
    compaction::CompactionCut,
    effect::{Effect, RequestPlan, RuntimeFrame},
    entries::{AnswerOrigin, EndedRequest, OWN_KEY, RequestRecord, RuntimeEntry, SentRequest, to_json},
    ids::{RequestNumber, call_key, other_id},
    input::{AnswerEnd, AnswerEvent, AnswerFailure, AnswerUsage, PauseReason, TurnOutcome},
    machine::EngineStep,
    retry::{self, RetryDecision},
    state::{Activity, AnswerInProgress, Then},
    window,
};

impl EngineStep<'_> {
    /// Starts the encoding of the next request.
    pub(crate) fn prepare(&mut self, retries: u32) {
        self.state.live.requests = self.state.live.requests.max(self.state.recorded.requests) + 1;
        let request = RequestNumber(self.state.live.requests);
        self.state.live.activity = Activity::Preparing { request, retries };
        let (model, long_system_cache) = (self.state.live.model.clone(), self.state.live.long_system_cache);
        let purpose = self.purpose();
        self.out.push(Effect::Prepare(RequestPlan { request, model, long_system_cache, purpose }));
    }

    /// Records the request that is about to be sent.
    pub(crate) fn prepared(&mut self, request: RequestNumber, digest: &RequestDigest, cut: Option<Box<CompactionCut>>) {
        let Activity::Preparing { request: expected, retries } = self.state.live.activity else { return };
        if request != expected {
            return;
        }
        let live = &self.state.live;
        let key = format!("{}/{}", live.model.provider, live.model.id);
        let history = &self.state.recorded.cache;
        let forecast = cache::forecast(history, &live.model.cache, &key, digest, &live.chain, self.time.wall_ms);
        if self.state.live.compaction.is_some() && !self.take_cut(cut, &forecast.prediction) {
            return;
        }
        let live = &self.state.live;
        let sent = SentRequest {
            n: request,
            retries,
            provider: live.model.provider.clone(),
            model: live.model.id.clone(),
            bytes: digest.bytes(),
            blocks: digest.blocks.len(),
            chain: digest.points(),
            predicted: forecast.prediction,
            is_summary: live.compaction.is_some(),
        };
        self.state.live.activity = Activity::Sending(Box::new(AnswerInProgress {
            request,
            retries,
            chain: digest.chain(),
            forecast,
            sent_ms: self.time.mono_ms,
            first_ms: None,
            model: None,
            content: Vec::new(),
            text: String::new(),
            usage: None,
        }));
        self.append(RequestRecord::Sent(sent).to_entry(), false, Then::Send(request));
    }

    /// Sends the request; called once its entry is in the file.
    pub(crate) fn send(&mut self, request: RequestNumber) {
        let Activity::Sending(answer) = &mut self.state.live.activity else { return };
        if answer.request != request {
            return;
        }
        let mut answer = answer.clone();
        answer.sent_ms = self.time.mono_ms;
        self.state.live.chain.clone_from(&answer.chain);
        self.state.live.activity = Activity::Answering(answer);
        self.out.push(Effect::Send(request));
    }

    pub(crate) fn streamed(&mut self, request: RequestNumber, event: AnswerEvent) {
        let now_ms = self.time.mono_ms;
        let answer = match &mut self.state.live.activity {
            Activity::Answering(answer) if answer.request == request => answer,
            Activity::Preparing { request: expected, retries } if *expected == request => {
                let retries = *retries;
                if let AnswerEvent::Failed(failure) = event {
                    self.after_failure(request, retries, failure);
                }
                return;
            }
            Activity::Idle
            | Activity::Starting(_)
            | Activity::Boundary
            | Activity::Preparing { .. }
            | Activity::Sending(_)
            | Activity::Answering(_)
            | Activity::Retrying { .. }
            | Activity::Slowed { .. }
            | Activity::Calls(_)
            | Activity::Paused { .. } => return,
        };
        let waited_ms = now_ms.saturating_sub(answer.sent_ms);
        let is_summary = self.state.live.compaction.is_some();
        match event {
            AnswerEvent::Began { model } => answer.model = Some(model),
            AnswerEvent::Text(text) => {
                answer.first_ms.get_or_insert(waited_ms);
                answer.text.push_str(&text);
                if !is_summary {
                    self.out.push(Effect::Tell(RuntimeFrame::Text(text)));
                }
            }
            AnswerEvent::Thinking(_) | AnswerEvent::CallOpened { .. } if is_summary => {
                answer.first_ms.get_or_insert(waited_ms);
            }
            AnswerEvent::Thinking(text) => {
                answer.first_ms.get_or_insert(waited_ms);
                self.out.push(Effect::Tell(RuntimeFrame::Thinking(text)));
            }
            AnswerEvent::CallOpened { tool } => {
                answer.first_ms.get_or_insert(waited_ms);
                self.out.push(Effect::Tell(RuntimeFrame::CallOpened { tool }));
            }
            AnswerEvent::Block(mut block) => {
                answer.first_ms.get_or_insert(waited_ms);
                if block.text("type") == Some("text") {
                    answer.text.clear();
                }
                tell_apart(&mut block, &answer.content, &self.state.recorded.call_keys, answer.request);
                answer.content.push(Json::Object(block.clone()));
                if !is_summary {
                    self.out.push(Effect::Tell(RuntimeFrame::Block(block)));
                }
            }
            AnswerEvent::Usage(usage) => answer.usage = Some(usage),
            AnswerEvent::Ended(end) => self.answer_ended(end),
            AnswerEvent::Failed(failure) => self.answer_failed(failure),
        }
    }

    fn take_answer(&mut self) -> Option<AnswerInProgress> {
        let is_answering = matches!(self.state.live.activity, Activity::Answering(_));
        let taken = is_answering.then(|| std::mem::replace(&mut self.state.live.activity, Activity::Boundary));
        if let Some(Activity::Answering(answer)) = taken { Some(*answer) } else { None }
    }

    fn answer_ended(&mut self, end: AnswerEnd) {
        let Some(mut answer) = self.take_answer() else { return };
        if self.state.live.compaction.is_some() {
            return self.summary_ended(answer, end);
        }
        if end == AnswerEnd::Refused {
            let message = FailureKind::Refused.in_words();
            self.append_broken(answer, "error", message, Some(FailureKind::Refused));
            return self.end_turn(TurnOutcome::Refused, Some(message.to_owned()));
        }
        let has_calls = answer.content.iter().any(is_call);
        let stop = match end {
            // Some providers report `stop` although the answer has calls, or the reverse.
            AnswerEnd::Stop | AnswerEnd::ToolUse if has_calls => "toolUse",
            AnswerEnd::Stop | AnswerEnd::ToolUse | AnswerEnd::Refused => "stop",
            AnswerEnd::Length => "length",
        };
        let content = std::mem::take(&mut answer.content);
        self.tell_context(answer.usage.unwrap_or_default());
        let message = self.answer_message(&answer, content, stop, None);
        self.append(NewEntry::Message(message), false, Then::Nothing);
        self.append_ended(&answer, None, None);
    }

    fn answer_failed(&mut self, failure: AnswerFailure) {
        let Some(answer) = self.take_answer() else { return };
        let (request, retries) = (answer.request, answer.retries);
        if self.state.live.compaction.is_some() {
            self.append_ended(&answer, Some(failure.kind), Some(&failure.message));
            return self.after_failure(request, retries, failure);
        }
        self.append_broken(answer, "error", &failure.message, Some(failure.kind));
        self.after_failure(request, retries, failure);
    }

    fn after_failure(&mut self, request: RequestNumber, retries: u32, failure: AnswerFailure) {
        let now_ms = self.time.mono_ms;
        let setup = &self.state.setup;
        match retry::decide(&failure, &setup.session, request, retries, setup.turns.retries) {
            RetryDecision::Repeat(wait_ms) => {
                self.state.live.activity = Activity::Retrying {
                    until_ms: now_ms.saturating_add(wait_ms),
                    until_wall_ms: self.time.wall_ms.saturating_add_unsigned(wait_ms),
                    retries: retries + 1,
                };
            }
            RetryDecision::Pause(wait_ms) => {
                let until_ms = now_ms.saturating_add(wait_ms);
                let is_quota = matches!(failure.kind, FailureKind::Quota | FailureKind::Rate);
                let why = if is_quota { PauseReason::Quota } else { PauseReason::Unavailable };
                self.state.live.activity = self.paused(why, Some(until_ms), None);
            }
            RetryDecision::GiveUp if self.state.live.compaction.is_some() => self.summary_failed(failure),
            // Once: a conversation that was just compacted would not get shorter.
            RetryDecision::GiveUp
                if failure.kind == FailureKind::TooLong && self.may_compact() && !self.state.recorded.is_unproven =>
            {
                self.compact_too_long(failure.message);
            }
            RetryDecision::GiveUp => {
                let outcome =
                    if failure.kind == FailureKind::Refused { TurnOutcome::Refused } else { TurnOutcome::Failed };
                let error = match failure.kind {
                    FailureKind::TooLong => window::too_long(&failure.message, self.state.live.model.window),
                    FailureKind::Overloaded
                    | FailureKind::Rate
                    | FailureKind::Quota
                    | FailureKind::Auth
                    | FailureKind::NoModel
                    | FailureKind::BadRequest
                    | FailureKind::Refused
                    | FailureKind::Network
                    | FailureKind::Stalled
                    | FailureKind::Unknown => failure.message,
                };
                self.end_turn(outcome, Some(error));
            }
        }
    }

    /// Reports how full the context is, once per share.
    fn tell_context(&mut self, usage: AnswerUsage) {
        let Some(window) = self.state.live.model.window else { return };
        let tokens = usage.prompt_tokens().saturating_add(usage.output);
        let reached = window::shares_reached(tokens, window);
        if reached > self.state.live.context_told {
            self.state.live.context_told = reached;
            self.out.push(Effect::Tell(RuntimeFrame::ContextFills { tokens, window }));
        }
    }

    /// Appends an incomplete answer and drops its calls. [`wire`](crate::wire) describes which parts are sent.
    pub(crate) fn append_broken(
        &mut self,
        mut answer: AnswerInProgress,
        stop: &str,
        error: &str,
        failure: Option<FailureKind>,
    ) {
        if self.state.live.compaction.is_some() {
            // Nobody reads half a summary.
            return self.append_ended(&answer, failure, Some(error));
        }
        let mut content = std::mem::take(&mut answer.content);
        content.retain(|block| !is_call(block));
        if !answer.text.is_empty() {
            content.push(crate::calls::text_block(std::mem::take(&mut answer.text)));
        }
        if !content.is_empty() {
            let message = self.answer_message(&answer, content, stop, Some(error));
            self.append(NewEntry::Message(message), false, Then::Nothing);
        }
        self.append_ended(&answer, failure, Some(error));
    }

    fn answer_message(&self, answer: &AnswerInProgress, content: Vec<Json>, stop: &str, error: Option<&str>) -> Object {
        let model = &self.state.live.model;
        let other = answer.model.as_deref().filter(|answered| *answered != model.id);
        Object::new()
            .with("role", "assistant")
            .with("content", content)
            .with("api", model.api.as_str())
            .with("provider", model.provider.as_str())
            .with("model", model.id.as_str())
            .with_some("responseModel", other)
            .with("usage", answer.usage.unwrap_or_default().of_message().to_object())
            .with("stopReason", stop)
            .with_some("errorMessage", error)
            .with("timestamp", self.time.wall_ms)
            .with(OWN_KEY, to_json(&AnswerOrigin { request: answer.request }))
    }

    pub(crate) fn append_ended(
        &mut self,
        answer: &AnswerInProgress,
        failure: Option<FailureKind>,
        error: Option<&str>,
    ) {
        let cause = answer.usage.filter(|_| failure.is_none()).and_then(|usage| answer.forecast.cause(&usage));
        let ended = EndedRequest {
            n: answer.request,
            first_ms: answer.first_ms,
            total_ms: self.time.mono_ms.saturating_sub(answer.sent_ms),
            usage: answer.usage,
            cause: cause.clone(),
            failure,
        };
        self.out.push(Effect::Tell(RuntimeFrame::RequestEnded {
            request: answer.request,
            usage: answer.usage,
            predicted: answer.forecast.prediction,
            cause,
            failure,
            error: error.map(str::to_owned),
        }));
        self.append(RequestRecord::Ended(ended).to_entry(), false, Then::Nothing);
    }
}

pub(crate) fn is_call(block: &Json) -> bool {
    block.as_object().is_some_and(|block| block.text("type") == Some("toolCall"))
}

/// Changes the id of a call if an earlier call of the answer or the session has the same id: results are paired with
/// calls by id, and vendors refuse duplicate ids.
fn tell_apart(block: &mut Object, before: &[Json], known: &BTreeSet<String>, request: RequestNumber) {
    if block.text("type") != Some("toolCall") {
        return;
    }
    let id = block.text("id").unwrap_or_default();
    let is_taken = |id: &str| {
        let key = call_key(id);
        let mut of_answer = before.iter().filter_map(Json::as_object).filter_map(|call| call.text("id"));
        known.contains(&key) || of_answer.any(|other| call_key(other) == key)
    };
    if id.is_empty() || is_taken(id) {
        let id = other_id(format!("call_{request}_{}", before.len()), is_taken);
        // The block in the vendor's form still has the old id.
        block.remove("raw");
        block.set("id", id);
    }
}
