//! Approvals with real agents: decided by the user's policy, or by the user at another terminal (through the agent's
//! hook or by keys) or at the agent's own. Each is judged by the agent's actions, by the results its model received,
//! and by capture's reports.

use events::{
    Provider::{self, Claude, Codex, Gemini},
    Reason, State,
};
use serde_json::Value;

use super::{
    Agent, Hooks, Key, MAKE, QUESTION, Setting, claude,
    scenarios::{ASK, GO_ON, Scenario, WORK, asks, questions, to_the_call, to_the_dialog, to_the_end},
    stage::{
        Played, Stage,
        decisions::{Ends, moment},
    },
};
use crate::models::{
    AnswerProgress,
    script::{Part, Script, Step, call, hold},
};

/// How often the policy is evaluated.
pub(super) const TIMES: usize = 20;

pub(super) const ALLOWS: &str = r#"version = 1
preset = "read-only"
[[rule]]
name = "files"
decision = "allow"
command = ["touch", "*"]
"#;

const DENIES: &str = r#"version = 1
preset = "read-only"
[[rule]]
name = "no files"
decision = "deny"
command = ["touch"]
reason = "Files are made by hand."
"#;
/// The reason given to the model on a denial.
const REASON: &str = "Files are made by hand.";

const READS: &str = "version = 1\npreset = \"read-only\"\n";

const fn of_policy(policy: &'static str) -> Setting {
    Setting { policy: Some(policy), ..Setting::new("policy", Hooks::Wait(0)) }
}

const ALLOWING: &[Setting] = &[of_policy(ALLOWS)];
const DENYING: &[Setting] = &[of_policy(DENIES)];
const REWRITING: &[Setting] = &[Setting { git: true, ..of_policy(READS) }];
/// The hook waits for the user.
const HOLD: Setting = Setting { policy: Some(READS), ..Setting::new("hold", Hooks::Wait(60)) };
const HOLDING: &[Setting] = &[HOLD];
/// The same without `capture run`, where capture does not see the screen.
const HOLDING_ALSO_ALONE: &[Setting] = &[HOLD, Setting { name: "alone", run: false, ..HOLD }];
const PLANNING: &[Setting] = &[Setting { plans: true, ..HOLD }];
const BY_KEYS: &[Setting] = &[Setting::new("none", Hooks::None), Setting::new("hooks", Hooks::Tell), of_policy(READS)];

/// All scenarios of this module.
pub const ALL: [Scenario; 12] = [
    of("policy-allows", &[Claude, Codex], ALLOWING, makes_many, policy_allows),
    of("policy-denies", &[Claude, Codex, Gemini], DENYING, makes_many, policy_denies),
    of("policy-rewrites", &[Claude], REWRITING, looks_many, policy_rewrites),
    of("hook-approve", &[Claude, Codex], HOLDING_ALSO_ALONE, asks, hook_approve),
    of("hook-deny", &[Claude, Codex], HOLDING_ALSO_ALONE, asks, hook_deny),
    of("hook-answer", &[Claude], HOLDING, questions, hook_answer),
    of("hook-plan", &[Claude], PLANNING, plans, hook_plan),
    of("hook-no-plan", &[Claude], PLANNING, plans_nothing, hook_no_plan),
    of("hook-late", &[Claude], HOLDING, asks, hook_late),
    of("hook-session", &[Claude, Codex], HOLDING, makes_again, hook_session),
    of("keys-approve", &[Claude, Codex, Gemini], BY_KEYS, asks, keys_approve),
    of("keys-deny", &[Claude, Codex, Gemini], BY_KEYS, asks, keys_deny),
];

const fn of(
    name: &'static str,
    agents: &'static [Provider],
    settings: &'static [Setting],
    script: fn(&dyn Agent) -> Script,
    play: fn(&mut Stage) -> Played,
) -> Scenario {
    Scenario { name, agents, settings, script, play }
}

const MADE: &str = "made";
/// Words told to the model: before it repeats the call, and before it makes another.
const AGAIN: &str = "again";
const OTHERWISE: &str = "otherwise";
const WORDS: &str = "Make it with a template.";

fn by_policy(state: &'static str, outcome: &'static str) -> Ends {
    Ends { state, by: "policy", via: "hook", outcome }
}

fn by_person(state: &'static str, via: &'static str, outcome: &'static str) -> Ends {
    Ends { state, by: "person", via, outcome }
}

/// Many calls, one after another, each with a different command.
fn many(agent: &dyn Agent, line: fn(usize) -> String) -> Script {
    let mut steps = vec![Step::Answer(vec![Part::Until(ASK.to_owned()), Part::Call(agent.command(&line(0)))])];
    steps.extend((1..TIMES).map(|at| call(agent.command(&line(at)))));
    steps.push(hold("I am looking at it, ", GO_ON, "and it is done."));
    Script::default().lane(WORK, steps)
}

pub(super) fn makes_many(agent: &dyn Agent) -> Script {
    many(agent, |at| format!("touch {}", made(at)))
}

fn looks_many(agent: &dyn Agent) -> Script {
    many(agent, |_| claude::ASKED.to_owned())
}

pub(super) fn made(at: usize) -> String {
    format!("made-{at}")
}

/// The same call twice, then a different one.
fn makes_again(agent: &dyn Agent) -> Script {
    let after = |word: &str, line: &str| {
        Step::Answer(vec![Part::Say("Now. ".to_owned()), Part::Until(word.to_owned()), Part::Call(agent.command(line))])
    };
    let steps =
        [after(ASK, MAKE), after(AGAIN, MAKE), after(OTHERWISE, "touch other"), hold("Looking, ", GO_ON, "done.")];
    Script::default().lane(WORK, steps)
}

fn plans(_: &dyn Agent) -> Script {
    let begins = Step::Answer(vec![Part::Until(ASK.to_owned()), Part::Call(claude::write_plan())]);
    Script::default().lane(WORK, [begins, call(claude::show_plan()), hold("I begin, ", GO_ON, "and it is done.")])
}

/// The plan is shown although it was never written.
fn plans_nothing(_: &dyn Agent) -> Script {
    let begins = Step::Answer(vec![Part::Until(ASK.to_owned()), Part::Call(claude::show_plan())]);
    Script::default().lane(WORK, [begins, hold("I begin, ", GO_ON, "and it is done.")])
}

/// Lets the model make all its calls, and waits until it received all results.
fn calls_many(stage: &mut Stage) -> Played {
    to_the_call(stage)?;
    stage.calls(TIMES);
    for at in 1..=TIMES {
        stage.goes_on_by_itself(WORK, at)?;
    }
    to_the_end(stage, TIMES)
}

/// When the model received the result of a call, ms.
fn told_at(stage: &mut Stage, call: usize) -> Played<i64> {
    stage.model_did(WORK, call + 1, AnswerProgress::Asked)
}

/// When permission for a call was requested: as reported by capture, otherwise when the model made the call.
fn asked_at(stage: &Stage, approvals: &[Value], at: usize) -> i64 {
    approvals.get(at).and_then(|approval| moment(approval, "opened_at")).unwrap_or_else(|| stage.said_at(WORK, at))
}

fn policy_allows(stage: &mut Stage) -> Played {
    calls_many(stage)?;
    stage.approvals_end(&[by_policy("allowed", "ok"); TIMES])?;
    let (approvals, _) = stage.requests();
    for at in 0..TIMES {
        let arrived = stage.is_made(&made(at))?;
        stage.took(asked_at(stage, &approvals, at), None, arrived);
    }
    stage.was_never_asked();
    Ok(())
}

fn policy_denies(stage: &mut Stage) -> Played {
    calls_many(stage)?;
    if stage.agent.provider() == Gemini {
        // The hook runs before any question: no approval opens, and every refusal is recorded.
        stage.approvals_end(&[])?;
        let recorded = stage.recorded()?;
        stage.holds(recorded == ["forbidden"; TIMES], || format!("recorded is {recorded:?}"));
    } else {
        stage.approvals_end(&[by_policy("denied", "blocked"); TIMES])?;
    }
    let (approvals, _) = stage.requests();
    for at in 0..TIMES {
        let arrived = told_at(stage, at)?;
        stage.took(asked_at(stage, &approvals, at), None, arrived);
        stage.model_was_told(WORK, at, REASON);
        stage.holds(stage.made(&made(at)).is_none(), || format!("{} was made", made(at)));
    }
    stage.was_never_asked();
    Ok(())
}

fn policy_rewrites(stage: &mut Stage) -> Played {
    calls_many(stage)?;
    stage.approvals_end(&[by_policy("allowed", "ok"); TIMES])?;
    let (approvals, _) = stage.requests();
    let calls = stage.git_calls();
    let unquoted = |approval: &Value| approval["rewrite"].as_str().map(|line| line.replace('\'', ""));
    let rewrite = approvals.first().and_then(unquoted).unwrap_or_default();
    let safe: Vec<i64> =
        calls.iter().filter(|(_, words)| rewrite.ends_with(&format!(" git {words}"))).map(|(at, _)| *at).collect();
    stage.holds(safe.len() == TIMES, || format!("{} of {TIMES} ran in the safe form, {rewrite:?}", safe.len()));
    let plain = calls.iter().filter(|(_, words)| words == "status").count();
    stage.holds(plain == 0, || format!("{plain} ran as they were asked for"));
    for (at, ran) in safe.into_iter().enumerate() {
        stage.took(asked_at(stage, &approvals, at), None, ran);
        stage.model_was_told(WORK, at, "On branch");
    }
    stage.was_never_asked();
    Ok(())
}

/// Plays up to the approval for which a hook waits; returns the approval and the time of the request, ms.
fn to_the_hook(stage: &mut Stage) -> Played<(Value, i64)> {
    to_the_call(stage)?;
    is_held(stage)
}

/// The hook waits for the user: Claude Code shows its dialog at the same time, Codex shows none.
fn is_held(stage: &mut Stage) -> Played<(Value, i64)> {
    let approval = if stage.agent.provider() == Claude {
        stage.sees_dialog()?;
        stage.waits_for("hook")?
    } else {
        stage.calls(1);
        let approval = stage.is_held(Reason::Tool)?;
        stage.was_never_asked();
        approval
    };
    let asked = moment(&approval, "opened_at").ok_or_else(|| format!("it was opened at no time: {approval}"))?;
    Ok((approval, asked))
}

/// From the user's decision to the work that continues because of it.
fn goes_on(stage: &mut Stage, asked: i64, told: i64, arrived: i64) -> Played {
    stage.took(asked, Some(told), arrived);
    stage.is_between(told, arrived, State::Running, None);
    stage.is_said()
}

fn hook_approve(stage: &mut Stage) -> Played {
    let (approval, asked) = to_the_hook(stage)?;
    let told = stage.decides("approve", &approval, &[])?;
    let arrived = stage.is_made(MADE)?;
    goes_on(stage, asked, told, arrived)?;
    to_the_end(stage, 1)?;
    stage.approvals_end(&[by_person("allowed", "hook", "ok")])
}

fn hook_deny(stage: &mut Stage) -> Played {
    let (approval, asked) = to_the_hook(stage)?;
    let told = stage.decides("deny", &approval, &["--message", WORDS])?;
    let arrived = told_at(stage, 0)?;
    goes_on(stage, asked, told, arrived)?;
    to_the_end(stage, 1)?;
    stage.model_was_told(WORK, 0, WORDS);
    stage.holds(stage.made(MADE).is_none(), || "it was done all the same".to_owned());
    stage.approvals_end(&[by_person("denied", "hook", "blocked")])
}

fn hook_answer(stage: &mut Stage) -> Played {
    to_the_call(stage)?;
    stage.calls(1);
    let drawn = stage.sees(&regex::escape(QUESTION))?;
    stage.is_since(drawn, State::Waiting, Some(Reason::Question));
    stage.is_said()?;
    let approval = stage.waits_for("hook")?;
    stage.stays()?;
    let asked = moment(&approval, "opened_at").unwrap_or(drawn);
    let told = stage.decides("approve", &approval, &["--answer", "Blue"])?;
    let arrived = told_at(stage, 0)?;
    goes_on(stage, asked, told, arrived)?;
    to_the_end(stage, 1)?;
    stage.model_was_told(WORK, 0, "Blue");
    stage.approvals_end(&[by_person("allowed", "hook", "ok")])
}

fn hook_plan(stage: &mut Stage) -> Played {
    plan(stage, 1, r"Would you like to proceed\?|Ready to code\?")
}

/// A plan without text cannot be returned to the agent: capture reports that, and the agent's own dialog stays open for
/// the user.
fn hook_no_plan(stage: &mut Stage) -> Played {
    to_the_call(stage)?;
    stage.calls(1);
    let drawn = stage.sees(r"Exit plan mode\?")?;
    stage.is_since(drawn, State::WaitingApproval, Some(Reason::Plan));
    stage.is_said()?;
    let approval = stage.waits_for("hook")?;
    let (status, printed) = stage.capture(&["approve", approval["id"].as_str().unwrap_or_default()])?;
    let refused = status == Some(5) && printed.contains("answer in the agent itself");
    stage.holds(refused, || format!("capture approve ends with {status:?}: {}", printed.trim()));
    stage.stays()
}

/// The plan is shown by the call number `shows` and approved.
fn plan(stage: &mut Stage, shows: usize, shown: &str) -> Played {
    to_the_call(stage)?;
    stage.calls(shows + 1);
    let drawn = stage.sees(shown)?;
    stage.is_since(drawn, State::WaitingApproval, Some(Reason::Plan));
    stage.is_said()?;
    let approval = stage.waits_for("hook")?;
    stage.stays()?;
    let asked = moment(&approval, "opened_at").unwrap_or(drawn);
    let told = stage.decides("approve", &approval, &[])?;
    let arrived = told_at(stage, shows)?;
    goes_on(stage, asked, told, arrived)?;
    to_the_end(stage, shows + 1)?;
    stage.model_was_told(WORK, shows, "approved");
    stage.approvals_end(&[by_person("allowed", "hook", "ok")])
}

/// The user answers at the agent's terminal first.
fn hook_late(stage: &mut Stage) -> Played {
    let (_, asked) = to_the_hook(stage)?;
    let pressed = super::stage::now();
    stage.presses(Key::Approve, State::Running, None)?;
    stage.is_made(MADE)?;
    let gone = stage.hook_is_gone()?;
    stage.took(asked, Some(pressed), gone);
    to_the_end(stage, 1)?;
    stage.approvals_end(&[Ends { state: "answered_elsewhere", by: "", via: "", outcome: "ok" }])
}

/// The same call is allowed by the first decision, and no other call is.
fn hook_session(stage: &mut Stage) -> Played {
    let (approval, asked) = to_the_hook(stage)?;
    let told = stage.decides("approve", &approval, &["--scope", "session"])?;
    let arrived = stage.is_made(MADE)?;
    goes_on(stage, asked, told, arrived)?;
    stage.model_did(WORK, 1, AnswerProgress::Began)?;
    std::fs::remove_file(stage.machine.project().join(MADE)).map_err(|error| error.to_string())?;
    stage.calls(1);
    stage.model.tell(AGAIN);
    stage.is_made(MADE)?;
    stage.model_did(WORK, 2, AnswerProgress::Began)?;
    stage.stays()?;
    stage.model.tell(OTHERWISE);
    let (approval, asked) = is_held(stage)?;
    let told = stage.decides("deny", &approval, &[])?;
    let arrived = told_at(stage, 2)?;
    goes_on(stage, asked, told, arrived)?;
    to_the_end(stage, 3)?;
    stage.holds(stage.made("other").is_none(), || "the other was done all the same".to_owned());
    let granted = Ends { by: "grant", ..by_person("allowed", "hook", "ok") };
    stage.approvals_end(&[by_person("allowed", "hook", "ok"), granted, by_person("denied", "hook", "blocked")])
}

/// Plays up to a dialog that can be answered by keys; returns the approval and the time of the dialog, ms.
fn to_the_keys(stage: &mut Stage) -> Played<(Value, i64)> {
    to_the_dialog(stage)?;
    let drawn = stage.last_began();
    Ok((stage.waits_for("keys")?, drawn))
}

fn keys_approve(stage: &mut Stage) -> Played {
    let (approval, drawn) = to_the_keys(stage)?;
    let told = stage.decides("approve", &approval, &[])?;
    let arrived = stage.is_made(MADE)?;
    goes_on(stage, drawn, told, arrived)?;
    to_the_end(stage, 1)?;
    stage.approvals_end(&[by_person("allowed", "keys", "ok")])
}

fn keys_deny(stage: &mut Stage) -> Played {
    let (approval, drawn) = to_the_keys(stage)?;
    let told = stage.decides("deny", &approval, &[])?;
    let arrived = stage.sees(stage.agent.ready())?;
    stage.took(drawn, Some(told), arrived);
    stage.is_between(told, arrived, State::Waiting, Some(Reason::Denied));
    stage.is_said()?;
    stage.stays()?;
    stage.holds(stage.made(MADE).is_none(), || "it was done all the same".to_owned());
    stage.approvals_end(&[by_person("denied", "keys", "denied")])
}
