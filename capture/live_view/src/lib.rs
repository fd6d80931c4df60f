//! The live view: the current state of sessions, written by ingest and read by every handler of the server; and
//! [`Control`], the requests that the daemon carries out for the server.
//!
//! Owns the rows (one lightweight row per session) and the feed (frames on their way to streams). A write holds a lock
//! only briefly and never waits for a reader: lists are read in small parts, and publishing passes the frame to a task
//! of the server that delivers it.
//!
//! Requirements on ingest, so that streams have neither gaps nor duplicates:
//! - [`LiveView::put`] the rows before publishing the frames about them;
//! - publish every committed event of live sessions ([`LiveView::publish_event`]) in the order of positions, and the
//!   status frames of a commit after its events;
//! - announce a commit that is not published (history read at start) with [`LiveView::advance`]; streams then get a new
//!   snapshot, which contains the open approvals and findings.
//!
//! Must not know HTTP, read the store or interpret requests.

mod control;
mod deltas;
mod entry;
mod feed;
mod frame;
mod json;
pub mod locks;
pub mod metrics;
mod open_items;
mod rows;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use api::part::IdPart;
use events::{Event, Provider, RunId, SessionId, State, Timestamp};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use control::{
    ApprovalFilter, Control, Decision, DecisionWait, HandoffParts, HostConnection, HostStream, NoControl, Peer,
    Refusal, Reply, RunTarget, SessionStart, Telemetry, TelemetryKind, TelemetryRefusal, Who,
};
use deltas::Deltas;
pub use deltas::{Delta, DeltaCounts};
pub use entry::SessionEntry;
use feed::Feed;
pub use feed::{FeedCounts, FeedEnd, Interest, Mark, Subscription};
pub use frame::{Epoch, Frame, FrameKind};
pub use json::Json;
pub use open_items::OpenItem;
use open_items::OpenItems;
use rows::Rows;
pub use rows::{Key, Relative, SessionFilter};

/// Number of sessions by agent and state.
pub type SessionCounts = Vec<(Provider, State, u64)>;

/// Maximum number of sessions examined for one directory.
const NEWEST: usize = 8;

/// The live view. Clones share it.
#[derive(Debug, Clone)]
pub struct LiveView(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    epoch: Epoch,
    rows: Rows,
    feed: Feed,
    deltas: Deltas,
    open_items: OpenItems,
    /// Whether rows were put before their commit.
    ahead: AtomicBool,
}

impl LiveView {
    /// An empty live view. The epoch identifies this run of the program.
    #[must_use]
    pub fn new(epoch: &str) -> Self {
        Self(Arc::new(Shared {
            epoch: Epoch::new(epoch),
            rows: Rows::default(),
            feed: Feed::default(),
            deltas: Deltas::default(),
            open_items: OpenItems::default(),
            ahead: AtomicBool::new(false),
        }))
    }

    /// Number of inactive rows that keep their JSON, in addition to the active ones.
    pub const HOT_ROWS: usize = rows::HOT_ROWS;

    /// Fills the live view at start; `position` is the last committed one.
    pub fn load(&self, entries: impl IntoIterator<Item = SessionEntry>, position: u64) {
        for entry in entries {
            self.put(entry);
        }
        self.advance(position);
    }

    /// Inserts or replaces a session's row.
    pub fn put(&self, entry: SessionEntry) {
        self.0.rows.put(entry);
    }

    /// Sets the current state of an approval, before its frame is published: a snapshot contains the pending ones.
    pub fn put_approval(&self, approval: OpenItem) {
        self.0.open_items.put_approval(approval);
    }

    /// Sets the current state of a finding, before its frame is published: a snapshot contains the open ones.
    pub fn put_finding(&self, finding: OpenItem) {
        self.0.open_items.put_finding(finding);
    }

    /// The pending approvals of the sessions a stream wants, as JSON.
    #[must_use]
    pub fn pending_approvals(&self, interest: &Interest) -> Vec<(SessionId, Json)> {
        self.0.open_items.approvals(interest)
    }

    /// The open findings of the sessions a stream wants, as JSON.
    #[must_use]
    pub fn open_findings(&self, interest: &Interest) -> Vec<(SessionId, Json)> {
        self.0.open_items.findings(interest)
    }

    /// Removes a session with its open items from the live view. It can still be read from the store.
    pub fn remove(&self, id: SessionId) {
        self.0.rows.remove(id);
        self.0.open_items.remove(id);
    }

    /// Sends a frame to the streams that want it. Never waits; a stream that cannot keep up gets a snapshot later. A
    /// status frame also answers clients that wait for that state.
    pub fn publish(&self, frame: Frame) {
        self.0.feed.publish(frame);
    }

    /// Sends a committed event to the streams that want it; encodes it only if there are any.
    pub fn publish_event(&self, event: &Event) {
        self.0.feed.publish_event(event.position, event.session_id, || {
            let json = Json::of(event).ok()?;
            Some(Frame::event(Some(event.position), event.session_id, event.payload.kind(), json))
        });
    }

    /// Whether a client follows events, and not only states.
    #[must_use]
    pub fn wants_events(&self) -> bool {
        self.0.feed.wants_events()
    }

    /// Sends an agent's output to the streams before it is stored. Never waits; sends at most one frame per session in
    /// 0.1 s, and drops deltas without room.
    pub fn offer_delta(&self, delta: Delta) {
        self.0.deltas.offer(delta, self.watched(), Instant::now());
    }

    /// Counts deltas that were lost before they were received.
    pub fn count_lost_deltas(&self, deltas: u64) {
        self.0.deltas.lost(deltas);
    }

    /// Records a commit up to this position whose events are not published.
    pub fn advance(&self, position: u64) {
        self.0.feed.advance(position);
    }

    /// The last committed position.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.0.feed.mark().position
    }

    /// Puts a session's row before the commit of its content, until [`Self::set_committed`].
    pub fn put_ahead(&self, entry: SessionEntry) {
        self.0.ahead.store(true, Ordering::Release);
        self.put(entry);
    }

    /// Records that the store contains everything shown.
    pub fn set_committed(&self) {
        self.0.ahead.store(false, Ordering::Release);
    }

    /// Whether rows show content that the store does not contain yet.
    #[must_use]
    pub fn is_ahead(&self) -> bool {
        self.0.ahead.load(Ordering::Acquire)
    }

    /// Whether any stream is open. If not, frames need not be serialized before the commit; committed events are
    /// published in any case.
    #[must_use]
    pub fn watched(&self) -> bool {
        self.0.feed.subscribers() > 0
    }

    /// Whether a session of this run waits for an approval, according to any source.
    #[must_use]
    pub fn waits_for_approval(&self, run: RunId) -> bool {
        self.0.rows.any_active(|entry| entry.run_id == Some(run) && entry.state == State::WaitingApproval)
    }

    /// The last sessions of an agent in this directory, newest first, each with the time of its last event: first those
    /// that have not exited, then the others, because a session whose process was not seen may continue.
    #[must_use]
    pub fn newest_in(&self, provider: Provider, cwd: &str) -> Vec<(SessionId, Timestamp)> {
        let (exited, others) = State::ALL.iter().partition(|state| **state == State::Exited);
        let newest = |states: Vec<State>| {
            let filter = SessionFilter {
                states,
                providers: vec![provider],
                cwd: Some(cwd.to_owned()),
                limit: NEWEST,
                ..SessionFilter::default()
            };
            self.0.rows.list(&filter).0
        };
        let (others, exited) = (newest(others), newest(exited));
        others.iter().chain(&exited).map(|entry| (entry.id, entry.last_event_at)).collect()
    }

    /// The direct sub-agents of a session.
    #[must_use]
    pub fn children(&self, parent: SessionId) -> Vec<Arc<SessionEntry>> {
        self.0.rows.children(parent)
    }

    /// Number of sessions on the live view.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.rows.len()
    }

    /// Whether the live view is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Delivers frames to the streams until cancelled. Exactly one such task runs, owned by `serve`.
    pub async fn relay_frames(self, cancel: CancellationToken) {
        let frames = async {
            loop {
                self.0.feed.relay_frames().await;
            }
        };
        let deltas = async {
            loop {
                for frame in self.0.deltas.due().await {
                    let skipped = self.0.feed.publish_delta(frame);
                    self.0.deltas.dropped(u64::from(skipped));
                }
            }
        };
        tokio::select! {
            () = cancel.cancelled() => (),
            () = frames => (),
            () = deltas => (),
        }
    }

    /// The identity of this run of the program.
    #[must_use]
    pub fn epoch(&self) -> &Epoch {
        &self.0.epoch
    }

    /// The row of a session.
    #[must_use]
    pub fn get(&self, id: SessionId) -> Option<Arc<SessionEntry>> {
        self.0.rows.get(id)
    }

    /// The session with this agent's id.
    #[must_use]
    pub fn find(&self, provider_session_id: &str) -> Option<SessionId> {
        self.0.rows.find(provider_session_id)
    }

    /// The sessions whose id begins or ends with a text, or whose agent's id begins with it.
    #[must_use]
    pub fn fitting(&self, part: &IdPart, name: &str) -> Vec<Arc<SessionEntry>> {
        self.0.rows.fitting(part, name)
    }

    /// The rows that match a query, and whether there are more after them.
    #[must_use]
    pub fn list(&self, query: &SessionFilter) -> (Vec<Arc<SessionEntry>>, bool) {
        self.0.rows.list(query)
    }

    /// The number of sessions by agent and state.
    #[must_use]
    pub fn counts(&self) -> SessionCounts {
        self.0.rows.counts()
    }

    /// A number that grows with every change to a row.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.0.rows.changes()
    }

    /// The current mark of the feed.
    #[must_use]
    pub fn mark(&self) -> Mark {
        self.0.feed.mark()
    }

    /// The counters of deltas.
    #[must_use]
    pub fn delta_counts(&self) -> DeltaCounts {
        self.0.deltas.counts()
    }

    /// The counters of the feed.
    #[must_use]
    pub fn feed_counts(&self) -> FeedCounts {
        self.0.feed.counts()
    }
}
