//! Applies each kind of event to a session.

use events::{
    AssistantMessage, Block, ErrorClass, Event, EventId, Payload, PromptOrigin, Reason, Receipt, SessionExited,
    SessionForked, SessionStarted, Source, State, Stop, Timestamp, ToolKind, Topic, TurnCompleted, TurnOutcome,
    TurnStarted, TurnTrigger, UsageReported,
};

use super::{
    Conclusion, CountedResponse, GROWING_RESPONSES, OPEN_TEXT_BYTES, PROMPT_CHARS, Parting, RECENT_TURNS, SessionState,
    TURN_TEXT_BYTES, happened_at, is_restated, speaks,
};
use crate::{
    FailureKind, LabelChange, MarkChange, Turn, TurnWork, Usage,
    claims::{self, Record},
    conversation::{OpenCall, Phase},
    failure::{self, FinishedCall},
    receipt::{self, LineKind},
    shorten::{Shown, one_line, verbatim_line},
    status::Process,
    title::{self, TitleSource},
};

/// Maximum number of labels of a session.
pub const LABELS: usize = 32;
/// Longest line about an open call, characters.
const CALL_CHARS: usize = 200;

impl SessionState {
    pub(super) fn apply(&mut self, event: &Event, at: Timestamp, out: &mut Vec<Conclusion>) {
        if speaks(&event.payload) && event.source == Source::Transcript && event.agent_id.is_none() {
            if let Payload::UserPrompt(prompt) = &event.payload
                && !is_restated(event)
                && !self.steers(prompt.origin)
            {
                self.end_as_likely(out);
            }
            self.likely_end = None;
            self.likely_end_from = None;
        }
        if matches!(event.payload, Payload::ToolCall(_) | Payload::AssistantMessage(_) | Payload::AssistantDelta(_)) {
            self.refused = None;
        }
        match &event.payload {
            Payload::SessionStarted(started) => self.apply_start(started),
            // The end of an earlier process, read while another one runs the session.
            Payload::SessionExited(_) if event.history && matches!(self.process, Process::Alive { .. }) => {}
            Payload::SessionExited(exited) => {
                self.part(Some(exited.reason.unwrap_or(Reason::Clean)), at, out);
            }
            Payload::UserPrompt(_) if is_restated(event) => {}
            // An observed prompt shows nothing about what the agent does.
            Payload::UserPrompt(prompt) if event.source == Source::Pty => {
                self.apply_typed(event, prompt.origin, at, out);
            }
            Payload::UserPrompt(prompt) => self.apply_prompt(event, prompt.origin, at, out),
            Payload::AssistantMessage(message) => self.apply_message(event, message, at, out),
            Payload::AssistantDelta(delta) => {
                self.session.last_assistant_output_at = Some(at);
                self.conversation_at = at;
                if delta.block == Block::Text {
                    self.add_text(delta.message_id.as_deref(), event.text.as_deref());
                }
                if delta.stop == Some(Stop::EndTurn) && self.is_at_work() {
                    self.end_turn(TurnOutcome::Completed, None, 0, true, at, out);
                }
            }
            Payload::ToolCall(call) => {
                self.wake_if_needed(event, at, out);
                self.conversation_at = at;
                self.session.last_assistant_output_at = Some(at);
                let closes_loop = self.test_loops.called(call);
                let shown = call.title.as_deref().map(Shown::of);
                let is_command = call.tool == ToolKind::Execute && !call.background;
                let command = is_command.then(|| receipt::command_of(call, event.text.as_deref())).flatten();
                let checks = command.as_deref().map(receipt::checks_of).unwrap_or_default();
                let line = match call.tool {
                    ToolKind::Execute => command.as_deref().map(LineKind::of).unwrap_or_default(),
                    ToolKind::Mcp | ToolKind::Subagent => LineKind::Opaque,
                    ToolKind::Edit
                    | ToolKind::Read
                    | ToolKind::Fetch
                    | ToolKind::Plan
                    | ToolKind::Question
                    | ToolKind::Other => LineKind::Shows,
                };
                if let Some(turn) = &mut self.turn {
                    turn.tool_calls += 1;
                    turn.test_fix_loops = turn.test_fix_loops.map(|loops| loops + u32::from(closes_loop));
                    turn.work.called(call, shown.as_ref(), !checks.is_empty());
                    receipt::called(&mut turn.receipt, call, event.text.as_deref(), &mut self.tasks);
                }
                if let (ToolKind::Execute | ToolKind::Edit, Some(what)) = (call.tool, &shown) {
                    let verb = if call.tool == ToolKind::Edit { "Edit" } else { "Run" };
                    self.entitle(TitleSource::Activity, || verbatim_line(&format!("{verb} {}", what.as_str()), 80));
                }
                if !call.background {
                    let mut open = OpenCall {
                        call_id: call.call_id.clone(),
                        name: call.name.clone(),
                        tool: call.tool,
                        title: call.title.as_deref().map(|t| verbatim_line(t, CALL_CHARS)),
                        shown: shown.map(|t| t.one_line(CALL_CHARS)),
                        files: call.files.clone(),
                        checks,
                        line,
                        continues: None,
                        may_ask: call.may_ask,
                        at,
                    };
                    let turn = self.turn.as_ref().map_or(0, |turn| turn.number);
                    self.continuing.called(call, event.text.as_deref(), turn, &mut open);
                    self.conversation.called(open);
                }
            }
            Payload::ToolResult(result) => {
                self.conversation_at = at;
                if !result.detail {
                    self.test_loops.returned(result);
                    let by = happened_at(event, at);
                    let call = self.conversation.returned(&result.call_id, by);
                    let finished = FinishedCall {
                        tool: call.as_ref().map_or(ToolKind::Other, |call| call.tool),
                        title: call.as_ref().and_then(|call| call.title.as_deref()),
                        exit_code: result.exit_code,
                        outcome: result.outcome,
                        text: event.text.as_deref(),
                    };
                    let failed = failure::classify(&finished);
                    if let Some(turn) = &mut self.turn {
                        let files = call.as_ref().map_or(&[][..], OpenCall::edited_files);
                        turn.work.returned(&finished, files);
                        let is_of_project = |file: &String| !receipt::is_scratch(file, self.session.cwd.as_deref());
                        let of_project: Vec<String> =
                            files.iter().filter(|file| is_of_project(file)).cloned().collect();
                        if finished.tool == ToolKind::Edit && (files.is_empty() || !of_project.is_empty()) {
                            receipt::edited(&mut turn.receipt, &of_project, result.outcome);
                        }
                        if let Some(call) = call.as_ref().filter(|call| call.tool == ToolKind::Execute) {
                            let still_runs =
                                self.continuing.returned(call, turn.number, finished.text.unwrap_or_default());
                            if !(still_runs && call.continues.is_some()) {
                                receipt::ran(&mut turn.receipt, &finished, call, event.id);
                            }
                        }
                        let ran = matches!(result.outcome, events::ToolOutcome::Ok | events::ToolOutcome::Error);
                        if let Some(call) = call.as_ref().filter(|_| ran) {
                            receipt::hid(&mut turn.receipt, call.line);
                        }
                    }
                    self.count_failure(failed);
                    self.answered(call.as_ref(), by);
                    self.call_returned(call.as_ref(), result.outcome, (by, at), out);
                    if let Some(turn) = &mut self.turn {
                        turn.tool_errors += u32::from(result.outcome != events::ToolOutcome::Ok);
                    }
                    if let Phase::Open { doing } = &mut self.conversation.phase {
                        *doing = Reason::Thinking;
                    }
                }
            }
            Payload::QuestionAsked(asked) => {
                self.conversation_at = at;
                let Some(call_id) = &asked.call_id else { return };
                if let Some(call) = self.conversation.calls.iter_mut().find(|c| c.call_id == *call_id) {
                    call.tool = ToolKind::Question;
                    if let Some(question) = event.text.as_deref() {
                        call.title = Some(verbatim_line(question, CALL_CHARS));
                        call.shown = Some(one_line(question, CALL_CHARS));
                    }
                }
            }
            Payload::QuestionAnswered(answered) => {
                self.conversation_at = at;
                if let Some(call_id) = &answered.call_id {
                    self.conversation.returned(call_id, happened_at(event, at));
                }
            }
            Payload::Error(error) => {
                self.conversation_at = at;
                // The transcript reports an error that ends a turn, and telemetry reports it again.
                if event.source != Source::Telemetry || error.retrying {
                    self.count_failure(Some(failure::classify_error(error, event.text.as_deref())));
                }
                if error.ends_turn {
                    if self.is_at_work() {
                        self.end_turn(TurnOutcome::Failed, Some(error.class), 0, true, at, out);
                    } else if let Phase::Ended { outcome: TurnOutcome::Failed, class, .. } =
                        &mut self.conversation.phase
                    {
                        class.get_or_insert(error.class);
                    }
                } else if error.retrying
                    // Late telemetry shows nothing new about the turn; the claim sent with it expires.
                    && event.source != Source::Telemetry
                    && let Phase::Open { doing } = &mut self.conversation.phase
                {
                    *doing = Reason::Retrying;
                }
            }
            Payload::UsageReported(usage) => self.apply_usage(usage),
            Payload::ContextCompacted(_) => {
                self.conversation_at = at;
                if let Phase::Open { doing } = &mut self.conversation.phase {
                    *doing = Reason::Thinking;
                }
            }
            Payload::SessionForked(forked) => {
                if self.session.provider_session_id.as_deref() == Some(&forked.from) {
                    self.take_back(forked, at, out);
                } else {
                    self.session.forked_from = Some(forked.from.clone());
                }
            }
            // Policies decide by labels, so only labels set through capture count.
            Payload::Annotation(note) if note.topic == Topic::Label => {
                if event.source == Source::Runtime {
                    self.label(LabelChange::of_annotation(&note.value));
                }
            }
            // As with labels: text in an agent's files cannot set a mark.
            Payload::Annotation(note) if note.topic == Topic::Mark => {
                if event.source == Source::Runtime
                    && let Some(change) = MarkChange::read(&note.value)
                {
                    self.session.marks = self.session.marks.unwrap_or_default().changed(change);
                }
            }
            Payload::Annotation(note) => {
                // A hook reports the agent's current directory, which may differ from the one it started in.
                if note.topic == Topic::Cwd && event.source != Source::Hook && self.session.began_in.is_none() {
                    self.session.began_in = Some(note.value.clone());
                }
                self.asleep_ms += note.asleep_ms().unwrap_or(0);
                self.annotate(note.topic, &note.value);
            }
            Payload::Signal(signal) => self.apply_signal(event, signal, at, out),
            Payload::ApprovalRequested(asked) => self.apply_request(event, asked, at, out),
            Payload::ApprovalResolved(resolved) => self.apply_resolution(resolved, at),
            // A heartbeat of the terminal is no activity of the conversation.
            Payload::Heartbeat(_) if event.source == Source::Pty => {}
            Payload::Heartbeat(_) => self.conversation_at = at,
            Payload::TurnStarted(_)
            | Payload::TurnCompleted(_)
            | Payload::StatusChanged(_)
            | Payload::Finding(_)
            | Payload::Notification(_)
            | Payload::QueuedPrompt(_)
            | Payload::Unrecognized(_) => {}
        }
    }

    fn apply_start(&mut self, started: &SessionStarted) {
        let session = &mut self.session;
        let fill = |slot: &mut Option<String>, value: &Option<String>| {
            if let Some(value) = value {
                *slot = Some(value.clone());
            }
        };
        fill(&mut session.cwd, &started.cwd);
        if session.began_in.is_none() {
            session.began_in.clone_from(&started.cwd);
        }
        fill(&mut session.git_branch, &started.git_branch);
        fill(&mut session.model, &started.model);
        fill(&mut session.cli_version, &started.cli_version);
        if let Some(headless) = started.headless {
            session.headless = headless;
            self.conversation.headless = headless;
        }
        if started.parent_session_id.is_some() {
            session.parent_session_id = started.parent_session_id;
        }
    }

    fn annotate(&mut self, topic: Topic, value: &str) {
        let value_owned = || Some(value.to_owned());
        match topic {
            Topic::Title => {
                self.title_from = TitleSource::Given;
                self.session.title = Some(one_line(value, 200));
            }
            Topic::Model => self.session.model = value_owned(),
            Topic::Cwd => self.session.cwd = value_owned(),
            Topic::GitBranch => self.session.git_branch = value_owned(),
            Topic::PermissionMode => self.session.permission_mode = value_owned(),
            Topic::CliVersion => self.session.cli_version = value_owned(),
            Topic::MergedInto => self.session.merged_into = value.parse().ok(),
            Topic::Run => self.session.run_id = value.parse().ok(),
            Topic::Queue
            | Topic::Command
            | Topic::Notice
            | Topic::Capture
            | Topic::Note
            | Topic::Input
            | Topic::Screen
            | Topic::Trace
            | Topic::Label
            | Topic::Mark
            | Topic::Asleep => {}
        }
    }

    fn label(&mut self, LabelChange { key, value }: LabelChange) {
        let labels = &mut self.session.labels;
        match value {
            Some(value) if labels.len() < LABELS || labels.contains_key(&key) => {
                labels.insert(key, value);
            }
            Some(_) => {}
            None => {
                labels.remove(&key);
            }
        }
    }

    fn apply_usage(&mut self, usage: &UsageReported) {
        self.count_response(usage);
        self.session.usage.add(usage);
        if let Some(turn) = self.turn.as_mut().or(self.recent.back_mut()) {
            turn.usage.add(usage);
        }
        if self.session.model.is_none() {
            self.session.model.clone_from(&usage.model);
        }
    }

    fn count_response(&mut self, usage: &UsageReported) {
        let Some(id) = &usage.message_id else { return };
        if let Some(counted) = self.counted.iter_mut().find(|c| c.message_id == *id) {
            counted.usage.add(usage);
            return;
        }
        if self.counted.len() == GROWING_RESPONSES {
            self.counted.pop_front();
        }
        let mut counted = CountedResponse { message_id: id.clone(), usage: Usage::default() };
        counted.usage.add(usage);
        self.counted.push_back(counted);
    }

    fn count_failure(&mut self, kind: Option<FailureKind>) {
        let Some(kind) = kind else { return };
        let turn = self.turn.as_mut().map(|turn| &mut turn.failures);
        for failures in turn.into_iter().chain([&mut self.session.failures]) {
            let count = failures.entry(kind).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// Whether a prompt typed now belongs to the open turn.
    pub(super) fn steers(&self, origin: PromptOrigin) -> bool {
        match origin {
            // A rule types into a running turn only to steer it.
            PromptOrigin::Steering | PromptOrigin::Monitor => self.turn.is_some(),
            PromptOrigin::Human | PromptOrigin::Wakeup | PromptOrigin::Agent | PromptOrigin::Command => false,
        }
    }

    pub(super) fn opens_turn(&self, payload: &Payload) -> Option<TurnTrigger> {
        match payload {
            Payload::UserPrompt(prompt) => Some(match prompt.origin {
                PromptOrigin::Human | PromptOrigin::Steering | PromptOrigin::Agent => TurnTrigger::Prompt,
                PromptOrigin::Wakeup => TurnTrigger::Wakeup,
                PromptOrigin::Command => TurnTrigger::Command,
                PromptOrigin::Monitor => TurnTrigger::Monitor,
            }),
            Payload::ToolCall(_) => Some(TurnTrigger::Wakeup),
            Payload::AssistantMessage(message) if message.stop != Some(Stop::EndTurn) => Some(TurnTrigger::Wakeup),
            Payload::AssistantMessage(_)
            | Payload::SessionStarted(_)
            | Payload::SessionExited(_)
            | Payload::TurnStarted(_)
            | Payload::TurnCompleted(_)
            | Payload::AssistantDelta(_)
            | Payload::ToolResult(_)
            | Payload::ApprovalRequested(_)
            | Payload::ApprovalResolved(_)
            | Payload::StatusChanged(_)
            | Payload::Error(_)
            | Payload::Heartbeat(_)
            | Payload::QuestionAsked(_)
            | Payload::QuestionAnswered(_)
            | Payload::UsageReported(_)
            | Payload::ContextCompacted(_)
            | Payload::SessionForked(_)
            | Payload::Annotation(_)
            | Payload::Signal(_)
            | Payload::Finding(_)
            | Payload::Notification(_)
            | Payload::QueuedPrompt(_)
            | Payload::Unrecognized(_) => None,
        }
    }

    fn apply_prompt(&mut self, event: &Event, origin: PromptOrigin, at: Timestamp, out: &mut Vec<Conclusion>) {
        let prompt = event.text.as_deref().map(Shown::of);
        let text = prompt.as_ref().map(|prompt| prompt.one_line(PROMPT_CHARS));
        self.conversation_at = at;
        if origin == PromptOrigin::Monitor {
            self.forget_typed(event);
        }
        if matches!(origin, PromptOrigin::Human | PromptOrigin::Steering) {
            self.session.last_user_prompt_at = Some(at);
            self.session.summary.last_prompt = text.clone();
        }
        let names_the_task = match origin {
            PromptOrigin::Human | PromptOrigin::Steering | PromptOrigin::Agent => true,
            PromptOrigin::Wakeup | PromptOrigin::Command | PromptOrigin::Monitor => false,
        };
        if names_the_task && let Some(prompt) = &prompt {
            match title::intent(prompt) {
                Some(intent) => self.entitle(TitleSource::Intent, || intent),
                None => self.entitle(TitleSource::Filler, || prompt.one_line(80)),
            }
            // The session has moved on. A prompt typed while the agent works is about that work.
            if self.title_from == TitleSource::Intent
                && !self.steers(origin)
                && let Some(task) = title::task(prompt)
            {
                self.session.title = Some(task);
            }
        }
        if self.steers(origin) {
            if let Some(turn) = &mut self.turn {
                turn.steering += 1;
            }
            return;
        }
        if self.turn.is_some() {
            self.end_turn(TurnOutcome::Superseded, None, 0, true, at, out);
        }
        let trigger = self.opens_turn(&event.payload).unwrap_or_default();
        self.open_turn_now(event.id, trigger, text, at, out);
    }

    /// Applies a prompt of an agent whose files are not read, observed from keys and screen. It begins a turn, but
    /// shows nothing about what the agent does.
    fn apply_typed(&mut self, event: &Event, origin: PromptOrigin, at: Timestamp, out: &mut Vec<Conclusion>) {
        let phase = self.conversation.phase.clone();
        let begins = !self.steers(origin);
        self.apply_prompt(event, origin, at, out);
        if begins {
            self.conversation.phase = phase;
            self.typed_turn = true;
        }
    }

    /// The screen waits for the next prompt: a turn that began with an observed prompt ends.
    pub(super) fn end_typed_turn(&mut self, at: Timestamp, out: &mut Vec<Conclusion>) {
        if self.typed_turn && self.turn.is_some() {
            self.close_turn(TurnOutcome::Completed, false, at, out);
        }
    }

    /// Sets the session's title, unless its current title comes from an equally good source.
    fn entitle(&mut self, from: TitleSource, title: impl FnOnce() -> String) {
        if from > self.title_from {
            let title = title();
            if !title.is_empty() {
                self.title_from = from;
                self.session.title = Some(title);
            }
        }
    }

    fn open_turn_now(
        &mut self,
        id: EventId,
        trigger: TurnTrigger,
        prompt: Option<String>,
        at: Timestamp,
        out: &mut Vec<Conclusion>,
    ) {
        self.session.turns += 1;
        let number = self.session.turns;
        self.conversation.calls.clear();
        self.conversation.phase = Phase::Open { doing: Reason::Thinking };
        self.ready_at = None;
        self.refused = None;
        self.turn_message = None;
        self.turn_text = None;
        self.turn = Some(Turn {
            id: id.into(),
            number,
            trigger,
            prompt,
            text: None,
            messages: 0,
            tool_calls: 0,
            tool_errors: 0,
            approvals: 0,
            steering: 0,
            outcome: None,
            started_at: at,
            completed_at: None,
            usage: Usage::default(),
            failures: std::collections::BTreeMap::new(),
            test_fix_loops: Some(0),
            work: TurnWork::default(),
            receipt: Receipt::default(),
        });
        out.push(Conclusion {
            at,
            turn_id: Some(id.into()),
            payload: TurnStarted { trigger, number }.into(),
            turn: None,
            approval: None,
            basis: None,
        });
    }

    /// Whether an end would end something: a turn, or work that no prompt announced.
    fn is_at_work(&self) -> bool {
        self.turn.is_some() || self.conversation.is_open()
    }

    fn wake_if_needed(&mut self, event: &Event, at: Timestamp, out: &mut Vec<Conclusion>) {
        if self.turn.is_none()
            && !self.has_ended()
            && let Some(trigger) = self.opens_turn(&event.payload)
        {
            self.open_turn_now(event.id, trigger, None, at, out);
        }
    }

    fn apply_message(&mut self, event: &Event, message: &AssistantMessage, at: Timestamp, out: &mut Vec<Conclusion>) {
        self.wake_if_needed(event, at, out);
        self.conversation_at = at;
        self.session.last_assistant_output_at = Some(at);
        if let Some(model) = &message.model {
            self.session.model = Some(model.clone());
        }
        if let Some(turn) = &mut self.turn {
            turn.messages += 1;
        }
        self.turn_message = None;
        self.last_message.clone_from(&message.message_id);
        self.add_text(message.message_id.as_deref(), event.text.as_deref());
        if let Phase::Open { doing } = &mut self.conversation.phase {
            *doing = Reason::Thinking;
        }
        if message.stop == Some(Stop::EndTurn) && self.is_at_work() {
            self.end_turn(TurnOutcome::Completed, None, 0, true, at, out);
        }
    }

    /// Adds to the text of the turn: a part of the same message is appended, a new message replaces the text.
    fn add_text(&mut self, message_id: Option<&str>, text: Option<&str>) {
        let Some(text) = text.filter(|t| !t.trim().is_empty()) else { return };
        let same = message_id.is_some() && self.turn_message.as_deref() == message_id;
        let (known, is_open) = match (&self.turn, self.recent.back_mut()) {
            (Some(_), _) => (&mut self.turn_text, true),
            (None, Some(last)) => (&mut last.text, false),
            (None, None) => return,
        };
        let joined = known.take().filter(|_| same).map(|before| format!("{before}\n{text}"));
        let text = joined.unwrap_or_else(|| text.to_owned());
        *known = Some(if is_open && text.len() <= OPEN_TEXT_BYTES {
            text
        } else {
            Shown::of(&text).both_ends(TURN_TEXT_BYTES)
        });
        self.turn_message = message_id.map(str::to_owned);
    }

    pub(super) fn end_turn(
        &mut self,
        outcome: TurnOutcome,
        class: Option<ErrorClass>,
        pending_subagents: u32,
        certain: bool,
        at: Timestamp,
        out: &mut Vec<Conclusion>,
    ) {
        let outcome = self.end_at_dialog(outcome, certain, at);
        self.conversation.phase = Phase::Ended { outcome, class, pending_subagents, certain };
        let has_open_calls = !self.conversation.calls.is_empty() || pending_subagents > 0;
        self.conversation.calls.clear();
        self.ready_at = None;
        self.likely_end = None;
        self.likely_end_from = None;
        self.close_turn(outcome, has_open_calls, at, out);
    }

    fn close_turn(&mut self, outcome: TurnOutcome, has_open_calls: bool, at: Timestamp, out: &mut Vec<Conclusion>) {
        self.typed_turn = false;
        let Some(mut turn) = self.turn.take() else { return };
        let text = self.turn_text.take();
        if let Some(text) = text.as_deref().filter(|_| outcome == TurnOutcome::Completed) {
            let record = Record {
                receipt: &turn.receipt,
                files: &turn.work.files,
                history: &self.checks,
                has_gap: has_open_calls
                    || turn.receipt.background > 0
                    // The agent reports what a background command or a sub-agent did.
                    || turn.trigger == TurnTrigger::Wakeup
                    || self.began_elsewhere(&turn),
            };
            turn.receipt.claims = claims::judge(text, record);
        }
        self.checks.add(&turn.receipt, &turn.work.files);
        turn.text = text.map(|text| Shown::of(&text).both_ends(TURN_TEXT_BYTES));
        turn.outcome = Some(outcome);
        turn.completed_at = Some(at.max(turn.started_at));
        out.push(completed(&turn, outcome, at));
        if self.recent.len() == RECENT_TURNS {
            self.recent.pop_front();
        }
        self.recent.push_back(turn);
    }

    /// Whether the conversation continues another one, whose checks are in another file.
    fn began_elsewhere(&self, turn: &Turn) -> bool {
        let continues = |prompt: &String| prompt.starts_with("This session is being continued from");
        let is_copy = self.session.forked_from.is_some() || self.session.parent_session_id.is_some();
        is_copy || turn.number == 1 && turn.prompt.as_ref().is_some_and(continues)
    }

    /// The user went back: the turns from there on are no longer part of the conversation. Of the finished turns, only
    /// the recent ones are known.
    fn take_back(&mut self, rewind: &SessionForked, at: Timestamp, out: &mut Vec<Conclusion>) {
        let numbers = || self.recent.iter().chain(&self.turn).map(|turn| (turn.id, turn.number));
        let first = match (rewind.taken_back, rewind.turns) {
            (Some(first), _) => numbers().find(|(id, _)| *id == first).map(|(_, number)| number),
            (None, Some(turns)) => self.standing_turns().rev().take(turns as usize).last(),
            (None, None) => None,
        };
        let Some(first) = first else { return };
        for turn in self.recent.iter_mut().filter(|turn| turn.number >= first) {
            if turn.outcome == Some(TurnOutcome::TakenBack) {
                continue;
            }
            turn.outcome = Some(TurnOutcome::TakenBack);
            out.push(completed(turn, TurnOutcome::TakenBack, at));
        }
        if self.turn.is_some() {
            self.end_turn(TurnOutcome::TakenBack, None, 0, true, at, out);
        }
    }

    /// The numbers of the known turns that are part of the conversation.
    fn standing_turns(&self) -> impl DoubleEndedIterator<Item = u32> {
        let all = self.recent.iter().chain(&self.turn);
        all.filter(|turn| turn.outcome != Some(TurnOutcome::TakenBack)).map(|turn| turn.number)
    }

    /// The outcome of the open turn, as reported by a session that runs the agent itself. Its process may have ended
    /// before its file is read.
    fn end_said_by_itself(&self) -> Option<TurnOutcome> {
        let turn = self.turn.as_ref()?;
        let by_itself = |claim: &&crate::status::StandingClaim| {
            claim.source == Source::Runtime
                && claim.agent.is_none()
                && claim.key.is_none()
                && claim.at >= turn.started_at
        };
        let claim = self.claims.iter().rev().find(by_itself).filter(|claim| claim.state == State::Waiting)?;
        claim.reason?.facts().waiting?.turn_outcome
    }

    /// The process ended. Without `how`, an open turn means that it was killed. Unless the open turn is known to have
    /// been cut off, the end counts a little later, so that the last lines of the file can be read.
    pub(super) fn part(&mut self, how: Option<Reason>, at: Timestamp, out: &mut Vec<Conclusion>) {
        let is_cut_off = matches!(how, Some(Reason::Killed | Reason::Failed));
        let at = at.max(self.clock);
        self.parting = Some(Parting { at: self.parting.map_or(at, |parting| parting.at), how });
        let asks = self.approvals.iter().any(crate::Approval::is_pending);
        if self.turn.is_none() || is_cut_off || asks || self.end_said_by_itself().is_some() {
            self.conclude_parting(at, out);
        }
    }

    /// Concludes the end of the process, if one was reported.
    pub(super) fn conclude_parting(&mut self, at: Timestamp, out: &mut Vec<Conclusion>) {
        let Some(parting) = self.parting.take() else { return };
        let told = if self.turn.is_some() { Reason::Killed } else { Reason::Clean };
        let how = parting.how.unwrap_or(told);
        let said = self.end_said_by_itself();
        self.process = Process::Gone { at: parting.at, how };
        self.session.pid = None;
        self.claims.clear();
        self.goodbye_at = None;
        self.end_as_likely(out);
        if self.turn.is_some() {
            self.end_turn(said.unwrap_or(TurnOutcome::Exited), None, 0, true, at, out);
        }
        out.push(Conclusion {
            at,
            turn_id: None,
            payload: SessionExited { reason: Some(how), code: None }.into(),
            turn: None,
            approval: None,
            basis: None,
        });
    }
}

/// The conclusion, made at `at`, that a turn ended; its duration runs to the turn's own end.
fn completed(turn: &Turn, outcome: TurnOutcome, at: Timestamp) -> Conclusion {
    let ended = turn.completed_at.unwrap_or(at);
    let duration_ms = u64::try_from(ended.since_ms(turn.started_at)).unwrap_or(0);
    Conclusion {
        at,
        turn_id: Some(turn.id),
        payload: TurnCompleted { outcome, number: turn.number, duration_ms, receipt: turn.receipt.clone() }.into(),
        turn: Some(turn.clone()),
        approval: None,
        basis: None,
    }
}
