//! Properties of every command line.

use std::path::Path;

use approver::{Decision, PermissionRequest, Policy, Preset, Verdict, rule_for};
use proptest::prelude::*;

use super::{
    facts,
    lists::{benign, bypass, with_secrets},
    request,
};

fn decide(policy: &Policy, command: &str) -> Decision {
    policy.decide(&request(command), &facts())
}

fn read_only() -> Policy {
    Policy::preset(Preset::ReadOnly)
}

fn any_benign() -> impl Strategy<Value = String> {
    prop::sample::select(benign().into_iter().map(|listed| listed.cmd).collect::<Vec<_>>())
}

fn any_bypass() -> impl Strategy<Value = String> {
    prop::sample::select(bypass().into_iter().map(|listed| listed.cmd).collect::<Vec<_>>())
}

/// Text made of pieces with a meaning in shells.
fn shellish() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "ls",
        "cat ",
        " ",
        "'",
        "\"",
        "\\",
        "$",
        "$(",
        ")",
        "`",
        "|",
        "&&",
        "||",
        ";",
        "&",
        ">",
        "<",
        "2>/dev/null",
        "{",
        "}",
        "*",
        "#",
        "~",
        "=",
        "a",
        "git ",
        "diff ",
        "-l",
        "\n",
        "!",
        "[",
        "]",
        "^",
        "é",
        "bash -c ",
        "HEAD",
        "README.md",
        "echo ",
        "(",
        "sed ",
        "1p",
        "awk ",
        "test ",
        "-v",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

/// The characters outside quotes, by a separate implementation.
fn unquoted(text: &str) -> String {
    let (mut out, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        match c {
            '\'' => while chars.next().is_some_and(|c| c != '\'') {},
            '"' => {
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    if c == '\\' {
                        chars.next();
                    }
                }
            }
            '\\' => {
                chars.next();
            }
            c => out.push(c),
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn explaining_any_command_line_never_panics(text in prop_oneof![any::<String>(), shellish()]) {
        let asked = request(&text);
        let _ = read_only().explain(&asked, &facts());
        let _ = rule_for(&asked);
    }

    #[test]
    fn lines_with_ambiguous_shell_syntax_are_never_allowed(text in prop_oneof![shellish(), any_benign().prop_flat_map(|line| (Just(line.clone()), 0..=line.len(), prop::sample::select(vec!["$", "`", "*", "?", "(", ")", "{", "}", "<", "#", "\n", "é", "\u{1b}"])).prop_map(|(mut line, at, piece)| { if line.is_char_boundary(at) { line.insert_str(at, piece); } line }))]) {
        // A status is a number. The tests of shapes cover the other supported expansions, groups and lines.
        let bare = unquoted(&text).replace("$?", "");
        let input = ["<(", "<&", "<>", "< <"].iter().any(|text| bare.contains(text));
        if input || bare.contains(['`', '?', '\r', 'é', '\u{1b}']) {
            let comment = text.contains('#');
            prop_assert!(comment || decide(&read_only(), &text).verdict != Verdict::Allow, "{}", text);
        }
    }

    #[test]
    fn a_line_with_a_dangerous_command_is_never_allowed(line in any_benign(), bad in any_bypass(), join in prop::sample::select(vec![" && ", "; ", " | ", " || ", "\n"]), first in any::<bool>()) {
        // Nothing runs after a comment.
        prop_assume!(first || !line.contains('#'));
        prop_assume!(!first || !bad.contains('#'));
        // After a pipe, xargs runs its command on names that the line prints, which may be harmless: `ls | xargs ls`.
        prop_assume!(first || join != " | " || !bad.starts_with("xargs"));
        let text = if first { format!("{bad}{join}{line}") } else { format!("{line}{join}{bad}") };
        prop_assert_ne!(read_only().decide(&request(&text), &with_secrets()).verdict, Verdict::Allow, "{}", text);
    }

    #[test]
    fn deny_beats_allow(line in any_benign(), word in "[a-z]{2,8}") {
        let first = Policy::preset(Preset::ReadOnly).explain(&request(&line), &facts()).parts.first().and_then(|part| part.words.iter().find(|word| !word.contains('=')).cloned()).unwrap_or_default();
        let rules = format!("version = 1\npreset = \"read-only\"\n[[rule]]\nname = \"x\"\ndecision = \"deny\"\ncommand = [{}]\n", toml_text(&first));
        if let Ok(policy) = Policy::parse(&rules, Path::new("p")) {
            prop_assert_eq!(decide(&policy, &line).verdict, Verdict::Deny, "{}", line);
            prop_assert_eq!(decide(&policy, &format!("echo {word} && {line}")).verdict, Verdict::Deny);
        }
    }

    #[test]
    fn repository_rules_never_loosen_the_users_policy(line in prop_oneof![any_benign(), any_bypass()], word in prop::sample::select(vec!["ls", "git", "cat", "touch"]), deny in any::<bool>()) {
        let own = "version = 1\npreset = \"read-only\"\n[[rule]]\nname = \"no\"\ndecision = \"deny\"\ncommand = [\"touch\"]\n";
        let policy = Policy::parse(own, Path::new("p")).unwrap();
        let verdict = if deny { "deny" } else { "ask" };
        let theirs = format!("version = 1\n[[rule]]\nname = \"r\"\ndecision = \"{verdict}\"\ncommand = [\"{word}\"]\n");
        let both = policy.clone().with_repository(&theirs, Path::new("r")).unwrap();
        prop_assert!(decide(&both, &line).verdict >= decide(&policy, &line).verdict, "{}", line);
    }

    #[test]
    fn tool_url_and_labels_do_not_affect_the_verdict_on_a_command(line in prop_oneof![any_benign(), any_bypass()], tool in any::<Option<String>>(), url in any::<Option<String>>(), label in any::<(String, String)>()) {
        let more = PermissionRequest { tool, url, labels: [label].into(), ..request(&line) };
        prop_assert_eq!(read_only().decide(&more, &facts()), decide(&read_only(), &line));
    }
}

fn toml_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', ""))
}
