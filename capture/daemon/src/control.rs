//! Carries out the HTTP server's requests: each goes to the part that owns its subject.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use api::{
    approvals::{ApprovalView, ButtonAnswer, DecisionScope},
    hooks::HookAnswer,
    prompts::Receipt,
    push::PushSubscription,
    retention::{PruneRequest, RemovalReport, RetentionStatus},
    runs::{
        Explanation, GridUpdate, Input as RunInput, InputSent, Picture, RecordedFrames, RecordingInfo, Run, Scrollback,
        Size,
    },
    search::{IndexStatus, SearchPage, SearchQuery},
    steering::{SessionCommand, SessionInputTaken, StartedSession},
};
use events::{DeliveryId, Finding, FindingId, PromptId, SessionId};
use futures_util::future::{BoxFuture, FutureExt};
use home::clock;
use host_protocol::frame::CommandOrigin;
use ingest::{ChangeReply, DerivedKind, DerivedRecord, Gauges, IngestHandle, IngestInput};
use live_view::{
    ApprovalFilter, Control, Decision, DecisionWait, HandoffParts, HostConnection, Peer, Refusal, Reply, RunTarget,
    SessionStart, Telemetry, TelemetryRefusal, Who,
};
use projections::{LabelChange, MarkChange, Prompt};
use retention::Retention;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{
    answer_tokens::AnswerTokens,
    approvals::{ApprovalBroker, HookWait},
    deliveries::Deliveries,
    findings::Findings,
    handoff,
    notices::Notices,
    playback::Recordings,
    prompts::Prompts,
    push::{self, PushedBrowsers},
    runs::Runs,
    search::Search,
    session_starter::SessionStarter,
    telemetry::TelemetryReceiver,
};

/// The parts that carry out the server's requests.
#[derive(Clone)]
pub struct DaemonParts {
    /// Sends inputs to ingest.
    pub inputs: IngestHandle,
    /// The runs.
    pub runs: Runs,
    /// Their recordings.
    pub recordings: Recordings,
    /// Hook deliveries.
    pub deliveries: Deliveries,
    /// Counts lost deliveries.
    pub gauges: Arc<Gauges>,
    /// Receives telemetry.
    pub telemeter: TelemetryReceiver,
    /// Pending approvals.
    pub approvals: ApprovalBroker,
    /// Tokens of the buttons in messages.
    pub buttons: AnswerTokens,
    /// Browsers subscribed to messages.
    pub push: PushedBrowsers,
    /// Queued prompts.
    pub prompts: Prompts,
    /// Open findings.
    pub findings: Findings,
    /// Notifications.
    pub notices: Notices,
    /// Full-text search.
    pub search: Search,
    /// Removes sessions.
    pub retention: Retention,
    /// Starts sessions.
    pub starter: SessionStarter,
    /// Ends the connections to hosts.
    pub cancel: CancellationToken,
}

/// Reads files on a blocking thread.
async fn read<T: Send + 'static>(task: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(task).await.unwrap_or_else(|error| Err(Refusal::Failed(error.to_string())))
}

/// Carries out the server's requests.
pub struct Daemon(Arc<DaemonParts>);

impl Daemon {
    /// Creates a daemon from these parts.
    #[must_use]
    pub fn new(parts: DaemonParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Runs a task on the parts as a boxed future.
    fn with<T: Send + 'static, F>(&self, task: impl FnOnce(Arc<DaemonParts>) -> F) -> BoxFuture<'static, T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        task(Arc::clone(&self.0)).boxed()
    }

    /// Sends ingest an input that replies whether the session exists.
    fn change(&self, session: SessionId, input: impl FnOnce(ChangeReply) -> IngestInput + Send + 'static) -> Reply<()> {
        self.with(move |parts| async move {
            let (reply, answer) = ChangeReply::new();
            parts.inputs.send_async(input(reply)).await.map_err(|_| Refusal::Unavailable)?;
            match answer.await {
                Ok(Ok(true)) => Ok(()),
                Ok(Ok(false)) => Err(Refusal::NotFound(format!("no session `{session}`"))),
                Ok(Err(refusal)) => Err(refusal),
                Err(_) => Err(Refusal::Unavailable),
            }
        })
    }
}

impl Control for Daemon {
    fn set_capture(&self, session: SessionId, enabled: bool) -> Reply<()> {
        self.change(session, move |answer| IngestInput::SetCapture(session, enabled, answer))
    }

    fn note(&self, session: SessionId, text: String) -> Reply<()> {
        self.with(move |parts| async move {
            let (reply, answer) = oneshot::channel();
            let done = Box::new(move |known| reply.send(known).unwrap_or_default());
            let record = DerivedRecord { session, what: DerivedKind::Note(text), done };
            parts.inputs.send_async(IngestInput::Derived(record)).await.map_err(|_| Refusal::Unavailable)?;
            match answer.await {
                Ok(true) => Ok(()),
                Ok(false) => Err(Refusal::NotFound(format!("no session `{session}`"))),
                Err(_) => Err(Refusal::Unavailable),
            }
        })
    }

    fn hand_off(&self, parts: HandoffParts) -> Reply<String> {
        read(move || Ok(handoff::note(parts))).boxed()
    }

    fn label(&self, session: SessionId, labels: BTreeMap<String, Option<String>>) -> Reply<()> {
        let labels = labels.into_iter().map(|(key, value)| LabelChange { key, value }).collect();
        self.change(session, move |answer| IngestInput::Label(session, labels, answer))
    }

    fn mark(&self, session: SessionId, changes: Vec<MarkChange>) -> Reply<()> {
        self.change(session, move |answer| IngestInput::Mark(session, changes, answer))
    }

    fn forget(&self, session: SessionId, dry_run: bool) -> Reply<RemovalReport> {
        self.with(move |parts| async move { parts.retention.forget(session, dry_run).await })
    }

    fn prune(&self, request: PruneRequest) -> Reply<RemovalReport> {
        self.with(|parts| async move { parts.retention.prune(request).await })
    }

    fn retention(&self) -> Reply<RetentionStatus> {
        self.with(|parts| async move { parts.retention.status().await })
    }

    fn serve_host(&self, connection: HostConnection, peer: Peer) -> BoxFuture<'static, ()> {
        self.with(|parts| parts.runs.clone().attend(connection, peer, parts.cancel.clone()))
    }

    fn accept_delivery(&self, id: DeliveryId) -> Reply<()> {
        self.with(move |parts| async move {
            // It reads a file and blocks while the channel is full.
            let taken = tokio::task::spawn_blocking(move || parts.deliveries.submit(id)).await;
            if taken.unwrap_or(false) { Ok(()) } else { Err(Refusal::Unavailable) }
        })
    }

    fn lose_delivery(&self, why: String) -> Reply<()> {
        self.0.gauges.heard.lost(clock::now(), why);
        self.with(|_| async { Ok(()) })
    }

    fn await_decision(&self, wait: DecisionWait) -> Reply<Option<HookAnswer>> {
        let DecisionWait { delivery, people, digest, whole } = wait;
        self.with(move |parts| async move {
            Ok(parts.approvals.answer_hook(HookWait { delivery, people, digest }, whole).await)
        })
    }

    fn approvals(&self, filter: ApprovalFilter) -> Reply<Vec<ApprovalView>> {
        self.with(|parts| async move { parts.approvals.list(filter).await })
    }

    fn approval(&self, id: String) -> Reply<ApprovalView> {
        self.with(|parts| async move { parts.approvals.get(&id).await })
    }

    fn decide(&self, id: String, decision: Decision) -> Reply<ApprovalView> {
        self.with(|parts| async move { parts.approvals.decide(&id, decision).await })
    }

    fn press_button(&self, token: String, who: Who) -> Reply<Option<ButtonAnswer>> {
        self.with(|parts| async move {
            let Some(decided) = parts.buttons.redeem(&token, clock::now()) else { return Ok(None) };
            let decision = Decision {
                verdict: decided.verdict,
                message: None,
                scope: DecisionScope::Once,
                answers: None,
                revision: Some(decided.revision),
                rule: false,
                who,
            };
            let view = parts.approvals.decide(decided.approval.as_str(), decision).await?;
            Ok(Some(ButtonAnswer { approval_id: view.approval.id, state: view.approval.state }))
        })
    }

    fn push_key(&self) -> Reply<String> {
        self.with(|parts| async move {
            let key = tokio::task::spawn_blocking(move || parts.push.subscriptions.public_key()).await;
            key.map_err(|error| Refusal::Failed(error.to_string()))?.map_err(push::refusal)
        })
    }

    fn subscribe_push(&self, device: String, subscription: PushSubscription) -> Reply<()> {
        self.with(|parts| async move {
            let subscribed = tokio::task::spawn_blocking(move || {
                let PushSubscription { endpoint, keys } = subscription;
                parts.push.subscriptions.subscribe(&device, &endpoint, &keys.p256dh, &keys.auth)?;
                parts.notices.refresh();
                Ok(())
            });
            subscribed.await.map_err(|error| Refusal::Failed(error.to_string()))?.map_err(push::refusal)
        })
    }

    fn unsubscribe_push(&self, device: String) -> Reply<()> {
        self.with(|parts| async move {
            let ended = tokio::task::spawn_blocking(move || {
                parts.push.subscriptions.unsubscribe(&device)?;
                parts.notices.refresh();
                Ok(())
            });
            ended.await.map_err(|error| Refusal::Failed(error.to_string()))?.map_err(push::refusal)
        })
    }

    fn acknowledge(&self, finding: FindingId) -> Reply<Finding> {
        self.with(|parts| async move { parts.findings.acknowledge(finding).await })
    }

    fn queue_prompt(&self, session: SessionId, text: String) -> Reply<Prompt> {
        self.with(move |parts| async move { parts.prompts.queue(session, text).await })
    }

    fn cancel_prompt(&self, id: PromptId) -> Reply<Prompt> {
        self.with(|parts| async move { parts.prompts.cancel(id).await })
    }

    fn test_channel(&self, channel: String) -> Reply<Receipt> {
        self.with(|parts| async move { parts.notices.test(channel).await })
    }

    fn commit_shown(&self) -> BoxFuture<'static, ()> {
        self.with(|parts| async move {
            // Does not wait for a failing store.
            if parts.gauges.stuck.load(Ordering::Relaxed) {
                return;
            }
            parts.inputs.commit().await.ok();
        })
    }

    fn runs_reconnected(&self) -> BoxFuture<'static, ()> {
        self.with(|parts| async move { parts.runs.reconnected().await })
    }

    fn runs(&self) -> Result<Vec<Run>, Refusal> {
        Ok(self.0.runs.list())
    }

    fn run(&self, target: &RunTarget) -> Result<Run, Refusal> {
        self.0.runs.get(target)
    }

    fn screen(&self, target: RunTarget) -> Reply<Picture> {
        self.with(|parts| async move { parts.runs.screen(&target).await })
    }

    fn grid(&self, target: RunTarget, since: u64, wait_ms: u32) -> Reply<GridUpdate> {
        self.with(move |parts| async move { parts.runs.grid(&target, since, wait_ms).await })
    }

    fn scrollback(&self, target: RunTarget, before: u64, count: u32) -> Reply<Scrollback> {
        self.with(move |parts| async move { parts.runs.scrollback(&target, before, count).await })
    }

    fn recording(&self, target: RunTarget) -> Reply<RecordingInfo> {
        self.with(move |parts| async move { read(move || parts.recordings.info(&target)).await })
    }

    fn recorded_frames(&self, target: RunTarget, from_ms: u64, limit: usize) -> Reply<RecordedFrames> {
        self.with(move |parts| async move { read(move || parts.recordings.frames(&target, from_ms, limit)).await })
    }

    fn resize(&self, target: RunTarget, size: Option<Size>) -> Reply<()> {
        self.with(move |parts| async move { parts.runs.resize(&target, size).await })
    }

    fn explain_screen(&self, target: RunTarget) -> Reply<Explanation> {
        self.with(|parts| async move { parts.runs.explain_screen(&target).await })
    }

    fn send_input(&self, target: RunTarget, input: RunInput) -> Reply<InputSent> {
        self.with(|parts| async move { parts.runs.send_input(&target, input).await })
    }

    fn type_characters(&self, target: RunTarget, text: String, force: bool) -> Reply<()> {
        // Typing must not stop half way when the client disconnects.
        self.with(move |parts| async move {
            let typing = tokio::spawn(async move { parts.runs.type_characters(&target, text, force).await });
            typing.await.unwrap_or_else(|error| Err(Refusal::Failed(error.to_string())))
        })
    }

    fn start_session(&self, start: SessionStart) -> Reply<StartedSession> {
        // A started process must be awaited even if the client disconnects.
        self.with(|parts| async move {
            let starting = tokio::spawn(async move { parts.starter.start(start, &parts.runs).await });
            starting.await.unwrap_or_else(|error| Err(Refusal::Failed(error.to_string())))
        })
    }

    fn command(&self, session: SessionId, command: SessionCommand) -> Reply<SessionInputTaken> {
        self.with(move |parts| async move {
            let task = async move { parts.runs.command(session, command, CommandOrigin::Person).await };
            tokio::spawn(task).await.unwrap_or_else(|error| Err(Refusal::Failed(error.to_string())))
        })
    }

    fn search(&self, query: SearchQuery, session: Option<SessionId>) -> Reply<SearchPage> {
        self.with(move |parts| async move { parts.search.texts(query, session).await })
    }

    fn index_status(&self) -> Reply<IndexStatus> {
        self.with(|parts| async move { parts.search.status().await })
    }

    fn rebuild_index(&self) -> Reply<IndexStatus> {
        self.with(|parts| async move { parts.search.rebuild().await })
    }

    fn telemetry(&self, message: Telemetry) -> BoxFuture<'static, Result<Vec<u8>, TelemetryRefusal>> {
        self.with(|parts| async move {
            let (reply, answer) = oneshot::channel();
            // Decoding a message may block; the server limits how many run at once.
            tokio::task::spawn_blocking(move || parts.telemeter.receive(&message, reply));
            answer.await.unwrap_or(Err(TelemetryRefusal::Stuck))
        })
    }
}
