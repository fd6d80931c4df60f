//! The calls of an answer, from the model's request to the result.
//!
//! Every call is inspected first. Consecutive reads are then asked about and run in parallel; every other call runs
//! alone after the calls before it. The calls after it are then inspected again, since it may have changed what they
//! operate on. Results are written in the model's order. Each of the three entries `capture.asked`, `capture.decided`
//! and `capture.started` is in the file before the action it names happens.

use session_tree::{Json, NewEntry, Object};

use crate::{
    effect::{AskedPermission, CallRun, Effect, EngineActivity, RuntimeFrame},
    entries::{Asked, Decided, OWN_KEY, ResultOrigin, RuntimeEntry, Started, to_json},
    guard::{self, LoopVerdict},
    ids::CallId,
    input::{CallClass, CallDecision, CallFacts, CallOutput, CallVerdict, PauseReason, QueueKind, SessionMode},
    limits::{CALLS_PER_ANSWER, PARALLEL_READS},
    machine::EngineStep,
    recorded::RecordedCall,
    state::{Activity, Then},
};

/// The result sent to the model for a call that was waiting when a user message arrived.
const STEERED: &str = "Not run: a message from the user arrived first.";
/// The result sent to the model if the permission request was not answered in time.
const UNANSWERED: &str =
    "The permission request was not answered in time, so the call was not run. This is not a refusal.";

/// The calls of one answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallBatch {
    calls: Vec<LiveCall>,
}

#[derive(Debug, Clone, PartialEq)]
struct LiveCall {
    run: CallRun,
    /// The model's arguments if they were not a JSON object.
    malformed: Option<String>,
    stage: CallStage,
}

#[derive(Debug, Clone, PartialEq)]
enum CallStage {
    New,
    Inspecting,
    Inspected(CallFacts),
    /// The inspection failed; the results of earlier calls may change that.
    Faulty(String),
    /// `capture.asked` is being written.
    Asking(CallFacts),
    /// The permission request waits for a decision.
    Asked(CallFacts),
    /// `capture.decided` is being written.
    Deciding(CallFacts, Box<CallDecision>),
    /// `capture.started` is being written.
    Starting(CallFacts),
    Running(CallFacts),
    /// It has a result that is not being written yet.
    Finished(CallOutput),
    /// It was not run; the output has the reason.
    Refused(CallOutput),
    /// The result is being written.
    Writing,
    Done,
}

impl CallStage {
    /// Whether the call waits for a decision, a tool or the file.
    fn is_under_way(&self) -> bool {
        match self {
            Self::Asking(_) | Self::Asked(_) | Self::Deciding(..) | Self::Starting(_) | Self::Running(_) => true,
            Self::New
            | Self::Inspecting
            | Self::Inspected(_)
            | Self::Faulty(_)
            | Self::Finished(_)
            | Self::Refused(_)
            | Self::Writing
            | Self::Done => false,
        }
    }

    fn refuse(text: impl Into<String>) -> Self {
        Self::Refused(error(text))
    }
}

impl CallBatch {
    pub(crate) fn new(calls: &[RecordedCall]) -> Self {
        let live = |call: &RecordedCall| LiveCall {
            run: CallRun {
                call: call.id,
                model_id: call.model_id.clone(),
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
            },
            malformed: call.malformed.clone(),
            stage: CallStage::New,
        };
        Self { calls: calls.iter().map(live).collect() }
    }

    pub(crate) fn activity(&self) -> EngineActivity {
        let is_asked = |call: &LiveCall| matches!(call.stage, CallStage::Asking(_) | CallStage::Asked(_));
        let decides = self.calls.iter().any(is_asked);
        if decides { EngineActivity::Deciding } else { EngineActivity::Running }
    }

    /// Whether nothing is in progress, so that the next step is the machine's.
    fn is_quiet(&self) -> bool {
        let busy = |stage: &CallStage| {
            stage.is_under_way()
                || matches!(
                    stage,
                    CallStage::Inspecting | CallStage::Finished(_) | CallStage::Refused(_) | CallStage::Writing
                )
        };
        !self.calls.iter().any(|call| busy(&call.stage))
    }

    fn is_done(&self) -> bool {
        self.calls.iter().all(|call| call.stage == CallStage::Done)
    }

    fn find(&mut self, id: CallId) -> Option<&mut LiveCall> {
        self.calls.iter_mut().find(|call| call.run.call == id)
    }

    /// Ends everything: returns the effects that stop work in progress, and the results that had arrived.
    pub(crate) fn end(self) -> (Vec<Effect>, Vec<(CallId, CallOutput)>) {
        let (mut effects, mut results) = (Vec::new(), Vec::new());
        for call in self.calls {
            let id = call.run.call;
            match call.stage {
                CallStage::Asked(_) => effects.push(Effect::Withdraw(id)),
                CallStage::Running(_) => effects.push(Effect::Kill(id)),
                CallStage::Finished(result) | CallStage::Refused(result) => results.push((id, result)),
                CallStage::New
                | CallStage::Inspecting
                | CallStage::Inspected(_)
                | CallStage::Faulty(_)
                | CallStage::Asking(_)
                | CallStage::Deciding(..)
                | CallStage::Starting(_)
                | CallStage::Writing
                | CallStage::Done => {}
            }
        }
        (effects, results)
    }
}

pub(crate) fn error(text: impl Into<String>) -> CallOutput {
    CallOutput { content: vec![text_block(text)], is_error: true, details: None }
}

pub(crate) fn text_block(text: impl Into<String>) -> Json {
    Object::new().with("type", "text").with("text", text.into()).into()
}

impl EngineStep<'_> {
    fn batch(&mut self) -> Option<&mut CallBatch> {
        match &mut self.state.live.activity {
            Activity::Calls(batch) | Activity::Paused { calls: Some(batch), .. } => Some(batch),
            Activity::Idle
            | Activity::Starting(_)
            | Activity::Boundary
            | Activity::Preparing { .. }
            | Activity::Sending(_)
            | Activity::Answering(_)
            | Activity::Retrying { .. }
            | Activity::Slowed { .. }
            | Activity::Paused { calls: None, .. } => None,
        }
    }

    pub(crate) fn inspected(&mut self, id: CallId, facts: Result<CallFacts, String>) {
        let Some(call) = self.batch().and_then(|batch| batch.find(id)) else { return };
        if call.stage == CallStage::Inspecting {
            call.stage = match facts {
                Ok(facts) => CallStage::Inspected(facts),
                Err(text) => CallStage::Faulty(text),
            };
        }
    }

    pub(crate) fn decided(&mut self, id: CallId, decision: CallDecision) {
        let Some(call) = self.batch().and_then(|batch| batch.find(id)) else { return };
        if let CallStage::Asked(facts) = &call.stage {
            call.stage = CallStage::Deciding(facts.clone(), Box::new(decision.clone()));
            self.append(Decided { call: id, decision }.to_entry(), false, Then::Decided(id));
        }
    }

    pub(crate) fn returned(&mut self, id: CallId, result: CallOutput) {
        let Some(batch) = self.batch() else { return };
        let Some(index) = batch.calls.iter().position(|call| call.run.call == id) else { return };
        let (CallStage::Running(facts), behind) = (&batch.calls[index].stage, index + 1) else { return };
        let may_have_changed = !facts.kind.is_parallel();
        batch.calls[index].stage = CallStage::Finished(result);
        if may_have_changed {
            let stale = |call: &&mut LiveCall| matches!(call.stage, CallStage::Inspected(_) | CallStage::Faulty(_));
            for call in batch.calls[behind..].iter_mut().filter(stale) {
                call.stage = CallStage::New;
            }
        }
    }

    /// Asks for permission; called once `capture.asked` is in the file.
    pub(crate) fn ask(&mut self, id: CallId) {
        let mode = self.state.recorded.mode;
        let Some(call) = self.batch().and_then(|batch| batch.find(id)) else { return };
        if let CallStage::Asking(facts) = &call.stage {
            let asked = AskedPermission { call: call.run.clone(), facts: facts.clone(), mode };
            call.stage = CallStage::Asked(facts.clone());
            self.out.push(Effect::Ask(Box::new(asked)));
        }
    }

    /// Acts on a decision; called once `capture.decided` is in the file.
    pub(crate) fn act_on_decision(&mut self, id: CallId) {
        let limit = self.limit_of_calls();
        let Some(call) = self.batch().and_then(|batch| batch.find(id)) else { return };
        let CallStage::Deciding(facts, decision) = &call.stage else { return };
        let (facts, decision) = (facts.clone(), (**decision).clone());
        self.out.push(Effect::Tell(RuntimeFrame::CallDecided { call: id, decision: decision.clone() }));
        let Some(call) = self.batch().and_then(|batch| batch.find(id)) else { return };
        match decision.verdict {
            CallVerdict::Deny => call.stage = CallStage::refuse(denial(&decision)),
            CallVerdict::Unanswered => call.stage = CallStage::refuse(decision.reason.as_deref().unwrap_or(UNANSWERED)),
            CallVerdict::NoEffect => {
                let run = call.run.clone();
                call.stage = CallStage::Running(facts);
                self.out.push(Effect::RunWithoutEffect(run));
            }
            CallVerdict::Allow if facts.kind == CallClass::Question => {
                call.stage = match decision.answer {
                    Some(answer) => {
                        let content = vec![text_block(answer)];
                        CallStage::Finished(CallOutput { content, ..CallOutput::default() })
                    }
                    None => CallStage::refuse(UNANSWERED),
                };
            }
            CallVerdict::Allow if limit => {
                call.stage = CallStage::refuse("Not run: the session's limit of tool calls is reached.");
            }
            CallVerdict::Allow => {
                if let Some(arguments) = decision.arguments {
                    call.run.arguments = arguments;
                }
                let harmless = facts.kind.is_harmless();
                call.stage = CallStage::Starting(facts);
                self.append(Started { call: id, harmless }.to_entry(), !harmless, Then::Run(id));
            }
        }
    }

    /// Runs a call; called once `capture.started` is in the file.
    pub(crate) fn run(&mut self, id: CallId) {
        let Some(call) = self.batch().and_then(|batch| batch.find(id)) else { return };
        if let CallStage::Starting(facts) = &call.stage {
            let run = call.run.clone();
            call.stage = CallStage::Running(facts.clone());
            self.out.push(Effect::Tell(RuntimeFrame::CallStarted { call: id, tool: run.tool.clone() }));
            self.out.push(Effect::Run(run));
        }
    }

    /// Marks a call as done; called once its result is in the file.
    pub(crate) fn result_written(&mut self, id: CallId) {
        let Some(call) = self.batch().and_then(|batch| batch.find(id)) else { return };
        call.stage = CallStage::Done;
        match self.state.recorded.guard.verdict() {
            LoopVerdict::Pause => self.state.live.pause = Some(PauseReason::Loop),
            LoopVerdict::Wait(times, ms) => self.state.live.slow = Some((times, ms)),
            LoopVerdict::Fine | LoopVerdict::Note(_) | LoopVerdict::NoteResults { .. } => {}
        }
    }

    /// Advances every call as far as possible. Returns whether all have their results.
    pub(crate) fn drive_calls(&mut self) -> bool {
        let Activity::Calls(mut batch) = std::mem::replace(&mut self.state.live.activity, Activity::Boundary) else {
            return false;
        };
        self.begin_calls(&mut batch);
        self.write_result(&mut batch);
        let is_done = batch.is_done();
        self.state.live.activity = match self.state.live.pause {
            Some(why) if !is_done && batch.is_quiet() => self.paused(why, None, Some(batch)),
            Some(_) | None => Activity::Calls(batch),
        };
        is_done
    }

    fn begin_calls(&mut self, batch: &mut CallBatch) {
        let is_steered = self.state.recorded.queue.iter().any(|queued| queued.kind == QueueKind::Steer);
        let is_paused = self.state.live.pause.is_some();
        for (index, call) in batch.calls.iter_mut().enumerate().filter(|(_, call)| call.stage == CallStage::New) {
            call.stage = if index >= CALLS_PER_ANSWER {
                CallStage::refuse(format!("Not run: an answer may have at most {CALLS_PER_ANSWER} calls."))
            } else if let Some(text) = &call.malformed {
                let start: String = text.chars().take(200).collect();
                CallStage::Finished(error(format!("Not run: the arguments are not a JSON object: {start}")))
            } else if is_steered {
                CallStage::refuse(STEERED)
            } else if is_paused {
                CallStage::New
            } else {
                self.out.push(Effect::Inspect(call.run.clone()));
                CallStage::Inspecting
            };
        }
        if batch.calls.iter().any(|call| call.stage == CallStage::Inspecting) {
            return;
        }
        if is_steered {
            let waits = |call: &&mut LiveCall| matches!(call.stage, CallStage::Inspected(_) | CallStage::Faulty(_));
            for call in batch.calls.iter_mut().filter(waits) {
                call.stage = CallStage::refuse(STEERED);
            }
        }
        if is_paused {
            return;
        }
        let mut under_way = batch.calls.iter().filter(|call| call.stage.is_under_way()).count();
        let mut is_alone = under_way == 0;
        for call in &mut batch.calls {
            match &call.stage {
                CallStage::Done => continue,
                // Calls that need no tool do not block the others.
                CallStage::Finished(_) | CallStage::Refused(_) | CallStage::Writing => continue,
                CallStage::Faulty(text) => call.stage = CallStage::Finished(error(text.as_str())),
                CallStage::Inspected(facts) if facts.kind.is_parallel() => {
                    if under_way == PARALLEL_READS {
                        return;
                    }
                    let facts = facts.clone();
                    self.begin_call(call, facts);
                    under_way += 1;
                    is_alone = false;
                }
                CallStage::Inspected(facts) => {
                    if is_alone {
                        let facts = facts.clone();
                        self.begin_call(call, facts);
                        // A call denied by the mode is already finished; the next pass handles the calls after it.
                    }
                    return;
                }
                CallStage::Asking(facts)
                | CallStage::Asked(facts)
                | CallStage::Deciding(facts, _)
                | CallStage::Starting(facts)
                | CallStage::Running(facts) => {
                    if !facts.kind.is_parallel() {
                        return;
                    }
                }
                CallStage::New | CallStage::Inspecting => return,
            }
        }
    }

    /// Asks for permission, unless the mode denies it.
    fn begin_call(&mut self, call: &mut LiveCall, facts: CallFacts) {
        let mode = self.state.recorded.mode;
        let id = call.run.call;
        if mode == SessionMode::Plan && !facts.kind.is_harmless() {
            let reason = "the session is in the mode `plan`, in which nothing is changed";
            let decision = CallDecision {
                verdict: CallVerdict::Deny,
                by: "mode".to_owned(),
                rule: Some("plan".to_owned()),
                audit: None,
                reason: Some(reason.to_owned()),
                answer: None,
                arguments: None,
            };
            call.stage = CallStage::Deciding(facts, Box::new(decision.clone()));
            self.append(Decided { call: id, decision }.to_entry(), false, Then::Decided(id));
            return;
        }
        let asked = Asked {
            call: id,
            id: call.run.model_id.clone(),
            tool: call.run.tool.clone(),
            input: blake3::hash(call.run.arguments.to_text().as_bytes()).to_hex().to_string(),
            facts: facts.clone(),
            mode,
        };
        call.stage = CallStage::Asking(facts);
        self.append(asked.to_entry(), false, Then::Ask(id));
    }

    /// Writes the next result, in the model's order.
    fn write_result(&mut self, batch: &mut CallBatch) {
        let Some(call) = batch.calls.iter_mut().find(|call| call.stage != CallStage::Done) else { return };
        let (mut result, was_refused) = match &call.stage {
            CallStage::Finished(result) => (result.clone(), false),
            CallStage::Refused(result) => (result.clone(), true),
            CallStage::New
            | CallStage::Inspecting
            | CallStage::Inspected(_)
            | CallStage::Faulty(_)
            | CallStage::Asking(_)
            | CallStage::Asked(_)
            | CallStage::Deciding(..)
            | CallStage::Starting(_)
            | CallStage::Running(_)
            | CallStage::Writing
            | CallStage::Done => return,
        };
        let identity = guard::identity(&call.run.tool, &call.run.arguments, &result, was_refused);
        result.content.extend(guard::note(self.state.recorded.guard.verdict_with(&identity)));
        call.stage = CallStage::Writing;
        let run = call.run.clone();
        self.append_result(&run, result, Some(identity));
    }

    pub(crate) fn append_result(&mut self, run: &CallRun, result: CallOutput, identity: Option<String>) {
        let origin = ResultOrigin { call: run.call, identity };
        let message = Object::new()
            .with("role", "toolResult")
            .with("toolCallId", run.model_id.as_str())
            .with("toolName", run.tool.as_str())
            .with("content", result.content)
            .with_some("details", result.details)
            .with("isError", result.is_error)
            .with("timestamp", self.time.wall_ms)
            .with(OWN_KEY, to_json(&origin));
        self.out.push(Effect::Tell(RuntimeFrame::CallEnded { call: run.call, is_error: result.is_error }));
        self.append(NewEntry::Message(message), false, Then::ResultWritten(run.call));
    }
}

/// Why a call was denied, as one sentence: the stated reason and the rule.
fn denial(decision: &CallDecision) -> String {
    let reason = decision.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
    let rule = decision.rule.as_deref().map(|rule| format!("rule {rule}"));
    // The reason already begins with "denied".
    let by = reason.and_then(|reason| reason.strip_prefix("denied "));
    let why = match (by, reason, rule) {
        (Some(by), _, _) => format!(" {by}"),
        (None, Some(reason), Some(rule)) => format!(": {} ({rule})", reason.trim_end_matches('.')),
        (None, Some(reason), None) => format!(": {reason}"),
        (None, None, Some(rule)) => format!(": {rule}"),
        (None, None, None) => String::new(),
    };
    let end = if why.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    format!("Permission denied{why}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_is_one_sentence_with_its_rule() {
        let denied = |reason: Option<&str>, rule: Option<&str>| {
            denial(&CallDecision {
                verdict: CallVerdict::Deny,
                by: "policy".to_owned(),
                rule: rule.map(str::to_owned),
                audit: None,
                reason: reason.map(str::to_owned),
                answer: None,
                arguments: None,
            })
        };
        for (reason, rule, told) in [
            (Some("I push myself."), Some("no push"), "Permission denied: I push myself (rule no push)."),
            (Some("I push myself."), None, "Permission denied: I push myself."),
            (Some("not here"), None, "Permission denied: not here."),
            (Some("Why this?"), None, "Permission denied: Why this?"),
            (Some("denied by the user"), None, "Permission denied by the user."),
            (Some("denied by the user: leave it."), None, "Permission denied by the user: leave it."),
            (Some("denied, really"), None, "Permission denied: denied, really."),
            (Some(" "), Some("denials/wipe"), "Permission denied: rule denials/wipe."),
            (None, None, "Permission denied."),
        ] {
            assert_eq!(denied(reason, rule), told);
        }
    }
}
