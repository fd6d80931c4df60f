//! Sessions with scripted models, tools and decisions, on real threads and files.

use std::{
    collections::{HashSet, VecDeque},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use engine::{
    cache::{BlockDigest, BlockOrigin, CacheRules, RequestDigest},
    entries::{Reopened, RuntimeEntry, TaskEnded},
    *,
};
use session_tree::{Json, Object, Session, Stamp, Tree};
use tokio::runtime::{Builder, Runtime};

use crate::*;

/// A clock that advances with each reading, and numbers that are not random.
#[derive(Default)]
struct Clock(AtomicU64);

impl SessionClock for Clock {
    fn now(&self) -> StepTime {
        let ms = self.0.fetch_add(1, Ordering::Relaxed);
        StepTime { wall_ms: 1_700_000_000_000 + i64::try_from(ms).unwrap(), mono_ms: ms }
    }

    fn random(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// A list of answers. A request beyond it is never answered.
struct Script {
    answers: VecDeque<Vec<AnswerEvent>>,
    prepared: Option<RequestNumber>,
    /// The texts of each request.
    requests: Arc<Mutex<Vec<String>>>,
}

struct Events(VecDeque<AnswerEvent>);

impl AnswerSource for Script {
    fn prepare(&mut self, plan: &RequestPlan, tree: &Tree) -> Result<RequestDigest, PrepareFailure> {
        let outline = wire::outline(tree);
        let text: String = outline.messages.iter().map(|message| message.message.to_text()).collect();
        self.requests.lock().unwrap().push(text.clone());
        self.prepared = Some(plan.request);
        Ok(RequestDigest { blocks: vec![BlockDigest::of(text.as_bytes(), BlockOrigin::System)] })
    }

    fn send(&mut self, request: RequestNumber) -> Option<Box<dyn AnswerStream>> {
        self.prepared.take_if(|prepared| *prepared == request)?;
        Some(Box::new(Events(self.answers.pop_front().unwrap_or_default().into())))
    }
}

impl AnswerStream for Events {
    fn next(&mut self) -> BoxFuture<'_, Option<AnswerEvent>> {
        Box::pin(async {
            match self.0.pop_front() {
                Some(event) => Some(event),
                None => std::future::pending().await,
            }
        })
    }
}

/// Tools: `read` answers, `fail` panics, `hang` runs until it is cancelled, `broken` is refused.
#[derive(Default)]
struct Tools {
    cancelled: Mutex<HashSet<CallId>>,
    changed: Condvar,
    started: Mutex<Option<tokio::sync::oneshot::Sender<()>>>,
    /// A channel the next tool waits for.
    awaited: Mutex<Option<std::sync::mpsc::Receiver<()>>>,
}

impl ToolRunner for Tools {
    fn inspect(&self, run: &CallRun) -> Result<CallFacts, String> {
        let kind = match run.tool.as_str() {
            "read" => CallClass::Read,
            "ask" => CallClass::Question,
            "broken" => return Err("unknown field `x`".to_owned()),
            _ => CallClass::Command,
        };
        Ok(CallFacts { kind, cwd: "/w".to_owned(), ..CallFacts::default() })
    }

    fn run(&self, run: &CallRun) -> CallOutput {
        if let Some(started) = self.started.lock().unwrap().take() {
            started.send(()).unwrap();
        }
        if let Some(awaited) = self.awaited.lock().unwrap().take() {
            awaited.recv().unwrap();
        }
        match run.tool.as_str() {
            "fail" => panic!("a tool that fails"),
            "hang" => {
                let mut cancelled = self.cancelled.lock().unwrap();
                while !cancelled.contains(&run.call) {
                    cancelled = self.changed.wait(cancelled).unwrap();
                }
                CallOutput { content: text("ended"), is_error: true, details: None }
            }
            _ => CallOutput { content: text("content"), ..CallOutput::default() },
        }
    }

    fn run_without_effect(&self, _: &CallRun) -> CallOutput {
        CallOutput { content: text("nothing to do"), is_error: true, details: None }
    }

    fn cancel(&self, call: CallId) {
        self.cancelled.lock().unwrap().insert(call);
        self.changed.notify_all();
    }

    fn clean(&self, text: &str) -> String {
        text.replace("secret", "[masked]")
    }

    fn mask(&self, text: &str) -> (String, usize) {
        (text.replace("secret", "[masked]"), text.matches("secret").count())
    }
}

/// Allows everything, or never answers.
struct Broker {
    answers: bool,
    verdict: CallVerdict,
}

impl PermissionBroker for Broker {
    fn decide(&self, asked: AskedPermission) -> BoxFuture<'static, CallDecision> {
        let (answers, verdict) = (self.answers, self.verdict);
        Box::pin(async move {
            if !answers {
                std::future::pending::<()>().await;
            }
            CallDecision {
                verdict,
                by: "policy".to_owned(),
                rule: None,
                audit: None,
                reason: None,
                answer: (asked.facts.kind == CallClass::Question).then(|| "the secret".to_owned()),
                arguments: None,
            }
        })
    }
}

fn text(text: &str) -> Vec<Json> {
    vec![Object::new().with("type", "text").with("text", text).into()]
}

fn say(text: &str) -> Vec<AnswerEvent> {
    let block = Object::new().with("type", "text").with("text", text);
    vec![AnswerEvent::Text(text.to_owned()), AnswerEvent::Block(block), AnswerEvent::Ended(AnswerEnd::Stop)]
}

fn want(tools: &[&str]) -> Vec<AnswerEvent> {
    let call = |(n, tool): (usize, &&str)| {
        let call = Object::new().with("type", "toolCall").with("id", format!("c{n}")).with("name", *tool);
        AnswerEvent::Block(call.with("arguments", Object::new()))
    };
    tools.iter().enumerate().map(call).chain([AnswerEvent::Ended(AnswerEnd::ToolUse)]).collect()
}

/// A directory, a runtime, and the sessions in it.
struct House {
    dir: tempfile::TempDir,
    runtime: Runtime,
    requests: Arc<Mutex<Vec<String>>>,
    tools: Arc<Tools>,
    clock: Arc<Clock>,
    answers_questions: bool,
    limits: SpendLimits,
    verdict: CallVerdict,
}

impl House {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            runtime: Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap(),
            requests: Arc::default(),
            tools: Arc::default(),
            clock: Arc::default(),
            answers_questions: true,
            limits: SpendLimits::default(),
            verdict: CallVerdict::Allow,
        }
    }

    fn open(&self, answers: impl IntoIterator<Item = Vec<AnswerEvent>>) -> SessionHandle {
        let sessions = self.dir.path().join("sessions");
        let stamp = Stamp { now_ms: self.clock.now().wall_ms, random: self.clock.random() };
        let session = Session::continue_recent(&sessions, "/w", false, stamp).unwrap();
        let model = ModelChoice {
            window: None,
            provider: "scripted".to_owned(),
            id: "m".to_owned(),
            api: "anthropic-messages".to_owned(),
            thinking: "off".to_owned(),
            cache: CacheRules::None,
            is_priced: false,
        };
        let setup = EngineSetup {
            session: session.tree().header().id().to_owned(),
            version: "1".to_owned(),
            system: "be good".to_owned(),
            tools: Vec::new(),
            model,
            limits: self.limits,
            turns: TurnSettings::default(),
        };
        let parts = SessionParts {
            setup,
            session,
            facts: SessionFacts::default(),
            workspace: self.workspace(),
            answers: Box::new(Script {
                answers: answers.into_iter().collect(),
                prepared: None,
                requests: Arc::clone(&self.requests),
            }),
            tools: Arc::clone(&self.tools) as Arc<dyn ToolRunner>,
            broker: Arc::new(Broker { answers: self.answers_questions, verdict: self.verdict }),
            clock: Arc::clone(&self.clock) as Arc<dyn SessionClock>,
            masks_messages: true,
        };
        open(parts, self.runtime.handle()).unwrap()
    }

    fn workspace(&self) -> PathBuf {
        let workspace = self.dir.path().join("workspace");
        std::fs::create_dir_all(&workspace).unwrap();
        workspace
    }

    fn print(&self, session: &SessionHandle, format: PrintFormat) -> (String, PrintExit, Option<String>) {
        let mut out = Vec::new();
        let printed = print(
            session,
            prompt("p"),
            format,
            PrintStreams {
                out: &mut out,
                progress: None,
                clock: |_| String::new(),
                now: || 0,
                attempts: 13,
                gate: PrintGate::closed(),
            },
        );
        let (exit, message) = self.runtime.block_on(printed).unwrap();
        (String::from_utf8(out).unwrap(), exit, message)
    }

    /// Completes when the next tool runs.
    fn tool_started(&self) -> tokio::sync::oneshot::Receiver<()> {
        let (started, receiver) = tokio::sync::oneshot::channel();
        *self.tools.started.lock().unwrap() = Some(started);
        receiver
    }

    fn tree(&self) -> Tree {
        let file = std::fs::read_dir(self.dir.path().join("sessions")).unwrap().next().unwrap().unwrap();
        Session::read(&file.path()).unwrap().into()
    }
}

fn prompt(id: &str) -> UserMessage {
    UserMessage { id: id.to_owned(), content: Json::from("go"), origin: MessageOrigin::Person }
}

fn results(tree: &Tree) -> Vec<String> {
    let messages = tree.leaf_path().into_iter().filter_map(|entry| entry.message());
    let results = messages.filter(|message| message.text("role") == Some("toolResult"));
    results.map(|message| session_tree::context::text_of(message.get("content").unwrap(), "|")).collect()
}

#[test]
fn a_printed_prompt_runs_its_tools_and_outputs_the_answer() {
    let house = House::new();
    let session = house.open([want(&["read", "fail", "ask", "broken"]), say("done")]);
    let (out, exit, message) = house.print(&session, PrintFormat::Text);
    assert_eq!((out.as_str(), exit, message), ("done\n", PrintExit::Done, None));
    house.runtime.block_on(session.close());
    let tree = house.tree();
    assert_eq!(
        results(&tree),
        ["content", "The tool failed. It may have taken effect.", "the [masked]", "unknown field `x`"]
    );
    let ms = |entry: &session_tree::Entry| entry.message()?.get("details")?.as_object()?.get("ms")?.as_f64();
    assert_eq!(tree.entries().iter().filter_map(ms).count(), 2);
    assert_eq!(house.requests.lock().unwrap().len(), 2);
}

#[test]
fn json_lines_output_contains_all_updates_in_order() {
    let house = House::new();
    let session = house.open([want(&["read"]), say("done")]);
    let (out, exit, _) = house.print(&session, PrintFormat::JsonLines);
    assert_eq!(exit, PrintExit::Done);
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    let at = |name: &str| types.iter().position(|told| *told == name).unwrap_or_else(|| panic!("{name}: {types:?}"));
    assert!(at("turn_started") < at("call_started") && at("call_started") < at("call_ended"));
    assert!(at("text") < at("turn_ended") && !types.contains(&"skipped"));
    let entries = lines.iter().filter(|line| line["type"] == "entry").count();
    assert_eq!(entries, house.tree().entries().len());
    assert_eq!(lines[at("turn_ended")]["data"]["outcome"], "done");
}

#[test]
fn a_reached_limit_exits_print_with_code_3() {
    let mut house = House::new();
    house.limits = SpendLimits { calls: Some(1), ..SpendLimits::default() };
    let session = house.open([want(&["read"]), say("never")]);
    let (out, exit, message) = house.print(&session, PrintFormat::Text);
    assert_eq!((out.as_str(), exit.code()), ("", 3));
    assert_eq!(
        message.as_deref(),
        Some(
            "the limit of tool calls is reached; `capture agent run --continue` continues this session once the limit \
             is higher"
        )
    );
    house.runtime.block_on(session.close());
    let outcomes: Vec<_> = house.tree().entries().iter().filter_map(TaskEnded::of).map(|e| e.outcome).collect();
    assert_eq!(outcomes, [TurnOutcome::Interrupted]);
}

#[test]
fn a_refused_prompt_exits_with_the_reason() {
    let house = House::new();
    let session = house.open([]);
    let mut message = prompt("p");
    message.content = Json::from(" ");
    let mut out = Vec::new();
    let printed = print(
        &session,
        message,
        PrintFormat::Text,
        PrintStreams {
            out: &mut out,
            progress: None,
            clock: |_| String::new(),
            now: || 0,
            attempts: 13,
            gate: PrintGate::closed(),
        },
    );
    let (exit, message) = house.runtime.block_on(printed).unwrap();
    assert_eq!((exit.code(), message.as_deref()), (5, Some("the message is empty")));
}

#[test]
fn an_abort_ends_a_running_tool_and_a_pending_stream() {
    let house = House::new();
    let session = house.open([want(&["hang"])]);
    let started = house.tool_started();
    let report = house.runtime.block_on(async {
        let turn = session.prompt(prompt("p"));
        let abort = async {
            started.await.unwrap();
            session.input(EngineInput::Abort).await.unwrap();
        };
        tokio::join!(turn, abort).0.unwrap()
    });
    let aborted = |report: &TurnReport| matches!(report, TurnReport::Ended { outcome: TurnOutcome::Aborted, .. });
    assert!(aborted(&report), "{report:?}");
    assert_eq!(results(&house.tree()), ["Aborted by the user; it may have taken effect."]);
    // The next prompt is never answered.
    let mut updates = session.subscribe();
    let report = house.runtime.block_on(async {
        let turn = session.prompt(prompt("q"));
        let abort = async {
            let begins = |update| matches!(update, SessionUpdate::Frame(frame) if *frame == RuntimeFrame::TurnStarted);
            while !begins(updates.recv().await.unwrap()) {}
            session.input(EngineInput::Abort).await.unwrap();
        };
        tokio::join!(turn, abort).0.unwrap()
    });
    assert!(aborted(&report), "{report:?}");
}

#[test]
fn closing_a_session_ends_its_turn_and_releases_the_file() {
    let mut house = House::new();
    house.answers_questions = false;
    let session = house.open([want(&["read"])]);
    let mut updates = session.subscribe();
    house.runtime.block_on(async {
        let deciding = |update: &SessionUpdate| {
            let deciding = RuntimeFrame::Activity(EngineActivity::Deciding);
            matches!(update, SessionUpdate::Frame(frame) if **frame == deciding)
        };
        let wait = async { while !deciding(&updates.recv().await.unwrap()) {} };
        let turn = session.prompt(prompt("p"));
        tokio::select! {
            _ = turn => panic!("nobody decided"),
            () = wait => {}
        }
        let snapshot = session.snapshot().await.unwrap();
        assert_eq!((snapshot.activity, snapshot.mode), (EngineActivity::Deciding, SessionMode::Ask));
        session.close().await;
        assert_eq!(session.input(EngineInput::Pause).await, Err(SessionClosed));
    });
    assert_eq!(results(&house.tree()), ["Not run: interrupted before it was started."]);
    house.answers_questions = true;
    let again = house.open([say("back")]);
    assert_eq!(house.print(&again, PrintFormat::Text).0, "back\n");
}

#[test]
fn opening_a_killed_session_marks_its_interrupted_call() {
    let house = House::new();
    let sessions = house.dir.path().join("sessions");
    let session = house.open([want(&["hang"])]);
    let started = house.tool_started();
    house.runtime.block_on(async {
        let turn = session.prompt(prompt("p"));
        tokio::select! {
            _ = turn => panic!("the tool ended"),
            told = started => told.unwrap(),
        }
    });
    // Continues with a copy of the current file, since the process that writes it still runs.
    let file = std::fs::read_dir(&sessions).unwrap().next().unwrap().unwrap().path();
    let killed = House::new();
    let copy = killed.dir.path().join("sessions");
    std::fs::create_dir_all(&copy).unwrap();
    std::fs::copy(&file, copy.join(Path::new(file.file_name().unwrap()))).unwrap();
    std::fs::write(killed.workspace().join("half.txt"), "half").unwrap();
    let session = killed.open([say("I see")]);
    assert_eq!(killed.print(&session, PrintFormat::Text).0, "I see\n");
    let tree = killed.tree();
    assert_eq!(results(&tree), ["Interrupted; it may have taken effect. Files changed since: half.txt."]);
    assert_eq!(tree.entries().iter().filter_map(Reopened::of).count(), 1);
}

/// The file of the session; it must exist.
fn file_of(house: &House) -> PathBuf {
    let mut all = std::fs::read_dir(house.dir.path().join("sessions")).unwrap();
    all.next().unwrap().unwrap().path()
}

/// A modification of a session's file by another program.
type Touch = fn(&Path);

#[test]
fn a_session_file_changed_by_another_program_fails_with_its_name() {
    let appended: Touch = |path| std::io::Write::write_all(&mut appending(path), b"x").unwrap();
    let deleted: Touch = |path| std::fs::remove_file(path).unwrap();
    let truncated: Touch = |path| appending(path).set_len(40).unwrap();
    let replaced: Touch = |path| {
        let other = path.with_extension("other");
        std::fs::copy(path, &other).unwrap();
        std::fs::rename(other, path).unwrap();
    };
    let all =
        [(appended, "was changed"), (deleted, "was deleted"), (truncated, "was changed"), (replaced, "was changed")];
    for (touch, what) in all {
        let house = House::new();
        let session = house.open([want(&["hang"]), say("never")]);
        let started = house.tool_started();
        let (tools, handle) = (Arc::clone(&house.tools), session.clone());
        let (_, exit, message) = std::thread::scope(|scope| {
            scope.spawn(|| {
                started.blocking_recv().unwrap();
                touch(&file_of(&house));
                // The result of the call cannot be written.
                tools.cancel(CallId { request: RequestNumber(1), index: 0 });
            });
            house.print(&handle, PrintFormat::Text)
        });
        let message = message.unwrap();
        assert_eq!(exit, PrintExit::Failed, "{message}");
        // Without the file there is nothing to go on with.
        let way_on = if message.contains("deleted") { "look for the file" } else { "--continue" };
        assert!(message.contains(what) && message.contains(".jsonl") && message.contains(way_on), "{message}");
        // Further prompts are refused with the reason.
        let refused = house.runtime.block_on(session.prompt(prompt("q"))).unwrap();
        assert!(matches!(&refused, TurnReport::Refused(why) if why.contains(what)), "{refused:?}");
        house.runtime.block_on(session.close());
    }
}

fn appending(path: &Path) -> std::fs::File {
    std::fs::File::options().append(true).open(path).unwrap()
}

#[test]
fn an_abort_does_not_wait_for_a_file_that_cannot_be_written() {
    let house = House::new();
    let session = house.open([say("never")]);
    // A file is at the path of the sessions directory.
    std::fs::write(house.dir.path().join("sessions"), "").unwrap();
    let mut updates = session.subscribe();
    let report = house.runtime.block_on(async {
        let turn = session.prompt(prompt("p"));
        let aborting = async {
            loop {
                let Ok(SessionUpdate::Frame(frame)) = updates.recv().await else { continue };
                if matches!(&*frame, RuntimeFrame::DiskTrouble { error: Some(_) }) {
                    return session.input(EngineInput::Abort).await.unwrap();
                }
            }
        };
        tokio::join!(turn, aborting).0.unwrap()
    });
    let TurnReport::Ended { outcome: TurnOutcome::Aborted, error: Some(error), .. } = &report else {
        panic!("{report:?}")
    };
    assert!(error.contains("sessions") && error.contains("the session lacks"), "{error}");
    assert!(house.requests.lock().unwrap().is_empty());
    house.runtime.block_on(session.close());
}

#[test]
fn a_lost_session_file_ends_the_turn_for_subscribers() {
    let house = House::new();
    let started = house.tool_started();
    let session = house.open([want(&["hang"])]);
    let mut updates = session.subscribe();
    let tools = Arc::clone(&house.tools);
    let path = house.runtime.block_on(session.snapshot()).unwrap().path;
    let report = house.runtime.block_on(async {
        let touching = async {
            started.await.unwrap();
            std::io::Write::write_all(&mut appending(&path), b"x").unwrap();
            tools.cancel(CallId { request: RequestNumber(1), index: 0 });
        };
        tokio::join!(session.prompt(prompt("p")), touching).0.unwrap()
    });
    assert!(matches!(report, TurnReport::FileLost(_)), "{report:?}");
    let end = house.runtime.block_on(async {
        loop {
            if let SessionUpdate::Frame(frame) = updates.recv().await.unwrap()
                && let RuntimeFrame::TurnEnded { outcome, error: Some(error) } = &*frame
            {
                break (*outcome, error.contains(".jsonl"));
            }
        }
    });
    assert_eq!(end, (TurnOutcome::Failed, true));
    house.runtime.block_on(session.close());
}

#[test]
fn a_closed_stderr_does_not_end_the_turn() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
    }
    for detail in [PrintDetail::All, PrintDetail::Trouble] {
        let house = House::new();
        let session = house.open([want(&["read"]), say("Done.")]);
        let (mut out, mut closed) = (Vec::new(), Closed);
        let streams = PrintStreams {
            out: &mut out,
            progress: Some((&mut closed, detail)),
            clock: |_| String::new(),
            now: || 0,
            attempts: 13,
            gate: PrintGate::closed(),
        };
        let printed = print(&session, prompt("p"), PrintFormat::Text, streams);
        let (exit, message) = house.runtime.block_on(printed).unwrap();
        assert_eq!((exit, message), (PrintExit::Done, None));
        assert_eq!(String::from_utf8(out).unwrap(), "Done.\n");
    }
}

#[test]
fn a_turn_whose_calls_were_all_unanswered_exits_with_code_6() {
    let house = House { verdict: CallVerdict::Unanswered, ..House::new() };
    let session = house.open([want(&["read", "fail"]), say("I could not.")]);
    let (out, exit, message) = house.print(&session, PrintFormat::Text);
    assert_eq!((out.as_str(), exit.code()), ("I could not.\n", 6));
    assert!(message.unwrap().starts_with("all 2 calls of the model were skipped"));
}

#[test]
fn finish_reports_unawaited_turns_in_order() {
    let house = House::new();
    let session = house.open([say("First."), say("Second."), say("Third.")]);
    let texts = house.runtime.block_on(async {
        let mut updates = session.subscribe();
        let mut reports = vec![session.prompt(prompt("p")).await.unwrap()];
        for id in ["q", "r"] {
            let message = UserMessage { id: id.to_owned(), ..prompt(id) };
            session.input(EngineInput::Queue { kind: QueueKind::FollowUp, message }).await.unwrap();
        }
        let mut ended = 0;
        while ended < 3 {
            let SessionUpdate::Frame(frame) = updates.recv().await.unwrap() else { continue };
            ended += usize::from(matches!(*frame, RuntimeFrame::TurnEnded { .. }));
        }
        while let Some(report) = session.finish().await.unwrap() {
            reports.push(report);
        }
        let text = |report| {
            let TurnReport::Ended { text, .. } = report else { panic!("{report:?}") };
            text
        };
        reports.into_iter().map(text).collect::<Vec<_>>()
    });
    assert_eq!(texts, ["First.", "Second.", "Third."]);
}

#[test]
fn a_queued_message_is_answered_before_the_end_and_a_later_one_is_refused() {
    let house = House::new();
    let session = house.open([want(&["read"]), say("Done."), say("Then this.")]);
    let started = house.tool_started();
    let (release, awaited) = std::sync::mpsc::channel();
    *house.tools.awaited.lock().unwrap() = Some(awaited);
    let queued = session.clone();
    house.runtime.spawn(async move {
        started.await.unwrap();
        let message = UserMessage { id: "q".to_owned(), ..prompt("then") };
        queued.input(EngineInput::Queue { kind: QueueKind::FollowUp, message }).await.unwrap();
        release.send(()).unwrap();
    });
    let (out, exit, message) = house.print(&session, PrintFormat::Text);
    assert_eq!(out, "Done.\nThen this.\n");
    assert_eq!((exit, message), (PrintExit::Done, None));
    let mut updates = session.subscribe();
    let message = UserMessage { id: "late".to_owned(), ..prompt("late") };
    house.runtime.block_on(session.input(EngineInput::Queue { kind: QueueKind::Steer, message })).unwrap();
    let refused = house.runtime.block_on(updates.recv()).unwrap();
    let SessionUpdate::Frame(frame) = refused else { panic!("{refused:?}") };
    assert!(
        matches!(&*frame, RuntimeFrame::Message { id, outcome: QueueOutcome::Refused { .. } } if id == "late"),
        "{frame:?}"
    );
}
