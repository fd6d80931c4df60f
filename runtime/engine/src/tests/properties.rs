//! Random sessions: the laws hold for any input in any order.

use proptest::prelude::*;

use super::world::*;
use crate::*;

#[derive(Debug, Clone)]
enum Event {
    Prompt,
    Queue(bool),
    Unqueue,
    Abort,
    Pause,
    Resume,
    Mode(bool),
    Limit(Option<u64>),
    Model(bool),
    Compact,
    /// Performs this number of effects.
    Perform(usize),
    Text,
    Call(u8),
    Usage,
    End(u8),
    Fail(u8, bool),
    Inspect(usize, bool),
    Decide(usize, u8),
    Return(usize, u8),
    Stale(u8),
    Tick(u64),
    Disk(bool),
    Crash(Option<usize>),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => Just(Event::Prompt),
        2 => any::<bool>().prop_map(Event::Queue),
        1 => Just(Event::Unqueue),
        1 => Just(Event::Abort),
        1 => Just(Event::Pause),
        2 => Just(Event::Resume),
        1 => any::<bool>().prop_map(Event::Mode),
        1 => proptest::option::of(0..200_u64).prop_map(Event::Limit),
        1 => any::<bool>().prop_map(Event::Model),
        1 => Just(Event::Compact),
        16 => (1..40_usize).prop_map(Event::Perform),
        6 => Just(Event::Text),
        8 => (0..6_u8).prop_map(Event::Call),
        3 => Just(Event::Usage),
        10 => (0..8_u8).prop_map(Event::End),
        2 => (0..10_u8, any::<bool>()).prop_map(|(kind, waits)| Event::Fail(kind, waits)),
        10 => (0..4_usize, prop::bool::weighted(0.9)).prop_map(|(at, ok)| Event::Inspect(at, ok)),
        10 => (0..4_usize, 0..8_u8).prop_map(|(at, how)| Event::Decide(at, how)),
        10 => (0..4_usize, 0..3_u8).prop_map(|(at, how)| Event::Return(at, how)),
        2 => (0..5_u8).prop_map(Event::Stale),
        4 => (1..700_000_u64).prop_map(Event::Tick),
        1 => any::<bool>().prop_map(Event::Disk),
        1 => proptest::option::of(0..400_usize).prop_map(Event::Crash),
    ];
    proptest::collection::vec(event, 1..160)
}

fn happen(world: &mut World, event: &Event, n: usize) {
    match event {
        Event::Prompt => world.input(EngineInput::Prompt(person(&format!("p{n}"), "go"))),
        Event::Queue(steer) => {
            let kind = if *steer { QueueKind::Steer } else { QueueKind::FollowUp };
            world.input(EngineInput::Queue { kind, message: person(&format!("q{n}"), "more") });
        }
        Event::Unqueue => world.input(EngineInput::Unqueue { id: None }),
        Event::Abort => world.input(EngineInput::Abort),
        Event::Pause => world.input(EngineInput::Pause),
        Event::Resume => world.input(EngineInput::Resume),
        Event::Mode(plan) => {
            let mode = if *plan { SessionMode::Plan } else { SessionMode::Ask };
            world.input(EngineInput::SetMode { mode, grant: ModeGrant { by: "ann".to_owned(), audit: None } });
        }
        Event::Limit(tokens) => {
            let limits = SpendLimits { tokens: *tokens, ..SpendLimits::default() };
            world.input(EngineInput::SetLimits { limits, by: "ann".to_owned() });
        }
        Event::Compact => world.input(EngineInput::Compact { focus: None }),
        Event::Model(other) => world.input(EngineInput::SetModel(model(if *other { "m2" } else { "m1" }))),
        Event::Perform(count) => {
            for _ in 0..*count {
                world.perform_next();
            }
        }
        Event::Text => answer(world, text_block("some text")),
        Event::Call(which) => {
            // Some ids are duplicates, and some calls are equal.
            let tool = ["read", "read", "bash", "write", "ask", "bash"][usize::from(*which)];
            answer(world, call_block(&format!("c{}", n % 5), tool, &which.to_string()));
        }
        Event::Usage => answer(world, usage(3, 5, 7)),
        Event::End(how) => {
            let end = [AnswerEnd::ToolUse, AnswerEnd::Stop, AnswerEnd::Length, AnswerEnd::Refused];
            end_answer(world, AnswerEvent::Ended(*end.get(usize::from(*how)).unwrap_or(&AnswerEnd::ToolUse)));
        }
        Event::Fail(kind, waits) => {
            use FailureKind as Kind;
            let kinds = [
                Kind::Overloaded,
                Kind::Rate,
                Kind::Quota,
                Kind::Auth,
                Kind::TooLong,
                Kind::BadRequest,
                Kind::Refused,
                Kind::Network,
                Kind::Stalled,
                Kind::Unknown,
            ];
            let kind = kinds[usize::from(*kind)];
            let retry_after_ms = waits.then_some(650_000);
            end_answer(
                world,
                AnswerEvent::Failed(AnswerFailure {
                    kind,
                    retry_after_ms,
                    should_retry: None,
                    message: "x".to_owned(),
                }),
            );
        }
        Event::Inspect(at, ok) if !world.inspected.is_empty() => {
            let run = world.inspected.remove(at % world.inspected.len());
            let facts = CallFacts { kind: class_of(&run.tool), ..CallFacts::default() };
            let facts = if *ok { Ok(facts) } else { Err("unknown field".to_owned()) };
            world.input(EngineInput::Inspected { call: run.call, facts });
        }
        Event::Decide(at, how) if !world.asked.is_empty() => {
            let asked = world.asked.remove(at % world.asked.len());
            let verdict = match how {
                0 => CallVerdict::Deny,
                1 => CallVerdict::Unanswered,
                2 => CallVerdict::NoEffect,
                _ => CallVerdict::Allow,
            };
            let answer = (asked.facts.kind == CallClass::Question).then(|| "yes".to_owned());
            let decision = CallDecision { verdict, answer, ..allow() };
            world.input(EngineInput::Decided { call: asked.call.call, decision });
        }
        Event::Return(at, how) if !world.running.is_empty() => {
            let run = world.running.remove(at % world.running.len());
            let result =
                CallOutput { is_error: *how == 0, ..text_result(["failed", "fine", "other"][usize::from(*how)]) };
            world.input(EngineInput::Returned { call: run.call, result });
        }
        Event::Inspect(..) | Event::Decide(..) | Event::Return(..) => {}
        Event::Stale(which) => {
            let call = CallId { request: RequestNumber(1), index: 0 };
            world.input(match which {
                0 => EngineInput::Streamed { request: RequestNumber(0), event: AnswerEvent::Ended(AnswerEnd::Stop) },
                1 => EngineInput::Prepared {
                    request: RequestNumber(0),
                    digest: cache::RequestDigest::default(),
                    cut: None,
                },
                2 => EngineInput::Returned {
                    call: CallId { request: RequestNumber(0), ..call },
                    result: text_result("x"),
                },
                3 => EngineInput::AppendFailed { ticket: Ticket(0), error: "old".to_owned(), may_pass: false },
                _ => EngineInput::Decided { call: CallId { request: RequestNumber(0), ..call }, decision: allow() },
            });
        }
        Event::Tick(ms) => {
            world.now.mono_ms += ms;
            world.now.wall_ms += i64::try_from(*ms).unwrap();
            world.input(EngineInput::Ticked);
        }
        Event::Disk(full) => world.is_disk_full = *full,
        Event::Crash(torn) => world.crash(*torn),
    }
}

fn answer(world: &mut World, event: AnswerEvent) {
    if let Some(request) = world.sent.last().copied() {
        world.input(EngineInput::Streamed { request, event });
    }
}

fn end_answer(world: &mut World, event: AnswerEvent) {
    if let Some(request) = world.sent.pop() {
        world.input(EngineInput::Streamed { request, event });
    }
}

/// Checks that no call ran twice, over all restarts.
fn check_ran_once(world: &World) {
    let mut ran: Vec<CallId> = world.ran.iter().map(|(call, _)| *call).collect();
    ran.sort_unstable();
    let all = ran.len();
    ran.dedup();
    assert_eq!(ran.len(), all, "a call ran twice");
}

/// Checks that an abort from this state leads to idle in the same step.
fn check_abort(state: &EngineState, now: StepTime) {
    let mut state = state.clone();
    step(&mut state, now, EngineInput::Abort);
    assert_eq!(state.activity(), EngineActivity::Idle);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Laws 1 and 2, pairing, order, and an abort from every state. The world checks them at every step.
    #[test]
    fn any_input_sequence_keeps_the_engine_invariants(events in events()) {
        let mut world = World::new();
        for (n, event) in events.iter().enumerate() {
            happen(&mut world, event, n);
            check_abort(&world.state, world.now);
        }
        // No more answers arrive. An abort and the file are enough.
        world.is_disk_full = false;
        world.input(EngineInput::Abort);
        assert_eq!(world.state.activity(), EngineActivity::Idle);
        world.pump();
        world.tick(10_000);
        assert!(!world.state.recorded().is_unfinished(), "left unfinished by an abort");
        assert!(world.running.is_empty() && world.sent.is_empty(), "left running by an abort");
        check_ran_once(&world);
        world.check_prefixes();
        // The session works like a new one.
        let sent = world.requests_sent;
        world.give(EngineInput::SetLimits { limits: SpendLimits::default(), by: "ann".to_owned() });
        world.prompt("last", "go");
        assert_eq!(world.requests_sent, sent + 1);
    }

    /// A crash after every effect of a session: the next process continues.
    #[test]
    fn a_crash_after_any_effect_leaves_a_session_that_works(stop in 0..120_usize, torn in proptest::option::of(0..300_usize)) {
        let mut world = World::new();
        let mut performed = 0;
        let mut script = [
            Event::Prompt, Event::Text, Event::Call(0), Event::Call(1), Event::Call(2), Event::Usage, Event::End(0),
        ].into_iter().chain((0..3).map(|_| Event::Inspect(0, true)))
            .chain((0..3).flat_map(|_| [Event::Decide(0, 7), Event::Return(0, 1)]))
            .chain([Event::Queue(true), Event::Text, Event::End(1), Event::Text, Event::End(1)])
            .enumerate();
        'life: loop {
            while world.perform_next() {
                performed += 1;
                if performed == stop {
                    break 'life;
                }
            }
            let Some((n, event)) = script.next() else { break };
            happen(&mut world, &event, n);
        }
        world.crash(torn);
        world.pump();
        assert_eq!(world.state.activity(), EngineActivity::Idle);
        assert!(!world.state.recorded().is_unfinished());
        world.prompt("again", "go on");
        world.say("done");
        check_ran_once(&world);
        world.check_prefixes();
    }
}
