use super::*;

const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/proj"}"#;

fn message(id: &str, parent: &str) -> String {
    format!(r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{{"role":"user","content":"{id}"}}}}"#)
}

fn read(lines: &[&str]) -> SessionDocument {
    SessionDocument::read(format!("{}\n", lines.join("\n")).as_bytes()).unwrap()
}

fn reasons(document: &SessionDocument) -> Vec<(usize, IssueReason)> {
    document.issues.iter().map(|issue| (issue.position.line, issue.reason.clone())).collect()
}

#[test]
fn a_file_without_a_session_header_is_refused() {
    let check =
        |text: &str, refusal| assert_eq!(SessionDocument::read(text.as_bytes()).unwrap_err(), refusal, "{text}");
    check("", DocumentRefusal::Empty);
    check("  \n\n", DocumentRefusal::Unreadable);
    check("nothing\n", DocumentRefusal::Unreadable);
    check("[]\n", DocumentRefusal::NoHeader);
    check("42\n", DocumentRefusal::NoHeader);
    check(&message("a", "null"), DocumentRefusal::NoHeader);
    check(r#"{"type":"session","version":3}"#, DocumentRefusal::NoId);
    check(r#"{"type":"session","version":3,"id":7}"#, DocumentRefusal::NoId);
    check(&format!("\u{feff}{HEADER}\n{}", message("a", "null")), DocumentRefusal::NoHeader);
    check("{\"type\":\"title\",\"title\":\"t\"}\n", DocumentRefusal::Unreadable);
}

#[test]
fn lines_before_the_header_are_preserved() {
    let document = read(&["garbage", "null", HEADER, &message("a", "null")]);
    assert_eq!(reasons(&document).len(), 2);
    assert_eq!(document.entries.len(), 1);
    assert!(document.to_bytes().starts_with(b"garbage\nnull\n{\"type\":\"session\""));
}

#[test]
fn a_title_line_of_oh_my_pi_is_read_and_preserved() {
    let slot = r#"{"type":"title","v":1,"title":"Name","updatedAt":"x","pad":"   "}"#;
    let document = read(&[slot, HEADER, &message("a", "null")]);
    assert_eq!(document.title.as_deref(), Some("Name"));
    assert_eq!(document.entries.len(), 1);
    assert!(document.issues.is_empty());
    assert!(document.to_bytes().starts_with(slot.as_bytes()));
}

#[test]
fn every_kind_of_damage_is_reported_with_its_line() {
    let torn = message("d", "\"c\"");
    let text = [
        HEADER,
        &message("a", "null"),
        "{\"type\":",
        "42",
        &message("a", "null"),
        r#"{"type":"message","parentId":"a","message":{"role":"user"}}"#,
        r#"{"type":"message","id":"b","parentId":"a"}"#,
        &message("c", "\"gone\""),
        HEADER,
        &torn[..30],
    ]
    .join("\n");
    let document = SessionDocument::read(text.as_bytes()).unwrap();
    let found = reasons(&document);
    assert!(matches!(&found[0], (3, IssueReason::Malformed(_))), "{found:?}");
    assert_eq!(
        found[1..],
        [
            (4, IssueReason::NotAnObject),
            (5, IssueReason::RepeatedId),
            (6, IssueReason::NoId),
            (7, IssueReason::NoMessage),
            (8, IssueReason::UnknownParent),
            (9, IssueReason::SecondHeader),
            (10, IssueReason::Torn),
        ]
    );
    let offset = document.issues[0].position.offset;
    assert!(text[usize::try_from(offset).unwrap()..].starts_with("{\"type\":\n42"));
    assert!(document.open_end);
}

#[test]
fn each_entry_of_a_parent_cycle_is_reported_once() {
    let lines = [
        message("a", "\"c\""),
        message("b", "\"a\""),
        message("c", "\"b\""),
        message("d", "\"c\""),
        message("e", "\"e\""),
    ];
    let lines: Vec<&str> = [HEADER].into_iter().chain(lines.iter().map(String::as_str)).collect();
    let found = reasons(&read(&lines));
    assert_eq!(found, [2, 3, 4, 6].map(|line| (line, IssueReason::Cycle)));
}

#[test]
fn invalid_utf8_is_replaced_and_reported() {
    let mut bytes = format!("{HEADER}\n").into_bytes();
    bytes.extend(br#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":""#);
    bytes.extend(b"\xff\"}}\n");
    let document = SessionDocument::read(&bytes).unwrap();
    assert_eq!(reasons(&document), [(2, IssueReason::NotUtf8)]);
    assert_eq!(document.entries[0].message().unwrap().text("content"), Some("\u{fffd}"));
}

#[test]
fn version_1_entries_get_deterministic_ids() {
    let text = concat!(
        r#"{"type":"session","id":"s"}"#,
        "\n",
        r#"{"type":"message","message":{"role":"user","content":"1"}}"#,
        "\n",
        r#"{"type":"message","message":{"role":"hookMessage","content":"2"},"x":[1.50]}"#,
        "\n",
        r#"{"type":"compaction","summary":"S","firstKeptEntryIndex":2}"#,
        "\n",
        r#"{"type":"compaction","summary":"S","firstKeptEntryIndex":9}"#,
        "\n",
    );
    let document = SessionDocument::read(text.as_bytes()).unwrap();
    assert!(document.migrated && document.minted_ids);
    let ids: Vec<_> = document.entries.iter().map(|e| (e.id().unwrap(), e.parent_id())).collect();
    assert_eq!(ids[0], ("00000001", None));
    assert_eq!(ids[3], ("00000004", Some("00000003")));
    assert_eq!(document.entries[1].role(), Some("custom"));
    assert_eq!(document.entries[2].fields().text("firstKeptEntryId"), Some("00000002"));
    assert_eq!(document.entries[3].fields().get("firstKeptEntryId"), None);
    assert_eq!(document, SessionDocument::read(text.as_bytes()).unwrap());
    let again = SessionDocument::read(&document.to_bytes()).unwrap();
    assert!(!again.migrated);
    assert_eq!(again.entries, document.entries);
    assert_eq!(again.to_bytes(), document.to_bytes());
}

#[test]
fn migration_depends_only_on_the_header_version() {
    let check = |version: &str, migrated: bool, minted: bool| {
        let text = format!("{{\"type\":\"session\",\"version\":{version},\"id\":\"s\"}}\n{}\n", message("a", "null"));
        let document = SessionDocument::read(text.as_bytes()).unwrap();
        assert_eq!((document.migrated, document.minted_ids), (migrated, minted), "{version}");
    };
    check("0", true, true);
    check("null", true, true);
    check("\"1\"", true, true);
    check("2", true, false);
    check("\"2\"", true, false);
    check("3", false, false);
    check("4", false, false);
    check("\"new\"", false, false);
}
