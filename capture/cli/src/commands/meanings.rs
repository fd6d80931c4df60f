//! What the words of options mean, for their help. A word that says it itself has an empty meaning.

use events::{FindingKind, Kind, Provider, State};

/// What a state of a session means.
pub(super) const fn of_state(state: State) -> &'static str {
    match state {
        State::Running => "the agent is working",
        State::Waiting => "the agent waits for you: for a prompt, an answer, or help with an error",
        State::WaitingApproval => "a permission dialog is open",
        State::Idle => "nothing is in progress, and nothing has happened for a while",
        State::Exited => "the agent's process has ended",
        State::Unknown => "what the agent is doing cannot be told",
    }
}

/// What an agent's name stands for.
pub(super) fn of_agent(provider: Provider) -> &'static str {
    agents::agent::explanation(provider).unwrap_or_default()
}

/// What a kind of finding means.
pub(super) const fn of_finding(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Approval => "a permission request is pending",
        FindingKind::RiskyApproval => "a pending permission request could do harm that cannot be undone",
        FindingKind::ApprovalBacklog => "several permission requests are pending, or one for a long time",
        FindingKind::Question => "the agent asks you a question",
        FindingKind::Stuck => "a turn makes no progress, or requests to the model keep failing",
        FindingKind::Loop => "the agent repeats the same steps",
        FindingKind::RepeatedFailure => "a command or test fails again and again",
        FindingKind::Auth => "the agent is not signed in, or its key was rejected",
        FindingKind::RateLimit => "a rate limit of the model's service was reached",
        FindingKind::Quota => "a quota is used up",
        FindingKind::Network => "the model's service cannot be reached",
        FindingKind::MergeConflict => "a merge, rebase or pull stopped at conflicts",
        FindingKind::ContextFull => "the context is nearly full",
        FindingKind::Crash => "the agent's process died",
        FindingKind::OpenWork => "the session ended with an open turn, failing tests or conflicts",
        FindingKind::Completion => "a turn is done, and nothing is pending",
        FindingKind::LongJob => "a command that took long is done",
        FindingKind::Provider => "the model's service fails",
        FindingKind::Idle => "a session has been idle for a long time",
        FindingKind::SharedFiles => "two sessions edit the same file at the same time",
        FindingKind::SharedQuota => "a quota stops several sessions of an agent",
        FindingKind::SeveralBlocked => "several sessions wait for you at the same time",
    }
}

/// What a kind of event means.
pub(super) const fn of_event(kind: Kind) -> &'static str {
    match kind {
        Kind::SessionForked => "the session began as a copy of another",
        Kind::Annotation => "a note about the session: its title, model, branch, a command or a notice",
        Kind::Signal => "what one source reports about the status, such as a hook or the screen",
        Kind::StatusChanged => "the status that capture concluded from the signals",
        Kind::Unrecognized => "a record that capture does not understand",
        Kind::Heartbeat => "a sign that the agent is still working",
        Kind::UsageReported => "tokens that were used",
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
