//! Tests of the whole crate: surroundings, marks, properties.

use proptest::prelude::*;
use serde_json::json;

use crate::{RedactingStream, Redactor};

fn redactor() -> Redactor {
    static ONE: std::sync::OnceLock<Redactor> = std::sync::OnceLock::new();
    ONE.get_or_init(|| Redactor::new().unwrap()).clone()
}

fn check(text: &str, expected: &str) {
    let redacted = redactor().redact(text);
    assert_eq!(redacted.text, expected);
    assert_eq!(redactor().redact(&redacted.text).text, expected, "a second time");
}

/// The parts are joined at run time, so that no scanner reports this file as a leak.
fn github() -> String {
    ["gh", "p_", "0wnX7Tz2Lq9fHd4KsVb1RmYc", "8JgPe64Nw2Ux"].concat()
}

#[test]
fn only_the_secret_is_replaced_by_a_mark() {
    let key = github();
    check(&format!("a {key} b"), "a [redacted:github-pat] b");
    check(&format!("x\\n{key}\\ny"), "x\\n[redacted:github-pat]\\ny");
    check("DB_PASSWORD=tiger4411!\nPORT=1", "DB_PASSWORD=[redacted:password]\nPORT=1");
    check("postgres://app:Xk29fLq0@db/x", "postgres://app:[redacted:url-password]@db/x");
    check("no secret here\r\n\ttoken: str", "no secret here\r\n\ttoken: str");
}

#[test]
fn invalid_utf8_is_unchanged_by_redaction() {
    let bytes = [&b"\xff\xfe key "[..], github().as_bytes(), b" \x80\xff"].concat();
    let redacted = redactor().redact_bytes(&bytes);
    assert_eq!(&*redacted.bytes, b"\xff\xfe key [redacted:github-pat] \x80\xff");
    let bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(&*redactor().redact_bytes(&bytes).bytes, &bytes);
}

#[test]
fn json_strings_are_redacted_by_the_name_of_their_field() {
    let mut value = json!({
        "password": "opensesame",
        "token": "str",
        "headers": {"Authorization": "Bearer q8Zk2mXv71LpTd93", "cookie": "theme=dark; sid=Zk2mXv71LpTd93ab"},
        "env": [{"name": "DB_PASSWORD", "value": "Xk29fLq0"}],
        "max_tokens": 8192,
        "text": "the key is fine",
    });
    assert_eq!(redactor().redact_json(&mut value), 4);
    assert_eq!(
        value,
        json!({
            "password": "[redacted:password]",
            "token": "str",
            "headers": {"Authorization": "Bearer [redacted:authorization]", "cookie": "theme=dark; sid=[redacted:cookie]"},
            "env": [{"name": "DB_PASSWORD", "value": "[redacted:password]"}],
            "max_tokens": 8192,
            "text": "the key is fine",
        })
    );
    assert_eq!(redactor().redact_json(&mut value), 0);
}

#[test]
fn passwords_in_argument_lists_are_redacted() {
    let mut value = json!({
        "argv": ["app", "--password", "opensesame9", "--verbose", "--token", "$TOKEN"],
        "args": ["mysql", "-uroot", "-pq8Zk2mXv71"],
        "cmd": ["curl", "-u", "ci:q8Zk2mXv71", "https://x.test"],
        "names": ["password", "address", "email"],
    });
    redactor().redact_json(&mut value);
    assert_eq!(
        value,
        json!({
            "argv": ["app", "--password", "[redacted:password]", "--verbose", "--token", "$TOKEN"],
            "args": ["mysql", "-uroot", "-p[redacted:command-password]"],
            "cmd": ["curl", "-u", "ci:[redacted:command-password]", "https://x.test"],
            "names": ["password", "address", "email"],
        })
    );
}

#[test]
fn a_vendor_key_containing_a_placeholder_word_is_redacted() {
    for word in ["todo", "FAKE", "Sample", "example", "xxxx", "dummy", "here"] {
        let key = ["gh", "p_", "0wnX7Tz2Lq9fHd4KsVb1", word, "RmYc8JgPe64"].concat();
        let redacted = redactor().redact(&format!("a {key} b")).text.into_owned();
        assert!(redacted.starts_with("a [redacted:github-") && redacted.ends_with("] b"), "{word}: {redacted}");
    }
    let published = ["AKIA", "IOSFODNN7", "EXAMPLE"].concat();
    check(&format!("id = {published}"), &format!("id = {published}"));
    let near = ["AKIA", "Q3R7T5W9Y", "EXAMPLE"].concat();
    check(&format!("id = {near}"), "id = [redacted:aws-key-id]");
}

#[test]
fn a_private_key_split_across_array_elements_is_redacted() {
    let body: Vec<String> = (0..6).map(|i| format!("{i}Qx7Lz{}", "mK29fT0bVw".repeat(5))).collect();
    let mut lines = vec!["-----BEGIN RSA PRIVATE KEY-----".to_owned()];
    lines.extend(body.clone());
    lines.push("-----END RSA PRIVATE KEY-----".to_owned());
    let mut value = json!({"stdout": lines, "after": "x"});
    assert!(redactor().redact_json(&mut value) > 0);
    let text = value.to_string();
    assert!(body.iter().all(|line| !text.contains(line.as_str())), "{text}");
}

/// If the time grew faster than the text, this test would not end in time.
#[test]
fn repetitive_text_is_redacted_in_reasonable_time_and_size() {
    let size = 1 << 16;
    let units = [
        "a",
        "password=",
        "://",
        "://a:b",
        "eyJ",
        "eyJhbGciOiJ",
        "key",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----\n",
        "-----END PRIVATE KEY-----\n",
        "curl -u ",
        "Authorization: ",
        "cookie: a=",
        "\\\\\"",
        "token \"",
        "jira ",
        "ghp_",
        "sk-",
        "{\"name\":\"password\",",
        "Bearer ",
        "echo |sudo -S",
        ":5432:",
        "secret:secret:",
        "'",
        "[redacted:x]",
        "[redacted:",
        "password: \"",
        "twilio SK",
        "sg.",
        "QUJD",
        "QUJD\n",
        "api_key=\n",
        "\u{1b}[1m",
        "AKIA",
        "set password ",
        "login: a:",
        "docker login -p ",
    ];
    for unit in units {
        let text = unit.repeat(size / unit.len());
        let redacted = redactor().redact(&text);
        assert!(redacted.text.len() <= text.len() * 8, "{unit}");
    }
}

/// Surroundings with secrets that are always found in them.
fn planted() -> impl Strategy<Value = (String, String)> {
    let secret = prop_oneof![
        "[A-Za-z0-9]{36}".prop_map(|s| format!("gh{}_{s}", 'p')),
        "[0-9a-f]{40}".prop_map(|s| format!("d{}_v1_{s}{}", "op", &s[..24])),
        "[A-Za-z0-9]{24}".prop_map(|s| format!("s{}_live_{s}", 'k')),
    ]
    // A generated secret may be a placeholder by chance: `xxxx`, or with few different letters.
    .prop_filter("drawn", |s| {
        crate::value::entropy(s.as_bytes()) > 3.5
            && !crate::value::is_placeholder(s.as_bytes())
            && crate::value::looks_random(s.as_bytes())
    });
    ("[ -~\n]{0,200}", secret, "[ -~\n]{0,200}").prop_map(|(before, secret, after)| {
        let text = format!("{before} {secret} {after}");
        (text, secret)
    })
}

/// Pieces of text that start the detectors, in any order.
fn noise() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("password".to_owned()),
        Just("=".to_owned()),
        Just(": ".to_owned()),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just("\\n".to_owned()),
        Just("token".to_owned()),
        Just("api_key".to_owned()),
        Just("://".to_owned()),
        Just("@".to_owned()),
        Just("Authorization: Bearer ".to_owned()),
        Just("eyJ".to_owned()),
        Just(".".to_owned()),
        Just("-----BEGIN RSA PRIVATE KEY-----\n".to_owned()),
        Just("-----END RSA PRIVATE KEY-----".to_owned()),
        Just("curl -u ".to_owned()),
        Just("Cookie: ".to_owned()),
        Just("; ".to_owned()),
        Just("[redacted:".to_owned()),
        Just("]".to_owned()),
        Just("é€😀".to_owned()),
        Just("\n".to_owned()),
        Just(" ".to_owned()),
        Just("ghp_".to_owned()),
        Just("name\":\"secret\",\"value\":".to_owned()),
        "[A-Za-z0-9+/]{1,70}",
        "[ -~]{1,20}",
        "\\PC{1,5}",
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn streamed(bytes: &[u8], piece: usize, context: usize, part: usize) -> Vec<u8> {
    let mut stream = RedactingStream::with_sizes(redactor(), context, part);
    let mut out = Vec::new();
    for piece in bytes.chunks(piece) {
        stream.push(piece, &mut out);
    }
    stream.finish(&mut out);
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn planted_secrets_are_always_redacted((text, secret) in planted()) {
        prop_assert!(!redactor().redact(&text).text.contains(&secret), "{}", text);
    }

    #[test]
    fn redaction_is_idempotent(text in noise()) {
        let once = redactor().redact(&text).text.into_owned();
        let twice = redactor().redact(&once).text.into_owned();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn redaction_changes_only_the_reported_ranges(text in noise()) {
        let redacted = redactor().redact(&text);
        let mut rest = String::new();
        let mut at = 0;
        for one in &redacted.found {
            prop_assert!(at <= one.range.start && one.range.start < one.range.end);
            rest.push_str(&text[at..one.range.start]);
            rest.push_str(&format!("[redacted:{}]", one.kind));
            at = one.range.end;
        }
        rest.push_str(&text[at..]);
        prop_assert_eq!(rest, redacted.text.into_owned());
    }

    #[test]
    fn text_and_bytes_are_redacted_alike(text in noise()) {
        let redactor = redactor();
        let bytes = redactor.redact_bytes(text.as_bytes());
        let whole = redactor.redact(&text);
        prop_assert_eq!(whole.text.as_bytes(), &*bytes.bytes);
    }

    #[test]
    fn arbitrary_bytes_without_secrets_are_unchanged(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let redacted = redactor().redact_bytes(&bytes);
        if redacted.found.is_empty() {
            prop_assert_eq!(&*redacted.bytes, &bytes[..]);
        }
    }

    // A comma is followed by a blank, because `psw,a` above `aaaab,a` is a table, whose column `psw` is redacted
    // correctly.
    #[test]
    fn prose_is_unchanged(text in "([a-z]{1,9}(, |[ .\n])){0,80}") {
        prop_assert_eq!(&*redactor().redact(&text).text, &text);
    }

    #[test]
    fn no_secret_survives_in_a_stream_split_into_pieces(lines in proptest::collection::vec(planted(), 1..30), piece in 1_usize..700) {
        let text: String = lines.iter().map(|(text, _)| format!("{}\n", text.replace(['"', '\'', '`', '\\'], ""))).collect();
        let out = streamed(text.as_bytes(), piece, 4096, 1024);
        for (_, secret) in &lines {
            prop_assert!(memchr::memmem::find(&out, secret.as_bytes()).is_none());
        }
    }
}

#[test]
fn a_stream_is_redacted_like_the_whole_text() {
    let mut text = Vec::new();
    for i in 0..3000 {
        text.extend_from_slice(
            format!("line {i} of a log, with nothing in it\nSERVICE_PASSWORD=tiger{i}Lq!\n\u{1F600}\n").as_bytes(),
        );
        if i % 500 == 0 {
            text.extend_from_slice(b"\xff\xfe");
        }
    }
    let whole = redactor().redact_bytes(&text).bytes.into_owned();
    for piece in [1, 7, 4096, 50_000] {
        assert!(streamed(&text, piece, 8192, 16_384) == whole, "pieces of {piece}");
    }
}
