//! Compares the recorded scenarios with their true course.

use events::{Kind, Payload, Signal, TurnOutcome};

use super::*;

#[derive(Debug, Default, PartialEq)]
struct ScenarioCounts {
    prompts: usize,
    blocks: u32,
    calls: usize,
    results: usize,
    details: usize,
    usage: usize,
    ends: Vec<TurnOutcome>,
}

fn count(events: &[NewEvent]) -> ScenarioCounts {
    let mut counts = ScenarioCounts::default();
    for event in events {
        let kind = event.payload.kind();
        counts.prompts += usize::from(kind == Kind::UserPrompt);
        counts.calls += usize::from(kind == Kind::ToolCall);
        counts.usage += usize::from(kind == Kind::UsageReported);
        assert_ne!(kind, Kind::Unrecognized, "{}", show(event));
        if let Payload::AssistantMessage(message) = &event.payload {
            counts.blocks += message.blocks;
        }
        if let Payload::ToolResult(result) = &event.payload {
            *(if result.detail { &mut counts.details } else { &mut counts.results }) += 1;
        }
        if let Payload::Signal(Signal { claim: Claim::TurnEnded { outcome, .. }, .. }) = event.payload {
            counts.ends.push(outcome);
        }
    }
    counts
}

type Row = (&'static str, usize, u32, usize, usize, usize, usize, &'static [TurnOutcome]);

#[test]
fn recordings_yield_the_expected_event_counts() {
    use TurnOutcome::{Completed, Denied, Failed, Interrupted};
    // scenario: prompts, answers, calls, results, details, responses, ends of turns
    let table: &[Row] = &[
        ("A03-daemon-default", 2, 3, 2, 2, 2, 4, &[Completed, Completed]),
        ("A04-daemon-tui-killed", 1, 1, 1, 1, 1, 2, &[Completed]),
        ("H02-hook-denies", 1, 1, 1, 1, 0, 2, &[Completed]),
        ("H03-deny-esc-error", 3, 3, 2, 2, 1, 3, &[Denied, Interrupted, Completed]),
        ("H04-esc-during-command", 2, 2, 1, 1, 1, 2, &[Denied, Completed]),
        ("S01-hello", 1, 1, 0, 0, 0, 1, &[Completed]),
        ("S02-auto-tool", 1, 2, 1, 1, 1, 2, &[Completed]),
        ("S02-auto-tool--direct", 1, 2, 1, 1, 1, 2, &[Completed]),
        ("S03-approve", 1, 2, 1, 1, 1, 2, &[Completed]),
        ("S03-approve--direct", 1, 2, 1, 1, 1, 2, &[Completed]),
        ("S05-quiet-command", 1, 1, 1, 1, 1, 2, &[Completed]),
        ("S07a-retries-then-ok", 1, 2, 0, 0, 0, 1, &[Completed]),
        ("S08-auth-401", 1, 0, 0, 0, 0, 0, &[Failed]),
        ("S09-interrupt", 2, 0, 1, 1, 1, 1, &[Interrupted, Interrupted]),
        ("S10-sigkill", 1, 0, 1, 0, 0, 1, &[]),
        ("S11b-question-tool", 1, 1, 1, 1, 0, 2, &[Completed]),
        ("S12-subagent", 2, 2, 5, 5, 2, 7, &[Completed, Completed]),
        ("S13-compact", 7, 7, 0, 0, 0, 8, &[Completed; 8]),
        ("S14-resume-fork", 4, 4, 0, 0, 0, 4, &[Completed; 4]),
        ("S15-edit-approval", 1, 1, 1, 1, 1, 2, &[Completed]),
        ("S17-parallel-tools", 1, 1, 1, 1, 3, 2, &[Completed]),
        ("S18-plan", 2, 3, 0, 0, 0, 2, &[Completed, Completed]),
        ("S20-mcp-approval", 1, 1, 1, 1, 1, 2, &[Completed]),
        ("S23-steer-while-running", 3, 2, 1, 1, 1, 3, &[Completed, Completed]),
        ("older-form", 1, 4, 7, 7, 0, 7, &[Completed]),
    ];
    let named: Vec<&str> = table.iter().map(|row| row.0).collect();
    assert_eq!(all_rollouts().keys().collect::<Vec<_>>(), named, "every fixture is in the table");
    for (scenario, prompts, blocks, calls, results, details, usage, ends) in table {
        let events: Vec<NewEvent> = rollouts(scenario).iter().flat_map(|(path, bytes)| decode(path, bytes).0).collect();
        let expected = ScenarioCounts {
            prompts: *prompts,
            blocks: *blocks,
            calls: *calls,
            results: *results,
            details: *details,
            usage: *usage,
            ends: ends.to_vec(),
        };
        assert_eq!(count(&events), expected, "{scenario}");
        let mut known = std::collections::HashSet::new();
        for event in events.iter().filter(|event| event.repeat == events::Repeat::Unique) {
            let again = matches!(event.payload, Payload::SessionStarted(_) | Payload::SessionForked(_));
            assert!(known.insert(event.identity) || again, "{scenario}: {}", show(event));
        }
    }
}

/// The events of a scenario's file in order, without usage and settings.
fn story(scenario: &str, file: usize) -> Vec<String> {
    let (path, bytes) = &rollouts(scenario)[file];
    let (events, _) = decode(path, bytes);
    events
        .iter()
        .filter(|event| !matches!(event.payload, Payload::UsageReported(_) | Payload::Annotation(_)))
        .map(show)
        .collect()
}

#[test]
fn an_approved_command_is_decoded_with_its_result() {
    assert_eq!(
        story("S03-approve", 0),
        [
            "session.started new /home/dev/projxxxxxxxxxxxxxxxxxxxxxx - 0.169.0 - -",
            "signal running thinking",
            "user.prompt human \"touch the file\"",
            "assistant.message \"Running it outside the sandbox.\"",
            "tool.call exec execute [echo hi-from-escalated; touch /home/devxxx-x] may ask \"const r = await tools.exec_command({\\\"cmd\\\": \\\"echo hi-from-escalated; touch /home/devxxx-x\\\", \\\"prefix_rule\\\": [\\\"touch\\\"], \\\"sandbox_permissions\\\": \\\"require_escalated\\\", \\\"justification\\\": \\\"Do you want to allow touching a file outside the workspace?\\\"});\\ntext(r.output);\\n\"",
            "tool.result call_lab000011 ok exit 0 detail",
            "tool.result call_lab000011 ok exit 0 \"Script completed\\nWall time 6.3 seconds\\nOutput:\\nhi-from-escalated\\n\"",
            "assistant.message \"Done: the file exists.\"",
            "signal ended completed",
        ]
    );
}

#[test]
fn a_sub_agent_gets_its_own_session_and_prompt() {
    let seen = story("S12-subagent", 1);
    assert_eq!(
        seen[..3],
        [
            "session.started subagent /home/dev/projxxxxxxxxxxxxxxxxxxxxxxx - 0.169.0 01a1f741-760a-74c0-9634-fc2ea6a161f5 /root/helper",
            "signal running thinking",
            "user.prompt agent \"Count the files.\"",
        ]
    );
    assert!(story("S12-subagent", 0).contains(
        &"tool.call collaboration.spawn_agent subagent [helper] \"{\\\"task_name\\\": \\\"helper\\\", \\\"message\\\": \\\"Count the files.\\\", \\\"fork_turns\\\": \\\"none\\\"}\"".to_owned()
    ));
}

#[test]
fn forks_and_rewinds_record_their_source() {
    let parent = "01a1f742-7e5a-7012-ba36-d9b5eaf4f5ee";
    let fork = "01a1f742-b2aa-7c82-bfe2-9bdb7c31a973";
    let started = "session.started fork /home/dev/projxxxxxxxxxxxxxxxxxxxxxxxxxx - 0.169.0 - -".to_owned();
    let forked = format!("session.forked {parent} at 27");
    assert_eq!(story("S14-resume-fork", 1)[..2], [started.clone(), forked.clone()]);
    assert_eq!(story("S14-resume-fork", 2)[..3], [started, forked, format!("session.forked {fork} at 30")]);

    // The rewound segment belongs to the same thread and repeats events that are already stored.
    let files = rollouts("S14-resume-fork");
    let (first, _) = decode(&files[1].0, &files[1].1);
    let (second, _) = decode(&files[2].0, &files[2].1);
    assert!(second.iter().all(|event| &*event.provider_session_id == fork));
    assert_eq!(first[0].identity, second[0].identity);
    assert_eq!(first[1].identity, second[1].identity);
    assert!(!first.iter().any(|event| event.identity == second[2].identity));
}

#[test]
fn a_prompt_during_a_turn_is_steering_and_a_late_result_opens_no_turn() {
    let seen = story("S23-steer-while-running", 0);
    let prompts: Vec<&String> = seen.iter().filter(|line| line.starts_with("user.prompt")).collect();
    assert_eq!(
        prompts,
        [
            "user.prompt human \"first job\"",
            "user.prompt steering \"also do this\"",
            "user.prompt human \"and later this\""
        ]
    );
    assert_eq!(
        seen[seen.len() - 2..],
        ["signal ended completed", "tool.result exec-87fb1cf9-af7a-4079-8c05-bef4aad23742 ok exit 0 detail \"one\\n\""]
    );
}

#[test]
fn a_question_and_its_selected_answer_are_decoded() {
    let seen = story("S11b-question-tool", 0);
    assert_eq!(
        seen[4..7],
        [
            "question.asked [\"Spaces (Recommended)\", \"Tabs\"] \"Which indentation should I use?\"",
            "question.answered \"Spaces (Recommended)\"",
            "tool.result call_lab000076 ok \"{\\\"answers\\\":{\\\"indent\\\":{\\\"answers\\\":[\\\"Spaces (Recommended)\\\"]}}}\"",
        ]
    );
}

#[test]
fn a_failed_turn_reports_its_error() {
    let seen = story("S08-auth-401", 0);
    assert_eq!(
        seen[3..],
        [
            "error auth 401 ends_turn \"unexpected status 401 Unauthorized: Incorrect API key provided: sk-dummy., url: http://127.0.0.1:39377/v1/responses\"",
            "signal ended failed",
        ]
    );
}

#[test]
fn compaction_is_a_turn_without_a_prompt() {
    let seen = story("S13-compact", 0);
    let at = seen.iter().position(|line| line.starts_with("context.compacted")).unwrap();
    assert_eq!(seen[at - 1], "signal running compacting");
    assert!(seen[at].starts_with("context.compacted manual \"Another language model"), "{}", seen[at]);
    assert_eq!(seen[at + 1], "signal ended completed");
}

#[test]
fn a_hook_that_refuses_blocks_the_call_and_not_the_turn() {
    let seen = story("H02-hook-denies", 0);
    assert!(seen.iter().any(|line| line.starts_with("tool.result call_lab000039 blocked")), "{seen:#?}");
    assert_eq!(seen.last().map(String::as_str), Some("signal ended completed"));
}

#[test]
fn edits_mcp_calls_and_commands_in_scripts_are_distinguished() {
    assert!(story("S15-edit-approval", 0).iter().any(|line| line.starts_with("tool.call exec edit [README.md] ")));
    assert!(story("S20-mcp-approval", 0).iter().any(|line| line.starts_with("tool.call exec mcp [demo.danger] ")));
    assert!(
        story("S17-parallel-tools", 0)
            .iter()
            .any(|line| line.starts_with("tool.call exec execute [touch /home/devxxx-p] may ask"))
    );
}

#[test]
fn a_plan_is_decoded_as_a_separate_assistant_message() {
    let seen = story("S18-plan", 0);
    assert_eq!(
        seen[3..5],
        [
            "assistant.message \"# Plan\\n1. Read the README.\\n2. Change 42 to 43.\\n\"",
            "assistant.message \"Here is the plan.\\n\"",
        ]
    );
}

#[test]
fn results_name_their_calls() {
    for (scenario, files) in all_rollouts() {
        for (path, bytes) in files {
            let (events, _) = decode(path, bytes);
            let calls: Vec<_> = events
                .iter()
                .filter(|event| matches!(event.payload, Payload::ToolCall(_)))
                .map(|event| event.identity)
                .collect();
            for event in &events {
                if let Payload::ToolResult(result) = &event.payload {
                    let parent = event.parent.is_some_and(|parent| calls.contains(&parent));
                    assert!(parent || result.detail, "{scenario}: {}", show(event));
                }
            }
        }
    }
}

/// A refusal and an interrupt are recorded with the same words, whatever precedes them: the call requested more rights
/// and no action of the call was recorded, so both count as a refusal, but not with certainty.
#[test]
fn an_aborted_escalated_call_is_denied_with_medium_confidence() {
    let name = "rollout-2026-11-23T03-01-13-01a20659-b95a-7471-b090-5e617e404c96.jsonl";
    for version in ["0.60.1", "0.120.0", "0.150.0"] {
        for what in ["refused", "command"] {
            let file = format!("../../fixtures/stopped/codex/{version}-{what}.jsonl");
            // 0.60.1 records the difference.
            if (version, what) == ("0.60.1", "command") {
                continue;
            }
            let bytes = fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(&file)).unwrap();
            let (events, issues) = decode(name, &bytes);
            assert_eq!(issues, 0, "{file}");
            let result = events.iter().find_map(|e| match &e.payload {
                Payload::ToolResult(result) => Some((result.outcome, e.confidence)),
                _ => None,
            });
            assert_eq!(result, Some((events::ToolOutcome::Denied, events::Confidence::Medium)), "{file}");
            // 0.60.1 records no ends: before this one, a text counted as a likely end.
            assert_eq!(count(&events).ends.last(), Some(&TurnOutcome::Denied), "{file}");
        }
    }
}
