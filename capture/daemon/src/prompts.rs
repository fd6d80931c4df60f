//! The prompt queue: types each queued prompt into its session's run once the session waits for one, never into a
//! dialog, and never twice.
//!
//! One task owns the queue. The state `delivering` is committed before the first character of a prompt is typed: after
//! a crash such a prompt is `unclear` and left to the user.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use events::{PromptId, QueuedBy, QueuedState, SessionId, State, Timestamp};
use home::clock;
use host_protocol::frame::CommandOrigin;
use ingest::{DerivedKind, DerivedRecord, IngestHandle, IngestInput, IngestStopped};
use live_view::Refusal;
use projections::{Prompt, Session};
use store::{EntityFilter, Reader};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use crate::{
    runs::{PromptOutcome, Runs},
    supervisor::Supervisor,
};

/// Maximum number of pending messages to the task.
const TOLD: usize = 256;
/// Maximum number of queued prompts per session.
const PER_SESSION: usize = 50;
/// Interval between checks of sessions with queued prompts; they are also checked at each commit.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Minimum time for which a session must wait before a prompt is typed, ms: its agent may be drawing, and its user may
/// be typing.
const SETTLED_MS: i64 = 1_500;
/// First delay before retrying a run that did not accept a prompt; it doubles up to [`LAST_AGAIN`].
const FIRST_AGAIN: Duration = Duration::from_secs(2);
/// Longest delay between two attempts with a run that does not accept a prompt.
const LAST_AGAIN: Duration = Duration::from_secs(60);

/// A handle on the queue; clones share it.
#[derive(Clone)]
pub struct Prompts {
    told: mpsc::Sender<QueueMessage>,
}

enum Request {
    /// Add a prompt to a session's queue.
    Queue { session: SessionId, text: String, by: QueuedBy },
    /// Withdraw this prompt.
    Cancel(PromptId),
}

/// A request and the reply channel of its sender; `None` if a rule of the user's configuration sent it.
type QueueMessage = (Request, Option<oneshot::Sender<Result<Prompt, Refusal>>>);

/// The parts the queue needs.
pub struct QueueParts {
    /// Ingest, which commits the states of prompts.
    pub inputs: IngestHandle,
    /// Reads the store.
    pub reader: Reader,
    /// The runs into which prompts are typed.
    pub runs: Runs,
}

impl Prompts {
    /// Starts the task, which runs until the token is cancelled.
    #[must_use]
    pub fn start(
        parts: QueueParts,
        runtime: &tokio::runtime::Handle,
        cancel: CancellationToken,
        supervisor: &Supervisor,
    ) -> Self {
        let (told, inbox) = mpsc::channel(TOLD);
        let queue = Queue { parts, waiting: BTreeMap::new(), put_off: BTreeMap::new() };
        // It is not restarted, because only this task knows which prompt is being typed.
        supervisor.spawn_task("prompts", runtime, queue.run(inbox, cancel));
        Self { told }
    }

    /// Queues a prompt for a session.
    ///
    /// # Errors
    /// When no run hosts the session, its queue is full, or the prompt cannot be stored.
    pub async fn queue(&self, session: SessionId, text: String) -> Result<Prompt, Refusal> {
        self.request(Request::Queue { session, text, by: QueuedBy::Person }).await
    }

    /// Withdraws a waiting prompt.
    ///
    /// # Errors
    /// When no prompt with this id is waiting, or the withdrawal cannot be stored.
    pub async fn cancel(&self, id: PromptId) -> Result<Prompt, Refusal> {
        self.request(Request::Cancel(id)).await
    }

    async fn request(&self, request: Request) -> Result<Prompt, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.told.try_send((request, Some(reply))).map_err(|_| Refusal::Unavailable)?;
        answer.await.unwrap_or(Err(Refusal::Unavailable))
    }

    /// Queues a prompt for a rule of the user's configuration.
    pub fn suggest(&self, session: SessionId, text: String) {
        let request = Request::Queue { session, text, by: QueuedBy::Monitor };
        if self.told.try_send((request, None)).is_err() {
            tracing::warn!("a rule's prompt is dropped: the prompt queue has too many pending requests");
        }
    }
}

struct Queue {
    parts: QueueParts,
    /// Waiting prompts, oldest first.
    waiting: BTreeMap<SessionId, VecDeque<Prompt>>,
    /// Sessions whose run accepted nothing at the last attempt: the time of the next attempt, and the delay before it.
    put_off: BTreeMap<SessionId, (Instant, Duration)>,
}

impl Queue {
    async fn run(mut self, mut inbox: mpsc::Receiver<QueueMessage>, cancel: CancellationToken) {
        self.restore().await;
        loop {
            let idle = self.waiting.is_empty();
            tokio::select! {
                () = cancel.cancelled() => return,
                told = inbox.recv() => match told {
                    // The caller has gone, so the request is not started.
                    Some((_, Some(reply))) if reply.is_closed() => {}
                    Some((request, Some(reply))) => {
                        let answer = self.apply_request(request).await;
                        // The client may have disconnected.
                        reply.send(answer).ok();
                    }
                    Some((request, None)) => {
                        if let Err(refusal) = self.apply_request(request).await {
                            tracing::info!(%refusal, "cannot queue a rule's prompt");
                        }
                    }
                    None => return,
                },
                () = sleep(LOOK_EVERY), if !idle => self.deliver().await,
            }
        }
    }

    /// Restores prompts from before the start: waiting prompts still wait, and a prompt that was being typed becomes
    /// `unclear`.
    async fn restore(&mut self) {
        let reader = self.parts.reader.clone();
        let filter = EntityFilter {
            states: Some(QueuedState::Queued..=QueuedState::Delivering),
            session: None,
            limit: 10_000,
            behind: None,
        };
        let found = tokio::task::spawn_blocking(move || reader.entities::<Prompt>(&filter)).await;
        let mut prompts = match found {
            Ok(Ok(prompts)) => prompts,
            Ok(Err(error)) => return tracing::error!(%error, "cannot read queued prompts; none will be delivered"),
            Err(_) => return,
        };
        prompts.reverse();
        for prompt in prompts {
            if prompt.waits() && prompt.redacted {
                let why = "the prompt contained a secret, which capture does not store; queue the prompt again";
                if let Err(error) = self.end(prompt, QueuedState::Cancelled, Some(why.into())).await {
                    tracing::warn!(%error, "cannot store that a prompt was cancelled");
                }
            } else if prompt.waits() {
                self.waiting.entry(prompt.session_id).or_default().push_back(prompt);
            } else {
                let why = "capture ended while the prompt was being typed";
                if let Err(error) = self.end(prompt, QueuedState::Unclear, Some(why.into())).await {
                    tracing::warn!(%error, "cannot store that the delivery of a prompt is unclear");
                }
            }
        }
    }

    async fn apply_request(&mut self, request: Request) -> Result<Prompt, Refusal> {
        match request {
            Request::Queue { session, text, by } => {
                let queue = self.waiting.get(&session).map_or(0, VecDeque::len);
                if queue >= PER_SESSION {
                    return Err(Refusal::Conflict(format!(
                        "this session already has {PER_SESSION} queued prompts, the \
                        maximum"
                    )));
                }
                if self.parts.runs.run_of(session).is_none() {
                    self.parts.runs.reconnected().await;
                }
                if self.parts.runs.run_of(session).is_none() {
                    return Err(Refusal::Conflict(format!(
                        "session {session} is not in an active run, so capture cannot type into it; `capture run` \
                         starts an agent in one"
                    )));
                }
                let now = clock::now();
                let random = clock::random().map_err(|error| Refusal::Failed(error.to_string()))?;
                let id = PromptId::mint(now, random);
                let prompt = Prompt {
                    id,
                    session_id: session,
                    state: QueuedState::Queued,
                    by,
                    text,
                    redacted: false,
                    why: None,
                    queued_at: now,
                    ended_at: None,
                };
                self.commit(prompt.clone()).await?;
                self.waiting.entry(session).or_default().push_back(prompt.clone());
                if self.parts.runs.ends_with_turn(session) {
                    // After the turn the run may have ended.
                    let delivered = self.deliver_to(session).await;
                    return Ok(delivered.filter(|delivered| delivered.id == id).unwrap_or(prompt));
                }
                Ok(prompt)
            }
            Request::Cancel(id) => {
                let found = self.waiting.values_mut().find_map(|queue| {
                    let at = queue.iter().position(|prompt| prompt.id == id)?;
                    queue.remove(at)
                });
                self.waiting.retain(|_, queue| !queue.is_empty());
                let prompt = found.ok_or_else(|| Refusal::Conflict(format!("prompt {id} is no longer queued")))?;
                self.end(prompt, QueuedState::Cancelled, None).await
            }
        }
    }

    /// Types the first prompt of each session that waits for one.
    async fn deliver(&mut self) {
        let sessions: Vec<SessionId> = self.waiting.keys().copied().collect();
        for session in sessions {
            let reader = self.parts.reader.clone();
            let Ok(Ok(Some(view))) = tokio::task::spawn_blocking(move || reader.session(session)).await else {
                continue;
            };
            if view.status.state == State::Exited || view.merged_into.is_some() {
                self.fail_all(session, &view).await;
            } else if waits(&view, clock::now())
                && self.put_off.get(&session).is_none_or(|(at, _)| *at <= Instant::now())
                && self.parts.runs.takes_prompt(session).await
            {
                let _ = self.deliver_to(session).await;
            }
        }
    }

    /// Delivers the first prompt of a session. Returns its new state, if that was stored.
    async fn deliver_to(&mut self, session: SessionId) -> Option<Prompt> {
        let prompt = self.waiting.get(&session).and_then(VecDeque::front).cloned()?;
        let typing = Prompt { state: QueuedState::Delivering, why: None, ..prompt };
        // Before the first character, so that after a crash it is not typed again.
        self.commit(typing.clone()).await.ok()?;
        match self.type_or_send(session, &typing).await {
            PromptOutcome::Typed => self.close(session, typing, QueuedState::Delivered, None).await,
            PromptOutcome::Unknown(why) => self.close(session, typing, QueuedState::Unclear, Some(why)).await,
            PromptOutcome::Refused(why) => {
                let wait = self.put_off.get(&session).map_or(FIRST_AGAIN, |(_, wait)| (*wait * 2).min(LAST_AGAIN));
                self.put_off.insert(session, (Instant::now() + wait, wait));
                let back = Prompt { state: QueuedState::Queued, why: Some(why), ..typing };
                self.commit(back.clone()).await.ok()?;
                if let Some(first) = self.waiting.get_mut(&session).and_then(VecDeque::front_mut) {
                    first.clone_from(&back);
                }
                Some(back)
            }
        }
    }

    /// Types a prompt, or sends it, with its origin, to a session that accepts prompts directly.
    async fn type_or_send(&self, session: SessionId, prompt: &Prompt) -> PromptOutcome {
        let runs = &self.parts.runs;
        if !runs.takes(session, "prompt") {
            return runs.prompt(session, &prompt.text).await;
        }
        let by = match prompt.by {
            QueuedBy::Person => CommandOrigin::Person,
            QueuedBy::Monitor => CommandOrigin::Monitor { finding: format!("queued as {}", prompt.id) },
        };
        runs.send_prompt(session, &prompt.text, by).await
    }

    async fn close(
        &mut self,
        session: SessionId,
        prompt: Prompt,
        state: QueuedState,
        why: Option<String>,
    ) -> Option<Prompt> {
        self.put_off.remove(&session);
        if let Some(queue) = self.waiting.get_mut(&session) {
            queue.pop_front();
            if queue.is_empty() {
                self.waiting.remove(&session);
            }
        }
        let ended = self.end(prompt, state, why).await;
        ended.inspect_err(|error| tracing::warn!(%session, %error, "cannot store the outcome of a prompt")).ok()
    }

    /// Fails all prompts of a session that has ended.
    async fn fail_all(&mut self, session: SessionId, view: &Session) {
        // A session merged into another continues under the other's id.
        let others = self.waiting.remove(&session).unwrap_or_default();
        match view.merged_into {
            Some(into) => {
                for prompt in others {
                    let moved = Prompt { session_id: into, ..prompt };
                    if self.commit(moved.clone()).await.is_ok() {
                        self.waiting.entry(into).or_default().push_back(moved);
                    }
                }
            }
            None => {
                for prompt in others {
                    self.end(prompt, QueuedState::Cancelled, Some("the session ended".into())).await.ok();
                }
            }
        }
    }

    async fn end(&self, prompt: Prompt, state: QueuedState, why: Option<String>) -> Result<Prompt, Refusal> {
        let ended = Prompt { state, why, ended_at: Some(clock::now()), ..prompt };
        self.commit(ended.clone()).await?;
        Ok(ended)
    }

    async fn commit(&self, prompt: Prompt) -> Result<(), Refusal> {
        let (done, committed) = oneshot::channel();
        let session = prompt.session_id;
        let told = move |known| {
            done.send(known).ok();
        };
        let aside = DerivedRecord { session, what: DerivedKind::Prompt(Box::new(prompt)), done: Box::new(told) };
        let stopped = |error: IngestStopped| Refusal::Failed(error.to_string());
        self.parts.inputs.send_async(IngestInput::Derived(aside)).await.map_err(stopped)?;
        match committed.await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::NotFound(format!("no session `{session}`"))),
            Err(_) => Err(stopped(IngestStopped)),
        }
    }
}

/// Whether a session has been waiting for a prompt long enough.
fn waits(session: &Session, now: Timestamp) -> bool {
    let status = &session.status;
    let ready = match (status.state, status.reason) {
        (State::Waiting, reason) => {
            reason.and_then(|of| of.facts().waiting).is_none_or(|waiting| waiting.accepts_prompt)
        }
        (State::Idle, _) => true,
        (State::Running | State::WaitingApproval | State::Exited | State::Unknown, _) => false,
    };
    ready && session.pending_approvals.is_empty() && now.since_ms(status.since) >= SETTLED_MS
}
