//! The thread of a session, which owns the machine and the file.
//!
//! Only this thread writes to the disk and waits for it, so that no task of the runtime ever does. Requests, decisions,
//! tools and the alarm are tasks; their results arrive through the bounded inbox. The thread never sends to its own
//! inbox.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use engine::{
    AnswerEvent, AnswerFailure, Append, AskedPermission, CallId, CallOutput, CallRun, Effect, EngineActivity,
    EngineInput, EngineSetup, EngineState, FailureKind, PauseReason, QueueOutcome, RequestNumber, RequestPlan,
    RequestPurpose, RuntimeFrame, SessionFacts, TurnOutcome, UserMessage,
    cache::RequestDigest,
    compaction::{self, CompactionCut},
    entries::{ProcessEnded, RuntimeEntry},
    step,
};
use session_tree::{Entry, Json, Object, Session, Stamp, context::text_of};
use tokio::{
    runtime::Handle,
    sync::{broadcast, mpsc, oneshot},
    task::{AbortHandle, JoinHandle},
};

use crate::{
    changed,
    handle::{DriverMessage, SessionHandle, SessionReader, SessionSnapshot, SessionUpdate, TurnReport, model_names},
    ports::{AnswerSource, PermissionBroker, PrepareFailure, SessionClock, ToolRunner},
};

/// Capacity of the inbox; senders wait when it is full.
const INBOX: usize = 256;
/// Number of updates by which a reader may lag.
const UPDATES: usize = 4096;
/// Approximate size of the newest entries that stay in memory, in bytes; of older ones only the structure stays. The
/// file contains everything.
const HELD_BYTES: usize = 1024 * 1024;
/// How long closing a session waits for its tools to end.
const CLOSING: Duration = Duration::from_secs(3);

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refused a thread.
    #[error("cannot start the session's thread: {0}")]
    Thread(#[source] io::Error),
}

/// The components of a session.
pub struct SessionParts {
    /// Its initial settings.
    pub setup: EngineSetup,
    /// Its entries and file.
    pub session: Session,
    /// The facts for its session context.
    pub facts: SessionFacts,
    /// The directory whose files its tools may change.
    pub workspace: PathBuf,
    /// Encodes and sends requests.
    pub answers: Box<dyn AnswerSource>,
    /// Runs tools.
    pub tools: Arc<dyn ToolRunner>,
    /// Decides about calls.
    pub broker: Arc<dyn PermissionBroker>,
    /// The time.
    pub clock: Arc<dyn SessionClock>,
    /// Whether secrets in messages are replaced before they are stored and sent.
    pub masks_messages: bool,
}

/// Opens a session: settles the work its last process left, and waits for a prompt. Tasks run on `runtime`.
///
/// # Errors
/// The thread cannot be started.
pub fn open(parts: SessionParts, runtime: &Handle) -> Result<SessionHandle, OpenError> {
    let (inbox, received) = mpsc::channel(INBOX);
    let (updates, _) = broadcast::channel(UPDATES);
    let session = SessionHandle { inbox: inbox.clone(), updates: updates.clone() };
    let SessionParts { setup, session: file, facts, workspace, answers, tools, broker, clock, masks_messages } = parts;
    let executor = SessionExecutor {
        state: EngineState::new(setup, file.tree()),
        session: file,
        answers,
        tools,
        broker,
        clock,
        runtime: runtime.clone(),
        inbox: inbox.downgrade(),
        updates,
        effects: VecDeque::new(),
        streams: HashMap::new(),
        questions: HashMap::new(),
        running: HashMap::new(),
        alarm: None,
        waiting: None,
        has_prompted: false,
        unclaimed: VecDeque::new(),
        is_finished: false,
        has_disk_trouble: false,
        masks_messages,
    };
    let thread = std::thread::Builder::new().name("session".to_owned());
    thread.spawn(move || executor.run(received, facts, &workspace)).map_err(OpenError::Thread)?;
    Ok(session)
}

/// A session and everything it waits for.
struct SessionExecutor {
    state: EngineState,
    session: Session,
    answers: Box<dyn AnswerSource>,
    tools: Arc<dyn ToolRunner>,
    broker: Arc<dyn PermissionBroker>,
    clock: Arc<dyn SessionClock>,
    runtime: Handle,
    /// Weak, so that the session ends when the last handle is dropped.
    inbox: mpsc::WeakSender<DriverMessage>,
    updates: broadcast::Sender<SessionUpdate>,
    effects: VecDeque<Effect>,
    streams: HashMap<RequestNumber, AbortHandle>,
    questions: HashMap<CallId, AbortHandle>,
    running: HashMap<CallId, JoinHandle<()>>,
    alarm: Option<AbortHandle>,
    waiting: Option<WaitingPrompt>,
    /// Whether a caller waited for the end of a turn, and so claims the ends of the turns after it.
    has_prompted: bool,
    /// Reports of turns that ended before `finish` was called for them, oldest first.
    unclaimed: VecDeque<TurnReport>,
    /// Whether messages are no longer accepted.
    is_finished: bool,
    /// Whether the file cannot be appended to at present.
    has_disk_trouble: bool,
    /// Whether secrets in messages are replaced.
    masks_messages: bool,
}

/// A caller that waits for the end of the turn of its prompt.
struct WaitingPrompt {
    id: String,
    /// Whether the turn of the prompt has started.
    has_begun: bool,
    done: TurnWaiter,
}

/// The receiver of the end of a turn.
enum TurnWaiter {
    Prompt(oneshot::Sender<TurnReport>),
    Finish(oneshot::Sender<Option<TurnReport>>),
}

impl TurnWaiter {
    fn is_closed(&self) -> bool {
        match self {
            Self::Prompt(done) => done.is_closed(),
            Self::Finish(done) => done.is_closed(),
        }
    }

    /// Reports the end; the receiver may be gone.
    fn send(self, report: TurnReport) {
        match self {
            Self::Prompt(done) => drop(done.send(report)),
            Self::Finish(done) => drop(done.send(Some(report))),
        }
    }
}

impl SessionExecutor {
    fn run(mut self, mut received: mpsc::Receiver<DriverMessage>, facts: SessionFacts, workspace: &Path) {
        self.step(EngineInput::Facts(facts));
        let changed: BTreeMap<CallId, Vec<String>> = self
            .state
            .interrupted_calls()
            .into_iter()
            .filter_map(|call| Some((call.call, changed::since(workspace, call.started_at_ms?)?)))
            .collect();
        self.step(EngineInput::Restored { changed });
        while let Some(message) = received.blocking_recv() {
            match message {
                DriverMessage::Input(EngineInput::Prompt(message) | EngineInput::Queue { message, .. })
                    if self.is_finished =>
                {
                    let reason = "the turn is over, and the session ends with it".to_owned();
                    self.tell(RuntimeFrame::Message { id: message.id, outcome: QueueOutcome::Refused { reason } });
                }
                DriverMessage::Input(mut input) => {
                    self.forget(&input);
                    if let EngineInput::Prompt(message) | EngineInput::Queue { message, .. } = &mut input {
                        self.mask(message);
                    } else if let EngineInput::Compact { focus: Some(focus) } = &mut input
                        && self.masks_messages
                    {
                        *focus = self.tools.mask(focus).0;
                    }
                    self.step(input);
                }
                DriverMessage::Prompt(mut message, done) => {
                    self.mask(&mut message);
                    if self.waiting.as_ref().is_some_and(|waiting| !waiting.done.is_closed()) {
                        let reason = "somebody waits for the end of a turn already".to_owned();
                        let _ = done.send(TurnReport::Refused(reason));
                        continue;
                    }
                    let done = TurnWaiter::Prompt(done);
                    self.waiting = Some(WaitingPrompt { id: message.id.clone(), has_begun: false, done });
                    self.has_prompted = true;
                    self.unclaimed.clear();
                    self.step(EngineInput::Prompt(message));
                }
                DriverMessage::Finish(done) => self.finish(done),
                DriverMessage::Snapshot(done) => {
                    // The caller may be gone.
                    let _ = done.send(self.snapshot());
                }
                DriverMessage::Read(SessionReader(look_up)) => look_up(&self.session),
                DriverMessage::Close(exit, done) => {
                    self.close();
                    if let Some(code) = exit {
                        self.record_end(code);
                    }
                    // Release the file and close the inbox before reporting.
                    drop(self);
                    drop(received);
                    let _ = done.send(());
                    return;
                }
            }
        }
        self.close();
    }

    /// Replaces the secrets of a message before it is stored and sent, and tells the subscribers.
    fn mask(&self, message: &mut UserMessage) {
        if !self.masks_messages {
            return;
        }
        let mut found = 0;
        let mut mask = |text: &str| {
            let (text, secrets) = self.tools.mask(text);
            found += secrets;
            text
        };
        let masked = match &message.content {
            Json::String(text) => Json::String(mask(text)),
            Json::Array(blocks) => {
                let block =
                    |block: &Json| match block.as_object().and_then(|object| Some((object, object.text("text")?))) {
                        Some((object, text)) => Json::Object(object.clone().with("text", mask(text))),
                        None => block.clone(),
                    };
                Json::Array(blocks.iter().map(block).collect())
            }
            other @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_)) => other.clone(),
        };
        if found > 0 {
            message.content = masked;
            let frame = RuntimeFrame::SecretsMasked { id: message.id.clone(), secrets: found };
            let _ = self.updates.send(SessionUpdate::Frame(Arc::new(frame)));
        }
    }

    /// Applies an input and performs all effects that follow.
    fn step(&mut self, input: EngineInput) {
        let effects = step(&mut self.state, self.clock.now(), input);
        self.effects.extend(effects);
        while let Some(effect) = self.effects.pop_front() {
            if let Some(input) = self.perform(effect) {
                let effects = step(&mut self.state, self.clock.now(), input);
                self.effects.extend(effects);
            }
        }
    }

    /// Performs an effect. Returns its outcome if known at once.
    fn perform(&mut self, effect: Effect) -> Option<EngineInput> {
        match effect {
            Effect::Append(append) => return Some(self.append(append)),
            Effect::Prepare(plan) => return Some(self.prepare(&plan)),
            Effect::Send(request) => return self.send(request),
            Effect::Cancel(request) => {
                if let Some(stream) = self.streams.remove(&request) {
                    stream.abort();
                }
            }
            Effect::Inspect(run) => {
                return Some(EngineInput::Inspected { call: run.call, facts: self.tools.inspect(&run) });
            }
            Effect::Ask(asked) => self.ask(*asked),
            Effect::Withdraw(call) => {
                if let Some(question) = self.questions.remove(&call) {
                    question.abort();
                }
            }
            Effect::Run(run) => self.run_tool(run, |tools, run| tools.run(run)),
            Effect::RunWithoutEffect(run) => self.run_tool(run, |tools, run| tools.run_without_effect(run)),
            Effect::Kill(call) => self.tools.cancel(call),
            Effect::Sleep { until_mono_ms } => self.sleep(until_mono_ms),
            Effect::Tell(frame) => self.tell(frame),
        }
        None
    }

    fn append(&mut self, append: Append) -> EngineInput {
        let ticket = append.ticket;
        let stamp = Stamp { now_ms: self.clock.now().wall_ms, random: self.clock.random() };
        let Append { entry, sync, .. } = append;
        let appended = if sync { self.session.append_synced(entry, stamp) } else { self.session.append(entry, stamp) };
        match appended.cloned() {
            Ok(entry) => {
                // There may be no subscribers.
                let _ = self.updates.send(SessionUpdate::Entry(Arc::new(entry.clone())));
                EngineInput::Appended { ticket, entry: Box::new(entry) }
            }
            Err(error) => {
                // Otherwise the appends after it would take its place.
                self.effects.retain(|effect| !matches!(effect, Effect::Append(_)));
                EngineInput::AppendFailed { ticket, error: error.to_string(), may_pass: error.may_pass() }
            }
        }
    }

    fn prepare(&mut self, plan: &RequestPlan) -> EngineInput {
        let request = plan.request;
        let prepared = match &plan.purpose {
            RequestPurpose::Turn => match self.answers.prepare(plan, self.session.tree()) {
                Err(PrepareFailure::Released) => self.prepare_whole(plan, None),
                Err(PrepareFailure::Failed(failure)) => Err(failure),
                Ok(digest) => Ok((digest, None)),
            },
            RequestPurpose::Compaction(summary) => self.prepare_whole(plan, Some(summary.kept_tokens)),
        };
        // All parts of the request are encoded now.
        self.session.release(HELD_BYTES);
        match prepared {
            Ok((digest, cut)) => EngineInput::Prepared { request, digest, cut },
            Err(failure) => EngineInput::Streamed { request, event: AnswerEvent::Failed(failure) },
        }
    }

    /// Prepares a request from the file, for instance after a change of the model. A summary needs the cut of its
    /// compaction, which keeps this number of tokens.
    fn prepare_whole(
        &mut self,
        plan: &RequestPlan,
        kept_tokens: Option<u64>,
    ) -> Result<(RequestDigest, Option<Box<CompactionCut>>), AnswerFailure> {
        let failure = |message| AnswerFailure {
            kind: FailureKind::BadRequest,
            retry_after_ms: None,
            should_retry: None,
            message,
        };
        let tree = self.session.whole_tree().map_err(|error| failure(error.to_string()))?;
        let cut = kept_tokens.and_then(|kept| compaction::cut(&tree, kept)).map(Box::new);
        let digest = self.answers.prepare(plan, &tree).map_err(|error| match error {
            PrepareFailure::Failed(failure) => failure,
            PrepareFailure::Released => failure("the texts of the session are missing".to_owned()),
        })?;
        Ok((digest, cut))
    }

    fn send(&mut self, request: RequestNumber) -> Option<EngineInput> {
        let Some(mut stream) = self.answers.send(request) else {
            let failure = AnswerFailure {
                kind: FailureKind::Unknown,
                retry_after_ms: None,
                should_retry: Some(true),
                message: "the request is no longer prepared".to_owned(),
            };
            return Some(EngineInput::Streamed { request, event: AnswerEvent::Failed(failure) });
        };
        let inbox = self.inbox.clone();
        let task = async move {
            let mut is_over = false;
            while let Some(event) = stream.next().await {
                is_over |= matches!(event, AnswerEvent::Ended(_) | AnswerEvent::Failed(_));
                if !report(&inbox, EngineInput::Streamed { request, event }).await {
                    return;
                }
            }
            if !is_over {
                let failure = AnswerFailure {
                    kind: FailureKind::Network,
                    retry_after_ms: None,
                    should_retry: None,
                    message: "the answer ended before it was complete".to_owned(),
                };
                report(&inbox, EngineInput::Streamed { request, event: AnswerEvent::Failed(failure) }).await;
            }
        };
        self.streams.insert(request, self.runtime.spawn(task).abort_handle());
        None
    }

    fn ask(&mut self, asked: AskedPermission) {
        let (call, inbox) = (asked.call.call, self.inbox.clone());
        let (tools, decision) = (Arc::clone(&self.tools), self.broker.decide(asked));
        let task = async move {
            let mut decision = decision.await;
            decision.answer = decision.answer.map(|answer| tools.clean(&answer));
            decision.reason = decision.reason.map(|reason| tools.mask(&reason).0);
            report(&inbox, EngineInput::Decided { call, decision }).await;
        };
        self.questions.insert(call, self.runtime.spawn(task).abort_handle());
    }

    fn run_tool(&mut self, run: CallRun, how: fn(&dyn ToolRunner, &CallRun) -> CallOutput) {
        let (call, inbox) = (run.call, self.inbox.clone());
        let (tools, clock) = (Arc::clone(&self.tools), Arc::clone(&self.clock));
        let began_ms = clock.now().mono_ms;
        let task = self.runtime.spawn_blocking(move || how(&*tools, &run));
        let task = async move {
            let mut result = task.await.unwrap_or_else(|_| failed("The tool failed. It may have taken effect."));
            let took_ms = clock.now().mono_ms.saturating_sub(began_ms);
            result.details.get_or_insert_default().set("ms", took_ms);
            report(&inbox, EngineInput::Returned { call, result }).await;
        };
        self.running.insert(call, self.runtime.spawn(task));
    }

    fn sleep(&mut self, until_mono_ms: u64) {
        let inbox = self.inbox.clone();
        let wait = Duration::from_millis(until_mono_ms.saturating_sub(self.clock.now().mono_ms));
        let task = async move {
            tokio::time::sleep(wait).await;
            report(&inbox, EngineInput::Ticked).await;
        };
        let alarm = self.runtime.spawn(task).abort_handle();
        if let Some(before) = self.alarm.replace(alarm) {
            before.abort();
        }
    }

    fn tell(&mut self, frame: RuntimeFrame) {
        let (has_begun, is_mine) = match (&mut self.waiting, &frame) {
            // While a prompt waits to start, nothing else starts, and its message may not be in the file yet.
            (Some(waiting), RuntimeFrame::TurnStarted) => {
                waiting.has_begun = true;
                (true, false)
            }
            (Some(waiting), RuntimeFrame::Message { id, .. }) => (waiting.has_begun, waiting.id == *id),
            (waiting, _) => (waiting.as_ref().is_some_and(|waiting| waiting.has_begun), false),
        };
        let is_unclaimed = self.has_prompted && self.waiting.is_none();
        let report = match &frame {
            RuntimeFrame::TurnEnded { outcome, error } if has_begun || is_unclaimed => {
                let text = self.text_to_report(*outcome);
                Some(TurnReport::Ended { outcome: *outcome, error: error.clone(), text })
            }
            RuntimeFrame::Activity(EngineActivity::Paused(why)) if has_begun => Some(self.pause_report(*why)),
            RuntimeFrame::FileLost { error } => Some(TurnReport::FileLost(error.clone())),
            RuntimeFrame::Message { outcome: QueueOutcome::Refused { reason }, .. } if is_mine => {
                Some(TurnReport::Refused(reason.clone()))
            }
            RuntimeFrame::Activity(_)
            | RuntimeFrame::TurnStarted
            | RuntimeFrame::TurnEnded { .. }
            | RuntimeFrame::Text(_)
            | RuntimeFrame::Thinking(_)
            | RuntimeFrame::CallOpened { .. }
            | RuntimeFrame::Block(_)
            | RuntimeFrame::CallDecided { .. }
            | RuntimeFrame::CallStarted { .. }
            | RuntimeFrame::CallEnded { .. }
            | RuntimeFrame::RequestEnded { .. }
            | RuntimeFrame::ContextFills { .. }
            | RuntimeFrame::SecretsMasked { .. }
            | RuntimeFrame::CompactionStarted { .. }
            | RuntimeFrame::Compacted { .. }
            | RuntimeFrame::CompactionFailed { .. }
            | RuntimeFrame::Message { .. }
            | RuntimeFrame::Refused { .. } => None,
            RuntimeFrame::DiskTrouble { error } => {
                self.has_disk_trouble = error.is_some();
                None
            }
        };
        // There may be no subscribers.
        let _ = self.updates.send(SessionUpdate::Frame(Arc::new(frame)));
        if let Some(report) = report {
            match self.waiting.take() {
                Some(waiting) => waiting.done.send(report),
                None if is_unclaimed => self.unclaimed.push_back(report),
                None => {}
            }
        }
    }

    /// Reports the end of the turn that a queued message started; if there is none, accepts no more messages.
    fn finish(&mut self, done: oneshot::Sender<Option<TurnReport>>) {
        // A short turn may have ended before this call.
        if let Some(report) = self.unclaimed.pop_front() {
            let _ = done.send(Some(report));
            return;
        }
        match self.state.activity() {
            EngineActivity::Idle => {
                self.is_finished = true;
                let _ = done.send(None);
            }
            // A compaction on request is no turn.
            EngineActivity::Compacting | EngineActivity::Retrying { .. } | EngineActivity::Paused(_)
                if !self.state.recorded().is_unfinished() =>
            {
                self.is_finished = true;
                let _ = done.send(None);
            }
            EngineActivity::Paused(why) => {
                let _ = done.send(Some(self.pause_report(why)));
            }
            EngineActivity::Waiting
            | EngineActivity::Streaming
            | EngineActivity::Deciding
            | EngineActivity::Running
            | EngineActivity::Compacting
            | EngineActivity::Retrying { .. }
            | EngineActivity::Slowed { .. } => {
                let done = TurnWaiter::Finish(done);
                self.waiting = Some(WaitingPrompt { id: String::new(), has_begun: true, done });
            }
        }
    }

    fn pause_report(&self, why: PauseReason) -> TurnReport {
        let text = self.text_to_report(TurnOutcome::Rounds);
        TurnReport::Paused { why, until_wall_ms: self.paused_until_wall_ms(), text }
    }

    /// The text of the last answer; empty if it may not be in the file.
    fn text_to_report(&self, outcome: TurnOutcome) -> String {
        if self.has_disk_trouble { String::new() } else { self.last_text(outcome) }
    }

    /// When a pause ends automatically, in milliseconds since 1970.
    fn paused_until_wall_ms(&self) -> Option<i64> {
        let now = self.clock.now();
        let until_ms = self.state.paused_until_ms()?;
        Some(now.wall_ms.saturating_add_unsigned(until_ms.saturating_sub(now.mono_ms)))
    }

    /// The text of the last answer of the turn. If the turn did not complete, text before its calls does not count.
    fn last_text(&self, outcome: TurnOutcome) -> String {
        let path = self.session.tree().leaf_path();
        let messages = path.into_iter().rev().filter(|entry| entry.message().is_some());
        let mut of_turn = messages.take_while(|entry| entry.role() != Some("user"));
        let Some(answer) = of_turn.find(|entry| entry.role() == Some("assistant")) else { return String::new() };
        let is_cut = matches!(outcome, TurnOutcome::Aborted | TurnOutcome::Interrupted | TurnOutcome::Failed);
        let text = |answer: &Entry| {
            let content = answer.message()?.get("content")?;
            let blocks = content.as_array().unwrap_or_default();
            let is_call = |block: &Json| block.as_object().is_some_and(|block| block.text("type") == Some("toolCall"));
            (!is_cut || !blocks.iter().any(is_call)).then(|| text_of(content, ""))
        };
        if !answer.is_released() {
            return text(answer).unwrap_or_default();
        }
        let whole = self.session.whole_tree().ok();
        whole.and_then(|tree| text(tree.by_key(answer.key())?)).unwrap_or_default()
    }

    fn snapshot(&self) -> SessionSnapshot {
        let recorded = self.state.recorded();
        SessionSnapshot {
            session: self.session.tree().header().id().to_owned(),
            path: self.session.path().to_owned(),
            activity: self.state.activity(),
            model: model_names(self.state.model()),
            mode: recorded.mode(),
            spent: recorded.spent(),
            limits: self.state.limits(),
            queued: recorded.queue().count(),
            entries: self.session.tree().entries().len(),
        }
    }

    /// Removes the entry of a task whose result has arrived.
    fn forget(&mut self, input: &EngineInput) {
        if let EngineInput::Streamed { request, event: AnswerEvent::Ended(_) | AnswerEvent::Failed(_) } = input {
            self.streams.remove(request);
        } else if let EngineInput::Decided { call, .. } = input {
            self.questions.remove(call);
        } else if let EngineInput::Returned { call, .. } = input {
            self.running.remove(call);
        }
    }

    /// Records the end of the process, so that readers of the file know it. A session without a file has nothing to
    /// record, and without the record the session only looks idle.
    fn record_end(&mut self, code: u8) {
        if self.session.path().exists() {
            let stamp = Stamp { now_ms: self.clock.now().wall_ms, random: self.clock.random() };
            let _ = self.session.append(ProcessEnded { code }.to_entry(), stamp);
        }
    }

    /// Ends the turn and waits for the tools.
    fn close(&mut self) {
        self.step(EngineInput::Stop);
        if let Some(alarm) = self.alarm.take() {
            alarm.abort();
        }
        let running = std::mem::take(&mut self.running);
        for call in running.keys() {
            self.tools.cancel(*call);
        }
        let ended = async {
            for (_, task) in running {
                // It ended, successfully or not.
                let _ = task.await;
            }
        };
        // Tools still running afterwards end with this process.
        let _ = self.runtime.block_on(async { tokio::time::timeout(CLOSING, ended).await });
    }
}

/// Reports to the session's thread. Returns whether it still exists.
async fn report(inbox: &mpsc::WeakSender<DriverMessage>, input: EngineInput) -> bool {
    match inbox.upgrade() {
        Some(inbox) => inbox.send(DriverMessage::Input(input)).await.is_ok(),
        None => false,
    }
}

fn failed(text: &str) -> CallOutput {
    let content = vec![Json::from(Object::new().with("type", "text").with("text", text))];
    CallOutput { content, is_error: true, details: None }
}
