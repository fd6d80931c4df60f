//! The marks of dialogs: one for each open dialog, in every recording of an agent.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::*;

fn recordings() -> Vec<(String, Provider, PathBuf)> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/terminal/recordings"));
    let mut found = Vec::new();
    for provider in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()) {
        let name = provider.file_name().unwrap().to_str().unwrap().to_owned();
        for recording in fs::read_dir(&provider).unwrap().map(|e| e.unwrap().path()) {
            let label = format!("{name}/{}", recording.file_name().unwrap().to_str().unwrap());
            found.push((label, name.parse().unwrap(), recording.join("timeline.jsonl")));
        }
    }
    found.sort();
    found
}

/// The approval events of a recording: `mark subject` for each dialog, and `key meaning` for each key that answers one,
/// with the reason if capture could not have answered it.
fn told(provider: Provider, timeline: &Path) -> Vec<String> {
    let mut stage = Stage::sized(Size { rows: 40, columns: 120 }, provider, embedded());
    let mut seen = Vec::new();
    let begun = stage.now;
    for line in fs::read_to_string(timeline).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let at = begun + (line["at"].as_f64().unwrap() * 1000.0) as i64;
        let mut passed = stage.pass((at - stage.now).max(0));
        let standing = stage.observer.standing();
        match (line["op"].as_str().unwrap(), line["data"].as_str()) {
            ("out", Some(data)) => stage.observer.output(data.as_bytes(), stage.at()),
            ("in", Some(data)) => stage.observer.input(data.as_bytes(), stage.at()),
            _ => {}
        }
        passed.extend(stage.observer.take_events().into_iter().map(|(_, told)| told));
        for told in passed {
            match told {
                HostEvent::Claim(ScreenClaim { state: State::WaitingApproval, dialog: Some(dialog), .. }) => {
                    seen.push(format!("{} {}", dialog.mark.unwrap(), dialog.subject.unwrap_or_default()));
                }
                HostEvent::Answered { meaning } if stage.observer.mark().is_some() => {
                    let why = standing.as_ref().map_or_else(|why| format!(" ({why})"), |_| String::new());
                    seen.push(format!("key {meaning}{why}"));
                }
                _ => {}
            }
        }
    }
    seen
}

#[test]
fn every_recorded_dialog_has_a_unique_mark() {
    let (mut twice, mut answerable, mut not) = (Vec::new(), 0, Vec::new());
    for (name, provider, timeline) in recordings() {
        let told = told(provider, &timeline);
        let dialogs: Vec<&String> = told.iter().filter(|t| !t.starts_with("key ")).collect();
        let about = |dialog: &str| dialog.split_once(' ').unwrap().1.to_owned();
        if dialogs.windows(2).any(|pair| about(pair[0]) == about(pair[1])) {
            twice.push(name.clone());
        }
        answerable += told.iter().filter(|t| t.starts_with("key ") && !t.ends_with(')')).count();
        not.extend(told.iter().filter(|t| t.starts_with("key ") && t.ends_with(')')).map(|t| format!("{name}: {t}")));
        let marks: BTreeSet<&str> = dialogs.iter().map(|d| d.split_once(' ').unwrap().0).collect();
        assert_eq!(marks.len(), dialogs.len(), "{name}: {told:?}");
    }
    // One is drawn in two pieces; one is drawn again after the key that answered it; in one a file is written, then
    // edited.
    assert_eq!(twice, ["claude/S15-edit-write", "claude/dialog-while-streaming", "opencode/S15-edit"]);
    assert!(answerable >= 29, "{answerable}, and not {not:#?}");
}
