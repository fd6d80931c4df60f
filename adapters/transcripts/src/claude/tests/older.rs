//! What older versions wrote otherwise. The files are others' (`fixtures/foreign`).

use std::collections::BTreeMap;

use super::*;

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign/claude").join(name);
    fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn assistant(uuid: &str, id: &str, content: &str, stop: &str, output: u64) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","timestamp":"2026-11-20T04:39:01.000Z","sessionId":"{OWN}","version":"2.1.96","message":{{"id":"{id}","model":"m","content":[{{"type":"text","text":"{content}"}}],"stop_reason":{stop},"usage":{{"input_tokens":3,"output_tokens":{output}}}}}}}"#
    ) + "\n"
}

/// The tokens each message cost by its last report: input, output, cache read, cache write.
fn spent(out: &Decoded) -> BTreeMap<String, [u64; 4]> {
    let usage = out.events.iter().filter_map(|e| match &e.payload {
        Payload::UsageReported(u) => Some((
            u.message_id.clone().unwrap_or_default(),
            [u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens],
        )),
        _ => None,
    });
    usage.collect()
}

#[test]
fn a_message_cost_what_its_last_line_says() {
    let out = decode(&transcript(OWN), &fixture("growing-usage.jsonl"));
    let mut sum = [0; 4];
    for tokens in spent(&out).into_values() {
        sum = std::array::from_fn(|i| sum[i] + tokens[i]);
    }
    assert_eq!(sum, [19, 310, 108_816, 15_274]);
}

#[test]
fn usage_is_reported_again_when_it_grew() {
    let lines = [
        assistant("1", "a", "one", "null", 2),
        assistant("2", "a", "two", "null", 2),
        assistant("3", "a", "three", "\"end_turn\"", 90),
        assistant("4", "a", "less", "\"end_turn\"", 7),
    ];
    for restart in [false, true] {
        let out = in_reads(&transcript(OWN), lines.concat().as_bytes(), &[0, 1, 2], restart);
        let reports: Vec<_> = out
            .events
            .iter()
            .filter_map(|e| match &e.payload {
                Payload::UsageReported(u) => Some((e.identity, u.output_tokens)),
                _ => None,
            })
            .collect();
        assert_eq!(reports.iter().map(|r| r.1).collect::<Vec<_>>(), [2, 90]);
        assert_eq!(reports[0].0, reports[1].0, "one response, one identity");
    }
}
