//! Invalid rule files, and rule files of the user.

use std::fs;

use events::Provider;

use super::*;
use crate::screen::RuleError;

const HEAD: &str = "provider = \"unknown\"\n";

fn check(text: &str, line: usize, column: usize, says: &str) {
    let mut rules = ScreenRules::default();
    match rules.add("mine.toml", text) {
        Err(RuleError::Wrong { file, line: l, column: c, what }) => {
            assert_eq!((file.as_str(), l, c), ("mine.toml", line, column), "{what}");
            assert!(what.contains(says), "{what}");
        }
        other => panic!("{other:?}"),
    }
}

fn rule(extra: &str) -> String {
    format!("{HEAD}[[rules]]\nname = \"a\"\npriority = 1\n{extra}")
}

#[test]
fn rule_file_errors_name_line_and_column() {
    check("provider = ", 1, 12, "");
    check("provider = \"nobody\"", 1, 12, "nobody");
    check(&format!("{HEAD}colour = 1"), 2, 1, "colour");
    check(&format!("{HEAD}versions = \"two\""), 2, 12, "");
    check(&rule("state = \"asleep\"\nall = [{ in = \"screen\", has = 'a' }]"), 5, 9, "asleep");
    check(&rule("state = \"waiting\"\nreason = \"tired\"\nall = [{ in = \"screen\", has = 'a' }]"), 6, 10, "tired");
    check(&rule("state = \"waiting\"\nall = [{ in = \"screen\", has = '(' }]"), 6, 31, "unclosed");
    check(&rule("state = \"waiting\"\nall = [{ in = \"attic\", has = 'a' }]"), 6, 15, "attic");
    check(&rule("state = \"waiting\""), 3, 8, "must match");
    check(&rule("state = \"waiting\"\nall = [{ in = \"screen\", has = 'a', is = 'b' }]"), 6, 36, "is");
    check(
        &rule("state = \"waiting\"\nall = [{ in = \"screen\", has = 'a' }]\ndialog = { like = \"it\" }"),
        7,
        19,
        "it",
    );
    check(
        &rule(
            "state = \"waiting\"\nall = [{ in = \"screen\", has = 'a' }]\n[rules.dialog]\noptions = { in = \"screen\", has = 'b' }",
        ),
        8,
        34,
        "label",
    );
    let all = "state = \"waiting\"\nall = [{ in = \"screen\", has = 'a' }]\n[rules.dialog]\n";
    check(&rule(&format!("{all}deny_key = \"4\"")), 8, 12, "must be `esc`");
    check(&rule(&format!("{all}whole = \"attic\"")), 8, 9, "attic");
    check(&rule(&format!("{all}answers = {{ deny = ['('] }}")), 8, 21, "unclosed");
    check(&rule(&format!("{all}answers = {{ perhaps = ['a'] }}")), 8, 13, "perhaps");
    check(&format!("{HEAD}tested = [\"two\"]"), 2, 11, "");
    let answerable = rule(&format!("{all}answerable = true")).replace(HEAD, &format!("{HEAD}tested = [\"=1.0.0\"]\n"));
    check(&answerable, 8, 1, "needs `whole`");
    check(&format!("{HEAD}[regions]\nfoot = {{ last = 1, bottom = 2 }}"), 3, 8, "expected a region");
    check(&format!("{HEAD}[regions]\ntitle = {{ last = 1 }}"), 3, 9, "built-in region");
    let twice = "[[rules]]\nname = \"a\"\npriority = 1\nstate = \"waiting\"\nall = [{ in = \"screen\", has = 'a' }]\n";
    check(&format!("{HEAD}{twice}{twice}"), 8, 8, "twice");
}

#[test]
fn all_built_in_screen_rules_compile() {
    let all = ScreenRules::load(None).unwrap();
    assert_eq!(format!("{all:?}").len(), format!("{:?}", ScreenRules::embedded()).len());
    // They are compiled on first use; here all at once.
    let mut checked = ScreenRules::default();
    let files = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/rules")).unwrap().map(|file| file.unwrap().path());
    for file in files.filter(|file| file.extension().is_some_and(|end| end == "toml")) {
        let name = file.file_name().unwrap().to_str().unwrap();
        checked.add(name, &fs::read_to_string(&file).unwrap()).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    for provider in Provider::ALL {
        assert!(!all.select(*provider, None).rules.is_empty(), "{provider}");
    }
}

#[test]
fn user_rules_replace_and_extend_the_built_in_rules() {
    let dir = tempfile::tempdir().unwrap();
    let none = dir.path().join("none");
    ScreenRules::load(Some(&none)).unwrap();
    let mine = "provider = \"claude\"\nversions = \">=2\"\n\
        [[rules]]\nname = \"ready\"\npriority = 500\nstate = \"idle\"\nall = [{ in = \"composer\", has = '.' }]\n\
        [[rules]]\nname = \"mine\"\npriority = 5\nstate = \"waiting\"\nall = [{ in = \"title\", has = 'x' }]\n";
    fs::write(dir.path().join("claude.toml"), mine).unwrap();
    fs::write(dir.path().join("notes.txt"), "no rules").unwrap();
    let rules = ScreenRules::load(Some(dir.path())).unwrap();
    let set = rules.select(Provider::Claude, semver::Version::parse("2.1.0").ok().as_ref());
    assert_eq!(set.files.len(), 2);
    let ready: Vec<_> = set.rules.iter().filter(|r| r.name == "ready").collect();
    assert_eq!((ready.len(), ready[0].state), (1, events::State::Idle));
    assert!(set.rules.iter().any(|r| r.name == "mine"));
    fs::write(dir.path().join("broken.toml"), "provider = 1").unwrap();
    let error = ScreenRules::load(Some(dir.path())).unwrap_err().to_string();
    assert!(error.contains("broken.toml:1:12: "), "{error}");
}
