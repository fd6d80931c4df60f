//! The recorded facts of a session and its turns, and the clock that dates them.

use super::*;
use PromptOrigin::{Steering, Wakeup};
use State::{Running, Waiting, WaitingApproval};

#[test]
fn history_events_use_their_recorded_times() {
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
    // The time since then has passed.
    tape.play(&until(5_000.0));
    assert_eq!(tape.status(), "unknown lost");
    // A time from the future is not believed.
    let tape = Tape::played(&[on(10.0, prompt("go").long_ago(90_000.0))]);
    assert_eq!(tape.state.session.last_event_at, at(10.0));
}

#[test]
fn history_read_after_newer_events_keeps_its_times() {
    // The registry is read before the transcript.
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
    // History does not undo newer facts.
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
fn live_events_are_dated_by_the_local_clock() {
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
fn tokens_are_summed_by_session_and_turn() {
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
        ..Usage::default()
    };
    assert_eq!(tape.state.view().usage, of(3, 157));
    // The tokens of a message are reported after its last line: they belong to the turn that the message ended.
    assert_eq!(tape.state.recent_turns().next().unwrap().usage, of(2, 150));
    assert_eq!(tape.state.open_turn().unwrap().usage, of(1, 7));
    let mut most = Usage { input_tokens: u64::MAX, ..Usage::default() };
    most.add(&UsageReported { input_tokens: 1, ..UsageReported::default() });
    assert_eq!(most.input_tokens, u64::MAX);
}

#[test]
fn a_turn_records_prompt_text_counts_and_times() {
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
fn a_session_records_directory_model_branch_and_title() {
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
    // A prompt sent by a program is not a title.
    let mut tape = Tape::played(&[on(0.0, asks(Wakeup, "<task-notification>"))]);
    assert_eq!(tape.state.view().title, None);
}

#[test]
fn forks_and_merges_are_recorded_but_rewinds_are_not_forks() {
    let forked = |from: &str| said(SessionForked { from: from.into(), ..SessionForked::default() });
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
fn the_summary_describes_current_and_recent_activity() {
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
        "waiting for its plan to be approved"
    );
    assert_eq!(and(&[on(2.0, result("c")), on(2.0, call("q", ToolKind::Question, "Which?"))]), "asks: Which?");
    assert_eq!(and(&[on(2.0, ends(TurnOutcome::Interrupted))]), "interrupted; waiting for a prompt");
    assert_eq!(and(&[on(2.0, ends(TurnOutcome::Denied))]), "permission refused; waiting for a prompt");
    assert_eq!(and(&[on(2.0, failure(ErrorClass::Auth))]), "not signed in");
    assert_eq!(and(&[on(2.0, failure(ErrorClass::Quota))]), "stopped by a quota or rate limit");
    assert_eq!(and(&[on(2.0, failure(ErrorClass::Other))]), "stopped by an error");
    assert_eq!(and(&[on(3.0, answer("It builds."))]), "done: It builds.");
    assert_eq!(and(&[on(3.0, answer("It builds.")), until(500.0)]), "done: It builds.");
    assert_eq!(and(&[until(9_000.0)]), "was working when last seen");
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
        Some("continued without a prompt (failed): ran 2 commands; <task-notification> (interrupted); one: ran `ls`")
    );
}

#[test]
fn the_recent_summary_lists_changed_files_commands_and_test_results() {
    let recent = |steps: &[Step]| Tape::played(steps).state.view().summary.recent.clone().unwrap_or_default();
    let edit = |at: f64, id: &str, file: &str| [on(at, call(id, ToolKind::Edit, file)), on(at, result(id))];
    let run = |at: f64, id: &str, command: &str, text: &str, outcome| {
        [
            on(at, call(id, ToolKind::Execute, command)),
            on(at, says(text, ToolResult { call_id: id.into(), outcome, ..ToolResult::default() })),
        ]
    };
    let begin = [on(0.0, prompt("fix the parser"))];
    let end = [on(9.0, answer("done"))];
    let steps = [
        &begin[..],
        &run(1.0, "a", "cargo test", "test result: FAILED. 1 passed; 1 failed", ToolOutcome::Error),
        &edit(2.0, "b", "/home/u/src/parser.rs"),
        &edit(3.0, "c", "/home/u/src/parser.rs"),
        &edit(3.5, "d", "/home/u/src/lexer.rs"),
        &run(4.0, "e", "cargo test", "test result: ok. 2 passed", ToolOutcome::Ok),
        &run(5.0, "f", "git commit -m x", "", ToolOutcome::Ok),
        &end,
    ]
    .concat();
    assert_eq!(recent(&steps), "fix the parser: changed parser.rs and lexer.rs, tests 2 passed, committed");
    let piped = [&begin[..], &run(1.0, "a", "cargo test | tail", "test result: FAILED.", ToolOutcome::Ok), &end];
    assert_eq!(recent(&piped.concat()), "fix the parser: tests failed");
    let refused = [on(1.0, call("a", ToolKind::Execute, "make")), on(2.0, returns("a", ToolOutcome::Denied))];
    let failed = [on(3.0, call("b", ToolKind::Execute, "curl x")), on(4.0, returns("b", ToolOutcome::Error))];
    assert_eq!(
        recent(&[&begin[..], &refused, &failed, &end].concat()),
        "fix the parser: ran `curl x`, 1 call denied, 1 error"
    );
    // A snapshot from a version that did not record the work is valid.
    let mut older = serde_json::to_value(&Tape::played(&steps).state).unwrap();
    older["recent"][0].as_object_mut().unwrap().remove("work").expect("what was done is kept");
    assert!(serde_json::from_value::<SessionState>(older).is_ok());
}

#[test]
fn the_title_is_the_last_task_unless_one_is_given() {
    let title = |steps: &[Step]| Tape::played(steps).state.view().title.clone().unwrap_or_default();
    let first = [on(0.0, prompt("fix the login bug")), on(1.0, answer("Done."))];
    let then = |texts: &[&str]| {
        let mut steps = first.to_vec();
        for (number, text) in texts.iter().enumerate() {
            let from = 10.0 * (number + 1) as f64;
            steps.extend([on(from, prompt(text)), on(from + 1.0, answer("Done."))]);
        }
        steps
    };
    assert_eq!(title(&first), "Fix the login bug");
    assert_eq!(title(&then(&["yes", "continue", "make it faster", "thanks"])), "Fix the login bug");
    assert_eq!(title(&then(&["now add dark mode to the settings page"])), "Add dark mode to the settings page");
    assert_eq!(
        title(&then(&["now add dark mode to the settings page", "commit and push", "thanks"])),
        "Add dark mode to the settings page"
    );
    let steered = [on(0.0, prompt("fix the login bug")), on(0.5, asks(Steering, "add dark mode to the settings page"))];
    assert_eq!(title(&steered), "Fix the login bug", "typed while it works");
    let named = on(5.0, note(Topic::Title, "Login"));
    let given = [&first[..], &[named, on(10.0, prompt("add dark mode to the settings page"))]].concat();
    assert_eq!(title(&given), "Login");
}

#[test]
fn an_unrecognized_record_changes_no_state() {
    let unknown = said(Unrecognized { raw_kind: "new".into(), ..Unrecognized::default() });
    check(
        &[on(0.0, prompt("go")), on(1.0, answer("ok")), on(2.0, unknown)],
        &["0 turn 1 by prompt", "0 running thinking", "1 turn 1 completed", "1 waiting turn_complete"],
    );
}

#[test]
fn failures_are_counted_by_kind() {
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

#[test]
fn user_marks_are_recorded_without_counting_as_activity() {
    let mark = |value: &str| on(50.0, note(Topic::Mark, value).by(Source::Runtime));
    let begins = || on(1.0, prompt("go"));
    let mut tape = Tape::played(&[begins(), mark("pinned"), mark("snoozed_until=2026-11-23T18:00:00Z")]);
    let marks = tape.state.view().marks.unwrap();
    assert!(marks.pinned && !marks.archived);
    assert_eq!(marks.snoozed_until, Timestamp::parse("2026-11-23T18:00:00Z"));
    assert_eq!(tape.state.view().last_event_at, at(1.0), "lists keep their order");
    let mut none = Tape::played(&[begins(), mark("pinned"), mark("archived"), mark("-pinned"), mark("-archived")]);
    assert_eq!(none.state.view().marks, None);
    let mut foreign = Tape::played(&[begins(), on(2.0, note(Topic::Mark, "archived"))]);
    assert_eq!(foreign.state.view().marks, None, "what an agent writes marks nothing");
}
