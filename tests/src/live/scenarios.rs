//! What is done with each agent, and what is true meanwhile. A scenario begins when the agent is
//! started; the script of its model is made beside it.

use events::{Provider, Reason, State};

use super::{
    Agent, Hooks, Key, MAKE, QUESTION, Setting,
    stage::{Played, Stage},
};
use crate::models::{
    AnswerProgress,
    script::{Part, Script, Step, hold},
};

/// Something done with an agent.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// With which agents.
    pub agents: &'static [Provider],
    /// In what.
    pub settings: &'static [Setting],
    /// What the model says.
    pub script: fn(&dyn Agent) -> Script,
    /// What is done.
    pub play: fn(&mut Stage) -> Played,
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The name of the one in which the agent asks its user a question.
pub const QUESTION_SCENARIO: &str = "question";

/// Those that are about the status alone.
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
        // Only observed, as an agent that was started without capture.
        Setting { run: false, ..Setting::new("observed", Hooks::Tell) },
        // As whoever types `codex` starts it.
        Setting { run: false, daemon: true, ..Setting::new("daemon", Hooks::None) },
    ];
    let agents = &[Provider::Claude, Provider::Codex, Provider::Gemini];
    Scenario { name, agents, settings: SETTINGS, script, play }
}

/// By which the conversation is known to the script, and the sub-agent's.
pub(super) const WORK: &str = "the work that is scripted";
const PART: &str = "the part of it that is delegated";
/// What is typed.
pub(super) const PROMPT: &str = "Please do the work that is scripted";
/// Said to the model.
pub(super) const ASK: &str = "ask";
pub(super) const GO_ON: &str = "go on";
const ASK_LATER: &str = "ask later";
const END_LATER: &str = "end later";
/// The turns after the first.
const LATER: &str = "the part that comes later";
const LAST: &str = "the part that comes last";

/// It works, and calls a command when it is told to; then works again until it is told.
pub(super) fn asks(agent: &dyn Agent) -> Script {
    asks_for(agent, MAKE)
}

/// The same with a command that writes nothing for some seconds.
fn asks_for_long(agent: &dyn Agent) -> Script {
    asks_for(agent, &format!("sleep 4; {MAKE}"))
}

/// The same with one that lasts until it is stopped.
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

/// Two turns with a command each, and one after them.
fn asks_twice(agent: &dyn Agent) -> Script {
    asks(agent)
        .lane(LATER, [Step::Answer(vec![Part::Until(ASK_LATER.to_owned()), Part::Call(agent.command(MAKE))])])
        .lane(LAST, [hold("I leave it, ", END_LATER, "and it is over.")])
}

/// It works until it is told.
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

/// Up to what the model calls.
pub(super) fn to_the_call(stage: &mut Stage) -> Played {
    stage.is_ready()?;
    stage.prompts(PROMPT, WORK)?;
    stage.stays()?;
    stage.model.tell(ASK);
    Ok(())
}

/// Up to the dialog.
pub(super) fn to_the_dialog(stage: &mut Stage) -> Played {
    to_the_call(stage)?;
    stage.sees_dialog()
}

/// From the model's going on to the end of the turn.
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
    // It works for a moment, until it has taken the refusal in.
    stage.is(State::Running, None);
    stage.presses(Key::Deny, State::Waiting, Some(Reason::Denied))?;
    stage.stays()
}

/// A denial after a turn with a command, and a turn after it: some versions write earlier messages again then.
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

/// An allowed command that runs is stopped: that denies nothing.
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
