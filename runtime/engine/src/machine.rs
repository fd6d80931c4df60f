//! [`step`]: applies one event and returns the effects.
//!
//! A step applies its input and then advances as far as possible ([`EngineStep::advance`]). An effect with an external
//! consequence is attached to an entry ([`Then`]) and is returned once the entry is in the file.

use std::collections::BTreeMap;

use session_tree::{Entry, NewEntry};

use crate::{
    calls::CallBatch,
    effect::{Append, Effect, QueueOutcome, RuntimeFrame},
    entries::{BudgetSet, ModeSet, PauseRecord, QueuedRecord, Reopened, RuntimeEntry},
    ids::{CallId, Ticket},
    input::{
        EngineInput, ModeGrant, ModelChoice, PauseReason, QueueKind, SessionMode, SpendLimits, StepTime, TurnOutcome,
        UserMessage,
    },
    limits::DISK_RETRY_MS,
    queue,
    recorded::RecordedCall,
    state::{Activity, DiskState, Ending, EngineState, Then, TurnClock, Unwritten},
};

/// One step of the machine.
pub(crate) struct EngineStep<'a> {
    pub(crate) state: &'a mut EngineState,
    pub(crate) time: StepTime,
    pub(crate) out: Vec<Effect>,
}

/// Applies one input and returns the effects to perform.
pub fn step(state: &mut EngineState, time: StepTime, input: EngineInput) -> Vec<Effect> {
    let mut step = EngineStep { state, time, out: Vec::new() };
    step.take_in(input);
    step.advance();
    step.tell_activity();
    step.set_alarm();
    step.out
}

impl EngineStep<'_> {
    fn take_in(&mut self, input: EngineInput) {
        if !self.state.live.is_open && !matches!(input, EngineInput::Restored { .. } | EngineInput::Facts(_)) {
            return self.refuse("input", "the session is not open yet");
        }
        if let DiskState::Lost(why) = &self.state.live.disk {
            let why = why.clone();
            return self.refuse_lost(input, why);
        }
        match input {
            EngineInput::Restored { changed } => self.restored(changed),
            EngineInput::Facts(facts) => self.state.live.facts = facts,
            EngineInput::Prompt(message) => self.prompt(message),
            EngineInput::Queue { kind, message } => self.queue(kind, message),
            EngineInput::Unqueue { id } => self.unqueue(id.as_deref()),
            EngineInput::Abort => self.abort_now(TurnOutcome::Aborted),
            EngineInput::Stop => self.abort_now(TurnOutcome::Interrupted),
            EngineInput::Pause => self.pause(),
            EngineInput::Resume => self.resume(),
            EngineInput::SetModel(model) => self.set_model(model),
            EngineInput::SetMode { mode, grant } => self.set_mode(mode, grant),
            EngineInput::SetLimits { limits, by } => self.set_limits(limits, by),
            EngineInput::SetTurns(turns) => self.state.setup.turns = turns,
            EngineInput::SetName(name) => self.append(NewEntry::SessionInfo { name }, false, Then::Nothing),
            EngineInput::Compact { focus } => self.compact(focus),
            EngineInput::Undo => self.refuse("undo", "undo is not implemented"),
            EngineInput::Redo => self.refuse("redo", "redo is not implemented"),
            EngineInput::Appended { ticket, entry } => self.appended(ticket, &entry),
            EngineInput::AppendFailed { ticket, error, may_pass: true } => self.append_failed(ticket, error),
            EngineInput::AppendFailed { ticket, error, may_pass: false } => self.file_lost(ticket, error),
            EngineInput::Prepared { request, digest, cut } => self.prepared(request, &digest, cut),
            EngineInput::Streamed { request, event } => self.streamed(request, event),
            EngineInput::Inspected { call, facts } => self.inspected(call, facts),
            EngineInput::Decided { call, decision } => self.decided(call, decision),
            EngineInput::Returned { call, result } => self.returned(call, result),
            EngineInput::Ticked => self.ticked(),
        }
    }

    pub(crate) fn refuse(&mut self, what: &'static str, reason: impl Into<String>) {
        self.out.push(Effect::Tell(RuntimeFrame::Refused { what, reason: reason.into() }));
    }

    fn tell_message(&mut self, id: impl Into<String>, outcome: QueueOutcome) {
        self.out.push(Effect::Tell(RuntimeFrame::Message { id: id.into(), outcome }));
    }

    // Opening

    fn restored(&mut self, changed: BTreeMap<CallId, Vec<String>>) {
        if std::mem::replace(&mut self.state.live.is_open, true) {
            return self.refuse("open", "the session is already open");
        }
        let recorded = &self.state.recorded;
        // The answer was complete; only the end of the turn is missing.
        let outcome = recorded.turn.as_ref().and_then(|turn| turn.answered).filter(|_| recorded.calls.is_empty());
        let mut ending = Ending::new(outcome.unwrap_or(TurnOutcome::Interrupted), None);
        ending.changed = changed;
        let took_ms = recorded.turn.as_ref().map_or(0, crate::recorded::RecordedTurn::span_ms);
        let is_unfinished = recorded.is_unfinished();
        let is_interrupted = |call: &&RecordedCall| call.interrupted().is_some();
        let ids = |calls: Vec<&RecordedCall>| calls.into_iter().map(|call| call.id).collect();
        let (interrupted, not_run) = recorded.calls.iter().partition(is_interrupted);
        let reopened = Reopened {
            version: self.state.setup.version.clone(),
            not_run: ids(not_run),
            interrupted: ids(interrupted),
        };
        let mode = recorded.mode;
        self.state.live.ending = ending;
        self.state.live.clock = TurnClock { before_ms: took_ms, since_ms: None };
        if is_unfinished {
            self.append(reopened.to_entry(), false, Then::Nothing);
        }
        if mode != SessionMode::default() {
            // A grant ends with the process it was given to.
            self.append(ModeSet { mode: SessionMode::default(), grant: None }.to_entry(), false, Then::Nothing);
        }
    }

    // Requests of users and programs

    fn prompt(&mut self, message: UserMessage) {
        let busy = match &self.state.live.activity {
            Activity::Idle => None,
            _ if self.state.live.compaction.is_some() && !self.state.recorded.is_unfinished() => {
                Some("the conversation is being compacted: queue the message, or abort the compaction")
            }
            Activity::Paused { .. } => Some("the turn is paused: resume or abort it, or queue the message"),
            Activity::Starting(_)
            | Activity::Boundary
            | Activity::Preparing { .. }
            | Activity::Sending(_)
            | Activity::Answering(_)
            | Activity::Retrying { .. }
            | Activity::Slowed { .. }
            | Activity::Calls(_) => Some("a turn is running: queue the message, or abort the turn"),
        };
        match busy.map(str::to_owned).or_else(|| queue::refuse_prompt(&message)) {
            Some(reason) => self.tell_message(message.id, QueueOutcome::Refused { reason }),
            None => self.state.live.activity = Activity::Starting(Box::new(message)),
        }
    }

    fn queue(&mut self, kind: QueueKind, message: UserMessage) {
        if self.state.live.activity == Activity::Idle {
            return self.prompt(message);
        }
        let is_waiting = |then: &Then| matches!(then, Then::Queued(_));
        let waiting = self.state.live.unwritten.iter().filter(|unwritten| is_waiting(&unwritten.then)).count();
        if let Some(reason) = queue::refuse_queued(&message, &self.state.recorded, waiting) {
            return self.tell_message(message.id, QueueOutcome::Refused { reason });
        }
        if kind == QueueKind::Steer && matches!(self.state.live.activity, Activity::Slowed { .. }) {
            // A user message is not delayed.
            self.state.live.activity = Activity::Boundary;
        }
        let UserMessage { id, content, origin } = message;
        let record = QueuedRecord::Queued { id: id.clone(), kind, content, origin };
        self.append(record.to_entry(), false, Then::Queued(id));
    }

    fn unqueue(&mut self, id: Option<&str>) {
        let queued = self.state.recorded.queue.iter().map(|queued| queued.message.id.clone());
        let found: Vec<String> = queued.filter(|queued| id.is_none_or(|id| id == queued)).collect();
        if let Some(id) = id.filter(|_| found.is_empty()) {
            return self.refuse("unqueue", format!("no queued message `{id}`"));
        }
        for id in found {
            self.append(QueuedRecord::Withdrawn { id: id.clone() }.to_entry(), false, Then::Withdrawn(id));
        }
    }

    fn pause(&mut self) {
        match self.state.live.activity {
            _ if self.state.live.compaction.is_some() && !self.state.recorded.is_unfinished() => {
                self.refuse("pause", "no turn is running");
            }
            Activity::Idle => self.refuse("pause", "no turn is running"),
            Activity::Paused { .. } => self.refuse("pause", "the turn is already paused"),
            Activity::Starting(_)
            | Activity::Boundary
            | Activity::Preparing { .. }
            | Activity::Sending(_)
            | Activity::Answering(_)
            | Activity::Calls(_) => self.state.live.pause = Some(PauseReason::Requested),
            Activity::Retrying { .. } | Activity::Slowed { .. } => {
                self.state.live.pause = Some(PauseReason::Requested);
                self.state.live.activity = Activity::Boundary;
            }
        }
    }

    fn resume(&mut self) {
        if self.state.live.activity == Activity::Idle && self.state.live.is_held {
            self.state.live.is_held = false;
            return;
        }
        let calls = match &mut self.state.live.activity {
            Activity::Paused { calls, .. } => calls.take(),
            Activity::Idle
            | Activity::Starting(_)
            | Activity::Boundary
            | Activity::Preparing { .. }
            | Activity::Sending(_)
            | Activity::Answering(_)
            | Activity::Retrying { .. }
            | Activity::Slowed { .. }
            | Activity::Calls(_) => {
                if self.state.live.pause.take().is_none() {
                    self.refuse("resume", "the turn is not paused");
                }
                return;
            }
        };
        self.state.live.activity = calls.map_or(Activity::Boundary, Activity::Calls);
        if self.state.recorded.turn.is_some() {
            self.state.live.clock.start(self.time.mono_ms);
        }
        self.append(PauseRecord { why: None }.to_entry(), false, Then::Nothing);
    }

    fn set_model(&mut self, model: ModelChoice) {
        if self.state.live.model.window != model.window {
            self.state.live.context_told = 0;
        }
        self.state.live.model = model;
    }

    fn set_mode(&mut self, mode: SessionMode, grant: ModeGrant) {
        if mode == SessionMode::Auto {
            return self.refuse("set_mode", "the mode `auto` needs a sandbox, which capture does not have yet");
        }
        if grant.by.trim().is_empty() {
            return self.refuse("set_mode", "only a person can grant a mode");
        }
        self.append(ModeSet { mode, grant: Some(grant) }.to_entry(), false, Then::Nothing);
    }

    fn set_limits(&mut self, limits: SpendLimits, by: String) {
        self.append(BudgetSet { limits, by }.to_entry(), false, Then::Nothing);
    }

    /// Ends the turn and reports its end, even if it cannot be written now.
    fn abort_now(&mut self, outcome: TurnOutcome) {
        self.abort(outcome);
        if let DiskState::RetryAt { error, .. } | DiskState::Retrying { error } = &self.state.live.disk {
            let error = format!("{error}; the session lacks the entries that could not be written");
            self.tell_unwritten_end(outcome, error);
        }
    }

    /// Reports the end of a turn whose entry is not in the file. It is reported again if the entry gets written.
    fn tell_unwritten_end(&mut self, outcome: TurnOutcome, error: String) {
        if std::mem::take(&mut self.state.live.is_end_due) {
            self.out.push(Effect::Tell(RuntimeFrame::TurnEnded { outcome, error: Some(error) }));
        }
    }

    fn abort(&mut self, outcome: TurnOutcome) {
        let activity = std::mem::replace(&mut self.state.live.activity, Activity::Idle);
        self.state.live.pause = None;
        self.state.live.is_held = true;
        let mut ending = Ending::new(outcome, None);
        match activity {
            Activity::Idle => return self.drop_compaction("it was aborted"),
            Activity::Starting(message) => {
                self.drop_compaction("it was aborted");
                // The end of the previous turn may still be unwritten, so its outcome stays. A queued message stays
                // queued.
                if !self.state.recorded.queue.iter().any(|queued| queued.message.id == message.id) {
                    let reason = "aborted before it was sent".to_owned();
                    self.tell_message(message.id, QueueOutcome::Refused { reason });
                }
                return;
            }
            Activity::Boundary | Activity::Retrying { .. } | Activity::Slowed { .. } => {}
            Activity::Preparing { request, .. } => self.out.push(Effect::Cancel(request)),
            Activity::Sending(answer) | Activity::Answering(answer) => {
                self.out.push(Effect::Cancel(answer.request));
                let why = if outcome == TurnOutcome::Aborted { "aborted" } else { crate::wire::STOPPED };
                self.append_broken(*answer, "aborted", why, None);
            }
            Activity::Calls(batch) | Activity::Paused { calls: Some(batch), .. } => {
                let (effects, results) = batch.end();
                self.out.extend(effects);
                ending.results = results.into_iter().collect();
            }
            Activity::Paused { calls: None, .. } => {}
        }
        self.drop_compaction("it was aborted");
        self.state.live.ending = ending;
        self.state.live.clock.stop(self.time.mono_ms);
    }

    // The file

    pub(crate) fn append(&mut self, entry: NewEntry, sync: bool, then: Then) {
        self.state.live.tickets += 1;
        let ticket = Ticket(self.state.live.tickets);
        // After a failure, all entries wait for the next attempt.
        if !matches!(self.state.live.disk, DiskState::RetryAt { .. } | DiskState::Lost(_)) {
            self.out.push(Effect::Append(Append { ticket, entry: entry.clone(), sync }));
        }
        self.state.live.unwritten.push_back(Unwritten { ticket, entry, sync, then });
    }

    fn appended(&mut self, ticket: Ticket, entry: &Entry) {
        let Some(written) = self.state.live.unwritten.pop_front_if(|unwritten| unwritten.ticket == ticket) else {
            return self.refuse("appended", format!("entry {} was not next", ticket.0));
        };
        self.state.recorded.apply(entry);
        if self.state.live.disk != DiskState::Fine && self.state.live.unwritten.is_empty() {
            self.state.live.disk = DiskState::Fine;
            self.out.push(Effect::Tell(RuntimeFrame::DiskTrouble { error: None }));
        }
        match written.then {
            Then::Nothing => {}
            Then::Landed(id) => {
                let entry = entry.id().unwrap_or_default().to_owned();
                self.tell_message(id, QueueOutcome::Landed { entry });
            }
            Then::Queued(id) => self.tell_message(id, QueueOutcome::Queued),
            Then::Withdrawn(id) => self.tell_message(id, QueueOutcome::Withdrawn),
            Then::Send(request) => self.send(request),
            Then::Ask(call) => self.ask(call),
            Then::Decided(call) => self.act_on_decision(call),
            Then::Run(call) => self.run(call),
            Then::ResultWritten(call) => self.result_written(call),
            Then::TurnEnded(outcome, error) => {
                self.state.live.is_end_due = false;
                self.out.push(Effect::Tell(RuntimeFrame::TurnEnded { outcome, error }));
            }
            Then::Compacted(reason, tokens_before, summary_tokens) => {
                self.out.push(Effect::Tell(RuntimeFrame::Compacted { reason, tokens_before, summary_tokens }));
            }
        }
    }

    fn append_failed(&mut self, ticket: Ticket, error: String) {
        if self.state.live.unwritten.iter().any(|unwritten| unwritten.ticket == ticket) {
            let at_ms = self.time.mono_ms + DISK_RETRY_MS;
            self.state.live.disk = DiskState::RetryAt { at_ms, error: error.clone() };
            self.out.push(Effect::Tell(RuntimeFrame::DiskTrouble { error: Some(error) }));
        }
    }

    /// Ends everything: further events could not be recorded, and the next process would not know of them.
    fn file_lost(&mut self, ticket: Ticket, error: String) {
        if !self.state.live.unwritten.iter().any(|unwritten| unwritten.ticket == ticket) {
            return;
        }
        self.state.live.disk = DiskState::Lost(error.clone());
        self.abort(TurnOutcome::Failed);
        self.out.push(Effect::Tell(RuntimeFrame::FileLost { error: error.clone() }));
        self.tell_unwritten_end(TurnOutcome::Failed, error.clone());
        for unwritten in std::mem::take(&mut self.state.live.unwritten) {
            if let Then::Landed(id) | Then::Queued(id) = unwritten.then {
                self.tell_message(id, QueueOutcome::Refused { reason: error.clone() });
            }
        }
    }

    /// Refuses requests to a session without a file. Late reports about work that was ended are ignored.
    fn refuse_lost(&mut self, input: EngineInput, why: String) {
        match input {
            EngineInput::Prompt(message) | EngineInput::Queue { message, .. } => {
                self.tell_message(message.id, QueueOutcome::Refused { reason: why });
            }
            EngineInput::Unqueue { .. } => self.refuse("unqueue", why),
            EngineInput::Pause => self.refuse("pause", why),
            EngineInput::Resume => self.refuse("resume", why),
            EngineInput::SetModel(_) => self.refuse("set_model", why),
            EngineInput::SetMode { .. } => self.refuse("set_mode", why),
            EngineInput::SetLimits { .. } => self.refuse("set_limits", why),
            EngineInput::SetName(_) => self.refuse("set_name", why),
            EngineInput::Compact { .. } => self.refuse("compact", why),
            EngineInput::Undo => self.refuse("undo", why),
            EngineInput::Redo => self.refuse("redo", why),
            EngineInput::Restored { .. }
            | EngineInput::Facts(_)
            | EngineInput::Abort
            | EngineInput::Stop
            | EngineInput::SetTurns(_)
            | EngineInput::Appended { .. }
            | EngineInput::AppendFailed { .. }
            | EngineInput::Prepared { .. }
            | EngineInput::Streamed { .. }
            | EngineInput::Inspected { .. }
            | EngineInput::Decided { .. }
            | EngineInput::Returned { .. }
            | EngineInput::Ticked => {}
        }
    }

    // Time

    fn ticked(&mut self) {
        let now_ms = self.time.mono_ms;
        if let DiskState::RetryAt { at_ms, error } = &self.state.live.disk
            && *at_ms <= now_ms
        {
            self.state.live.disk = DiskState::Retrying { error: error.clone() };
            let again = self.state.live.unwritten.iter();
            let again = again.map(|u| Append { ticket: u.ticket, entry: u.entry.clone(), sync: u.sync });
            self.out.extend(again.map(Effect::Append));
        }
        match self.state.live.activity {
            Activity::Retrying { until_ms, retries, .. } if until_ms <= now_ms => self.prepare(retries),
            Activity::Slowed { until_ms, .. } if until_ms <= now_ms || self.is_out_of_time() => {
                self.state.live.activity = Activity::Boundary;
            }
            Activity::Paused { until_ms: Some(until_ms), .. } if until_ms <= now_ms => self.resume(),
            Activity::Preparing { .. } | Activity::Sending(_) | Activity::Answering(_) if self.is_out_of_time() => {
                self.drop_request();
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
            | Activity::Paused { .. } => {}
        }
    }

    /// Ends a request because the time limit was reached.
    fn drop_request(&mut self) {
        let answer = match &self.state.live.activity {
            Activity::Preparing { request, .. } => {
                self.out.push(Effect::Cancel(*request));
                None
            }
            Activity::Sending(answer) | Activity::Answering(answer) => Some((**answer).clone()),
            Activity::Idle
            | Activity::Starting(_)
            | Activity::Boundary
            | Activity::Retrying { .. }
            | Activity::Slowed { .. }
            | Activity::Calls(_)
            | Activity::Paused { .. } => return,
        };
        self.state.live.activity = Activity::Boundary;
        if let Some(answer) = answer {
            self.out.push(Effect::Cancel(answer.request));
            self.append_broken(answer, "aborted", crate::wire::OUT_OF_TIME, None);
        }
        self.drop_compaction("the time limit was reached");
    }

    fn set_alarm(&mut self) {
        let live = &self.state.live;
        let of_activity = match &live.activity {
            Activity::Retrying { until_ms, .. } => Some(*until_ms),
            Activity::Slowed { until_ms, .. } => self.time_is_up_at_ms().into_iter().chain([*until_ms]).min(),
            Activity::Paused { until_ms, .. } => *until_ms,
            Activity::Idle => None,
            Activity::Starting(_)
            | Activity::Boundary
            | Activity::Preparing { .. }
            | Activity::Sending(_)
            | Activity::Answering(_)
            | Activity::Calls(_) => self.time_is_up_at_ms(),
        };
        let of_disk = if let DiskState::RetryAt { at_ms, .. } = live.disk { Some(at_ms) } else { None };
        let alarm_ms = of_activity.into_iter().chain(of_disk).min();
        if alarm_ms != self.state.live.alarm_ms {
            self.state.live.alarm_ms = alarm_ms;
            if let Some(until_mono_ms) = alarm_ms {
                self.out.push(Effect::Sleep { until_mono_ms });
            }
        }
    }

    fn tell_activity(&mut self) {
        let activity = self.state.activity();
        if activity != self.state.live.told {
            self.state.live.told = activity;
            self.out.push(Effect::Tell(RuntimeFrame::Activity(activity)));
        }
    }

    /// The state of a pause; also appends its entry.
    pub(crate) fn paused(&mut self, why: PauseReason, until_ms: Option<u64>, calls: Option<CallBatch>) -> Activity {
        self.state.live.pause = None;
        self.state.live.clock.stop(self.time.mono_ms);
        self.append(PauseRecord { why: Some(why) }.to_entry(), false, Then::Nothing);
        Activity::Paused { why, until_ms, calls }
    }

    // Advancing

    /// Advances until the machine has to wait for the executor.
    fn advance(&mut self) {
        while self.advance_once() {}
    }

    /// Performs the next action. Returns whether there may be another one.
    fn advance_once(&mut self) -> bool {
        let is_written = self.state.live.unwritten.is_empty();
        if matches!(self.state.live.disk, DiskState::Lost(_)) {
            return false;
        }
        match &self.state.live.activity {
            Activity::Idle if is_written && self.state.live.is_open => self.idle(),
            Activity::Starting(_) if is_written && self.state.recorded.is_unfinished() => {
                self.settle();
                false
            }
            Activity::Starting(_) if is_written => {
                self.start_turn();
                false
            }
            Activity::Boundary if is_written => self.boundary(),
            Activity::Calls(_) => {
                if self.drive_calls() {
                    self.state.live.activity = Activity::Boundary;
                    return true;
                }
                false
            }
            Activity::Idle
            | Activity::Starting(_)
            | Activity::Boundary
            | Activity::Preparing { .. }
            | Activity::Sending(_)
            | Activity::Answering(_)
            | Activity::Retrying { .. }
            | Activity::Slowed { .. }
            | Activity::Paused { .. } => false,
        }
    }
}
