//! Publishes committed changes to the live view, the streams, the counters and the observer. Everything is published
//! after the commit, except that streams get status changes earlier.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
};

use events::{ApprovalState, Finding, Provider, RunId, SessionId, Timestamp};
use live_view::{Frame, Json, LiveView, OpenItem, SessionEntry};
use projections::Approval;
use store::ReadFailure;

use super::{
    checkpoint::CheckpointProgress,
    counters::Counters,
    hosts::HostedSession,
    sessions::Sessions,
    shown,
    transaction::{ChangeSet, Committed},
};
use crate::{hook_health::HookHealth, store_health::StoreHealth};

/// Ingest state that other threads may read.
#[derive(Debug, Default)]
pub struct Gauges {
    /// Counters of committed work.
    pub counters: Counters,
    /// Whether the last commit failed: nothing is stored until one succeeds.
    pub stuck: AtomicBool,
    /// Problems with the store.
    pub store: StoreHealth,
    /// Whether the program is ending: then ingest stops waiting for a failing store.
    pub ending: AtomicBool,
    /// Time of each agent's last event, by provider code: milliseconds since 1970, 0 for none since the start.
    pub last_event_at: [AtomicI64; Provider::ALL.len()],
    /// Number of records of each agent that were merged into another record's event, by provider code.
    pub merged: [AtomicU64; Provider::ALL.len()],
    /// Whether the write-ahead log is being moved into the database.
    pub checkpoints: CheckpointProgress,
    /// Hook calls, and turns without them.
    pub heard: HookHealth,
}

impl Gauges {
    /// Records a failed commit.
    pub(super) fn fails(&self, sort: ReadFailure, error: &dyn std::fmt::Display) {
        self.counters.commits_failed.inc();
        self.store.failed(sort, error);
        self.stuck.store(true, Ordering::Relaxed);
    }

    /// Records a successful commit.
    pub(super) fn works(&self) {
        if self.stuck.swap(false, Ordering::Relaxed) {
            self.store.recovered();
        }
    }
}

/// Observes commits. Called after the commit; implementations must not block.
pub trait CommitObserver: Send {
    /// A run is about to host a session: streams may show it before the commit.
    fn will_host(&self, _run: RunId, _session: SessionId) {}
    /// A run hosts a session.
    fn hosts(&self, _hosted: HostedSession) {}
    /// An approval was opened or closed.
    fn approval(&self, _approval: Approval) {}
    /// These sessions were removed.
    fn removed(&self, _sessions: &[SessionId]) {}
    /// A finding changed.
    fn finding(&self, _finding: Finding) {}
    /// These sessions, whose history was read, may need the user's attention.
    fn standing(&self, _sessions: &[SessionId]) {}
    /// The log now extends to this position.
    fn recorded(&self, _position: u64) {}
    /// The log now extends to this position; its new events were seen as they happened.
    fn committed(&self, _position: u64) {}
}

/// An observer that does nothing.
pub struct NoObserver;

impl CommitObserver for NoObserver {}

/// Publishes the changes ingest makes.
pub(super) struct Publisher {
    pub(super) live_view: LiveView,
    pub(super) gauges: Arc<Gauges>,
    pub(super) onlooker: Box<dyn CommitObserver>,
}

impl Publisher {
    /// Before the commit: updates the status on lists, and sends it to streams marked as uncommitted.
    pub(super) fn publish_ahead(&self, sessions: &mut Sessions, now: Timestamp, wall: Timestamp) {
        let watched = self.live_view.watched();
        for slot in sessions.changed_ahead() {
            let Some(state) = sessions.loaded_mut(slot) else { continue };
            let session = shown(state, wall);
            let active = sessions.is_active(&session, now);
            let Ok(entry) = SessionEntry::of(&session, active) else { continue };
            let frame = watched.then(|| Frame::of_entry(None, &entry)).flatten();
            self.live_view.put_ahead(entry);
            if let Some(frame) = frame {
                self.live_view.publish(frame);
            }
        }
    }

    /// After the commit, in this order: the sessions of runs, so that a session shown as merged has its run; rows;
    /// events; approvals, findings, and the status of each session; then everything else for the observer.
    pub(super) fn publish(&self, committed: &mut Committed, entries: Vec<SessionEntry>) {
        let Committed { changes, position, live, .. } = committed;
        self.gauges.counters.commits.inc();
        self.gauges.counters.events.inc_by((changes.events.len() + changes.past.count) as u64);
        for provider in changes.merged.drain(..) {
            if let Some(merged) = self.gauges.merged.get(usize::from(provider.code())) {
                merged.fetch_add(1, Ordering::Relaxed);
            }
        }
        changes.hosted.drain(..).for_each(|hosted| self.onlooker.hosts(hosted));
        self.publish_frames(changes, *position, entries);
        for approval in std::mem::take(&mut changes.approvals) {
            self.gauges.counters.approval(&approval);
            self.onlooker.approval(approval);
        }
        for finding in std::mem::take(&mut changes.findings) {
            self.gauges.counters.finding(&finding);
            self.onlooker.finding(finding);
        }
        self.onlooker.recorded(*position);
        if *live {
            self.onlooker.committed(*position);
        }
    }

    fn publish_frames(&self, changes: &mut ChangeSet, position: u64, entries: Vec<SessionEntry>) {
        let mut frames = Vec::with_capacity(entries.len());
        for entry in entries {
            frames.extend(Frame::of_entry(Some(position), &entry));
            self.live_view.put(entry);
        }
        self.live_view.set_committed();
        for (last, at) in self.gauges.last_event_at.iter().zip(changes.past.last_at) {
            last.fetch_max(at, Ordering::Relaxed);
        }
        for event in &changes.events {
            if let Some(last) = self.gauges.last_event_at.get(usize::from(event.provider.code())) {
                last.fetch_max(event.created_at.as_millisecond(), Ordering::Relaxed);
            }
            if !event.history {
                self.gauges.heard.event(event);
            }
        }
        for approval in &changes.approvals {
            self.live_view.put_approval(pending(approval));
        }
        for finding in &changes.findings {
            self.live_view.put_finding(open(finding));
        }
        changes.events.sort_unstable_by_key(|event| event.position);
        // First, because it invalidates what was published earlier, and has no effect once a later position is known.
        if changes.past.count > 0 {
            self.live_view.advance(position);
        }
        for event in &changes.events {
            self.live_view.publish_event(event);
        }
        for approval in &changes.approvals {
            if let Ok(json) = Json::of(approval) {
                self.live_view.publish(Frame::approval(Some(position), approval.session_id, json));
            }
        }
        for finding in &changes.findings {
            if let Ok(json) = Json::of(finding) {
                self.live_view.publish(Frame::finding(Some(position), finding.session_id, json));
            }
        }
        for frame in frames {
            self.live_view.publish(frame);
        }
    }
}

/// An approval in the form of the live view.
pub(super) fn pending(approval: &Approval) -> OpenItem {
    let json = (approval.state == ApprovalState::Pending).then(|| Json::of(approval).ok()).flatten();
    OpenItem { session: approval.session_id, id: approval.id.to_string(), json }
}

/// A finding in the form of the live view.
pub(super) fn open(finding: &Finding) -> OpenItem {
    let json = finding.is_open().then(|| Json::of(finding).ok()).flatten();
    OpenItem { session: finding.session_id, id: finding.id.to_string(), json }
}
