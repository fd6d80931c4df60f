use session_tree::{NewEntry, SessionHeader, Stamp};

use super::*;

fn stamp(n: u128) -> Stamp {
    Stamp { now_ms: 1_763_900_000_000 + i64::try_from(n).unwrap(), random: n << 64 | n }
}

fn said(role: &str, text: &str) -> NewEntry {
    NewEntry::Message(Object::new().with("role", role).with("content", text))
}

fn parsed(text: &str) -> Object {
    Json::parse(text).unwrap().as_object().unwrap().clone()
}

fn list(object: &Object, key: &str) -> Vec<Object> {
    object.get(key).unwrap().as_array().unwrap().iter().map(|item| item.as_object().unwrap().clone()).collect()
}

/// Two questions, with two versions of the second.
fn branched() -> (Tree, Vec<String>) {
    let mut tree = Tree::new(SessionHeader::new("/w", None, stamp(1)), Vec::new());
    let mut ids = Vec::new();
    let mut append = |tree: &mut Tree, n: u128, entry: NewEntry| {
        let at = tree.append(entry, stamp(n)).unwrap();
        ids.push(tree.entries()[at].id().unwrap().to_owned());
    };
    append(&mut tree, 2, said("user", "one"));
    append(&mut tree, 3, said("assistant", " 1 "));
    append(&mut tree, 4, said("user", "two"));
    let before = tree.entries()[1].id().unwrap().to_owned();
    tree.branch(&before).unwrap();
    append(&mut tree, 5, said("user", "three"));
    append(&mut tree, 6, NewEntry::Label { target: before, text: Some("here".to_owned()) });
    (tree, ids)
}

#[test]
fn the_tree_is_nested_as_in_pi() {
    let (tree, ids) = branched();
    let told = parsed(&super::tree(&tree));
    assert_eq!(told.text("leafId"), tree.leaf_id());
    let id = |node: &Object| node.get("entry").unwrap().as_object().unwrap().text("id").unwrap().to_owned();
    let roots = list(&told, "tree");
    assert_eq!(roots.iter().map(id).collect::<Vec<_>>(), [ids[0].clone()]);
    let below = list(&roots[0], "children");
    assert_eq!(below.iter().map(id).collect::<Vec<_>>(), [ids[1].clone()]);
    assert_eq!(below[0].text("label"), Some("here"));
    let branches = list(&below[0], "children");
    assert_eq!(branches.iter().map(id).collect::<Vec<_>>(), [ids[2].clone(), ids[3].clone()]);
    assert!(list(&branches[0], "children").is_empty());
    assert_eq!(list(&branches[1], "children").len(), 1);
    let empty = Tree::new(SessionHeader::new("/w", None, stamp(1)), Vec::new());
    assert_eq!(super::tree(&empty), r#"{"tree":[],"leafId":null}"#);
}

#[test]
fn a_tree_of_20000_nested_entries_is_serialized_completely() {
    let mut tree = Tree::new(SessionHeader::new("/w", None, stamp(1)), Vec::new());
    for n in 0..20_000 {
        tree.append(said("user", "x"), stamp(n + 2)).unwrap();
    }
    let told = super::tree(&tree);
    assert_eq!(told.matches(r#""children":["#).count(), 20_000);
    assert_eq!(told.matches('{').count(), told.matches('}').count());
}

#[test]
fn entries_after_a_cursor_are_returned() {
    let (tree, ids) = branched();
    let told = parsed(&entries(&tree, None).unwrap());
    assert_eq!(list(&told, "entries").len(), 5);
    let told = parsed(&entries(&tree, Some(&ids[3])).unwrap());
    assert_eq!(list(&told, "entries").len(), 1);
    assert_eq!(entries(&tree, Some("nope")).unwrap_err(), "Entry not found: nope");
}

#[test]
fn texts_counts_and_stats_cover_only_the_current_branch() {
    let (mut tree, ids) = branched();
    let told = parsed(&fork_messages(&tree));
    let told: Vec<String> = list(&told, "messages").iter().map(|m| m.text("entryId").unwrap().to_owned()).collect();
    assert_eq!(told, [ids[0].clone(), ids[3].clone()]);
    assert_eq!(last_text(&tree), r#"{"text":"1"}"#);
    assert_eq!(message_count(&tree), 3);
    assert_eq!(list(&parsed(&messages(&tree)), "messages").len(), 3);
    let usage = r#"{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"read","arguments":{}}],"stopReason":"toolUse",
        "usage":{"input":10,"output":5,"cacheRead":80,"cacheWrite":5,"totalTokens":100,"cost":{"total":0.5}}}"#;
    tree.append(NewEntry::Message(parsed(usage)), stamp(9)).unwrap();
    let told = stats(&tree, Some(1000));
    let tokens = r#"{"input":10,"output":5,"cacheRead":80,"cacheWrite":5,"total":100}"#;
    assert_eq!(told.get("tokens").unwrap().to_text(), tokens);
    assert_eq!(told.get("cost"), Some(&number(0.5)));
    assert_eq!(told.get("toolCalls"), Some(&Json::from(1_u64)));
    let usage = r#"{"tokens":100,"contextWindow":1000,"percent":10}"#;
    assert_eq!(told.get("contextUsage").unwrap().to_text(), usage);
    assert_eq!(stats(&tree, None).get("contextUsage"), None);
    let empty = Tree::new(SessionHeader::new("/w", None, stamp(1)), Vec::new());
    assert_eq!(last_text(&empty), r#"{"text":null}"#);
}
