//! Conflicts of claims with each other, with silence, and with the end of the process they are about.

use super::*;
use PromptOrigin::Wakeup;
use Source::{Hook, Process, Pty, Registry, Runtime, Transcript};
use State::{Running, Waiting, WaitingApproval};

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
fn a_call_that_may_need_permission_has_low_confidence_until_the_screen_shows_work() {
    let call = || ToolCall { may_ask: true, ..tool_call("c", ToolKind::Execute, "sleep 500") };
    let believed = |seen: Option<Confidence>| {
        let mut steps = vec![on(0.0, prompt("go")), on(1.0, said(call()))];
        let works = Claim::State { state: Running, reason: Some(Reason::Tool) };
        steps.extend(seen.map(|strength| on(2.0, signal(Pty, strength, works))));
        steps.push(until(9.0));
        stands(&steps, "running tool [sleep 500]").state.view().status.confidence
    };
    assert_eq!(believed(None), Confidence::Low);
    assert_eq!(believed(Some(Confidence::Medium)), Confidence::Medium);
    assert_eq!(believed(Some(Confidence::High)), Confidence::High);
}

#[test]
fn a_long_silence_without_a_known_process_is_unknown() {
    let tape = check(
        &[on(0.0, prompt("go")), until(700.0)],
        &["0 turn 1 by prompt", "0 running thinking", "600 unknown lost"],
    );
    assert!(tape.state.open_turn().is_some(), "the turn may go on");
    // While the process is alive, the session keeps its state, and continues after it was lost.
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
fn time_asleep_does_not_count_as_silence() {
    let asleep = |seconds: i64| said(Annotation::asleep(seconds * 1_000)).by(Runtime);
    check(
        // Asleep for eight hours from the third second on.
        &[on(0.0, prompt("go")), on(3.0, asleep(28_800)), until(29_399.0)],
        &["0 turn 1 by prompt", "0 running thinking"],
    );
    check(
        &[on(0.0, prompt("go")), on(3.0, asleep(28_800)), until(29_401.0)],
        &["0 turn 1 by prompt", "0 running thinking", "29400 unknown lost"],
    );
    // The silence is counted from a later message.
    check(
        &[on(0.0, prompt("go")), on(3.0, asleep(600)), on(700.0, message("m", "on", None)), until(1_301.0)],
        &["0 turn 1 by prompt", "0 running thinking", "1300 unknown lost"],
    );
}

#[test]
fn a_session_with_a_ready_prompt_never_becomes_idle() {
    check(&[on(0.0, registry(Waiting)), until(9_000.0)], &["0 waiting new_session"]);
    check(
        &[on(0.0, prompt("go")), on(1.0, answer("ok")), on(1.0, registry(Waiting)), until(9_000.0)],
        &["0 turn 1 by prompt", "0 running thinking", "1 turn 1 completed", "1 waiting turn_complete"],
    );
    // A session of which only the start is known.
    check(&[on(0.0, said(SessionStarted::default())), until(9_000.0)], &["0 waiting new_session", "120 idle quiet"]);
}

#[test]
fn a_registry_wait_is_resolved_to_a_question_or_an_approval() {
    let asks = || call("q", ToolKind::Question, "Which color?");
    stands(
        &[on(0.0, prompt("go")), on(1.0, asks()), on(1.1, registry(WaitingApproval))],
        "waiting question [Which color?]",
    );
    let both = call("c", ToolKind::Execute, "touch x");
    stands(
        &[on(0.0, prompt("go")), on(1.0, both), on(1.0, asks()), on(1.1, registry(WaitingApproval))],
        "waiting_approval tool [touch x]",
    );
    // The line with the call is read after the dialog was reported.
    stands(
        &[
            on(0.0, prompt("go")),
            on(1.0, registry(WaitingApproval)),
            on(1.1, claims_why(Pty, Waiting, Some(Reason::Question))),
            until(10.0),
        ],
        "waiting question",
    );
}

#[test]
fn confidence_in_a_running_claim_of_a_hook_drops_over_time() {
    let steps = [on(0.0, prompt("go")), on(1.0, claims(Hook, Running)), until(31.0)];
    let mut tape = stands(&steps, "running thinking");
    assert_eq!(tape.state.view().status.confidence, Confidence::Medium, "its end may not have been told");
    let mut tape = stands(&[steps[0].clone(), steps[1].clone(), until(20.0)], "running thinking");
    assert_eq!(tape.state.view().status.confidence, Confidence::High);
    // Silence does not lower the confidence of a continuous source.
    let mut tape = stands(&[on(0.0, prompt("go")), on(1.0, registry(Running)), until(500.0)], "running thinking");
    assert_eq!(tape.state.view().status.confidence, Confidence::High);
}

#[test]
fn a_program_with_an_unreadable_screen_stays_unknown() {
    let unreadable =
        signal(Pty, Confidence::Low, Claim::State { state: State::Unknown, reason: Some(Reason::NoEvidence) });
    let mut tape = stands(
        &[on(0.0, said(SessionStarted::default())), on(0.0, alive()), on(0.1, unreadable), until(9_000.0)],
        "unknown no_evidence [the pty says so]",
    );
    assert_eq!(tape.state.view().status.confidence, Confidence::Low);
}

#[test]
fn a_low_confidence_transcript_claim_lowers_the_status_confidence() {
    let weak = || signal(Transcript, Confidence::Low, Claim::State { state: Running, reason: Some(Reason::Tool) });
    let mut tape = stands(&[on(0.0, prompt("go")), on(1.0, weak())], "running tool");
    assert_eq!(tape.state.view().status.confidence, Confidence::Low, "a dialog may be open");
    let said_more = [on(0.0, prompt("go")), on(1.0, weak()), on(2.0, message("m", "and on", None))];
    let mut tape = stands(&said_more, "running thinking");
    assert_eq!(tape.state.view().status.confidence, Confidence::High);
}

/// Each conclusion with the source that decided it and its confidence.
fn bases(tape: &Tape) -> Vec<String> {
    let basis =
        |c: &Conclusion| c.basis.map_or("-".to_owned(), |(source, confidence)| format!("{source} {confidence}"));
    tape.conclusions.iter().filter(|c| c.approval.is_none()).map(|c| format!("{}: {}", show(c), basis(c))).collect()
}

#[test]
fn a_conclusion_has_the_source_and_the_confidence_of_what_decided_it() {
    let weak = signal(Pty, Confidence::Medium, Claim::State { state: WaitingApproval, reason: Some(Reason::Tool) });
    let tape = Tape::played(&[
        on(0.0, prompt("go")),
        on(1.0, call("c", ToolKind::Execute, "sleep 5")),
        on(2.0, weak),
        on(3.0, withdrawn(Pty)),
        on(4.0, result("c")),
        on(5.0, answer("done")),
        on(6.0, gone()),
    ]);
    assert_eq!(
        bases(&tape),
        [
            "0 turn 1 by prompt: transcript high",
            "0 running thinking: transcript high",
            "2 waiting_approval tool: pty medium",
            "3 running tool: transcript medium",
            "5 turn 1 completed: transcript high",
            "5 waiting turn_complete: transcript high",
            "6 exit clean: process high",
            "6 exited clean: process high",
        ]
    );
    let dialogs = tape.conclusions.iter().filter(|c| c.approval.is_some()).map(|c| c.basis);
    assert_eq!(dialogs.collect::<Vec<_>>()[0], Some((Pty, Confidence::Medium)));
    // A change by time alone has the basis of the claim that applies then.
    let tape = Tape::played(&[on(0.0, prompt("go")), until(700.0)]);
    assert_eq!(bases(&tape)[2], "600 unknown lost: transcript low");
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
    // An agent writes the lines of a message when it is complete, so the dialog is known before the call.
    stands(&[on(0.0, prompt("go")), on(1.0, registry(WaitingApproval))], "waiting_approval tool");
}

#[test]
fn brief_work_at_a_ready_prompt_does_not_change_the_state() {
    let ready = || [on(0.0, prompt("go")), on(1.0, answer("done")), on(1.1, claims(Pty, Waiting))];
    let begun = ["0 turn 1 by prompt", "0 running thinking", "1 turn 1 completed", "1 waiting turn_complete"];
    // `/rename` of Claude Code: busy for 0.2 s.
    let flash = [on(2.0, registry(Running)), on(2.204, registry(Waiting)), until(5.0)];
    check(&[&ready()[..], &flash].concat(), &begun);
    // Work that lasts counts.
    let works = [on(2.0, registry(Running)), until(5.0)];
    check(&[&ready()[..], &works].concat(), &[&begun[..], &["2.3 running thinking"]].concat());
    // Work counts immediately if a prompt was written, or if no screen is known to be ready.
    let prompted = [on(2.0, prompt("next")), on(2.1, registry(Running)), until(5.0)];
    check(&[&ready()[..], &prompted].concat(), &[&begun[..], &["2 turn 2 by prompt", "2.1 running thinking"]].concat());
    let unseen = [on(0.0, prompt("go")), on(1.0, answer("done")), on(2.0, registry(Running)), until(5.0)];
    check(&unseen, &[&begun[..], &["2 running thinking"]].concat());
}

#[test]
fn repeating_a_claim_with_more_confidence_does_not_make_it_newer() {
    let works = |strength| signal(Pty, strength, Claim::State { state: Running, reason: Some(Reason::Thinking) });
    // The window title still shows work after the hook reported the end of a short turn.
    let steps = [
        on(0.0, prompt("go")),
        on(0.1, works(Confidence::Medium)),
        on(0.4, claims(Hook, Waiting)),
        on(0.5, works(Confidence::High)),
        on(0.7, claims(Pty, Waiting)),
    ];
    check(&steps, &["0 turn 1 by prompt", "0 running thinking", "0.4 waiting turn_complete"]);
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
    // A dialog claim with a reason is believed.
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
    let id = Identity::record(Provider::Claude, &asked.to_string(), 0).event_id();
    assert_eq!(tape.state.view().pending_approvals, [ApprovalId::from(id)]);
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
    // Reported only by the end of the turn.
    stands(&[on(0.0, prompt("go")), on(1.0, answer("they work")), on(1.1, pending.clone())], "running subagents");
    // Reported by the sub-agent, whose dialog belongs to its parent.
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
fn claims_of_different_subagents_are_kept_apart() {
    let claim = |agent, state| claims(Transcript, state).of_agent(agent);
    let steps = [
        on(0.0, prompt("go")),
        on(1.0, claim("a1", WaitingApproval)),
        on(1.0, claim("a2", Running)),
        on(2.0, signal(Transcript, Confidence::High, Claim::Withdrawn).of_agent("a2")),
    ];
    // Of equally strong claims of one source the newer one wins; the other is listed as a disagreement.
    let mut tape = stands(&steps[..3], "running thinking");
    assert_eq!(tape.state.view().status.disagreements.len(), 1);
    stands(&steps, "waiting_approval tool");
}

#[test]
fn the_exit_reason_follows_from_how_the_process_ended() {
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
    // An agent without a registry cannot say goodbye: it counts as killed if it was working.
    let found = signal(Process, Confidence::High, Claim::ProcessAlive { pid: PID, start_ticks: 7 });
    assert_eq!(
        last(vec![on(0.0, found.clone()), on(1.0, prompt("go")), on(2.0, answer("ok")), on(3.0, gone())]),
        "3 exited clean"
    );
    assert_eq!(last(vec![on(0.0, found), on(1.0, prompt("go")), on(3.0, gone()), until(3.5)]), "3.4 exited killed");
    // The end of another process does not matter.
    let other = signal(Process, Confidence::High, Claim::ProcessGone { pid: PID + 1, clean: false });
    assert_eq!(last(alive_and(&[on(5.0, other)])), "0 waiting new_session");
    // Nor does the recorded end of an earlier process.
    let earlier = said(SessionExited { reason: Some(Reason::Failed), code: Some(1) }).long_ago(1.0);
    assert_eq!(last(alive_and(&[on(5.0, earlier)])), "0 waiting new_session");
    // The agent reports its own end.
    let exit = said(SessionExited { reason: Some(Reason::Failed), code: Some(1) });
    assert_eq!(last(vec![on(0.0, prompt("go")), on(1.0, exit)]), "1 exited failed");
}

#[test]
fn lines_read_just_after_the_process_ended_still_end_the_turn() {
    let found = || signal(Process, Confidence::High, Claim::ProcessAlive { pid: PID, start_ticks: 7 });
    let exits = |reason| said(SessionExited { reason: Some(reason), code: Some(0) });
    // If the end was observed, or came with an exit code, the reason is concluded after the file was read.
    for end in [gone(), exits(Reason::Clean)] {
        let begun = [on(0.0, found()), on(1.0, prompt("go")), on(3.0, end)];
        let then = |steps: &[Step]| Tape::played(&[&begun[..], steps].concat()).transitions()[2..].join(", ");
        assert_eq!(
            then(&[on(3.1, answer("done").dated(2.9)), until(9.0)]),
            "1 running thinking, 3.1 turn 1 completed, 3.1 waiting turn_complete, 3.4 exit clean, 3.4 exited clean"
        );
    }
    let begun = [on(0.0, found()), on(1.0, prompt("go"))];
    let then = |steps: &[Step]| Tape::played(&[&begun[..], steps].concat()).transitions()[3..].join(", ");
    assert_eq!(then(&[on(3.0, gone()), until(9.0)]), "3.4 turn 1 exited, 3.4 exit killed, 3.4 exited killed");
    // A new process resumes the session before that.
    let other = signal(Process, Confidence::High, Claim::ProcessAlive { pid: PID + 1, start_ticks: 9 });
    assert!(then(&[on(3.0, gone()), on(3.1, other), until(9.0)]).starts_with("3.1 turn 1 exited, 3.1 exit killed"));
    // The reason comes from the source that knows it, even if other sources report the end too.
    let twice = [on(2.0, registry(Running)), on(3.0, exits(Reason::Clean)), on(3.1, gone()), until(9.0)];
    assert_eq!(then(&twice).split(", ").last(), Some("3.4 exited clean"));
    // A late report about the process does not revive it either.
    assert_eq!(then(&[on(3.0, gone()), on(3.1, found()), until(9.0)]).split(", ").last(), Some("3.4 exited killed"));
    // A prompt that was sent since then belongs to another process.
    let resumed = [on(3.0, gone()), on(3.2, prompt("go on")), until(9.0)];
    assert_eq!(then(&resumed), "3.2 turn 1 exited, 3.2 exit killed, 3.2 turn 2 by prompt");
    // If the turn is known to be cut off, the conclusion is immediate.
    assert_eq!(then(&[on(3.0, exits(Reason::Killed))]), "3 turn 1 exited, 3 exit killed, 3 exited killed");
}

#[test]
fn a_withdrawn_registry_entry_does_not_change_the_state_at_once() {
    let steps = [on(0.0, alive()), on(0.0, registry(Waiting)), on(5.0, withdrawn(Registry)), until(9.0)];
    stands(&steps, "waiting new_session");
    // The process stays, but its registry file is gone, so no source makes claims about it.
    let mut tape = Tape::played(&steps);
    tape.play(&until(130.0));
    assert_eq!(tape.status(), "idle quiet");
    // Later claims of a sub-agent are not claims of the ended session.
    let steps = [
        on(0.0, alive()),
        on(0.0, registry(Waiting)),
        on(5.0, withdrawn(Registry)),
        on(5.05, claims(Transcript, Running).of_agent("a1")),
        on(5.1, gone()),
    ];
    stands(&steps, "exited clean");
    // A process that makes another claim has not ended.
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
fn late_lines_do_not_revive_an_exited_session_but_a_prompt_does() {
    let ended = [on(0.0, alive()), on(1.0, prompt("go")), on(2.0, registry(Running)), on(3.0, gone())];
    let then = |step: Step| [&ended[..], &[step]].concat();
    let transitions = |step: Step| Tape::played(&then(step)).transitions()[6..].to_vec();
    // Read only after the end was noticed: none of these opens a turn in an ended session.
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
    // Events that show no work leave the session exited.
    for words in [note(Topic::Title, "t"), usage("m", 1), said(ContextCompacted::default())] {
        assert_eq!(transitions(on(60.0, words)), [""; 0]);
    }
}

#[test]
fn lines_written_before_the_exit_do_not_revive_the_session() {
    let ended = [on(0.0, alive()), on(1.0, prompt("go")), on(2.0, registry(Running)), on(9.0, gone())];
    let then = |steps: &[Step]| [&ended[..], steps].concat();
    // No matter how late the file is read, and with which record.
    for late in [0.1, 1.0, 60.0] {
        for words in [
            prompt("again"),
            asks(PromptOrigin::Steering, "left"),
            call("c", ToolKind::Execute, "ls"),
            message("m", "I will", Some(Stop::ToolUse)),
            said(Heartbeat {}),
        ] {
            stands(&then(&[on(9.0 + late, words.dated(5.0))]), "exited killed");
        }
    }
    // The last answer is often written in the millisecond in which the process ends.
    for words in [call("c", ToolKind::Execute, "ls"), answer("done"), said(Heartbeat {})] {
        stands(&then(&[on(21.0, words.dated(9.0))]), "exited killed");
    }
    // A prompt still begins its turn, which ends as the file says, or as cut off.
    let asked = || on(10.0, prompt("again").dated(5.0));
    let tail = |steps: &[Step]| Tape::played(&then(steps)).transitions()[6..].to_vec();
    let answered = [asked(), on(10.1, answer("done").dated(6.0))];
    assert_eq!(tail(&answered), ["10 turn 2 by prompt", "10.1 turn 2 completed"]);
    assert_eq!(tail(&[asked(), until(60.0)]), ["10 turn 2 by prompt", "11.5 turn 2 exited"]);
    // If the clocks differ by hours, a prompt still counts.
    let elsewhere = on(10.0, prompt("again").dated(-9_000.0));
    stands(&then(&[elsewhere]), "running thinking");
}

#[test]
fn a_running_tool_without_an_open_call_may_be_a_subagent() {
    let helper = || claims_why(Transcript, Running, Some(Reason::Subagents)).of_agent("a1");
    let sees = || claims_why(Pty, Running, Some(Reason::Tool));
    let steps = [on(0.0, prompt("go")), on(1.0, sees()), on(2.0, helper())];
    stands(&steps, "running subagents");
    stands(&and_call(&steps, ToolKind::Subagent), "running subagents [look]");
    stands(&and_call(&steps, ToolKind::Execute), "running tool [look]");
    // A dialog of the sub-agent is about the tool it wants to use.
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
fn a_medium_claim_wins_after_a_long_silence_in_the_turn() {
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
    // Its end is not activity: idle is counted from the last activity of the conversation.
    let tape = Tape::played(&[on(0.0, said(SessionStarted::default())), on(1.0, brief), until(500.0)]);
    assert_eq!(tape.transitions().pop().as_deref(), Some("120 idle quiet"));
}

#[test]
fn claims_that_expire_in_one_advance_give_the_same_state_as_stepwise() {
    let mut steps = vec![on(0.0, prompt("go"))];
    for n in 0..STANDING_CLAIMS {
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
fn a_submitted_prompt_is_running_until_the_claim_expires_or_is_replaced() {
    let begins = |seconds: f64| {
        let claim = Claim::State { state: State::Running, reason: Some(Reason::Thinking) };
        let signal = Signal {
            key: Some("prompt".into()),
            valid_until: Some(at(seconds + 1.0)),
            ..Signal::new(claim, Confidence::High, Some("UserPromptSubmit".into()))
        };
        on(seconds, said(signal).by(Source::Hook))
    };
    // The registry of Claude Code follows up to 0.7 s later.
    let idle = on(0.0, claims_why(Source::Registry, State::Waiting, Some(Reason::TurnComplete)));
    check(&[idle.clone(), begins(5.0), until(5.9)], &["0 waiting turn_complete", "5 running thinking"]);
    // A hook of the user refused the prompt.
    stands(&[idle.clone(), begins(5.0), until(6.1)], "waiting turn_complete");
    // After the end of a short turn, no work is claimed.
    let stop = on(5.2, claims_why(Source::Hook, State::Waiting, Some(Reason::TurnComplete)));
    let steps = [idle, begins(5.0), stop, on(5.3, prompt("go")), on(5.3, answer("done")), until(8.0)];
    let tape = Tape::played(&steps);
    let shown: Vec<String> = tape.transitions().into_iter().filter(|line| !line.contains("turn 1")).collect();
    assert_eq!(shown, ["0 waiting turn_complete", "5 running thinking", "5.2 waiting turn_complete"]);
}

#[test]
fn a_leftover_registry_entry_does_not_affect_a_resumed_session() {
    let runs = |pid| signal(Registry, Confidence::High, Claim::ProcessAlive { pid, start_ticks: 7 });
    let ended = |pid| signal(Source::Process, Confidence::High, Claim::ProcessGone { pid, clean: false });
    let left = || [on(1.0, runs(11).dated(-900.0)), on(1.0, registry(Running).dated(-880.0))];
    let resumed = || [on(1.0, runs(22).dated(-60.0)), on(1.0, registry(Waiting).dated(-30.0))];
    let before = || vec![on(0.0, prompt("go").long_ago(-890.0)), on(0.5, answer("done").long_ago(-40.0))];
    let end = || [on(1.1, ended(11))];
    for entries in
        [left().into_iter().chain(resumed()).collect::<Vec<_>>(), resumed().into_iter().chain(left()).collect()]
    {
        let steps: Vec<Step> = before().into_iter().chain(entries).chain(end()).collect();
        let tape = stands(&steps, "waiting turn_complete");
        assert_eq!(tape.state.process(), Some((22, 7)));
    }
    // A registry outranks a source that guesses from the directory.
    let guessed = signal(Process, Confidence::Medium, Claim::ProcessAlive { pid: 33, start_ticks: 9 });
    let steps: Vec<Step> = before().into_iter().chain([on(0.9, guessed)]).chain(resumed()).collect();
    assert_eq!(stands(&steps, "waiting turn_complete").state.process(), Some((22, 7)));
    // A process that switched to the session later is not a leftover.
    let moved = [on(2.0, runs(11).dated(-10.0)), on(2.0, registry(Running).dated(-9.0))];
    let steps: Vec<Step> = before().into_iter().chain(resumed()).chain(moved).collect();
    assert_eq!(stands(&steps, "running thinking").state.process(), Some((11, 7)));
}
