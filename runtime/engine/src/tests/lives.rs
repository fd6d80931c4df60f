//! Scripted lives.

use super::world::*;
use crate::{entries::*, *};

#[test]
fn a_turn_of_text_is_written_before_anything_is_sent() {
    let mut world = World::new();
    assert!(world.file().is_empty());
    world.prompt("p1", "hello");
    assert_eq!(world.requests_sent, 1);
    assert_eq!(world.state.activity(), EngineActivity::Waiting);
    world.answer([AnswerEvent::Began { model: "m1-2026".to_owned() }, AnswerEvent::Text("he".to_owned())]);
    assert_eq!(world.state.activity(), EngineActivity::Streaming);
    world.say("hello you");
    assert_eq!(world.state.activity(), EngineActivity::Idle);
    assert_eq!(world.talk(), ["u hello", "a hello you"]);
    assert_eq!(world.outcomes(), [TurnOutcome::Done]);
    assert_eq!(world.message_outcomes("p1"), ["landed"]);
    let answer = world.tree().leaf_path().into_iter().find(|entry| entry.role() == Some("assistant")).unwrap();
    let answer = answer.message().unwrap();
    assert_eq!(answer.text("model"), Some("m1"));
    assert_eq!(answer.text("responseModel"), Some("m1-2026"));
    assert_eq!(answer.text("stopReason"), Some("stop"));
    world.check_prefixes();
}

#[test]
fn reads_run_at_once_and_writers_one_by_one_in_the_order_of_the_model() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.want(&[("a", "read", "1"), ("b", "read", "2"), ("c", "write", "3"), ("d", "bash", "4"), ("e", "read", "5")]);
    world.inspect_all();
    assert_eq!(world.asked.len(), 2);
    world.decide_all(&allow());
    assert_eq!(world.running.len(), 2);
    // The second ends first; its result waits for the first.
    let (first, second) = (world.running[0].clone(), world.running[1].clone());
    world.running.clear();
    world.give(EngineInput::Returned { call: second.call, result: text_result("two") });
    assert_eq!(world.talk().last().unwrap(), "a <read><read><write><bash><read>");
    assert!(world.asked.is_empty(), "the writer waits for both");
    world.give(EngineInput::Returned { call: first.call, result: text_result("one") });
    assert_eq!(world.asked.len(), 1);
    assert_eq!(world.asked[0].call.tool, "write");
    world.decide_all(&allow());
    world.return_all("three");
    assert_eq!(world.asked[0].call.tool, "bash");
    world.decide_all(&allow());
    assert_eq!(world.running.len(), 1);
    world.return_all("four");
    world.run_calls("five");
    assert_eq!(world.talk()[2..], ["t one", "t two", "t three", "t four", "t five"]);
    world.say("done");
    assert_eq!(world.outcomes(), [TurnOutcome::Done]);
    world.check_prefixes();
}

#[test]
fn at_most_eight_reads_run_at_once() {
    let mut world = World::new();
    world.prompt("p1", "go");
    let ids: Vec<String> = (0..12).map(|n| format!("c{n}")).collect();
    let calls: Vec<(&str, &str, &str)> = ids.iter().map(|id| (id.as_str(), "read", id.as_str())).collect();
    world.want(&calls);
    world.inspect_all();
    world.decide_all(&allow());
    assert_eq!(world.running.len(), 8);
    let last = world.running.pop().unwrap();
    world.give(EngineInput::Returned { call: last.call, result: text_result("x") });
    assert_eq!(world.asked.len(), 1);
    world.run_calls("x");
    assert_eq!(world.ran.len(), 12);
}

#[test]
fn what_is_not_allowed_is_said_in_words_that_differ() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.want(&[("a", "bash", "1"), ("b", "bash", "2"), ("c", "ask", "3"), ("d", "ask", "4")]);
    world.inspect_all();
    let deny = CallDecision { verdict: CallVerdict::Deny, reason: Some("not here".to_owned()), ..allow() };
    world.decide_all(&deny);
    world.decide_all(&CallDecision { verdict: CallVerdict::Unanswered, ..allow() });
    world.decide_all(&CallDecision { answer: Some("blue".to_owned()), ..allow() });
    world.decide_all(&allow());
    let talk = world.talk();
    assert_eq!(talk[2], "t Permission denied: not here.");
    assert!(talk[3].contains("This is not a refusal."), "{}", talk[3]);
    assert_eq!(talk[4], "t blue");
    assert!(talk[5].contains("Nobody answered"), "{}", talk[5]);
    assert!(world.ran.is_empty());
    world.check_prefixes();
}

#[test]
fn arguments_that_were_allowed_are_those_that_run() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.want(&[("a", "bash", "git status")]);
    world.inspect_all();
    let arguments = session_tree::Object::new().with("argument", "git --no-pager status");
    world.decide_all(&CallDecision { arguments: Some(arguments), ..allow() });
    assert_eq!(world.running[0].arguments.text("argument"), Some("git --no-pager status"));
    let decided = world.tree().leaf_path().into_iter().find_map(Decided::of).unwrap();
    assert_eq!(decided.decision.arguments.unwrap().text("argument"), Some("git --no-pager status"));
}

#[test]
fn calls_that_cannot_be_run_get_a_result_all_the_same() {
    let mut world = World::new();
    world.prompt("p1", "go");
    let malformed = session_tree::Object::new()
        .with("type", "toolCall")
        .with("id", "a")
        .with("name", "bash")
        .with("arguments", session_tree::Object::new())
        .with("malformed", r#"{"command": "l"#);
    let more = (0..33).map(|n: u8| call_block("a", "read", &n.to_string()));
    let events = [AnswerEvent::Block(malformed)].into_iter().chain(more);
    world.answer(events.chain([AnswerEvent::Ended(AnswerEnd::ToolUse)]).collect::<Vec<_>>());
    // The second call has an error of its own.
    let second = world.inspected.remove(0);
    world.give(EngineInput::Inspected { call: second.call, facts: Err("unknown field `x`".to_owned()) });
    world.run_calls("ok");
    let talk = world.talk();
    assert!(talk[2].contains("not a JSON object"), "{}", talk[2]);
    assert_eq!(talk[3], "t unknown field `x`");
    assert_eq!(talk.iter().filter(|line| line.contains("may have 32 calls")).count(), 2);
    assert_eq!(world.requests_sent, 2, "the ids of the calls were told apart");
    world.check_prefixes();
}

#[test]
fn a_steer_lands_between_tools_and_what_waited_is_not_run() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.want(&[("a", "bash", "1"), ("b", "bash", "2")]);
    world.inspect_all();
    world.decide_all(&allow());
    let steer = UserMessage { origin: MessageOrigin::Monitor { finding: "f7".to_owned() }, ..person("s1", "stop it") };
    world.give(EngineInput::Queue { kind: QueueKind::Steer, message: steer });
    world.give(EngineInput::Queue { kind: QueueKind::FollowUp, message: person("f1", "and then") });
    assert_eq!(world.message_outcomes("s1"), ["queued"]);
    world.return_all("one");
    assert_eq!(world.ran.len(), 1);
    let talk = world.talk();
    assert_eq!(talk[3], "t Not run: a message of the user came first.");
    assert!(
        talk[4].starts_with("u [From the monitor because of finding f7; this is not the user's word.]"),
        "{talk:?}"
    );
    assert_eq!(world.message_outcomes("s1"), ["queued", "landed"]);
    world.say("ok");
    // The turn ended, and the next one begins with what was to follow.
    assert_eq!(world.outcomes(), [TurnOutcome::Done]);
    assert_eq!(world.message_outcomes("f1"), ["queued", "landed"]);
    world.say("then");
    assert_eq!(world.outcomes(), [TurnOutcome::Done; 2]);
    world.check_prefixes();
}

#[test]
fn a_steer_that_comes_with_the_last_answer_goes_on_with_the_turn() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.give(EngineInput::Queue { kind: QueueKind::Steer, message: person("s1", "also this") });
    world.say("done");
    assert_eq!(world.requests_sent, 2);
    assert!(world.outcomes().is_empty());
    world.say("this too");
    assert_eq!(world.talk(), ["u go", "a done", "u also this", "a this too"]);
    assert_eq!(world.outcomes(), [TurnOutcome::Done]);
}

#[test]
fn queued_messages_survive_a_crash_and_wait_for_a_person() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.give(EngineInput::Queue { kind: QueueKind::FollowUp, message: person("f1", "next") });
    world.give(EngineInput::Queue { kind: QueueKind::FollowUp, message: person("f2", "after") });
    world.give(EngineInput::Unqueue { id: Some("f2".to_owned()) });
    world.crash(None);
    world.pump();
    assert_eq!(world.outcomes(), [TurnOutcome::Interrupted]);
    assert_eq!(world.state.activity(), EngineActivity::Idle);
    assert_eq!(world.state.recorded().queue().count(), 1);
    world.give(EngineInput::Resume);
    assert_eq!(world.talk(), ["u go", "u next"]);
    assert_eq!(world.requests_sent, 2);
    world.check_prefixes();
}

#[test]
fn the_queue_has_limits_and_every_refusal_a_reason() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.give(EngineInput::Prompt(person("p2", "me too")));
    assert!(world.message_outcomes("p2")[0].starts_with("refused: a turn is running"));
    let long = "x".repeat(limits::QUEUED_BYTES + 1);
    world.give(EngineInput::Queue { kind: QueueKind::Steer, message: person("long", &long) });
    assert!(world.message_outcomes("long")[0].contains("the maximum is 65536"));
    for n in 0..limits::QUEUED_MESSAGES {
        world.give(EngineInput::Queue { kind: QueueKind::FollowUp, message: person(&format!("q{n}"), "x") });
    }
    world.give(EngineInput::Queue { kind: QueueKind::FollowUp, message: person("one more", "x") });
    assert!(world.message_outcomes("one more")[0].contains("the queue is full"));
    world.give(EngineInput::Unqueue { id: None });
    world.give(EngineInput::Queue { kind: QueueKind::FollowUp, message: person("q", "x") });
    world.give(EngineInput::Queue { kind: QueueKind::FollowUp, message: person("q", "x") });
    assert!(world.message_outcomes("q")[1].contains("waits already"));
}

#[test]
fn an_abort_ends_everything_at_once_and_every_call_has_a_result() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.want(&[("a", "read", "1"), ("b", "read", "2"), ("c", "read", "3"), ("d", "bash", "4")]);
    world.inspect_all();
    let (first, second) = (world.asked[0].call.call, world.asked[1].call.call);
    world.give(EngineInput::Decided { call: first, decision: allow() });
    world.give(EngineInput::Decided { call: second, decision: allow() });
    world.give(EngineInput::Returned { call: second, result: text_result("two") });
    world.give(EngineInput::Abort);
    assert_eq!(world.state.activity(), EngineActivity::Idle);
    assert_eq!(world.killed, [first]);
    assert!(world.asked.iter().all(|asked| asked.call.call != CallId { index: 2, ..first }), "withdrawn");
    assert_eq!(
        world.talk()[2..],
        [
            "t Aborted by the user.",
            "t two",
            "t Not run: aborted by the user before it was started.",
            "t Not run: aborted by the user before it was started."
        ]
    );
    assert_eq!(world.outcomes(), [TurnOutcome::Aborted]);
    // What comes too late is ignored.
    world.give(EngineInput::Returned { call: first, result: text_result("late") });
    world.prompt("p2", "again");
    world.say("ok");
    assert_eq!(world.outcomes(), [TurnOutcome::Aborted, TurnOutcome::Done]);
    world.check_prefixes();
}

#[test]
fn text_that_was_aborted_is_kept_and_not_sent_again() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.answer([text_block("whole"), call_block("a", "bash", "1"), AnswerEvent::Text("half".to_owned())]);
    world.give(EngineInput::Abort);
    assert_eq!(world.talk(), ["u go", "a whole half"]);
    world.prompt("p2", "again");
    let sent: Vec<String> = wire::outline(world.tree()).messages.iter().map(|m| m.message.to_text()).collect();
    assert!(sent.iter().all(|message| !message.contains("half")), "{sent:?}");
}

#[test]
fn a_broken_stream_is_repeated_with_another_number() {
    let mut world = World::new();
    world.prompt("p1", "go");
    let failure = |kind| {
        AnswerEvent::Failed(AnswerFailure {
            kind,
            retry_after_ms: None,
            should_retry: None,
            message: "broke".to_owned(),
        })
    };
    world.answer([AnswerEvent::Text("half".to_owned()), failure(FailureKind::Network)]);
    assert!(matches!(world.state.activity(), EngineActivity::Retrying { .. }));
    let stale = RequestNumber(1);
    world.tick(60_000);
    assert_eq!(world.sent, [RequestNumber(2)]);
    // The first stream speaks again.
    world.give(EngineInput::Streamed { request: stale, event: text_block("ghost") });
    world.give(EngineInput::Streamed { request: stale, event: AnswerEvent::Ended(AnswerEnd::Stop) });
    world.say("whole");
    assert_eq!(world.talk(), ["u go", "a half", "a whole"]);
    let records: Vec<RequestRecord> = world.tree().leaf_path().into_iter().filter_map(RequestRecord::of).collect();
    assert_eq!(records.len(), 4);
    assert!(matches!(&records[1], RequestRecord::Ended(e) if e.failure == Some(FailureKind::Network)));
    assert!(matches!(&records[2], RequestRecord::Sent(sent) if sent.retries == 1));
    world.check_prefixes();
}

#[test]
fn failures_that_do_not_pass_end_the_turn_with_the_reason() {
    let mut world = World::new();
    world.prompt("p1", "go");
    let message = "set ANTHROPIC_API_KEY".to_owned();
    let failure =
        AnswerFailure { kind: FailureKind::Auth, retry_after_ms: None, should_retry: None, message: message.clone() };
    world.answer([AnswerEvent::Failed(failure)]);
    assert_eq!(world.outcomes(), [TurnOutcome::Failed]);
    let ended = world.tree().leaf_path().into_iter().find_map(TaskEnded::of).unwrap();
    assert_eq!(ended.error, Some(message));
    let failure = AnswerFailure {
        kind: FailureKind::Stalled,
        retry_after_ms: None,
        should_retry: None,
        message: "silent for 60 s".to_owned(),
    };
    world.prompt("p2", "again");
    for _ in 0..=limits::STALL_RETRIES {
        assert!(world.outcomes().len() == 1);
        world.answer([AnswerEvent::Failed(failure.clone())]);
        world.tick(60_000);
    }
    assert_eq!(world.outcomes(), [TurnOutcome::Failed; 2]);
}

#[test]
fn a_long_wait_that_a_provider_asks_for_is_a_pause_that_ends_by_itself() {
    let mut world = World::new();
    world.prompt("p1", "go");
    let wait_ms = limits::RETRY_AFTER_MS * 3;
    let failure = AnswerFailure {
        kind: FailureKind::Quota,
        retry_after_ms: Some(wait_ms),
        should_retry: None,
        message: "quota".to_owned(),
    };
    world.answer([AnswerEvent::Failed(failure)]);
    assert_eq!(world.state.activity(), EngineActivity::Paused(PauseReason::Quota));
    world.tick(1000);
    assert_eq!(world.requests_sent, 1);
    assert!(world.alarm.is_some_and(|alarm| alarm >= wait_ms));
    world.tick(wait_ms);
    assert_eq!(world.requests_sent, 2);
    world.say("ok");
    world.check_prefixes();
}

#[test]
fn an_empty_answer_is_asked_for_again_once() {
    let mut world = World::new();
    let empty = || {
        let thought = session_tree::Object::new().with("type", "thinking").with("thinking", "hm");
        [AnswerEvent::Block(thought), AnswerEvent::Ended(AnswerEnd::Stop)]
    };
    world.prompt("p1", "go");
    world.answer(empty());
    assert_eq!(world.requests_sent, 2);
    world.answer(empty());
    assert_eq!(world.outcomes(), [TurnOutcome::Empty]);
    // The next turn has its own.
    world.prompt("p2", "go");
    world.answer(empty());
    world.say("here");
    assert_eq!(world.outcomes(), [TurnOutcome::Empty, TurnOutcome::Done]);
    world.check_prefixes();
}

#[test]
fn calls_that_repeat_are_noted_and_then_paused() {
    let mut world = World::new();
    world.prompt("p1", "go");
    for n in 1..=5 {
        world.want(&[("c", "bash", "make")]);
        world.run_calls(&format!("failed after {n}.{n} s"));
    }
    assert_eq!(world.state.activity(), EngineActivity::Paused(PauseReason::Loop));
    let results: Vec<String> = world.talk().into_iter().filter(|line| line.starts_with('t')).collect();
    assert!(results[2].contains("made 3 times"), "{}", results[2]);
    assert!(results.iter().enumerate().all(|(n, line)| n == 2 || !line.contains("times")));
    world.give(EngineInput::Queue { kind: QueueKind::Steer, message: person("s1", "look at the log") });
    world.give(EngineInput::Resume);
    world.say("the log says");
    assert_eq!(world.outcomes(), [TurnOutcome::Done]);
    world.check_prefixes();
}

#[test]
fn a_pause_stops_before_the_next_call_and_goes_on_there() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.want(&[("a", "bash", "1"), ("b", "bash", "2")]);
    world.inspect_all();
    world.decide_all(&allow());
    world.give(EngineInput::Pause);
    assert_eq!(world.state.activity(), EngineActivity::Running);
    world.return_all("one");
    assert_eq!(world.state.activity(), EngineActivity::Paused(PauseReason::Requested));
    assert!(world.asked.is_empty());
    world.prompt("p2", "hello?");
    assert!(world.message_outcomes("p2")[0].contains("paused"));
    world.give(EngineInput::Resume);
    world.run_calls("two");
    world.say("done");
    assert_eq!(world.talk()[2..4], ["t one", "t two"]);
    assert_eq!(world.outcomes(), [TurnOutcome::Done]);
    world.check_prefixes();
}

#[test]
fn limits_pause_before_the_request_that_would_exceed_them() {
    let check = |limits: SpendLimits, why: PauseReason| {
        let mut world = World::with(EngineSetup { limits, ..setup() });
        world.prompt("p1", "go");
        for n in 0..4 {
            if world.sent.is_empty() {
                break;
            }
            world.want(&[("a", "bash", &n.to_string())]);
            world.now.mono_ms += 1000;
            world.run_calls("ok");
        }
        assert_eq!(world.state.activity(), EngineActivity::Paused(why), "{limits:?}");
        let sent = world.requests_sent;
        world.give(EngineInput::Resume);
        assert_eq!(world.state.activity(), EngineActivity::Paused(why), "the limit is still reached");
        assert_eq!(world.requests_sent, sent);
        world.give(EngineInput::SetLimits { limits: SpendLimits::default(), by: "ann".to_owned() });
        world.give(EngineInput::Resume);
        assert_eq!(world.requests_sent, sent + 1);
        world.check_prefixes();
        sent
    };
    let none = SpendLimits::default();
    assert_eq!(check(SpendLimits { tokens: Some(20), ..none }, PauseReason::TokenLimit), 2);
    assert_eq!(check(SpendLimits { cost_nano_usd: Some(2500), ..none }, PauseReason::CostLimit), 3);
    assert_eq!(check(SpendLimits { wall_ms: Some(1500), ..none }, PauseReason::TimeLimit), 2);
    assert_eq!(check(SpendLimits { calls: Some(2), ..none }, PauseReason::CallLimit), 2);
}

#[test]
fn a_limit_of_costs_needs_a_price() {
    let mut world = World::with(EngineSetup {
        limits: SpendLimits { cost_nano_usd: Some(1), ..SpendLimits::default() },
        model: ModelChoice { is_priced: false, ..model("m1") },
        ..setup()
    });
    world.prompt("p1", "go");
    assert_eq!(world.state.activity(), EngineActivity::Paused(PauseReason::PriceUnknown));
    assert_eq!(world.requests_sent, 0);
}

#[test]
fn a_stream_ends_when_the_time_is_up() {
    let limits = SpendLimits { wall_ms: Some(5000), ..SpendLimits::default() };
    let mut world = World::with(EngineSetup { limits, ..setup() });
    world.prompt("p1", "go");
    world.answer([AnswerEvent::Text("half".to_owned())]);
    assert!(world.alarm.is_some_and(|alarm| alarm <= 5100), "{:?}", world.alarm);
    world.tick(5200);
    assert_eq!(world.state.activity(), EngineActivity::Paused(PauseReason::TimeLimit));
    assert!(world.sent.is_empty());
    assert_eq!(world.talk(), ["u go", "a half"]);
}

#[test]
fn the_mode_plan_denies_without_asking_and_auto_is_refused() {
    let mut world = World::new();
    let grant = ModeGrant { by: "ann".to_owned(), audit: Some(7) };
    world.give(EngineInput::SetMode { mode: SessionMode::Auto, grant: grant.clone() });
    world.give(EngineInput::SetMode {
        mode: SessionMode::AcceptEdits,
        grant: ModeGrant { by: " ".to_owned(), audit: None },
    });
    assert_eq!(world.refusals().len(), 2);
    assert!(world.refusals()[0].contains("needs a sandbox"), "{:?}", world.refusals());
    world.give(EngineInput::SetMode { mode: SessionMode::Plan, grant: grant.clone() });
    world.prompt("p1", "go");
    world.want(&[("a", "read", "1"), ("b", "write", "2"), ("c", "bash", "3"), ("d", "read", "4")]);
    world.run_calls("ok");
    assert_eq!(world.ran.len(), 2);
    assert!(world.talk()[3].contains("mode `plan`"), "{:?}", world.talk());
    world.say("planned");
    world.give(EngineInput::SetMode { mode: SessionMode::AcceptEdits, grant });
    world.prompt("p2", "go");
    world.want(&[("a", "write", "2")]);
    world.inspect_all();
    // It is asked all the same: the grant is the broker's.
    assert_eq!(world.asked[0].mode, SessionMode::AcceptEdits);
    // A grant ends with the process.
    world.crash(None);
    world.pump();
    assert_eq!(world.state.recorded().mode(), SessionMode::Ask);
    world.check_prefixes();
}

#[test]
fn what_is_not_built_yet_is_refused() {
    let mut world = World::new();
    for input in [EngineInput::Compact, EngineInput::Undo, EngineInput::Redo] {
        world.give(input);
    }
    assert_eq!(world.refusals().len(), 3);
    assert!(world.refusals().iter().all(|reason| reason.ends_with("not available yet")));
    assert_eq!(world.state.activity(), EngineActivity::Idle);
}

#[test]
fn a_full_disk_stops_before_the_effect_and_goes_on_by_itself() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.want(&[("a", "bash", "1")]);
    world.inspect_all();
    world.is_disk_full = true;
    world.decide_all(&allow());
    assert!(world.running.is_empty() && world.ran.is_empty());
    assert!(world.frames.iter().any(|f| matches!(f, RuntimeFrame::DiskTrouble { error: Some(_) })));
    world.tick(6000);
    assert!(world.ran.is_empty());
    world.is_disk_full = false;
    world.tick(6000);
    assert_eq!(world.running.len(), 1);
    assert!(matches!(
        world.frames.iter().rev().find(|f| matches!(f, RuntimeFrame::DiskTrouble { .. })),
        Some(RuntimeFrame::DiskTrouble { error: None })
    ));
    world.return_all("ok");
    world.say("done");
    assert_eq!(world.outcomes(), [TurnOutcome::Done]);
    world.check_prefixes();
}

#[test]
fn the_context_is_written_once_a_day_and_for_each_model() {
    let mut world = World::new();
    let contexts = |world: &World| {
        let is_one = |entry: &&session_tree::Entry| entry.fields().text("customType") == Some(CONTEXT_TYPE);
        world.tree().entries().iter().filter(is_one).count()
    };
    world.prompt("p1", "go");
    world.say("ok");
    world.prompt("p2", "go");
    world.say("ok");
    assert_eq!(contexts(&world), 1);
    world.give(EngineInput::Facts(facts("2026-11-24")));
    world.prompt("p3", "go");
    assert_eq!(contexts(&world), 2);
    // In the middle of a turn it stands before the next request.
    world.give(EngineInput::SetModel(model("m2")));
    world.want(&[("a", "read", "1")]);
    world.run_calls("ok");
    assert_eq!(contexts(&world), 3);
    world.say("ok");
    let answer = world.tree().leaf_path().into_iter().rev().find(|e| e.role() == Some("assistant")).unwrap();
    assert_eq!(answer.message().unwrap().text("model"), Some("m2"));
    world.check_prefixes();
}

#[test]
fn the_prefix_is_that_of_the_version_that_began_the_session() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.say("ok");
    let (system, tools) = (world.setup.system.clone(), world.setup.tools.clone());
    world.setup.system = "Another one.".to_owned();
    world.setup.tools = Vec::new();
    world.setup.version = "2.0.0".to_owned();
    world.crash(None);
    world.setup.tools.clone_from(&tools);
    world.prompt("p2", "go");
    let outline = wire::outline(world.tree());
    assert_eq!((outline.system, outline.tools), (system, tools));
    assert_eq!(world.tree().entries().iter().filter_map(Frozen::of).count(), 1);
}

#[test]
fn what_was_running_when_the_process_died_is_never_run_again() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.want(&[("a", "read", "1"), ("b", "bash", "2"), ("c", "bash", "3")]);
    world.inspect_all();
    world.decide_all(&allow());
    world.return_all("one");
    world.decide_all(&allow());
    assert_eq!(world.running[0].tool, "bash");
    world.crash(None);
    world.pump();
    assert_eq!(
        world.talk()[2..],
        [
            "t one",
            "t Interrupted; it may have taken effect. Files changed since: src/a.rs.",
            "t Not run: interrupted before it was started."
        ]
    );
    assert_eq!(world.outcomes(), [TurnOutcome::Interrupted]);
    let reopened = world.tree().entries().iter().find_map(Reopened::of).unwrap();
    assert_eq!((reopened.interrupted.len(), reopened.not_run.len()), (1, 1));
    world.prompt("p2", "go on");
    world.say("ok");
    assert_eq!(world.ran.len(), 2);
    world.check_prefixes();
}

#[test]
fn an_answer_that_was_complete_ends_its_turn_after_a_crash() {
    let mut world = World::new();
    world.prompt("p1", "go");
    let request = world.sent[0];
    world.give(EngineInput::Streamed { request, event: text_block("done") });
    world.input(EngineInput::Streamed { request, event: AnswerEvent::Ended(AnswerEnd::Stop) });
    // The answer is written, the end of the turn is not.
    assert!(world.perform_next() && world.perform_next());
    world.crash(None);
    world.pump();
    assert_eq!(world.outcomes(), [TurnOutcome::Done]);
}

#[test]
fn every_request_is_a_row_with_what_was_foreseen_and_what_came() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.answer([call_block("a", "read", "1"), usage(10, 0, 90), AnswerEvent::Ended(AnswerEnd::ToolUse)]);
    world.run_calls("ok");
    world.answer([text_block("done"), usage(10, 90, 0), AnswerEvent::Ended(AnswerEnd::Stop)]);
    world.prompt("p2", "go");
    world.crash(None);
    let rows = cache::requests(world.tree());
    let told: Vec<_> = rows.iter().map(|row| (row.n.0, row.predicted.read, row.usage.map(|u| u.cache_read))).collect();
    assert_eq!(told, [(1, 0, Some(0)), (2, 90, Some(90)), (3, 90, None)]);
    assert_eq!(cache::hit_rate(&rows), Some(0.45));
    assert_eq!(cache::hit_rate(&[]), None);
}

#[test]
fn a_disk_that_is_full_at_any_entry_stops_what_would_follow_from_it() {
    let (mut stopped, mut entries) = (0, 0);
    for fit in 0..40 {
        let mut world = World::new();
        world.fit = Some(fit);
        let free = |world: &mut World| {
            if world.is_disk_full {
                // What was told before is all that happened.
                world.tick(6000);
                world.is_disk_full = false;
                world.tick(6000);
            }
        };
        world.prompt("p1", "go");
        free(&mut world);
        world.want(&[("a", "read", "1"), ("b", "bash", "2"), ("c", "ask", "3")]);
        for _ in 0..10 {
            free(&mut world);
            world.inspect_all();
            free(&mut world);
            world.decide_all(&CallDecision { answer: Some("yes".to_owned()), ..allow() });
            free(&mut world);
            world.return_all("ok");
        }
        free(&mut world);
        world.say("done");
        free(&mut world);
        assert_eq!(world.outcomes(), [TurnOutcome::Done], "full at entry {fit}");
        assert_eq!(world.ran.len(), 2);
        stopped += usize::from(world.frames.iter().any(|f| matches!(f, RuntimeFrame::DiskTrouble { error: Some(_) })));
        world.check_prefixes();
        entries = world.tree().entries().len();
    }
    // The last life had room for all.
    assert_eq!(stopped, entries);
}
