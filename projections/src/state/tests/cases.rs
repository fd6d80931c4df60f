//! The rules, one script each.

use super::*;

use PromptOrigin::{Agent, Command, Steering, Wakeup};
use Source::{Hook, Process, Pty, Registry, Transcript};
use State::{Running, Waiting, WaitingApproval};

#[test]
fn a_turn_from_prompt_to_exit() {
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
fn what_runs_is_said_while_it_runs() {
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
fn silence_in_an_open_turn_is_still_work() {
    let mut tape = stands(&[on(0.0, prompt("go")), until(30.0), until(599.0)], "running thinking");
    assert_eq!(tape.transitions(), ["0 turn 1 by prompt", "0 running thinking"]);
    assert_eq!(tape.state.view().status.confidence, Confidence::High);
    let mut tape = stands(
        &[on(0.0, prompt("go")), on(1.0, call("c", ToolKind::Execute, "sleep 500")), until(500.0)],
        "running tool [sleep 500]",
    );
    assert_eq!(tape.state.view().status.confidence, Confidence::Medium);
}

#[test]
fn long_silence_with_no_process_known_is_unknown() {
    let tape = check(
        &[on(0.0, prompt("go")), until(700.0)],
        &["0 turn 1 by prompt", "0 running thinking", "600 unknown lost"],
    );
    assert!(tape.state.open_turn().is_some(), "the turn may go on");
    // With a process alive it stays what it was, and goes on where it was lost.
    check(
        &[on(0.0, alive()), on(0.0, prompt("go")), until(90_000.0)],
        &["0 waiting new_session", "0 turn 1 by prompt", "0 running thinking"],
    );
    check(
        &[on(0.0, prompt("go")), on(700.0, message("m", "still here", None)), on(701.0, answer("done"))],
        &[
            "0 turn 1 by prompt",
            "0 running thinking",
            "600 unknown lost",
            "700 running thinking",
            "701 turn 1 completed",
            "701 waiting turn_complete",
        ],
    );
}

#[test]
fn a_prompt_known_to_be_ready_is_never_idle() {
    check(&[on(0.0, registry(Waiting)), until(9_000.0)], &["0 waiting new_session"]);
    check(
        &[on(0.0, prompt("go")), on(1.0, answer("ok")), on(1.0, registry(Waiting)), until(9_000.0)],
        &["0 turn 1 by prompt", "0 running thinking", "1 turn 1 completed", "1 waiting turn_complete"],
    );
    // A session of which only the start is known.
    check(&[on(0.0, said(SessionStarted::default())), until(9_000.0)], &["0 waiting new_session", "120 idle quiet"]);
}

#[test]
fn the_registry_beats_the_transcript() {
    let mut tape = stands(&[on(0.0, prompt("go")), on(1.0, registry(Waiting))], "waiting turn_complete");
    let status = tape.state.view().status.clone();
    assert_eq!(status.evidence.iter().map(|e| e.source).collect::<Vec<_>>(), [Registry]);
    assert_eq!(
        status.disagreements.iter().map(|e| (e.source, &*e.claim)).collect::<Vec<_>>(),
        [(Transcript, "open turn")]
    );
    stands(&[on(0.0, prompt("go")), on(1.0, answer("done")), on(1.1, registry(Running))], "running thinking");
    // The lines of a message come when it is over: the dialog is known before the call.
    stands(&[on(0.0, prompt("go")), on(1.0, registry(WaitingApproval))], "waiting_approval tool");
}

#[test]
fn a_dialog_is_about_the_open_call() {
    let dialog = |tool, title: &str| {
        [on(0.0, prompt("go")), on(1.0, call("c", tool, title)), on(1.1, registry(WaitingApproval))]
    };
    stands(&dialog(ToolKind::Execute, "touch x"), "waiting_approval tool [touch x]");
    stands(&dialog(ToolKind::Edit, "calc.py"), "waiting_approval edit [calc.py]");
    stands(&dialog(ToolKind::Plan, "the plan"), "waiting_approval plan [the plan]");
    stands(&dialog(ToolKind::Mcp, "demo: ping"), "waiting_approval mcp [demo: ping]");
    stands(&dialog(ToolKind::Fetch, "https://example.com"), "waiting_approval fetch [https://example.com]");
    let several = [
        on(0.0, prompt("go")),
        on(1.0, call("a", ToolKind::Read, "a.rs")),
        on(1.0, call("b", ToolKind::Edit, "b.rs")),
        on(1.1, registry(WaitingApproval)),
    ];
    stands(&several, "waiting_approval edit [b.rs]");
    // A source that says what about is believed.
    let trust = [on(0.0, claims_why(Registry, WaitingApproval, Some(Reason::Trust)))];
    stands(&trust, "waiting_approval trust");
}

#[test]
fn an_open_dialog_is_a_pending_approval() {
    let steps = [
        on(0.0, prompt("go")),
        on(1.0, call("c", ToolKind::Execute, "rm x")),
        on(2.0, registry(WaitingApproval)),
        on(5.0, registry(Running)),
        on(5.1, result("c")),
    ];
    let mut tape = Tape::played(&steps[..3]);
    let asked = tape.event(2.0, &registry(WaitingApproval)).sequence - 1;
    let id = Identity::record(Provider::Claude, &asked.to_string(), 0).event_id().to_string();
    assert_eq!(tape.state.view().pending_approvals, [id]);
    let mut tape = Tape::played(&steps);
    assert_eq!(tape.state.view().pending_approvals, [""; 0]);
    assert_eq!(tape.state.open_turn().unwrap().approvals, 1);
    assert_eq!(
        tape.transitions(),
        ["0 turn 1 by prompt", "0 running thinking", "2 waiting_approval tool", "5 running tool"]
    );
}

#[test]
fn a_question_waits_for_its_answer() {
    let asked = QuestionAsked { call_id: Some("q".into()), options: vec!["red".into(), "blue".into()] };
    let steps = [
        on(0.0, prompt("go")),
        on(1.0, call("q", ToolKind::Other, "AskUserQuestion")),
        on(1.0, says("Which color?", asked)),
        on(9.0, said(QuestionAnswered { call_id: Some("q".into()) })),
        on(9.0, result("q")),
        on(10.0, answer("red it is")),
    ];
    stands(&steps[..3], "waiting question [Which color?]");
    check(
        &steps,
        &[
            "0 turn 1 by prompt",
            "0 running thinking",
            "1 waiting question",
            "9 running thinking",
            "10 turn 1 completed",
            "10 waiting turn_complete",
        ],
    );
    // A ready prompt that is a question leaves the turn open.
    let tape = Tape::played(&[
        on(0.0, prompt("go")),
        on(1.0, claims_why(Registry, Waiting, Some(Reason::Question))),
        until(60.0),
    ]);
    assert!(tape.state.open_turn().is_some());
}

#[test]
fn how_a_turn_ended_is_why_it_waits() {
    let ended = |end: Said| [on(0.0, prompt("go")), on(1.0, call("c", ToolKind::Execute, "ls")), on(2.0, end)];
    stands(&ended(ends(TurnOutcome::Interrupted)), "waiting interrupted");
    stands(&ended(ends(TurnOutcome::Denied)), "waiting denied");
    stands(&ended(failure(ErrorClass::Auth)), "waiting auth");
    stands(&ended(failure(ErrorClass::Quota)), "waiting quota");
    stands(&ended(failure(ErrorClass::RateLimit)), "waiting quota");
    for class in [ErrorClass::Provider, ErrorClass::Network, ErrorClass::Context, ErrorClass::Other] {
        stands(&ended(failure(class)), "waiting error");
    }
    // The registry's bare `idle` does not hide it.
    let mut steps = ended(ends(TurnOutcome::Denied)).to_vec();
    steps.push(on(2.1, registry(Waiting)));
    stands(&steps, "waiting denied");
    check(
        &ended(ends(TurnOutcome::Denied)),
        &["0 turn 1 by prompt", "0 running thinking", "2 turn 1 denied", "2 waiting denied"],
    );
}

#[test]
fn a_refused_call_that_does_not_end_the_turn() {
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
fn an_error_that_is_tried_again() {
    let retry =
        says("overloaded", ErrorReported { class: ErrorClass::Provider, retrying: true, ..ErrorReported::default() });
    stands(&[on(0.0, prompt("go")), on(1.0, retry.clone())], "running retrying");
    stands(&[on(0.0, prompt("go")), on(1.0, retry.clone()), on(3.0, answer("ok"))], "waiting turn_complete");
    stands(&[on(0.0, prompt("go")), on(1.0, answer("ok")), on(2.0, retry)], "waiting turn_complete");
}

#[test]
fn the_class_of_an_error_may_come_after_the_end() {
    let steps = [on(0.0, prompt("go")), on(1.0, ends(TurnOutcome::Failed)), on(1.0, failure(ErrorClass::Quota))];
    check(
        &steps,
        &["0 turn 1 by prompt", "0 running thinking", "1 turn 1 failed", "1 waiting error", "1 waiting quota"],
    );
}

#[test]
fn a_turn_the_agent_starts_itself() {
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
    // What comes late of the last message does not.
    let mut steps = first.to_vec();
    steps.extend([
        on(1.1, part("last", "and more", None)),
        on(1.1, usage("last", 5)),
        on(1.2, message("last", "", Some(Stop::EndTurn))),
    ]);
    assert_eq!(Tape::played(&steps).transitions().len(), 4);
}

#[test]
fn a_command_of_the_agents_own() {
    let compacted = ContextCompacted { trigger: Some(CompactTrigger::Manual), ..ContextCompacted::default() };
    let steps = [on(0.0, asks(Command, "/compact")), on(9.0, said(compacted)), on(9.1, ends(TurnOutcome::Completed))];
    stands(&steps[..1], "running thinking");
    check(&steps, &["0 turn 1 by command", "0 running thinking", "9.1 turn 1 completed", "9.1 waiting turn_complete"]);
}

#[test]
fn what_is_typed_while_it_works_belongs_to_the_turn() {
    let steps = [on(0.0, prompt("go")), on(1.0, asks(Steering, "faster")), on(2.0, answer("ok"))];
    let mut tape =
        check(&steps, &["0 turn 1 by prompt", "0 running thinking", "2 turn 1 completed", "2 waiting turn_complete"]);
    let turn = tape.state.recent_turns().next_back().unwrap().clone();
    assert_eq!((turn.steering, turn.prompt.as_deref()), (1, Some("go")));
    assert_eq!(tape.state.view().summary.last_prompt.as_deref(), Some("faster"));
    // With no turn open it is a prompt like any other.
    stands(&[on(0.0, asks(Steering, "hello"))], "running thinking");
}

#[test]
fn the_next_prompt_ends_a_turn_whose_end_nobody_saw() {
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
fn sub_agents_keep_their_parent_running() {
    let pending = signal(
        Transcript,
        Confidence::High,
        Claim::TurnEnded { outcome: TurnOutcome::Completed, pending_subagents: 1 },
    );
    let over = signal(
        Transcript,
        Confidence::High,
        Claim::TurnEnded { outcome: TurnOutcome::Completed, pending_subagents: 0 },
    );
    let helper = |state| claims(Transcript, state).of_agent("a1");
    // Told by the turn's end alone.
    stands(&[on(0.0, prompt("go")), on(1.0, answer("they work")), on(1.1, pending.clone())], "running subagents");
    // Told by the sub-agent, whose dialog is its parent's.
    let steps = [
        on(0.0, prompt("go")),
        on(1.0, claims_why(Transcript, Running, Some(Reason::Subagents)).of_agent("a1")),
        on(2.0, answer("they work")),
        on(2.1, pending),
        on(3.0, helper(WaitingApproval)),
        on(8.0, claims_why(Transcript, Running, Some(Reason::Subagents)).of_agent("a1")),
        on(9.0, signal(Transcript, Confidence::High, Claim::Withdrawn).of_agent("a1")),
        on(9.0, asks(Wakeup, "<task-notification>")),
        on(10.0, answer("all done")),
        on(10.1, over),
    ];
    check(
        &steps,
        &[
            "0 turn 1 by prompt",
            "0 running thinking",
            "2 turn 1 completed",
            "3 waiting_approval tool",
            "8 running subagents",
            "9 turn 2 by wakeup",
            "10 turn 2 completed",
            "10 waiting turn_complete",
        ],
    );
    assert_eq!(Tape::played(&steps[..5]).state.claim_of_agent("a1"), Some(WaitingApproval));
    assert_eq!(Tape::played(&steps[..7]).state.claim_of_agent("a1"), None);
}

#[test]
fn one_sub_agent_is_not_another() {
    let claim = |agent, state| claims(Transcript, state).of_agent(agent);
    let steps = [
        on(0.0, prompt("go")),
        on(1.0, claim("a1", WaitingApproval)),
        on(1.0, claim("a2", Running)),
        on(2.0, signal(Transcript, Confidence::High, Claim::Withdrawn).of_agent("a2")),
    ];
    // Of equally strong claims of one source the newer one wins; the other is told beside it.
    let mut tape = stands(&steps[..3], "running thinking");
    assert_eq!(tape.state.view().status.disagreements.len(), 1);
    stands(&steps, "waiting_approval tool");
}

#[test]
fn a_process_that_ends() {
    let alive_and = |rest: &[Step]| [&[on(0.0, alive()), on(0.0, registry(Waiting))], rest].concat();
    let last = |steps: Vec<Step>| Tape::played(&steps).transitions().pop().unwrap();
    assert_eq!(last(alive_and(&[on(5.0, withdrawn(Registry)), on(5.1, gone())])), "5.1 exited clean");
    assert_eq!(last(alive_and(&[on(5.0, gone())])), "5 exited killed");
    // In the middle of a turn.
    check(
        &[on(0.0, alive()), on(1.0, prompt("go")), on(2.0, registry(Running)), on(3.0, gone())],
        &[
            "0 waiting new_session",
            "1 turn 1 by prompt",
            "1 running thinking",
            "3 turn 1 exited",
            "3 exit killed",
            "3 exited killed",
        ],
    );
    // An agent that keeps no registry has no way to say goodbye: killed is who was at work.
    let found = signal(Process, Confidence::High, Claim::ProcessAlive { pid: PID, start_ticks: 7 });
    assert_eq!(
        last(vec![on(0.0, found.clone()), on(1.0, prompt("go")), on(2.0, answer("ok")), on(3.0, gone())]),
        "3 exited clean"
    );
    assert_eq!(last(vec![on(0.0, found), on(1.0, prompt("go")), on(3.0, gone())]), "3 exited killed");
    // Another process is not this one's end.
    let other = signal(Process, Confidence::High, Claim::ProcessGone { pid: PID + 1, clean: false });
    assert_eq!(last(alive_and(&[on(5.0, other)])), "0 waiting new_session");
    // The agent itself says that it ends.
    let exit = said(SessionExited { reason: Some(Reason::Failed), code: Some(1) });
    assert_eq!(last(vec![on(0.0, prompt("go")), on(1.0, exit)]), "1 exited failed");
}

#[test]
fn a_goodbye_keeps_the_last_word_until_the_process_goes() {
    let steps = [on(0.0, alive()), on(0.0, registry(Waiting)), on(5.0, withdrawn(Registry)), until(9.0)];
    stands(&steps, "waiting new_session");
    // A process that stays: its registry file is gone, so nobody speaks for it any more.
    let mut tape = Tape::played(&steps);
    tape.play(&until(130.0));
    assert_eq!(tape.status(), "idle quiet");
    // What a sub-agent still says is no word of the one that said goodbye.
    let steps = [
        on(0.0, alive()),
        on(0.0, registry(Waiting)),
        on(5.0, withdrawn(Registry)),
        on(5.05, claims(Transcript, Running).of_agent("a1")),
        on(5.1, gone()),
    ];
    stands(&steps, "exited clean");
    // A process that says something again did not leave.
    let steps = [
        on(0.0, alive()),
        on(0.0, registry(Waiting)),
        on(5.0, withdrawn(Registry)),
        on(6.0, registry(Running)),
        on(9.0, gone()),
    ];
    stands(&steps, "exited killed");
}

#[test]
fn last_words_do_not_revive_but_a_prompt_does() {
    let ended = [on(0.0, alive()), on(1.0, prompt("go")), on(2.0, registry(Running)), on(3.0, gone())];
    let then = |step: Step| [&ended[..], &[step]].concat();
    let transitions = |step: Step| Tape::played(&then(step)).transitions()[6..].to_vec();
    // Read only after the end was noticed: nothing of it opens a turn in a session that is over.
    for words in [
        call("c", ToolKind::Execute, "ls"),
        message("m", "I will", Some(Stop::ToolUse)),
        answer("done"),
        said(Heartbeat {}),
    ] {
        let mut tape = stands(&then(on(3.1, words.clone())), "exited killed");
        assert_eq!(tape.transitions().len(), 6, "{words:?}");
        assert_eq!(tape.state.view().turn, None, "{words:?}");
    }
    assert_eq!(transitions(on(3.1, prompt("again"))), ["3.1 turn 2 by prompt", "3.1 running thinking"]);
    assert_eq!(transitions(on(60.0, call("c", ToolKind::Execute, "ls"))), ["60 turn 2 by wakeup", "60 running tool"]);
    assert_eq!(transitions(on(60.0, alive())), ["60 waiting turn_complete"]);
    // What says nothing about work leaves it exited.
    for words in [note(Topic::Title, "t"), usage("m", 1), said(ContextCompacted::default())] {
        assert_eq!(transitions(on(60.0, words)), [""; 0]);
    }
}

#[test]
fn the_turn_an_event_belongs_to() {
    let turn_of = |steps: &[Step], seconds: f64, said: Said| {
        let tape = Tape::played(steps);
        let event = tape.event(seconds, &said);
        let turn = tape.state.turn_of(&event);
        // What the fold makes of it agrees: a turn that is named is open, or was until then.
        let mut after = tape.clone();
        after.play(&on(seconds, said));
        let known = [after.state.open_turn(), after.state.recent_turns().next_back()]
            .into_iter()
            .flatten()
            .any(|t| Some(t.id) == turn);
        assert!(turn.is_none() || known, "{turn:?} is no turn");
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
    assert_eq!(turn_of(&exited, 1.1, call("c", ToolKind::Execute, "ls")), "none");
    assert_eq!(turn_of(&exited, 9.0, call("c", ToolKind::Execute, "ls")), "new");
}

#[test]
fn the_conversation_says_how_a_turn_ended_when_others_blur_it() {
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
fn a_tool_that_runs_may_be_a_sub_agent() {
    let helper = || claims_why(Transcript, Running, Some(Reason::Subagents)).of_agent("a1");
    let sees = || claims_why(Pty, Running, Some(Reason::Tool));
    let steps = [on(0.0, prompt("go")), on(1.0, sees()), on(2.0, helper())];
    stands(&steps, "running subagents");
    stands(&and_call(&steps, ToolKind::Subagent), "running subagents [look]");
    stands(&and_call(&steps, ToolKind::Execute), "running tool [look]");
    // Its dialog is about the tool it wants to use.
    let mut steps = steps.to_vec();
    steps.push(on(3.0, claims_why(Pty, WaitingApproval, Some(Reason::Tool))));
    stands(&steps, "waiting_approval tool");
}

fn and_call(steps: &[Step], tool: ToolKind) -> Vec<Step> {
    let mut steps = steps.to_vec();
    steps.push(on(3.0, call("c", tool, "look")));
    steps
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
    // A hook that tells of a call shows that the turn goes on, before the message or behind it.
    let asks = || claims_why(Hook, WaitingApproval, Some(Reason::Tool));
    let asked = [&opened[..], &["1.2 waiting_approval tool"]].concat();
    check(&[on(0.0, prompt("go")), on(1.0, likely()), on(1.2, asks()), until(9.0)], &asked);
    let called = [&opened[..], &["0.9 waiting_approval tool"]].concat();
    check(&[on(0.0, prompt("go")), on(0.9, asks()), on(1.0, likely()), until(9.0)], &called);
    // Another source's word is no going on.
    check(&[on(0.0, prompt("go")), on(1.0, likely()), on(1.2, said(Heartbeat {}).by(Hook)), until(9.0)], &ended);
}

#[test]
fn a_ready_prompt_against_an_open_turn_gives_it_up() {
    let steps = [on(0.0, prompt("go")), on(1.0, registry(Waiting)), until(3.9), until(4.0)];
    check(&steps, &["0 turn 1 by prompt", "0 running thinking", "1 waiting turn_complete", "4 turn 1 timed_out"]);
    // Back to work in time.
    let steps = [on(0.0, prompt("go")), on(1.0, registry(Waiting)), on(2.0, registry(Running)), until(60.0)];
    assert!(Tape::played(&steps).state.open_turn().is_some());
    // A dialog is no ready prompt, nor is a weak word.
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
fn a_claim_of_middling_strength_wins_when_the_turn_has_long_been_silent() {
    let ready = || signal(Pty, Confidence::Medium, Claim::State { state: Waiting, reason: None });
    check(
        &[on(0.0, prompt("go")), on(1.0, ready()), until(29.0), until(31.0)],
        &["0 turn 1 by prompt", "0 running thinking", "30 waiting turn_complete"],
    );
}

#[test]
fn a_claim_holds_until_it_runs_out() {
    let claim = Claim::State { state: Running, reason: Some(Reason::Retrying) };
    let brief = said(Signal {
        dialog: None,
        key: None,
        holds_from: None,
        claim,
        strength: Confidence::High,
        valid_until: Some(at(5.0)),
        words: None,
    })
    .by(Hook);
    check(
        &[on(0.0, said(SessionStarted::default())), on(1.0, brief.clone()), until(4.9), until(6.0)],
        &["0 waiting new_session", "1 running retrying", "5 waiting new_session"],
    );
    // Its end is no activity: idle is counted from the last sign of the conversation.
    let tape = Tape::played(&[on(0.0, said(SessionStarted::default())), on(1.0, brief), until(500.0)]);
    assert_eq!(tape.transitions().pop().as_deref(), Some("120 idle quiet"));
}

#[test]
fn many_claims_that_run_out_all_at_once() {
    let mut steps = vec![on(0.0, prompt("go"))];
    for n in 0..HELD_CLAIMS {
        let claim = Claim::State { state: if n % 2 == 0 { WaitingApproval } else { Running }, reason: None };
        let brief = said(Signal {
            dialog: None,
            key: None,
            holds_from: None,
            claim,
            strength: Confidence::High,
            valid_until: Some(at(10.0 + n as f64)),
            words: None,
        });
        steps.push(on(1.0, brief.by(Hook).of_agent(&format!("a{n}"))));
    }
    let mut steady = Tape::played(&steps);
    for second in 1..=100 {
        steady.play(&until(f64::from(second)));
    }
    let mut late = Tape::played(&steps);
    late.play(&until(100.0));
    assert_eq!(late.transitions(), steady.transitions());
    assert_eq!(late.state, steady.state);
}

#[test]
fn history_goes_by_its_own_clock() {
    let history = [
        on(5_000.0, prompt("go").long_ago(0.0)),
        on(5_000.0, answer("ok").long_ago(10.0)),
        on(5_000.0, prompt("more").long_ago(3_000.0)),
    ];
    let mut tape = check(
        &history,
        &[
            "0 turn 1 by prompt",
            "0 running thinking",
            "10 turn 1 completed",
            "10 waiting turn_complete",
            "130 idle quiet",
            "3000 turn 2 by prompt",
            "3000 running thinking",
        ],
    );
    assert_eq!(tape.state.view().started_at, at(0.0));
    assert_eq!(tape.state.view().last_event_at, at(3_000.0));
    // Time since then has passed.
    tape.play(&until(5_000.0));
    assert_eq!(tape.status(), "unknown lost");
    // A time from the future is not believed.
    let tape = Tape::played(&[on(10.0, prompt("go").long_ago(90_000.0))]);
    assert_eq!(tape.state.session.last_event_at, at(10.0));
}

#[test]
fn history_told_behind_something_newer_keeps_its_times() {
    // The registry is read before the transcript is.
    let steps = [
        on(5_000.0, alive().long_ago(0.0)),
        on(5_000.0, registry(Running).long_ago(4_000.0)),
        on(5_000.0, prompt("go").long_ago(1.0)),
        on(5_000.0, answer("ok").long_ago(10.0)),
        on(5_000.0, prompt("more").long_ago(3_990.0)),
    ];
    let mut tape = check(
        &steps,
        &[
            "0 waiting new_session",
            "120 idle quiet",
            "4000 running thinking",
            "1 turn 1 by prompt",
            "10 turn 1 completed",
            "3990 turn 2 by prompt",
        ],
    );
    let session = tape.state.view();
    assert_eq!(
        (session.last_user_prompt_at, session.last_assistant_output_at, session.last_event_at),
        (Some(at(3_990.0)), Some(at(10.0)), at(4_000.0))
    );
    let turn = tape.state.recent_turns().next().unwrap();
    assert_eq!((turn.started_at, turn.completed_at), (at(1.0), Some(at(10.0))));
    assert_eq!(tape.status(), "running thinking");
    // It takes nothing back that is newer.
    let steps = [
        on(50.0, prompt("go")),
        on(51.0, answer("ok").long_ago(2.0)),
        on(52.0, prompt("old").long_ago(1.0)),
        on(52.0, answer("older").long_ago(1.5)),
    ];
    let mut tape = Tape::played(&steps);
    let session = tape.state.view();
    assert_eq!((session.last_user_prompt_at, session.last_assistant_output_at), (Some(at(50.0)), Some(at(2.0))));
    let times: Vec<_> = tape.state.recent_turns().map(|t| (t.started_at, t.completed_at)).collect();
    assert_eq!(times, [(at(50.0), Some(at(50.0))), (at(1.0), Some(at(1.5)))]);
    assert_eq!(tape.state.next_deadline(), Some(at(170.0)), "silent since the prompt");
}

#[test]
fn what_is_live_goes_by_our_clock() {
    let tape = Tape::new();
    let mut event = tape.event(10.0, &prompt("go"));
    event.created_at = at(-500.0);
    let mut state = tape.state;
    let out = state.fold(&event);
    assert_eq!(out[0].at, at(10.0));
    assert_eq!(state.session.last_user_prompt_at, Some(at(10.0)));
}

#[test]
fn lines_out_of_order_do_not_turn_the_clock_back() {
    let steps = [
        on(0.0, prompt("go").long_ago(0.0)),
        on(9.0, answer("ok").long_ago(5.0)),
        on(9.0, note(Topic::Title, "t").long_ago(2.0)),
    ];
    let tape = Tape::played(&steps);
    assert_eq!(tape.state.session.last_event_at, at(5.0));
    assert_eq!(tape.transitions().last().unwrap(), "5 waiting turn_complete");
}

#[test]
fn a_restated_prompt_opens_no_turn() {
    let steps = [on(0.0, prompt("go")), on(1.0, answer("ok")), on(9.0, prompt("go").restated())];
    let mut tape = stands(&steps, "waiting turn_complete");
    assert_eq!(tape.state.view().turns, 1);
    assert_eq!(tape.state.view().last_user_prompt_at, Some(at(0.0)));
}

#[test]
fn an_answer_ends_what_a_claim_of_the_transcript_began() {
    // Work that no prompt announced (a compaction, a retry): the transcript says it runs.
    let begun = on(0.0, claims_why(Transcript, Running, Some(Reason::Compacting)));
    stands(std::slice::from_ref(&begun), "running compacting");
    stands(&[begun.clone(), on(1.0, ends(TurnOutcome::Completed))], "waiting turn_complete");
    stands(&[begun.clone(), on(1.0, answer("ok"))], "waiting turn_complete");
    stands(&[begun.clone(), on(1.0, part("m", "ok", Some(Stop::EndTurn)))], "waiting turn_complete");
    stands(&[begun.clone(), on(1.0, failure(ErrorClass::Auth))], "waiting auth");
    stands(&[begun, on(1.0, claims(Transcript, Waiting))], "waiting turn_complete");
}

#[test]
fn tokens_add_up() {
    let steps = [
        on(0.0, prompt("go")),
        on(1.0, usage("m1", 100)),
        on(2.0, answer("ok")),
        on(2.0, usage("m2", 50)),
        on(3.0, prompt("more")),
        on(4.0, usage("m3", 7)),
    ];
    let mut tape = Tape::played(&steps);
    let of = |n: u64, output_tokens| Usage {
        input_tokens: 10 * n,
        output_tokens,
        cache_read_tokens: 5 * n,
        cache_write_tokens: n,
    };
    assert_eq!(tape.state.view().usage, of(3, 157));
    // A message's tokens are told after its last line: they belong to the turn it ended.
    assert_eq!(tape.state.recent_turns().next().unwrap().usage, of(2, 150));
    assert_eq!(tape.state.open_turn().unwrap().usage, of(1, 7));
    let mut most = Usage { input_tokens: u64::MAX, ..Usage::default() };
    most.add(&UsageReported { input_tokens: 1, ..UsageReported::default() });
    assert_eq!(most.input_tokens, u64::MAX);
}

#[test]
fn what_a_turn_holds() {
    let steps = [
        on(0.0, prompt("fix\nthe   build")),
        on(1.0, message("m1", "I look", Some(Stop::ToolUse))),
        on(1.0, call("c1", ToolKind::Execute, "make")),
        on(2.0, returns("c1", ToolOutcome::Error)),
        on(3.0, message("m2", "It was", Some(Stop::EndTurn))),
        on(3.0, part("m2", "a typo", Some(Stop::EndTurn))),
    ];
    let mut tape = Tape::played(&steps);
    let turn = tape.state.recent_turns().next_back().unwrap().clone();
    assert_eq!(turn.prompt.as_deref(), Some("fix the build"));
    assert_eq!(turn.text.as_deref(), Some("It was\na typo"));
    assert_eq!((turn.messages, turn.tool_calls, turn.tool_errors), (2, 1, 1));
    assert_eq!(
        (turn.started_at, turn.completed_at, turn.outcome),
        (at(0.0), Some(at(3.0)), Some(TurnOutcome::Completed))
    );
    assert_eq!(tape.state.last_message(), Some("m2"));
    assert_eq!(tape.state.view().turns, 1);
    let mut many = Vec::new();
    for n in 0..RECENT_TURNS + 3 {
        many.extend([on(n as f64, prompt(&format!("p{n}"))), on(n as f64 + 0.5, answer("ok"))]);
    }
    let tape = Tape::played(&many);
    let numbers: Vec<u32> = tape.state.recent_turns().map(|t| t.number).collect();
    assert_eq!(numbers, (4..=13).collect::<Vec<u32>>());
}

#[test]
fn what_is_known_of_a_session() {
    let started = SessionStarted {
        how: StartKind::New,
        cwd: Some("/p".into()),
        model: Some("m".into()),
        ..SessionStarted::default()
    };
    let mut tape = Tape::played(&[
        on(0.0, said(started)),
        on(0.0, prompt("say   hello")),
        on(1.0, note(Topic::PermissionMode, "plan")),
        on(1.0, note(Topic::GitBranch, "main")),
    ]);
    let session = tape.state.view();
    assert_eq!(
        (session.cwd.as_deref(), session.model.as_deref(), session.git_branch.as_deref()),
        (Some("/p"), Some("m"), Some("main"))
    );
    assert_eq!(session.permission_mode.as_deref(), Some("plan"));
    assert_eq!(session.title.as_deref(), Some("Say hello"), "its first prompt, while it has no name");
    for step in [
        on(2.0, note(Topic::Title, "greetings")),
        on(3.0, prompt("more")),
        on(4.0, said(SessionStarted { cwd: Some("/q".into()), ..SessionStarted::default() })),
    ] {
        tape.play(&step);
    }
    let session = tape.state.view();
    assert_eq!(
        (session.title.as_deref(), session.cwd.as_deref(), session.model.as_deref()),
        (Some("greetings"), Some("/q"), Some("m"))
    );
    // A machine's prompt is no title.
    let mut tape = Tape::played(&[on(0.0, asks(Wakeup, "<task-notification>"))]);
    assert_eq!(tape.state.view().title, None);
}

#[test]
fn forks_merges_and_rewinds() {
    let forked = |from: &str| said(SessionForked { from: from.into(), at: None });
    let from = |steps: &[Step]| Tape::played(steps).state.view().forked_from.clone();
    assert_eq!(from(&[on(0.0, forked("parent"))]).as_deref(), Some("parent"));
    assert_eq!(from(&[on(0.0, forked("s"))]), None, "its own: a rewind");
    let other = SessionId::mint(START, Provider::Claude, "other");
    let mut tape = Tape::played(&[on(0.0, note(Topic::MergedInto, &other.to_string()))]);
    assert_eq!(tape.state.view().merged_into, Some(other));
}

#[test]
fn derived_events_only_move_the_sequence() {
    let steps = [on(0.0, prompt("go"))];
    let mut tape = Tape::played(&steps);
    let before = tape.state.clone();
    let mut derived = tape.event(9.0, &said(TurnStarted { trigger: TurnTrigger::Prompt, number: 9 }));
    derived.derived = true;
    assert_eq!(tape.state.fold(&derived), []);
    let expected = SessionState {
        session: Session { last_sequence: before.session.last_sequence + 1, ..before.session.clone() },
        ..before
    };
    assert_eq!(tape.state, expected);
}

#[test]
fn three_lines_about_it() {
    let current = |steps: &[Step]| Tape::played(steps).state.view().summary.current.clone().unwrap_or_default();
    let working = [on(0.0, prompt("fix the build")), on(1.0, call("c", ToolKind::Execute, "make"))];
    assert_eq!(current(&[]), "");
    assert_eq!(current(&[on(0.0, registry(Waiting))]), "waiting for its first prompt");
    assert_eq!(current(&working[..1]), "working on: fix the build");
    assert_eq!(current(&working), "running make");
    let and = |rest: &[Step]| current(&[&working[..], rest].concat());
    assert_eq!(and(&[on(2.0, registry(WaitingApproval))]), "waiting for approval to run make");
    assert_eq!(
        and(&[on(2.0, result("c")), on(2.0, call("p", ToolKind::Plan, "plan")), on(2.0, registry(WaitingApproval))]),
        "waiting for approval of its plan"
    );
    assert_eq!(and(&[on(2.0, result("c")), on(2.0, call("q", ToolKind::Question, "Which?"))]), "asks: Which?");
    assert_eq!(and(&[on(2.0, ends(TurnOutcome::Interrupted))]), "interrupted; waiting for a prompt");
    assert_eq!(and(&[on(2.0, ends(TurnOutcome::Denied))]), "permission refused; waiting for a prompt");
    assert_eq!(and(&[on(2.0, failure(ErrorClass::Auth))]), "not signed in");
    assert_eq!(and(&[on(2.0, failure(ErrorClass::Quota))]), "stopped by a quota or rate limit");
    assert_eq!(and(&[on(2.0, failure(ErrorClass::Other))]), "stopped by an error");
    assert_eq!(and(&[on(3.0, answer("It builds."))]), "done: It builds.");
    assert_eq!(and(&[on(3.0, answer("It builds.")), until(500.0)]), "done: It builds.");
    assert_eq!(and(&[until(9_000.0)]), "was at work when last seen");
    assert_eq!(and(&[on(2.0, alive()), on(3.0, registry(Running)), on(4.0, gone())]), "its process was killed");
    let several = [
        on(0.0, prompt("one")),
        on(1.0, call("c", ToolKind::Execute, "ls")),
        on(2.0, answer("ok")),
        on(3.0, asks(Wakeup, "<task-notification>")),
        on(4.0, ends(TurnOutcome::Interrupted)),
        on(5.0, call("d", ToolKind::Execute, "ls")),
        on(5.0, call("e", ToolKind::Execute, "ls")),
        on(6.0, ends(TurnOutcome::Failed)),
    ];
    let mut tape = Tape::played(&several);
    assert_eq!(
        tape.state.view().summary.recent.as_deref(),
        Some("one, 1 tool call; <task-notification> (interrupted); went on by itself (failed), 2 tool calls")
    );
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

#[test]
fn an_unknown_record_moves_nothing() {
    let unknown = said(Unrecognized { raw_kind: "new".into(), ..Unrecognized::default() });
    check(
        &[on(0.0, prompt("go")), on(1.0, answer("ok")), on(2.0, unknown)],
        &["0 turn 1 by prompt", "0 running thinking", "1 turn 1 completed", "1 waiting turn_complete"],
    );
}

#[test]
fn failures_are_counted_by_their_sort() {
    let fails = |id: &str, text: &str, detail: bool| {
        says(text, ToolResult { call_id: id.into(), outcome: ToolOutcome::Error, detail, ..ToolResult::default() })
    };
    let retry = says("overloaded", ErrorReported { class: ErrorClass::Provider, retrying: true, ..Default::default() });
    let late = says("401", ErrorReported { class: ErrorClass::Auth, ..ErrorReported::default() }).by(Source::Telemetry);
    let tape = Tape::played(&[
        on(0.0, prompt("go")),
        on(1.0, call("a", ToolKind::Execute, "cargo test")),
        on(2.0, fails("a", "test result: FAILED. 1 passed; 1 failed", false)),
        on(2.1, fails("a", "test result: FAILED. 1 passed; 1 failed", true)),
        on(3.0, call("b", ToolKind::Execute, "make")),
        on(4.0, fails("b", "make: cc: Permission denied", false)),
        on(5.0, call("c", ToolKind::Execute, "rm x")),
        on(6.0, returns("c", ToolOutcome::Denied)),
        on(7.0, prompt("again")),
        on(8.0, retry),
        on(9.0, failure(ErrorClass::Auth)),
        on(9.5, late),
    ]);
    let counted = |failures: &std::collections::BTreeMap<crate::FailureKind, u32>| {
        failures.iter().map(|(kind, count)| format!("{} {count}", kind.as_str())).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(counted(&tape.state.session.failures), "auth 1, test_failure 1, provider_crash 1, permission 1");
    let turns: Vec<String> = tape.state.recent_turns().map(|turn| counted(&turn.failures)).collect();
    assert_eq!(turns, ["test_failure 1, permission 1", "auth 1, provider_crash 1"]);
    let mut older = serde_json::to_value(&tape.state).unwrap();
    older["session"].as_object_mut().unwrap().remove("failures");
    assert!(serde_json::from_value::<SessionState>(older).is_ok(), "a snapshot without them is one");
}
