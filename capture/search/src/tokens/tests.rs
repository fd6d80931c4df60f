use proptest::prelude::*;

use super::*;

/// Tokens as `text@position`; wholes in parentheses.
fn shown(text: &str) -> String {
    let mut scanner = Scanner::default();
    let mut out = Vec::new();
    let mut folded = String::new();
    while let Some(piece) = scanner.next(text) {
        piece.fold(text, &mut folded);
        out.push(if piece.is_part {
            format!("{folded}@{}", piece.position)
        } else {
            format!("({folded}@{})", piece.position)
        });
    }
    out.join(" ")
}

#[test]
fn identifiers_yield_their_parts_and_the_whole() {
    for (text, tokens) in [
        ("parseQueryString", "(parsequerystring@0) parse@0 query@1 string@2"),
        ("HTTPServer2x", "(httpserver2x@0) http@0 server2x@1"),
        ("snake_case_name", "(snake_case_name@0) snake@0 case@1 name@2"),
        ("__init__", "init@0"),
        ("Word", "word@0"),
        ("wordS", "(words@0) word@0 s@1"),
        ("MAX_BYTES", "(max_bytes@0) max@0 bytes@1"),
        ("utf8 x", "utf8@0 x@1"),
        ("ID", "id@0"),
        ("kebab-case", "kebab@0 case@1"),
        ("std::fs::read", "std@0 fs@1 read@2"),
        ("end. Next", "end@0 next@1"),
        ("_", ""),
        ("+++ !", ""),
    ] {
        assert_eq!(shown(text), tokens, "{text}");
    }
}

#[test]
fn paths_yield_the_parts_of_their_components() {
    assert_eq!(shown("/src/my-crate/fooBar.rs:12"), "src@0 my@1 crate@2 (foobar@3) foo@3 bar@4 rs@5 12@6");
    assert_eq!(shown("../a/b/"), "a@0 b@1");
    assert_eq!(shown("v1.2.3"), "v1@0 2@1 3@2");
}

#[test]
fn tokens_fold_accents_case_and_width_and_split_unspaced_scripts() {
    for (text, tokens) in [
        ("Café ÉCOLE", "cafe@0 ecole@1"),
        ("cafe\u{301}", "cafe@0"),
        ("ｆｏｏ", "foo@0"),
        ("Straße ΣΟΦΟΣ", "straße@0 σοφοσ@1"),
        ("全文検索", "全@0 文@1 検@2 索@3"),
        ("検索する-test", "検@0 索@1 す@2 る@3 test@4"),
        ("한글 문서", "한@0 글@1 문@2 서@3"),
        ("ตรวจ สอบ10", "ต@0 ร@1 ว@2 จ@3 ส@4 อ@5 บ@6 10@7"),
        ("ກວດ", "ກ@0 ວ@1 ດ@2"),
        ("ที่", "ท@0 \u{e35}@1 \u{e48}@2"),
        ("deploy🚀ed ❤\u{fe0f} ✓", "deploy@0 🚀@1 ed@2 ❤@3"),
        ("поиск По_русски", "поиск@0 (по_русски@1) по@1 русски@2"),
    ] {
        assert_eq!(shown(text), tokens, "{text}");
    }
}

#[test]
fn long_words_are_truncated_and_not_split() {
    let blob = "aB".repeat(100);
    assert_eq!(shown(&blob), format!("{}@0", "ab".repeat(32)));
}

#[test]
fn a_query_word_is_split_into_its_parts() {
    assert_eq!(parts("parseQuery"), (vec!["parse".into(), "query".into()], Some("parsequery".into())));
    assert_eq!(parts("src/a.rs"), (vec!["src".into(), "a".into(), "rs".into()], None));
    assert_eq!(parts("word"), (vec!["word".into()], None));
    assert_eq!(parts("two words"), (vec!["two".into(), "words".into()], None));
}

proptest! {
    #[test]
    fn token_ranges_lie_in_the_text_and_in_order(text in "\\PC{0,80}|[a-zA-Z_./ -]{0,80}|[aAé検_/.\u{301}-]{0,60}") {
        let mut scanner = Scanner::default();
        let mut last = 0;
        let mut parts = 0;
        let mut folded = String::new();
        while let Some(piece) = scanner.next(&text) {
            piece.fold(&text, &mut folded);
            prop_assert!(text.get(piece.range.clone()).is_some());
            prop_assert!(piece.position >= last);
            prop_assert!(!folded.is_empty());
            last = piece.position;
            if piece.is_part {
                prop_assert_eq!(piece.position, parts);
                parts += 1;
            }
        }
    }

    #[test]
    fn a_text_has_the_same_parts_in_upper_and_lower_case(text in "[a-z]{1,8}(_[a-z]{1,8}){0,4}") {
        let (lower, whole) = parts(&text);
        prop_assert_eq!(&lower.iter().map(|p| p.to_uppercase()).collect::<Vec<_>>(), &parts(&text.to_uppercase()).0.iter().map(|p| p.to_uppercase()).collect::<Vec<_>>());
        prop_assert_eq!(whole.is_some(), lower.len() > 1);
    }
}
