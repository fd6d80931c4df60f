//! Our words equal the words that bash passes to the program.

use std::process::Command;

use approver::{Explanation, Policy, Preset, Verdict};
use proptest::{prelude::*, test_runner::TestRunner};

use super::{facts, lists::benign, request};

fn explain(text: &str) -> Explanation {
    Policy::preset(Preset::ReadOnly).explain(&request(text), &facts())
}

/// The words of every command of a line according to bash: each program is a function that prints its words.
fn seen_by_bash(text: &str, programs: &[&str]) -> Vec<Vec<String>> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("src")).unwrap();
    // In a pipeline several functions print at once, so each prints to a separate file.
    let mut script = String::from("say() { builtin printf '%s\\0' \"$@\" > \"$OUT/$BASHPID.$RANDOM$RANDOM\"; }\n");
    for program in programs {
        script.push_str(&format!("{program}() {{ say '{program}' \"$@\"; }}\n"));
    }
    script.push_str(text);
    let out = tempfile::tempdir().unwrap();
    Command::new("bash").arg("-c").arg(&script).env("OUT", out.path()).current_dir(dir.path()).output().unwrap();
    let mut all = Vec::new();
    for entry in std::fs::read_dir(out.path()).unwrap() {
        let words = String::from_utf8(std::fs::read(entry.unwrap().path()).unwrap()).unwrap();
        all.push(words.strip_suffix('\0').unwrap().split('\0').map(str::to_owned).collect());
    }
    all
}

fn has_variable(text: &str) -> bool {
    text.split('$').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "_({?".contains(c)))
}

/// Compares the words for a line that is allowed and whose commands all run; returns whether it compared them.
fn check(text: &str) -> bool {
    let account = explain(text);
    if account.decision.verdict != Verdict::Allow || !account.wrapper.is_empty() {
        return false;
    }
    // Not all commands run after `||`, or if an input file is missing; a variable counts as one word here.
    if ["||", "<", "=1 ", "if "].iter().any(|sign| text.contains(sign)) || has_variable(text) {
        return false;
    }
    let mut ours: Vec<Vec<String>> = account.parts.iter().map(|part| part.words.clone()).collect();
    // `cd` must change the directory, and `command` runs another program.
    if ours.is_empty() || ours.iter().any(|words| matches!(words[0].as_str(), "cd" | "command")) {
        return false;
    }
    let names: std::collections::BTreeSet<&str> = ours.iter().map(|words| words[0].as_str()).collect();
    let mut theirs = seen_by_bash(text, &names.into_iter().collect::<Vec<_>>());
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs, "{text}");
    true
}

#[test]
fn parsed_words_match_those_of_bash() {
    let all = benign();
    let compared = all.iter().filter(|listed| check(&listed.cmd)).count();
    assert!(compared >= 135, "{compared} of {} compared", all.len());
    for text in [
        r#"echo "a\b" 'c\d' e\f "g\"h" "i\\j" "k$" a"b"'c'\d"#,
        r"echo \! \$ \* \; \| a\ b",
        r#"grep "\bfoo\b" README.md"#,
        "echo a=b --c=d HEAD@ x%y a,b:c",
        r#"echo "" '' "a  b"   c"#,
        "echo a;echo b;",
        "ls 2>/dev/null|wc -l>/dev/null",
        "find . ! -name x -o \\( -name y \\)",
    ] {
        assert_eq!(explain(text).decision.verdict, Verdict::Allow, "{text}: {}", explain(text).decision.reason);
        assert!(check(text), "{text}");
    }
}

#[test]
fn the_safe_form_of_git_keeps_the_arguments() {
    for listed in benign().into_iter().filter(|listed| listed.cmd.starts_with("git")) {
        let decision = explain(&listed.cmd).decision;
        let Some(rewrite) = decision.rewrite else { continue };
        let seen = seen_by_bash(&rewrite, &["env", "wc", "head"]);
        let ours = explain(&listed.cmd).parts[0].words.clone();
        // Commits are peeled, and a `--` is inserted between them and paths.
        let has =
            |words: &[String], word: &String| words.contains(word) || words.contains(&format!("{word}^{{commit}}"));
        let plain = |word: &&String| !word.contains(':') && !word.contains("..");
        let same =
            |words: &&Vec<String>| words[0] == "env" && ours[1..].iter().filter(plain).all(|word| has(words, word));
        let safe = seen.iter().find(same).unwrap_or_else(|| panic!("{rewrite}"));
        assert!(safe.contains(&"--no-pager".to_owned()), "{rewrite}");
    }
}

#[test]
fn parsed_words_match_those_of_bash_for_any_quoting() {
    const CASES: u32 = 150;
    const PIECES: [&str; 27] = [
        "a", "b-c", " ", "'", "\"", "\\", "\\\\", "'x y'", "\"x y\"", "\\ ", "\\\"", "$", "!", "=", ":", "~", "^", "%",
        "@", ",", ";echo ", "|echo ", "&&echo ", ">", "2>&1", "1", "/",
    ];
    let lines = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..10);
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
    let compared = std::cell::Cell::new(0);
    let result = TestRunner::new(config).run(&lines, |pieces| {
        compared.set(compared.get() + u32::from(check(&format!("echo {}", pieces.concat()))));
        Ok(())
    });
    assert!(result.is_ok(), "{result:?}");
    assert!(compared.get() >= 30, "{} of {CASES} compared", compared.get());
}
