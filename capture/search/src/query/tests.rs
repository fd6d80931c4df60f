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
fn common_queries_parse_into_the_expected_tree() {
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
fn time_filters_are_parsed_into_ranges() {
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
        ("foo \"bar", "column 5: the `\"` is not closed"),
        ("foo (bar", "column 5: the `(` is not closed; put it in double quotes to search for it as text"),
        ("foo)", "column 4: unexpected `)`; put it in double quotes to search for it as text"),
        (
            "é ff:x",
            "column 3: unknown field `ff`, expected one of session, agent, kind, tool, time, cwd, project, \
                    model, outcome, file, text; put it in double quotes to search for it as text",
        ),
        ("OR foo", "column 1: expected a word before `OR`"),
        ("foo OR", "column 7: expected a word after `OR`"),
        ("AND foo", "column 1: expected a word before `AND`"),
        ("foo AND", "column 8: expected a word after `AND`"),
        ("-DNDEBUG", "the query only excludes words; add a word to search for, or put the query in double quotes"),
        (
            "NOT foo -(a OR b)",
            "the query only excludes words; add a word to search for, or put the query in double quotes",
        ),
        ("foo NOT", "column 8: expected a word after `NOT`"),
        ("x agent:clade", &format!("column 9: unknown agent `clade`, expected one of {}", agents.join(", "))),
        (
            "kind:x",
            "column 6: unknown kind `x`, expected one of prompt, answer, thinking, call, output, error, \
                    question, summary, title, note, approval, finding",
        ),
        (
            "time:soon",
            "column 6: unknown time `soon`, expected a date, a time or an age such as 2026-11-01, \
                       >=2026-11-01T09:30, <7d or 2026-11-01..2026-11-05",
        ),
        (
            "a f*o",
            "column 4: `*` is supported only at the end of a word; put it in double quotes to search for it \
                   as text",
        ),
        ("a*", "column 1: expected at least 2 letters before `*`"),
        ("ab~", "column 1: expected at least 3 letters before `~`"),
        (
            "abc~3",
            "column 4: expected `~`, `~1` or `~2` at the end of a word; put it in double quotes to search for \
                   it as text",
        ),
        ("+++", "column 1: expected letters or digits to search for"),
        ("a -)", "column 4: expected a word after `-`"),
        ("a NOT )", "column 6: expected a word after `NOT`"),
        (
            "tool:(agent:x)",
            "column 7: the field `agent` is inside another field; put it in double quotes to search for it \
                            as text",
        ),
    ] {
        assert_eq!(parsed(text), format!("! {error}"), "{text}");
    }
    assert!(parsed(&"(".repeat(100)).contains("column 34: the query is nested too deeply"));
    assert!(parsed(&"a ".repeat(200)).contains("column 257: more than 128 conditions"));
    assert!(parsed(&"a".repeat(5000)).contains("longer than 4096 bytes"));
}

proptest! {
    #[test]
    fn any_query_parses_or_reports_a_column_within_it(
        text in "\\PC{0,60}|([a-z]{1,4}|AND|OR|NOT|-|\\(|\\)|\"|\\*|~[0-9]?|:|time:|agent:|kind:|\\\\|[<>=.]+| ){0,20}"
    ) {
        if let Err(error) = ParsedQuery::parse(&text, &clock()) {
            prop_assert!((0..=text.chars().count() + 1).contains(&error.column), "{error}");
        }
    }

    #[test]
    fn any_quoted_text_parses(text in "[a-z][^\"\\\\]{0,60}") {
        let quoted = format!("\"{text}\"");
        prop_assert!(ParsedQuery::parse(&quoted, &clock()).is_ok());
    }
}
