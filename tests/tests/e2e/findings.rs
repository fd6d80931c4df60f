//! The monitor's findings in recordings of real agents, with their hooks and telemetry: each recording yields exactly
//! the findings expected of it.
//!
//! `UPDATE_TRACES=1` writes the traces in `fixtures/monitor/recorded`, which the monitor's own tests replay.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
};

use events::{Event, Finding, FindingKind, Payload, Timestamp};
use monitor::{DetectorLimits, Monitor};
use projections::SessionState;
use tests::{
    observations,
    recording::{fixtures, folder::Folder},
    world::{StoredSession, World},
};

use FindingKind::{Approval, Auth, Completion, Crash, Question};

/// Plays a recording; returns the stored sessions and the time of its end.
fn played(name: &str) -> (Vec<StoredSession>, Timestamp) {
    let dir = fixtures().join("recordings").join(name);
    let folder = Folder::read(&dir).unwrap();
    let mut world = World::new(folder.meta.started_at.unwrap());
    observations::play(&mut world, &dir);
    let now = world.wall();
    (world.end().1, now)
}

/// The monitor's findings for the logs. It receives the same input as in the program: the events of all sessions in the
/// order of their commits, and the reducer's state after each batch of related events.
fn found(kept: &[StoredSession], until: Timestamp) -> Vec<Finding> {
    let mut events: Vec<&Event> = kept.iter().flat_map(|kept| &kept.events).collect();
    events.sort_by_key(|event| event.position);
    let mut states = HashMap::new();
    let mut monitor = Monitor::new(DetectorLimits::default());
    let mut found = Vec::new();
    for (index, event) in events.iter().enumerate() {
        found.extend(monitor.advance(event.observed_at));
        found.extend(monitor.apply(event));
        let state = states.entry(event.session_id).or_insert_with(|| {
            let id = Some(event.provider_session_id.clone());
            SessionState::new(
                event.session_id,
                event.provider,
                id,
                event.created_at,
                projections::StatusRules::default(),
            )
        });
        state.fold(event);
        if events.get(index + 1).is_none_or(|next| !next.derived) {
            found.extend(monitor.check(state.view(), event.observed_at));
        }
    }
    found.extend(monitor.advance(until));
    found
}

/// The findings that were opened, in order.
fn opened(found: &[Finding]) -> Vec<FindingKind> {
    let mut seen = BTreeSet::new();
    found.iter().filter(|f| f.is_open() && seen.insert(f.id.clone())).map(|f| f.kind).collect()
}

/// Recordings, each with its expected findings.
const RECORDINGS: &[(&str, &[FindingKind])] = &[
    ("claude/S01-hello", &[Completion]),
    ("claude/S03-bash-approve", &[Approval, Completion]),
    ("claude/S05-long-quiet", &[Approval, Completion]),
    ("claude/S07-retries", &[Completion]),
    ("claude/S09-interrupt", &[Approval]),
    ("claude/S10-sigkill", &[Crash]),
    ("claude/S11-question", &[Question, Completion, Completion]),
    ("claude/S12-subagent", &[Approval, Completion]),
    ("claude/S13-compact", &[Completion, Completion, Completion, Completion, Completion, Completion, Completion]),
    ("claude/S14-resume-fork", &[Completion, Completion, Completion, Completion, Completion, Completion, Completion]),
    ("claude/S15-edit-write", &[Approval, Approval, Completion]),
    ("claude/S17-parallel", &[Approval, Approval, Completion]),
    ("claude/S18-plan", &[Approval, Completion]),
    ("claude/S19b-trust", &[Completion]),
    ("claude/S21a-hook-allow", &[Approval, Completion]),
    ("claude/S21b-hook-deny", &[Approval, Completion]),
    ("claude/S24-webfetch-mcp-elicitation", &[Approval, Approval, Completion, Approval, Question, Completion]),
    ("claude/osc7501-approve", &[Completion, Approval, Completion]),
    ("claude/osc7501-background", &[Completion]),
    ("claude/osc7501-child-in-dialog", &[Approval, Completion]),
    ("claude/osc7501-deny-esc", &[FindingKind::RiskyApproval, Completion]),
    ("claude/osc7501-question", &[Question, Completion]),
    ("claude/osc7501-subagent-auth", &[Completion, Auth]),
    ("codex/A04-daemon-tui-killed", &[Completion]),
    ("codex/H02-hook-denies", &[Completion]),
    ("codex/H03-deny-esc-error", &[Approval, Completion]),
    ("codex/H04-esc-during-command", &[Approval, Completion]),
    ("codex/S01-hello", &[Completion]),
    ("codex/S03-approve", &[Approval, Completion]),
    ("codex/S05-quiet-command", &[Approval, Completion]),
    ("codex/S07a-retries-then-ok", &[Completion]),
    ("codex/S08-auth-401", &[Auth]),
    ("codex/S09-interrupt", &[]),
    ("codex/S10-sigkill", &[Crash]),
    ("codex/S11b-question-tool", &[Question, Completion]),
    ("codex/S12-subagent", &[Approval, Completion]),
    ("codex/S13-compact", &[Completion, Completion]),
    ("codex/S14-resume-fork", &[Completion, Completion, Completion, Completion]),
    ("codex/S15-edit-approval", &[Approval, Completion]),
    ("codex/S17-parallel-tools", &[Approval, Completion]),
    ("codex/S18-plan", &[Completion, Completion]),
    ("codex/S20-mcp-approval", &[Approval, Completion]),
    ("codex/S23-steer-while-running", &[Completion]),
    ("gemini/S01-hello", &[Completion]),
    ("gemini/S03-shell-approve", &[Approval, Completion]),
    ("gemini/S05-long-quiet-command", &[Approval, Completion]),
    ("gemini/S07-retries-then-success", &[Completion]),
    ("gemini/S08-auth-failure", &[Auth]),
    ("gemini/S09-interrupt-stream", &[Completion]),
    ("gemini/S10-sigkill-group", &[Crash]),
    ("gemini/S11-ask-user-tool", &[Question, Completion]),
    ("gemini/S12-subagent", &[Approval, Completion]),
    ("gemini/S13-compress", &[Completion, Completion, Completion, Completion, Completion, Completion, Completion]),
    ("gemini/S14b-resume-latest", &[Completion, Completion, Completion]),
    ("gemini/S15-file-edit", &[Approval, Approval, Completion]),
    ("gemini/S17-parallel-one-approval", &[Approval, Completion]),
    ("gemini/S18-plan-mode", &[Completion, Approval, Completion]),
    ("gemini/S20-mcp-and-webfetch-dialogs", &[Approval, Approval, Completion]),
    ("gemini/S92-resume-legacy-json-with-0.61", &[Completion]),
    ("pi/O02-omp-tools", &[Completion]),
    ("pi/S01-hello", &[Completion, Completion]),
    ("pi/S02-tools-and-tree", &[Completion, Completion, Completion]),
    ("pi/S05-fork", &[Completion, Completion, Completion]),
    ("pi/osc7501-extension-dialog", &[Completion, Completion]),
    ("pi/osc7501-tool-esc-error", &[Completion, Completion, FindingKind::Provider, Auth, Completion]),
    ("qwen/S03-shell-approve", &[Completion, Approval, Completion, Approval]),
    ("qwen/S09-interrupt-and-error", &[Auth]),
    ("opencode/S01-hello", &[Completion, Completion]),
    ("opencode/S03-shell-approve", &[Completion]),
    ("opencode/S05-esc-denies", &[]),
    ("opencode/S09-interrupt-and-error", &[Auth, FindingKind::Provider]),
    ("opencode/S10-kill", &[Crash]),
    ("opencode/S11-question", &[Question, Completion]),
    ("opencode/S12-subagent", &[Completion]),
    ("opencode/S12b-subagent-permission", &[Completion]),
    ("opencode/S15-edit", &[Completion, Completion, Completion]),
];

#[test]
fn each_recording_yields_exactly_its_expected_findings() {
    let mut wrong = Vec::new();
    let mut named = BTreeSet::new();
    for (name, expected) in RECORDINGS {
        named.insert((*name).to_owned());
        let (kept, now) = played(name);
        let found = found(&kept, now.plus_ms(3_000));
        let kinds = opened(&found);
        let words: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        println!("FOUND {name}: {}", words.join(", "));
        if kinds != *expected {
            wrong.push(format!("{name}: {kinds:?}, not {expected:?}\n{found:#?}"));
        }
        let open: Vec<&str> = found.iter().filter(|f| f.is_open()).map(|f| f.id.as_str()).collect();
        for id in open {
            let last = found.iter().rev().find(|f| f.id == id).unwrap();
            if last.is_open() && !matches!(last.kind, Crash | FindingKind::OpenWork) {
                wrong.push(format!("{name}: still open although the session ended: {last:?}"));
            }
        }
    }
    let all: BTreeSet<String> = Folder::all(&fixtures().join("recordings"))
        .unwrap()
        .iter()
        .map(|dir| Folder::read(dir).unwrap().name())
        .collect();
    assert_eq!(named, all, "a recording is not in the table");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The recordings whose main session is a trace in the monitor's own tests.
const TRACES: &[&str] = &[
    "claude/S07-retries",
    "claude/S10-sigkill",
    "claude/S11-question",
    "claude/S12-subagent",
    "claude/S17-parallel",
    "codex/S07a-retries-then-ok",
    "codex/S08-auth-401",
    "codex/S10-sigkill",
    "codex/S17-parallel-tools",
    "gemini/S07-retries-then-success",
    "gemini/S08-auth-failure",
    "gemini/S10-sigkill-group",
    "gemini/S17-parallel-one-approval",
];

/// Second 0 of a trace.
const START: Timestamp = Timestamp::from_millisecond(1_795_149_432_000);

#[test]
#[expect(clippy::disallowed_methods, reason = "whether to write is the environment's to say")]
fn committed_monitor_traces_match_the_recordings_in_length() {
    let update = std::env::var_os("UPDATE_TRACES").is_some();
    for name in TRACES {
        let (kept, now) = played(name);
        let main = kept.iter().filter(|kept| kept.state.session.parent_session_id.is_none());
        let main =
            main.max_by_key(|kept| kept.events.iter().filter(|e| !matches!(e.payload, Payload::Signal(_))).count());
        let trace = trace_of(name, main.unwrap(), now);
        let path = fixtures().join("monitor/recorded").join(format!("{}.jsonl", name.replace('/', "-")));
        if update {
            fs::write(&path, &trace).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        let lines = |text: &str| text.lines().count();
        assert_eq!(lines(&committed), lines(&trace), "{}: UPDATE_TRACES=1 rewrites it", path.display());
    }
}

/// A trace of a session's log, without the events capture derived.
fn trace_of(name: &str, kept: &StoredSession, now: Timestamp) -> String {
    let expected = RECORDINGS.iter().find(|(other, _)| other == &name).unwrap().1;
    let by = now.since_ms(START) as f64 / 1000.0;
    let expected: Vec<_> = expected
        .iter()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|kind| serde_json::json!({"kind": kind, "by": by}))
        .collect();
    let mut lines = vec![
        serde_json::json!({"trace": format!("recorded: {name}"), "expected": expected, "until": by + 3.0}).to_string(),
    ];
    for event in kept.events.iter().filter(|event| !event.derived) {
        let mut line = serde_json::json!({
            "at": event.observed_at.since_ms(START).max(0) as f64 / 1000.0,
            "kind": event.payload.kind(),
            "source": event.source,
            "data": event.payload,
        });
        if let Some(agent) = &event.agent_id {
            line["agent"] = agent.to_string().into();
        }
        if let Some(text) = &event.text {
            line["text"] = text.as_str().into();
        }
        lines.push(without_the_place(&line.to_string()));
    }
    lines.join("\n") + "\n"
}

/// Removes the temporary directory in which the recording was played.
fn without_the_place(line: &str) -> String {
    let mut parts = line.split("/tmp/.tmp");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("/home/dev");
        out.push_str(part.get(6..).unwrap_or_default());
    }
    out
}
