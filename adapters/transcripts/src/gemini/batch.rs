//! Creates the events of the tool calls of one message, and their combined outcome.

use std::sync::Arc;

use events::{
    Confidence, NewEvent, SessionStarted, Severity, StartKind, Timestamp, ToolOutcome, ToolResult, TurnOutcome,
};

use super::{
    record::ToolCall,
    record_writer::{GeminiRecordWriter, identity},
    tools,
};

/// The outcome of the new calls of a message.
#[derive(Debug, Default)]
pub(super) struct MessageCalls {
    /// Calls with a result.
    pub(super) finished: u32,
    /// Number of finished calls that the user stopped.
    pub(super) stopped: u32,
    /// Whether the user refused a call.
    pub(super) denied: bool,
    /// Whether a sub-agent delivered its result.
    pub(super) completed_task: bool,
    /// When the last call ended.
    pub(super) at: Option<Timestamp>,
}

impl MessageCalls {
    /// Emits a call, and its result if it has one; returns whether it has.
    pub(super) fn put_call(
        &mut self,
        mut call: ToolCall<'_>,
        session: &Arc<str>,
        called_at: Option<Timestamp>,
        confidence: Confidence,
        writer: &mut GeminiRecordWriter<'_, '_>,
    ) -> bool {
        let kind = tools::kind(&call);
        let about = tools::about(&call, kind);
        let agent: Option<Arc<str>> = call.agent_id.as_deref().map(Arc::from);
        let payload = events::ToolCall {
            call_id: call.id.to_string(),
            name: call.name.to_string(),
            tool: kind,
            title: about.title,
            background: about.background,
            ..events::ToolCall::default()
        };
        let called = NewEvent {
            text: call.args.map(|a| a.get().to_owned()),
            agent_id: agent.clone(),
            confidence,
            ..writer.event(session, "call", &call.id, 0, called_at, payload)
        };
        writer.out.push(called);
        if let Some(agent) = &agent {
            // The sub-agent's own file does not name its kind.
            let known = SessionStarted {
                how: StartKind::Subagent,
                parent_provider_session_id: Some(session.to_string()),
                agent_type: about.agent_type,
                ..SessionStarted::default()
            };
            let started = writer.event(agent, "session", &call.id, 0, called_at, known);
            writer.out.push(started);
        }
        let Some(ending) = tools::ending(&mut call, kind) else {
            return false;
        };
        let at = call.timestamp.as_deref().and_then(Timestamp::parse);
        self.finished += 1;
        self.at = at.or(self.at);
        match ending.outcome {
            ToolOutcome::Denied => {
                self.stopped += 1;
                self.denied = true;
            }
            ToolOutcome::Cancelled => self.stopped += 1,
            ToolOutcome::Ok => self.completed_task |= &*call.name == "complete_task",
            ToolOutcome::Error | ToolOutcome::Blocked => {}
        }
        if let Some(agent) = &agent {
            // A sub-agent that was stopped records no end.
            let outcome = match ending.outcome {
                ToolOutcome::Ok => TurnOutcome::Completed,
                ToolOutcome::Error | ToolOutcome::Blocked => TurnOutcome::Failed,
                ToolOutcome::Denied => TurnOutcome::Denied,
                ToolOutcome::Cancelled => TurnOutcome::Interrupted,
            };
            writer.end(agent, &call.id, at, outcome, Confidence::High, "its call returned");
        }
        let result = ToolResult {
            call_id: call.id.to_string(),
            outcome: ending.outcome,
            exit_code: ending.exit_code,
            duration_ms: None,
            detail: false,
        };
        let returned = NewEvent {
            parent: Some(identity(session, "call", &call.id, 0)),
            text: Some(ending.text).filter(|t| !t.is_empty()),
            agent_id: agent,
            confidence,
            severity: (ending.outcome == ToolOutcome::Error).then_some(Severity::Warning),
            ..writer.event(session, "result", &call.id, 0, at.or(called_at), result)
        };
        writer.out.push(returned);
        true
    }
}
