use proptest::prelude::*;

use super::*;
use crate::query::{Clock, ParsedQuery};

fn query(text: &str) -> ParsedQuery {
    ParsedQuery::parse(text, &Clock { now: events::Timestamp::default(), zone: jiff::tz::TimeZone::UTC }).unwrap()
}

/// The snippet with matches in brackets.
fn shown(text: &str, wanted: &str) -> String {
    let query = query(wanted);
    let Snippet { text, highlights } = snippet(text, &query.shown_conditions());
    let mut out = String::new();
    let mut at = 0;
    for [from, to] in highlights {
        out.push_str(&format!("{}[{}]", &text[at..from], &text[from..to]));
        at = to;
    }
    out + &text[at..]
}

#[test]
fn matches_are_highlighted_in_the_snippet() {
    for (text, wanted, expected) in [
        ("fix the parser now", "parser", "fix the [parser] now"),
        ("call parseQueryString(x)", "query", "call parse[Query]String(x)"),
        ("call parseQueryString(x)", "parseQueryString", "call [parseQueryString](x)"),
        ("call parse_query_string(x)", "parseQueryString", "call [parse_query_string](x)"),
        ("parse parse query", "\"parse query\"", "parse [parse query]"),
        ("connection\n\n  refused twice", "\"connection refused\" twice", "[connection refused] [twice]"),
        ("tokenizer and tokenizers", "tokenzier~", "[tokenizer] and tokenizers"),
        ("rebuild rebuilt", "rebuil*", "[rebuild] [rebuilt]"),
        ("Café au lait", "cafe", "[Café] au lait"),
        ("全文検索の索引", "検索", "全文[検索]の索引"),
        ("a b c", "-b c", "a b [c]"),
        ("nothing here", "else", "nothing here"),
        ("", "else", ""),
        ("src/lib.rs:3 error", "src/lib.rs", "[src/lib.rs]:3 error"),
    ] {
        assert_eq!(shown(text, wanted), expected, "{wanted} in {text}");
    }
}

#[test]
fn a_long_text_is_cut_around_the_match() {
    let text = format!("{} needle {}", "before ".repeat(100), "after ".repeat(100));
    let line = shown(&text, "needle");
    assert!(line.starts_with("…before") && line.ends_with("after…"), "{line}");
    assert!(line.contains("[needle]") && line.len() < 280, "{line}");
}

#[test]
fn words_within_an_edit_distance_are_recognized() {
    for (a, b, most, expected) in [
        ("abc", "abc", 1, true),
        ("abc", "acb", 1, true),
        ("abc", "abd", 1, true),
        ("abc", "ab", 1, true),
        ("abc", "abcd", 1, true),
        ("abcd", "badc", 1, false),
        ("abcd", "badc", 2, true),
        ("", "a", 1, true),
        ("abc", "xyz", 2, false),
    ] {
        assert_eq!(is_within(a, b, most), expected, "{a} {b} {most}");
    }
}

proptest! {
    #[test]
    fn highlights_are_in_order_and_inside_the_snippet(text in "\\PC{0,400}|([a-zé検 \n]{0,9}[fF]oo){0,80}", wanted in "foo|fo\\*|\"foo a\"|fooo~1|検") {
        let query = query(&wanted.replace('\\', ""));
        let made = snippet(&text, &query.shown_conditions());
        let mut last = 0;
        for [from, to] in made.highlights {
            prop_assert!(last <= from && from < to, "{from}..{to} behind {last}");
            prop_assert!(made.text.get(from..to).is_some());
            last = to;
        }
        prop_assert!(made.text.len() <= SNIPPET_BYTES + 2 * '…'.len_utf8() + 4, "{}", made.text.len());
    }
}
