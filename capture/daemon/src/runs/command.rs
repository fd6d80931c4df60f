//! Commands to a session: sent as a message to the host that runs it, or, if an agent works in a terminal, typed where
//! possible.

use api::{
    runs::{Input as RunInput, InputSent, Run},
    steering::{CommandOutcome, OutcomeKind, SessionCommand, SessionInputTaken},
};
use events::SessionId;
use host_protocol::frame::{CommandOrigin, HostRequest};
use live_view::{Refusal, RunTarget};

use tokio::sync::mpsc;

use super::{
    PromptOutcome, QueuedRequest, Runs,
    question::{Unanswered, question},
};

impl Runs {
    /// Sends a command to a session.
    ///
    /// # Errors
    /// When no run hosts the session, or its agent does not support the command or refuses it in its current state.
    pub async fn command(
        &self,
        session: SessionId,
        command: SessionCommand,
        by: CommandOrigin,
    ) -> Result<SessionInputTaken, Refusal> {
        let target = RunTarget::Session(session);
        let (run, asks) = self.find_reconnected(&target).await?;
        let position = self.position().await;
        let taken = |outcome| SessionInputTaken { run: run.id, sent: true, position, outcome: Some(outcome) };
        if !run.hello.takes.is_empty() {
            if !takes(&run, command.name()) {
                return Err(not_taken(&run, &command));
            }
            let answer = question(&run, asks.as_ref(), HostRequest::Session { command, by }).await?;
            let outcome: CommandOutcome =
                serde_json::from_value(answer).map_err(|error| Refusal::Failed(error.to_string()))?;
            return Ok(taken(outcome));
        }
        match command {
            SessionCommand::Prompt { text } => match self.prompt(session, &text).await {
                PromptOutcome::Typed => Ok(taken(done())),
                PromptOutcome::Refused(why) | PromptOutcome::Unknown(why) => Err(Refusal::Conflict(why)),
            },
            SessionCommand::Abort => {
                self.send_input(&target, RunInput { interrupt: true, ..RunInput::default() }).await?;
                Ok(taken(done()))
            }
            SessionCommand::Steer { .. }
            | SessionCommand::FollowUp { .. }
            | SessionCommand::Pause
            | SessionCommand::Resume
            | SessionCommand::Compact
            | SessionCommand::SetModel { .. }
            | SessionCommand::Limit { .. }
            | SessionCommand::End => Err(not_taken(&run, &command)),
        }
    }

    /// Converts terminal input for a session without a terminal: text becomes a message or a prompt, and an interrupt
    /// ends the turn.
    pub(super) async fn send_as_command(
        &self,
        run: &Run,
        asks: Option<&mpsc::Sender<QueuedRequest>>,
        input: RunInput,
    ) -> Result<InputSent, Refusal> {
        let command = match input {
            // A message for the running turn; without a turn it begins one.
            RunInput { text: Some(text), .. } if takes(run, STEER) => SessionCommand::Steer { text },
            RunInput { text: Some(text), .. } => SessionCommand::Prompt { text },
            RunInput { interrupt: true, .. } => SessionCommand::Abort,
            RunInput { .. } => {
                let why = format!("run {} has no terminal; send it text, or interrupt it", run.id);
                return Err(Refusal::Conflict(why));
            }
        };
        let position = self.position().await;
        question(run, asks, HostRequest::Session { command, by: CommandOrigin::Person }).await?;
        Ok(InputSent { run: run.id, sent: true, position, forced: false })
    }

    /// Sends a prompt to a session that accepts prompts. If its run ends with its turn, the host queues the prompt.
    pub async fn send_prompt(&self, session: SessionId, text: &str, by: CommandOrigin) -> PromptOutcome {
        let (run, asks) = match self.find(&RunTarget::Session(session)) {
            Ok(found) => found,
            Err(refusal) => return PromptOutcome::Refused(refusal.to_string()),
        };
        let text = text.to_owned();
        let command =
            if ends_with_turn(&run) { SessionCommand::FollowUp { text } } else { SessionCommand::Prompt { text } };
        match question(&run, asks.as_ref(), HostRequest::Session { command, by }).await {
            Ok(_) => PromptOutcome::Typed,
            Err(Unanswered::Refused(refusal)) => PromptOutcome::Refused(refusal.to_string()),
            Err(Unanswered::Unknown(refusal)) => PromptOutcome::Unknown(format!("it may have been sent: {refusal}")),
        }
    }

    /// Whether the run that hosts a session supports a command; false if there is no such run.
    #[must_use]
    pub fn takes(&self, session: SessionId, command: &str) -> bool {
        let run = self.find(&RunTarget::Session(session));
        run.is_ok_and(|(run, _)| takes(&run, command))
    }

    /// Whether the run that hosts a session ends with its turn, so that later prompts must be in the host's queue
    /// before that.
    #[must_use]
    pub fn ends_with_turn(&self, session: SessionId) -> bool {
        self.find(&RunTarget::Session(session)).is_ok_and(|(run, _)| ends_with_turn(&run))
    }
}

/// The command that adds a message to the running turn.
pub(super) const STEER: &str = "steer";
/// The command that queues a message after the turn.
const FOLLOW_UP: &str = "follow_up";

pub(super) fn takes(run: &Run, command: &str) -> bool {
    run.hello.takes.iter().any(|name| name == command)
}

/// Whether a run ends with its turn: `capture agent run` answers one prompt and those queued after it; a session in RPC
/// mode or started by the server continues.
fn ends_with_turn(run: &Run) -> bool {
    takes(run, FOLLOW_UP) && run.hello.command.iter().map(String::as_str).take(3).eq(["capture", "agent", "run"])
}

const fn done() -> CommandOutcome {
    CommandOutcome { outcome: OutcomeKind::Done, message: None, entry: None }
}

fn not_taken(run: &Run, command: &SessionCommand) -> Refusal {
    let takes = if run.hello.takes.is_empty() {
        "`prompt` and `abort`".to_owned()
    } else {
        run.hello.takes.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    Refusal::Conflict(format!("{} does not accept `{}`; it accepts {takes}", run.hello.provider, command.name()))
}
