//! Scenarios played with each agent, and the truth during them. A scenario begins when the agent has been started; the
//! script of its model is defined next to it.

use events::{Provider, Reason, State};

use super::{
    Agent, Hooks, Key, MAKE, QUESTION, Setting,
    stage::{Played, Stage},
};
use crate::models::{
    AnswerProgress,
    script::{Part, Script, Step, hold},
};

/// A scenario.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// The name of the scenario.
    pub name: &'static str,
    /// The agents it is played with.
    pub agents: &'static [Provider],
    /// The settings it is played in.
    pub settings: &'static [Setting],
    /// The script of the model.
    pub script: fn(&dyn Agent) -> Script,
    /// The actions of the scenario.
    pub play: fn(&mut Stage) -> Played,
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The name of the scenario in which the agent asks its user a question.
pub const QUESTION_SCENARIO: &str = "question";

/// The scenarios that test only the status.
pub const ALL: [Scenario; 9] = [
    of_all("approve", asks, approve),
    of_all("silent-command", asks_for_long, approve),
    of_all("deny", asks, deny),
    of_all("deny-later", asks_twice, deny_later),
    of_all("interrupt", works, interrupt),
    of_all("interrupt-command", asks_for_longer, interrupt_command),
    of_all("kill", works, kill),
    of_all("sub-agent", delegates, sub_agent),
    of_all(QUESTION_SCENARIO, questions, question),
];

const fn of_all(name: &'static str, script: fn(&dyn Agent) -> Script, play: fn(&mut Stage) -> Played) -> Scenario {
    const SETTINGS: &[Setting] = &[
        Setting::new("hooks", Hooks::Tell),
        Setting::new("none", Hooks::None),
        // Only observed, like an agent started without capture.
        Setting { run: false, ..Setting::new("observed", Hooks::Tell) },
        // As started by a user who types `codex`.
        Setting { run: false, daemon: true, ..Setting::new("daemon", Hooks::None) },
    ];
    let agents = &[Provider::Claude, Provider::Codex, Provider::Gemini];
    Scenario { name, agents, settings: SETTINGS, script, play }
}

/// The words by which the script recognizes the main conversation and that of the sub-agent.
pub(super) const WORK: &str = "the work that is scripted";
const PART: &str = "the part of it that is delegated";
/// The typed prompt.
pub(super) const PROMPT: &str = "Please do the work that is scripted";
/// Words told to the model.
pub(super) const ASK: &str = "ask";
pub(super) const GO_ON: &str = "go on";
const ASK_LATER: &str = "ask later";
const END_LATER: &str = "end later";
/// The prompts of the turns after the first.
const LATER: &str = "the part that comes later";
const LAST: &str = "the part that comes last";

/// The model works until it is told to call a command; then it works again until it is told to end.
pub(super) fn asks(agent: &dyn Agent) -> Script {
    asks_for(agent, MAKE)
}

/// Like [`asks`], with a command that prints nothing for some seconds.
fn asks_for_long(agent: &dyn Agent) -> Script {
    asks_for(agent, &format!("sleep 4; {MAKE}"))
}

/// Like [`asks`], with a command that lasts until it is stopped.
fn asks_for_longer(agent: &dyn Agent) -> Script {
    asks_for(agent, &format!("sleep 30; {MAKE}"))
}

fn asks_for(agent: &dyn Agent, command: &str) -> Script {
    let parts = vec![
        Part::Say("I am going to make a file. ".to_owned()),
        Part::Until(ASK.to_owned()),
        Part::Call(agent.command(command)),
    ];
    Script::default().lane(WORK, [Step::Answer(parts), hold("I am looking at it, ", GO_ON, "and it is there.")])
}

/// Two turns with one command each, and a further turn.
fn asks_twice(agent: &dyn Agent) -> Script {
    asks(agent)
        .lane(LATER, [Step::Answer(vec![Part::Until(ASK_LATER.to_owned()), Part::Call(agent.command(MAKE))])])
        .lane(LAST, [hold("I leave it, ", END_LATER, "and it is over.")])
}

/// The model works until it is told to end.
fn works(_: &dyn Agent) -> Script {
    Script::default().lane(WORK, [hold("I am at work, ", GO_ON, "and done.")])
}

fn delegates(agent: &dyn Agent) -> Script {
    agent.delegates(WORK, PART, GO_ON)
}

pub(super) fn questions(agent: &dyn Agent) -> Script {
    let parts = vec![Part::Until(ASK.to_owned()), Part::Call(agent.question())];
    Script::default().lane(WORK, [Step::Answer(parts), hold("I take that one, ", GO_ON, "and it is done.")])
}

/// Plays up to the call of the model.
pub(super) fn to_the_call(stage: &mut Stage) -> Played {
    stage.is_ready()?;
    stage.prompts(PROMPT, WORK)?;
    stage.stays()?;
    stage.model.tell(ASK);
    Ok(())
}

/// Plays up to the dialog.
pub(super) fn to_the_dialog(stage: &mut Stage) -> Played {
    to_the_call(stage)?;
    stage.sees_dialog()
}

/// Plays from the model's next answer to the end of the turn.
pub(super) fn to_the_end(stage: &mut Stage, step: usize) -> Played {
    stage.model_did(WORK, step, AnswerProgress::Began)?;
    stage.stays()?;
    stage.model.tell(GO_ON);
    let ended = stage.model_did(WORK, step, AnswerProgress::Ended)?;
    stage.is_since(ended, State::Waiting, Some(Reason::TurnComplete));
    stage.is_said()?;
    stage.stays()
}

fn approve(stage: &mut Stage) -> Played {
    to_the_dialog(stage)?;
    stage.presses(Key::Approve, State::Running, None)?;
    to_the_end(stage, 1)
}

fn deny(stage: &mut Stage) -> Played {
    to_the_dialog(stage)?;
    // The agent works briefly until it has processed the refusal.
    stage.is(State::Running, None);
    stage.presses(Key::Deny, State::Waiting, Some(Reason::Denied))?;
    stage.stays()
}

/// A denial after a turn with a command, followed by another turn: some versions then write earlier messages again.
fn deny_later(stage: &mut Stage) -> Played {
    approve(stage)?;
    stage.prompts("Please do the part that comes later", LATER)?;
    stage.stays()?;
    stage.model.tell(ASK_LATER);
    stage.sees_dialog()?;
    stage.is(State::Running, None);
    stage.presses(Key::Deny, State::Waiting, Some(Reason::Denied))?;
    stage.stays()?;
    stage.prompts("Please do the part that comes last", LAST)?;
    stage.stays()?;
    stage.model.tell(END_LATER);
    let ended = stage.model_did(LAST, 0, AnswerProgress::Ended)?;
    stage.is_since(ended, State::Waiting, Some(Reason::TurnComplete));
    stage.is_said()?;
    stage.stays()
}

fn interrupt(stage: &mut Stage) -> Played {
    stage.is_ready()?;
    stage.prompts(PROMPT, WORK)?;
    stage.stays()?;
    stage.presses(Key::Interrupt, State::Waiting, Some(Reason::Interrupted))?;
    stage.stops(WORK, 0)?;
    stage.stays()
}

/// An allowed command is interrupted while it runs, which counts as no denial.
fn interrupt_command(stage: &mut Stage) -> Played {
    to_the_dialog(stage)?;
    stage.presses(Key::Approve, State::Running, None)?;
    stage.stays()?;
    stage.presses(Key::Interrupt, State::Waiting, Some(Reason::Interrupted))?;
    stage.stays()
}

fn kill(stage: &mut Stage) -> Played {
    stage.is_ready()?;
    stage.prompts(PROMPT, WORK)?;
    stage.stays()?;
    stage.kills()?;
    stage.stays()
}

fn sub_agent(stage: &mut Stage) -> Played {
    stage.is_ready()?;
    stage.prompts(PROMPT, WORK)?;
    stage.calls(stage.agent.calls_to_delegate());
    let rests = stage.model_did(WORK, stage.agent.rests_after(), AnswerProgress::Ended)?;
    let works = stage.model_did(PART, 0, AnswerProgress::Began)?;
    stage.is_since(rests.max(works), State::Running, Some(Reason::Subagents));
    stage.is_said()?;
    stage.stays()?;
    stage.model.tell(GO_ON);
    let ended = stage.model_did(PART, 0, AnswerProgress::Ended)?;
    stage.is_since(ended, State::Running, None);
    let (lane, step) = stage.agent.last_word(WORK);
    let ended = stage.model_did(lane, step, AnswerProgress::Ended)?;
    stage.is_since(ended, State::Waiting, Some(Reason::TurnComplete));
    stage.is_said()?;
    stage.stays()
}

fn question(stage: &mut Stage) -> Played {
    stage.is_ready()?;
    stage.prompts(PROMPT, WORK)?;
    stage.stays()?;
    stage.calls(1);
    stage.model.tell(ASK);
    let drawn = stage.sees(&regex::escape(QUESTION))?;
    stage.is_since(drawn, State::Waiting, Some(Reason::Question));
    stage.is_said()?;
    stage.stays()?;
    stage.presses(Key::Answer, State::Running, None)?;
    to_the_end(stage, 1)
}
