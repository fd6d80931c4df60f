//! Properties that must be true for every file and every byte.

use proptest::prelude::*;

use super::*;

fn files() -> Vec<&'static (String, Vec<u8>)> {
    all_rollouts().values().flatten().collect()
}

/// Decodes in pieces, each with a new decoder that has the state of the previous one; the cuts are line numbers.
fn in_pieces(path: &str, bytes: &[u8], cuts: &[usize]) -> (Vec<NewEvent>, u64) {
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| ends[cut % ends.len()]).collect();
    cuts.push(bytes.len());
    cuts.sort_unstable();
    let mut out = output(path);
    let mut state = None;
    let mut from = 0;
    for to in cuts {
        state = resume(path, &bytes[from..to], from as u64, state.as_deref(), &mut out);
        from = to;
    }
    (out.events, out.issues)
}

#[test]
fn a_restart_after_any_record_gives_the_same_events() {
    for (path, bytes) in files() {
        let whole = decode(path, bytes);
        assert_eq!(whole.1, 0, "{path}");
        for cut in 0..bytes.iter().filter(|byte| **byte == b'\n').count() {
            assert_eq!(in_pieces(path, bytes, &[cut]), whole, "{path} cut behind line {cut}");
        }
    }
}

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let lines: Vec<Vec<u8>> = files()
        .iter()
        .flat_map(|(_, bytes)| bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>())
        .filter(|line| !line.is_empty() && line.len() < 4000)
        .collect();
    proptest::sample::select(lines)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_number_of_restarts_gives_the_same_events(
        file in proptest::sample::select(files()),
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
    ) {
        let (path, bytes) = file;
        prop_assert_eq!(in_pieces(path, bytes, &cuts), decode(path, bytes));
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_and_state_do_not_panic_the_decoder(lines: Vec<Vec<u8>>, state: String) {
        let mut out = output("/x");
        let bytes = lines.join(&b'\n');
        resume("/x", &bytes, 0, Some(&state), &mut out);
    }

    #[test]
    fn a_corrupted_line_does_not_panic(mut line in any_line(), changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6)) {
        for (at, byte) in changes {
            let at = at % line.len();
            line[at] = byte;
        }
        decode("/x", &line);
    }

    /// If a record is cut anywhere and a whole one follows it in the same line, the whole one is never lost.
    #[test]
    fn a_record_after_one_truncated_anywhere_is_recovered(first in any_line(), second in any_line(), at: proptest::sample::Index) {
        // Cut within the first record, but not at its end.
        let cut = at.index(first.len() - 1);
        let glued = [&first[..cut], &second[..]].concat();
        let kinds = |line: &[u8]| decode("/x", line).0.iter().map(|e| (e.payload.kind(), e.text.clone())).collect::<Vec<_>>();
        let alone = kinds(&second);
        let both = kinds(&glued);
        for event in alone {
            prop_assert!(both.contains(&event), "{event:?} is missing in {both:?}");
        }
    }

    /// White space and another order of fields use the slow path and give the same result.
    #[test]
    fn envelope_field_order_and_white_space_do_not_change_the_events(line in any_line()) {
        let text = String::from_utf8(line.clone()).unwrap();
        let (head, rest) = text.split_once(",\"type\":").unwrap();
        let (kind, payload) = rest.split_once(",\"payload\":").unwrap();
        // Codex writes `metadata` after the payload of a response item.
        let moved = match payload.rsplit_once(",\"metadata\":") {
            Some((payload, metadata)) if kind == "\"response_item\"" => {
                format!("{{\"payload\" : {payload}, \"type\": {kind}, \"metadata\": {}, {}}}", &metadata[..metadata.len() - 1], &head[1..])
            }
            _ => format!("{{ \"payload\": {}, \"type\": {kind} , {}}}", &payload[..payload.len() - 1], &head[1..]),
        };
        let said = |line: &str| decode("/x", line.as_bytes()).0.iter().map(|e| (e.payload.clone(), e.text.clone(), e.created_at)).collect::<Vec<_>>();
        prop_assert_eq!(said(&moved), said(&text), "{}", moved);
    }
}
