//! Runs automatic actions on findings. Only actions that the user's configuration names explicitly are run. An action
//! is at most an interrupt, a queued prompt or a note; for capture's own agent also a message into the running turn, a
//! pause or limits. Without a rule, nothing is done.

use api::steering::{OutcomeKind, SessionCommand};
use events::{Finding, SessionId, State};
use home::{
    clock,
    config::{Action, ActionKind},
};
use host_protocol::frame::CommandOrigin;
use ingest::{DerivedKind, DerivedRecord, IngestHandle, IngestInput};
use live_view::RunTarget;
use projections::Session;
use store::Reader;

use crate::{automatic_prompts::AutomaticPrompts, prompts::Prompts, runs::Runs};

/// Carries out the user's rules.
pub struct Actions {
    /// The rules.
    pub rules: Vec<Action>,
    /// The runs, whose agents can be interrupted.
    pub runs: Runs,
    /// The prompt queue.
    pub prompts: Prompts,
    /// Ingest, which records the actions.
    pub inputs: IngestHandle,
    /// The runtime for asynchronous work.
    pub runtime: tokio::runtime::Handle,
    /// Limits for the prompts of rules.
    pub automatic: AutomaticPrompts,
}

impl Actions {
    /// Runs the actions for a finding.
    pub fn on(&mut self, finding: &Finding, reader: &Reader) {
        if self.rules.is_empty() {
            return;
        }
        let session = match reader.session(finding.session_id) {
            Ok(Some(session)) => session,
            Ok(None) => return,
            Err(error) => {
                return tracing::warn!(%error, "cannot read the session of a finding; its actions are \
                skipped");
            }
        };
        let rules: Vec<Action> = self.rules.iter().filter(|rule| is_for(rule, finding, &session)).cloned().collect();
        for rule in rules {
            let prompts = match rule.kind {
                ActionKind::Queue | ActionKind::Steer => true,
                ActionKind::Interrupt | ActionKind::Note | ActionKind::Pause | ActionKind::Limit => false,
            };
            if prompts && let Err(why) = self.automatic.admit(session.id, &finding.id, clock::now(), reader) {
                let (action, what) = (rule.kind.name(), &finding.what);
                self.inputs
                    .send(note(
                        session.id,
                        format!("the action `{action}` of a rule was not performed ({what}): {why}"),
                    ))
                    .ok();
                continue;
            }
            match (rule.kind, &rule.text) {
                (ActionKind::Interrupt, _) => self.interrupt(&session, finding),
                (ActionKind::Queue, Some(text)) => {
                    self.prompts.suggest(session.id, text.clone());
                }
                (ActionKind::Note, Some(text)) => {
                    self.inputs.send(note(session.id, text.clone())).ok();
                }
                (ActionKind::Steer, Some(text)) => {
                    self.command(&session, finding, SessionCommand::Steer { text: text.clone() });
                }
                (ActionKind::Pause, _) => self.command(&session, finding, SessionCommand::Pause),
                (ActionKind::Limit, _) => {
                    let limits = rule.limits.unwrap_or_default();
                    self.command(&session, finding, SessionCommand::Limit { limits });
                }
                (ActionKind::Queue | ActionKind::Note | ActionKind::Steer, None) => {}
            }
        }
    }

    /// Sends a command to a session of capture's own agent and records the outcome as a note. Other agents do not
    /// accept such commands; this is noted too.
    fn command(&self, session: &Session, finding: &Finding, command: SessionCommand) {
        let (runs, inputs, id) = (self.runs.clone(), self.inputs.clone(), session.id);
        let (what, name) = (finding.what.clone(), command.name());
        let by = CommandOrigin::Monitor { finding: finding.id.to_string() };
        self.runtime.spawn(async move {
            let said = match runs.command(id, command, by).await {
                Ok(taken) => match taken.outcome.map(|outcome| outcome.outcome) {
                    Some(OutcomeKind::Queued) => {
                        format!("the action `{name}` of a rule waits for the turn's next step: {what}")
                    }
                    Some(OutcomeKind::Landed | OutcomeKind::Done) | None => format!("`{name}` by a rule: {what}"),
                },
                Err(refusal) => format!("the action `{name}` of a rule was not performed ({what}): {refusal}"),
            };
            inputs.send_async(note(id, said)).await.ok();
        });
    }

    /// Interrupts an agent at work. Presses nothing while a dialog is open, because the same key would answer it.
    fn interrupt(&self, session: &Session, finding: &Finding) {
        if session.status.state != State::Running || !session.pending_approvals.is_empty() {
            return;
        }
        let (runs, inputs, id) = (self.runs.clone(), self.inputs.clone(), session.id);
        let what = finding.what.clone();
        self.runtime.spawn(async move {
            let interrupt = api::runs::Input { interrupt: true, ..api::runs::Input::default() };
            let said = match runs.send_input(&RunTarget::Session(id), interrupt).await {
                Ok(_) => format!("interrupted by a rule: {what}"),
                Err(refusal) => format!("a rule tried to interrupt the agent ({what}), but {refusal}"),
            };
            inputs.send_async(note(id, said)).await.ok();
        });
    }
}

/// Whether a rule applies to this finding of this session.
fn is_for(rule: &Action, finding: &Finding, session: &Session) -> bool {
    let labelled = |(key, value): (&String, &String)| session.labels.get(key) == Some(value);
    rule.on.contains(&finding.kind) && rule.labels.iter().all(labelled)
}

fn note(session: SessionId, text: String) -> IngestInput {
    IngestInput::Derived(DerivedRecord::new(session, DerivedKind::Note(text)))
}
