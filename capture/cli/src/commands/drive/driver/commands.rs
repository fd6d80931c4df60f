//! Commands of the server to the driver of a session that the server started.

use std::{net::Shutdown, time::Instant};

use host_protocol::{
    claim::TypingGate,
    frame::{CommandOutcome, HostRequest, OutcomeKind, Presence, PromptTyping, SessionCommand},
    link::PendingRequest,
};
use serde_json::Value;

use super::{Driver, GRACE, Signal};

/// Refusal of a terminal command.
const NO_TERMINAL: &str = "this session has no terminal; send it a prompt, or `abort` its turn";
/// Refusal of a prompt.
const WORKING: &str = "the agent is working; wait for the end of its turn, or `abort` the turn";

impl Driver {
    /// Answers a request of the server.
    pub(super) fn on_server_request(&mut self, request: PendingRequest) -> anyhow::Result<()> {
        let PendingRequest { ask, reply } = request;
        let answer = match ask {
            HostRequest::Session { command, .. } => self.on_command(command)?,
            HostRequest::Gate => Ok(serde_json::to_value(self.gate())?),
            HostRequest::Prompt { text, .. } => match self.gate() {
                TypingGate::Open => {
                    let typed = serde_json::to_value(PromptTyping::Typed)?;
                    self.on_command(SessionCommand::Prompt { text })?.map(|_| typed)
                }
                gate @ (TypingGate::Choice { .. } | TypingGate::Busy { .. }) => {
                    Ok(serde_json::to_value(PromptTyping::Refused { gate })?)
                }
            },
            HostRequest::Announce { .. } => Ok(Value::Null),
            HostRequest::Interrupt => self.on_command(SessionCommand::Abort)?,
            HostRequest::Presence => Ok(serde_json::to_value(Presence::default())?),
            HostRequest::Screen
            | HostRequest::Grid { .. }
            | HostRequest::Scrollback { .. }
            | HostRequest::Resize { .. }
            | HostRequest::Explain
            | HostRequest::Type { .. }
            | HostRequest::Keys { .. }
            | HostRequest::Answer { .. } => Err(NO_TERMINAL.to_owned()),
        };
        reply(answer);
        Ok(())
    }

    /// Whether the agent is waiting for a prompt.
    fn is_ready(&self) -> bool {
        self.prompted && self.outcome.is_some() && self.stopped.is_none()
    }

    /// Whether a prompt would be accepted now.
    fn gate(&self) -> TypingGate {
        if self.is_ready() { TypingGate::Open } else { TypingGate::Busy { shows: WORKING.to_owned() } }
    }

    fn on_command(&mut self, command: SessionCommand) -> anyhow::Result<Result<Value, String>> {
        match command {
            SessionCommand::Prompt { text } => {
                if !self.is_ready() {
                    return Ok(Err(WORKING.to_owned()));
                }
                let Some(line) = self.codec.prompt(&text) else {
                    return Ok(Err("the agent accepts no prompt at the moment".to_owned()));
                };
                self.outcome = None;
                self.send(&line);
                self.report_working();
            }
            // The turn is already over.
            SessionCommand::Abort if self.outcome.is_some() => {}
            SessionCommand::Abort => {
                self.withdraw_requests()?;
                let Some(line) = self.codec.interrupt() else {
                    return Ok(Err("the agent has not started a turn yet".to_owned()));
                };
                self.send(&line);
            }
            SessionCommand::End => {
                self.withdraw_requests()?;
                self.stopped = Some(0);
                self.input.shutdown(Shutdown::Write).ok();
                self.patience = Some((Instant::now() + GRACE, Signal::TERM));
            }
            SessionCommand::Steer { .. }
            | SessionCommand::FollowUp { .. }
            | SessionCommand::Pause
            | SessionCommand::Resume
            | SessionCommand::Compact
            | SessionCommand::SetModel { .. }
            | SessionCommand::Limit { .. } => {
                return Ok(Err(format!("the agent's protocol does not support `{}`", command.name())));
            }
        }
        let done = CommandOutcome { outcome: OutcomeKind::Done, message: None, entry: None };
        Ok(Ok(serde_json::to_value(done)?))
    }
}
