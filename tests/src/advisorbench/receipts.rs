//! Receipts of turns that were labelled by hand.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use events::Provider;
use serde::Deserialize;
use serde_json::Value;

use super::{Figures, labelled};
use crate::program::Machine;

/// A labelled turn.
#[derive(Debug, Deserialize)]
struct Labelled {
    /// The transcript, below `fixtures` or below the given directory.
    file: PathBuf,
    agent: Provider,
    /// The agent's id of the session.
    session: String,
    turn: u32,
    /// The beginning of the prompt.
    prompt: String,
    checks: Vec<LabelledCheck>,
    failed_edits: Vec<String>,
    /// Calls that were denied; absent if the record does not tell.
    denied: Option<u64>,
    background: u64,
    todo_left: Option<u64>,
    licence: String,
    source: String,
}

#[derive(Debug, Deserialize)]
struct LabelledCheck {
    class: String,
    verdict: String,
    passed: Option<u64>,
    failed: Option<u64>,
    tries: u64,
    edits_after: Option<u64>,
}

/// Classes whose checks grow stale by edits.
const GO_STALE: &[&str] = &["tests", "build", "types", "lint", "format", "commit"];
/// Characters of a prompt that identify a turn.
const PROMPT_CHARS: usize = 20;

/// Reads the labelled transcripts on this machine and compares each field of each receipt with its label. Transcripts
/// that are not in `fixtures` are taken from `files`; without them their turns are left out.
///
/// # Panics
/// If the set or an answer cannot be read.
#[must_use]
pub fn compared(machine: &Machine, set: &Path, files: Option<&Path>) -> Figures {
    let rows: Vec<Labelled> = labelled(set);
    let mut sessions: BTreeMap<(&Path, &str), Vec<&Labelled>> = BTreeMap::new();
    for row in &rows {
        assert!(!row.licence.is_empty() && !row.source.is_empty(), "{}: no source or licence", row.file.display());
        sessions.entry((&row.file, &row.session)).or_default().push(row);
    }
    let mut copied = BTreeSet::new();
    for row in &rows {
        if !copied.contains(&row.file)
            && let Some(path) = found(&row.file, files)
        {
            // A published transcript may end without a newline, as if its last line were not complete.
            let mut text = fs::read(&path).unwrap();
            if text.last() != Some(&b'\n') {
                text.push(b'\n');
            }
            fs::write(place(machine, row), text).unwrap();
            copied.insert(row.file.clone());
        }
    }
    let server = machine.serve();
    let mut compared = Compared::default();
    for ((file, session), labels) in &sessions {
        if !copied.contains(*file) {
            compared.left_out += labels.len();
            continue;
        }
        server.caught_up(session, &place(machine, labels[0]));
        let check = server.client.json(&format!("/api/v1/sessions/{session}/check?last=1000")).unwrap();
        compared.session(labels, check["turns"].as_array().unwrap());
    }
    let Compared { turns, left_out, missing, fields, right, false_passed, wrong } = compared;
    let lines = vec![
        format!("fields as labelled: {right} of {fields}"),
        format!("checks that did not pass shown as passed: {false_passed}"),
        format!(
            "turns compared: {turns} of {}; not found: {missing}; without a transcript here: {left_out}",
            rows.len()
        ),
    ];
    Figures { lines, wrong }
}

fn found(file: &Path, files: Option<&Path>) -> Option<PathBuf> {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(file);
    let given = files.map(|files| files.join(file.file_name().unwrap()));
    [Some(fixture), given].into_iter().flatten().find(|path| path.is_file())
}

/// Where the agent would keep the transcript of a turn.
fn place(machine: &Machine, row: &Labelled) -> PathBuf {
    if row.agent == Provider::Codex {
        let name = format!("rollout-2026-11-20T00-00-00-{}.jsonl", row.session);
        return machine.home().join(".codex/sessions/2026/11/20").join(name);
    }
    let of = row.file.parent().map_or_else(String::new, |of| of.display().to_string().replace('/', "-"));
    let directory = machine.home().join(format!(".claude/projects/-{of}"));
    fs::create_dir_all(&directory).unwrap();
    directory.join(format!("{}.jsonl", row.session))
}

#[derive(Debug, Default)]
struct Compared {
    turns: usize,
    left_out: usize,
    missing: usize,
    fields: usize,
    right: usize,
    false_passed: usize,
    wrong: Vec<String>,
}

impl Compared {
    /// Compares the turns of a session, in order. Turns that nobody prompted belong to the turn before them.
    fn session(&mut self, labels: &[&Labelled], turns: &[Value]) {
        let mut labels = labels.to_vec();
        labels.sort_by_key(|label| label.turn);
        let mut from = 0;
        let starts: Vec<Option<usize>> = labels
            .iter()
            .map(|label| {
                // A prompt may be sent again after an interrupt; a labelled turn has calls.
                let mut alike = (from..turns.len()).filter(|at| begins(&turns[*at], label));
                let has_calls = |at: &usize| !turns[*at]["work"].is_null();
                let at = alike.clone().find(has_calls).or_else(|| alike.next())?;
                from = at + 1;
                Some(at)
            })
            .collect();
        for (label, start) in labels.iter().zip(&starts) {
            let Some(start) = *start else {
                self.missing += 1;
                self.wrong.push(format!("{} turn {}: not found", label.session, label.turn));
                continue;
            };
            let next = starts.iter().flatten().copied().find(|at| *at > start).unwrap_or(turns.len());
            let has_notices = labels.iter().any(|label| is_notice(label));
            let is_own = |turn: &Value| turn["trigger"] != "wakeup" || has_notices && answers_notice(turn);
            let end = (start + 1..next).find(|at| is_own(&turns[*at])).unwrap_or(next);
            self.turn(label, &turns[start..end]);
        }
    }

    fn turn(&mut self, label: &Labelled, turns: &[Value]) {
        self.turns += 1;
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let mut checks: BTreeMap<&str, Value> = BTreeMap::new();
        let (mut background, mut denied, mut todo_left, mut failed_edits) = (0, 0, None, 0);
        for turn in turns {
            let receipt = &turn["receipt"];
            for (class, check) in &mut checks {
                if GO_STALE.contains(class) {
                    check["edits_after"] = (number(&check["edits_after"]) + number(&receipt["edits"])).into();
                }
            }
            for check in receipt["checks"].as_array().into_iter().flatten() {
                let class = check["class"].as_str().unwrap();
                let before = checks.get(class).map_or(0, |before| number(&before["tries"]));
                let mut check = check.clone();
                check["tries"] = (number(&check["tries"]) + before).into();
                checks.insert(class, check);
            }
            background += number(&receipt["background"]);
            denied += number(&turn["work"]["denied"]);
            todo_left = receipt["todo_left"].as_u64().or(todo_left);
            failed_edits = receipt["failed_edits"].as_array().map_or(0, Vec::len);
        }
        let of = format!("{} turn {}", label.session, label.turn);
        let labelled: BTreeMap<&str, &LabelledCheck> = label.checks.iter().map(|c| (c.class.as_str(), c)).collect();
        for class in labelled.keys().chain(checks.keys()).copied().collect::<BTreeSet<_>>() {
            let name = |field: &str| format!("{of}: {class} {field}");
            let (label, check) = (labelled.get(class), checks.get(class));
            let passed = check.is_some_and(|check| check["verdict"] == "passed");
            self.false_passed += usize::from(passed && label.is_none_or(|label| label.verdict != "passed"));
            let (Some(label), Some(check)) = (label, check) else {
                self.field(&name("exists"), label.is_some(), check.is_some());
                continue;
            };
            self.field(&name("verdict"), label.verdict.as_str(), check["verdict"].as_str().unwrap());
            self.field(&name("tries"), label.tries, number(&check["tries"]));
            if let Some(edits) = label.edits_after {
                self.field(&name("edits after"), edits, number(&check["edits_after"]));
            }
            if class == "tests" {
                let counts = |field: &str| {
                    check["counts"].get(field).and_then(Value::as_u64).or(check["counts"].as_object().map(|_| 0))
                };
                self.field(&name("counts"), (label.passed, label.failed), (counts("passed"), counts("failed")));
            }
        }
        self.field(&format!("{of}: background"), label.background, background);
        self.field(&format!("{of}: to-do items left"), label.todo_left, todo_left);
        if let Some(expected) = label.denied {
            self.field(&format!("{of}: denied"), expected, denied);
        }
        self.field(&format!("{of}: failed edits"), label.failed_edits.len(), failed_edits);
    }

    fn field<T: PartialEq + std::fmt::Debug>(&mut self, name: &str, label: T, shown: T) {
        self.fields += 1;
        if label == shown {
            self.right += 1;
        } else {
            self.wrong.push(format!("{name}: {label:?} expected, {shown:?}"));
        }
    }
}

/// Whether a turn begins with the labelled prompt.
fn begins(turn: &Value, label: &Labelled) -> bool {
    let prompt = turn["prompt"].as_str().unwrap_or_default();
    if is_notice(label) {
        return turn["trigger"] == "wakeup" && answers_notice(turn);
    }
    if label.prompt.starts_with("<command-") {
        return prompt.starts_with('/');
    }
    let letters = |text: &str| {
        let letters = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
        letters.take(PROMPT_CHARS).collect::<String>()
    };
    letters(prompt) == letters(&label.prompt)
}

fn is_notice(label: &Labelled) -> bool {
    label.prompt.starts_with("<task-notification>")
}

/// Whether the prompt of a turn is the notice of a background command or a sub-agent.
fn answers_notice(turn: &Value) -> bool {
    let prompt = turn["prompt"].as_str().unwrap_or_default();
    ["Background", "Agent"].iter().any(|begin| prompt.starts_with(begin))
}
