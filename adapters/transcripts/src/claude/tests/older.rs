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

/// How sure each text is that may be the end of its turn.
fn may_end(lines: &[String]) -> Vec<String> {
    let out = decode(&transcript(OWN), lines.concat().as_bytes());
    let ends = out.events.iter().filter_map(|e| match &e.payload {
        Payload::Signal(Signal { claim: Claim::TurnEnded { .. }, holds_from, strength, .. }) => {
            assert_eq!(*holds_from, e.created_at.map(|at| at.plus_ms(30_000)));
            Some(format!("{strength}"))
        }
        _ => None,
    });
    ends.collect()
}

#[test]
fn a_text_without_a_stop_reason_may_be_the_end_of_its_turn() {
    let long = "a".repeat(60);
    // What was spent on it says whether the whole message was there when the line was written.
    assert_eq!(may_end(&[assistant("1", "a", &long, "null", 1)]), ["low"]);
    assert_eq!(may_end(&[assistant("1", "a", &long, "null", 20)]), ["medium"]);
    assert_eq!(may_end(&[assistant("1", "a", &long, "\"end_turn\"", 20)]), [""; 0]);
    let newer = assistant("1", "a", &long, "null", 20).replace("2.1.96", "2.1.104");
    assert_eq!(may_end(&[newer]), [""; 0]);
    let aborted = assistant("1", "a", &long, "null", 20)
        .replace("\"type\":\"assistant\"", "\"type\":\"assistant\",\"isAbortedMidStream\":true");
    assert_eq!(may_end(&[aborted]), [""; 0]);
    let calls = assistant("1", "a", "x", "null", 20).replace(
        r#"{"type":"text","text":"x"}"#,
        r#"{"type":"text","text":"x"},{"type":"tool_use","id":"t","name":"Bash","input":{}}"#,
    );
    assert_eq!(may_end(&[calls]), [""; 0]);
    // Where messages do say why the model stopped, one that does not is not at its end.
    let said = |n: &str| assistant(n, n, "x", "\"tool_use\"", 5);
    assert_eq!(may_end(&[said("1"), said("2"), assistant("3", "3", &long, "null", 1)]), [""; 0]);
    let unsaid = |n: &str| assistant(n, n, "x", "null", 5);
    assert_eq!(may_end(&[said("1"), unsaid("2"), unsaid("3"), unsaid("4")]).len(), 2);
}
