//! What others are told: the board, the streams, the counters. After the commit, but for the status
//! of sessions, which streams get ahead of it.

use std::sync::atomic::Ordering;

use events::{Event, Payload, Timestamp};
use server::{Frame, Json, SessionEntry};

use super::Ingest;
use crate::redaction;

impl Ingest {
    /// Before the commit: streams get the new status at once, marked as not committed.
    pub(super) fn tell_ahead(&mut self) {
        if !self.board.watched() {
            return;
        }
        for slot in self.sessions.changed_ahead() {
            if let Some(entry) = self.entry(slot) {
                let frame = Frame::of_entry(None, &entry);
                self.board.put(entry);
                if let Some(frame) = frame {
                    self.board.publish(frame);
                }
            }
        }
    }

    /// After the commit: rows first, then the events in order, then the status of each session.
    pub(super) fn tell(&mut self, entries: Vec<SessionEntry>) {
        let mut frames = Vec::with_capacity(entries.len());
        for entry in entries {
            frames.extend(Frame::of_entry(Some(self.position), &entry));
            self.board.put(entry);
        }
        for (event, _) in &self.committed {
            if let Some(last) = self.gauges.last_event_at.get(usize::from(event.provider.code())) {
                last.fetch_max(event.created_at.as_millisecond(), Ordering::Relaxed);
            }
            if !event.history {
                self.gauges.heard.event(event);
            }
        }
        self.committed.sort_unstable_by_key(|(event, _)| event.position);
        // First: it voids what was published before, and does nothing once a later position is known.
        if self.committed.iter().any(|(_, history)| *history) {
            self.board.advance(self.position);
        }
        for (event, _) in self.committed.iter().filter(|(_, history)| !history) {
            if let Ok(json) = Json::of(event) {
                self.board.publish(Frame::event(Some(event.position), event.session_id, event.payload.kind(), json));
            }
        }
        for approval in &self.changed_approvals {
            if let Ok(json) = Json::of(approval) {
                self.board.publish(Frame::approval(Some(self.position), approval.session_id, json));
            }
        }
        for finding in &self.changed_findings {
            if let Ok(json) = Json::of(finding) {
                self.board.publish(Frame::finding(Some(self.position), finding.session_id, json));
            }
        }
        for frame in frames {
            self.board.publish(frame);
        }
    }

    fn entry(&mut self, slot: usize) -> Option<SessionEntry> {
        let now = (self.clock)();
        let state = self.sessions.loaded_mut(slot)?;
        let session = redaction::of_session(state.view());
        SessionEntry::of(&session, is_active(&session, now)).ok()
    }
}

/// Whether somebody waits for what an event says: an approval is waited for, or was decided.
pub(super) fn needs_somebody(event: &Event) -> bool {
    if let Payload::StatusChanged(change) = &event.payload {
        return change.to == events::State::WaitingApproval;
    }
    matches!(event.payload, Payload::ApprovalRequested(_) | Payload::ApprovalResolved(_) | Payload::Finding(_))
}

/// So many of the newest sessions have their JSON in memory from the start.
pub(super) const HOT_VIEWS: usize = 4_096;

/// How long after its last event a session that is idle or unknown still counts as active, ms.
const ACTIVE_MS: i64 = 30 * 60 * 1000;

/// Whether a session belongs on a list of what goes on.
pub(super) fn is_active(session: &projections::Session, now: Timestamp) -> bool {
    match session.status.state {
        events::State::Running | events::State::Waiting | events::State::WaitingApproval => true,
        events::State::Idle | events::State::Unknown => now.since_ms(session.last_event_at) < ACTIVE_MS,
        events::State::Exited => false,
    }
}
