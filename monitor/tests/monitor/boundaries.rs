//! Boundaries: plays `fixtures/advisor/boundaries.jsonl`, and checks invariants.

use std::fs;

use events::{
    ApprovalRequested, ApprovalResolved, CompactTrigger, ContextCompacted, DecidedBy, Finding, FindingKind, Payload,
    PromptOrigin, SessionStarted, Severity, ToolCall, ToolKind, ToolOutcome, ToolResult, TurnCompleted, UserPrompt,
};
use monitor::{Boundaries, BoundaryRequest, DetectorLimits, Monitor};
use proptest::prelude::*;
use serde::Deserialize;

use crate::stage::{Line, Stage};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    expect: String,
    steps: Vec<Step>,
    source: String,
    licence: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Step {
    prompt: Option<String>,
    origin: Option<PromptOrigin>,
    stated: Option<bool>,
    run: Option<String>,
    edit: Option<String>,
    read: Option<String>,
    outcome: ToolOutcome,
    exit: Option<i32>,
    out: String,
    compact: bool,
    turn: Option<String>,
    restart: bool,
}

/// Plays the steps of a session, one second each.
fn played(steps: &[Step]) -> Stage {
    let mut stage = Stage::new();
    let cwd = Some("/home/u/app".to_owned());
    stage.say(&Line::new(0, SessionStarted { cwd, ..SessionStarted::default() }));
    for (number, step) in steps.iter().enumerate() {
        let at = 1_000 * (number as i64 + 1);
        if step.restart {
            stage = restarted(stage);
            continue;
        }
        if step.compact {
            stage.say(&Line::new(
                at,
                ContextCompacted { trigger: Some(CompactTrigger::Auto), ..ContextCompacted::default() },
            ));
        }
        if step.turn.is_some() {
            stage.say(&Line::new(at, TurnCompleted::default()));
        }
        if let Some(prompt) = &step.prompt {
            let (origin, stated) = (step.origin.unwrap_or_default(), step.stated.unwrap_or(true));
            stage.say(&Line::new(at, UserPrompt { origin, stated, ..UserPrompt::default() }).text(prompt));
        }
        let kinds = [(&step.run, ToolKind::Execute), (&step.edit, ToolKind::Edit), (&step.read, ToolKind::Read)];
        for (title, tool) in kinds {
            let Some(title) = title else { continue };
            let (call_id, name) = (format!("call{number}"), format!("{tool:?}"));
            let call =
                ToolCall { call_id: call_id.clone(), name, tool, title: Some(title.clone()), ..ToolCall::default() };
            stage.say(&Line::new(at, call));
            let exit_code = step.exit.or((step.outcome == ToolOutcome::Ok && tool == ToolKind::Execute).then_some(0));
            let result = ToolResult { call_id, outcome: step.outcome, exit_code, ..ToolResult::default() };
            stage.say(&Line::new(at + 500, result).text(&step.out));
        }
    }
    stage
}

/// The session with a new monitor, which gets the log as history, as after a restart of the server.
fn restarted(stage: Stage) -> Stage {
    let mut monitor = Monitor::new(DetectorLimits::default());
    let taken = stage.log.last().map_or(0, |event| event.position);
    monitor.restore(Vec::<Finding>::new(), taken);
    for event in &stage.log {
        let mut event = event.clone();
        event.history = true;
        assert!(monitor.apply(&event).is_empty());
    }
    stage.monitored_by(monitor)
}

fn cases() -> Vec<Case> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/advisor/boundaries.jsonl");
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn every_breach_of_the_fixture_is_found_and_no_twin() {
    let (mut right, mut wrong) = ([0, 0], Vec::new());
    for case in cases() {
        assert_eq!((case.source.as_str(), case.licence.as_str()), ("made for this project", "MIT OR Apache-2.0"));
        let stage = played(&case.steps);
        let found: Vec<&Finding> = stage
            .told
            .iter()
            .map(|(_, finding)| finding)
            .filter(|finding| finding.kind == FindingKind::Boundary)
            .collect();
        let expected = case.expect == "breach";
        if found.is_empty() == expected {
            let words = found.first().map(|finding| finding.what.clone());
            wrong.push(format!("{}: {words:?}", case.id));
        } else {
            right[usize::from(expected)] += 1;
        }
    }
    println!("{} breaches found, {} twins without a finding", right[1], right[0]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(right, [40, 40]);
}

#[test]
fn a_breach_names_the_prompt_and_the_result_until_the_next_prompt() {
    let step = |prompt: &str| Step { prompt: Some(prompt.to_owned()), ..Step::default() };
    let push = || Step { run: Some("git push".to_owned()), ..Step::default() };
    let key = ["ghp_", "x7Kd93LmQp2RtYv8", "WzAc5EfGh1Jk4NbS6uXo"].concat();
    let mut stage = played(&[step(&format!("Add the key {key} but don't push.")), push(), push()]);
    let finding = stage.last(FindingKind::Boundary).unwrap().clone();
    assert_eq!(finding.what, "`git push` ran although you said: do not push");
    assert!(finding.why.starts_with("at ") && finding.why.contains(" UTC you wrote “Add the key"), "{}", finding.why);
    assert!(!finding.why.contains(&key), "{}", finding.why);
    assert_eq!((finding.severity, finding.count), (Severity::Error, 2));
    let of = |wanted: fn(&Payload) -> bool| {
        stage.log.iter().filter(|event| wanted(&event.payload)).map(|event| event.id).collect::<Vec<_>>()
    };
    let (prompts, results) =
        (of(|it| matches!(it, Payload::UserPrompt(_))), of(|it| matches!(it, Payload::ToolResult(_))));
    assert_eq!(finding.key, format!("boundary:{}:0", prompts[0]));
    assert_eq!(finding.evidence, [prompts[0], results[0], results[1]]);
    stage.say(&Line::new(60_000, UserPrompt { stated: true, ..UserPrompt::default() }).text("why did you do that"));
    assert!(!stage.is_open(FindingKind::Boundary), "a new prompt ends the finding");
    let later = ToolCall {
        call_id: "again".into(),
        name: "Bash".into(),
        tool: ToolKind::Execute,
        title: Some("git push".into()),
        ..ToolCall::default()
    };
    stage.say(&Line::new(61_000, later));
    let result = ToolResult { call_id: "again".into(), exit_code: Some(0), ..ToolResult::default() };
    stage.say(&Line::new(62_000, result));
    assert!(stage.is_open(FindingKind::Boundary), "the boundary is still open");
}

#[test]
fn a_call_that_the_person_allowed_is_no_breach() {
    let call = |id: &str| ToolCall {
        call_id: id.into(),
        name: "Bash".into(),
        tool: ToolKind::Execute,
        title: Some("git push".into()),
        ..ToolCall::default()
    };
    let result = |id: &str| ToolResult { call_id: id.into(), exit_code: Some(0), ..ToolResult::default() };
    for (by, is_breach) in [(DecidedBy::Person, false), (DecidedBy::Policy, true), (DecidedBy::Grant, true)] {
        let prompt = Step { prompt: Some("Fix it, but don't push.".to_owned()), ..Step::default() };
        let mut stage = played(&[prompt]);
        let asked = ApprovalRequested {
            approval_id: "a1".to_owned().into(),
            call_id: Some("c1".into()),
            command: Some("git push".into()),
            ..ApprovalRequested::default()
        };
        let allowed = ApprovalResolved {
            approval_id: "a1".to_owned().into(),
            allowed: Some(true),
            by: Some(by),
            ..ApprovalResolved::default()
        };
        stage.say(&Line::new(10_000, call("c1")));
        stage.say(&Line::new(10_001, asked));
        stage.say(&Line::new(10_002, allowed));
        stage.say(&Line::new(12_000, result("c1")));
        assert_eq!(stage.is_open(FindingKind::Boundary), is_breach, "{by:?}");
    }
}

#[test]
fn an_answer_to_the_agents_question_lifts_what_it_names() {
    let question = r#"User has answered your questions: "Push now?"="ANSWER". You can now continue."#;
    for (prompt, tool, answer, is_breach) in [
        ("Ask me before you push.", ToolKind::Question, question.replace("ANSWER", "Yes"), false),
        ("Ask me before you push.", ToolKind::Question, question.replace("ANSWER", "No, not yet"), true),
        ("Ask me before you push.", ToolKind::Question, "\"Which colour?\"=\"Blue\"".to_owned(), true),
        ("Ask me before you push.", ToolKind::Plan, "User has approved your plan.".to_owned(), true),
        ("Ask me before you push.", ToolKind::Read, "push yes".to_owned(), true),
    ] {
        let mut stage = played(&[Step { prompt: Some(prompt.to_owned()), ..Step::default() }]);
        for (at, id, name, tool, title) in
            [(10_000, "q", "Ask", tool, None), (20_000, "p", "Bash", ToolKind::Execute, Some("git push".to_owned()))]
        {
            let call = ToolCall { call_id: id.into(), name: name.into(), tool, title, ..ToolCall::default() };
            stage.say(&Line::new(at, call));
            let result =
                ToolResult { call_id: id.into(), exit_code: (id == "p").then_some(0), ..ToolResult::default() };
            stage.say(&Line::new(at + 500, result).text(if id == "q" { &answer } else { "" }));
        }
        assert_eq!(stage.is_open(FindingKind::Boundary), is_breach, "{answer}");
    }
    let plan = Step { prompt: Some("Don't change anything until I approve the plan.".to_owned()), ..Step::default() };
    let mut stage = played(&[plan]);
    let call = ToolCall { call_id: "q".into(), name: "Plan".into(), tool: ToolKind::Plan, ..ToolCall::default() };
    stage.say(&Line::new(10_000, call));
    let result = ToolResult { call_id: "q".into(), ..ToolResult::default() };
    stage.say(&Line::new(11_000, result).text("User has approved your plan."));
    let edit = ToolCall {
        call_id: "e".into(),
        name: "Edit".into(),
        tool: ToolKind::Edit,
        title: Some("/home/u/app/a.rs".into()),
        ..ToolCall::default()
    };
    stage.say(&Line::new(20_000, edit));
    stage.say(&Line::new(21_000, ToolResult { call_id: "e".into(), ..ToolResult::default() }));
    assert!(!stage.is_open(FindingKind::Boundary));
}

#[test]
fn a_command_of_the_person_lifts_what_its_name_says() {
    for (command, is_breach) in [("/commit-push-pr", false), ("/push", false), ("/compact", true)] {
        let steps = [
            Step { prompt: Some("Don't push.".to_owned()), ..Step::default() },
            Step { prompt: Some(command.to_owned()), origin: Some(PromptOrigin::Command), ..Step::default() },
            Step { run: Some("git push".to_owned()), ..Step::default() },
        ];
        assert_eq!(played(&steps).is_open(FindingKind::Boundary), is_breach, "{command}");
    }
}

#[test]
fn a_named_path_begins_in_the_workspace() {
    for (prompt, file, is_breach) in [
        ("Don't touch src/parser.rs.", "src/parser.rs", true),
        ("Don't touch src/parser.rs.", "vendor/x/src/parser.rs", false),
        ("Don't touch parser.rs.", "src/parser.rs", true),
        ("Never edit config/.", "config/a.toml", true),
        ("Never edit config/.", "src/config/a.toml", false),
    ] {
        let steps = [
            Step { prompt: Some(prompt.to_owned()), ..Step::default() },
            Step { edit: Some(format!("/home/u/app/{file}")), ..Step::default() },
        ];
        assert_eq!(played(&steps).is_open(FindingKind::Boundary), is_breach, "{prompt} {file}");
    }
}

#[test]
fn git_may_be_named_without_backticks() {
    for prompt in ["Don't git push.", "Don't run git push.", "Please don't do a git push.", "Never git push."] {
        let steps = [
            Step { prompt: Some(prompt.to_owned()), ..Step::default() },
            Step { run: Some("git push".to_owned()), ..Step::default() },
        ];
        assert!(played(&steps).is_open(FindingKind::Boundary), "{prompt}");
    }
}

fn words() -> impl Strategy<Value = String> {
    let word = proptest::sample::select(vec![
        "don't",
        "do not",
        "never",
        "push",
        "commit",
        "or",
        "and",
        ",",
        ".",
        "\n",
        ":",
        "without",
        "pushing",
        "before",
        "you",
        "ask me",
        "until",
        "I",
        "say so",
        "`git push`",
        "`",
        "\"",
        "'x",
        "“",
        "```\n",
        "> ",
        "src/**/*.rs",
        "touch",
        "to",
        "main",
        "(",
        "-",
        "no",
        "…",
        "if",
        "a.rs",
        "leave",
        "alone",
        "read-only",
        "é",
        "\u{200b}",
        "only",
        "when",
        "the",
        "?",
        "$(",
        "<a>",
        "**",
        "/",
    ]);
    proptest::collection::vec(word, 0..60).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn no_prompt_and_no_command_panics(prompt in words(), any in ".{0,200}", command in words()) {
        let step = |text: &str| Step { prompt: Some(text.to_owned()), ..Step::default() };
        let run = |line: &str| Step { run: Some(line.to_owned()), ..Step::default() };
        let stage = played(&[step("don't push"), step(&prompt), step(&any), run(&command), run(&any), run("git push")]);
        prop_assert!(stage.monitor.memory_size() < 1_000);
    }
}

#[test]
fn long_prompts_and_commands_do_not_take_long() {
    let parts = [
        "don't push ",
        "'x ",
        "a: ",
        "“a” ",
        "` ",
        "no ",
        "don't touch src/**/a/**/b.rs, ",
        "- never push\n",
        "and ",
        "a/",
        "(",
        "<a>\n",
        "…",
    ];
    let mut texts: Vec<String> = parts.iter().map(|part| part.repeat(200_000 / part.len())).collect();
    texts.push("don't touch src/a/**/b/**/c.rs".to_owned());
    let mut stage = Stage::new();
    for (number, text) in texts.iter().enumerate() {
        // The event of a long text contains its ends only, so the reader is called with the whole text too.
        stage.say(&Line::new(number as i64, UserPrompt { stated: true, ..UserPrompt::default() }).text(text));
        let mut event = stage.log.last().unwrap().clone();
        event.text = Some(text.clone());
        event.payload = UserPrompt { stated: true, ..UserPrompt::default() }.into();
        let mut boundaries = Boundaries::default();
        boundaries.apply(&event);
        let files = vec![text.clone(), format!("/a/{text}")];
        for command in [text.clone(), format!("rm {text}")] {
            let request =
                BoundaryRequest { command: Some(&command), files: &files, cwd: Some("/a"), began_in: Some("/a") };
            let _ = boundaries.broken_by(&request);
        }
    }
    // Exponential time would exceed the time limit of the test.
    assert!(stage.log.len() > texts.len());
}
