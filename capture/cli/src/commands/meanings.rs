//! Explanations of option values, for the help. Self-explanatory values have an empty explanation.

use events::{FindingKind, Kind, Provider, State};

/// Explains a session state.
pub(super) const fn of_state(state: State) -> &'static str {
    match state {
        State::Running => "the agent is working",
        State::Waiting => "the agent waits for your prompt, your answer, or your help with an error",
        State::WaitingApproval => "a permission dialog is open",
        State::Idle => "nothing is in progress, and nothing has happened for a while",
        State::Exited => "the agent's process has ended",
        State::Unknown => "capture cannot tell what the agent is doing",
    }
}

/// Explains an agent's name.
pub(super) fn of_agent(provider: Provider) -> &'static str {
    agents::agent::explanation(provider).unwrap_or_default()
}

/// Explains a kind of finding.
pub(super) const fn of_finding(kind: FindingKind) -> &'static str {
    kind.facts().meaning
}

/// Explains a kind of event.
pub(super) const fn of_event(kind: Kind) -> &'static str {
    match kind {
        Kind::SessionForked => "the session began as a copy of another",
        Kind::Annotation => "a detail of the session: its title, model or branch, a command or a notice",
        Kind::Signal => "a report about the status from one source, such as a hook or the screen",
        Kind::StatusChanged => "the status that capture derived from the signals",
        Kind::Unrecognized => "a record that capture does not understand",
        Kind::Heartbeat => "a sign that the agent is still working",
        Kind::UsageReported => "the number of tokens used",
        Kind::Notification => "a message that was sent to you",
        Kind::QueuedPrompt => "a prompt of `capture queue`",
        Kind::SessionStarted
        | Kind::SessionExited
        | Kind::TurnStarted
        | Kind::TurnCompleted
        | Kind::UserPrompt
        | Kind::AssistantDelta
        | Kind::AssistantMessage
        | Kind::ToolCall
        | Kind::ToolResult
        | Kind::ApprovalRequested
        | Kind::ApprovalResolved
        | Kind::Error
        | Kind::QuestionAsked
        | Kind::QuestionAnswered
        | Kind::ContextCompacted
        | Kind::Finding => "",
    }
}
