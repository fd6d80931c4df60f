//! After any sequence of operations, the file matches the memory.

use proptest::prelude::*;
use session_tree::{Context, Json, NewBranchSummary, NewEntry, Object, Session, SessionDocument, Stamp, Tree};

#[derive(Debug, Clone)]
enum Step {
    Say(&'static str, String),
    Model(u8),
    Label(usize, Option<String>),
    Edit(usize),
    Branch(usize),
    Leave(usize, String),
    Reset,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let role = prop_oneof![Just("user"), Just("assistant"), Just("toolResult"), Just("bashExecution")];
    let step = prop_oneof![
        6 => (role, ".{0,12}").prop_map(|(role, text)| Step::Say(role, text)),
        1 => any::<u8>().prop_map(Step::Model),
        1 => (any::<usize>(), proptest::option::of("[a-z]{0,3}")).prop_map(|(at, text)| Step::Label(at, text)),
        1 => any::<usize>().prop_map(Step::Edit),
        2 => any::<usize>().prop_map(Step::Branch),
        1 => (any::<usize>(), ".{0,6}").prop_map(|(at, text)| Step::Leave(at, text)),
        1 => Just(Step::Reset),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..40)
}

fn told(tree: &Tree) -> String {
    let context = Context::of(tree, tree.leaf());
    let messages: Vec<String> = context.messages().map(Object::to_text).collect();
    let nodes: Vec<String> = tree.outline().nodes.iter().map(|n| format!("{:?}/{}", n.entry.id(), n.depth)).collect();
    format!("{:?} {:?} {messages:?} {nodes:?} {:?}", tree.leaf_id(), context.model, tree.labels())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_reopened_session_is_unchanged_after_any_operations(steps in steps(), seed: u128) {
        let directory = tempfile::TempDir::new().unwrap();
        let mut time = 0_i64;
        let mut stamp = || {
            time += 1;
            Stamp { now_ms: 1_767_323_045_000 + time, random: seed.wrapping_mul(time.unsigned_abs().into()) }
        };
        let mut session = Session::create(directory.path(), "/proj", None, stamp());
        for step in steps {
            let ids: Vec<String> =
                session.tree().entries().iter().filter_map(|e| e.id().map(str::to_owned)).collect();
            let pick = |at: usize| ids.get(at % ids.len().max(1)).cloned();
            match step {
                Step::Say(role, text) => {
                    let message = Object::new().with("role", role).with("content", text.as_str()).with("command", text);
                    session.append(NewEntry::Message(message), stamp()).unwrap();
                }
                Step::Model(n) => {
                    session.append(NewEntry::ModelChange { provider: "p".into(), model: n.to_string() }, stamp()).unwrap();
                }
                Step::Label(at, text) => if let Some(target) = pick(at) {
                    session.append(NewEntry::Label { target, text }, stamp()).unwrap();
                },
                Step::Edit(at) => if let Some(target) = pick(at) {
                    // Some entries cannot be edited; then nothing changes.
                    let before = told(session.tree());
                    if session.append(NewEntry::ContextEdit { target, content: Some("e".into()) }, stamp()).is_err() {
                        prop_assert_eq!(told(session.tree()), before);
                    }
                },
                Step::Branch(at) => if let Some(id) = pick(at) { session.branch(&id, stamp()).unwrap() },
                Step::Leave(at, summary) => {
                    let new = NewBranchSummary { summary, ..NewBranchSummary::default() };
                    session.branch_with_summary(pick(at).as_deref(), new, stamp()).unwrap();
                }
                Step::Reset => session.reset_leaf(stamp()).unwrap(),
                Step::Reopen => if session.is_saved() {
                    let (path, before) = (session.path().to_owned(), told(session.tree()));
                    drop(session);
                    session = Session::open(&path, "/proj", stamp()).unwrap();
                    prop_assert_eq!(told(session.tree()), before);
                    prop_assert!(session.issues().is_empty());
                },
            }
        }
    }

    #[test]
    fn current_documents_round_trip_and_migration_is_idempotent(values in proptest::collection::vec(json(), 0..12), version in 0..5_u64) {
        let mut lines = vec![format!("{{\"type\":\"session\",\"version\":{version},\"id\":\"s\",\"more\":[1]}}")];
        for (index, value) in values.into_iter().enumerate() {
            let entry = Object::new().with("type", "message").with("id", index.to_string()).with("parentId", Json::Null);
            lines.push(entry.with("message", Object::new().with("role", "hookMessage")).with("own", value).to_text());
        }
        let text = lines.join("\n") + "\n";
        let document = SessionDocument::read(text.as_bytes()).unwrap();
        prop_assert_eq!(document.migrated, version < 3);
        if version >= 3 {
            prop_assert_eq!(String::from_utf8(document.to_bytes()).unwrap(), text);
        }
        // Migrating twice equals migrating once.
        let again = SessionDocument::read(&document.to_bytes()).unwrap();
        prop_assert!(!again.migrated);
        prop_assert_eq!(again.entries, document.entries);
    }

    #[test]
    fn no_input_makes_the_session_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), cut in any::<usize>()) {
        let header = b"{\"type\":\"session\",\"version\":1,\"id\":\"s\"}\n{\"type\":\"compaction\",\"firstKeptEntryIndex\":1}\n";
        let mut text = header.to_vec();
        text.extend(&bytes);
        text.truncate(cut % (text.len() + 1));
        if let Ok(document) = SessionDocument::read(&text) {
            let tree = Tree::from(document);
            told(&tree);
        }
    }
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        ".{0,8}".prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            proptest::collection::vec((".{0,4}", inner), 0..5)
                .prop_map(|pairs| Json::Object(pairs.into_iter().collect())),
        ]
    })
}
