//! Compares the recorded scenarios with their known course.

use events::{Kind, TurnOutcome};

use super::*;

#[derive(Debug, Default, PartialEq)]
struct RecordingCounts {
    /// Prompts: of people, of the agent to itself, of agents to their sub-agents.
    prompts: [usize; 3],
    /// Messages of the model, each counted once.
    messages: usize,
    calls: usize,
    results: usize,
    errors: usize,
    ends: Vec<TurnOutcome>,
}

fn count(scenario: &str) -> RecordingCounts {
    let mut counts = RecordingCounts::default();
    let mut known = std::collections::HashSet::new();
    let mut messages = std::collections::HashSet::new();
    for (path, bytes) in recorded(scenario) {
        let out = decode(&path, &bytes);
        assert_eq!(out.issues, 0, "{path}");
        for event in out.events.iter().filter(|e| known.insert(e.identity)) {
            let kind = event.payload.kind();
            assert_ne!(kind, Kind::Unrecognized, "{}", String::from_utf8_lossy(&bytes));
            counts.calls += usize::from(kind == Kind::ToolCall);
            counts.results += usize::from(kind == Kind::ToolResult);
            counts.errors += usize::from(kind == Kind::Error);
            match &event.payload {
                Payload::UserPrompt(prompt) => {
                    let who = match prompt.origin {
                        events::PromptOrigin::Human
                        | events::PromptOrigin::Steering
                        | events::PromptOrigin::Command => 0,
                        events::PromptOrigin::Wakeup => 1,
                        events::PromptOrigin::Agent => 2,
                        events::PromptOrigin::Monitor => unreachable!("no agent records it"),
                    };
                    counts.prompts[who] += 1;
                }
                Payload::AssistantMessage(message) => {
                    messages.insert(message.message_id.clone());
                }
                Payload::Signal(Signal { claim: Claim::TurnEnded { outcome, .. }, .. }) => counts.ends.push(*outcome),
                _ => {}
            }
        }
    }
    counts.messages = messages.len();
    counts
}

#[test]
fn recordings_yield_the_expected_event_counts() {
    use TurnOutcome::{Completed, Denied, Interrupted};
    // scenario: prompts, messages, calls, results, errors, ends of turns
    type Row = (&'static str, [usize; 3], usize, usize, usize, usize, &'static [TurnOutcome]);
    let table: &[Row] = &[
        ("S01-hello", [1, 0, 0], 1, 0, 0, 0, &[Completed]),
        ("S03-bash-approve", [1, 0, 0], 2, 1, 1, 0, &[Completed]),
        ("S05-long-quiet", [1, 0, 0], 2, 1, 1, 0, &[Completed]),
        ("S07-retries", [1, 0, 0], 1, 0, 0, 0, &[Completed]),
        ("S09-interrupt", [2, 0, 0], 2, 1, 1, 0, &[Interrupted, Interrupted]),
        ("S10-sigkill", [1, 0, 0], 0, 0, 0, 0, &[]),
        ("S11-question", [2, 0, 0], 3, 1, 1, 0, &[Completed, Completed]),
        ("S12-subagent", [1, 1, 1], 6, 3, 3, 0, &[Completed, Completed]),
        ("S13-compact", [7, 0, 0], 7, 0, 0, 0, &[Completed; 7]),
        ("S14-resume-fork", [7, 0, 0], 7, 0, 0, 0, &[Completed; 7]),
        ("S15-edit-write", [1, 0, 0], 4, 3, 3, 0, &[Completed]),
        ("S17-parallel", [1, 0, 0], 2, 4, 4, 0, &[Completed]),
        ("S18-plan", [1, 0, 0], 3, 2, 2, 0, &[Completed]),
        ("S19b-trust", [1, 0, 0], 1, 0, 0, 0, &[Completed]),
        ("S21a-hook-allow", [1, 0, 0], 2, 1, 1, 0, &[Completed]),
        ("S21b-hook-deny", [1, 0, 0], 2, 1, 1, 0, &[Completed]),
        ("S24-webfetch-mcp-elicitation", [3, 0, 0], 5, 3, 3, 0, &[Denied, Completed, Completed]),
        ("osc7501-approve", [2, 0, 0], 3, 1, 1, 0, &[Completed, Completed]),
        ("osc7501-background", [1, 1, 0], 3, 1, 1, 0, &[Completed, Completed]),
        ("osc7501-child-in-dialog", [1, 0, 1], 5, 3, 3, 0, &[Completed]),
        ("osc7501-deny-esc", [3, 0, 0], 3, 1, 1, 0, &[Denied, Interrupted, Completed]),
        ("osc7501-question", [1, 0, 0], 2, 1, 1, 0, &[Completed]),
        ("osc7501-subagent-auth", [2, 0, 1], 4, 2, 2, 1, &[Completed]),
    ];
    assert_eq!(scenarios(), table.iter().map(|row| row.0).collect::<Vec<_>>(), "every recording is in the table");
    for (scenario, prompts, messages, calls, results, errors, ends) in table {
        let expected = RecordingCounts {
            prompts: *prompts,
            messages: *messages,
            calls: *calls,
            results: *results,
            errors: *errors,
            ends: ends.to_vec(),
        };
        assert_eq!(count(scenario), expected, "{scenario}");
    }
}

#[test]
fn recorded_usage_is_reported_once_per_message() {
    for scenario in scenarios() {
        for (path, bytes) in recorded(&scenario) {
            let mut spent: Vec<String> = decode(&path, &bytes)
                .events
                .into_iter()
                .filter_map(|e| match e.payload {
                    Payload::UsageReported(usage) => usage.message_id,
                    _ => None,
                })
                .collect();
            let all = spent.len();
            spent.sort();
            spent.dedup();
            assert_eq!(spent.len(), all, "{path}");
        }
    }
}

#[test]
fn recorded_plan_web_and_question_calls_have_their_tool_kind() {
    let tools = |scenario: &str| -> Vec<String> {
        let files = recorded(scenario);
        let all = files.iter().flat_map(|(path, bytes)| decode(path, bytes).events);
        all.filter_map(|e| match e.payload {
            Payload::ToolCall(call) => Some(format!("{} {}", call.name, call.tool)),
            _ => None,
        })
        .collect()
    };
    assert!(tools("S18-plan").contains(&"ExitPlanMode plan".to_owned()));
    assert!(tools("S24-webfetch-mcp-elicitation").contains(&"WebFetch fetch".to_owned()));
    assert!(tools("S24-webfetch-mcp-elicitation").iter().any(|t| t.ends_with(" mcp")));
    assert!(tools("S11-question").contains(&"AskUserQuestion question".to_owned()));
}
