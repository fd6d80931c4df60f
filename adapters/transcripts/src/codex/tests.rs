use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use events::{Claim, NewEvent, Payload, Provider, Timestamp};

use serde::Deserialize;

use super::*;
use tailer::decode::feed;

mod bare;
mod damage;
mod properties;
mod records;
mod scenarios;

const THREAD: &str = "01a1f740-4198-7423-809e-89adf5bacc82";

/// Decodes a file's bytes from its start.
fn decode(path: &str, bytes: &[u8]) -> (Vec<NewEvent>, u64) {
    let mut out = output(path);
    resume(path, bytes, 0, None, &mut out);
    (out.events, out.issues)
}

fn output(path: &str) -> Decoded {
    Decoded::new(Provider::Codex, Arc::from(path), 1)
}

/// Decodes the records in `bytes`, which begin at `offset` of the file, with a decoder created from `state`; returns
/// the state after them.
fn resume(path: &str, bytes: &[u8], mut offset: u64, state: Option<&str>, out: &mut Decoded) -> Option<String> {
    let mut decoder = CodexDecoder::new(path, state);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let record = Record { bytes: line.trim_ascii_end(), offset, observed_at: Timestamp::from_millisecond(1) };
        feed(&mut decoder, record, out);
        offset += line.len() as u64;
    }
    decoder.pause(out);
    decoder.state()
}

/// A step of a recording's timeline about files.
#[derive(Deserialize)]
struct Step {
    op: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    data: String,
}

/// The rollouts of one scenario: path and bytes, in the order of their names.
type Rollouts = Vec<(String, Vec<u8>)>;

/// The rollouts of every scenario by its name: those that the recordings' timelines append
/// (`fixtures/recordings/codex`), and whole files that are not recordings (`fixtures/codex`).
fn all_rollouts() -> &'static BTreeMap<String, Rollouts> {
    static ALL: OnceLock<BTreeMap<String, Rollouts>> = OnceLock::new();
    ALL.get_or_init(|| {
        let folders = |below: &str| {
            let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(below);
            let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
        };
        let named = |folder: &Path| folder.file_name().unwrap().to_str().unwrap().to_owned();
        let recorded = folders("recordings/codex").map(|folder| (named(&folder), appended(&folder)));
        let whole = folders("codex").map(|folder| (named(&folder), whole_files(&folder)));
        let mut all = BTreeMap::new();
        for (scenario, files) in recorded.chain(whole) {
            assert!(!files.is_empty(), "{scenario}");
            assert!(all.insert(scenario.clone(), files).is_none(), "{scenario} has two homes");
        }
        all
    })
}

fn appended(folder: &Path) -> Rollouts {
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for line in fs::read_to_string(folder.join("timeline.jsonl")).unwrap().lines() {
        let step: Step = serde_json::from_str(line).unwrap();
        if step.op == "append" && step.path.contains("/rollout-") {
            files.entry(step.path).or_default().extend(step.data.bytes());
        }
    }
    files.into_iter().collect()
}

fn whole_files(folder: &Path) -> Rollouts {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    files.iter().map(|path| (path.to_str().unwrap().to_owned(), fs::read(path).unwrap())).collect()
}

/// The rollouts of a scenario.
fn rollouts(scenario: &str) -> &'static Rollouts {
    &all_rollouts()[scenario]
}

/// An event on one line: kind, non-default data, text.
fn show(event: &NewEvent) -> String {
    let data = match &event.payload {
        Payload::UserPrompt(prompt) => format!("{} {}", prompt.origin, "📎".repeat(prompt.attachments as usize)),
        Payload::AssistantMessage(message) => message.stop.map_or(String::new(), |stop| stop.to_string()),
        Payload::ToolCall(call) => format!(
            "{} {} {}{}{}",
            call.name,
            call.tool,
            call.title.as_deref().map_or("-".into(), |title| format!("[{title}]")),
            if call.files.is_empty() { String::new() } else { format!(" of {}", call.files.join("|")) },
            if call.may_ask { " may ask" } else { "" }
        ),
        Payload::ToolResult(result) => format!(
            "{} {}{}{}",
            result.call_id,
            result.outcome,
            result.exit_code.map_or(String::new(), |code| format!(" exit {code}")),
            if result.detail { " detail" } else { "" }
        ),
        Payload::Signal(signal) => match &signal.claim {
            Claim::State { state, reason } => format!("{state} {}", reason.map_or(String::new(), |r| r.to_string())),
            Claim::TurnEnded { outcome, .. } => format!("ended {outcome}"),
            Claim::ProcessAlive { .. } | Claim::ProcessGone { .. } | Claim::Withdrawn => "?".into(),
        },
        Payload::Error(error) => format!(
            "{} {}{}{}",
            error.class,
            error.code.as_deref().unwrap_or("-"),
            if error.ends_turn { " ends_turn" } else { "" },
            if error.retrying { " retrying" } else { "" }
        ),
        Payload::UsageReported(usage) => format!(
            "in {} out {} read {} write {}",
            usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens
        ),
        Payload::SessionStarted(started) => format!(
            "{} {} {} {} {} {}",
            started.how,
            started.cwd.as_deref().unwrap_or("-"),
            started.git_branch.as_deref().unwrap_or("-"),
            started.cli_version.as_deref().unwrap_or("-"),
            started.parent_provider_session_id.as_deref().unwrap_or("-"),
            started.agent_type.as_deref().unwrap_or("-"),
        ),
        Payload::SessionForked(forked) => {
            format!("{} at {}", forked.from, forked.at.as_deref().unwrap_or("-"))
        }
        Payload::Annotation(annotation) => format!("{} {}", annotation.topic, annotation.value),
        Payload::QuestionAsked(asked) => format!("{:?}", asked.options),
        Payload::ContextCompacted(compacted) => compacted.trigger.map_or("-".into(), |trigger| trigger.to_string()),
        Payload::Unrecognized(unknown) => unknown.raw_kind.clone(),
        Payload::AssistantDelta(_)
        | Payload::QuestionAnswered(_)
        | Payload::SessionExited(_)
        | Payload::TurnStarted(_)
        | Payload::TurnCompleted(_)
        | Payload::ApprovalRequested(_)
        | Payload::ApprovalResolved(_)
        | Payload::StatusChanged(_)
        | Payload::Finding(_)
        | Payload::Notification(_)
        | Payload::QueuedPrompt(_)
        | Payload::Heartbeat(_) => String::new(),
    };
    let mut line = format!("{} {}", event.payload.kind(), data.trim()).trim_end().to_owned();
    if let Some(text) = event.text.as_deref().filter(|_| event.payload.kind() != events::Kind::Unrecognized) {
        line.push_str(&format!(" {text:?}"));
    }
    line
}

/// Decodes lines of a rollout; `@` abbreviates the envelope up to the payload's `type`, so `@event_msg {…}` is a whole
/// line.
fn seen(lines: &str) -> Vec<String> {
    events_of(lines).iter().map(show).collect()
}

fn events_of(lines: &str) -> Vec<NewEvent> {
    let bytes: String = lines
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| match line.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
            Some((kind, payload)) => format!(
                "{{\"timestamp\":\"2026-11-20T04:39:07.462Z\",\"ordinal\":7,\"type\":\"{kind}\",\"payload\":{payload}}}\n"
            ),
            None => format!("{line}\n"),
        })
        .collect();
    let path = format!("/h/.codex/sessions/2026/11/20/rollout-2026-11-20T04-39-05-{THREAD}.jsonl");
    let (events, issues) = decode(&path, bytes.as_bytes());
    assert_eq!(issues, 0, "{lines}");
    for event in &events {
        assert!(event.created_at.is_some() && event.source == events::Source::Transcript);
    }
    events
}

fn check(lines: &str, expected: &[&str]) {
    assert_eq!(seen(lines), expected, "{lines}");
}

#[test]
fn rollout_files_are_recognized_by_path() {
    for yes in [
        format!("sessions/2026/11/20/rollout-2026-11-20T04-39-05-{THREAD}.jsonl"),
        format!("archived_sessions/rollout-2026-11-20T04-39-05-{THREAD}.jsonl"),
    ] {
        assert!(recognize(Path::new(&yes)), "{yes}");
    }
    for no in [
        "history.jsonl",
        "sessions/rollout-x.jsonl",
        "sessions/2026/11/20/notes.jsonl",
        "sessions/2026/11/20/rollout-x.jsonl.tmp",
        "sessions/2026/11/twenty/rollout-x.jsonl",
        "state_5.sqlite",
    ] {
        assert!(!recognize(Path::new(no)), "{no}");
    }
}

#[test]
fn the_thread_id_is_parsed_from_the_file_name() {
    let hint = |name: &str| session_hint(Path::new(name));
    assert_eq!(hint(&format!("/x/rollout-2026-11-20T04-39-05-{THREAD}.jsonl")).as_deref(), Some(THREAD));
    let segment = format!("rollout-2026-11-20T04-39-05-{THREAD}_01a1f742-d239-7610-91eb-c007d017981f.jsonl");
    assert_eq!(hint(&segment).as_deref(), Some(THREAD));
    for no in [
        "history.jsonl",
        "rollout-2026-11-20T04-39-05-short.jsonl",
        "rollout-.jsonl",
        "rollout-éééééééééééééééééééé.jsonl",
    ] {
        assert_eq!(hint(no), None, "{no}");
    }
}
