use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc};

use events::{Claim, NewEvent, Payload, Provider, Signal, Source, Stop, Timestamp, ToolOutcome, TurnOutcome};

use super::*;
use crate::claude::transcript::TranscriptDecoder;
use tailer::decode::{Decoded, Decoder, Record, feed};

mod account;
mod forks;
mod lines;
mod older;
mod properties;
mod recordings;
mod registry;

const OWN: &str = "5886a42f-7f53-4b44-b74c-cd3cb712b61e";
const SEEN_AT: Timestamp = Timestamp::from_millisecond(1_795_149_600_000);

fn output(path: &str) -> Decoded {
    Decoded::new(Provider::Claude, Arc::from(path), 1)
}

/// Passes the lines of `bytes`, which begin at `offset` of the file, to a decoder.
fn give(decoder: &mut dyn Decoder, bytes: &[u8], mut offset: u64, out: &mut Decoded) {
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        feed(decoder, Record { bytes: line.trim_ascii_end(), offset, observed_at: SEEN_AT }, out);
        offset += line.len() as u64;
    }
    decoder.pause(out);
}

/// Decodes a transcript in several reads that end after the lines `cuts`; with `restart`, a new decoder with the state
/// of the previous one makes each read.
fn in_reads(path: &str, bytes: &[u8], cuts: &[usize], restart: bool) -> Decoded {
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    let mut stops: Vec<usize> = cuts.iter().filter_map(|cut| ends.get(*cut).copied()).chain([bytes.len()]).collect();
    stops.sort_unstable();
    let mut out = output(path);
    let mut decoder = TranscriptDecoder::new(path, None);
    let mut from = 0;
    for to in stops {
        if restart && from > 0 {
            decoder = TranscriptDecoder::new(path, decoder.state().as_deref());
        }
        give(&mut decoder, &bytes[from..to], from as u64, &mut out);
        from = to;
    }
    out
}

fn decode(path: &str, bytes: &[u8]) -> Decoded {
    in_reads(path, bytes, &[], false)
}

/// The path of a session's transcript.
fn transcript(session: &str) -> String {
    format!("/h/.claude/projects/-p/{session}.jsonl")
}

/// Builds lines: `@type {fields}` is a line with the fields that nearly all lines have, and the uuid `u1`, `u2`, …
/// according to its number; any other text is a line as it is.
fn whole_lines(script: &str) -> String {
    let base = |number: usize| {
        format!(
            "\"uuid\":\"u{number}\",\"timestamp\":\"2026-11-20T04:39:0{}.462Z\",\"userType\":\"external\",\"cwd\":\"/p\",\"sessionId\":\"{OWN}\",\"version\":\"2.1.328\",\"gitBranch\":\"main\"",
            number % 10
        )
    };
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
    let whole = |(index, line): (usize, &str)| match line.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
        Some((kind, fields)) => {
            let fields = fields.trim_start_matches('{').strip_suffix('}').unwrap();
            // The writing process: prompts do not name it, the other lines do.
            let written_by = if kind == "user" { String::new() } else { format!("\"session_id\":\"{OWN}\",") };
            let comma = if fields.is_empty() { "" } else { "," };
            format!(
                "{{\"parentUuid\":null,\"isSidechain\":false,\"type\":\"{kind}\",{fields}{comma}{written_by}{}}}\n",
                base(index + 1)
            )
        }
        None => format!("{line}\n"),
    };
    lines.enumerate().map(whole).collect()
}

/// The events of these lines, without the session's start.
fn seen(script: &str) -> Vec<String> {
    let out = decode(&transcript(OWN), whole_lines(script).as_bytes());
    assert_eq!(out.issues, 0, "{script}");
    for event in &out.events {
        assert_eq!((event.source, &*event.provider_session_id), (Source::Transcript, OWN));
    }
    out.events.iter().filter(|e| !matches!(e.payload, Payload::SessionStarted(_))).map(show).collect()
}

#[track_caller]
fn check(script: &str, expected: &[&str]) {
    assert_eq!(seen(script), expected, "{script}");
}

/// An event on one line: kind, non-default data, text.
fn show(event: &NewEvent) -> String {
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
    let data = match &event.payload {
        Payload::SessionStarted(s) => format!(
            "{} {} {} {} {} {}",
            s.how,
            or_none(&s.cwd),
            or_none(&s.git_branch),
            or_none(&s.cli_version),
            or_none(&s.parent_provider_session_id),
            or_none(&s.agent_type)
        ),
        Payload::UserPrompt(p) => format!("{}{}", p.origin, "+file".repeat(p.attachments as usize)),
        Payload::AssistantMessage(m) => format!(
            "{} {}{}",
            or_none(&m.message_id),
            m.stop.map_or("-", |s| s.as_str()),
            if m.tool_calls > 0 { " calls" } else { "" }
        ),
        Payload::AssistantDelta(d) => format!("{} {}", or_none(&d.message_id), d.block),
        Payload::ToolCall(c) => format!(
            "{} {} {} [{}]{}",
            c.call_id,
            c.name,
            c.tool,
            or_none(&c.title),
            if c.background { " background" } else { "" }
        ),
        Payload::ToolResult(r) => {
            format!("{} {}{}", r.call_id, r.outcome, r.exit_code.map_or(String::new(), |code| format!(" exit {code}")))
        }
        Payload::QuestionAsked(q) => format!("{} {:?}", or_none(&q.call_id), q.options),
        Payload::QuestionAnswered(q) => or_none(&q.call_id),
        Payload::Error(e) => format!(
            "{} {}{}{}",
            e.class,
            or_none(&e.code),
            if e.ends_turn { " ends_turn" } else { "" },
            if e.retrying { " retrying" } else { "" }
        ),
        Payload::UsageReported(u) => format!(
            "{} {} {} {} {}",
            or_none(&u.message_id),
            u.input_tokens,
            u.output_tokens,
            u.cache_read_tokens,
            u.cache_write_tokens
        ),
        Payload::ContextCompacted(c) => {
            format!("{} {:?} {:?}", c.trigger.map_or("-", |t| t.as_str()), c.tokens_before, c.tokens_after)
        }
        Payload::SessionForked(f) => format!("from {} at {}", f.from, or_none(&f.at)),
        Payload::Annotation(a) => format!("{}: {}", a.topic, a.value),
        Payload::Signal(Signal { claim, .. }) => match claim {
            Claim::State { state, reason } => format!("{state} {}", reason.map_or("-", |r| r.as_str())),
            Claim::TurnEnded { outcome, pending_subagents: 0 } => format!("ended {outcome}"),
            Claim::TurnEnded { outcome, pending_subagents } => format!("ended {outcome}, {pending_subagents} at work"),
            Claim::ProcessAlive { pid, start_ticks } => format!("alive {pid} {start_ticks}"),
            Claim::ProcessGone { pid, clean } => format!("gone {pid} {}", if *clean { "clean" } else { "killed" }),
            Claim::Withdrawn => "withdrawn".into(),
        },
        Payload::Unrecognized(u) => return format!("unrecognized {}", u.raw_kind),
        Payload::SessionExited(_)
        | Payload::TurnStarted(_)
        | Payload::TurnCompleted(_)
        | Payload::ApprovalRequested(_)
        | Payload::ApprovalResolved(_)
        | Payload::StatusChanged(_)
        | Payload::Finding(_)
        | Payload::Notification(_)
        | Payload::QueuedPrompt(_)
        | Payload::Heartbeat(_) => panic!("not from here: {event:?}"),
    };
    let text = event.text.as_deref().map(|t| format!(" {t:?}")).unwrap_or_default();
    format!("{} {data}{text}", event.payload.kind())
}

/// The final files of a recorded scenario below `projects`.
fn recorded(scenario: &str) -> BTreeMap<String, Vec<u8>> {
    #[derive(serde::Deserialize)]
    struct Op {
        op: String,
        #[serde(default)]
        path: String,
        #[serde(default)]
        data: serde_json::Value,
    }
    let timeline = fs::read_to_string(recordings_dir().join(scenario).join("timeline.jsonl")).unwrap();
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for line in timeline.lines() {
        let op: Op = serde_json::from_str(line).unwrap();
        if op.op == "append" && op.path.starts_with(".claude/projects/") && op.path.ends_with(".jsonl") {
            files.entry(op.path).or_default().extend_from_slice(op.data.as_str().unwrap().as_bytes());
        }
    }
    assert!(!files.is_empty(), "{scenario}");
    files
}

fn recordings_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recordings/claude")
}

fn scenarios() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(recordings_dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn claude_files_are_recognized_by_path() {
    let check = |path: &str, kind: Option<FileKind>| assert_eq!(recognize(std::path::Path::new(path)), kind, "{path}");
    check("projects/-p/5886a42f.jsonl", Some(FileKind::Transcript));
    check("projects/-p/5886a42f/subagents/agent-a1.jsonl", Some(FileKind::Subagent));
    check("projects/-p/5886a42f/subagents/agent-a1.meta.json", Some(FileKind::SubagentMeta));
    check("projects/-p/5886a42f/subagents/workflows/wf_1/agent-a1.jsonl", Some(FileKind::Subagent));
    check("projects/-p/5886a42f/subagents/workflows/wf_1/agent-a1.meta.json", Some(FileKind::SubagentMeta));
    check("projects/-p/agent-a1.jsonl", Some(FileKind::Subagent));
    check("sessions/821.json", Some(FileKind::Registry));
    for other in [
        "history.jsonl",
        "projects/5886a42f.jsonl",
        "projects/-p/5886a42f.jsonl.tmp",
        "projects/-p/5886a42f/custom-title.json",
        "projects/-p/5886a42f/subagents/notes.jsonl",
        "projects/-p/5886a42f/subagents/workflows/wf_1/journal.jsonl",
        // Files of sub-agents that summarize for the agent itself.
        "projects/-p/5886a42f/subagents/agent-acompact-38cc9f.jsonl",
        "projects/-p/agent-acompact-38cc9f.jsonl",
        "projects/-p/5886a42f/tool-results/agent-a1.jsonl",
        "sessions/821.1a2b.key",
        "sessions/.json",
        "sessions/82a.json",
        "sessions/x/821.json",
        "/sessions/821.json",
        "../sessions/821.json",
        "",
    ] {
        check(other, None);
    }
}
