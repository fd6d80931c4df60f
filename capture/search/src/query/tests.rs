use events::Provider;
use proptest::prelude::*;

use super::*;

fn clock() -> Clock {
    Clock { now: Timestamp::parse("2026-11-20T11:30:00.000Z").unwrap(), zone: TimeZone::fixed(jiff::tz::offset(2)) }
}

/// The tree on one line.
fn shown(node: &Node) -> String {
    let join = |nodes: &[Node], with: &str| nodes.iter().map(shown).collect::<Vec<_>>().join(with);
    match node {
        Node::All => "*".into(),
        Node::And(nodes) => format!("({})", join(nodes, " & ")),
        Node::Or(nodes) => format!("({})", join(nodes, " | ")),
        Node::Not(node) => format!("-{}", shown(node)),
        Node::Leaf(field, condition) => {
            let value = match condition {
                Condition::Words { parts, whole } => {
                    format!("{}{}", parts.join("+"), whole.as_ref().map(|w| format!("={w}")).unwrap_or_default())
                }
                Condition::Prefix(parts) => format!("{}*", parts.join("+")),
                Condition::Fuzzy { word, distance } => format!("{word}~{distance}"),
                Condition::Exact(value) => format!("`{value}`"),
                Condition::Begins(value) => format!("`{value}…"),
                Condition::During(range) => {
                    let end = |ms: i64| match ms {
                        i64::MIN | i64::MAX => String::new(),
                        ms => Timestamp::from_millisecond(ms).to_string(),
                    };
                    format!("{}..{}", end(range.start), end(range.end))
                }
            };
            if *field == Field::Text { value } else { format!("{field:?}:{value}") }
        }
    }
}

fn parsed(text: &str) -> String {
    match ParsedQuery::parse(text, &clock()) {
        Ok(query) => shown(&query.0),
        Err(error) => format!("! {error}"),
    }
}

#[test]
fn what_people_type() {
    for (text, tree) in [
        ("", "*"),
        ("  ", "*"),
        ("*", "*"),
        ("foo", "foo"),
        ("foo bar", "(foo & bar)"),
        ("foo AND bar", "(foo & bar)"),
        ("foo OR bar baz", "(foo | (bar & baz))"),
        ("(foo OR bar) baz", "((foo | bar) & baz)"),
        ("foo -bar", "(foo & -bar)"),
        ("NOT kind:error", "-Kind:`error`"),
        ("kind:output -foo", "(Kind:`output` & -foo)"),
        ("foo -(a OR b)", "(foo & -(a | b))"),
        ("or and not", "(or & and & not)"),
        ("ORDER", "order"),
        ("\"connection refused\"", "connection+refused"),
        ("\"a \\\"b\\\"\"", "a+b"),
        ("parseQuery", "parse+query=parsequery"),
        ("\"parseQuery\"", "parse+query"),
        ("src/main.rs", "src+main+rs"),
        ("std::fs::read", "std+fs+read"),
        ("https://example.org/a", "https+example+org+a"),
        ("error: foo", "(error & foo)"),
        ("f(x)", "f+x"),
        ("(f(x) OR g())", "(f+x | g)"),
        ("pars*", "pars*"),
        ("parseQ*", "parse+q*"),
        ("tokenzier~", "tokenzier~1"),
        ("tokenzier~2", "tokenzier~2"),
        ("foo\\*", "foo"),
        ("a~b", "a+b"),
        ("~/src", "src"),
        ("-- foo", "foo"),
        ("foo +++", "foo"),
        ("agent:claude", "Agent:`claude`"),
        ("agent:(claude OR codex) x", "((Agent:`claude` | Agent:`codex`) & x)"),
        ("kind:error", "Kind:`error`"),
        ("outcome:Denied", "Outcome:`denied`"),
        ("tool:Bash", "Tool:bash"),
        ("model:opus", "Model:opus"),
        ("project:my-app", "Project:my+app"),
        ("cwd:/work/main/", "Cwd:`/work/main`"),
        ("cwd:main", "Cwd:main"),
        ("file:src/lib.rs", "File:src+lib+rs"),
        ("session:01JABC", "Session:`01jabc…"),
        ("session:01JABC*", "Session:`01jabc…"),
        ("text:foo", "foo"),
    ] {
        assert_eq!(parsed(text), tree, "{text}");
    }
}

#[test]
fn times() {
    for (text, range) in [
        ("2026-11-01", "2026-10-31T22:00:00.000Z..2026-11-01T22:00:00.000Z"),
        ("2026-11", "2026-10-31T22:00:00.000Z..2026-11-30T22:00:00.000Z"),
        ("2026", "2025-12-31T22:00:00.000Z..2026-12-31T22:00:00.000Z"),
        (">2026-11-01", "2026-11-01T22:00:00.000Z.."),
        (">=2026-11-01", "2026-10-31T22:00:00.000Z.."),
        ("<2026-11-01", "..2026-10-31T22:00:00.000Z"),
        ("<=2026-11-01", "..2026-11-01T22:00:00.000Z"),
        ("24h", "2026-11-19T11:30:00.000Z.."),
        (">24h", "2026-11-19T11:30:00.001Z.."),
        ("<7d", "..2026-11-13T11:30:00.000Z"),
        ("today", "2026-11-19T22:00:00.000Z..2026-11-20T22:00:00.000Z"),
        ("yesterday", "2026-11-18T22:00:00.000Z..2026-11-19T22:00:00.000Z"),
        (">=13:00", "2026-11-20T11:00:00.000Z.."),
        (">=2026-11-01T09:30", "2026-11-01T07:30:00.000Z.."),
        (">=2026-11-01T09:30:00Z", "2026-11-01T09:30:00.000Z.."),
        ("2026-11-01..2026-11-02", "2026-10-31T22:00:00.000Z..2026-11-02T22:00:00.000Z"),
        ("..2026-11-02", "..2026-11-02T22:00:00.000Z"),
    ] {
        assert_eq!(parsed(&format!("time:{text}")), format!("Time:{range}"), "{text}");
    }
}

#[test]
fn errors_name_the_column() {
    let agents: Vec<_> =
        Provider::ALL.iter().filter(|agent| **agent != Provider::Unknown).map(|agent| agent.as_str()).collect();
    for (text, error) in [
        ("foo \"bar", "missing `\"` for the one at column 5"),
        ("foo (bar", "missing `)` for the `(` at column 5; put it in double quotes to search for it as text"),
        ("foo)", "unexpected `)` at column 4; put it in double quotes to search for it as text"),
        (
            "é ff:x",
            "unknown field `ff` at column 3, expected one of session, agent, kind, tool, time, cwd, project, \
                    model, outcome, file, text; put it in double quotes to search for it as text",
        ),
        ("OR foo", "expected something to search for before `OR` at column 1"),
        ("foo OR", "expected something to search for after `OR` at column 7"),
        ("AND foo", "expected something to search for before `AND` at column 1"),
        ("foo AND", "expected something to search for after `AND` at column 8"),
        (
            "-DNDEBUG",
            "the query only says what to leave out at column 1; put it in double quotes to search for it as text",
        ),
        (
            "NOT foo -(a OR b)",
            "the query only says what to leave out at column 1; put it in double quotes to search for it as text",
        ),
        ("foo NOT", "expected something to search for after `NOT` at column 8"),
        ("x agent:clade", &format!("unknown agent `clade` at column 9, expected one of {}", agents.join(", "))),
        (
            "kind:x",
            "unknown kind `x` at column 6, expected one of prompt, answer, thinking, call, output, error, \
                    question, summary, title, note, approval, finding",
        ),
        (
            "time:soon",
            "unknown time `soon` at column 6, expected a date, a time or an age such as 2026-11-01, \
                       >=2026-11-01T09:30, <7d or 2026-11-01..2026-11-05",
        ),
        (
            "a f*o",
            "`*` is supported only at the end of a word at column 4; put it in double quotes to search for it \
                   as text",
        ),
        ("a*", "expected at least 2 letters before `*` at column 1"),
        ("ab~", "expected at least 3 letters before `~` at column 1"),
        (
            "abc~3",
            "expected `~`, `~1` or `~2` at the end of a word at column 4; put it in double quotes to search for \
                   it as text",
        ),
        ("+++", "expected letters or digits to search for at column 1"),
        ("a -)", "expected something to search for after `-` at column 4"),
        ("a NOT )", "expected something to search for after `NOT` at column 6"),
        (
            "tool:(agent:x)",
            "a field within another one: `agent` at column 7; put it in double quotes to search for it \
                            as text",
        ),
    ] {
        assert_eq!(parsed(text), format!("! {error}"), "{text}");
    }
    assert!(parsed(&"(".repeat(100)).contains("nested too deeply at column 34"));
    assert!(parsed(&"a ".repeat(200)).contains("more than 128 conditions at column 257"));
    assert!(parsed(&"a".repeat(5000)).contains("longer than 4096 bytes"));
}

proptest! {
    #[test]
    fn anything_parses_or_names_a_column_in_it(
        text in "\\PC{0,60}|([a-z]{1,4}|AND|OR|NOT|-|\\(|\\)|\"|\\*|~[0-9]?|:|time:|agent:|kind:|\\\\|[<>=.]+| ){0,20}"
    ) {
        if let Err(error) = ParsedQuery::parse(&text, &clock()) {
            prop_assert!((1..=text.chars().count() + 1).contains(&error.column), "{error}");
        }
    }

    #[test]
    fn what_is_quoted_never_fails_for_its_letters(text in "[a-z][^\"\\\\]{0,60}") {
        let quoted = format!("\"{text}\"");
        prop_assert!(ParsedQuery::parse(&quoted, &clock()).is_ok());
    }
}
