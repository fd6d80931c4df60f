use session_tree::{SessionDocument, Tree};

use super::*;

/// A session whose first request left a marked prefix, and whose second request differs starting at one entry.
fn session() -> Tree {
    let line = |id: &str, parent: &str, at: &str, rest: &str| {
        let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
        format!("{{\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-11-01T{at}.000Z\",{rest}}}\n")
    };
    let sent = |n: u32| {
        format!(
            "\"type\":\"custom\",\"customType\":\"capture.request\",\"data\":{{\"phase\":\"sent\",\"n\":{n},\"retries\":0,\
             \"provider\":\"mine\",\"model\":\"m\",\"bytes\":40000,\"blocks\":4,\
             \"chain\":[{{\"at\":2,\"hash\":\"00000000000000{n:02}\",\"bytes\":40000,\"marked\":true}}],\
             \"predicted\":{{\"read\":0,\"write\":9000}}}}"
        )
    };
    let ended = |n: u32, cause: &str| {
        format!(
            "\"type\":\"custom\",\"customType\":\"capture.request\",\"data\":{{\"phase\":\"ended\",\"n\":{n},\
             \"totalMs\":10,\"usage\":{{\"input\":10,\"cacheWrite5m\":9000,\"output\":5}}{cause}}}"
        )
    };
    let changed = ",\"cause\":{\"cause\":\"prefix_changed\",\"block\":3,\"origin\":{\"entry\":\"bbbbbbbb\"}}";
    let text = [
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-11-01T10:00:00.000Z\",\"cwd\":\"/w\"}\n"
            .to_owned(),
        line("aaaaaaaa", "", "10:00:01", &sent(1)),
        line("aaaaaaab", "aaaaaaaa", "10:00:02", &ended(1, "")),
        line(
            "bbbbbbbb",
            "aaaaaaab",
            "10:10:00",
            "\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"x\"}",
        ),
        line("cccccccc", "bbbbbbbb", "10:10:01", &sent(2)),
        line("cccccccd", "cccccccc", "10:10:02", &ended(2, changed)),
    ]
    .concat();
    SessionDocument::read(text.as_bytes()).unwrap().into()
}

#[test]
fn the_cache_table_names_the_changed_entry_and_the_pauses() {
    let table = CacheTable::of(&session());
    let text = table.to_text();
    assert!(text.contains("the request differs from block 3 on (entry bbbbbbbb, user)"), "{text}");
    assert!(
        text.contains(
            "From the next turn on, the system prompt stays in the cache for 1 h, which costs no more than 5 min: of the \
             last 1 pauses between requests, 1 were longer than 5 min and 0 longer than 1 h."
        ),
        "{text}"
    );
}

#[test]
fn the_json_of_the_cache_table_has_only_lower_case_names() {
    let json = serde_json::to_value(CacheTable::of(&session())).unwrap();
    assert_eq!((&json["requests"][1]["changed_kind"], &json["kept"]["is_long"]), (&"user".into(), &true.into()));
    assert_eq!(json["requests"][0]["usage"]["cache_write_5m"], 9000);
    // Only names could contain upper-case letters: no value of this session does.
    let text = json.to_string();
    assert!(!text.contains(char::is_uppercase), "{text}");
}
