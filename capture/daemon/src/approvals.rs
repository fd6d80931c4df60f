//! Owns the pending approvals: lists them, tracks which hooks wait for a decision, applies the policy and delivers
//! decisions to the agents.
//!
//! The [`ApprovalBroker`] owns the pending approvals and the waiting hooks. Ingest announces approvals to it after
//! their commit; the policy is applied only while a hook waits; every decision, by the user, a rule or a grant, takes
//! the same path in `decision`: claim, commit, answer, record. If any step fails, there is no answer, and the agent
//! asks the user itself.
//!
//! The table is guarded by one mutex, which is never held across an await, a read or hashing. Reading the store,
//! applying the policy and hashing files run on a few blocking threads (`blocking`).

mod accepted_answers;
mod blocking;
mod boundaries;
mod decision;
mod dialog;
mod files;
mod grants;
mod hook;
mod judge;
mod pending;
#[cfg(test)]
mod tests;

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agents::AgentAnswer;
use events::{ApprovalId, ApprovalKind, ApprovalState, DecidedVia, DeliveryId, SessionId};
use home::config::BoundaryMode;
use ingest::{IngestHandle, IngestInput};
use live_view::{ApprovalFilter, Decision, Refusal};
use monitor::RiskRequest;
use projections::{Approval, Session};
use serde_json::value::RawValue;
use store::{EntityFilter, Reader};
use tokio::{sync::Notify, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{runs::Runs, supervisor::Supervisor};

use accepted_answers::{accepts_decisions, route_of, why_not_allowed};
use blocking::BlockingPool;
use dialog::dialog_of;
use files::{FileMarks, has_more_files, marks};
use grants::Grant;
use pending::{KnownSince, PendingApprovals, PendingSummary};

use api::{
    approvals::{ApprovalView, FileView, PolicyView},
    part::{IdPart, PART_HINT, shown},
};
pub(crate) use judge::is_only_for_its_command;
pub use judge::{Judge, Judged, OnPolicy};

/// Maximum number of approvals that were pending before the start and can still be decided here.
const TAKEN_UP: usize = 1_000;
/// Number of recent approvals searched for a partial id.
const SEARCHED: usize = 1_000;
/// How long a request for one approval waits for its files to be hashed.
const HASHED_WITHIN: Duration = Duration::from_secs(1);
/// How long decisions in progress may take to finish when the broker stops.
const FINISHED_WITHIN: Duration = Duration::from_secs(2);

/// Owns the pending approvals and routes decisions. Clones share the state.
#[derive(Clone)]
pub struct ApprovalBroker {
    shared: Arc<BrokerState>,
}

/// The parts [`ApprovalBroker`] is built from.
pub struct BrokerParts {
    /// Commits decisions.
    pub inputs: IngestHandle,
    /// Reads the store.
    pub reader: Reader,
    /// The runs, whose dialogs can be answered by keys.
    pub runs: Runs,
    /// Runs the broker's tasks.
    pub runtime: tokio::runtime::Handle,
    /// The user's policy.
    pub judge: Arc<dyn Judge>,
    /// The effect of the user's own prohibitions.
    pub boundaries: BoundaryMode,
}

/// A hook, or the driver of an agent, that waits for the decision on its delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookWait {
    /// The delivery.
    pub delivery: DeliveryId,
    /// Whether it also waits for the user, not only for a rule.
    pub people: bool,
    /// The BLAKE3 hash of its input: only a decision on exactly that input answers it.
    pub digest: String,
}

struct BrokerState {
    inputs: IngestHandle,
    reader: Reader,
    runs: Runs,
    judge: Arc<dyn Judge>,
    boundaries: Mutex<BoundaryMode>,
    runtime: tokio::runtime::Handle,
    pending: Mutex<PendingApprovals>,
    /// Notified when a change to approvals affects the status of a session.
    waits_changed: Notify,
    /// Reads the store.
    reading: BlockingPool,
    /// Applies the policy, which looks at programs and at the workspace.
    judging: BlockingPool,
    /// Hashes files, which a slow file system may delay.
    hashing: BlockingPool,
    /// Decisions in progress.
    decisions: TaskTracker,
    stopping: CancellationToken,
}

impl ApprovalBroker {
    /// Starts with the approvals that were pending when the server last stopped.
    #[must_use]
    pub fn start(parts: BrokerParts, supervisor: &Supervisor) -> Self {
        let BrokerParts { inputs, reader, runs, runtime, judge, boundaries } = parts;
        let shared = BrokerState {
            inputs,
            reader,
            runs,
            judge,
            boundaries: Mutex::new(boundaries),
            runtime,
            pending: Mutex::default(),
            waits_changed: Notify::new(),
            reading: BlockingPool::new(),
            judging: BlockingPool::new(),
            hashing: BlockingPool::new(),
            decisions: TaskTracker::new(),
            stopping: CancellationToken::new(),
        };
        let broker = Self { shared: Arc::new(shared) };
        broker.restore();
        let announcing = broker.shared.stopping.clone().run_until_cancelled_owned(broker.clone().announce_waits());
        let task = async {
            announcing.await;
        };
        supervisor.spawn_task("approvals", &broker.shared.runtime, task);
        broker
    }

    /// Lists approvals, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(&self, filter: ApprovalFilter) -> Result<Vec<ApprovalView>, Refusal> {
        let ApprovalFilter { state, session, behind, limit } = filter;
        let filter = EntityFilter { states: state.map(|state| state..=state), session, limit, behind };
        let approvals = self.read(move |reader| reader.entities::<Approval>(&filter)).await?;
        let mut views = Vec::with_capacity(approvals.len());
        for approval in approvals {
            let boundary = self.boundary_of(&approval).await;
            views.push(ApprovalView { boundary, ..self.view(approval) });
        }
        Ok(views)
    }

    /// Finds one approval by its id or by the end or beginning of the id, with everything needed to decide it.
    ///
    /// # Errors
    /// When no approval or several match, or the store cannot be read.
    pub async fn get(&self, id: &str) -> Result<ApprovalView, Refusal> {
        let approval = self.find(id).await?;
        // An unresponsive file system must not hide the request.
        timeout(HASHED_WITHIN, self.mark_files(&approval)).await.ok();
        let boundary = self.boundary_of(&approval).await;
        let mut view = ApprovalView { boundary, ..self.view(approval) };
        // A rule would not depend on the content of a file.
        let files = self.pending().get(&view.approval.id).and_then(|pending| pending.files.get().cloned());
        let shows_rule = files.is_some_and(|files| files.is_empty() && !has_more_files(&view.approval, &files));
        if shows_rule {
            view.suggested_rule = self.rule_for(&view.approval).await?;
        }
        if view.approval.state == ApprovalState::Pending {
            view.same_as = self.pending().same_as(&view.approval);
        }
        Ok(view)
    }

    /// The rule that would allow exactly this request again.
    async fn rule_for(&self, approval: &Approval) -> Result<Option<String>, Refusal> {
        let (shared, approval) = (Arc::clone(&self.shared), approval.clone());
        let rule = move || shared.judge.rule_for(&approval, shared.session(approval.session_id).as_ref());
        self.shared.judging.run(rule).await
    }

    /// Decides an approval for the user; finds it as [`get`](Self::get) does. If the future is dropped before the
    /// approval is claimed, nothing is decided; once claimed, the decision is carried out completely.
    ///
    /// # Errors
    /// The reason nothing was decided, or the agent was not answered.
    pub async fn decide(&self, id: &str, decision: Decision) -> Result<ApprovalView, Refusal> {
        let approval = self.find(id).await?;
        let is_shown = |shown: &String| request_part(shown) == revision_of(&approval);
        if !decision.revision.as_ref().is_none_or(is_shown) && is_pending(&approval) {
            return Err(Refusal::Conflict(CHANGED.into()));
        }
        let rule = if decision.rule { Some(self.checked_rule(&approval).await?) } else { None };
        let decided = self.decide_one(&approval, decision).await;
        let approval = match decided {
            // Another decision may have been faster.
            Err(Refusal::Conflict(why)) => {
                return Err(match self.find(approval.id.as_str()).await {
                    Ok(now) if !is_pending(&now) => Refusal::Decided { why, before: Box::new((&now).into()) },
                    Ok(_) | Err(_) => Refusal::Conflict(why),
                });
            }
            decided => decided?,
        };
        if let Some(rule) = rule {
            let shared = Arc::clone(&self.shared);
            let saved = self.shared.judging.run(move || shared.judge.save_rule(&rule)).await?;
            saved
                .map_err(|why| Refusal::Conflict(format!("it was allowed once, but the rule was not saved: {why}")))?;
        }
        Ok(self.view(approval))
    }

    /// Decides, and carries the decision out completely.
    async fn decide_one(&self, approval: &Approval, decision: Decision) -> Result<Approval, Refusal> {
        let claimed = self.claim_for_person(approval, decision).await?;
        let decided = self.shared.decisions.spawn(self.clone().execute(claimed));
        decided.await.map_err(|error| Refusal::Failed(error.to_string()))?
    }

    /// The rule for a request, if it can be saved.
    async fn checked_rule(&self, approval: &Approval) -> Result<String, Refusal> {
        // A rule would not depend on the content of a file.
        let files = self.mark_files(approval).await?;
        let is_bare = files.is_empty() && !has_more_files(approval, &files);
        let rule = if is_bare { self.rule_for(approval).await? } else { None };
        let rule = rule.ok_or_else(|| Refusal::Conflict("no rule can allow exactly this request".into()))?;
        let (shared, checked) = (Arc::clone(&self.shared), rule.clone());
        let valid = self.shared.judging.run(move || shared.judge.check_rule(&checked)).await?;
        valid.map_err(|why| Refusal::Conflict(format!("the rule cannot be saved: {why}")))?;
        Ok(rule)
    }

    /// Waits for the decision on a delivery; `None` if the agent should ask the user itself. If `whole` is given, the
    /// hook was called before the agent's own rules, and only a denial by a rule answers it. Dropping the future means
    /// that the hook disconnected.
    pub async fn answer_hook(&self, wait: HookWait, whole: Option<Box<RawValue>>) -> Option<AgentAnswer> {
        match whole {
            Some(whole) => self.forbid(wait.delivery, whole).await,
            None => self.wait_for_decision(wait).await,
        }
    }

    /// Receives an approval after its opening or closing was committed. Never blocks.
    pub fn changed(&self, approval: Approval) {
        if approval.state != ApprovalState::Pending {
            self.pending().close(&approval);
        } else if self.pending().open(&approval, KnownSince::Request) {
            self.start_marking(approval);
        }
    }

    /// Forgets removed sessions: their pending approvals and their grants. Hooks waiting for a decision get no answer.
    /// Never blocks.
    pub fn forget(&self, sessions: &[SessionId]) {
        self.pending().forget(sessions);
        self.shared.waits_changed.notify_one();
    }

    /// Stops: no new decision starts, and hooks without a decision in progress get no answer.
    pub fn stop(&self) {
        let mut pending = self.pending();
        // Under the lock: after this no approval is claimed and no hook is admitted.
        self.shared.stopping.cancel();
        pending.dismiss_unclaimed();
        drop(pending);
        self.shared.decisions.close();
    }

    /// Waits, after [`stop`](Self::stop), for the decisions in progress; those that take too long are not answered.
    pub async fn stopped(&self) {
        if timeout(FINISHED_WITHIN, self.shared.decisions.wait()).await.is_err() {
            tracing::warn!(
                "stopping while a permission request is being decided: the agent gets no answer and asks in its own dialog"
            );
        }
        self.pending().dismiss_all();
    }

    fn pending(&self) -> MutexGuard<'_, PendingApprovals> {
        self.shared.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a task until it ends or the broker stops.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.shared.stopping.clone();
        self.shared.runtime.spawn(stopping.run_until_cancelled_owned(task));
    }

    /// Restores the approvals that were pending before the start.
    fn restore(&self) {
        let pending = ApprovalState::Pending;
        let filter =
            EntityFilter::<Approval> { states: Some(pending..=pending), session: None, limit: TAKEN_UP, behind: None };
        match self.shared.reader.entities(&filter) {
            Ok(approvals) => {
                for approval in approvals {
                    // The stored status may still show a waiting hook. Hooks that still wait reconnect.
                    self.pending().open(&approval, KnownSince::Start);
                    self.start_marking(approval);
                }
                self.shared.waits_changed.notify_one();
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read the pending permission requests; capture will not answer them")
            }
        }
    }

    /// Shows in the status of sessions which approvals a hook waits for, if the agent itself shows nothing. A single
    /// task compares the current state with the announced one, so that no order of events can leave a wrong claim.
    async fn announce_waits(self) {
        loop {
            self.shared.waits_changed.notified().await;
            loop {
                let change = self.pending().next_wait_change();
                let Some((session, approval, waits)) = change else { break };
                if self.shared.inputs.send_async(IngestInput::Waits(session, approval, waits)).await.is_err() {
                    return;
                }
            }
        }
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, store::ReadError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let reader = self.shared.reader.clone();
        let read = self.shared.reading.run(move || read(&reader)).await?;
        read.map_err(|error| Refusal::Failed(error.to_string()))
    }

    /// The approval the user refers to by its id or by the end or beginning of the id; searches the pending approvals,
    /// then the most recently closed ones.
    async fn find(&self, given: &str) -> Result<Approval, Refusal> {
        let id = ApprovalId::from(given.to_ascii_uppercase().as_str());
        if let Some(approval) = self.read(move |reader| reader.entity::<Approval>(&id)).await? {
            return Ok(approval);
        }
        let part = IdPart::new(given);
        let fits = |id: &str| part.as_ref().is_some_and(|part| part.fits(id));
        let mut fitting = self.pending().matching(fits);
        if fitting.is_empty() {
            let filter = EntityFilter { states: None, session: None, limit: SEARCHED, behind: None };
            fitting = self.read(move |reader| reader.entities::<Approval>(&filter)).await?;
            fitting.retain(|approval| fits(approval.id.as_str()));
        }
        let shown = shown(given);
        match (fitting.pop(), fitting.is_empty()) {
            (Some(approval), true) => Ok(approval),
            (Some(_), false) => Err(Refusal::Ambiguous(format!(
                "`{shown}` matches several permission requests; give more characters of the id"
            ))),
            (None, _) => Err(Refusal::NotFound(format!(
                "no permission request `{shown}`; `capture approvals --all` lists them, and {PART_HINT}"
            ))),
        }
    }

    /// Starts hashing the files of a request, as they are at the time of the request.
    fn start_marking(&self, approval: Approval) {
        let broker = self.clone();
        self.spawn(async move {
            if let Err(error) = broker.mark_files(&approval).await {
                tracing::warn!(%error, approval = approval.id.as_str(), "cannot check the files of a permission request");
            }
        });
    }

    /// Waits until the files of a pending approval are hashed; the first caller hashes them.
    async fn mark_files(&self, approval: &Approval) -> Result<FileMarks, Refusal> {
        let files = self.pending().get(&approval.id).map(|pending| Arc::clone(&pending.files));
        let Some(files) = files else { return Ok(FileMarks::default()) };
        let marked = files.get_or_try_init(|| self.marks_now(approval)).await?;
        Ok(Arc::clone(marked))
    }

    async fn marks_now(&self, approval: &Approval) -> Result<FileMarks, Refusal> {
        let approval = approval.clone();
        self.shared.hashing.run(move || Arc::new(marks(&approval))).await
    }

    /// An approval in the form shown to clients, without a suggested rule and a boundary, which take separate lookups.
    fn view(&self, approval: Approval) -> ApprovalView {
        let standing = self.pending().standing(&approval);
        let mut revision = revision_of(&approval);
        let (answer, unanswerable) = match self.route_now(&approval, &standing) {
            Some(Ok(RouteNow::Waiting(via))) => (Some(via), None),
            Some(Ok(RouteNow::Dialog(mark))) => {
                revision = with_dialog(&revision, &mark);
                (Some(DecidedVia::Keys), None)
            }
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        let PendingSummary { files, judged, is_pending, .. } = standing;
        // Until the files are hashed, others may exist.
        let more_files = is_pending && files.as_ref().is_none_or(|files| has_more_files(&approval, files));
        let repeatable = is_pending
            && answer.is_some_and(|via| via != DecidedVia::Keys)
            && files.as_ref().is_some_and(|files| Grant::of(&approval, files).is_some());
        ApprovalView {
            revision,
            same_as: Vec::new(),
            cannot_allow: why_not_allowed(&approval).filter(|_| answer.is_some()),
            answer,
            unanswerable,
            files: files.iter().flat_map(|files| files.iter()).map(FileView::from).collect(),
            more_files,
            repeatable,
            policy: judged.as_ref().map(PolicyView::from),
            risk: (approval.state == ApprovalState::Pending).then(|| risk_of(&approval)).flatten().map(str::to_owned),
            boundary: None,
            suggested_rule: None,
            approval,
        }
    }

    /// How a decision made now would reach the agent, or why it would not; `None` for a closed approval.
    fn route_now(&self, approval: &Approval, standing: &PendingSummary) -> Option<Result<RouteNow, String>> {
        if approval.state != ApprovalState::Pending {
            return None;
        }
        if standing.waits_for_person {
            return accepts_decisions(approval).then(|| Ok(RouteNow::Waiting(route_of(approval))));
        }
        let dialog = dialog_of(&self.shared.runs, approval, standing.is_alone);
        let by_keys = dialog.map(|(_, mark)| RouteNow::Dialog(mark));
        Some(by_keys.map_err(|why| why_not_allowed(approval).unwrap_or(why)))
    }
}

fn is_pending(approval: &Approval) -> bool {
    approval.state == ApprovalState::Pending
}

/// Why a request deserves a second look, according to the monitor's heuristic; `None` if it finds no sign of danger.
pub(crate) fn risk_of(approval: &Approval) -> Option<&'static str> {
    // A command read off a screen may be cut off, but nothing more is available.
    let seen = approval.subject.as_deref().filter(|_| approval.kind == Some(ApprovalKind::Command));
    let excerpt = approval.excerpt.as_ref().filter(|_| approval.kind == Some(ApprovalKind::Command));
    let excerpt = excerpt.map(|excerpt| excerpt.joined());
    let (paths, url) = (&approval.paths, approval.url.as_deref());
    monitor::risk(&RiskRequest { command: approval.command.as_deref().or(excerpt.as_deref()).or(seen), paths, url })
}

/// How a decision made now would reach the agent.
enum RouteNow {
    /// Through the hook or driver that waits for it.
    Waiting(DecidedVia),
    /// Through keys that answer the dialog with this mark.
    Dialog(String),
}

const CHANGED: &str = "the request changed since it was shown; check it and decide again";

/// Combines the revision of a request with the mark of the dialog that keys would answer.
fn with_dialog(revision: &str, mark: &str) -> String {
    format!("{revision}.{mark}")
}

/// The part of a revision that identifies the request, without the dialog.
fn request_part(revision: &str) -> &str {
    revision.split_once('.').map_or(revision, |(request, _)| request)
}

/// Identifies the content of a request. Its files are not included: their content is compared when the request is
/// decided.
pub(crate) fn revision_of(approval: &Approval) -> String {
    let Approval { id, kind, tool, command, paths, url, subject, question, options, input, exact, cwd, digest, .. } =
        approval;
    let excerpt = &approval.excerpt;
    let said = (
        (id, kind, tool, command, paths, url, subject),
        (question, options, input, excerpt, exact, cwd, digest, approval.agent_id.as_ref()),
    );
    let text = serde_json::to_vec(&said).unwrap_or_default();
    blake3::hash(&text).to_hex()[..16].to_owned()
}

impl BrokerState {
    fn session(&self, id: SessionId) -> Option<Session> {
        self.reader.session(id).ok().flatten()
    }
}
