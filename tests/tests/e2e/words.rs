//! The words of the repository: a type's name stands for one thing, and sentences are plain. Counts over the sources
//! and pages, fixtures aside; `./test words` runs this alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use regex::Regex;

/// The repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Maximum number of definitions of a type's name outside tests.
const DEFINITIONS: usize = 2;
/// Names that every crate has, or that are given by a trait which is not ours: `serde`'s visitors, `FromStr`,
/// `Iterator`, `Deref`.
const GIVEN: [&str; 8] = ["Args", "Arguments", "Err", "Error", "Item", "Output", "Target", "Value"];
/// Phrases that a reader has to read twice, or that are not the field's words.
const BANNED: [&str; 27] = [
    r"\b(is|are) no\b",
    r"\basks? leave\b",
    r"\basked leave\b",
    r"\bleave for\b",
    r"\bfor ever\b",
    r"\banew\b",
    r"\bso (many|often)\b",
    r"\bfor so long\b",
    r"\bat (most|least) so\b",
    r"\bso long (a|before|after|to|is|and)\b",
    r"\b(is|are|was|were|be) told of\b",
    r"\bnobody (serves|is there)\b",
    r"\bwhat [a-z ]{1,30} is asked of\b",
    r"\bputs? right\b",
    r"\bgo(es)? round in\b",
    r"\bwhich there are\b",
    r"\bas it stands\b",
    r"\b(is|was|are|were) in none of\b",
    r"\bby (its|your|their) word\b",
    r"\bfor leave\b",
    r"\bputs? aside\b",
    r"\bhand(s|ed|ing)? over\b",
    r"\bnobody (knows|waits)\b",
    r"\basked about\b",
    r"\bsaid no\b",
    r"\btold of\b",
    r"\bwhat (came|became) of\b",
];
/// What is said in the banned words and is plain: taken out before the phrases are looked for.
const PLAIN: [&str; 8] = [
    "there is no ",
    "there are no ",
    "is no longer ",
    "are no longer ",
    "so many that ",
    "so often that ",
    "so long that ",
    "so long as ",
];
/// Files in which a phrase stands for a reason.
const ALLOWED: [(&str, &str); 1] = [
    // It names the phrases.
    ("tests/tests/e2e/words.rs", ""),
];

/// Sources and pages, by their path from the top.
fn texts(extensions: &[&str]) -> Vec<(PathBuf, String)> {
    fn walk(dir: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                if !name.starts_with('.') && !name.starts_with("target") && name != "fixtures" && name != "node_modules"
                {
                    walk(&path, extensions, found);
                }
            } else if path.extension().is_some_and(|end| extensions.iter().any(|wanted| end == *wanted)) {
                found.push(path);
            }
        }
    }
    let mut found = vec![PathBuf::from(ROOT).join("fixtures/recordings/FORMAT.md")];
    found.retain(|path| path.extension().is_some_and(|end| extensions.iter().any(|wanted| end == *wanted)));
    walk(Path::new(ROOT), extensions, &mut found);
    found.sort();
    let read = |path: PathBuf| (path.strip_prefix(ROOT).unwrap().to_owned(), fs::read_to_string(&path).unwrap());
    found.into_iter().map(read).collect()
}

/// Whether a source is a test, a benchmark or support of them.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "benches")))
        || path.file_name().is_some_and(|name| name == "tests.rs")
}

/// The part of a source before its tests.
fn without_tests(source: &str) -> &str {
    source.find("#[cfg(test)]\nmod ").map_or(source, |tests| &source[..tests])
}

/// The names that a source gives to types, also inside functions and traits.
fn type_names(source: &str) -> Vec<String> {
    let definition = Regex::new(r"(?m)^\s*(?:pub(?:\([a-z: ]+\))? )?(?:struct|enum|trait|union|type) (\w+)").unwrap();
    definition.captures_iter(source).map(|found| found[1].to_owned()).collect()
}

/// The banned phrases of a text: the line of each, and a few words from it on. A phrase may go over the end of a line,
/// in comments and strings too.
fn phrases(text: &str, banned: &Regex) -> Vec<(usize, String)> {
    let (mut joined, mut lines) = (String::new(), Vec::new());
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim().trim_start_matches(['/', '!', '#', '>', '*']).trim_end_matches('\\');
        for word in content.split_whitespace() {
            lines.push((joined.len(), line));
            joined.push_str(&word.to_lowercase());
            joined.push(' ');
        }
    }
    for plain in PLAIN {
        // Of the same length: lines are found by offsets.
        joined = joined.replace(plain, &"-".repeat(plain.len()));
    }
    let line_of = |at: usize| lines[lines.partition_point(|(start, _)| *start <= at) - 1].1;
    let words = |at: usize| joined[at..].split(' ').take(8).collect::<Vec<_>>().join(" ");
    banned.find_iter(&joined).map(|found| (line_of(found.start()), words(found.start()))).collect()
}

fn banned() -> Regex {
    Regex::new(&BANNED.join("|")).unwrap()
}

#[test]
fn a_type_name_is_defined_twice_at_most() {
    let mut places = BTreeMap::<String, Vec<String>>::new();
    for (path, source) in texts(&["rs"]).iter().filter(|(path, _)| !is_test(path)) {
        for name in type_names(without_tests(source)) {
            places.entry(name).or_default().push(path.display().to_string());
        }
    }
    assert!(places.len() > 900, "{} names", places.len());
    let many = places.iter().filter(|(name, at)| at.len() > DEFINITIONS && !GIVEN.contains(&name.as_str()));
    let many: Vec<String> = many.map(|(name, at)| format!("{name}: {}", at.join(", "))).collect();
    assert!(many.is_empty(), "{} names:\n{}", many.len(), many.join("\n"));
}

#[test]
fn sentences_are_plain() {
    let banned = banned();
    let (mut found, mut unused) = (Vec::new(), ALLOWED.map(|(path, _)| path).into_iter().collect::<BTreeSet<_>>());
    for (path, text) in texts(&["rs", "md"]) {
        for (line, words) in phrases(&text, &banned) {
            let allowed = ALLOWED.iter().find(|(file, start)| path == Path::new(file) && words.starts_with(start));
            match allowed {
                Some((file, _)) => drop(unused.remove(file)),
                None => found.push(format!("{}:{line}: {words}", path.display())),
            }
        }
    }
    assert!(found.is_empty(), "{} phrases:\n{}", found.len(), found.join("\n"));
    assert!(unused.is_empty(), "allowed, and not there: {unused:?}");
}

#[test]
fn the_matcher_finds_what_it_looks_for() {
    let banned = banned();
    let found = |text: &str| phrases(text, &banned).into_iter().map(|(line, _)| line).collect::<Vec<_>>();
    assert_eq!(found("/// The text, which is\n/// no JSON.\nfn x() {}"), [1], "over the end of a line");
    assert_eq!(found("x\n    \"started \\\n     anew\""), [3], "in a string");
    assert_eq!(found("So many. At most so long. It is told of it."), [1, 1, 1]);
    assert_eq!(found("There is no text, and it is no longer so long that it matters."), [0; 0]);
    assert_eq!(found("`id` is not an id: expected 26 characters"), [0; 0]);
    let source = "pub(crate) struct A;\nfn f() {\n    enum B {}\n}\ntrait T {\n    type C;\n}\n#[cfg(test)]\nmod tests {\n    struct D;\n}";
    assert_eq!(type_names(source), ["A", "B", "T", "C", "D"]);
    assert_eq!(type_names(without_tests(source)), ["A", "B", "T", "C"]);
    assert!(is_test(Path::new("a/src/x/tests.rs")) && is_test(Path::new("a/tests/x.rs")));
    assert!(!is_test(Path::new("a/src/contests.rs")));
}
