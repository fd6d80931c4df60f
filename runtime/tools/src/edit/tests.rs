use proptest::prelude::*;

use super::*;

fn one(old: &str, new: &str) -> Vec<Replacement> {
    vec![Replacement { old: old.into(), new: new.into(), all: None }]
}

#[track_caller]
fn check(file: &str, old: &str, new: &str, after: &str) {
    let edited = apply(file.as_bytes(), &one(old, new), Tolerance::All);
    assert_eq!(edited.map(|edited| String::from_utf8(edited.content).unwrap()), Ok(after.to_owned()));
}

#[track_caller]
fn refused(file: &str, old: &str, new: &str, part: &str) {
    let refusal = apply(file.as_bytes(), &one(old, new), Tolerance::All).unwrap_err();
    assert!(refusal.contains(part), "{refusal}");
}

#[test]
fn an_exact_match_must_be_unique() {
    check("a\nb\nc\n", "b", "B", "a\nB\nc\n");
    check("a\nb", "b", "B", "a\nB");
    check("a b c", " b", "", "a c");
    refused("b\nb\n", "b", "B", "matches 2 places (lines 1, 2)");
    // Overlapping matches count as two.
    refused("aaa", "aa", "b", "matches 2 places");
}

#[test]
fn an_edit_keeps_line_ends_and_trailing_blanks_of_the_file() {
    check("a\r\nb\r\nc\r\n", "a\nb\n", "a\nB\nx\n", "a\r\nB\r\nx\r\nc\r\n");
    check("a\r\nb\r\n", "b", "b\nx", "a\r\nb\r\nx\r\n");
    // The model wrote CRLF; the file has LF.
    check("a\nb\nc\n", "a\r\nb\r\n", "a\r\nx\r\nb\r\n", "a\nx\nb\nc\n");
    check("a\nb\n", "b", "b\r\nx", "a\nb\nx\n");
    // Unchanged lines keep their own blanks and line ends.
    check("one \t\r\nb\nc  \r\n", "one\nb\nc\n", "one\nB\nc\n", "one \t\r\nB\r\nc  \r\n");
    check("\u{feff}a\r\nb", "a\nb", "a\nc", "\u{feff}a\r\nc");
    // An exact old text with line ends determines those of the new text.
    check("a\r\nb\r\n", "a\r\n", "a\n", "a\nb\r\n");
    // Blanks at the end of the old text mean that its line ends there.
    refused("foodie();\nx\n", "food  ", "good", "not found");
    check("food\nx\n", "food  ", "good", "good\nx\n");
    // A text with hardly any letters could be anywhere.
    refused("a\n\n  end\n", "    \n  end\n", "    \n  b\n  end\n", "hardly any letters");
}

#[test]
fn indentation_is_shifted_as_a_whole() {
    let file = "fn a() {\n    if x {\n        wait();\n    }\n}\n";
    check(
        file,
        "if x {\n    wait();\n}\n",
        "if x {\n    next();\n\n    rest();\n}\n",
        "fn a() {\n    if x {\n        next();\n\n        rest();\n    }\n}\n",
    );
    check(
        file,
        "      if x {\n          wait();\n",
        "      if q {\n          wait();\n",
        "fn a() {\n    if q {\n        wait();\n    }\n}\n",
    );
    // Less indentation on the one old line, replaced by several lines.
    check(
        file,
        "    wait();",
        "    wait();\n    next();",
        "fn a() {\n    if x {\n        wait();\n        next();\n    }\n}\n",
    );
    refused(
        file,
        "          if x {\n              wait();\n",
        "if q {\n    wait();\n",
        "too little to be shifted by the same amount",
    );
    // Lines whose indentation differs by different blanks are not shifted.
    refused(file, "if x {\n        wait();\n}\n", "z", "not found");
    // Tabs do not match spaces.
    refused("\tfoo();\n\tbar();\n", "    foo();\n    bar();\n", "x\n", "not found");
    refused(file, "wait();", "wait();\nnext();", "indented less");
    check(
        file,
        "wait();",
        "wait();\n        next();",
        "fn a() {\n    if x {\n        wait();\n        next();\n    }\n}\n",
    );
}

#[test]
fn typographic_quotes_dashes_and_spaces_match_plain_ones() {
    check("say(\"hi\") - 1\n", "say(\u{201c}hi\u{201d})", "say(\u{201c}ho\u{201d})", "say(\"ho\") - 1\n");
    // Unchanged lines keep their quotes; a new line with an ambiguous quote is refused.
    check("\u{2018}one\u{2019} \u{2014} b\nc\n", "'one' - b\nc", "'one' - b\nd", "\u{2018}one\u{2019} \u{2014} b\nd\n");
    refused("\u{2018}one\u{2019} b\n", "'one' b", "'one' c", "typographic");
    check("one\u{a0}two\n", "one two", "one to", "one to\n");
}

#[test]
fn an_edit_that_was_already_applied_is_refused() {
    refused("import a\nimport b\n", "import a\n", "import a\nimport b\n", "already there");
    refused("foo(bar)\n", "foo", "foo(bar)", "already there");
    refused("x = 2;\n", "x = 1;", "x = 2;", "already there, at line 1");
    refused("        return x;\n", "    return x;", "        return x;", "already there");
    refused("    a\n    b\n", "        a\n        b\n", "    a\n    b\n", "already there");
    refused("        a\n        b\n", "    a\n    b\n", "        a\n        b\n", "already there");
    refused("a\r\nb\r\nc\r\n", "a\n", "a\nb\n", "already there");
    // A shortened text does not count as already there.
    check("foo(bar)\n", "foo(bar)", "foo", "foo\n");
    check("x\n\ny\n", "x\n\n", "x\n", "x\ny\n");
    check("x\r\n\r\ny\r\n", "x\n\n", "x\n", "x\r\ny\r\n");
}

#[test]
fn replace_all_matches_only_exact_text() {
    let all = |old: &str, new: &str| vec![Replacement { old: old.into(), new: new.into(), all: Some(true) }];
    let edited = apply(b"a b a\r\na", &all("a", "c"), Tolerance::All).unwrap();
    assert_eq!(edited.content, b"c b c\r\nc");
    assert_eq!(edited.places.len(), 3);
    assert!(apply(b"a ", &all("b", "c"), Tolerance::All).unwrap_err().contains("not found"));
    assert!(apply(b"foo foobar", &all("foo", "foobar"), Tolerance::All).unwrap_err().contains("already"));
}

#[test]
fn several_edits_are_made_together_or_not_at_all() {
    let edits = |pairs: &[(&str, &str)]| -> Vec<Replacement> { pairs.iter().flat_map(|(o, n)| one(o, n)).collect() };
    let edited = apply(b"a\nb\nc\n", &edits(&[("c", "x\ny"), ("a", "a0\na1")]), Tolerance::All).unwrap();
    assert_eq!(edited.content, b"a0\na1\nb\nx\ny\n");
    let lines: Vec<(usize, usize)> = edited.places.iter().map(|place| (place.first, place.last)).collect();
    assert_eq!(lines, [(1, 2), (4, 5)]);
    let refusal = apply(b"a\nb\n", &edits(&[("a\nb", "x"), ("b", "y")]), Tolerance::All).unwrap_err();
    assert!(refusal.contains("edits[0] and edits[1] overlap at line 2"), "{refusal}");
    let refusal = apply(b"a\nb\n", &edits(&[("a", "x"), ("q", "y")]), Tolerance::All).unwrap_err();
    assert!(refusal.starts_with("edits[1]: `old` was not found"), "{refusal}");
}

#[test]
fn a_refusal_shows_the_nearest_region() {
    let file = "fn one() {\n    a();\n}\n\nfn two() {\n    b();\n    c();\n}\n";
    let refusal =
        apply(file.as_bytes(), &one("fn two() {\n    b(1);\n    c();\n}\n", "x"), Tolerance::All).unwrap_err();
    assert!(refusal.contains("      5\tfn two() {\n>     6\t    b();\n      7\t    c();\n"), "{refusal}");
    let refusal = apply(file.as_bytes(), &one("fn three(x) {", "x"), Tolerance::All).unwrap_err();
    assert!(refusal.contains(">     5\tfn two() {") || refusal.contains(">     1\tfn one() {"), "{refusal}");
    refused(file, "zzz zzz", "x", "read the file again");
}

#[test]
fn a_file_that_was_not_read_is_edited_only_on_an_exact_match() {
    let edited = apply(b"a\r\nb\r\n", &one("a\nb", "c"), Tolerance::Exact);
    assert!(edited.unwrap_err().contains("was not read"));
    assert_eq!(apply(b"a\nb\n", &one("a\nb", "c"), Tolerance::Exact).unwrap().content, b"c\n");
}

#[test]
fn an_edit_preserves_invalid_utf8() {
    let edited = apply(b"\xff\xfe a \x80\nb\n", &one("b", "c"), Tolerance::All).unwrap();
    assert_eq!(edited.content, b"\xff\xfe a \x80\nc\n");
}

/// A file of distinct, indented lines.
fn file() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec((0..4_usize, "[a-z]{4,6}\\(\"[a-z' -]{0,5}\"\\);"), 3..24).prop_map(|lines| {
        let line = |(at, (depth, text)): (usize, (usize, String))| format!("{}{text} // {at}", "    ".repeat(depth));
        lines.into_iter().enumerate().map(line).collect()
    })
}

/// A change of some lines: the first line, their number, and the replacement.
fn change(lines: &[String], at: prop::sample::Index, count: usize, new: &[String]) -> (usize, usize, Vec<String>) {
    let start = at.index(lines.len());
    let count = count.min(lines.len() - start).max(1);
    let indent: String = lines[start].chars().take_while(|c| *c == ' ').collect();
    (start, count, new.iter().enumerate().map(|(at, text)| format!("{indent}{text} // new {at}")).collect())
}

/// Corrupts a copy of the old or new text in one of eight ways.
fn spoil(how: usize, text: &str) -> String {
    let lines = |f: &dyn Fn(&str) -> String| text.split('\n').map(f).collect::<Vec<_>>().join("\n");
    match how {
        0 => text.to_owned(),
        1 => lines(&|line| if line.is_empty() { line.to_owned() } else { format!("{line}  ") }),
        2 => text.replace('\n', "\r\n"),
        3 => lines(&|line| if line.is_empty() { line.to_owned() } else { format!("  {line}") }),
        4 => lines(&|line| line.strip_prefix("  ").unwrap_or(line).to_owned()),
        5 => text.replace('"', "\u{201d}").replace('\'', "\u{2019}").replace('-', "\u{2013}"),
        6 => text.replace("    ", "\t"),
        _ => text.replacen('(', "((", 1),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// An edit with a corrupted copy is made as intended or refused.
    #[test]
    fn an_edit_with_corrupted_text_is_applied_as_intended_or_refused(
        lines in file(), at in any::<prop::sample::Index>(), count in 1..5_usize,
        new in prop::collection::vec("[a-z]{1,6}\\(\\);", 0..4), how in 0..8_usize, windows in any::<bool>(), last in any::<bool>(),
    ) {
        let (start, count, new) = change(&lines, at, count, &new);
        let end = if windows { "\r\n" } else { "\n" };
        let joined = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let mut file = lines.join(end);
        let mut after: Vec<String> = lines[..start].to_vec();
        after.extend(new.clone());
        after.extend_from_slice(&lines[start + count..]);
        let mut meant = after.join(end);
        if !last { file.push_str(end); if !after.is_empty() { meant.push_str(end); } }
        // The text of whole lines, as models write it: with the last line end, or without one at the end of a file.
        let (mut old, mut text) = (joined(&lines[start..start + count]), joined(&new));
        if last && start + count == lines.len() {
            if new.is_empty() { return Ok(()); }
            old.pop();
            text.pop();
        }
        let edits = one(&spoil(how, &old), &spoil(how, &text));
        prop_assume!(edits[0].old != edits[0].new && !edits[0].old.is_empty());
        match apply(file.as_bytes(), &edits, Tolerance::All) {
            // New lines keep the given blanks and quotes unless the file determines them.
            Ok(edited) => {
                let got = String::from_utf8(edited.content).unwrap();
                let plain = |text: &str| text.replace('\t', "    ").lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
                if how == 1 { prop_assert_eq!(plain(&got), plain(&meant)) } else { prop_assert_eq!(got, meant.clone()) }
            }
            Err(refusal) => prop_assert!(how > 2 && how != 5 || windows && how == 1, "how {}: {}", how, refusal),
        }
        // An edit that was made is not made again.
        if let Ok(again) = apply(meant.as_bytes(), &edits, Tolerance::All) {
            prop_assert!(new.is_empty() || again.content == meant.as_bytes(), "made twice: {:?}", String::from_utf8_lossy(&again.content));
        }
    }

    /// No input panics, and text outside the replaced places stays.
    #[test]
    fn no_edit_panics_and_every_applied_edit_changes_the_file(file in prop::collection::vec(prop::sample::select(b"ab \t\r\n\xff\"'".to_vec()), 0..60),
        old in "[ab \t\r\n\"\u{201c}]{1,6}", new in "[ab \t\r\n\"]{0,6}", all in any::<bool>()) {
        let edits = [Replacement { old: old.clone(), new: new.clone(), all: all.then_some(true) }];
        if let Ok(edited) = apply(&file, &edits, Tolerance::All) {
            prop_assert!(edited.content != file);
            prop_assert!(edited.places.iter().all(|place| place.first >= 1 && place.last + 1 >= place.first));
        }
    }
}
