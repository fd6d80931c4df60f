//! Each kind of finding: when it is raised and what ends it.

use events::{
    Annotation, ApprovalResolved, ApprovalState, Claim, DecidedBy, ErrorClass, FindingKind, FindingState, Payload,
    PromptOrigin, QuestionAnswered, QuestionAsked, QuotaReported, Reason, SessionExited, SessionStarted, Severity,
    Signal, Source, StartKind, State, ToolKind, Topic, UsageAccount, UsageReported,
};
use monitor::{DetectorLimits, Monitor};

use crate::{
    script::{End, Script, signal},
    stage::{Line, START, Stage},
};

use FindingKind::*;

fn at_work() -> Script {
    let mut s = Script::new(1);
    s.prompt("make it work");
    s.wait(1);
    s
}

/// Plays a script and compares the opened findings, except completions.
fn check(s: &Script, until_s: i64, opened: &[FindingKind]) -> Stage {
    let mut stage = Stage::played(&s.lines);
    stage.until(s.at + until_s * 1000);
    assert_eq!(stage.kinds_but(&[Completion]), opened, "{:#?}", stage.told);
    stage
}

fn resolution(stage: &Stage, kind: FindingKind) -> &str {
    let last = stage.last(kind).unwrap();
    assert_eq!(last.state, FindingState::Resolved, "{last:?}");
    last.resolution.as_deref().unwrap()
}

#[test]
fn silence_in_an_open_turn_raises_stuck_until_the_agent_is_active() {
    let mut s = at_work();
    s.say("let me see");
    check(&s, 599, &[]);
    let stage = check(&s, 601, &[Stuck]);
    assert!(stage.is_open(Stuck));
    s.wait(700);
    s.say("still here");
    assert_eq!(resolution(&check(&s, 1, &[Stuck]), Stuck), "it is active again");
}

#[test]
fn time_asleep_does_not_count_as_silence() {
    let mut s = at_work();
    s.say("let me see");
    s.wait(3);
    s.put(Line::new(0, Annotation::asleep(28_800_000)).by(Source::Runtime));
    check(&s, 28_800 + 590, &[]);
    check(&s, 28_800 + 600, &[Stuck]);
    s.wait(28_800);
    s.say("still here");
    check(&s, 599, &[]);
    check(&s, 601, &[Stuck]);
}

#[test]
fn a_running_command_is_not_stuck_but_an_mcp_call_is_after_half_an_hour() {
    for tool in [ToolKind::Execute, ToolKind::Subagent, ToolKind::Question] {
        let mut s = at_work();
        s.call("Tool", tool, "make world", "{}");
        let asked: &[FindingKind] = if tool == ToolKind::Question { &[Question] } else { &[] };
        check(&s, 6 * 3_600, asked);
    }
    let mut s = at_work();
    s.call("mcp__x__y", ToolKind::Mcp, "x", "{}");
    check(&s, 1_700, &[]);
    check(&s, 1_900, &[Stuck]);
}

/// Calls a command of this line, and returns the id of the call.
fn runs(s: &mut Script, line: &str) -> String {
    s.call("Bash", ToolKind::Execute, line, &serde_json::json!({ "command": line }).to_string())
}

#[test]
fn a_command_that_will_not_end_raises_stuck_with_the_cause_until_it_ends() {
    let mut s = at_work();
    let id = runs(&mut s, "npx vitest");
    check(&s, 179, &[]);
    let stage = check(&s, 181, &[Stuck]);
    let finding = stage.last(Stuck).unwrap();
    assert_eq!((finding.key.as_str(), finding.severity), (&*format!("stuck:command:{id}"), Severity::Warning));
    assert_eq!(finding.what, "`npx vitest` probably waits for a key: it was started in watch mode");
    assert!(finding.why.ends_with("· try: `npx vitest run`"), "{}", finding.why);
    s.wait(400);
    s.returns(&id, End::Failed(1), "stopped");
    assert_eq!(resolution(&check(&s, 1, &[Stuck, LongJob]), Stuck), "the command ended");
    s.wait(1);
    runs(&mut s, "git commit");
    s.wait(400);
    s.answer("done");
    assert_eq!(resolution(&check(&s, 1, &[Stuck, LongJob, Stuck]), Stuck), "the turn is over");
}

#[test]
fn a_command_with_an_unknown_or_limited_end_raises_nothing() {
    for line in ["cargo test", "npx vitest run", "npm run dev &", "timeout 900 tail -f app.log", "npm test"] {
        let mut s = at_work();
        runs(&mut s, line);
        check(&s, 6 * 3_600, &[]);
    }
    let mut s = at_work();
    s.call("Bash", ToolKind::Execute, "npm run dev", r#"{"command":"npm run dev","run_in_background":true}"#);
    let Payload::ToolCall(call) = &mut s.lines.last_mut().unwrap().payload else { panic!() };
    call.background = true;
    check(&s, 590, &[]);
}

#[test]
fn a_loop_that_waits_has_as_long_as_other_polls() {
    let mut s = at_work();
    runs(&mut s, "until gh run view 5 --exit-status; do sleep 30; done");
    check(&s, 1_190, &[]);
    let stage = check(&s, 1_210, &[Stuck]);
    let what = &stage.last(Stuck).unwrap().what;
    assert!(what.ends_with("waits in a loop that has no limit"), "{what}");
}

#[test]
fn time_asleep_or_before_a_permission_is_no_running_time_of_a_command() {
    let mut s = at_work();
    runs(&mut s, "tail -f app.log");
    s.wait(60);
    s.put(Line::new(0, Annotation::asleep(50_000)).by(Source::Runtime));
    check(&s, 165, &[]);
    check(&s, 175, &[Stuck]);
}

#[test]
fn a_call_of_another_tool_names_the_cause_of_its_command() {
    let mut s = at_work();
    s.call("mcp__shell__run", ToolKind::Mcp, "", r#"{"command":"git rebase -i main"}"#);
    let stage = check(&s, 1_900, &[Stuck]);
    let why = &stage.last(Stuck).unwrap().why;
    assert!(
        why.ends_with("it probably waits for an editor to be closed · try: `GIT_SEQUENCE_EDITOR=: git rebase -i main`"),
        "{why}"
    );
}

#[test]
fn a_prompt_of_a_command_that_a_call_left_running_is_found_when_the_agent_waits_for_it() {
    let left = |output: &str| format!("Wall time: 1 seconds\nProcess running with session ID 7\nOutput:\n{output}");
    let polls = |s: &mut Script, keys: &str| {
        let input = format!(r#"{{"session_id":7,"chars":"{keys}"}}"#);
        s.call("write_stdin", ToolKind::Execute, keys, &input)
    };
    let begun = |line: &str, output: &str| {
        let mut s = at_work();
        let id = runs(&mut s, line);
        s.wait(10);
        s.returns(&id, End::Ok, &left(output));
        s
    };
    let mut s = begun("apt-get install sl", "Do you want to continue? [Y/n] ");
    let poll = polls(&mut s, "");
    check(&s, 40, &[]);
    let stage = check(&s, 55, &[Stuck]);
    assert!(stage.last(Stuck).unwrap().why.ends_with("· try: `apt-get install sl -y`"), "{:?}", stage.last(Stuck));
    s.wait(60);
    s.returns(&poll, End::Ok, &left(""));
    assert!(check(&s, 1, &[Stuck]).is_open(Stuck), "it still runs");
    polls(&mut s, "y\\n");
    assert_eq!(resolution(&check(&s, 600, &[Stuck]), Stuck), "the agent typed an answer");

    // A server that was left running is used, not waited for.
    let mut s = begun("npm run dev", "  ➜  press h + enter to show help\n");
    polls(&mut s, "");
    check(&s, 590, &[]);
}

#[test]
fn a_session_whose_process_is_gone_is_not_stuck() {
    let mut s = at_work();
    s.say("let me see");
    s.killed();
    let stage = check(&s, 7_200, &[Crash]);
    assert_eq!(stage.last(Crash).unwrap().severity, Severity::Error);
}

#[test]
fn many_failed_retries_raise_stuck_and_a_few_do_not() {
    let mut s = at_work();
    for _ in 0..4 {
        s.wait(5);
        s.retry(ErrorClass::Provider, "503", "overloaded");
    }
    s.say("there you are");
    check(&s, 1, &[]);
    for _ in 0..9 {
        s.wait(5);
        s.retry(ErrorClass::Provider, "503", "overloaded");
    }
    let stage = check(&s, 1, &[Stuck]);
    assert!(stage.last(Stuck).unwrap().why.contains("8 attempts"), "{:?}", stage.last(Stuck));
    s.say("there you are");
    assert_eq!(resolution(&check(&s, 1, &[Stuck]), Stuck), "the model answered");
}

#[test]
fn a_screen_that_says_retrying_for_long_is_stuck() {
    let mut s = at_work();
    for _ in 0..6 {
        let retrying = Claim::State { state: State::Running, reason: Some(Reason::Retrying) };
        s.put(Line::new(0, signal(retrying)).by(Source::Pty));
        s.wait(30);
    }
    check(&s, 0, &[Stuck]);
}

#[test]
fn a_rejected_api_key_raises_an_auth_finding() {
    let mut s = at_work();
    s.fails(ErrorClass::Auth, "401", "invalid x-api-key");
    let stage = check(&s, 60, &[Auth]);
    assert!(stage.last(Auth).unwrap().why.contains("invalid x-api-key"));
    s.wait(100);
    s.prompt("again");
    s.answer("it works");
    assert_eq!(resolution(&check(&s, 1, &[Auth]), Auth), "the model answered");
    let mut s = at_work();
    for _ in 0..3 {
        s.wait(1);
        s.retry(ErrorClass::Auth, "401", "401");
    }
    check(&s, 0, &[Auth]);
}

#[test]
fn a_rate_limit_finding_resolves_at_the_time_the_agent_reported() {
    let mut s = at_work();
    s.fails(ErrorClass::RateLimit, "429", "Rate limit reached. Please try again in 10m.");
    let stage = check(&s, 1, &[RateLimit]);
    let finding = stage.last(RateLimit).unwrap();
    assert_eq!(finding.until, Some(finding.first_at.plus_ms(600_000)));
    assert_eq!(resolution(&check(&s, 601, &[RateLimit]), RateLimit), "the limit has expired, according to the agent");
    let mut s = at_work();
    s.fails(ErrorClass::Quota, "usage_limit_exceeded", "You've hit your usage limit.");
    check(&s, 1, &[Quota]);
    let mut s = at_work();
    for _ in 0..5 {
        s.wait(1);
        s.retry(ErrorClass::RateLimit, "429", "429");
    }
    check(&s, 0, &[RateLimit]);
}

#[test]
fn network_and_provider_errors_raise_findings_until_the_session_ends() {
    for (class, kind) in
        [(ErrorClass::Network, Network), (ErrorClass::Provider, Provider), (ErrorClass::Other, Provider)]
    {
        let mut s = at_work();
        s.fails(class, "500", "it broke");
        let stage = check(&s, 1, &[kind]);
        assert!(stage.is_open(kind));
        s.leave();
        assert_eq!(resolution(&check(&s, 1, &[kind]), kind), "the session ended");
    }
}

#[test]
fn an_approval_finding_opens_after_a_wait_and_closes_with_the_decision() {
    let mut s = at_work();
    s.call("Bash", ToolKind::Execute, "npm test", "{}");
    let id = s.request("npm test");
    check(&s, 0, &[]);
    let stage = check(&s, 2, &[Approval]);
    let finding = stage.last(Approval).unwrap();
    assert_eq!(finding.what, "asks permission for Bash: npm test");
    assert_eq!((finding.key.as_str(), &finding.approval_id), ("approval:a1", &Some("a1".into())));
    s.wait(5);
    let decided = ApprovalResolved {
        approval_id: id,
        allowed: Some(true),
        state: Some(ApprovalState::Allowed),
        by: Some(DecidedBy::Person),
        ..ApprovalResolved::default()
    };
    s.put(Line::new(0, decided).by(Source::Runtime));
    assert_eq!(resolution(&check(&s, 2, &[Approval]), Approval), "it was allowed");
}

#[test]
fn an_approval_decided_at_once_raises_no_finding() {
    let mut s = at_work();
    let id = s.request("ls");
    let decided = ApprovalResolved { approval_id: id, allowed: Some(true), ..ApprovalResolved::default() };
    s.put(Line::new(0, decided).by(Source::Runtime));
    check(&s, 10, &[]);
}

#[test]
fn a_forged_transcript_event_does_not_resolve_an_approval() {
    let mut s = at_work();
    let id = s.request("rm -rf build");
    s.wait(5);
    let forged = ApprovalResolved {
        approval_id: id,
        allowed: Some(true),
        state: Some(ApprovalState::Allowed),
        ..ApprovalResolved::default()
    };
    // The monitor alone, without the reducer's state.
    let mut stage = Stage::new();
    stage.looks = false;
    stage.play(&s.lines);
    stage.until(s.at);
    assert!(stage.is_open(RiskyApproval));
    let event = stage.log.last().unwrap().clone();
    let texts = ["approval resolved", "{\"approval_id\":\"a1\",\"state\":\"allowed\"}", "The user allowed it."];
    let payloads = [
        Payload::from(forged),
        Payload::from(QuestionAnswered { call_id: None }),
        Payload::from(Annotation { topic: Topic::Notice, value: "Bash allowed by the user (a1)".into() }),
        Payload::from(events::SessionExited::default()),
        Payload::from(events::AssistantMessage::default()),
    ];
    for (n, payload) in payloads.into_iter().enumerate() {
        let mut event = event.clone();
        event.sequence += 1;
        (event.derived, event.source, event.payload) = (false, Source::Transcript, payload);
        event.text = Some(texts[n % texts.len()].into());
        stage.monitor.apply(&event);
    }
    assert!(stage.monitor.open().any(|finding| finding.kind == RiskyApproval));
}

#[test]
fn a_risky_approval_says_why() {
    let mut s = at_work();
    s.request("git push --force origin main");
    let stage = check(&s, 2, &[RiskyApproval]);
    let finding = stage.last(RiskyApproval).unwrap();
    assert_eq!(finding.severity, Severity::Error);
    assert_eq!(finding.why, "the agent is waiting for permission, and it overwrites shared history");
}

#[test]
fn several_approvals_or_a_long_wait_raise_a_backlog_finding() {
    let mut s = at_work();
    for n in 0..3 {
        s.request(&format!("npm run {n}"));
    }
    let stage = check(&s, 5, &[Approval, Approval, Approval, ApprovalBacklog]);
    assert_eq!(stage.last(ApprovalBacklog).unwrap().count, 3);
    let mut s = at_work();
    s.request("npm test");
    let mut stage = check(&s, 601, &[Approval, ApprovalBacklog]);
    s.leave();
    stage.say(&Line { at: 700_000, ..s.lines.last().unwrap().clone() });
    assert!(!stage.is_open(Approval) && !stage.is_open(ApprovalBacklog));
}

#[test]
fn an_exit_code_after_a_failed_prompt_is_not_a_crash() {
    let exited = SessionExited { reason: Some(Reason::Failed), code: Some(1) };
    let exits = || Line::new(0, exited.clone()).by(Source::Process);
    let mut s = at_work();
    s.fails(ErrorClass::Auth, "401", "invalid key");
    s.wait(5);
    s.put(exits());
    check(&s, 1, &[Auth]);
    // In a turn, or after one that completed, the exit code adds to the session's report.
    let mut s = at_work();
    s.put(exits());
    check(&s, 1, &[Crash]);
    let mut s = at_work();
    s.answer("done");
    s.put(exits());
    check(&s, 1, &[Crash]);
}

#[test]
fn an_exit_code_after_a_reported_end_is_not_a_crash() {
    let exits = || Line::new(0, SessionExited { reason: Some(Reason::Failed), code: Some(1) }).by(Source::Process);
    let reports = |state| Line::new(0, signal(Claim::State { state, reason: None })).by(Source::Runtime);
    let mut s = at_work();
    s.answer("done");
    s.put(reports(State::Waiting));
    s.put(exits());
    check(&s, 1, &[]);
    // While working, it did not report an end.
    let mut s = at_work();
    s.put(reports(State::Waiting));
    s.put(reports(State::Running));
    s.put(exits());
    check(&s, 1, &[Crash]);
}

#[test]
fn an_answer_that_was_cut_is_not_called_done() {
    let mut s = at_work();
    s.put(
        Line::new(0, events::AssistantMessage { stop: Some(events::Stop::MaxTokens), ..Default::default() })
            .text("half"),
    );
    s.put(Line::new(0, signal(Claim::TurnEnded { outcome: events::TurnOutcome::Completed, pending_subagents: 0 })));
    let stage = check(&s, 5, &[]);
    let done = stage.last(Completion).unwrap();
    assert_eq!((done.what.as_str(), done.severity), ("the answer was cut at its maximum length", Severity::Warning));
    assert!(done.why.ends_with("the prompt was: make it work"), "{}", done.why);
}

#[test]
fn a_model_refusal_is_not_described_as_a_provider_failure() {
    for (code, what) in [("refused", "the model refused to answer"), ("500", "the model's provider failed")] {
        let mut s = at_work();
        s.fails(ErrorClass::Other, code, "the model refused to answer");
        assert_eq!(check(&s, 5, &[Provider]).last(Provider).unwrap().what, what);
    }
}

#[test]
fn a_question_finding_stays_open_until_it_is_answered() {
    let mut s = at_work();
    let id = s.call("AskUserQuestion", ToolKind::Question, "Which?", "{}");
    s.put(Line::new(0, QuestionAsked { call_id: Some(id.clone()), options: vec![] }).text("Which color?"));
    let stage = check(&s, 5, &[Question]);
    assert!(stage.last(Question).unwrap().what.starts_with("asks: Which"));
    s.wait(5);
    s.put(Line::new(0, QuestionAnswered { call_id: Some(id) }));
    assert_eq!(resolution(&check(&s, 1, &[Question]), Question), "it was answered");
}

#[test]
fn a_completion_finding_contains_what_the_checks_showed() {
    let mut s = at_work();
    s.run("cargo test", 5, End::Ok, "test result: ok. 3 passed; 0 failed");
    s.answer("done");
    let stage = check(&s, 5, &[]);
    let done = stage.last(Completion).unwrap();
    assert!(done.why.contains("its checks: tests 3 passed"), "{}", done.why);
    assert_eq!((done.what.as_str(), done.severity), ("done: make it work", Severity::Info));
    s.wait(60);
    s.prompt("more");
    assert_eq!(resolution(&check(&s, 1, &[]), Completion), "it is working again");
    s.run("cargo test", 5, End::Failed(101), "test result: FAILED. 2 passed; 1 failed");
    s.answer("it does not work");
    let stage = check(&s, 5, &[]);
    assert_eq!(stage.last(Completion).unwrap().severity, Severity::Warning);
    s.wait(60);
    s.leave();
    assert!(
        check(&s, 5, &[OpenWork]).last(OpenWork).unwrap().why.contains("its checks had failed: tests 1 of 3 failed")
    );
}

#[test]
fn a_statement_that_the_last_check_does_not_show_raises_a_claim() {
    let tests = |output: &str, end, answer: &str| {
        let mut s = at_work();
        s.run("cargo test", 5, end, output);
        s.answer(answer);
        s
    };
    let (passed, failed) = ("test result: ok. 3 passed; 0 failed", "test result: FAILED. 2 passed; 1 failed");
    check(&tests(passed, End::Ok, "All 3 tests pass."), 5, &[]);
    check(&tests(failed, End::Failed(101), "One of the tests fails."), 5, &[]);
    let mut s = tests(failed, End::Failed(101), "All 3 tests pass.");
    let stage = check(&s, 5, &[FindingKind::Claim]);
    let claim = stage.last(FindingKind::Claim).unwrap();
    assert_eq!(claim.what, "said “All 3 tests pass”, but the last test run failed");
    assert_eq!((claim.severity, claim.evidence.len()), (Severity::Warning, 2));
    s.wait(60);
    s.prompt("really?");
    assert_eq!(resolution(&check(&s, 1, &[FindingKind::Claim]), FindingKind::Claim), "it is working again");
}

#[test]
fn a_session_that_ends_during_a_turn_raises_open_work() {
    let mut s = at_work();
    s.say("let me see");
    s.leave();
    let stage = check(&s, 5, &[OpenWork]);
    assert!(stage.last(OpenWork).unwrap().why.contains("a turn was running"));
    assert_eq!(resolution(&check(&s, 25 * 3_600, &[OpenWork]), OpenWork), "it is outdated");
    let stage = check(&s, 25 * 3_600, &[OpenWork]);
    assert_eq!(stage.monitor.sessions(), 0, "a session that ended is forgotten");
}

#[test]
fn a_stale_session_row_does_not_reopen_an_ended_turn() {
    let mut s = at_work();
    s.answer("done");
    s.wait(60);
    s.leave();
    let log = check(&s, 5, &[]).log;
    let first = &log[0];
    let rules = projections::StatusRules::default();
    let mut state = projections::SessionState::new(first.session_id, first.provider, None, first.observed_at, rules);
    let mut monitor = Monitor::new(DetectorLimits::default());
    let mut told = Vec::new();
    let mut stale = None;
    for event in &log {
        told.extend(monitor.apply(event));
        state.fold(event);
        if stale.is_none() && state.view().turn.is_some() {
            stale = Some(state.view().clone());
        }
        // The row of a session is stored some time after its events.
        if matches!(event.payload, events::Payload::TurnCompleted(_)) {
            told.extend(monitor.check(stale.as_ref().unwrap(), event.observed_at));
        }
    }
    assert!(told.iter().all(|finding| finding.kind != OpenWork), "{told:?}");
}

#[test]
fn a_merge_conflict_raises_a_finding_until_it_is_committed() {
    let mut s = at_work();
    s.run("git merge feature", 1, End::Failed(1), "CONFLICT (content): Merge conflict in a.txt\nAutomatic merge failed; fix conflicts and then commit the result.");
    assert!(check(&s, 1, &[MergeConflict]).is_open(MergeConflict));
    s.edit("a.txt", "<<<<<<<", "");
    s.run("git commit -am merged", 1, End::Ok, "[main 1a2b3c4] merged");
    assert_eq!(resolution(&check(&s, 1, &[MergeConflict]), MergeConflict), "the merge was finished or aborted");
}

#[test]
fn a_nearly_full_context_raises_a_finding_until_it_is_compacted() {
    let usage = |tokens: u64, model: &str| {
        Line::new(0, UsageReported { model: Some(model.into()), cache_read_tokens: tokens, ..UsageReported::default() })
    };
    let mut s = at_work();
    s.put(usage(170_000, "claude-opus-5-5"));
    check(&s, 1, &[]);
    s.put(usage(185_000, "claude-opus-5-5"));
    check(&s, 1, &[ContextFull]);
    s.compact();
    assert_eq!(resolution(&check(&s, 1, &[ContextFull]), ContextFull), "the context was compacted");
    // A helper with another model does not count; nor does a model whose context is unknown or larger.
    let mut s = at_work();
    s.put(usage(500, "claude-opus-5-5"));
    s.put(usage(999_999_999, "claude-haiku-5"));
    check(&s, 1, &[]);
    let mut s = at_work();
    s.put(usage(400_000, "claude-opus-5-5"));
    check(&s, 1, &[]);
    // Another report about a response contains the growth.
    let mut s = at_work();
    let part = |tokens| {
        let (message_id, model) = (Some("m".into()), Some("claude-opus-5-5".into()));
        Line::new(0, UsageReported { message_id, model, cache_read_tokens: tokens, ..UsageReported::default() })
    };
    s.put(part(185_000));
    s.put(part(90));
    assert_eq!(check(&s, 1, &[ContextFull]).last(ContextFull).unwrap().state, FindingState::Open);
    // Reports of quotas, and totals of the agent's own accounting, belong to no response.
    let mut s = at_work();
    s.put(usage(185_000, "claude-opus-5-5"));
    let account = Some(UsageAccount::default());
    let quotas = vec![QuotaReported { name: "primary".into(), used_permille: 5, ..QuotaReported::default() }];
    s.put(Line::new(0, UsageReported { quotas, ..UsageReported::default() }));
    s.put(Line::new(0, UsageReported { account, ..UsageReported::default() }));
    assert_eq!(check(&s, 1, &[ContextFull]).last(ContextFull).unwrap().state, FindingState::Open);
    let mut s = at_work();
    s.put(Line::new(0, Annotation { topic: Topic::Notice, value: "Context left until auto-compact: 6%".into() }));
    check(&s, 1, &[ContextFull]);
}

#[test]
fn a_long_command_is_reported_unless_it_only_waited_for_approval() {
    let mut s = at_work();
    s.run("cargo build --release", 1_200, End::Ok, "Finished");
    let stage = check(&s, 1, &[LongJob]);
    assert_eq!(stage.last(LongJob).unwrap().what, "`cargo build --release` is done after 20 min");
    let mut s = at_work();
    s.approval("npm test", 900, 5, "ok");
    check(&s, 1, &[Approval, ApprovalBacklog]);
}

#[test]
fn results_that_are_not_recorded_are_not_a_loop() {
    let mut s = at_work();
    for n in 0..30 {
        // A page is opened, and the transcript does not contain its address.
        let what = if n % 3 == 0 { String::new() } else { format!("loops in {n}") };
        let id = s.call("web_search", ToolKind::Fetch, &what, "");
        s.returns(&id, End::Ok, "");
    }
    check(&s, 5, &[]);
    // A message that nothing was found is output.
    let mut s = at_work();
    for n in 0..30 {
        let id = s.call("web_search", ToolKind::Fetch, &format!("loops in {n}"), "");
        s.returns(&id, End::Ok, "No results found.");
    }
    check(&s, 5, &[Loop]);
}

#[test]
fn a_long_silence_after_a_completed_turn_raises_idle() {
    let mut s = at_work();
    s.answer("done");
    check(&s, 1_900, &[]);
    let stage = check(&s, 2_000, &[Idle]);
    assert_eq!(stage.last(Idle).unwrap().severity, Severity::Info);
    s.wait(3_000);
    s.prompt("and now");
    resolution(&check(&s, 1, &[Idle]), Idle);
}

#[test]
fn a_repeated_failure_finding_resolves_when_the_command_succeeds() {
    let mut s = at_work();
    for n in 0..4 {
        s.edit("a.rs", &n.to_string(), "x");
        s.run(
            "cargo test",
            5,
            End::Failed(101),
            &format!("test a ... FAILED\ntest result: FAILED. 1 failed; finished in 0.{n}s"),
        );
    }
    let stage = check(&s, 1, &[RepeatedFailure]);
    assert_eq!(stage.last(RepeatedFailure).unwrap().what, "`cargo test` failed 4 times");
    s.run("cargo test", 5, End::Ok, "test result: ok. 2 passed; 0 failed");
    assert_eq!(resolution(&check(&s, 1, &[RepeatedFailure]), RepeatedFailure), "it succeeded");
}

#[test]
fn a_loop_is_over_when_something_else_is_done_or_asked() {
    let mut looping = at_work();
    for _ in 0..6 {
        looping.run("git status", 1, End::Ok, "clean");
    }
    assert!(check(&looping, 1, &[Loop]).is_open(Loop));
    let mut s = at_work();
    for _ in 0..6 {
        s.run("git status", 1, End::Ok, "clean");
    }
    for file in ["a", "b", "c"] {
        s.read(file, End::Ok, file);
    }
    assert_eq!(resolution(&check(&s, 1, &[Loop]), Loop), "the agent is doing something else");
    looping.asks(PromptOrigin::Steering, "stop that");
    assert_eq!(resolution(&check(&looping, 1, &[Loop]), Loop), "a new prompt was sent");
}

#[test]
fn a_prompt_typed_for_a_rule_resets_no_detector() {
    let mut looping = at_work();
    for _ in 0..6 {
        looping.run("git status", 1, End::Ok, "clean");
    }
    looping.asks(PromptOrigin::Monitor, "stop that");
    assert!(check(&looping, 1, &[Loop]).is_open(Loop));
    // Failures before and after the prompt add up.
    let failing = |origin: PromptOrigin| {
        let mut s = at_work();
        for n in 0..4 {
            if n == 2 {
                s.answer("It fails.");
                s.asks(origin, "try again");
            }
            s.edit("a.rs", &n.to_string(), "x");
            s.run("cargo test", 5, End::Failed(101), "test a ... FAILED\ntest result: FAILED. 1 failed");
        }
        s
    };
    check(&failing(PromptOrigin::Monitor), 1, &[RepeatedFailure]);
    check(&failing(PromptOrigin::Human), 1, &[]);
}

#[test]
fn a_subagent_session_raises_no_completion_crash_or_idle_finding() {
    let mut s = Script::new(1);
    s.put(Line::new(0, SessionStarted { how: StartKind::Subagent, ..SessionStarted::default() }));
    s.asks(PromptOrigin::Agent, "look around");
    s.answer("done");
    s.wait(10);
    s.asks(PromptOrigin::Agent, "again");
    s.say("hm");
    s.killed();
    let stage = check(&s, 10_000, &[]);
    assert!(stage.opened().is_empty());
}

#[test]
fn history_raises_nothing_unless_the_process_is_alive() {
    let mut s = at_work();
    for _ in 0..20 {
        s.run("make", 1, End::Failed(2), "error: no");
    }
    s.fails(ErrorClass::Auth, "401", "401");
    let lines: Vec<Line> =
        s.lines.iter().map(|line| Line { history: true, at: line.at - 86_400_000, ..line.clone() }).collect();
    let is_process =
        |line: &&Line| matches!(&line.payload, Payload::Signal(s) if matches!(s.claim, Claim::ProcessAlive { .. }));
    let of_the_past: Vec<Line> = lines.iter().filter(|line| !is_process(line)).cloned().collect();
    let mut stage = Stage::played(&of_the_past);
    stage.until(100_000_000);
    assert!(stage.told.is_empty(), "{:?}", stage.told);
    // Its process is alive: open problems are raised, but none that were already over.
    let mut stage = Stage::played(&lines);
    stage.until(100_000_000);
    assert_eq!(stage.kinds_but(&[]), [Auth], "{:?}", stage.told);
}

#[test]
fn open_problems_in_the_history_of_a_live_agent_are_raised_once() {
    let past = |s: &Script| -> Vec<Line> {
        s.lines.iter().map(|line| Line { history: true, at: line.at - 3_600_000, ..line.clone() }).collect()
    };
    // The end of a turn long ago is not reported.
    let mut s = at_work();
    s.answer("done");
    let mut stage = Stage::played(&past(&s));
    stage.until(1_000_000);
    assert_eq!(stage.kinds_but(&[Idle]), [], "{:?}", stage.told);
    // A question is raised, and resolved once it is answered.
    let mut s = at_work();
    s.call("Ask", ToolKind::Question, "Which color?", "{}");
    let mut stage = Stage::played(&past(&s));
    stage.until(1_000);
    assert_eq!(stage.kinds_but(&[]), [Question], "{:?}", stage.told);
    stage.until(100_000);
    stage.check();
    assert_eq!(stage.kinds_but(&[]), [Question], "{:?}", stage.told);
    // A quota reported and resolved before a restart is not reported again while the status still shows it.
    let mut s = at_work();
    s.fails(ErrorClass::Quota, "402", "insufficient funds");
    let mut stage = Stage::played(&past(&s));
    stage.until(1_000);
    let raised = stage.last(Quota).unwrap().clone();
    let mut again = Stage::new();
    again.monitor.restore([events::Finding { state: FindingState::Resolved, resolved_at: Some(START), ..raised }], 0);
    again.play(&past(&s));
    again.until(1_000);
    assert!(again.told.is_empty(), "{:?}", again.told);
}

#[test]
fn acknowledging_a_finding_reports_the_change_once() {
    let mut s = at_work();
    s.fails(ErrorClass::Auth, "401", "401");
    let mut stage = check(&s, 1, &[Auth]);
    let id = stage.last(Auth).unwrap().id.clone();
    let now = stage.last(Auth).unwrap().last_at.plus_ms(5);
    let told = stage.monitor.acknowledge(&id, now);
    assert_eq!((told.len(), told[0].state, told[0].acknowledged_at), (1, FindingState::Acknowledged, Some(now)));
    assert!(stage.monitor.acknowledge(&id, now).is_empty());
    assert!(stage.monitor.acknowledge(&"f0".into(), now).is_empty());
}

#[test]
fn disabled_findings_are_not_raised_and_the_session_limit_is_kept() {
    let mut s = at_work();
    s.fails(ErrorClass::Auth, "401", "401");
    let mut stage = Stage::with(DetectorLimits { off: vec![Auth], ..DetectorLimits::default() });
    stage.play(&s.lines);
    assert!(stage.opened().is_empty());
    let mut monitor = Monitor::new(DetectorLimits { sessions: 3, ..DetectorLimits::default() });
    let mut given_up = 0;
    for n in 0..10 {
        let mut stage = Stage::of(monitor, &format!("session {n}"));
        stage.play(&s.lines);
        given_up += stage
            .told
            .iter()
            .filter(|(_, f)| {
                f.resolution.as_deref()
                    == Some(
                        "too many sessions are \
                monitored",
                    )
            })
            .count();
        monitor = stage.monitor;
        assert!(monitor.sessions() <= 3);
    }
    assert_eq!((given_up, monitor.open().count()), (7, 3));
}

#[test]
fn a_monitor_restored_from_findings_continues_where_it_left_off() {
    let mut s = at_work();
    s.call("Bash", ToolKind::Execute, "npm test", "{}");
    s.request("npm test");
    let before = check(&s, 20, &[Approval]);
    let last = before.log.last().unwrap();
    let mut monitor = Monitor::new(DetectorLimits::default());
    monitor.restore(before.monitor.open().cloned(), last.position);
    let fresh = || {
        let rules = projections::StatusRules::default();
        projections::SessionState::new(last.session_id, last.provider, None, last.observed_at, rules)
    };
    let mut state = fresh();
    for event in &before.log {
        state.fold(event);
    }
    let now = last.observed_at.plus_ms(30_000);
    assert!(monitor.check(state.view(), now).is_empty(), "it still waits");
    assert!(monitor.advance(now.plus_ms(60_000)).is_empty());
    state.session.pending_approvals.clear();
    let told = monitor.check(&state.session, now.plus_ms(61_000));
    assert_eq!((told.len(), told[0].kind, told[0].state), (1, Approval, FindingState::Resolved));
    // The silence of a turn that was open before the restart counts in full.
    let mut quiet = at_work();
    quiet.say("let me see");
    let quiet = check(&quiet, 1, &[]);
    let mut state = fresh();
    let mut monitor = Monitor::new(DetectorLimits::default());
    let mut told = Vec::new();
    for event in &quiet.log {
        told.extend(monitor.apply(event));
        state.fold(event);
    }
    let end = quiet.log.last().unwrap().observed_at;
    told.extend(monitor.check(state.view(), end.plus_ms(1_000)));
    assert!(told.is_empty(), "{told:?}");
    assert_eq!(monitor.advance(end.plus_ms(700_000)).first().map(|f| f.kind), Some(Stuck));
}

#[test]
fn replayed_history_does_not_resolve_the_crash_finding() {
    let mut s = at_work();
    s.call("Bash", ToolKind::Execute, "make", "{}");
    s.wait(5);
    s.killed();
    let mut stage = check(&s, 1, &[Crash]);
    let log = stage.log.clone();
    let end = log.last().unwrap().observed_at;
    // The whole log again as history: to a monitor that applied it, and to one that only has the finding.
    let mut after = Monitor::new(DetectorLimits::default());
    after.restore(stage.monitor.open().cloned(), 0);
    for monitor in [&mut stage.monitor, &mut after] {
        for event in &log {
            let told = monitor.apply(&events::Event { history: true, ..event.clone() });
            assert!(told.is_empty(), "{told:?}");
        }
        assert_eq!(monitor.open().map(|finding| finding.kind).collect::<Vec<_>>(), [Crash]);
    }
    // Events applied as history when the monitor began are applied again when they are live.
    let mut early = Monitor::new(DetectorLimits::default());
    let mut told = Vec::new();
    for history in [true, false] {
        for event in &log {
            told.extend(early.apply(&events::Event { history, ..event.clone() }));
        }
        assert_eq!(told.iter().any(|finding| finding.kind == Crash), !history);
    }
    // Later events do.
    let last = log.iter().rfind(|event| matches!(event.payload, Payload::UserPrompt(_))).unwrap();
    let observed_at = end.plus_ms(60_000);
    let prompt = events::Event { position: stage.log.len() as u64 + 99, observed_at, ..last.clone() };
    assert!(after.apply(&prompt).iter().any(|f| f.kind == Crash && f.state == FindingState::Resolved));
}

#[test]
fn a_question_asked_before_an_approval_closes_is_raised_afterwards() {
    let mut s = at_work();
    let id = s.call("mcp__demo__ask", ToolKind::Mcp, "demo: ask", "{}");
    s.request("demo: ask");
    s.wait(2);
    let asks = Claim::State { state: State::Waiting, reason: Some(Reason::Question) };
    s.put(Line::new(0, signal(asks)).by(Source::Registry));
    s.wait(1);
    let over = Signal { key: Some("k1".into()), ..signal(Claim::Withdrawn) };
    s.put(Line::new(0, over).by(Source::Hook));
    let stage = check(&s, 5, &[Approval, Question]);
    assert!(stage.is_open(Question));
    s.wait(10);
    s.put(Line::new(0, signal(Claim::State { state: State::Running, reason: None })).by(Source::Registry));
    s.returns(&id, End::Ok, "eu");
    assert_eq!(resolution(&check(&s, 1, &[Approval, Question]), Question), "it was answered");
}

#[test]
fn a_completion_finding_mentions_unresolved_merge_conflicts() {
    let mut s = at_work();
    s.run("git rebase main", 2, End::Failed(1), "CONFLICT (content): Merge conflict in a.rs");
    s.answer("which side?");
    let stage = check(&s, 5, &[MergeConflict]);
    let done = stage.last(Completion).unwrap();
    assert_eq!(done.severity, Severity::Warning);
    assert!(done.why.ends_with("1 tool call, and a merge has conflicts"), "{}", done.why);
}

#[test]
fn a_loop_finding_distinguishes_one_command_from_similar_attempts() {
    let said = |each: fn(i64) -> (String, String)| {
        let mut s = at_work();
        for n in 0..8 {
            let (command, output) = each(n);
            s.run(&command, 3, End::Failed(2), &output);
        }
        let stage = Stage::played(&s.lines);
        let found = stage.last(Loop).unwrap();
        (found.what.clone(), found.why.clone())
    };
    let (what, why) = said(|n| ("make -j8".into(), format!("{n} of 90 objects\nerror: expected ;")));
    assert!(what.starts_with("`make -j8` "), "{what}");
    assert!(!why.contains("arguments"), "{why}");
    let (what, why) = said(|n| (format!("make a{n}"), "error: expected ;".into()));
    assert!(what.contains("attempts like"), "{what}: {why}");
}

#[test]
fn a_request_held_by_a_hook_is_raised_once_the_session_waits_for_it() {
    // The hook's own claim counts only from later on; the screen shows the current state.
    let asked = |answered: i64, screen: Source, dialog: Option<i64>| {
        let mut s = at_work();
        s.put(Line::new(0, signal(Claim::State { state: State::Running, reason: None })).by(screen));
        s.call("Bash", ToolKind::Execute, "touch x", "{}");
        let id = s.asked("touch x");
        let asks = Claim::State { state: State::WaitingApproval, reason: Some(Reason::Tool) };
        let likely =
            Signal { key: Some("k1".into()), holds_from: Some(START.plus_ms(s.at + 60_000)), ..signal(asks.clone()) };
        s.put(Line::new(0, likely).by(Source::Hook));
        if let Some(after) = dialog {
            s.wait(after);
            s.put(Line::new(0, signal(asks)).by(screen));
        }
        s.wait(answered - dialog.unwrap_or(0));
        let decided = ApprovalResolved { approval_id: id, allowed: Some(true), ..ApprovalResolved::default() };
        s.put(Line::new(0, decided).by(Source::Runtime));
        s
    };
    check(&asked(4, Source::Pty, None), 1, &[]);
    check(&asked(4, Source::Pty, Some(2)), 1, &[Approval]);
    // Regardless of the status, the user is informed in the end.
    check(&asked(12, Source::Pty, None), 1, &[Approval]);
    // No source can see whether there is a dialog.
    check(&asked(4, Source::Registry, None), 1, &[Approval]);
}
