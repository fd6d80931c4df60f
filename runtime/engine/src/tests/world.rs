//! An executor in virtual time: it performs the machine's effects and checks each law at every step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use session_tree::{Json, Object, Session, SessionDocument, Stamp, Tree};

use crate::{
    cache::{BlockDigest, BlockOrigin, CacheRules, RequestDigest},
    entries::{Asked, RequestRecord, RuntimeEntry, Started},
    *,
};

/// The system prompt of all test sessions.
pub(super) const SYSTEM: &str = "You are an agent.";

/// A session with its file, the machine, and everything external that the machine can wait for.
pub(super) struct World {
    dir: tempfile::TempDir,
    pub(super) state: EngineState,
    session: Option<Session>,
    pub(super) now: StepTime,
    stamps: u128,
    effects: VecDeque<Effect>,
    /// Requests that were sent and have not ended.
    pub(super) sent: Vec<RequestNumber>,
    pub(super) prepared: Vec<RequestNumber>,
    /// The plans of all requests.
    pub(super) plans: Vec<RequestPlan>,
    pub(super) inspected: Vec<CallRun>,
    pub(super) asked: Vec<AskedPermission>,
    pub(super) running: Vec<CallRun>,
    pub(super) killed: Vec<CallId>,
    pub(super) frames: Vec<RuntimeFrame>,
    /// Whether the disk is full.
    pub(super) is_disk_full: bool,
    /// Whether another program modifies the file when the disk is full.
    pub(super) is_file_touched: bool,
    /// Number of entries that fit on the disk.
    pub(super) fit: Option<usize>,
    /// The recorded state after each entry.
    pub(super) snapshots: Vec<RecordedSession>,
    /// Every call that was ever run, over all restarts.
    pub(super) ran: Vec<(CallId, String)>,
    /// The messages of the last request that was sent.
    last_messages: Vec<String>,
    pub(super) requests_sent: usize,
    pub(super) alarm: Option<u64>,
    pub(super) setup: EngineSetup,
}

pub(super) fn model(id: &str) -> ModelChoice {
    ModelChoice {
        provider: "scripted".to_owned(),
        id: id.to_owned(),
        api: "anthropic-messages".to_owned(),
        thinking: "off".to_owned(),
        // So small that the second model compacts again and again.
        window: (id == "m2").then_some(40),
        cache: CacheRules::Markers { lookback: 20, min_tokens: 10, ttl_ms: 300_000, long_ttl_ms: 3_600_000 },
        is_priced: true,
    }
}

pub(super) fn setup() -> EngineSetup {
    let tool = |name: &str| {
        let parameters = Object::new().with("type", "object").with("properties", Object::new());
        Object::new().with("name", name).with("description", "A tool.").with("parameters", parameters)
    };
    EngineSetup {
        session: "session".to_owned(),
        version: "1.0.0".to_owned(),
        system: SYSTEM.to_owned(),
        tools: ["bash", "read", "write"].map(tool).to_vec(),
        model: model("m1"),
        limits: SpendLimits::default(),
        turns: TurnSettings::default(),
    }
}

pub(super) fn person(id: &str, text: &str) -> UserMessage {
    UserMessage { id: id.to_owned(), content: Json::from(text), origin: MessageOrigin::Person }
}

pub(super) fn facts(date: &str) -> SessionFacts {
    SessionFacts { date: date.to_owned(), cwd: "/w".to_owned(), ..SessionFacts::default() }
}

pub(super) fn allow() -> CallDecision {
    CallDecision {
        verdict: CallVerdict::Allow,
        by: "policy".to_owned(),
        rule: None,
        audit: None,
        reason: None,
        answer: None,
        arguments: None,
    }
}

pub(super) fn text_result(text: &str) -> CallOutput {
    let content = vec![Object::new().with("type", "text").with("text", text).into()];
    CallOutput { content, ..CallOutput::default() }
}

pub(super) fn text_block(text: &str) -> AnswerEvent {
    AnswerEvent::Block(Object::new().with("type", "text").with("text", text))
}

pub(super) fn call_block(id: &str, tool: &str, argument: &str) -> AnswerEvent {
    let arguments = Object::new().with("argument", argument);
    AnswerEvent::Block(
        Object::new().with("type", "toolCall").with("id", id).with("name", tool).with("arguments", arguments),
    )
}

pub(super) fn usage(input: u64, read: u64, write: u64) -> AnswerEvent {
    AnswerEvent::Usage(AnswerUsage {
        input,
        cache_read: read,
        cache_write_5m: write,
        output: 10,
        cost_nano_usd: Some(1000),
        ..AnswerUsage::default()
    })
}

/// The class of the tool with this name.
pub(super) fn class_of(tool: &str) -> CallClass {
    match tool {
        "read" => CallClass::Read,
        "write" => CallClass::Write,
        "ask" => CallClass::Question,
        _ => CallClass::Command,
    }
}

impl World {
    /// A new session whose machine is open.
    pub(super) fn new() -> Self {
        Self::with(setup())
    }

    pub(super) fn with(setup: EngineSetup) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let session = Session::create(dir.path(), "/w", None, Stamp { now_ms: 1_700_000_000_000, random: 1 });
        let mut world = Self {
            state: EngineState::new(setup.clone(), session.tree()),
            session: Some(session),
            dir,
            now: StepTime { wall_ms: 1_700_000_000_000, mono_ms: 0 },
            stamps: 1,
            effects: VecDeque::new(),
            sent: Vec::new(),
            prepared: Vec::new(),
            plans: Vec::new(),
            inspected: Vec::new(),
            asked: Vec::new(),
            running: Vec::new(),
            killed: Vec::new(),
            frames: Vec::new(),
            is_disk_full: false,
            is_file_touched: false,
            fit: None,
            snapshots: vec![RecordedSession::default()],
            ran: Vec::new(),
            last_messages: Vec::new(),
            requests_sent: 0,
            alarm: None,
            setup,
        };
        world.input(EngineInput::Facts(facts("2026-11-23")));
        world.input(EngineInput::Restored { changed: BTreeMap::new() });
        world.pump();
        world
    }

    pub(super) fn tree(&self) -> &Tree {
        self.session.as_ref().unwrap().tree()
    }

    /// The bytes of the session's file; empty if it does not exist.
    pub(super) fn file(&self) -> Vec<u8> {
        std::fs::read(self.session.as_ref().unwrap().path()).unwrap_or_default()
    }

    /// One step of the machine. Its effects are performed later.
    pub(super) fn input(&mut self, input: EngineInput) {
        self.now.mono_ms += 1;
        self.now.wall_ms += 1;
        let effects = step(&mut self.state, self.now, input);
        self.effects.extend(effects);
    }

    /// Performs a step and all effects that follow without further input.
    pub(super) fn give(&mut self, input: EngineInput) {
        self.input(input);
        self.pump();
    }

    /// Performs effects until none is left.
    pub(super) fn pump(&mut self) {
        while self.perform_next() {}
    }

    /// Performs the next effect.
    pub(super) fn perform_next(&mut self) -> bool {
        let Some(effect) = self.effects.pop_front() else { return false };
        match effect {
            Effect::Append(append) => self.append(append),
            Effect::Prepare(plan) => self.prepare(&plan),
            Effect::Send(request) => self.send(request),
            Effect::Cancel(request) => {
                self.sent.retain(|sent| *sent != request);
                self.prepared.retain(|prepared| *prepared != request);
            }
            Effect::Inspect(run) => self.inspected.push(run),
            Effect::Ask(asked) => {
                let named = |entry| Asked::of(entry).is_some_and(|entry| entry.call == asked.call.call);
                assert!(self.tree().entries().iter().any(named), "asked before it was written: {asked:?}");
                self.asked.push(*asked);
            }
            Effect::Withdraw(call) => self.asked.retain(|asked| asked.call.call != call),
            Effect::Run(run) => {
                let named = |entry| Started::of(entry).is_some_and(|entry| entry.call == run.call);
                assert!(self.tree().entries().iter().any(named), "run before it was written: {run:?}");
                self.ran.push((run.call, run.tool.clone()));
                self.running.push(run);
            }
            // Changes nothing, so it need not be recorded first.
            Effect::RunWithoutEffect(run) => self.running.push(run),
            Effect::Kill(call) => {
                self.killed.push(call);
                self.running.retain(|run| run.call != call);
            }
            Effect::Sleep { until_mono_ms } => self.alarm = Some(until_mono_ms),
            Effect::Tell(frame) => self.frames.push(frame),
        }
        true
    }

    fn append(&mut self, append: Append) {
        if self.fit.is_some_and(|fit| fit <= self.tree().entries().len()) {
            self.fit = None;
            self.is_disk_full = true;
        }
        if self.is_disk_full {
            self.effects.retain(|effect| !matches!(effect, Effect::Append(_)));
            let error = if self.is_file_touched { "changed by another program" } else { "disk full" };
            let may_pass = !self.is_file_touched;
            return self.input(EngineInput::AppendFailed { ticket: append.ticket, error: error.to_owned(), may_pass });
        }
        self.stamps += 1;
        let stamp = Stamp { now_ms: self.now.wall_ms, random: self.stamps };
        if matches!(append.entry, session_tree::NewEntry::Compaction(_)) {
            // It replaces the beginning of the history.
            self.last_messages.clear();
        }
        let entry = self.session.as_mut().unwrap().append(append.entry, stamp).unwrap().clone();
        self.input(EngineInput::Appended { ticket: append.ticket, entry: Box::new(entry) });
        self.snapshots.push(self.state.recorded().clone());
        assert_eq!(self.snapshots.len(), self.tree().entries().len() + 1);
    }

    fn prepare(&mut self, plan: &RequestPlan) {
        let digest = digest(&wire::outline_for(self.tree(), &plan.purpose));
        let cut = match &plan.purpose {
            RequestPurpose::Turn => None,
            RequestPurpose::Compaction(summary) => compaction::cut(self.tree(), summary.kept_tokens).map(Box::new),
        };
        self.plans.push(plan.clone());
        self.prepared.push(plan.request);
        self.input(EngineInput::Prepared { request: plan.request, digest, cut });
        self.prepared.retain(|request| *request != plan.request);
    }

    fn send(&mut self, request: RequestNumber) {
        let named = |entry| matches!(RequestRecord::of(entry), Some(RequestRecord::Sent(sent)) if sent.n == request);
        assert_eq!(self.tree().entries().iter().filter(|e| named(e)).count(), 1, "sent before it was written");
        self.check_request();
        self.requests_sent += 1;
        self.sent.push(request);
    }

    /// Checks that a provider would accept the request, and that it starts with the previous one.
    fn check_request(&mut self) {
        let outline = wire::outline(self.session.as_ref().unwrap().tree());
        assert_eq!(outline.system, SYSTEM);
        assert_eq!(outline.tools, self.setup.tools);
        let mut open: VecDeque<&str> = VecDeque::new();
        let mut known: BTreeSet<String> = BTreeSet::new();
        for message in &outline.messages {
            let text = message.message.to_text();
            assert!(!text.contains("is missing in the session's file"), "{text}");
            if message.message.text("role") == Some("toolResult") {
                assert_eq!(open.pop_front(), message.message.text("toolCallId"), "{text}");
                continue;
            }
            assert!(open.is_empty(), "calls without a result before {text}");
            let calls: Vec<&str> = recorded::calls_of(&message.message).filter_map(|call| call.text("id")).collect();
            assert!(calls.iter().all(|id| known.insert((*id).to_owned())), "an id comes twice: {text}");
            open.extend(calls);
        }
        assert!(open.is_empty());
        assert!(outline.markers.len() <= 3, "with the one of the system prompt at most four");
        let messages: Vec<String> = outline.messages.iter().map(|message| message.message.to_text()).collect();
        assert!(messages.starts_with(&self.last_messages), "history changed");
        self.last_messages = messages;
    }

    /// Ends the process like `kill -9` and reopens the session. With `torn`, the next entry was partially written, and
    /// `torn` determines how many of its bytes.
    pub(super) fn crash(&mut self, torn: Option<usize>) {
        let path = self.session.as_ref().unwrap().path().to_owned();
        let before = self.file();
        if let (Some(torn), Some(Effect::Append(append))) = (torn, self.effects.front().cloned())
            && !before.is_empty()
        {
            self.stamps += 1;
            let stamp = Stamp { now_ms: self.now.wall_ms, random: self.stamps };
            self.session.as_mut().unwrap().append(append.entry, stamp).unwrap();
            let all = self.file();
            // At most everything except the newline: the whole entry is there, but its append was not reported.
            let len = before.len() + torn % (all.len() - before.len());
            drop(self.session.take());
            std::fs::File::options().write(true).open(&path).unwrap().set_len(len as u64).unwrap();
        }
        drop(self.session.take());
        for list in [&mut self.sent, &mut self.prepared] {
            list.clear();
        }
        self.effects.clear();
        self.inspected.clear();
        self.asked.clear();
        self.running.clear();
        self.is_disk_full = false;
        self.stamps += 1;
        let stamp = Stamp { now_ms: self.now.wall_ms, random: self.stamps };
        let session = if path.exists() {
            Session::open(&path, "/w", stamp).unwrap()
        } else {
            // Nothing was written yet, so nothing is lost.
            self.last_messages.clear();
            Session::create(self.dir.path(), "/w", None, stamp)
        };
        self.state = EngineState::new(self.setup.clone(), session.tree());
        self.snapshots.truncate(session.tree().entries().len() + 1);
        if self.snapshots.len() <= session.tree().entries().len() {
            self.snapshots.push(self.state.recorded().clone());
        }
        assert_eq!(self.snapshots.last(), Some(self.state.recorded()), "read and lived differ");
        self.session = Some(session);
        let interrupted = self.state.interrupted_calls();
        let changed = interrupted.into_iter().map(|call| (call.call, vec!["src/a.rs".to_owned()])).collect();
        self.input(EngineInput::Facts(facts("2026-11-23")));
        self.input(EngineInput::Restored { changed });
    }

    /// Checks that every prefix of the file gives the state recorded when it was written.
    pub(super) fn check_prefixes(&self) {
        let file = self.file();
        let mut cuts: BTreeSet<usize> = (0..=file.len()).filter(|at| *at == 0 || file[at - 1] == b'\n').collect();
        for (index, end) in cuts.clone().into_iter().enumerate() {
            // Inside the line that ends here, at positions that differ from line to line.
            cuts.extend([1, 7 + index * 13 % 90].iter().filter_map(|back| end.checked_sub(*back)));
        }
        for cut in cuts {
            let Ok(document) = SessionDocument::read(&file[..cut]) else { continue };
            let entries = document.entries.len();
            let read = RecordedSession::of(&Tree::from(document));
            assert_eq!(read, self.snapshots[entries], "cut at byte {cut} of {}", file.len());
        }
    }

    // Users, models and tools

    pub(super) fn prompt(&mut self, id: &str, text: &str) {
        self.give(EngineInput::Prompt(person(id, text)));
    }

    /// Answers the last request.
    pub(super) fn answer(&mut self, events: impl IntoIterator<Item = AnswerEvent>) {
        let request = *self.sent.last().expect("a request");
        for event in events {
            let ends = matches!(event, AnswerEvent::Ended(_) | AnswerEvent::Failed(_));
            if ends {
                self.sent.pop();
            }
            self.give(EngineInput::Streamed { request, event });
        }
    }

    /// Answers with a text.
    pub(super) fn say(&mut self, text: &str) {
        self.answer([text_block(text), usage(1, 0, 0), AnswerEvent::Ended(AnswerEnd::Stop)]);
    }

    /// Answers with calls.
    pub(super) fn want(&mut self, calls: &[(&str, &str, &str)]) {
        let calls = calls.iter().map(|(id, tool, argument)| call_block(id, tool, argument));
        let end = [usage(1, 0, 0), AnswerEvent::Ended(AnswerEnd::ToolUse)];
        self.answer(calls.chain(end).collect::<Vec<_>>());
    }

    /// Reports the facts of calls, derived from the names of their tools.
    pub(super) fn inspect_all(&mut self) {
        for run in std::mem::take(&mut self.inspected) {
            let facts = CallFacts { kind: class_of(&run.tool), cwd: "/w".to_owned(), ..CallFacts::default() };
            self.give(EngineInput::Inspected { call: run.call, facts: Ok(facts) });
        }
    }

    pub(super) fn decide_all(&mut self, decision: &CallDecision) {
        for asked in std::mem::take(&mut self.asked) {
            self.give(EngineInput::Decided { call: asked.call.call, decision: decision.clone() });
        }
    }

    pub(super) fn return_all(&mut self, text: &str) {
        for run in std::mem::take(&mut self.running) {
            self.give(EngineInput::Returned { call: run.call, result: text_result(text) });
        }
    }

    /// Allows and runs everything until the next request or the end of the turn.
    pub(super) fn run_calls(&mut self, text: &str) {
        for _ in 0..200 {
            if self.inspected.is_empty() && self.asked.is_empty() && self.running.is_empty() {
                return;
            }
            self.inspect_all();
            self.decide_all(&allow());
            self.return_all(text);
        }
        panic!("calls do not end");
    }

    pub(super) fn tick(&mut self, ms: u64) {
        self.now.mono_ms += ms;
        self.now.wall_ms += i64::try_from(ms).unwrap();
        self.give(EngineInput::Ticked);
    }

    /// The conversation in short form: a letter for the role, then the start of the text.
    pub(super) fn talk(&self) -> Vec<String> {
        let told = |message: &Object| {
            let role = &message.text("role")?[..1];
            let mut text = message.get("content").map(|c| session_tree::context::text_of(c, " ")).unwrap_or_default();
            for call in recorded::calls_of(message) {
                text += &format!("<{}>", call.text("name").unwrap_or_default());
            }
            (role != "s").then(|| format!("{role} {}", text.lines().next().unwrap_or_default()))
        };
        self.tree().leaf_path().iter().filter_map(|entry| entry.message()).filter_map(told).collect()
    }

    /// The outcomes of the turns.
    pub(super) fn outcomes(&self) -> Vec<TurnOutcome> {
        let ended = self.tree().leaf_path().into_iter().filter_map(entries::TaskEnded::of);
        ended.map(|ended| ended.outcome).collect()
    }

    /// The outcomes of a message, in order.
    pub(super) fn message_outcomes(&self, id: &str) -> Vec<String> {
        let of = |frame: &RuntimeFrame| match frame {
            RuntimeFrame::Message { id: told, outcome } if told == id => Some(match outcome {
                QueueOutcome::Queued => "queued".to_owned(),
                QueueOutcome::Landed { .. } => "landed".to_owned(),
                QueueOutcome::Withdrawn => "withdrawn".to_owned(),
                QueueOutcome::Refused { reason } => format!("refused: {reason}"),
            }),
            _ => None,
        };
        self.frames.iter().filter_map(of).collect()
    }

    pub(super) fn refusals(&self) -> Vec<String> {
        let of = |frame: &RuntimeFrame| match frame {
            RuntimeFrame::Refused { what, reason } => Some(format!("{what}: {reason}")),
            _ => None,
        };
        self.frames.iter().filter_map(of).collect()
    }
}

/// The blocks of a request in a wire format that does not join messages.
pub(super) fn digest(outline: &wire::WireOutline<'_>) -> RequestDigest {
    let tools: String = outline.tools.iter().map(Object::to_text).collect();
    let mut blocks = vec![
        BlockDigest::of(tools.as_bytes(), BlockOrigin::Tools),
        BlockDigest::of(outline.system.as_bytes(), BlockOrigin::System),
    ];
    blocks[1].is_marked = true;
    for (at, message) in outline.messages.iter().enumerate() {
        let content = message.message.get("content");
        let is_result = message.message.text("role") == Some("toolResult");
        let parts: Vec<String> = match content {
            Some(Json::Array(blocks)) if !is_result => blocks.iter().map(Json::to_text).collect(),
            other => other.map(Json::to_text).into_iter().collect(),
        };
        for (block, part) in parts.iter().enumerate() {
            let origin = BlockOrigin::Entry(message.entry.id().unwrap_or_default().to_owned());
            let mut digest = BlockDigest::of(part.as_bytes(), origin);
            digest.is_marked = outline.markers.contains(&wire::CacheMarker { message: at, block });
            blocks.push(digest);
        }
    }
    let order = outline.order.iter().map(|order| BlockDigest::of(order.to_text().as_bytes(), BlockOrigin::End));
    blocks.extend(order);
    RequestDigest { blocks }
}
