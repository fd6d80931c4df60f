//! Follows the log for a stream: a snapshot, then every later event, without gaps or duplicates.
//!
//! The stream is registered first, and the feed's position is read after that. Frames published before the position are
//! in the rows (snapshot) or the log (resume), and later frames are in the stream's queue. This module is independent
//! of SSE and WebSocket.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use events::{ApprovalId, Finding, FindingId, Payload, SessionId};
use futures_util::FutureExt;
use live_view::{FeedEnd, Frame, FrameKind, Interest, Json, SessionFilter, Subscription, locks::lock};
use projections::Approval;
use store::{ReadError, Reader};
use tokio::time::{Instant, sleep_until};

use crate::{
    app::App,
    error::ApiError,
    snapshot::{LastSnapshot, Open, Snapshot},
};

/// Number of events read from the log at a time.
const PAGE: usize = 500;
/// The order of frames made from the log; the feed counts from 1.
const FROM_LOG: u64 = 0;
/// Maximum number of sessions in a snapshot of everything.
const SNAPSHOT_SESSIONS: usize = 5000;
/// Delay before a new snapshot. While history is read, unpublished commits come in groups, and one snapshot covers
/// many.
const SETTLE: Duration = Duration::from_millis(250);

/// The position from which a client resumes.
#[derive(Debug, Clone)]
pub(crate) struct Resume {
    /// The last position the client received.
    pub(crate) after: u64,
    /// The epoch of that position, if the client sent it.
    pub(crate) epoch: Option<String>,
}

/// The next item of a stream.
pub(crate) enum Item {
    /// The state of all sessions; it replaces everything sent before.
    Snapshot(Arc<Snapshot>),
    /// One frame.
    Frame(Arc<Frame>),
    /// The client was too slow; a snapshot follows if the stream continues.
    TooSlow,
}

/// A stream's view of the log.
pub(crate) struct Tail {
    app: App,
    interest: Interest,
    subscription: Subscription,
    stage: Stage,
    /// Frames up to this order are covered by what was already sent.
    covered: u64,
    ready: VecDeque<Arc<Frame>>,
    /// Minimum time between two reads of the queue.
    batch: Duration,
    taken_at: Instant,
    /// Whether permission requests are sent before other ready frames.
    requests_first: bool,
    /// Whether frames that contain a state are sent even if the log covers them, because the log does not contain all
    /// of them.
    keeps_states: bool,
    /// A hash of the last status sent for each session, while frames are sent in batches.
    sent: HashMap<SessionId, u64>,
}

enum Stage {
    /// Nothing was sent yet.
    Start(Option<Resume>),
    /// A snapshot is next, not before this time.
    Snapshot(Option<Instant>),
    /// The log is read from after `after` up to `upto`.
    Replay { after: u64, upto: u64, touched: Touched },
    /// Frames are sent as they arrive.
    Live,
}

/// The objects mentioned in a part of the log that is not itself sent.
#[derive(Debug, Default)]
struct Touched {
    sessions: BTreeSet<SessionId>,
    approvals: BTreeSet<ApprovalId>,
    findings: BTreeSet<FindingId>,
}

impl Touched {
    /// Records which approval or finding an event is about.
    fn note(&mut self, payload: &Payload) {
        if let Payload::ApprovalRequested(asked) = payload {
            self.approvals.insert(asked.approval_id.clone());
        } else if let Payload::ApprovalResolved(resolved) = payload {
            self.approvals.insert(resolved.approval_id.clone());
        } else if let Payload::Finding(finding) = payload {
            self.findings.insert(finding.id.clone());
        }
    }
}

impl Tail {
    pub(crate) fn new(app: &App, interest: Interest, resume: Option<Resume>) -> Self {
        Self::in_batches(app, interest, resume, Duration::ZERO)
    }

    /// Reads frames at most once per `batch`, and sends only the last of several statuses of a session.
    pub(crate) fn in_batches(app: &App, interest: Interest, resume: Option<Resume>, batch: Duration) -> Self {
        let limits = &app.limits;
        Self {
            subscription: app.live_view.subscribe(interest.clone(), limits.queue_frames, limits.queue_bytes),
            app: Arc::clone(app),
            interest,
            stage: Stage::Start(resume),
            covered: 0,
            ready: VecDeque::new(),
            batch,
            requests_first: false,
            keeps_states: false,
            taken_at: Instant::now(),
            sent: HashMap::new(),
        }
    }

    /// Sends permission requests before other ready frames, because a person is waiting for them. Positions are then no
    /// longer in order.
    pub(crate) fn requests_first(self) -> Self {
        Self { requests_first: true, ..self }
    }

    /// Switches the stream to another interest, continuing from `resume`. Frames with states that were not sent yet are
    /// sent by the new stream.
    pub(crate) fn turn_to(&mut self, interest: Interest, resume: Option<Resume>) {
        let goes_on = resume.is_some();
        let next = Self {
            requests_first: self.requests_first,
            keeps_states: goes_on,
            ..Self::in_batches(&self.app, interest, resume, self.batch)
        };
        let mut before = std::mem::replace(self, next);
        // A broken stream restarts with a snapshot, or its client has the position to resume from.
        if goes_on && before.subscription.take(&mut before.ready).now_or_never().is_none_or(|taken| taken.is_ok()) {
            self.ready = before.ready;
            self.ready.retain(|frame| !is_of_a_session(frame));
        }
    }

    /// Whether no frames wait to be sent and none were dropped.
    pub(crate) fn is_drained(&self) -> bool {
        self.ready.is_empty() && matches!(self.stage, Stage::Live) && !self.subscription.is_broken()
    }

    /// Changes the minimum time between two reads of the queue.
    pub(crate) fn set_batch(&mut self, batch: Duration) {
        self.batch = batch;
    }

    /// Whether frames are read in batches, each of which is sent as one.
    pub(crate) const fn is_batched(&self) -> bool {
        !self.batch.is_zero()
    }

    /// The next item. Cancelling the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Item, ApiError> {
        loop {
            if let Some(item) = self.ready() {
                return Ok(item);
            }
            match &mut self.stage {
                Stage::Start(resume) => {
                    let mark = self.app.live_view.mark();
                    let epoch = self.app.live_view.epoch().text();
                    let resume = resume.take().filter(|resume| {
                        resume.epoch.as_deref().is_none_or(|theirs| theirs == epoch)
                            && mark
                                .position
                                .checked_sub(resume.after)
                                .is_some_and(|behind| behind <= self.app.limits.resume_events)
                    });
                    self.stage = match resume {
                        Some(Resume { after, .. }) => {
                            self.covered = mark.order;
                            Stage::Replay { after, upto: mark.position, touched: Touched::default() }
                        }
                        None => Stage::Snapshot(None),
                    };
                }
                Stage::Snapshot(not_before) => {
                    if let Some(moment) = *not_before {
                        sleep_until(moment).await;
                    }
                    self.subscription.mend();
                    self.sent.clear();
                    let (order, snapshot) = snapshot(&self.app, &self.interest).await?;
                    self.covered = order;
                    self.stage = Stage::Live;
                    return Ok(Item::Snapshot(snapshot));
                }
                Stage::Replay { .. } => self.replay().await?,
                Stage::Live => match self.take().await {
                    Ok(()) => {}
                    Err(FeedEnd::Slow) => {
                        self.stage = Stage::Snapshot(None);
                        return Ok(Item::TooSlow);
                    }
                    Err(FeedEnd::Skipped) => {
                        self.stage = Stage::Snapshot(Some(Instant::now() + SETTLE));
                    }
                },
            }
        }
    }

    async fn take(&mut self) -> Result<(), FeedEnd> {
        if self.is_batched() {
            sleep_until(self.taken_at + self.batch).await;
        }
        self.subscription.take(&mut self.ready).await?;
        if self.is_batched() {
            self.taken_at = Instant::now();
            self.keep_new_statuses();
        }
        if self.requests_first {
            let frames = self.ready.make_contiguous();
            frames.sort_by_key(|frame| frame.kind != FrameKind::Approval);
        }
        Ok(())
    }

    /// Removes statuses that a later one of the same session replaces, and those equal to the last one sent: most
    /// statuses are published both before and after their commit.
    fn keep_new_statuses(&mut self) {
        let mut last = HashMap::new();
        for frame in self.ready.iter().filter(|frame| matches!(frame.kind, FrameKind::Status(_))) {
            last.insert(frame.session, frame.order);
        }
        let sent = &mut self.sent;
        self.ready.retain(|frame| {
            if !matches!(frame.kind, FrameKind::Status(_)) {
                return true;
            }
            let mut hasher = DefaultHasher::new();
            frame.json.as_str().hash(&mut hasher);
            let hash = hasher.finish();
            last.get(&frame.session) == Some(&frame.order) && sent.insert(frame.session, hash) != Some(hash)
        });
    }

    /// The next item that can be sent without waiting.
    pub(crate) fn ready(&mut self) -> Option<Item> {
        loop {
            let frame = self.ready.pop_front()?;
            let is_covered = frame.order != FROM_LOG && frame.order <= self.covered;
            if is_covered && (!self.keeps_states || is_of_a_session(&frame)) {
                continue;
            }
            if self.subscription.is_broken() {
                // The remaining frames are void too, because the following snapshot covers them.
                self.ready.clear();
                self.stage = Stage::Live;
                return None;
            }
            return Some(Item::Frame(frame));
        }
    }

    /// Reads one page of the log; after the last one, adds the current states of the sessions found there.
    async fn replay(&mut self) -> Result<(), ApiError> {
        let Stage::Replay { after, upto, touched } = &mut self.stage else {
            return Ok(());
        };
        let (from, to) = (*after, *upto);
        let session = match self.interest.sessions() {
            Some([only]) => Some(*only),
            Some(_) | None => None,
        };
        let page =
            if from < to { self.app.read(move |reader| reader.log(from, PAGE, session)).await? } else { Vec::new() };
        let full = page.len() == PAGE;
        for event in page.iter().take_while(|event| event.position <= to) {
            *after = event.position;
            if self.interest.sessions().is_some_and(|ids| !ids.contains(&event.session_id)) {
                continue;
            }
            touched.sessions.insert(event.session_id);
            if !self.interest.wants_events_of(event.session_id) {
                touched.note(&event.payload);
            } else {
                let json = Json::of(event).map_err(|cause| ApiError::internal(&cause))?;
                let kind = event.payload.kind();
                self.ready.push_back(Arc::new(Frame::event(Some(event.position), event.session_id, kind, json)));
            }
        }
        if !full || *after >= to {
            let Touched { sessions, approvals, findings } = std::mem::take(touched);
            if !approvals.is_empty() || !findings.is_empty() {
                let to_frames = move |reader: &Reader| present_forms(reader, to, &approvals, &findings);
                self.ready.extend(self.app.read(to_frames).await?);
            }
            for id in sessions {
                let entry = self.app.live_view.get(id);
                if let Some(frame) = entry.and_then(|entry| Frame::of_entry(Some(to), &entry)) {
                    self.ready.push_back(Arc::new(frame));
                }
            }
            // Add approvals and findings opened since. Those closed since are among the events, or were read from the
            // store above.
            let view = &self.app.live_view;
            for (session, json) in view.pending_approvals(&self.interest) {
                self.ready.push_back(Arc::new(Frame::approval(Some(to), session, json)));
            }
            for (session, json) in view.open_findings(&self.interest) {
                self.ready.push_back(Arc::new(Frame::finding(Some(to), session, json)));
            }
            self.stage = Stage::Live;
        }
        Ok(())
    }
}

/// Whether a frame is of a kind that is sent only for selected sessions.
fn is_of_a_session(frame: &Frame) -> bool {
    matches!(frame.kind, FrameKind::Event(_) | FrameKind::Delta)
}

/// The current forms of approvals and findings mentioned in the log, so that clients that do not get its events learn
/// that one was closed.
fn present_forms(
    reader: &Reader,
    position: u64,
    approvals: &BTreeSet<ApprovalId>,
    findings: &BTreeSet<FindingId>,
) -> Result<Vec<Arc<Frame>>, ReadError> {
    let mut frames = Vec::new();
    for id in approvals {
        let Some(approval) = reader.entity::<Approval>(id)? else { continue };
        let json = Json::of(&approval).ok();
        frames.extend(json.map(|json| Arc::new(Frame::approval(Some(position), approval.session_id, json))));
    }
    for id in findings {
        let Some(finding) = reader.entity::<Finding>(id)? else { continue };
        let json = Json::of(&finding).ok();
        frames.extend(json.map(|json| Arc::new(Frame::finding(Some(position), finding.session_id, json))));
    }
    Ok(frames)
}

/// The states of the selected sessions, and the order up to which they cover the feed.
async fn snapshot(app: &App, interest: &Interest) -> Result<(u64, Arc<Snapshot>), ApiError> {
    // Read the position before the rows; see the module documentation.
    let mark = app.live_view.mark();
    match interest.sessions() {
        None => {
            let changes = app.live_view.changes();
            if let Some(last) = &*lock(&app.last_snapshot)
                && (last.mark, last.changes) == (mark, changes)
            {
                return Ok((mark.order, Arc::clone(&last.snapshot)));
            }
            let active = SessionFilter { active: true, limit: SNAPSHOT_SESSIONS, ..SessionFilter::default() };
            let sessions = app.session_jsons(app.live_view.list(&active).0).await?;
            let open = Open::of(&app.live_view, interest);
            let snapshot = Arc::new(Snapshot::new(mark.position, app.live_view.epoch(), sessions, &open));
            *lock(&app.last_snapshot) = Some(LastSnapshot { mark, changes, snapshot: Arc::clone(&snapshot) });
            Ok((mark.order, snapshot))
        }
        Some(ids) => {
            let (mut rows, mut cold) = (Vec::new(), Vec::new());
            for id in ids {
                match app.live_view.get(*id) {
                    Some(row) => rows.push(row),
                    None => cold.push(*id),
                }
            }
            let open = Open::of(&app.live_view, interest);
            let mut sessions = app.session_jsons(rows).await?;
            if !cold.is_empty() {
                let found = app
                    .read(move |reader| {
                        cold.into_iter().map(|id| reader.session_json(id)).collect::<Result<Vec<_>, _>>()
                    })
                    .await?;
                sessions.extend(found.into_iter().flatten().map(Json::from_text));
            }
            Ok((mark.order, Arc::new(Snapshot::new(mark.position, app.live_view.epoch(), sessions, &open))))
        }
    }
}
