//! The bare form: response items without envelopes, times or ends of turns.

use super::*;

#[test]
fn a_rollout_without_envelopes_is_decoded() {
    let name = "rollout-2026-04-06T18-46-22-031d3ab5-1e7f-4e55-8e54-10ebd73d1a8d.jsonl";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign/codex").join(name);
    let bytes = fs::read(&path).unwrap();
    let (events, issues) = decode(name, &bytes);
    assert_eq!(issues, 0);
    let told: Vec<String> = events.iter().map(|e| show(e).chars().take(90).collect()).collect();
    let expected = [
        "session.started new - issue-90-wrapped-codex-schema - - -",
        "annotation cwd /Users/ingo/projects/irrlicht-issue-90",
        "user.prompt human \"checkout 90 and work on it. add tests. when done create pr\"",
    ];
    assert_eq!(told[..3], expected);
    assert!(events.iter().all(|e| *e.provider_session_id == *"031d3ab5-1e7f-4e55-8e54-10ebd73d1a8d"));
    let of = |kind: events::Kind| events.iter().filter(|e| e.payload.kind() == kind).count();
    let counts = [
        of(events::Kind::UserPrompt),
        of(events::Kind::AssistantMessage),
        of(events::Kind::ToolCall),
        of(events::Kind::ToolResult),
        of(events::Kind::Unrecognized),
    ];
    assert_eq!(counts, [1, 2, 2, 2, 0]);
    assert!(told.iter().any(|line| line.starts_with("tool.call shell execute [pwd && rg --files")), "{told:#?}");
    // The result is the same wherever a reader stops.
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    for end in ends {
        let mut out = output(name);
        let state = resume(name, &bytes[..end], 0, None, &mut out);
        resume(name, &bytes[end..], end as u64, state.as_deref(), &mut out);
        assert_eq!(out.events, events);
    }
}

#[test]
fn unknown_records_of_a_bare_rollout_are_issues() {
    for line in [r#"{"type":"rumour","payload":1"#, r#"{"type":"rumour"}"#, r#"{"id":7}"#, "[]"] {
        assert_eq!(decode("rollout-x.jsonl", line.as_bytes()).1, 1, "{line}");
    }
}
