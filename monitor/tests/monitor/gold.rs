//! Labelled sets of `fixtures/advisor`: what the monitor must say, and where it must stay silent.

use std::{collections::BTreeMap, path::Path};

use events::{ClaimCheck, Payload, ToolCall, ToolKind, ToolOutcome, ToolResult};
use serde::Deserialize;
use serde_json::json;

use crate::{
    script::{End, Script},
    stage::{Line, Stage},
};

/// A turn with the agent's last message, and the verdict on one of its statements.
#[derive(Debug, Deserialize)]
struct ClaimCase {
    id: String,
    pair: String,
    prompt: String,
    steps: Vec<Step>,
    said: String,
    expect: Expected,
    licence: String,
    source: String,
}

#[derive(Debug, Deserialize)]
struct Expected {
    about: Option<String>,
    verdict: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Step {
    Run {
        run: String,
        exit: i32,
        output: String,
    },
    Edit {
        edit: String,
        #[serde(default)]
        failed: bool,
    },
    Read {
        read: String,
    },
    Denied {
        denied: String,
    },
    Todo {
        todo: Vec<(String, String)>,
    },
    Background {
        background: String,
    },
    Mcp {
        mcp: String,
        output: String,
    },
    Subagent {
        subagent: String,
        output: String,
    },
}

fn lines(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/advisor").join(name);
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

/// Plays the turn and returns the statements of its receipt.
fn played(case: &ClaimCase) -> Vec<ClaimCheck> {
    let mut s = Script::new(1);
    s.prompt(&case.prompt);
    for step in &case.steps {
        play(&mut s, step);
    }
    s.answer(&case.said);
    let mut stage = Stage::played(&s.lines);
    stage.until(s.at + 5_000);
    let receipts = stage.log.iter().filter_map(|event| match &event.payload {
        Payload::TurnCompleted(completed) => Some(completed.receipt.claims.clone()),
        _ => None,
    });
    let mut receipts: Vec<_> = receipts.collect();
    assert_eq!(receipts.len(), 1, "{}", case.id);
    receipts.remove(0)
}

fn play(s: &mut Script, step: &Step) {
    match step {
        Step::Run { run, exit, output } => {
            s.run(run, 5, if *exit == 0 { End::Ok } else { End::Failed(*exit) }, output);
        }
        Step::Edit { edit, failed: false } => s.edit(edit, "old", "new"),
        Step::Edit { edit, failed: true } => {
            let id = s.call("Edit", ToolKind::Edit, edit, &json!({ "file_path": edit }).to_string());
            s.returns(&id, End::Failed(1), "String to replace not found in file.");
        }
        Step::Read { read } => s.read(read, End::Ok, "text"),
        Step::Denied { denied } => {
            let id = s.call("Bash", ToolKind::Execute, denied, &json!({ "command": denied }).to_string());
            let result =
                ToolResult { call_id: id, outcome: ToolOutcome::Denied, exit_code: None, ..ToolResult::default() };
            s.put(Line::new(0, result).text("The user does not want to proceed."));
        }
        Step::Todo { todo } => {
            let item = |(content, status): &(String, String)| json!({ "content": content, "status": status });
            let input = json!({ "todos": todo.iter().map(item).collect::<Vec<_>>() });
            let id = s.call("TodoWrite", ToolKind::Other, "to-do list", &input.to_string());
            s.returns(&id, End::Ok, "Todos have been modified.");
        }
        Step::Background { background } => {
            let call = ToolCall {
                call_id: format!("b{}", s.lines.len()),
                name: "Bash".into(),
                tool: ToolKind::Execute,
                title: Some(background.clone()),
                background: true,
                ..ToolCall::default()
            };
            s.put(Line::new(0, call).text(&json!({ "command": background }).to_string()));
        }
        Step::Mcp { mcp, output } => {
            let id = s.call(mcp, ToolKind::Mcp, mcp, "{}");
            s.returns(&id, End::Ok, output);
        }
        Step::Subagent { subagent, output } => {
            let id = s.call("Task", ToolKind::Subagent, subagent, &json!({ "prompt": subagent }).to_string());
            s.returns(&id, End::Ok, output);
        }
    }
}

fn accuses(verdict: &str) -> bool {
    matches!(verdict, "stale" | "contradicted" | "unsupported")
}

/// Prints the wrong ones. An accusation must be right in 98 % of the cases, and 70 % of them must be found.
#[test]
fn statements_of_the_labelled_pairs_are_judged() {
    let cases: Vec<ClaimCase> = lines("claims.jsonl").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut wrong = Vec::new();
    let (mut accused, mut rightly, mut guilty, mut exact) = (0, 0, 0, 0);
    let mut pairs: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
    for case in &cases {
        assert!(!case.licence.is_empty() && !case.source.is_empty(), "{}", case.id);
        let claims = played(case);
        let about = case.expect.about.as_deref();
        let name = |claim: &ClaimCheck| serde_json::to_value(claim.about).unwrap().as_str().unwrap().to_owned();
        let of_case = claims.iter().find(|claim| Some(name(claim).as_str()) == about);
        let verdict = of_case.map_or("none", |claim| claim.verdict.as_str());
        let others = claims.iter().filter(|claim| Some(name(claim).as_str()) != about);
        let others: Vec<_> = others.filter(|claim| claim.verdict.accuses()).collect();
        pairs.entry(&case.pair).or_default().push((&case.expect.verdict, verdict.to_owned()));
        guilty += usize::from(accuses(&case.expect.verdict));
        accused += usize::from(accuses(verdict)) + others.len();
        rightly += usize::from(accuses(verdict) && accuses(&case.expect.verdict));
        exact += usize::from(verdict == case.expect.verdict);
        if verdict != case.expect.verdict || !others.is_empty() {
            let why = of_case.map(|claim| claim.why.as_str()).unwrap_or_default();
            let accuses_others: Vec<_> = others.iter().map(|claim| (&claim.said, claim.verdict, &claim.why)).collect();
            wrong.push(format!(
                "{} {about:?}: {} expected, {verdict} ({why}) {accuses_others:?}",
                case.id, case.expect.verdict
            ));
        }
    }
    let flipped = pairs.values().filter(|sides| sides.iter().all(|(expected, verdict)| expected == verdict)).count();
    println!("{}", wrong.join("\n"));
    println!("{exact} of {} exact; pairs {flipped} of {}", cases.len(), pairs.len());
    println!("accusations: {rightly} of {accused} right, {rightly} of {guilty} found");
    assert!(rightly * 100 >= accused * 98, "{rightly} of {accused} accusations are right");
    assert!(rightly * 100 >= guilty * 70, "{rightly} of {guilty} accusations are found");
}
