//! What an event or a state says of who needs a session: who waits for it, and whether it is on the list of active ones.

use events::{Event, Payload, Timestamp};

/// Whether somebody waits for what an event says: an approval is waited for, or was decided.
pub(super) fn needs_somebody(event: &Event) -> bool {
    if let Payload::StatusChanged(change) = &event.payload {
        return change.to == events::State::WaitingApproval;
    }
    matches!(event.payload, Payload::ApprovalRequested(_) | Payload::ApprovalResolved(_) | Payload::Finding(_))
}

/// How long after its last event, or its last use, a session that is idle or unknown still counts as active, ms.
const ACTIVE_MS: i64 = 30 * 60 * 1000;

/// Whether something of a session in this state may stand open.
pub(super) const fn is_standing(state: events::State) -> bool {
    matches!(state, events::State::Running | events::State::Waiting | events::State::WaitingApproval)
}

/// Whether a session that has this reason just goes on with its turn.
pub(super) const fn is_progress(reason: events::Reason) -> bool {
    use events::Reason::{Streaming, Subagents, Thinking, Tool};
    matches!(reason, Thinking | Streaming | Tool | Subagents)
}

/// Whether a session belongs on a list of what goes on; an `unattended` one is kept by a daemon whose user has left.
pub(super) fn is_active(session: &projections::Session, unattended: bool, now: Timestamp) -> bool {
    session.status.state != events::State::Exited && active_until(session, unattended).is_none_or(|until| now < until)
}

/// When a session that rests leaves that list; `None` while its process keeps it there.
pub(super) fn active_until(session: &projections::Session, unattended: bool) -> Option<Timestamp> {
    let rests = matches!(session.status.state, events::State::Idle | events::State::Unknown);
    // Events about its process, and those of its daemon, do not use the session.
    let used = session.last_user_prompt_at.max(session.last_assistant_output_at).filter(|_| unattended);
    let last = used.unwrap_or(session.last_event_at);
    (rests && (session.pid.is_none() || unattended)).then(|| last.plus_ms(ACTIVE_MS))
}
