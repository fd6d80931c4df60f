use std::{
    fs,
    path::{Path, PathBuf},
};

use session_tree::Json;

use super::*;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/session-tree")
}

/// Runs a command line.
fn ask(words: &[&str]) -> anyhow::Result<SessionOutput> {
    #[derive(clap::Parser)]
    struct Typed {
        #[command(flatten)]
        arguments: Arguments,
    }
    let typed = <Typed as clap::Parser>::try_parse_from(["session"].iter().chain(words))?;
    answer(&typed.arguments.verb)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// Normalizes JSON: the order of keys and the format of numbers do not matter.
fn value(text: &str) -> serde_json::Value {
    fn plain(value: serde_json::Value) -> serde_json::Value {
        match value {
            serde_json::Value::Number(number) => number.as_f64().into(),
            serde_json::Value::Array(items) => items.into_iter().map(plain).collect(),
            serde_json::Value::Object(pairs) => pairs.into_iter().map(|(k, v)| (k, plain(v))).collect(),
            other @ (serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::String(_)) => other,
        }
    }
    plain(serde_json::from_str(text).unwrap())
}

/// Whether our `sizeAfter` must equal pi's. It need not if the file has issues, because pi would rewrite the file
/// without lines that we keep, or with another directory.
fn size_is_ours(session: &Path) -> bool {
    let bytes = fs::read(session).unwrap();
    session_tree::SessionDocument::read(&bytes).is_ok_and(|document| document.issues.is_empty())
}

fn check(case: &Path) {
    let session = case.join("session.jsonl");
    let before = fs::read(&session).unwrap();
    let leaf = fs::read_to_string(case.join("leaf.txt")).ok();
    for verb in ["load", "tree", "context", "llm"] {
        let expected = value(&read(&case.join(format!("expected-{verb}.json"))));
        let mut words = vec![verb, session.to_str().unwrap()];
        if let Some(leaf) = leaf.as_deref().filter(|_| verb == "context" || verb == "llm") {
            words.extend(["--leaf", leaf.trim()]);
        }
        let answer = ask(&words);
        if expected["ok"] == false {
            assert!(answer.is_err(), "{}: {verb}", case.display());
            continue;
        }
        let mut ours = value(&answer.unwrap().json.to_text());
        if verb == "load" && !size_is_ours(&session) {
            ours["sizeAfter"] = expected["sizeAfter"].clone();
        }
        assert_eq!(ours, expected, "{}: {verb}", case.display());
    }
    assert_eq!(fs::read(&session).unwrap(), before, "{}: looking changes nothing", case.display());
}

#[test]
fn session_command_output_matches_pi_for_every_fixture() {
    let mut cases = 0;
    for kind in ["recorded", "made", "odd"] {
        for case in fs::read_dir(fixtures().join(kind)).unwrap() {
            let case = case.unwrap().path();
            if case.is_dir() {
                check(&case);
                cases += 1;
            }
        }
    }
    assert!(cases > 110, "{cases}");
}

#[test]
fn compaction_cut_points_match_those_of_pi() {
    let recorded = fixtures().join("recorded");
    for line in read(&recorded.join("cut-points.txt")).lines() {
        let (case, rest) = line.split_once(" keep=").unwrap();
        let (keep, expected) = rest.split_once(' ').unwrap();
        let file = recorded.join(case).join("session.jsonl");
        let ours = ask(&["compact-plan", file.to_str().unwrap(), "--keep", keep]).unwrap();
        assert_eq!(value(&ours.json.to_text()), value(expected), "{line}");
    }
}

#[test]
fn failures_are_classified_as_not_found_or_refused() {
    let code = |words: &[&str]| match ask(words).err().and_then(|error| error.downcast::<Failed>().ok()) {
        Some(Failed::NotFound(_)) => 4,
        Some(Failed::Refused(_)) => 5,
        Some(Failed::Other(_) | Failed::Usage(_) | Failed::TimedOut(_) | Failed::InUse(_) | Failed::Unreadable(_))
        | None => 1,
    };
    let fixtures = fixtures().join("recorded");
    let file = |case: &str| fixtures.join(case).join("session.jsonl").to_str().unwrap().to_owned();
    assert_eq!(code(&["load", "/nowhere"]), 4);
    assert_eq!(code(&["load", &file("099-header-missing")]), 5);
    assert_eq!(code(&["context", &file("001-v3-linear"), "--leaf", "nobody"]), 4);
}

#[test]
fn session_commands_migrate_label_branch_and_fork_a_file() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("x.jsonl");
    let path = file.to_str().unwrap();
    fs::copy(fixtures().join("recorded/005-v1-compaction-index/session.jsonl"), &file).unwrap();
    assert_eq!(ask(&["migrate", path]).unwrap().json.get("migrated"), Some(&Json::Bool(true)));
    assert_eq!(ask(&["migrate", path]).unwrap().json.get("migrated"), Some(&Json::Bool(false)));
    ask(&["labels", path, "--set", "00000003", "here"]).unwrap();
    assert!(ask(&["labels", path]).unwrap().text.starts_with("here"));
    ask(&["branch", path, "00000004"]).unwrap();
    assert_eq!(ask(&["load", path]).unwrap().json.text("leafId"), Some("00000004"));
    let summed = ask(&["branch", path, "00000002", "--summary", "was there"]).unwrap();
    assert!(ask(&["context", path]).unwrap().text.contains("was there"));
    let forked = ask(&["fork", path, summed.json.text("leafId").unwrap(), "--whole"]).unwrap();
    assert_eq!(
        ask(&["path", forked.json.text("file").unwrap()]).unwrap().json.get("path").unwrap().as_array().unwrap().len(),
        3
    );
    let before = ask(&["fork", path, "00000003"]).unwrap();
    assert_eq!(before.json.text("text"), Some("question 2"));
    ask(&["branch", path, "null"]).unwrap();
    assert_eq!(ask(&["context", path]).unwrap().text, "The context is empty.");
    assert!(ask(&["tree", path]).unwrap().text.contains("[here]"));
}
