//! Commands of the server to a session: prompts, messages for the running turn, limits. Each has an outcome, which is
//! known once the machine has processed it.

use std::{sync::Arc, time::Duration};

use crossbeam_channel::Receiver;
use engine::{
    EngineActivity, EngineInput, MessageOrigin, QueueKind, QueueOutcome, RuntimeFrame, SpendLimits, UserMessage,
};
use executor::{SessionClock, SessionHandle, SessionUpdate};
use host_protocol::{
    claim::TypingGate,
    frame::{
        CommandOrigin, CommandOutcome, HostRequest, OutcomeKind, Presence, PromptTyping, SessionCommand, SessionLimits,
    },
    link::PendingRequest,
};
use serde::Serialize;
use session_tree::Json;
use tokio::{
    runtime::Handle,
    sync::{Notify, broadcast::error::TryRecvError},
    time::timeout,
};

/// Longest wait for the machine to process an input. The server waits longer.
const WITHIN: Duration = Duration::from_secs(4);
/// Billionths of a dollar.
const NANO: f64 = 1e9;
/// The refusal of commands for a terminal.
const NO_TERMINAL: &str =
    "this session has no terminal; `capture send` sends it a message, and `capture send --interrupt` ends its turn";

/// Chooses another model for a session: returns the input for the machine, or why there is no such model.
pub(crate) type ChooseModel = Arc<dyn Fn(&str) -> Result<EngineInput, String> + Send + Sync>;

/// A session that accepts commands.
#[derive(Clone)]
pub(crate) struct CommandedSession {
    /// The session.
    pub(crate) session: SessionHandle,
    /// Generates ids of messages.
    pub(crate) clock: Arc<dyn SessionClock>,
    /// Chooses another model.
    pub(crate) choose_model: ChooseModel,
    /// Notified when the process is to end; `None` if it ends without a request.
    pub(crate) end: Option<Arc<Notify>>,
    /// Whether a user is at the terminal of this process.
    pub(crate) at_terminal: bool,
}

impl CommandedSession {
    /// Answers requests of the server one by one until the connection is closed, on its own thread.
    pub(crate) fn answer_all(self, requests: Receiver<PendingRequest>, runtime: Handle) -> std::io::Result<()> {
        let answers = move || {
            for PendingRequest { ask, reply } in requests {
                let answer = runtime.block_on(async { timeout(WITHIN, self.answer(ask)).await });
                // A command without an answer in time may have been executed: the server learns no outcome, and does
                // not retry it.
                if let Ok(answer) = answer {
                    reply(answer);
                }
            }
        };
        std::thread::Builder::new().name("commands".to_owned()).spawn(answers).map(drop)
    }

    async fn answer(&self, ask: HostRequest) -> Result<serde_json::Value, String> {
        match ask {
            HostRequest::Session { command, by } => as_json(self.apply(command, by).await?),
            HostRequest::Presence => as_json(Presence { attached: self.at_terminal, ..Presence::default() }),
            HostRequest::Gate => as_json(self.gate().await?),
            HostRequest::Prompt { text, .. } => {
                let gate = self.gate().await?;
                if gate != TypingGate::Open {
                    return as_json(PromptTyping::Refused { gate });
                }
                self.apply(SessionCommand::Prompt { text }, CommandOrigin::Person).await?;
                as_json(PromptTyping::Typed)
            }
            HostRequest::Announce { .. } => Ok(serde_json::Value::Null),
            HostRequest::Interrupt => as_json(self.apply(SessionCommand::Abort, CommandOrigin::Person).await?),
            HostRequest::Screen
            | HostRequest::Explain
            | HostRequest::Grid { .. }
            | HostRequest::Scrollback { .. }
            | HostRequest::Resize { .. }
            | HostRequest::Type { .. }
            | HostRequest::Keys { .. }
            | HostRequest::Answer { .. } => Err(NO_TERMINAL.to_owned()),
        }
    }

    /// Whether a prompt would be accepted now.
    async fn gate(&self) -> Result<TypingGate, String> {
        let is_idle = self.snapshot().await? == EngineActivity::Idle;
        Ok(if is_idle { TypingGate::Open } else { TypingGate::Busy { shows: "the agent is working".to_owned() } })
    }

    async fn apply(&self, command: SessionCommand, by: CommandOrigin) -> Result<CommandOutcome, String> {
        let who = match &by {
            CommandOrigin::Person => "a person, through the server".to_owned(),
            CommandOrigin::Monitor { finding } => format!("a rule of the user, for finding {finding}"),
        };
        let origin = || match &by {
            CommandOrigin::Person => MessageOrigin::Person,
            CommandOrigin::Monitor { finding } => MessageOrigin::Monitor { finding: finding.clone() },
        };
        let message = |text: String| UserMessage {
            id: format!("{:032x}", self.clock.random()),
            content: Json::from(text),
            origin: origin(),
        };
        let queued = |kind, text| {
            let message = message(text);
            (Some(message.id.clone()), EngineInput::Queue { kind, message })
        };
        let (id, input) = match command {
            SessionCommand::Prompt { text } => {
                let message = message(text);
                (Some(message.id.clone()), EngineInput::Prompt(message))
            }
            SessionCommand::Steer { text } => queued(QueueKind::Steer, text),
            SessionCommand::FollowUp { text } => queued(QueueKind::FollowUp, text),
            SessionCommand::Abort => (None, EngineInput::Abort),
            SessionCommand::Pause => (None, EngineInput::Pause),
            SessionCommand::Resume => (None, EngineInput::Resume),
            SessionCommand::Compact => (None, EngineInput::Compact { focus: None }),
            SessionCommand::SetModel { model } => (None, (self.choose_model)(&model)?),
            SessionCommand::Limit { limits } => {
                (None, EngineInput::SetLimits { limits: spend_limits(limits)?, by: who })
            }
            SessionCommand::End => {
                let end = self.end.as_ref();
                end.ok_or("this session ends with its command; `abort` ends the turn")?.notify_one();
                return Ok(CommandOutcome { outcome: OutcomeKind::Done, message: None, entry: None });
            }
        };
        self.take_in(id, input).await
    }

    /// Sends an input to the machine. Its immediate results are reported before the answer to the next query.
    async fn take_in(&self, id: Option<String>, input: EngineInput) -> Result<CommandOutcome, String> {
        let closed = |error: executor::SessionClosed| error.to_string();
        let mut updates = self.session.subscribe();
        // A session that answers one prompt may close when its turn ends.
        let may_close = matches!(input, EngineInput::Abort);
        self.session.input(input).await.map_err(closed)?;
        let answered = self.session.snapshot().await;
        if !may_close {
            answered.map_err(closed)?;
        }
        let mut outcome = CommandOutcome { outcome: OutcomeKind::Done, message: id.clone(), entry: None };
        loop {
            match updates.try_recv() {
                Ok(SessionUpdate::Frame(frame)) => {
                    if let RuntimeFrame::Refused { reason, .. } = &*frame
                        && id.is_none()
                    {
                        return Err(reason.clone());
                    }
                    let RuntimeFrame::Message { id: of, outcome: what } = &*frame else { continue };
                    if Some(of) != id.as_ref() {
                        continue;
                    }
                    match what.clone() {
                        QueueOutcome::Queued => outcome.outcome = OutcomeKind::Queued,
                        QueueOutcome::Landed { entry } => {
                            outcome = CommandOutcome { outcome: OutcomeKind::Landed, entry: Some(entry), ..outcome };
                        }
                        QueueOutcome::Refused { reason } => return Err(reason),
                        QueueOutcome::Withdrawn => return Err("the message was withdrawn".to_owned()),
                    }
                }
                Ok(SessionUpdate::Entry(_)) | Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(outcome),
            }
        }
    }

    async fn snapshot(&self) -> Result<EngineActivity, String> {
        self.session.snapshot().await.map(|now| now.activity).map_err(|error| error.to_string())
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what is out of range is the largest")]
fn spend_limits(limits: SessionLimits) -> Result<SpendLimits, String> {
    if limits.cost_usd.is_some_and(|usd| !usd.is_finite() || usd < 0.0) {
        return Err("`cost_usd` must be a number, 0 or more".to_owned());
    }
    Ok(SpendLimits {
        tokens: limits.tokens,
        cost_nano_usd: limits.cost_usd.map(|usd| (usd * NANO) as u64),
        wall_ms: limits.minutes.map(|minutes| u64::from(minutes) * 60_000),
        calls: limits.calls,
    })
}

fn as_json(answer: impl Serialize) -> Result<serde_json::Value, String> {
    serde_json::to_value(answer).map_err(|error| error.to_string())
}
