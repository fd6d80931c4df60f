//! Owned sessions with real agents: `capture agent drive` speaks with each agent over its own protocol, and the policy
//! or the user decides. Each is judged by the agent's actions, by the results its model received, by capture's reports
//! of each approval, and by whether the agent ends with its turn.

use events::Provider::{Claude, Codex, Gemini};

use super::{
    Hooks, MAKE, Setting,
    approvals::{ALLOWS, TIMES, made, makes_many},
    scenarios::{ASK, GO_ON, Scenario, WORK, asks},
    stage::{
        Played, Stage,
        decisions::{Ends, moment},
    },
};
use crate::models::AnswerProgress;

const OWNED: Setting = Setting { run: false, owned: true, ..Setting::new("owned", Hooks::None) };
const BY_POLICY: &[Setting] = &[Setting { policy: Some(ALLOWS), ..OWNED }];
const BY_PEOPLE: &[Setting] = &[OWNED];
/// With hooks that would ask as well.
const HOOKED: &[Setting] = &[Setting { name: "hooked", hooks: Hooks::Wait(60), ..OWNED }];

/// All scenarios of this module.
pub const ALL: [Scenario; 4] = [
    Scenario { name: "drive-policy", agents: ALL_AGENTS, settings: BY_POLICY, script: makes_many, play: policy },
    Scenario { name: "drive-approve", agents: ALL_AGENTS, settings: BY_PEOPLE, script: asks, play: approve },
    Scenario { name: "drive-approve", agents: &[Claude], settings: HOOKED, script: asks, play: approve },
    Scenario { name: "drive-deny", agents: ALL_AGENTS, settings: BY_PEOPLE, script: asks, play: deny },
];

const ALL_AGENTS: &[events::Provider] = &[Claude, Codex, Gemini];

fn to_the_call(stage: &mut Stage) -> Played {
    stage.is_driven(WORK)?;
    stage.model.tell(ASK);
    Ok(())
}

fn to_the_end(stage: &mut Stage, step: usize) -> Played {
    stage.model_did(WORK, step, AnswerProgress::Began)?;
    stage.model.tell(GO_ON);
    stage.model_did(WORK, step, AnswerProgress::Ended)?;
    stage.is_over()
}

fn policy(stage: &mut Stage) -> Played {
    to_the_call(stage)?;
    stage.calls(TIMES);
    to_the_end(stage, TIMES)?;
    stage.approvals_end(&[Ends { state: "allowed", by: "policy", via: "protocol", outcome: "ok" }; TIMES])?;
    let (approvals, _) = stage.requests();
    for (at, approval) in approvals.iter().enumerate() {
        let arrived = stage.is_made(&made(at))?;
        let asked = moment(approval, "opened_at").unwrap_or(arrived);
        stage.took(asked, None, arrived);
        stage.holds(approval["exact"] == true, || format!("it is not known whole: {approval}"));
    }
    Ok(())
}

fn approve(stage: &mut Stage) -> Played {
    to_the_call(stage)?;
    stage.calls(1);
    let approval = stage.waits_for("protocol")?;
    let told = stage.decides("approve", &approval, &[])?;
    let arrived = stage.is_made("made")?;
    stage.took(moment(&approval, "opened_at").unwrap_or(told), Some(told), arrived);
    to_the_end(stage, 1)?;
    stage.approvals_end(&[Ends { state: "allowed", by: "person", via: "protocol", outcome: "ok" }])
}

fn deny(stage: &mut Stage) -> Played {
    to_the_call(stage)?;
    // Gemini CLI does not record a call that is refused over ACP.
    stage.calls(usize::from(stage.agent.provider() != Gemini));
    let approval = stage.waits_for("protocol")?;
    let told = stage.decides("deny", &approval, &["--message", "Use a template."])?;
    let arrived = stage.model_did(WORK, 1, AnswerProgress::Asked)?;
    stage.took(moment(&approval, "opened_at").unwrap_or(told), Some(told), arrived);
    let unmade = stage.made("made").is_none();
    stage.holds(unmade, || format!("{MAKE} was done"));
    if stage.agent.provider() == Claude {
        // The protocols of the others cannot transmit a reason.
        stage.model_was_told(WORK, 0, "Use a template.");
    }
    to_the_end(stage, 1)
}
