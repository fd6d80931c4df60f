use super::*;
use crate::{
    Stamp,
    context::Context,
    document::SessionHeader,
    entry::{Entry, NewBranchSummary, NewCompaction, NewEntry},
    json::{Json, Object},
};

fn stamp(n: i64) -> Stamp {
    Stamp { now_ms: 1_767_323_045_000 + n * 1000, random: 0x1234_5678_9abc_def0 + u128::try_from(n).unwrap() * 7919 }
}

fn user(text: &str) -> NewEntry {
    NewEntry::Message(Object::new().with("role", "user").with("content", text))
}

fn tree() -> Tree {
    Tree::new(SessionHeader::new("/proj", None, stamp(0)), Vec::new())
}

/// Appends messages and returns their ids.
fn say(tree: &mut Tree, texts: &[&str]) -> Vec<String> {
    let base = i64::try_from(tree.entries().len()).unwrap();
    let append = |(n, text): (i64, &&str)| {
        let index = tree.append(user(text), stamp(base + n)).unwrap();
        tree.entries()[index].id().unwrap().to_owned()
    };
    (1..).zip(texts).map(append).collect()
}

fn texts(tree: &Tree) -> Vec<String> {
    let context = Context::of(tree, tree.leaf());
    context.messages().map(|m| m.text("content").or(m.text("summary")).unwrap_or("?").to_owned()).collect()
}

fn reopened(tree: &Tree) -> Tree {
    Tree::new(tree.header().clone(), tree.entries().to_vec())
}

#[test]
fn new_entries_are_appended_to_the_current_leaf() {
    let mut tree = tree();
    let ids = say(&mut tree, &["1", "2", "3"]);
    tree.branch(&ids[0]).unwrap();
    say(&mut tree, &["4"]);
    assert_eq!(texts(&tree), ["1", "4"]);
    assert_eq!(tree.children(Some(&ids[0])).count(), 2);
    assert_eq!(tree.children(None).count(), 1);
    tree.reset_leaf();
    assert_eq!(texts(&tree), [""; 0]);
    say(&mut tree, &["5"]);
    assert_eq!(tree.outline().roots.len(), 2);
    assert_eq!(tree.branch("nobody"), Err(TreeError::NotFound("nobody".into())));
}

#[test]
fn a_leaf_move_is_restored_on_reopen_and_visible_to_pi() {
    let mut tree = tree();
    let ids = say(&mut tree, &["1", "2"]);
    tree.branch(&ids[0]).unwrap();
    assert!(!tree.is_leaf_kept());
    let kept = tree.record_leaf(stamp(9));
    assert_eq!(tree.leaf_id(), Some(ids[0].as_str()));
    assert_eq!(reopened(&tree).leaf_id(), Some(ids[0].as_str()));
    // pi uses the last line as the leaf: its path is the same.
    assert_eq!(tree.entries()[kept].parent_id(), Some(ids[0].as_str()));
    tree.reset_leaf();
    tree.record_leaf(stamp(10));
    assert_eq!(reopened(&tree).leaf_id(), None);
    assert!(reopened(&tree).is_leaf_kept());
    // The next entry is not a child of the leaf record.
    tree.branch(&ids[1]).unwrap();
    say(&mut tree, &["3"]);
    assert_eq!(texts(&tree), ["1", "2", "3"]);
}

#[test]
fn a_branch_summary_is_appended_at_the_branch_point() {
    let mut tree = tree();
    let ids = say(&mut tree, &["1", "2"]);
    let new = NewBranchSummary { summary: "was there".into(), ..NewBranchSummary::default() };
    let index = tree.branch_with_summary(Some(&ids[0]), new, stamp(5)).unwrap();
    let entry = &tree.entries()[index];
    assert_eq!(entry.parent_id(), Some(ids[0].as_str()));
    assert_eq!(entry.fields().text("fromId"), Some(ids[1].as_str()));
    assert_eq!(texts(&tree), ["1", "was there"]);
}

#[test]
fn labels_are_found_outside_the_current_branch() {
    let mut tree = tree();
    let ids = say(&mut tree, &["1", "2"]);
    let label =
        |target: &str, text: Option<&str>| NewEntry::Label { target: target.into(), text: text.map(str::to_owned) };
    tree.append(label(&ids[0], Some("start")), stamp(3)).unwrap();
    tree.branch(&ids[0]).unwrap();
    assert_eq!(tree.label(&ids[0]).unwrap().text, "start");
    tree.append(label(&ids[0], None), stamp(4)).unwrap();
    assert_eq!(tree.label(&ids[0]), None);
    assert!(tree.append(label("nobody", Some("x")), stamp(5)).is_err());
}

#[test]
fn a_branched_session_omits_label_entries_but_keeps_the_labels() {
    let mut tree = tree();
    let ids = say(&mut tree, &["1", "2"]);
    let first = NewEntry::Label { target: ids[0].clone(), text: Some("start".into()) };
    let label = tree.append(first, stamp(3)).unwrap();
    let label = tree.entries()[label].id().unwrap().to_owned();
    let later = say(&mut tree, &["3", "4"]);
    let compaction = NewCompaction { summary: "S".into(), first_kept: Some(label.clone()), ..NewCompaction::default() };
    tree.append(NewEntry::Compaction(compaction), stamp(8)).unwrap();
    let leaf = tree.leaf_id().unwrap().to_owned();
    let new = tree.branched(&leaf, SessionHeader::new("/proj", Some("/old"), stamp(9)), stamp(9)).unwrap();
    assert_eq!(new.entry(&later[0]).unwrap().parent_id(), Some(ids[1].as_str()));
    assert_eq!(new.label(&ids[0]).unwrap().text, "start");
    assert!(new.entry(&label).is_none());
    // Kept from the label on becomes kept from the entry after it.
    assert_eq!(texts(&new), ["S", "3", "4"]);
    assert_eq!(texts(&tree), texts(&new));
}

#[test]
fn a_fork_contains_the_entries_before_the_chosen_message() {
    let mut tree = tree();
    let ids = say(&mut tree, &["1", "2"]);
    let header = || SessionHeader::new("/proj", None, stamp(9));
    let forked = tree.forked(&ids[1], header(), stamp(9)).unwrap();
    assert_eq!((texts(&forked.tree), forked.text.as_str()), (vec!["1".to_owned()], "2"));
    let first = tree.forked(&ids[0], header(), stamp(9)).unwrap();
    assert!(first.tree.entries().is_empty());
}

#[test]
fn a_context_edit_replaces_or_removes_messages_in_the_context() {
    let mut tree = tree();
    let ids = say(&mut tree, &["1", "2", "3"]);
    let edit = |target: &str, content: Option<Json>| NewEntry::ContextEdit { target: target.into(), content };
    tree.append(edit(&ids[0], Some("one".into())), stamp(4)).unwrap();
    tree.append(edit(&ids[1], None), stamp(5)).unwrap();
    assert_eq!(texts(&tree), ["one", "3"]);
    assert_eq!(tree.append(edit(&ids[0], Some(true.into())), stamp(6)), Err(TreeError::NoContent));
    tree.branch(&ids[0]).unwrap();
    assert_eq!(tree.append(edit(&ids[1], None), stamp(6)), Err(TreeError::NotOnPath(ids[1].clone())));
}

#[test]
fn a_chain_of_20000_entries_is_handled() {
    let mut tree = tree();
    for n in 0..20_000 {
        tree.append(user("x"), stamp(n)).unwrap();
    }
    assert_eq!(tree.leaf_path().len(), 20_000);
    assert_eq!(tree.outline().nodes.last().unwrap().depth, 19_999);
    assert_eq!(Context::of(&tree, tree.leaf()).messages().count(), 20_000);
}

#[test]
fn a_path_through_a_parent_cycle_ends() {
    let entry = |id: &str, parent: &str| {
        let message = Object::new().with("role", "user").with("content", id);
        Entry::read(
            Object::new().with("type", "message").with("id", id).with("parentId", parent).with("message", message),
        )
    };
    let tree =
        Tree::new(SessionHeader::new("/", None, stamp(0)), vec![entry("a", "c"), entry("b", "a"), entry("c", "b")]);
    assert_eq!(texts(&tree), ["a", "b", "c"]);
    assert!(tree.outline().nodes.is_empty());
}

proptest::proptest! {
    /// The fast computation of the leaf's path equals looking up every parent, even with cycles and duplicate ids.
    #[test]
    fn leaf_path_equals_the_path_found_through_the_parents(
        parents in proptest::collection::vec((0..9_usize, 0..12_usize), 0..12),
        straight in proptest::prelude::any::<bool>(),
    ) {
        let entries = parents.iter().enumerate().map(|(at, (parent, id))| {
            // Mostly a chain, with some entries that follow another one, possibly a later one.
            let id = if straight || *id > 0 { at } else { 0 };
            let parent = match parent {
                0..=5 if at > 0 => at - 1,
                other => *other,
            };
            let fields = Object::new().with("type", "custom").with("id", format!("e{id}"));
            Entry::read(fields.with("parentId", format!("e{parent}")))
        });
        let tree = Tree::new(SessionHeader::new("/w", None, Stamp { now_ms: 0, random: 1 }), entries.collect());
        let keys = |path: Vec<&Entry>| path.into_iter().map(std::ptr::from_ref).collect::<Vec<_>>();
        proptest::prop_assert_eq!(keys(tree.leaf_path()), keys(tree.path(tree.leaf())));
    }
}
