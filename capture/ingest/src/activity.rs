//! Classifies events and states: does a session need the user, and does it belong on the list of active sessions?

use events::{Event, Payload, Timestamp};

/// Whether the user's attention may depend on an event: the session waits for an approval, an approval was requested or
/// resolved, or a finding changed.
pub(super) fn needs_somebody(event: &Event) -> bool {
    if let Payload::StatusChanged(change) = &event.payload {
        return change.to == events::State::WaitingApproval;
    }
    matches!(event.payload, Payload::ApprovalRequested(_) | Payload::ApprovalResolved(_) | Payload::Finding(_))
}

/// How long after its last event, or its last use, a session that is idle or unknown still counts as active, ms.
const ACTIVE_MS: i64 = 30 * 60 * 1000;

/// Whether a session in this state may have an open approval or finding.
pub(super) const fn is_standing(state: events::State) -> bool {
    matches!(state, events::State::Running | events::State::Waiting | events::State::WaitingApproval)
}

/// Whether a session belongs on the list of active sessions. An `unattended` session is one that a daemon keeps after
/// its user left.
pub(super) fn is_active(session: &projections::Session, unattended: bool, now: Timestamp) -> bool {
    session.status.state != events::State::Exited && active_until(session, unattended).is_none_or(|until| now < until)
}

/// When a resting session leaves the list of active sessions; `None` while its process keeps it there.
pub(super) fn active_until(session: &projections::Session, unattended: bool) -> Option<Timestamp> {
    let rests = matches!(session.status.state, events::State::Idle | events::State::Unknown);
    // Events about the session's process or daemon do not count as use.
    let used = session.last_user_prompt_at.max(session.last_assistant_output_at).filter(|_| unattended);
    let last = used.unwrap_or(session.last_event_at);
    (rests && (session.pid.is_none() || unattended)).then(|| last.plus_ms(ACTIVE_MS))
}
