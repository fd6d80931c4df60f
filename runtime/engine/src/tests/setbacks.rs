//! Failures: provider errors, repeated calls, limits, a full disk, a killed process.

use super::world::*;
use crate::{entries::*, *};

#[test]
fn a_broken_stream_is_retried_with_a_new_request_number() {
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
    // A late event of the first stream arrives.
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
fn permanent_failures_end_the_turn_with_the_reason() {
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
fn a_long_retry_delay_pauses_the_turn_and_resumes_automatically() {
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
fn an_empty_answer_is_retried_once_per_turn() {
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
    // The next turn has its own count.
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
fn different_calls_that_are_refused_in_the_same_words_are_not_a_loop() {
    let refusals: [fn(&mut World); 3] = [
        |world| world.decide_all(&CallDecision { verdict: CallVerdict::Deny, ..allow() }),
        |world| world.decide_all(&CallDecision { verdict: CallVerdict::Unanswered, ..allow() }),
        // The mode `plan` denies without asking.
        |_| {},
    ];
    for (at, refuse) in refusals.into_iter().enumerate() {
        let mut world = World::new();
        if at == 2 {
            let grant = ModeGrant { by: "ann".to_owned(), audit: None };
            world.give(EngineInput::SetMode { mode: SessionMode::Plan, grant });
        }
        world.prompt("p1", "go");
        for n in 0..50 {
            world.want(&[("c", "bash", &format!("touch f{n}"))]);
            world.inspect_all();
            refuse(&mut world);
        }
        world.say("I could not.");
        assert_eq!(world.outcomes(), [TurnOutcome::Done]);
        world.check_prefixes();
    }
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
fn a_cost_limit_without_a_price_pauses_before_the_first_request() {
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
fn a_full_disk_delays_the_next_effect_until_there_is_space() {
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
fn a_call_running_during_a_crash_is_never_run_again() {
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
fn a_turn_completes_after_a_full_disk_at_any_entry() {
    let (mut stopped, mut entries) = (0, 0);
    for fit in 0..40 {
        let mut world = World::new();
        world.fit = Some(fit);
        let free = |world: &mut World| {
            if world.is_disk_full {
                // Everything that happened was reported before.
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
    // In the last run, all entries fit.
    assert_eq!(stopped, entries);
}

#[test]
fn a_session_file_changed_by_another_program_ends_the_session() {
    // At any entry: before the message is in the file, while waiting for an answer, before and after a call.
    for fit in 0..24 {
        let mut world = World::new();
        world.fit = Some(fit);
        world.is_file_touched = true;
        world.prompt("p1", "go");
        if !world.sent.is_empty() {
            world.want(&[("a", "read", "1"), ("b", "bash", "2")]);
        }
        for _ in 0..4 {
            world.inspect_all();
            world.decide_all(&allow());
            world.return_all("ok");
        }
        if !world.sent.is_empty() {
            world.say("done");
        }
        let lost = world.frames.iter().filter(|f| matches!(f, RuntimeFrame::FileLost { .. })).count();
        if lost == 0 {
            assert_eq!(world.outcomes(), [TurnOutcome::Done]);
            continue;
        }
        assert_eq!(lost, 1, "said once");
        let has_begun = world.frames.iter().any(|f| matches!(f, RuntimeFrame::TurnStarted));
        let ends: Vec<&RuntimeFrame> =
            world.frames.iter().filter(|f| matches!(f, RuntimeFrame::TurnEnded { .. })).collect();
        assert_eq!(ends.len(), usize::from(has_begun), "fit {fit}: {ends:?}");
        assert!(
            ends.iter().all(|f| matches!(f, RuntimeFrame::TurnEnded { outcome: TurnOutcome::Failed, error: Some(_) }))
        );
        assert_eq!(world.state.activity(), EngineActivity::Idle);
        assert!(world.running.is_empty() && world.sent.is_empty() && world.asked.is_empty());
        let (sent, entries, ran) = (world.requests_sent, world.tree().entries().len(), world.ran.len());
        world.is_disk_full = false;
        world.prompt("p2", "go on");
        world.give(EngineInput::Resume);
        world.tick(60_000);
        assert!(world.message_outcomes("p2")[0].contains("changed by another program"), "fit {fit}");
        assert_eq!((world.requests_sent, world.tree().entries().len(), world.ran.len()), (sent, entries, ran));
    }
}

#[test]
fn an_abort_on_a_full_disk_is_reported_at_once_and_again_when_written() {
    // At any entry, also before the message is in the file.
    for fit in 0..20 {
        let mut world = World::new();
        world.fit = Some(fit);
        world.prompt("p1", "go");
        if !world.sent.is_empty() {
            world.want(&[("a", "read", "1"), ("b", "bash", "2")]);
        }
        for _ in 0..4 {
            world.inspect_all();
            world.decide_all(&allow());
            world.return_all("ok");
        }
        if !world.is_disk_full {
            break;
        }
        let ends = |world: &World| {
            let of = |frame: &RuntimeFrame| match frame {
                RuntimeFrame::TurnEnded { outcome, error } => Some((*outcome, error.is_some())),
                _ => None,
            };
            world.frames.iter().filter_map(of).collect::<Vec<_>>()
        };
        assert_eq!(ends(&world), [], "full at entry {fit}");
        world.give(EngineInput::Abort);
        world.give(EngineInput::Abort);
        assert_eq!(ends(&world), [(TurnOutcome::Aborted, true)], "full at entry {fit}");
        world.is_disk_full = false;
        world.tick(6000);
        assert_eq!(ends(&world)[1..], [(TurnOutcome::Aborted, false)], "full at entry {fit}");
        world.prompt("p2", "again");
        world.say("done");
        assert_eq!(ends(&world)[2..], [(TurnOutcome::Done, false)]);
        world.check_prefixes();
    }
}

#[test]
fn the_model_is_told_whether_the_user_or_a_shutdown_ended_its_answer() {
    for (input, outcome, remark) in [
        (EngineInput::Abort, TurnOutcome::Aborted, "The user interrupted"),
        (EngineInput::Stop, TurnOutcome::Interrupted, "session was closed"),
    ] {
        let mut world = World::new();
        world.prompt("p1", "explain");
        world.answer([AnswerEvent::Text("First".to_owned())]);
        world.give(input.clone());
        world.prompt("p2", "read");
        world.want(&[("a", "bash", "1")]);
        world.give(input);
        assert_eq!(world.outcomes(), [outcome; 2]);
        let sent: String = wire::outline(world.tree()).messages.iter().map(|m| m.message.to_text()).collect();
        assert!(sent.contains(remark), "{sent}");
        let names_user = sent.contains("The user interrupted") || sent.contains("aborted by the user");
        assert_eq!(names_user, outcome == TurnOutcome::Aborted, "{sent}");
    }
}

#[test]
fn the_pause_reason_of_a_long_retry_delay_follows_the_failure_kind() {
    for (kind, why) in [
        (FailureKind::Quota, PauseReason::Quota),
        (FailureKind::Rate, PauseReason::Quota),
        (FailureKind::Overloaded, PauseReason::Unavailable),
        (FailureKind::Network, PauseReason::Unavailable),
    ] {
        let mut world = World::new();
        world.prompt("p1", "go");
        let retry_after_ms = Some(limits::RETRY_AFTER_MS * 2);
        let failure = AnswerFailure { kind, retry_after_ms, should_retry: None, message: "later".to_owned() };
        world.answer([AnswerEvent::Failed(failure)]);
        assert_eq!(world.state.activity(), EngineActivity::Paused(why), "{kind:?}");
    }
}

#[test]
fn repeated_polling_is_slowed_down_and_never_paused() {
    let mut world = World::new();
    world.prompt("p1", "go");
    let poll = |world: &mut World| {
        let command = session_tree::Object::new().with("command", "sleep 30; gh run view 7");
        let call = session_tree::Object::new().with("type", "toolCall").with("id", "c").with("name", "bash");
        world.answer([AnswerEvent::Block(call.with("arguments", command)), AnswerEvent::Ended(AnswerEnd::ToolUse)]);
        world.inspect_all();
        world.decide_all(&allow());
        for run in std::mem::take(&mut world.running) {
            let details = Some(session_tree::Object::new().with("ms", 30_100_u64));
            world.give(EngineInput::Returned {
                call: run.call,
                result: CallOutput { details, ..text_result("queued") },
            });
        }
    };
    for _ in 0..4 {
        poll(&mut world);
        assert!(!world.sent.is_empty(), "no wait yet");
    }
    let mut waits = Vec::new();
    for _ in 5..=30 {
        poll(&mut world);
        assert!(world.sent.is_empty(), "the next request waits");
        let EngineActivity::Slowed { until_mono_ms, .. } = world.state.activity() else {
            panic!("{:?}", world.state.activity())
        };
        waits.push(until_mono_ms - world.now.mono_ms);
        assert_eq!(world.alarm, Some(until_mono_ms));
        world.tick(until_mono_ms - world.now.mono_ms);
    }
    assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]), "{waits:?}");
    assert!(waits[0] <= 1_000 && *waits.last().unwrap() > 50_000, "{waits:?}");
    let told = world.tree().leaf_path().into_iter().filter_map(|entry| entry.message());
    let told: Vec<String> =
        told.map(session_tree::Object::to_text).filter(|text| text.contains("after a wait")).collect();
    assert_eq!(told.len(), 26, "the model learns each wait");
    // Neither a user message nor an abort is delayed.
    poll(&mut world);
    world.give(EngineInput::Queue { kind: QueueKind::Steer, message: person("s1", "it is done") });
    assert_eq!(world.sent.len(), 1);
    poll(&mut world);
    world.say("done");
    assert_eq!(world.outcomes(), [TurnOutcome::Done]);
    world.check_prefixes();
}

#[test]
fn an_interrupted_answer_stays_in_the_history_with_a_note() {
    let mut world = World::new();
    world.prompt("p1", "explain");
    let thought = session_tree::Object::new().with("type", "thinking").with("thinking", "hm");
    world.answer([
        AnswerEvent::Block(thought),
        text_block("First point."),
        call_block("a", "bash", "1"),
        AnswerEvent::Text("Second po".to_owned()),
    ]);
    world.give(EngineInput::Abort);
    world.prompt("p2", "go on");
    let outline = wire::outline(world.tree());
    let sent: Vec<String> = outline.messages.iter().map(|message| message.message.to_text()).collect();
    let answer = sent.iter().position(|text| text.contains("Second po")).unwrap();
    assert!(sent[answer].contains("First point."), "{sent:?}");
    assert!(!sent[answer].contains("thinking") && !sent[answer].contains("toolCall"), "{}", sent[answer]);
    assert!(sent[answer + 1].contains("interrupted") && sent[answer + 1].contains(r#""user""#), "{sent:?}");
    assert!(sent[answer + 2].contains("go on"), "{sent:?}");
    world.say("on it");
    // An empty answer leaves no trace, and a failed one was retried.
    world.prompt("p3", "more");
    world.give(EngineInput::Abort);
    world.prompt("p4", "again");
    world.answer([AnswerEvent::Text("half".to_owned())]);
    let failure = AnswerFailure {
        kind: FailureKind::Network,
        retry_after_ms: None,
        should_retry: None,
        message: "broke".to_owned(),
    };
    world.answer([AnswerEvent::Failed(failure)]);
    world.tick(60_000);
    world.say("whole");
    let sent = wire::outline(world.tree()).messages;
    assert_eq!(sent.iter().filter(|m| m.message.to_text().contains("interrupted")).count(), 1);
    assert!(sent.iter().all(|m| !m.message.to_text().contains("half")));
    world.check_prefixes();
}

#[test]
fn duplicate_or_empty_call_ids_are_made_unique() {
    let mut world = World::new();
    world.prompt("p1", "go");
    for n in 0..3 {
        world.want(&[("dup", "read", &n.to_string()), ("dup", "read", "x"), ("", "read", "y")]);
        world.run_calls(&format!("result {n}"));
    }
    world.say("done");
    let ids = |tree: &session_tree::Tree| -> Vec<String> {
        let outline = wire::outline(tree);
        let calls = |m: &wire::WireMessage<'_>| {
            let ids = recorded::calls_of(&m.message).filter_map(|call| call.text("id")).map(str::to_owned);
            ids.collect::<Vec<_>>()
        };
        outline.messages.iter().flat_map(calls).collect()
    };
    let all = ids(world.tree());
    assert_eq!(all.len(), 9);
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 9, "{all:?}");
    assert!(all.iter().all(|id| id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))));
    assert_eq!(all[0], "dup");
    // The file has the ids that are sent.
    let stored = world.tree().leaf_path().into_iter().filter_map(|entry| entry.message());
    let stored: Vec<String> =
        stored.flat_map(recorded::calls_of).map(|call| call.text("id").unwrap_or_default().to_owned()).collect();
    assert_eq!(stored, all);
    world.check_prefixes();
}

#[test]
fn a_filling_context_is_reported_once_per_threshold() {
    let mut setup = setup();
    setup.model.window = Some(1_000);
    let mut world = World::with(setup);
    let said = |world: &World| -> Vec<u64> {
        let of = |frame: &RuntimeFrame| match frame {
            RuntimeFrame::ContextFills { tokens, window: 1_000 } => Some(*tokens),
            _ => None,
        };
        world.frames.iter().filter_map(of).collect()
    };
    world.prompt("p1", "go");
    for (n, input) in [600_u64, 795, 830, 900, 945, 960, 990].into_iter().enumerate() {
        let call = call_block(&format!("c{n}"), "read", &n.to_string());
        world.answer([call, usage(input, 0, 0), AnswerEvent::Ended(AnswerEnd::ToolUse)]);
        world.run_calls(&n.to_string());
    }
    // 10 tokens of output each.
    assert_eq!(said(&world), [805, 955]);
    let failure = AnswerFailure {
        kind: FailureKind::TooLong,
        retry_after_ms: None,
        should_retry: None,
        message: "prompt is too long: 213452 tokens > 200000 maximum".to_owned(),
    };
    world.answer([AnswerEvent::Failed(failure)]);
    let ended = world.tree().leaf_path().into_iter().rev().find_map(TaskEnded::of).unwrap();
    let error = ended.error.unwrap();
    assert!(error.contains("213,452 of 200,000 tokens") && error.contains("new session"), "{error}");
}

#[test]
fn the_model_learns_which_background_commands_ended_with_the_process() {
    let background = |world: &mut World, id: &str, details: session_tree::Object| {
        let arguments = session_tree::Object::new().with("command", format!("serve {id}")).with("id", id);
        let call = session_tree::Object::new().with("type", "toolCall").with("id", "c").with("name", "bash");
        world.answer([AnswerEvent::Block(call.with("arguments", arguments)), AnswerEvent::Ended(AnswerEnd::ToolUse)]);
        world.inspect_all();
        world.decide_all(&allow());
        for run in std::mem::take(&mut world.running) {
            let result = CallOutput { details: Some(details.clone()), ..text_result("it runs") };
            world.give(EngineInput::Returned { call: run.call, result });
        }
    };
    let running = |id: &str| session_tree::Object::new().with("background", id);
    let notes = |world: &World| -> Vec<String> {
        let sent = wire::outline(world.tree()).messages;
        let texts = sent.iter().map(|message| message.message.to_text());
        texts.filter(|text| text.contains("was restarted")).collect()
    };
    let mut world = World::new();
    world.prompt("p1", "go");
    background(&mut world, "p1", running("p1"));
    background(&mut world, "p2", running("p2"));
    background(&mut world, "p3", running("p3"));
    // One command was seen to end.
    background(
        &mut world,
        "p2",
        session_tree::Object::new().with("exit", session_tree::Object::new().with("code", 0_u64)),
    );
    world.say("they run");
    world.prompt("p2", "still?");
    world.say("yes");
    assert!(notes(&world).is_empty(), "the process is still the same");
    for _ in 0..2 {
        world.crash(None);
        world.pump();
        world.prompt("p3", "go on");
        world.say("ok");
        let told = notes(&world);
        assert_eq!(told.len(), 1, "once: {told:?}");
        assert!(told[0].contains("p1 (`serve p1`), p3 (`serve p3`)") && !told[0].contains("p2 ("), "{told:?}");
    }
    world.check_prefixes();
}
