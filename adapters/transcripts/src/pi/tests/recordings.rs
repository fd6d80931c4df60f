//! Whole files (`fixtures/recordings/pi`): their events, and that the result does not depend on where a reader stops.

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Op {
    op: String,
    path: Option<String>,
    data: Option<String>,
}

fn folder() -> std::path::PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recordings/pi").into()
}

fn scenarios() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The files of a recording, in the order of their first write.
fn files(scenario: &str) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    for line in std::fs::read_to_string(folder().join(scenario).join("timeline.jsonl")).unwrap().lines() {
        let op: Op = serde_json::from_str(line).unwrap();
        let (Some(path), Some(data)) = (op.path, op.data) else { continue };
        assert_eq!(op.op, "append");
        match files.iter_mut().find(|(known, _)| *known == path) {
            Some((_, text)) => text.push_str(&data),
            None => files.push((path, data)),
        }
    }
    files
}

#[test]
fn recordings_yield_their_expected_events() {
    let mut wrong = String::new();
    for scenario in scenarios() {
        let mut seen = String::new();
        for (path, text) in files(&scenario) {
            let below = path.split_once("agent/").unwrap().1;
            assert!(recognize(Path::new(below)), "{path}");
            let out = decode(&path, &text);
            assert_eq!(out.issues, 0, "{scenario}");
            let _ = writeln!(seen, "{below}");
            for event in &out.events {
                let _ = writeln!(seen, "  {}", short(event));
            }
        }
        let expected = std::fs::read_to_string(folder().join(&scenario).join("events.txt")).unwrap_or_default();
        if seen != expected {
            let _ = write!(wrong, "=== {scenario}/events.txt should be\n{seen}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Decodes a file in parts that end after the lines `cuts`, each with a new decoder that has the state of the previous
/// one.
fn in_parts(path: &str, text: &str, cuts: &[usize]) -> (Vec<NewEvent>, Option<String>) {
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    let mut stops: Vec<usize> = cuts.iter().filter_map(|cut| ends.get(*cut).copied()).chain([text.len()]).collect();
    stops.sort_unstable();
    let mut out = Decoded::new(Provider::Pi, Arc::from(path), 1);
    let (mut state, mut from) = (None::<String>, 0);
    for to in stops {
        let mut decoder = PiDecoder::new(Provider::Pi, path, state.as_deref());
        give(&mut decoder, &text.as_bytes()[from..to], from as u64, &mut out);
        (state, from) = (decoder.state(), to);
    }
    (out.events, state)
}

#[test]
fn a_restart_after_any_line_gives_the_same_events() {
    for scenario in scenarios() {
        for (path, text) in files(&scenario) {
            let whole = in_parts(&path, &text, &[]);
            for cut in 0..text.lines().count() {
                assert_eq!(in_parts(&path, &text, &[cut]), whole, "{path} cut behind line {cut}");
            }
        }
    }
}

#[test]
fn event_identities_are_unique_within_a_scenario() {
    for scenario in scenarios() {
        let mut known = std::collections::HashMap::new();
        for (path, text) in files(&scenario) {
            for event in decode(&path, &text).events {
                let said = short(&event);
                // A copy in another file is the same event of the same session.
                assert_eq!(known.entry(event.identity).or_insert_with(|| said.clone()), &said);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_number_of_restarts_gives_the_same_events(cuts in prop::collection::vec(0..40_usize, 0..8)) {
        for scenario in scenarios() {
            for (path, text) in files(&scenario) {
                prop_assert_eq!(in_parts(&path, &text, &cuts), in_parts(&path, &text, &[]));
            }
        }
    }

    #[test]
    fn arbitrary_bytes_and_state_do_not_panic_the_decoder(lines: Vec<Vec<u8>>, state: String) {
        let mut out = Decoded::new(Provider::Pi, Arc::from("/x"), 1);
        let mut decoder = PiDecoder::new(Provider::Pi, "/x", Some(&state));
        give(&mut decoder, &lines.join(&b'\n'), 0, &mut out);
    }

    #[test]
    fn a_corrupted_line_does_not_panic(number in 0..40_usize, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        for scenario in scenarios() {
            for (path, text) in files(&scenario) {
                let lines: Vec<&str> = text.lines().collect();
                let mut line = lines[number % lines.len()].as_bytes().to_vec();
                for (at, byte) in &changes {
                    let at = at.index(line.len());
                    line[at] = *byte;
                }
                let mut out = Decoded::new(Provider::Pi, Arc::from(path.as_str()), 1);
                give(&mut PiDecoder::new(Provider::Pi, &path, None), &line, 0, &mut out);
            }
        }
    }

    #[test]
    fn any_json_value_in_a_known_entry_type_causes_no_issue(
        kind in prop::sample::select(vec!["session", "title", "message", "compaction", "branch_summary", "label", "custom", "model_change", "usage", "context_edit"]),
        field in prop::sample::select(vec!["id", "parentId", "timestamp", "message", "content", "usage", "summary", "targetId", "data", "customType", "parentSession", "title"]),
        value in prop::sample::select(vec!["null", "1", "-1.5e400", "true", "\"x\"", "\"\\ud800\"", "[]", "{}", "[{}]", "[[1]]", "{\"role\":\"assistant\",\"content\":[1,null,{\"type\":\"toolCall\"}],\"usage\":{\"input\":-1}}", "{\"role\":\"toolResult\",\"content\":{}}", "{\"role\":7}"]),
    ) {
        let out = decode(PATH, &format!("{HEADER}\n{{\"type\":\"{kind}\",\"{field}\":{value}}}\n"));
        prop_assert_eq!(out.issues, 0);
    }
}

/// The test trees of `session_tree`: damaged, migrated, long, of all versions.
#[test]
fn damaged_and_migrated_trees_decode_the_same_in_any_parts() {
    let mut read = 0;
    for group in ["made", "recorded"] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/session-tree").join(group);
        for case in std::fs::read_dir(dir).unwrap() {
            let Ok(bytes) = std::fs::read(case.unwrap().path().join("session.jsonl")) else { continue };
            let text = String::from_utf8_lossy(&bytes);
            let lines = text.lines().count();
            let whole = in_parts(PATH, &text, &[]);
            assert_eq!(in_parts(PATH, &text, &[0, 1, lines / 3, lines / 2, lines.saturating_sub(2)]), whole);
            assert!(whole.1.unwrap().len() < 4_096, "the state stays small");
            read += 1;
        }
    }
    assert!(read > 50, "{read} read");
}
