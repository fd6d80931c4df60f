use std::{borrow::Cow, fmt::Write as _};

use serde_json::Value;
use session_tree::SessionDocument;

use super::*;

mod browser;

const HEADER: &str = r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-11-20T04:39:18.871Z","cwd":"/w"}"#;

/// Texts that try to break out of their context.
const HOSTILE: &[&str] = &[
    "<script>document.title='pwned'</script>",
    "</script><script>document.title='pwned'</script>",
    "<!-- <script>",
    "-->",
    "]]>",
    "</textarea></title></style><img src=x onerror=\"document.title='pwned'\">",
    "<svg onload=\"document.title='pwned'\"><use href=\"http://CANARY/svg\"></svg>",
    "[click](javascript:document.title='pwned')",
    "![picture](http://CANARY/markdown.png)",
    "[a](http://CANARY/link) http://CANARY/bare <http://CANARY/angle>",
    "<link rel=stylesheet href=http://CANARY/css><iframe src=http://CANARY/frame></iframe>",
    "<meta http-equiv=refresh content=\"0;url=http://CANARY/refresh\">",
    "{data} {script} {csp} {{x}}",
    "a\u{2028}b\u{2029}c\u{0}d\u{202e}txt.exe\u{feff}",
    "__proto__ constructor \u{d7ff} \u{10ffff}",
];

fn text(value: &str) -> String {
    serde_json::to_string(value).unwrap()
}

/// A session in which every displayed field contains every hostile text.
fn hostile(canary: &str) -> String {
    let mut file = format!("{HEADER}\n");
    let mut parent = "null".to_owned();
    let mut number = 0;
    let mut add = |kind: &str, fields: &str| {
        number += 1;
        let id = format!("\"{number:08x}\"");
        let _ = writeln!(
            file,
            r#"{{"type":{},"id":{id},"parentId":{parent},"timestamp":"2026-11-20T04:40:00.000Z",{fields}}}"#,
            text(kind)
        );
        parent = id;
    };
    for words in HOSTILE {
        let words = text(&words.replace("CANARY", canary));
        add("message", &format!(r#""message":{{"role":"user","content":{words}}}"#));
        add(
            "message",
            &format!(
                r#""message":{{"role":"assistant","model":{words},"errorMessage":{words},"stopReason":"error","content":[{{"type":"text","text":{words}}},{{"type":"thinking","thinking":{words}}},{{"type":"toolCall","id":{words},"name":{words},"arguments":{{"command":{words},{words}:1}}}}]}}"#
            ),
        );
        add(
            "message",
            &format!(
                r#""message":{{"role":"toolResult","toolCallId":{words},"toolName":{words},"content":[{{"type":"text","text":{words}}},{{"type":"image","mimeType":{words},"data":{words}}}]}}"#
            ),
        );
        add(
            "message",
            &format!(
                r#""message":{{"role":"assistant","content":[{{"type":"image","mimeType":"image/svg+xml","data":{words}}},{{"type":"image","mimeType":"image/png","data":{words}}},{{"type":{words},"x":{words}}}]}}"#
            ),
        );
        add("message", &format!(r#""message":{{"role":{words},"content":{words}}}"#));
        add("message", &format!(r#""message":{{"role":"bashExecution","command":{words},"output":{words}}}"#));
        add("compaction", &format!(r#""summary":{words}"#));
        add("branch_summary", &format!(r#""summary":{words}"#));
        add("label", &format!(r#""targetId":"00000001","label":{words}"#));
        add("session_info", &format!(r#""name":{words}"#));
        add("model_change", &format!(r#""modelId":{words}"#));
        add("custom_message", &format!(r#""customType":{words},"content":{words},"display":true"#));
        add("nothing known <script>", &format!(r#""x":{words}"#));
    }
    add("message", &format!(r#""message":{{"role":"user","content":"{}"}}"#, "long ".repeat(1 << 18)));
    file
}

fn tree(file: &str) -> Tree {
    Tree::from(SessionDocument::read(file.as_bytes()).unwrap())
}

fn page_with(tree: &Tree, leaf: Option<&str>, redact: &dyn Fn(&str) -> Cow<'_, str>) -> String {
    let mut page = Vec::new();
    let leaf = leaf.map_or(tree.leaf(), |id| tree.entry(id));
    write(tree, &PageOptions { leaf, title: None, redact }, &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

fn page(tree: &Tree) -> String {
    page_with(tree, None, &|text| Cow::Borrowed(text))
}

/// The block of data, as written in the page.
fn block(page: &str) -> &str {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    rest.split_once("</script>").unwrap().0
}

fn data(page: &str) -> Value {
    serde_json::from_str(block(page)).unwrap()
}

#[test]
fn the_data_block_contains_all_entries_unchanged() {
    let file = hostile("127.0.0.1:1");
    let data = data(&page(&tree(&file)));
    let entries: Vec<Value> = file.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(data["entries"].as_array().unwrap(), &entries);
    assert_eq!(data["header"], serde_json::from_str::<Value>(HEADER).unwrap());
}

#[test]
fn session_text_is_escaped_and_confined_to_the_data_block() {
    let page = page(&tree(&hostile("127.0.0.1:1")));
    assert!(!block(&page).contains(['<', '>', '&', '\u{2028}', '\u{2029}']));
    // Outside the block the page is the same for every session.
    let around = |page: &str| page.replace(block(page), "");
    assert_eq!(around(&page), around(&self::page(&tree(&format!("{HEADER}\n")))));
}

#[test]
fn the_page_is_self_contained_and_loads_nothing() {
    let page = page(&tree(&format!("{HEADER}\n")));
    for word in [
        "src=",
        "href=",
        "@import",
        "url(",
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "fetch(",
        "XMLHttp",
        "import(",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    assert_eq!(page.matches("<script").count(), 2);
    // Neither script nor style contains text that ends its element, and the policy contains the hashes of both.
    for (part, close) in [(SCRIPT, "</script"), (STYLE, "</style")] {
        assert!(!part.contains(close) && !part.contains("<!--"));
        assert!(page.contains(&format!(">{part}</")));
        assert!(page.contains(&STANDARD.encode(Hash::hash(part.as_bytes()))));
    }
    assert!(page.contains("content=\"default-src 'none'; script-src 'sha256-"));
    assert!(!page.contains("unsafe-inline"));
}

const BRANCHED: &str = r#"{"type":"message","id":"a","parentId":null,"timestamp":"2026-11-20T04:39:20.000Z","message":{"role":"user","content":"one"}}
{"type":"message","id":"b","parentId":"a","timestamp":"2026-11-20T04:39:21.000Z","message":{"role":"assistant","content":[]}}
{"type":"message","id":"c","parentId":"a","timestamp":"2026-11-20T04:39:22.000Z","message":{"role":"assistant","content":[]}}
{"type":"label","id":"d","parentId":"c","timestamp":"2026-11-20T04:39:23.000Z","targetId":"b","label":"here"}
{"type":"custom","customType":"capture.leaf","data":{"leafId":"b"},"id":"e","parentId":"b","timestamp":"2026-11-20T04:39:24.000Z"}
"#;

#[test]
fn the_data_block_contains_the_tree_order_leaf_and_labels() {
    let tree = tree(&format!("{HEADER}\n{BRANCHED}"));
    let data = data(&page(&tree));
    assert_eq!(data["parents"].to_string(), "[-1,0,0,2,1]");
    assert_eq!(data["order"].to_string(), "[0,1,4,2,3]");
    assert_eq!((data["leaf"].to_string(), data["labels"].to_string()), ("1".into(), "[[1,\"here\"]]".into()));
    assert_eq!(data["leaves"], 1, "our own note of the leaf is none");
    let other = self::data(&page_with(&tree, Some("c"), &|text| Cow::Borrowed(text)));
    assert_eq!(other["leaf"], 2);
    let before = self::data(&page_with(&tree, Some("nowhere"), &|text| Cow::Borrowed(text)));
    assert_eq!(before["leaf"], -1, "before the first entry");
}

#[test]
fn a_tree_with_cycles_or_missing_parents_keeps_every_entry() {
    let entry = |id: &str, parent: &str| {
        format!(
            r#"{{"type":"message","id":{id},"parentId":{parent},"timestamp":"x","message":{{"role":"user","content":"c"}}}}"#
        )
    };
    let lines = [
        entry("\"a\"", "\"b\""),
        entry("\"b\"", "\"a\""),
        entry("\"c\"", "\"c\""),
        entry("\"d\"", "\"nowhere\""),
        entry("\"e\"", "null"),
        entry("\"e\"", "\"e\""),
        entry("7", "[]"),
    ];
    let data = data(&page(&tree(&format!("{HEADER}\n{}\n", lines.join("\n")))));
    let mut order: Vec<u64> = data["order"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    let parents: Vec<i64> = data["parents"].as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect();
    for (n, at) in order.iter().enumerate() {
        let parent = parents[*at as usize];
        assert!(parent < 0 || order[..n].contains(&(parent as u64)), "{at} stands before its parent");
    }
    order.sort_unstable();
    assert_eq!(order, [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn every_exported_text_is_redacted_except_images_and_ids() {
    let file = format!(
        "{HEADER}\n{}\n{}\n",
        r#"{"type":"message","id":"hunter2","parentId":null,"timestamp":"2026-11-20T04:39:20.000Z","message":{"role":"user","content":[{"type":"text","text":"the hunter2 word"},{"type":"image","mimeType":"image/png","data":"hunter2A"},{"type":"image","mimeType":"image/svg+xml","data":"hunter2B"},{"type":"toolCall","arguments":{"hunter2C":{"x":["hunter2D"]}}}]}}"#,
        r#"{"type":"label","id":"b","parentId":"hunter2","timestamp":"x","targetId":"hunter2","label":"hunter2E"}"#
    );
    let page = page_with(&tree(&file), None, &|text| match text.contains("hunter2") {
        true => Cow::Owned(text.replace("hunter2", "•••")),
        false => Cow::Borrowed(text),
    });
    let entries = data(&page)["entries"].to_string();
    assert!(entries.contains("the ••• word") && entries.contains("hunter2A"));
    // Only the image and the ids remain.
    assert_eq!(page.matches("hunter2").count(), 1 + 3, "{entries}");
}
