//! Tests of the rules engine with rules written for them.

use events::{Confidence, Provider};
use host_protocol::claim::TypingGate;

use super::*;
use crate::screen::typing::SETTLED_MS;

const RULES: &str = r#"
provider = "unknown"
prompt = { in = "foot", has = '^input:' }
[regions]
foot = { last = 1 }
body = { above = "foot", lines = 2 }
box = { from = '^\+--', to = '^==' }
[[rules]]
name = "ask"
priority = 30
state = "waiting_approval"
reason = "tool"
debounce_ms = 30
hold_ms = 50
then = { state = "running", after_ms = 200 }
all = [{ in = "box", has = '(?m)^Proceed\?' }, { in = "box", has = '(?m)^> ' }]
none = [{ in = "foot", has = '^input:' }]
[rules.dialog]
about = "command"
question = [{ in = "box", has = '(?m)^(Proceed\?)' }]
subject = [{ in = "box", has = '(?m)^\$ (.*)' }]
options = { in = "box", has = '(?m)^(?P<cursor>>)? *(?P<digit>\d)\. (?P<label>[^(\n]*?)(?: \((?P<key>esc)\))?$' }
[[rules]]
name = "retry"
priority = 25
state = "running"
reason = "retrying"
keep_ms = 1000
all = [{ in = "body", has = 'retrying' }]
[[rules]]
name = "work"
priority = 20
state = "running"
all = [{ in = "title", has = '^busy' }]
[[rules]]
name = "rest"
priority = 10
state = "waiting"
debounce_ms = 100
all = [{ in = "foot", has = '^input:' }]
"#;

const DIALOG: &str = "+--\n$ touch x\nProceed?\n> 1. Yes\n  2. Always\n  3. No (esc)";

#[test]
fn a_rule_takes_effect_after_its_debounce() {
    let mut stage = Stage::with(RULES);
    stage.draw("hello\ninput:");
    assert_eq!(stage.claims(90), [""; 0]);
    assert_eq!(stage.claims(60), ["waiting"]);
}

#[test]
fn a_state_shorter_than_its_debounce_is_ignored() {
    let mut stage = Stage::with(RULES);
    stage.write("\x1b]0;busy\x07");
    assert_eq!(stage.claims(50), ["running"]);
    stage.write("\x1b]0;\x07").draw("input:");
    assert_eq!(stage.claims(60), [""; 0]);
    stage.write("\x1b]0;busy\x07");
    assert_eq!(stage.claims(500), [""; 0]);
}

#[test]
fn the_rule_with_the_highest_priority_wins() {
    let mut stage = Stage::with(RULES);
    stage.write("\x1b]0;busy\x07").draw(DIALOG);
    let told = stage.pass(300);
    assert_eq!(told.iter().map(short).collect::<Vec<_>>(), ["running", "waiting_approval tool"]);
    let Some(HostEvent::Claim(claim)) = told.last() else { panic!() };
    let dialog = claim.dialog.as_ref().unwrap();
    assert_eq!(dialog.question.as_deref(), Some("Proceed?"));
    assert_eq!(dialog.subject.as_deref(), Some("touch x"));
    let options: Vec<_> = dialog.options.iter().map(|o| (o.label.as_str(), o.key.as_deref(), o.selected)).collect();
    assert_eq!(options, [("Yes", Some("1"), true), ("Always", Some("2"), false), ("No", Some("esc"), false)]);
}

#[test]
fn a_briefly_blank_screen_does_not_change_the_claim() {
    let mut stage = Stage::with(RULES);
    stage.draw(DIALOG);
    assert_eq!(stage.claims(300), ["waiting_approval tool"]);
    stage.draw("");
    assert_eq!(stage.claims(30), [""; 0]);
    stage.draw(DIALOG);
    assert_eq!(stage.claims(300), [""; 0]);
}

#[test]
fn a_closed_dialog_is_followed_by_its_configured_state() {
    let mut stage = Stage::with(RULES);
    stage.draw(DIALOG);
    stage.pass(5000);
    stage.draw("");
    assert_eq!(stage.claims(150), [""; 0]);
    assert_eq!(stage.claims(150), ["running"]);
}

/// The strength of each claim made within `ms`.
fn strengths(stage: &mut Stage, ms: i64) -> Vec<(String, Confidence)> {
    let claim = |told: HostEvent| match told {
        HostEvent::Claim(claim) => Some((named(&claim), claim.strength)),
        _ => None,
    };
    stage.pass(ms).into_iter().filter_map(claim).collect()
}

#[test]
fn a_stronger_rule_for_the_same_state_raises_the_confidence() {
    let title = "state = \"running\"\nall = [{ in = \"title\"";
    let rules = RULES.replace(title, &title.replace("all", "debounce_ms = 400\nall"))
        + r#"
[[rules]]
name = "line"
priority = 15
state = "running"
strength = "medium"
all = [{ in = "foot", has = 'working' }]
"#;
    let mut stage = Stage::with(&rules);
    let running = |strength| [("running".to_owned(), strength)];
    stage.write("\x1b]0;busy\x07").draw("working");
    assert_eq!(strengths(&mut stage, 300), running(Confidence::Medium), "the title does not count yet");
    assert_eq!(strengths(&mut stage, 300), running(Confidence::High));
    assert_eq!(strengths(&mut stage, 5_000), [], "once");
    // A title that briefly shows work, at a ready prompt.
    stage.write("\x1b]0;\x07").draw("input:");
    assert_eq!(stage.claims(300), ["waiting"]);
    stage.write("\x1b]0;busy\x07");
    assert_eq!(stage.claims(300), [""; 0]);
    stage.write("\x1b]0;\x07");
    assert_eq!(stage.claims(1_000), [""; 0]);
}

#[test]
fn a_claim_no_longer_supported_by_a_rule_becomes_weak() {
    let mut stage = Stage::with(RULES);
    stage.draw("input:");
    assert_eq!(strengths(&mut stage, 300), [("waiting".to_owned(), Confidence::High)]);
    stage.pass(SETTLED_MS);
    assert_eq!(stage.observer.typing_gate(stage.at()), TypingGate::Open);
    stage.draw("a dialog of a form that no rule knows");
    assert!(matches!(stage.observer.typing_gate(stage.at()), TypingGate::Busy { .. }), "not for a moment");
    assert_eq!(strengths(&mut stage, 1_400), []);
    assert_eq!(strengths(&mut stage, 10_000), [("waiting".to_owned(), Confidence::Low)]);
    let gate = stage.observer.typing_gate(stage.at());
    assert!(matches!(gate, TypingGate::Busy { .. }), "nothing is typed on a guess: {gate:?}");
    stage.draw("input:");
    assert_eq!(strengths(&mut stage, 300), [("waiting".to_owned(), Confidence::High)]);
}

#[test]
fn the_state_assumed_after_a_dialog_weakens_without_support() {
    let mut stage = Stage::with(RULES);
    stage.draw(DIALOG);
    stage.pass(5000);
    stage.draw("something else");
    let running = |strength| ("running".to_owned(), strength);
    assert_eq!(strengths(&mut stage, 10_000), [running(Confidence::High), running(Confidence::Low)]);
    stage.write("\x1b]0;busy\x07");
    assert_eq!(strengths(&mut stage, 300), [running(Confidence::High)]);
}

#[test]
fn a_weakened_dialog_claim_regains_confidence_when_redrawn() {
    let mut stage = Stage::with(&RULES.replace("then = { state = \"running\", after_ms = 200 }\n", ""));
    stage.draw(DIALOG);
    let asks = |strength| ("waiting_approval tool".to_owned(), strength);
    assert_eq!(strengths(&mut stage, 1000), [asks(Confidence::High)]);
    stage.draw("something else");
    assert_eq!(strengths(&mut stage, 3000), [asks(Confidence::Low)]);
    stage.draw(DIALOG);
    assert_eq!(strengths(&mut stage, 30), [asks(Confidence::High)]);
}

#[test]
fn a_rule_with_still_ms_waits_for_an_unchanging_screen() {
    let mut stage = Stage::with(&RULES.replace("debounce_ms = 100", "still_ms = 2000"));
    for n in 0..5 {
        stage.draw(&format!("line {n}\ninput:"));
        assert_eq!(stage.claims(1500), [""; 0], "{n}");
    }
    assert_eq!(stage.claims(1000), ["waiting"]);
}

#[test]
fn rules_written_for_other_versions_give_medium_confidence() {
    let rules = format!("versions = \">=2, <3\"\nversion = {{ in = \"screen\", has = 'v([0-9.]+)' }}\n{RULES}");
    for (version, strength) in
        [("2.5.0", Confidence::High), ("1.9.0", Confidence::Medium), ("3.0.0", Confidence::Medium)]
    {
        let mut stage = Stage::with(&rules);
        stage.draw(&format!("v{version}\ninput:"));
        assert_eq!(strengths(&mut stage, 300), [("waiting".to_owned(), strength)], "{version}");
    }
}

#[test]
fn a_claim_is_withdrawn_after_300_s_without_a_matching_rule() {
    let mut stage = Stage::with(RULES);
    stage.draw("input:");
    assert_eq!(stage.claims(300), ["waiting"]);
    stage.draw("");
    assert_eq!(stage.claims(299_000), ["waiting"], "the same, with less strength");
    assert_eq!(stage.claims(2000), ["withdrawn"]);
    assert!(stage.observer.picture().claim.is_none());
}

#[test]
fn a_reason_outlasts_its_rule_only_while_the_state_is_the_same() {
    let mut stage = Stage::with(RULES);
    stage.write("\x1b]0;busy\x07").draw("retrying\nfoot");
    assert_eq!(stage.claims(100), ["running retrying"]);
    stage.draw("other\nfoot");
    assert_eq!(stage.claims(900), [""; 0]);
    assert_eq!(stage.claims(300), ["running"]);
    stage.draw("retrying\nfoot");
    assert_eq!(stage.claims(100), ["running retrying"]);
    stage.write("\x1b]0;\x07").draw("input:");
    assert_eq!(stage.claims(200), ["waiting"]);
}

#[test]
fn a_new_dialog_subject_is_a_new_claim_but_a_moved_cursor_is_not() {
    let mut stage = Stage::with(RULES);
    stage.draw(DIALOG);
    assert_eq!(stage.claims(300), ["waiting_approval tool"]);
    stage.draw(&DIALOG.replace("> 1", "  1").replace("  2", "> 2"));
    assert_eq!(stage.claims(300), [""; 0]);
    assert!(stage.observer.picture().claim.unwrap().dialog.unwrap().options[1].selected);
    stage.draw(&DIALOG.replace("touch x", "touch y"));
    assert_eq!(stage.claims(300), ["waiting_approval tool"]);
}

#[test]
fn a_synchronized_update_is_evaluated_once_complete_or_timed_out() {
    let mut stage = Stage::with(RULES);
    stage.draw("input:");
    assert_eq!(stage.claims(300), ["waiting"]);
    stage.write("\x1b[?2026h").write("\x1b]0;busy\x07");
    assert_eq!(stage.claims(100), [""; 0]);
    stage.write("\x1b]0;\x07\x1b[?2026l");
    assert_eq!(stage.claims(300), [""; 0]);
    // An update that never ends is not waited for.
    stage.write("\x1b[?2026h\x1b]0;busy\x07");
    assert_eq!(stage.claims(300), ["running"]);
}

#[test]
fn a_dialog_is_answered_by_its_first_answer_key_only() {
    let mut stage = Stage::with(RULES);
    stage.observer.input(b"1", stage.at());
    stage.draw(DIALOG);
    assert_eq!(stage.claims(300), ["waiting_approval tool"]);
    for key in [&b"x"[..], b"\x1b[A", b"\x1b[I", b"2", b"3"] {
        stage.observer.input(key, stage.at());
    }
    assert_eq!(stage.claims(10), ["answered Always"]);
    stage.draw(&DIALOG.replace("touch x", "touch y"));
    stage.pass(300);
    stage.observer.input(b"\r", stage.at());
    assert_eq!(stage.claims(10), ["answered Yes"]);
}

#[test]
fn changing_the_provider_withdraws_the_claim_and_evaluates_again() {
    let mut stage = Stage::with(RULES);
    stage.draw("input:");
    assert_eq!(stage.claims(300), ["waiting"]);
    let now = stage.at();
    stage.observer.set_provider(Provider::Claude, now);
    stage.observer.set_provider(Provider::Claude, now);
    assert_eq!(stage.claims(300), ["withdrawn", "waiting"]);
}

#[test]
fn screen_regions_are_extracted_as_defined() {
    let mut stage = Stage::with(RULES);
    stage.draw("+-- old\nno\n+-- new\n$ y\n== end\n\none\n\ntwo\nfoot\n\n");
    stage.pass(100);
    let explained = stage.observer.explain();
    let region = |name: &str| explained.regions.iter().find(|r| r.name == name).unwrap().text.clone();
    assert_eq!(region("foot").as_deref(), Some("foot"));
    assert_eq!(region("body").as_deref(), Some("one\n\ntwo"));
    assert_eq!(region("box").as_deref(), Some("+-- new\n$ y\n"));
    stage.draw("foot");
    stage.pass(100);
    assert!(stage.observer.explain().regions.iter().any(|r| r.name == "box" && r.text.is_none()));
}

#[test]
fn the_explanation_names_failed_checks_and_remaining_debounce() {
    use host_protocol::screen::{Need, RuleMatch};
    let mut stage = Stage::with(RULES);
    stage.draw("input:");
    stage.pass(30);
    let explained = stage.observer.explain();
    let rule = |name: &str| explained.rules.iter().find(|r| r.name == name).unwrap();
    assert!(matches!(rule("rest").outcome, RuleMatch::Debouncing { ms } if ms > 0 && ms < 100), "{:?}", rule("rest"));
    assert_eq!(rule("work").outcome, RuleMatch::NoMatch);
    assert_eq!((rule("work").checks[0].need, rule("work").checks[0].region.as_str()), (Need::All, "title"));
    assert!(rule("ask").checks.iter().any(|c| c.need == Need::None && c.found.as_deref() == Some("input:")));
    stage.pass(300);
    let explained = stage.observer.explain();
    assert_eq!(explained.rule.as_deref(), Some("rest"));
    assert!(!explained.kept);
    stage.draw("");
    stage.pass(100);
    let explained = stage.observer.explain();
    assert_eq!(explained.rule.as_deref(), Some("rest"));
    assert!(explained.kept);
    serde_json::to_string(&explained).unwrap();
}

#[test]
fn the_detected_version_selects_the_rule_file() {
    let file = |versions: &str, state: &str, reason: &str| {
        format!(
            "provider = \"unknown\"\nversions = \"{versions}\"\nversion = {{ in = \"screen\", has = 'prog v(\\S+)' }}\n\
             [[rules]]\nname = \"a\"\npriority = 1\nstate = \"{state}\"\nreason = \"{reason}\"\nall = [{{ in = \"screen\", has = 'prog' }}]\n"
        )
    };
    let mut rules = ScreenRules::default();
    rules.add("old.toml", &file("<2", "waiting", "question")).unwrap();
    rules.add("new.toml", &file(">=2", "waiting", "auth")).unwrap();
    let mut stage = Stage::new(Provider::Unknown, rules);
    stage.draw("prog v1.4.0-beta.2");
    assert_eq!(stage.claims(300), ["waiting question"]);
    assert_eq!(stage.observer.version(), Some("1.4.0-beta.2"));
    assert_eq!(stage.observer.explain().files.len(), 1);
}
