use super::*;
use events::{Annotation, Topic};

/// Accepts only `{"v": "text"}` records.
struct Plain(Arc<str>);

impl Decoder for Plain {
    fn record(&mut self, record: Record<'_>, out: &mut Decoded) -> Result<(), Malformed> {
        #[derive(serde::Deserialize)]
        struct Line {
            v: String,
        }
        let line: Line = serde_json::from_slice(record.bytes)?;
        let identity = Identity::record(Provider::Claude, &line.v, 0);
        let event = out.event(&record, &self.0, identity, Annotation { topic: Topic::Note, value: line.v });
        out.push(event);
        Ok(())
    }
    fn session(&self) -> Option<&Arc<str>> {
        Some(&self.0)
    }
}

fn check(line: &[u8]) -> (Vec<String>, u64) {
    let mut out = Decoded::new(Provider::Claude, Arc::from("/t"), 1);
    feed(&mut Plain(Arc::from("s")), Record { bytes: line, offset: 100, observed_at: Timestamp::MIN }, &mut out);
    let seen = out
        .events
        .iter()
        .map(|e| {
            let Origin::File { offset, length, .. } = &e.origin else { return "?".into() };
            let text = match &e.payload {
                Payload::Annotation(a) => a.value.clone(),
                other => format!("{}:{}", other.kind(), e.text.as_deref().unwrap_or("")),
            };
            format!("{text}@{offset}+{length}")
        })
        .collect();
    (seen, out.issues)
}

#[test]
fn a_complete_line_is_decoded_with_its_offset_and_length() {
    assert_eq!(check(br#"{"v":"a"}"#), (vec!["a@100+9".into()], 0));
    assert_eq!(check(b"  {\"v\":\"a\"}\r"), (vec!["a@102+9".into()], 0));
    assert_eq!(check(b"\xef\xbb\xbf{\"v\":\"a\"}"), (vec!["a@103+9".into()], 0));
    assert_eq!(check(b""), (vec![], 0));
}

#[test]
fn two_complete_records_on_one_line_are_both_decoded() {
    assert_eq!(check(br#"{"v":"a"}{"v":"b"}"#), (vec!["a@100+9".into(), "b@109+9".into()], 0));
}

#[test]
fn a_truncated_record_does_not_hide_the_next_one() {
    let (seen, issues) = check(br#"{"v":"cut off he{"v":"b"}"#);
    assert_eq!(seen, ["unrecognized:{\"v\":\"cut off he@100+16", "b@116+9"]);
    assert_eq!(issues, 1);
    let (seen, _) = check(br#"{"x":{"v":"inner"},"y":[1,2{"v":"b"}"#);
    assert_eq!(seen.last().unwrap(), "b@127+9");
}

#[test]
fn a_run_of_nul_bytes_is_counted_not_stored() {
    let mut line = vec![0_u8; 5000];
    line.extend_from_slice(br#"{"v":"a"}"#);
    assert_eq!(check(&line), (vec!["a@5100+9".into()], 1));
    assert_eq!(check(&[0; 10]), (vec![], 1));
}

#[test]
fn nul_bytes_inside_a_record_do_not_hide_the_next_one() {
    let (seen, _) = check(b"{\"v\":\"cu\0\0\0\0{\"v\":\"b\"}");
    assert_eq!(seen.last().unwrap(), "b@112+9");
}

#[test]
fn invalid_utf8_and_lone_surrogates_are_shown_as_u_fffd() {
    assert_eq!(check(b"{\"v\":\"a\xff\"}"), (vec!["a\u{fffd}@100+12".into()], 1));
    assert_eq!(check(br#"{"v":"\ud800x"}"#), (vec!["\u{fffd}x@100+15".into()], 1));
    assert_eq!(check(br#"{"v":"\ud83d\ude80"}"#), (vec!["\u{1f680}@100+20".into()], 0));
    assert_eq!(check(br#"{"v":"\\ud800"}"#), (vec!["\\ud800@100+15".into()], 0));
}

#[test]
fn unparsable_lines_are_kept_as_unrecognized() {
    let (seen, issues) = check(b"not json at all");
    assert_eq!(seen, ["unrecognized:not json at all@100+15"]);
    assert_eq!(issues, 1);
    let deep = [b"{\"v\":".as_slice(), &[b'['; 100_000]].concat();
    assert_eq!(check(&deep).1, 1);
}

proptest::proptest! {
    #[test]
    fn a_record_after_arbitrary_bytes_is_always_found(head: Vec<u8>, v in "[a-z]{1,8}") {
        let mut line: Vec<u8> = head.into_iter().filter(|b| *b != b'\n').collect();
        line.extend_from_slice(format!("{{\"v\":\"{v}\"}}").as_bytes());
        let (seen, _) = check(&line);
        proptest::prop_assert!(seen.iter().any(|s| s.starts_with(&format!("{v}@"))), "{seen:?}");
    }
}
