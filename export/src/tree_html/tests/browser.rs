//! Tests of the page in a real browser. They need `chromium` on the PATH, so they run only on request: `cargo nextest
//! run -p export --run-ignored only`.

use super::*;
use crate::browser::{canary, document, told};

/// The document without the block of data and the script.
fn shown(document: &str) -> String {
    let (before, rest) = document.split_once("<script type=\"application/json\"").unwrap();
    format!("{before}{}", rest.rsplit_once("</script>").unwrap().1)
}

#[test]
#[ignore = "needs chromium"]
fn hostile_texts_make_no_request_and_run_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (address, asked) = canary();
    document(dir.path(), &format!("<!doctype html><img src=\"http://{address}/picture\">"), "");
    assert!(told(&address, asked) > 0, "the canary hears a page without a policy");
    let (address, asked) = canary();
    let tree = tree(&hostile(&address));
    for at in [
        "",
        "#open=all",
        "#open=all&entry=00000060",
        "#entry=00000001",
        "#leaf=<script>&entry=javascript:alert(1)",
        "?leafId=%00&targetId=00000007",
    ] {
        let document = document(dir.path(), &page(&tree), at);
        let shown = shown(&document);
        assert!(shown.contains("class=\"entry"), "the page is drawn");
        let title = document.split_once("<title>").unwrap().1.split_once("</title>").unwrap().0;
        assert_ne!(title, "pwned");
        for part in ["<script", "<iframe", "<link", "<svg", "<img", "href=\"javascript"] {
            assert!(!shown.contains(part), "{part} in {at}");
        }
    }
    assert_eq!(told(&address, asked), 0, "somebody asked the canary");
}

#[test]
#[ignore = "needs chromium"]
fn the_url_selects_the_displayed_leaf_and_entry() {
    let dir = tempfile::tempdir().unwrap();
    let page = page(&tree(&format!("{HEADER}\n{BRANCHED}")));
    let check = |address: &str, entries: &[&str], target: Option<&str>| {
        let document = document(dir.path(), &page, address);
        let drawn: Vec<&str> = document
            .split("<article ")
            .skip(1)
            .map(|node| node.split_once("data-at=\"").unwrap().1.split_once('"').unwrap().0)
            .collect();
        assert_eq!(drawn, entries, "{address}");
        let marked = document.split("<article ").skip(1).find(|n| n.split_once('>').unwrap().0.contains("target"));
        let marked = marked.map(|n| n.split_once("data-at=\"").unwrap().1.split_once('"').unwrap().0);
        assert_eq!(marked, target, "{address}");
    };
    check("", &["0", "1"], None);
    check("#leaf=d", &["0", "2", "3"], None);
    check("#leaf=d&entry=c", &["0", "2", "3"], Some("2"));
    check("#entry=c", &["0", "2", "3"], Some("2"));
    check("?leafId=d&targetId=a", &["0", "2", "3"], Some("0"));
}

#[test]
#[ignore = "needs chromium"]
fn a_browser_renders_only_part_of_a_long_session() {
    let mut file = format!("{HEADER}\n");
    for n in 0..20_000 {
        let parent = if n == 0 { "null".to_owned() } else { format!("\"{:08x}\"", n - 1) };
        let _ = writeln!(
            file,
            r#"{{"type":"message","id":"{n:08x}","parentId":{parent},"timestamp":"2026-11-20T04:40:00.000Z","message":{{"role":"user","content":"entry number {n}"}}}}"#
        );
    }
    let dir = tempfile::tempdir().unwrap();
    let page = page(&tree(&file));
    for address in ["", "#entry=00002710"] {
        let document = document(dir.path(), &page, address);
        let (rows, entries) = (document.matches("role=\"treeitem\"").count(), document.matches("<article ").count());
        assert!((10..120).contains(&rows) && (20..1_000).contains(&entries), "{rows} rows, {entries} entries");
        assert!(shown(&document).contains(if address.is_empty() { "entry number 0" } else { "entry number 10000" }));
    }
}
