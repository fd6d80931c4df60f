//! Properties that must be true for every file and every byte.

use proptest::prelude::*;

use super::*;
use crate::claude::{meta::MetaDecoder, registry::RegistryDecoder};

fn files() -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = scenarios().iter().flat_map(|scenario| recorded(scenario)).collect();
    let foreign = |name: &str, session: &str| (transcript(session), older::fixture(name));
    all.push(foreign("growing-usage.jsonl", "db57d2ab-41c6-41bd-8c68-5c7ab400d493"));
    all.push(foreign("inline-sidechain.jsonl", "a4e5b271-6948-4581-893b-4595c9ec41ea"));
    all.push(foreign(&format!("resumed/{}.jsonl", older::RESUMED), older::RESUMED));
    all.sort();
    all
}

fn line_count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// All of an event except its session.
fn told(out: &Decoded) -> Vec<NewEvent> {
    let anonymous = |e: &NewEvent| NewEvent { provider_session_id: Arc::from(""), ..e.clone() };
    let mut told: Vec<NewEvent> = out.events.iter().map(anonymous).collect();
    told.sort_by_key(|e| (e.identity, format!("{:?}", e.origin)));
    told
}

#[test]
fn a_restart_after_any_line_gives_the_same_events() {
    for (path, bytes) in files() {
        let whole = decode(&path, &bytes);
        let copies = whole
            .events
            .iter()
            .any(|e| matches!(&e.payload, Payload::SessionForked(fork) if *fork.from != *e.provider_session_id));
        for cut in 0..line_count(&bytes) {
            for restart in [false, true] {
                let cut_once = in_reads(&path, &bytes, &[cut], restart);
                assert_eq!(told(&cut_once), told(&whole), "{path} cut behind line {cut}");
                assert_eq!(cut_once.issues, whole.issues);
                // Only the session of a copied prompt may differ.
                if !copies {
                    assert_eq!(cut_once.events, whole.events, "{path} cut behind line {cut}");
                }
            }
        }
    }
}

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let lines: Vec<Vec<u8>> = files()
        .iter()
        .flat_map(|(_, bytes)| bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>())
        .filter(|line| !line.is_empty() && line.len() < 4_000 && record::classify(line) == record::LineClass::Read)
        .collect();
    prop::sample::select(lines)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_reads_and_restarts_give_the_same_events(file in 0..files().len(), cuts in prop::collection::vec(0..200_usize, 0..12), restart: bool) {
        let (path, bytes) = files().swap_remove(file);
        prop_assert_eq!(told(&in_reads(&path, &bytes, &cuts, restart)), told(&decode(&path, &bytes)));
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic_the_decoders(lines: Vec<Vec<u8>>, state: String) {
        let bytes = lines.join(&b'\n');
        let mut decoders: Vec<Box<dyn Decoder>> = vec![
            Box::new(TranscriptDecoder::new(&transcript(OWN), Some(&state))),
            Box::new(TranscriptDecoder::new("", None)),
            Box::new(RegistryDecoder::new(Some(&state))),
            Box::new(MetaDecoder::new("agent-x.meta.json")),
        ];
        for decoder in &mut decoders {
            let mut out = output("/x");
            give(&mut **decoder, &bytes, 0, &mut out);
            decoder.removed(SEEN_AT, &mut out);
        }
    }

    #[test]
    fn a_corrupted_line_does_not_panic(mut line in any_line(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        for (at, byte) in changes {
            let at = at.index(line.len());
            line[at] = byte;
        }
        decode(&transcript(OWN), &line);
    }

    #[test]
    fn any_json_value_in_a_known_line_type_is_decoded_without_a_panic(kind in prop::sample::select(vec!["user", "assistant", "system", "queue-operation", "custom-title", "last-prompt", "permission-mode"]), field in prop::sample::select(vec!["message", "content", "uuid", "origin", "error", "subtype", "timestamp", "forkedFrom", "isMeta", "session_id"]), value in prop::sample::select(vec!["null", "1", "true", "\"x\"", "[]", "{}", "[{}]", "[[1]]", "{\"content\":[{\"type\":\"tool_use\"}]}", "{\"content\":[{\"type\":\"tool_result\"}]}", "{\"content\":{}}"])) {
        let line = format!(r#"{{"type":"{kind}","{field}":{value}}}"#);
        let out = decode(&transcript(OWN), line.as_bytes());
        prop_assert!(out.issues <= 1);
    }

    #[test]
    fn record_identity_does_not_depend_on_preceding_lines(line in any_line(), before in any_line()) {
        let identities = |bytes: &[u8]| {
            let out = decode(&transcript(OWN), bytes);
            out.events.iter().filter(|e| e.repeat == events::Repeat::Unique).map(|e| e.identity).collect::<std::collections::HashSet<_>>()
        };
        let alone = identities(&line);
        let behind = identities(&[&before[..], b"\n", &line].concat());
        // A start, a fork and tokens are emitted once per file; these are emitted for every record.
        let said = |bytes: &[u8]| decode(&transcript(OWN), bytes).events.into_iter().filter(|e| matches!(e.payload, Payload::UserPrompt(_) | Payload::AssistantMessage(_) | Payload::ToolCall(_) | Payload::ToolResult(_))).map(|e| e.identity).collect::<Vec<_>>();
        for identity in said(&line) {
            prop_assert!(alone.contains(&identity) && behind.contains(&identity));
        }
    }
}
