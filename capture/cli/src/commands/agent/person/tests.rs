use engine::CallVerdict;
use session_setup::QuestionChange;

use super::*;

fn question(details: &str, can_last: bool) -> PermissionQuestion {
    let (title, details) = ("The agent wants to run a command".to_owned(), details.to_owned());
    PermissionQuestion { title, details, lasts: can_last.then_some(SessionOffer::SameCall), ..Default::default() }
}

/// The question without colours.
fn plain(question: &PermissionQuestion, size: (usize, usize), replaces: bool) -> ShownQuestion {
    shown(question, size, replaces, false)
}

/// The verdict, its scope and the reason; `None` if the question is repeated.
fn decided_by(line: &str, can_last: bool, in_full: bool) -> Option<(CallVerdict, DecisionScope, Option<String>)> {
    let decided = decided(&question("", can_last), in_full, line)?;
    Some((decided.decision.verdict, decided.scope, decided.decision.reason))
}

#[test]
fn only_the_offered_words_allow_a_call() {
    use CallVerdict::{Allow, Deny};
    for line in ["y", "Y", "yes", "Yes", "YES"] {
        assert_eq!(decided_by(line, true, false), Some((Allow, DecisionScope::Once, None)), "{line}");
    }
    for line in ["s", "S", "session"] {
        assert_eq!(decided_by(line, true, false), Some((Allow, DecisionScope::Session, None)), "{line}");
        // The scope is not available, and must not become wider or narrower.
        assert_eq!(decided_by(line, false, false), None, "{line}");
    }
    for line in ["", "n", "N", "no", "No"] {
        let denied = Some((Deny, DecisionScope::Once, Some("denied by the user".to_owned())));
        assert_eq!(decided_by(line, true, false), denied, "{line}");
    }
    // Meant as a yes, but not one of the words that allow: asked again, neither allowed nor denied.
    for line in ["yes please", "yes.", "ok", "OK, go", "allow"] {
        assert_eq!(decided_by(line, true, false), None, "{line}");
    }
    for line in ["use make clean instead", "y n", "ok but only once", "?"] {
        let reason = format!("denied by the user: {line}");
        assert_eq!(decided_by(line, true, false), Some((Deny, DecisionScope::Once, Some(reason))), "{line}");
    }
}

#[test]
fn a_rule_is_shown_before_it_is_saved() {
    let rule = "[[rule]]\nname = \"always\"\ndecision = \"allow\"\ncommand = [\"cargo\", \"test\"]\n";
    let with_rule = PermissionQuestion { rule: Some(rule.to_owned()), ..question("in /w\n", true) };
    for line in ["r", "R", "rule"] {
        let decided = decided(&with_rule, false, line).unwrap();
        assert_eq!((decided.decision.verdict, decided.scope), (CallVerdict::Allow, DecisionScope::Once), "{line}");
        assert_eq!(decided.rule.as_deref(), Some(rule));
        assert_eq!(decided_by(line, true, false), None, "no rule can allow it");
    }
    assert!(decided(&with_rule, true, "r").is_none() && decided(&with_rule, true, "rule").is_some());
    assert!(
        plain(&with_rule, (80, 24), false)
            .text
            .ends_with("Allow it? [y]es, [s]ession, [r]ule, [n]o, or say what to do instead: ")
    );
    assert_eq!(
        shown_rule(rule),
        "This rule would be added to your policy, for every session:\n\n    [[rule]]\n    name = \"always\"\n    \
         decision = \"allow\"\n    command = [\"cargo\", \"test\"]\n\nSave it, and allow the call? Type yes or no: "
    );
}

#[test]
fn a_question_longer_than_the_screen_needs_a_full_word_to_allow() {
    let long = question(&"line\n".repeat(30), true);
    assert!(plain(&long, (80, 24), false).in_full && !plain(&long, (80, 60), false).in_full);
    let wide = question(&"x".repeat(3_000), true);
    assert!(plain(&wide, (80, 24), false).in_full);
    assert!(
        plain(&long, (80, 24), false).text.contains("The above has 33 rows, more than this screen"),
        "{:?}",
        plain(&long, (80, 24), false).text
    );
    for line in ["y", "s", "Y"] {
        assert_eq!(decided_by(line, true, true), None, "{line}");
    }
    assert_eq!(decided_by("yes", true, true).unwrap().0, CallVerdict::Allow);
    assert_eq!(decided_by("n", true, true).unwrap().0, CallVerdict::Deny);
}

#[test]
fn a_question_that_replaces_another_needs_a_full_word_to_allow() {
    let short = question("in /w\n", true);
    let first = plain(&short, (80, 24), false);
    assert!(!first.in_full && !first.text.contains("replaced"), "{}", first.text);
    let replacing = plain(&short, (80, 24), true);
    assert!(replacing.in_full, "{}", replacing.text);
    assert!(
        replacing.text.ends_with(
            "This question replaced an earlier one: type the whole word.\n\
             Allow it? yes, session, no, or say what to do instead: "
        ),
        "{}",
        replacing.text
    );
}

#[test]
fn the_question_offers_only_the_available_answers() {
    let text = |can_last| plain(&question("in /w\n", can_last), (80, 24), false).text;
    assert_eq!(
        text(true),
        "\nThe agent wants to run a command\n  in /w\nAllow it? [y]es, [s]ession, [n]o, or say what to do instead: "
    );
    assert!(text(false).ends_with("Allow it? [y]es, [n]o, or say what to do instead: "));
}

#[test]
fn an_edit_question_explains_what_the_session_answer_also_allows() {
    let change = QuestionChange {
        path: "/w/a.rs".to_owned(),
        block: "\nthe change (9 characters):\n    +fn a() {}\n".to_owned(),
    };
    let edit =
        PermissionQuestion { change: Some(change), lasts: Some(SessionOffer::Edits), ..question("in /w\n", true) };
    let text = plain(&edit, (80, 60), false).text;
    let end = "  the change (9 characters):\n      +fn a() {}\n  session: also allows further edits of the workspace until \
               this command ends, except edits of secrets and of files that control what runs later\nAllow it? [y]es, \
               [s]ession, [n]o, or say what to do instead: ";
    assert!(text.ends_with(end), "{text}");
    // Colours change neither the words nor the length of the question.
    let coloured = shown(&edit, (80, 60), false, true);
    assert!(coloured.text.contains("\u{1b}[") && !coloured.in_full, "{:?}", coloured.text);
    let mut bare = String::new();
    let mut rest = coloured.text.as_str();
    while let Some((before, behind)) = rest.split_once('\u{1b}') {
        bare += before;
        rest = behind.split_once('m').unwrap().1;
    }
    assert_eq!(bare + rest, text);
    let once = PermissionQuestion { lasts: None, ..edit };
    assert!(!plain(&once, (80, 60), false).text.contains("session"));
    assert_eq!(decided(&once, false, "s"), None);
}
