//! Scripted sessions: turns, calls, the queue, modes, stored data. Failures are tested in `setbacks`.

use super::world::*;
use crate::{entries::*, *};

#[test]
fn a_text_only_turn_is_recorded_and_ends_done() {
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
fn reads_run_concurrently_and_writes_one_at_a_time_in_order() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.want(&[("a", "read", "1"), ("b", "read", "2"), ("c", "write", "3"), ("d", "bash", "4"), ("e", "read", "5")]);
    world.inspect_all();
    assert_eq!(world.asked.len(), 2);
    world.decide_all(&allow());
    assert_eq!(world.running.len(), 2);
    // The second read ends first; its result waits for the first.
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
    world.inspect_all();
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
fn denied_and_unanswered_calls_get_distinct_result_texts() {
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
    assert!(talk[5].contains("was not answered in time"), "{}", talk[5]);
    assert!(world.ran.is_empty());
    world.check_prefixes();
}

#[test]
fn a_call_without_effect_is_answered_by_its_tool_and_never_run() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.want(&[("a", "write", "1"), ("b", "write", "2")]);
    world.inspect_all();
    world.decide_all(&CallDecision { verdict: CallVerdict::NoEffect, ..allow() });
    world.return_all("it changed since it was read");
    // The next call is inspected again, and the user is asked.
    world.run_calls("written");
    assert_eq!(world.talk()[2..4], ["t it changed since it was read", "t written"]);
    assert_eq!(world.ran.iter().map(|(call, _)| call.index).collect::<Vec<_>>(), [1]);
    world.check_prefixes();
}

#[test]
fn a_call_runs_with_the_arguments_of_its_decision() {
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
fn malformed_invalid_and_excess_calls_get_an_error_result() {
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
    // The second call has another error.
    let second = world.inspected.remove(0);
    world.give(EngineInput::Inspected { call: second.call, facts: Err("unknown field `x`".to_owned()) });
    world.run_calls("ok");
    let talk = world.talk();
    assert!(talk[2].contains("not a JSON object"), "{}", talk[2]);
    assert_eq!(talk[3], "t unknown field `x`");
    assert_eq!(talk.iter().filter(|line| line.contains("may have at most 32 calls")).count(), 2);
    assert_eq!(world.requests_sent, 2, "the ids of the calls were told apart");
    world.check_prefixes();
}

#[test]
fn later_calls_are_inspected_again_after_an_earlier_call_ran() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.want(&[("a", "bash", "touch x"), ("b", "read", "x"), ("c", "read", "y")]);
    let not_there = |world: &mut World| {
        let run = world.inspected.remove(0);
        world.give(EngineInput::Inspected { call: run.call, facts: Err("not there".to_owned()) });
    };
    world.inspected.rotate_left(1);
    not_there(&mut world);
    not_there(&mut world);
    world.inspect_all();
    world.decide_all(&allow());
    world.return_all("made");
    // Both reads are inspected again: one of them now finds its file.
    world.inspected.rotate_left(1);
    not_there(&mut world);
    world.inspect_all();
    world.decide_all(&allow());
    world.return_all("what is in x");
    let talk = world.talk();
    assert_eq!(talk[2..5], ["t made", "t what is in x", "t not there"], "{talk:?}");
    world.check_prefixes();
}

#[test]
fn a_steering_message_lands_between_calls_and_skips_waiting_ones() {
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
    assert_eq!(talk[3], "t Not run: a message from the user arrived first.");
    assert!(
        talk[4].starts_with("u [From the monitor because of finding f7; this is not the user's word.]"),
        "{talk:?}"
    );
    assert_eq!(world.message_outcomes("s1"), ["queued", "landed"]);
    world.say("ok");
    // The turn ended, and the next one starts with the follow-up.
    assert_eq!(world.outcomes(), [TurnOutcome::Done]);
    assert_eq!(world.message_outcomes("f1"), ["queued", "landed"]);
    world.say("then");
    assert_eq!(world.outcomes(), [TurnOutcome::Done; 2]);
    world.check_prefixes();
}

#[test]
fn a_steering_message_during_the_last_answer_extends_the_turn() {
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
fn queued_messages_survive_a_crash_and_wait_for_resume() {
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
fn the_queue_refuses_invalid_messages_with_a_reason() {
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
    assert!(world.message_outcomes("q")[1].contains("already waiting"));
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
    // A late result is ignored.
    world.give(EngineInput::Returned { call: first, result: text_result("late") });
    world.prompt("p2", "again");
    world.say("ok");
    assert_eq!(world.outcomes(), [TurnOutcome::Aborted, TurnOutcome::Done]);
    world.check_prefixes();
}

#[test]
fn an_answer_that_was_aborted_keeps_its_text_and_loses_its_calls() {
    let mut world = World::new();
    world.prompt("p1", "go");
    world.answer([text_block("whole"), call_block("a", "bash", "1"), AnswerEvent::Text("half".to_owned())]);
    world.give(EngineInput::Abort);
    assert_eq!(world.talk(), ["u go", "a whole half"]);
    world.prompt("p2", "again");
    let sent: Vec<String> = wire::outline(world.tree()).messages.iter().map(|m| m.message.to_text()).collect();
    assert!(sent.iter().any(|message| message.contains("half")), "{sent:?}");
    assert!(sent.iter().all(|message| !message.contains("toolCall")), "{sent:?}");
}

#[test]
fn a_pause_takes_effect_before_the_next_call_and_resume_continues() {
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
fn plan_mode_denies_writes_without_asking_and_auto_mode_is_refused() {
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
    // The user is still asked: the broker applies the grant.
    assert_eq!(world.asked[0].mode, SessionMode::AcceptEdits);
    // A grant ends with the process.
    world.crash(None);
    world.pump();
    assert_eq!(world.state.recorded().mode(), SessionMode::Ask);
    world.check_prefixes();
}

#[test]
fn undo_and_redo_are_refused_as_not_available() {
    let mut world = World::new();
    for input in [EngineInput::Undo, EngineInput::Redo] {
        world.give(input);
    }
    assert_eq!(world.refusals().len(), 2);
    assert!(world.refusals().iter().all(|reason| reason.ends_with("not implemented")));
    assert_eq!(world.state.activity(), EngineActivity::Idle);
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
    // In the middle of a turn, the context precedes the next request.
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
fn a_session_keeps_the_system_prompt_and_tools_it_began_with() {
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
fn every_request_records_predicted_and_actual_cache_reads() {
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
