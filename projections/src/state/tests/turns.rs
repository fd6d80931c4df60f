//! Turns: how they begin, run and end, and which events belong to them.

use super::*;
use PromptOrigin::{Agent, Command, Steering, Wakeup};
use Source::{Hook, Pty, Registry, Transcript};
use State::{Running, Waiting, WaitingApproval};

#[test]
fn a_session_passes_from_prompt_through_answer_to_exit() {
    check(
        &[
            on(0.0, alive()),
            on(1.0, prompt("list the files")),
            on(2.0, message("m1", "I look", Some(Stop::ToolUse))),
            on(2.0, call("c1", ToolKind::Execute, "ls")),
            on(3.0, result("c1")),
            on(4.0, answer("two files")),
            until(123.0),
            until(125.0),
            on(200.0, withdrawn(Registry)),
            on(200.1, gone()),
        ],
        &[
            "0 waiting new_session",
            "1 turn 1 by prompt",
            "1 running thinking",
            "4 turn 1 completed",
            "4 waiting turn_complete",
            "124 idle quiet",
            "200.1 exit clean",
            "200.1 exited clean",
        ],
    );
}

#[test]
fn the_status_names_the_first_open_tool_call() {
    let steps = [
        on(0.0, prompt("go")),
        on(1.0, message("m1", "", Some(Stop::ToolUse))),
        on(1.0, call("c1", ToolKind::Execute, "make\n  test")),
        on(1.1, call("c2", ToolKind::Read, "a.rs")),
        on(2.0, result("c1")),
        on(3.0, result("c2")),
    ];
    stands(&steps[..1], "running thinking");
    stands(&steps[..3], "running tool [make test]");
    stands(&steps[..4], "running tool [make test]");
    stands(&steps[..5], "running tool [a.rs]");
    stands(&steps, "running thinking");
}

#[test]
fn the_outcome_of_a_turn_becomes_the_reason_for_waiting() {
    let ended = |end: TestEvent| [on(0.0, prompt("go")), on(1.0, call("c", ToolKind::Execute, "ls")), on(2.0, end)];
    stands(&ended(ends(TurnOutcome::Interrupted)), "waiting interrupted");
    stands(&ended(ends(TurnOutcome::Denied)), "waiting denied");
    stands(&ended(failure(ErrorClass::Auth)), "waiting auth");
    stands(&ended(failure(ErrorClass::Quota)), "waiting quota");
    stands(&ended(failure(ErrorClass::RateLimit)), "waiting quota");
    for class in [ErrorClass::Provider, ErrorClass::Network, ErrorClass::Context, ErrorClass::Other] {
        stands(&ended(failure(class)), "waiting error");
    }
    // The registry's bare `idle` does not hide the denial.
    let mut steps = ended(ends(TurnOutcome::Denied)).to_vec();
    steps.push(on(2.1, registry(Waiting)));
    stands(&steps, "waiting denied");
    check(
        &ended(ends(TurnOutcome::Denied)),
        &["0 turn 1 by prompt", "0 running thinking", "2 turn 1 denied", "2 waiting denied"],
    );
}

#[test]
fn a_blocked_call_counts_as_a_tool_error_and_the_turn_continues() {
    let mut tape = stands(
        &[
            on(0.0, prompt("go")),
            on(1.0, call("c", ToolKind::Execute, "rm -rf /")),
            on(1.5, returns("c", ToolOutcome::Blocked)),
        ],
        "running thinking",
    );
    assert_eq!(tape.state.open_turn().unwrap().tool_errors, 1);
    tape.play(&on(2.0, answer("then not")));
    assert_eq!(tape.status(), "waiting turn_complete");
}

#[test]
fn a_retried_error_shows_retrying_until_the_answer() {
    let retry =
        says("overloaded", ErrorReported { class: ErrorClass::Provider, retrying: true, ..ErrorReported::default() });
    stands(&[on(0.0, prompt("go")), on(1.0, retry.clone())], "running retrying");
    stands(&[on(0.0, prompt("go")), on(1.0, retry.clone()), on(3.0, answer("ok"))], "waiting turn_complete");
    stands(&[on(0.0, prompt("go")), on(1.0, answer("ok")), on(2.0, retry)], "waiting turn_complete");
}

#[test]
fn an_error_reported_after_the_turn_ended_refines_the_reason() {
    let steps = [on(0.0, prompt("go")), on(1.0, ends(TurnOutcome::Failed)), on(1.0, failure(ErrorClass::Quota))];
    check(
        &steps,
        &["0 turn 1 by prompt", "0 running thinking", "1 turn 1 failed", "1 waiting error", "1 waiting quota"],
    );
}

#[test]
fn the_agent_can_start_a_turn_without_a_user_prompt() {
    let first = [on(0.0, prompt("go")), on(1.0, answer("started in the background"))];
    let mut steps = first.to_vec();
    steps.extend([on(30.0, asks(Wakeup, "<task-notification>")), on(31.0, answer("it is done"))]);
    let mut tape = check(
        &steps,
        &[
            "0 turn 1 by prompt",
            "0 running thinking",
            "1 turn 1 completed",
            "1 waiting turn_complete",
            "30 turn 2 by wakeup",
            "30 running thinking",
            "31 turn 2 completed",
            "31 waiting turn_complete",
        ],
    );
    let session = tape.state.view();
    assert_eq!(session.summary.last_prompt.as_deref(), Some("go"), "what a person asked");
    assert_eq!(session.last_user_prompt_at, Some(at(0.0)));
    // Without a prompt: the work itself opens the turn.
    let mut steps = first.to_vec();
    steps.push(on(30.0, call("c", ToolKind::Execute, "ls")));
    let tape = stands(&steps, "running tool [ls]");
    assert_eq!(tape.transitions()[4..], ["30 turn 2 by wakeup", "30 running tool"]);
    // Late parts of the last message do not open one.
    let mut steps = first.to_vec();
    steps.extend([
        on(1.1, part("last", "and more", None)),
        on(1.1, usage("last", 5)),
        on(1.2, message("last", "", Some(Stop::EndTurn))),
    ]);
    assert_eq!(Tape::played(&steps).transitions().len(), 4);
}

#[test]
fn a_slash_command_of_the_agent_is_a_turn() {
    let compacted = ContextCompacted { trigger: Some(CompactTrigger::Manual), ..ContextCompacted::default() };
    let steps = [on(0.0, asks(Command, "/compact")), on(9.0, said(compacted)), on(9.1, ends(TurnOutcome::Completed))];
    stands(&steps[..1], "running thinking");
    check(&steps, &["0 turn 1 by command", "0 running thinking", "9.1 turn 1 completed", "9.1 waiting turn_complete"]);
}

#[test]
fn a_steering_message_belongs_to_the_open_turn() {
    let steps = [on(0.0, prompt("go")), on(1.0, asks(Steering, "faster")), on(2.0, answer("ok"))];
    let mut tape =
        check(&steps, &["0 turn 1 by prompt", "0 running thinking", "2 turn 1 completed", "2 waiting turn_complete"]);
    let turn = tape.state.recent_turns().next_back().unwrap().clone();
    assert_eq!((turn.steering, turn.prompt.as_deref()), (1, Some("go")));
    assert_eq!(tape.state.view().summary.last_prompt.as_deref(), Some("faster"));
    // If no turn is open, it is a prompt like any other.
    stands(&[on(0.0, asks(Steering, "hello"))], "running thinking");
}

#[test]
fn the_next_prompt_supersedes_a_turn_whose_end_was_not_seen() {
    check(
        &[on(0.0, prompt("one")), on(5.0, prompt("two")), on(6.0, answer("ok"))],
        &[
            "0 turn 1 by prompt",
            "0 running thinking",
            "5 turn 1 superseded",
            "5 turn 2 by prompt",
            "6 turn 2 completed",
            "6 waiting turn_complete",
        ],
    );
}

#[test]
fn an_event_is_assigned_to_the_open_a_new_or_no_turn() {
    let turn_of = |steps: &[Step], seconds: f64, said: TestEvent| {
        let tape = Tape::played(steps);
        let event = tape.event(seconds, &said);
        let turn = tape.state.turn_of(&event);
        // The fold agrees: the named turn is open, or was open until then.
        let mut after = tape.clone();
        after.play(&on(seconds, said));
        let known = [after.state.open_turn(), after.state.recent_turns().next_back()]
            .into_iter()
            .flatten()
            .any(|t| Some(t.id) == turn);
        assert!(turn.is_none() || known, "{turn:?} is not a turn");
        match turn {
            None => "none",
            Some(id) if id == TurnId::from(event.id) => "new",
            Some(_) => "open",
        }
    };
    let open = [on(0.0, prompt("go"))];
    assert_eq!(turn_of(&[], 0.0, prompt("go")), "new");
    assert_eq!(turn_of(&[], 0.0, asks(Agent, "task")), "new");
    assert_eq!(turn_of(&[], 0.0, prompt("go").restated()), "none");
    assert_eq!(turn_of(&[], 0.0, call("c", ToolKind::Execute, "ls")), "new");
    assert_eq!(turn_of(&[], 0.0, answer("late")), "none");
    assert_eq!(turn_of(&[], 0.0, registry(Waiting)), "none");
    assert_eq!(turn_of(&open, 1.0, prompt("next")), "new");
    assert_eq!(turn_of(&open, 1.0, prompt("again").restated()), "open");
    assert_eq!(turn_of(&open, 1.0, asks(Steering, "faster")), "open");
    assert_eq!(turn_of(&open, 1.0, call("c", ToolKind::Execute, "ls")), "open");
    assert_eq!(turn_of(&open, 1.0, answer("ok")), "open");
    let likely = [
        on(0.0, prompt("go")),
        on(
            1.0,
            signal(
                Transcript,
                Confidence::Low,
                Claim::TurnEnded { outcome: TurnOutcome::Completed, pending_subagents: 0 },
            ),
        ),
    ];
    assert_eq!(turn_of(&likely, 1.2, call("c", ToolKind::Execute, "ls")), "open");
    assert_eq!(turn_of(&likely, 9.0, call("c", ToolKind::Execute, "ls")), "new");
    let exited = [on(0.0, alive()), on(0.0, prompt("go")), on(1.0, gone())];
    assert_eq!(turn_of(&exited, 1.1, call("c", ToolKind::Execute, "ls")), "open");
    assert_eq!(turn_of(&exited, 1.5, call("c", ToolKind::Execute, "ls")), "none");
    assert_eq!(turn_of(&exited, 9.0, call("c", ToolKind::Execute, "ls")), "new");
}

#[test]
fn an_error_class_takes_precedence_over_a_vaguer_screen_claim() {
    let failed = claims_why(Pty, Waiting, Some(Reason::Error));
    for (class, expected) in [
        (ErrorClass::Auth, "waiting auth"),
        (ErrorClass::Quota, "waiting quota"),
        (ErrorClass::Provider, "waiting error"),
    ] {
        let steps = [on(0.0, prompt("go")), on(1.0, failure(class)), on(1.1, failed.clone()), until(5.0)];
        stands(&steps, expected);
    }
}

#[test]
fn a_turn_outcome_takes_precedence_over_a_vaguer_hook_claim() {
    let rests = |reason| claims_why(Hook, Waiting, Some(reason));
    for (hook, ended, expected) in [
        (Reason::Interrupted, TurnOutcome::Denied, "waiting denied"),
        (Reason::TurnComplete, TurnOutcome::Denied, "waiting denied"),
        (Reason::TurnComplete, TurnOutcome::Interrupted, "waiting interrupted"),
        (Reason::Interrupted, TurnOutcome::Completed, "waiting interrupted"),
        (Reason::Question, TurnOutcome::Denied, "waiting question"),
    ] {
        let steps = [on(0.0, prompt("go")), on(1.0, ends(ended)), on(1.1, rests(hook)), until(5.0)];
        stands(&steps, expected);
    }
}

#[test]
fn a_likely_end_counts_only_after_silence() {
    let likely = || {
        signal(Transcript, Confidence::Low, Claim::TurnEnded { outcome: TurnOutcome::Completed, pending_subagents: 0 })
    };
    let opened = ["0 turn 1 by prompt", "0 running thinking"];
    check(&[on(0.0, prompt("go")), on(1.0, likely()), until(1.39)], &opened);
    let ended = [&opened[..], &["1.4 turn 1 completed", "1.4 waiting turn_complete"]].concat();
    check(&[on(0.0, prompt("go")), on(1.0, likely()), until(1.4)], &ended);
    check(
        &[on(0.0, prompt("go")), on(1.0, likely()), on(1.2, call("c", ToolKind::Execute, "ls")), until(9.0)],
        &opened,
    );
    // A hook's report of a call shows that the turn continues, whether it arrives before or after the message.
    let asks = || claims_why(Hook, WaitingApproval, Some(Reason::Tool));
    let asked = [&opened[..], &["1.2 waiting_approval tool"]].concat();
    check(&[on(0.0, prompt("go")), on(1.0, likely()), on(1.2, asks()), until(9.0)], &asked);
    let called = [&opened[..], &["0.9 waiting_approval tool"]].concat();
    check(&[on(0.0, prompt("go")), on(0.9, asks()), on(1.0, likely()), until(9.0)], &called);
    // A claim of another source does not continue the turn.
    check(&[on(0.0, prompt("go")), on(1.0, likely()), on(1.2, said(Heartbeat {}).by(Hook)), until(9.0)], &ended);
}

/// A text that may be the end of its turn. It counts 30 s later, or sooner if it is certainly complete.
fn may_end(seconds: f64, strength: Confidence) -> TestEvent {
    let claim = Claim::TurnEnded { outcome: TurnOutcome::Completed, pending_subagents: 0 };
    said(Signal { holds_from: Some(at(seconds + 30.0)), ..Signal::new(claim, strength, None) })
}

#[test]
fn a_possible_last_message_ends_the_turn_if_nothing_follows() {
    let begins = || vec![on(0.0, prompt("go")), on(2.0, message("m", "done", None))];
    let opened = ["0 turn 1 by prompt", "0 running thinking"];
    let with = |rest: &[Step]| [begins(), rest.to_vec()].concat();
    check(&with(&[on(2.0, may_end(2.0, Confidence::Low)), until(31.9)]), &opened);
    let mut waits = stands(&with(&[on(2.0, may_end(2.0, Confidence::Low)), until(3.0)]), "running thinking");
    assert_eq!(waits.state.view().status.confidence, Confidence::Low);
    let ended = [&opened[..], &["2 turn 1 completed", "32 waiting turn_complete"]].concat();
    let mut over = check(&with(&[on(2.0, may_end(2.0, Confidence::Low)), until(32.0)]), &ended);
    assert_eq!(over.state.view().status.confidence, Confidence::Medium);
    assert_eq!(over.state.recent_turns().next().unwrap().completed_at, Some(at(2.0)));
    // The end of a complete message counts soon, unless its lines are read as history.
    let soon = [&opened[..], &["2.4 turn 1 completed", "2.4 waiting turn_complete"]].concat();
    check(&with(&[on(2.0, may_end(2.0, Confidence::Medium)), until(2.4)]), &soon);
    let history = [
        on(100.0, prompt("go").long_ago(0.0)),
        on(100.0, message("m", "I look", None).long_ago(2.0)),
        on(100.0, may_end(2.0, Confidence::Medium).long_ago(2.0)),
        on(100.0, call("c", ToolKind::Execute, "ls").long_ago(20.0)),
    ];
    check(&history, &opened);
    // A likely end without a delay replaces one with a delay.
    let signs =
        Signal::new(Claim::TurnEnded { outcome: TurnOutcome::Completed, pending_subagents: 0 }, Confidence::Low, None);
    check(
        &with(&[on(2.0, may_end(2.0, Confidence::Low)), on(3.0, said(signs)), until(3.4)]),
        &[&opened[..], &["3.4 turn 1 completed", "3.4 waiting turn_complete"]].concat(),
    );
    // The next prompt confirms the end; so does the end of the process.
    let next = [on(2.0, may_end(2.0, Confidence::Low)), on(10.0, prompt("more"))];
    check(&with(&next), &[&opened[..], &["2 turn 1 completed", "10 turn 2 by prompt"]].concat());
    // The message continues, or a call is open.
    check(&with(&[on(2.0, may_end(2.0, Confidence::Low)), on(9.0, part("m", "more", None)), until(90.0)]), &opened);
    let mut called = begins();
    called.insert(1, on(1.0, call("c", ToolKind::Execute, "ls")));
    called.extend([on(2.0, may_end(2.0, Confidence::Low)), until(90.0)]);
    stands(&called, "running tool [ls]");
}

#[test]
fn an_open_turn_times_out_once_the_agent_is_ready_for_a_prompt() {
    let steps = [on(0.0, prompt("go")), on(1.0, registry(Waiting)), until(3.9), until(4.0)];
    check(&steps, &["0 turn 1 by prompt", "0 running thinking", "1 waiting turn_complete", "4 turn 1 timed_out"]);
    // Back to work within the grace period.
    let steps = [on(0.0, prompt("go")), on(1.0, registry(Waiting)), on(2.0, registry(Running)), until(60.0)];
    assert!(Tape::played(&steps).state.open_turn().is_some());
    // A dialog is not a ready prompt, nor is a claim of medium confidence.
    let steps = [on(0.0, prompt("go")), on(1.0, registry(WaitingApproval)), until(60.0)];
    assert!(Tape::played(&steps).state.open_turn().is_some());
    let steps = [
        on(0.0, prompt("go")),
        on(1.0, signal(Pty, Confidence::Medium, Claim::State { state: Waiting, reason: None })),
        until(29.0),
    ];
    assert!(Tape::played(&steps).state.open_turn().is_some());
}

#[test]
fn a_restated_prompt_opens_no_turn() {
    let steps = [on(0.0, prompt("go")), on(1.0, answer("ok")), on(9.0, prompt("go").restated())];
    let mut tape = stands(&steps, "waiting turn_complete");
    assert_eq!(tape.state.view().turns, 1);
    assert_eq!(tape.state.view().last_user_prompt_at, Some(at(0.0)));
}

#[test]
fn an_answer_ends_work_claimed_by_the_transcript() {
    // Work that no prompt announced (a compaction, a retry): the transcript reports that it runs.
    let begun = on(0.0, claims_why(Transcript, Running, Some(Reason::Compacting)));
    stands(std::slice::from_ref(&begun), "running compacting");
    stands(&[begun.clone(), on(1.0, ends(TurnOutcome::Completed))], "waiting turn_complete");
    stands(&[begun.clone(), on(1.0, answer("ok"))], "waiting turn_complete");
    stands(&[begun.clone(), on(1.0, part("m", "ok", Some(Stop::EndTurn)))], "waiting turn_complete");
    stands(&[begun.clone(), on(1.0, failure(ErrorClass::Auth))], "waiting auth");
    stands(&[begun, on(1.0, claims(Transcript, Waiting))], "waiting turn_complete");
}

#[test]
fn a_background_command_leaves_no_open_call() {
    let background = said(ToolCall { background: true, ..tool_call("c", ToolKind::Execute, "serve") });
    stands(&[on(0.0, prompt("go")), on(1.0, background)], "running thinking");
    stands(
        &[
            on(0.0, prompt("go")),
            on(1.0, answer("it runs")),
            on(1.1, claims_why(Registry, Waiting, Some(Reason::Background))),
        ],
        "waiting background",
    );
}

/// For an agent whose files are not read: an observed prompt begins a turn and sets a title, claims no work, and the
/// turn ends when the screen waits again.
#[test]
fn turns_are_derived_from_screen_and_typed_prompts_without_a_transcript() {
    let typed = |text: &str| prompt(text).restated().by(Source::Pty);
    let screen = |state| claims(Source::Pty, state);
    let steps = [
        on(0.0, screen(State::Waiting)),
        on(1.0, typed("say hello")),
        on(2.0, screen(State::Running)),
        on(9.0, screen(State::Waiting)),
        on(20.0, typed("again")),
        on(21.0, said(Heartbeat {}).by(Source::Pty)),
        on(25.0, typed("and again")),
    ];
    let mut tape = Tape::played(&steps[..2]);
    assert_eq!(tape.state.view().status.state, State::Waiting, "that it works was not seen");
    assert_eq!(tape.state.view().title.as_deref(), Some("Say hello"));
    let mut tape = Tape::played(&steps);
    assert_eq!(tape.state.open_turn().and_then(|turn| turn.prompt.clone()).as_deref(), Some("and again"));
    assert_eq!(tape.state.view().status.state, State::Waiting, "nor that it goes on");
    let turns: Vec<String> = tape.transitions().into_iter().filter(|line| line.contains("turn")).collect();
    assert_eq!(
        turns,
        [
            "1 turn 1 by prompt",
            "9 turn 1 completed",
            "20 turn 2 by prompt",
            "25 turn 2 superseded",
            "25 turn 3 by prompt",
        ]
    );
}

#[test]
fn a_turn_keeps_the_beginning_and_end_of_a_long_answer() {
    let part = |n: u32| format!("part {n} {}", "and so on ".repeat(60));
    let delta = |n: u32, stop| {
        let message_id = Some("m".into());
        on(
            f64::from(n),
            says(&part(n), AssistantDelta { message_id, block: Block::Text, stop, ..AssistantDelta::default() }),
        )
    };
    let text = |tape: &Tape| tape.state.recent_turns().next_back().unwrap().text.clone().unwrap();
    let tape = Tape::played(&[on(0.0, prompt("go")), delta(1, Some(Stop::EndTurn))]);
    assert_eq!(text(&tape), part(1).trim());
    let tape = Tape::played(&[on(0.0, prompt("go")), delta(1, None), delta(2, None), delta(3, Some(Stop::EndTurn))]);
    let text = text(&tape);
    let (head, tail) = text.split_once('…').unwrap();
    assert!(head.starts_with(part(1).trim()) && part(3).trim().ends_with(tail), "{text}");
    assert!(text.len() <= 1_024 + '…'.len_utf8(), "{}", text.len());
}

#[test]
fn a_headless_session_is_idle_after_its_turn() {
    let started = |headless| said(SessionStarted { headless: Some(headless), ..SessionStarted::default() });
    let hook = || claims_why(Source::Hook, State::Waiting, Some(Reason::TurnComplete));
    let steps = [on(0.0, started(true)), on(1.0, prompt("judge it")), on(2.0, answer("yes"))];
    stands(&steps, "idle quiet");
    stands(&[&steps[..], &[on(2.1, hook())]].concat(), "idle quiet");
    // Work, questions and dialogs are reported as usual.
    stands(&steps[..2], "running thinking");
    let asks = claims_why(Source::Hook, State::WaitingApproval, Some(Reason::Tool));
    stands(&[&steps[..2], &[on(1.5, asks)]].concat(), "waiting_approval tool");
    // A client that drives the session can continue it, and a user may resume it.
    let driven = claims_why(Source::Protocol, State::Waiting, Some(Reason::TurnComplete));
    stands(&[&steps[..], &[on(2.1, driven)]].concat(), "waiting turn_complete");
    stands(
        &[&steps[..], &[on(9.0, started(false)), on(9.1, prompt("go")), on(9.9, answer("ok"))]].concat(),
        "waiting turn_complete",
    );
}

#[test]
fn a_silent_headless_session_without_a_process_has_exited() {
    let started = |headless| said(SessionStarted { headless: Some(headless), ..SessionStarted::default() });
    let steps = |headless| [on(0.0, started(headless)), on(1.0, prompt("judge it")), on(2.0, answer("yes"))];
    let later = [until(602.0)];
    stands(&[&steps(true)[..], &later].concat(), "exited clean");
    stands(&[&steps(false)[..], &later].concat(), "idle quiet");
    // While its process is alive the session may get another prompt, and later output opens it again.
    let alive = on(2.1, signal(Source::Process, Confidence::High, Claim::ProcessAlive { pid: 7, start_ticks: 1 }));
    stands(&[&steps(true)[..], &[alive], &later].concat(), "idle quiet");
    stands(&[&steps(true)[..], &later, &[on(700.0, prompt("go"))]].concat(), "running thinking");
}

#[test]
fn a_rewind_marks_the_removed_turns_as_taken_back() {
    let turns = || {
        ["one", "two", "three"].into_iter().enumerate().flat_map(|(n, text)| {
            let at = n as f64 * 10.0;
            [on(at, prompt(text)), on(at + 1.0, answer(text))]
        })
    };
    let id = |tape: &Tape, number: u32| {
        let started = tape
            .conclusions
            .iter()
            .find(|c| matches!(&c.payload, Payload::TurnStarted(started) if started.number == number));
        started.unwrap().turn_id.unwrap()
    };
    let rewind = |from: &str, taken_back, turns| {
        said(SessionForked { from: from.into(), taken_back, turns, ..SessionForked::default() })
    };
    let outcomes = |tape: &Tape| -> Vec<_> { tape.state.recent_turns().filter_map(|turn| turn.outcome).collect() };
    use TurnOutcome::{Completed, TakenBack};

    let mut tape = Tape::played(&turns().collect::<Vec<_>>());
    let second = id(&tape, 2);
    tape.play(&on(40.0, rewind("s", Some(second), None)));
    assert_eq!(outcomes(&tape), [Completed, TakenBack, TakenBack]);
    let told = tape.transitions();
    assert_eq!(told[told.len() - 2..], ["40 turn 2 taken_back", "40 turn 3 taken_back"]);
    // The next turn is a turn like any other, and no turn is taken back twice.
    tape.play(&on(41.0, prompt("instead")));
    tape.play(&on(42.0, rewind("s", Some(second), None)));
    assert_eq!(tape.transitions().last().unwrap(), "42 waiting interrupted");
    assert_eq!(outcomes(&tape), [Completed, TakenBack, TakenBack, TakenBack]);
    assert!(tape.state.view().summary.recent.as_deref().unwrap().starts_with("instead (taken back)"));

    // An agent that reports a number of turns, and one that continues from an unknown record.
    let mut tape = Tape::played(&turns().collect::<Vec<_>>());
    tape.play(&on(40.0, rewind("s", None, Some(2))));
    assert_eq!(outcomes(&tape), [Completed, TakenBack, TakenBack]);
    let mut tape = Tape::played(&turns().collect::<Vec<_>>());
    tape.play(&on(40.0, rewind("s", None, None)));
    tape.play(&on(40.0, rewind("s", Some(events::EventId::from_bits(9).into()), None)));
    tape.play(&on(40.0, rewind("parent", Some(id(&tape, 1)), None)));
    assert_eq!(outcomes(&tape), [Completed; 3]);
}
