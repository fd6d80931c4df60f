//! A daemon simulated by tests: each request becomes a command in a channel.

use api::{
    approvals::ApprovalView,
    hooks::HookAnswer,
    prompts::Receipt,
    runs::{Explanation, GridUpdate, Input, InputSent, Picture, RecordedFrames, RecordingInfo, Run, Scrollback, Size},
    search::{IndexStatus, SearchPage, SearchQuery},
    steering::{SessionCommand, SessionInputTaken, StartedSession},
};
use futures_util::{FutureExt, future::BoxFuture};
use live_view::{
    ApprovalFilter, Control, Decision, DecisionWait, HostConnection, NoControl, Peer, Refusal, Reply, RunTarget,
    SessionStart, Telemetry, TelemetryRefusal,
};
use tokio::sync::{mpsc, oneshot};

use super::*;

/// A request of the server.
#[derive(Debug)]
pub(super) enum Command {
    SetCapture { session: SessionId, enabled: bool, reply: oneshot::Sender<Result<(), Refusal>> },
    Screen { target: RunTarget, reply: oneshot::Sender<Result<Picture, Refusal>> },
    Grid { since: u64, reply: oneshot::Sender<Result<GridUpdate, Refusal>> },
    Scrollback { before: u64, count: u32, reply: oneshot::Sender<Result<Scrollback, Refusal>> },
    Resize { size: Option<Size>, reply: oneshot::Sender<Result<(), Refusal>> },
    Input { target: RunTarget, input: Input, reply: oneshot::Sender<Result<InputSent, Refusal>> },
    Session { session: SessionId, command: SessionCommand, reply: oneshot::Sender<Result<SessionInputTaken, Refusal>> },
    Telemetry { message: Telemetry, reply: oneshot::Sender<Result<Vec<u8>, TelemetryRefusal>> },
}

/// Turns requests into commands; requests that no test uses are refused.
struct Commands(mpsc::Sender<Command>);

/// A control whose commands the test receives from the channel.
pub(super) fn commands(most: usize) -> (Arc<dyn Control>, mpsc::Receiver<Command>) {
    let (sender, inbox) = mpsc::channel(most);
    (Arc::new(Commands(sender)), inbox)
}

impl Commands {
    /// Sends a command; refuses it if the channel is full or there is no answer.
    fn send<T: Send + 'static, E: Send + 'static>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, E>>) -> Command,
        refusal: E,
        unanswered: E,
    ) -> BoxFuture<'static, Result<T, E>> {
        let (reply, answer) = oneshot::channel();
        match self.0.try_send(command(reply)) {
            Ok(()) => answer.map(|answer| answer.unwrap_or(Err(unanswered))).boxed(),
            Err(_) => async { Err(refusal) }.boxed(),
        }
    }

    fn ask<T: Send + 'static>(&self, command: impl FnOnce(oneshot::Sender<Result<T, Refusal>>) -> Command) -> Reply<T> {
        self.send(command, Refusal::Unavailable, Refusal::Unavailable)
    }
}

impl Control for Commands {
    fn set_capture(&self, session: SessionId, enabled: bool) -> Reply<()> {
        self.ask(|reply| Command::SetCapture { session, enabled, reply })
    }

    fn note(&self, _: SessionId, _: String) -> Reply<()> {
        unreachable!("no test here writes notes")
    }

    fn hand_off(&self, parts: live_view::HandoffParts) -> Reply<String> {
        NoControl.hand_off(parts)
    }

    fn label(&self, session: SessionId, labels: std::collections::BTreeMap<String, Option<String>>) -> Reply<()> {
        NoControl.label(session, labels)
    }

    fn mark(&self, session: SessionId, changes: Vec<projections::MarkChange>) -> Reply<()> {
        NoControl.mark(session, changes)
    }

    fn forget(&self, session: SessionId, dry_run: bool) -> Reply<api::retention::RemovalReport> {
        NoControl.forget(session, dry_run)
    }

    fn prune(&self, request: api::retention::PruneRequest) -> Reply<api::retention::RemovalReport> {
        NoControl.prune(request)
    }

    fn retention(&self) -> Reply<api::retention::RetentionStatus> {
        NoControl.retention()
    }

    fn serve_host(&self, connection: HostConnection, peer: Peer) -> BoxFuture<'static, ()> {
        NoControl.serve_host(connection, peer)
    }

    fn accept_delivery(&self, id: events::DeliveryId) -> Reply<()> {
        NoControl.accept_delivery(id)
    }

    fn lose_delivery(&self, why: String) -> Reply<()> {
        NoControl.lose_delivery(why)
    }

    fn await_decision(&self, wait: DecisionWait) -> Reply<Option<HookAnswer>> {
        NoControl.await_decision(wait)
    }

    fn approvals(&self, filter: ApprovalFilter) -> Reply<Vec<ApprovalView>> {
        NoControl.approvals(filter)
    }

    fn approval(&self, id: String) -> Reply<ApprovalView> {
        NoControl.approval(id)
    }

    fn decide(&self, id: String, decision: Decision) -> Reply<ApprovalView> {
        NoControl.decide(id, decision)
    }

    fn press_button(&self, token: String, _: live_view::Who) -> Reply<Option<api::approvals::ButtonAnswer>> {
        let answer = api::approvals::ButtonAnswer { approval_id: "A1".into(), state: events::ApprovalState::Denied };
        Box::pin(async move { Ok((token == "good").then_some(answer)) })
    }

    fn push_key(&self) -> Reply<String> {
        NoControl.push_key()
    }

    fn subscribe_push(&self, device: String, subscription: api::push::PushSubscription) -> Reply<()> {
        NoControl.subscribe_push(device, subscription)
    }

    fn unsubscribe_push(&self, device: String) -> Reply<()> {
        NoControl.unsubscribe_push(device)
    }

    fn acknowledge(&self, finding: events::FindingId) -> Reply<events::Finding> {
        NoControl.acknowledge(finding)
    }

    fn queue_prompt(&self, session: SessionId, text: String) -> Reply<projections::Prompt> {
        NoControl.queue_prompt(session, text)
    }

    fn cancel_prompt(&self, id: events::PromptId) -> Reply<projections::Prompt> {
        NoControl.cancel_prompt(id)
    }

    fn test_channel(&self, channel: String) -> Reply<Receipt> {
        NoControl.test_channel(channel)
    }

    fn runs(&self) -> Result<Vec<Run>, Refusal> {
        NoControl.runs()
    }

    fn run(&self, target: &RunTarget) -> Result<Run, Refusal> {
        match target {
            RunTarget::Run(name) if name.starts_with("agent-") => Err(Refusal::NotFound("no run".into())),
            RunTarget::Run(name) if name == "shown" => Ok(super::terminal::run()),
            RunTarget::Run(_) | RunTarget::Session(_) => NoControl.run(target),
        }
    }

    fn screen(&self, target: RunTarget) -> Reply<Picture> {
        self.ask(|reply| Command::Screen { target, reply })
    }

    fn grid(&self, target: RunTarget, since: u64, wait_ms: u32) -> Reply<GridUpdate> {
        let _ = (target, wait_ms);
        self.ask(|reply| Command::Grid { since, reply })
    }

    fn scrollback(&self, _: RunTarget, before: u64, count: u32) -> Reply<Scrollback> {
        self.ask(|reply| Command::Scrollback { before, count, reply })
    }

    fn recording(&self, _: RunTarget) -> Reply<RecordingInfo> {
        unreachable!("no test here reads recordings")
    }

    fn recorded_frames(&self, _: RunTarget, _: u64, _: usize) -> Reply<RecordedFrames> {
        unreachable!("no test here reads recordings")
    }

    fn resize(&self, _: RunTarget, size: Option<Size>) -> Reply<()> {
        self.ask(|reply| Command::Resize { size, reply })
    }

    fn explain_screen(&self, target: RunTarget) -> Reply<Explanation> {
        NoControl.explain_screen(target)
    }

    fn send_input(&self, target: RunTarget, input: Input) -> Reply<InputSent> {
        self.ask(|reply| Command::Input { target, input, reply })
    }

    fn type_characters(&self, target: RunTarget, text: String, force: bool) -> Reply<()> {
        let input = Input { text: Some(text), force, ..Input::default() };
        let sent = self.ask(|reply| Command::Input { target, input, reply });
        Box::pin(async { sent.await.map(drop) })
    }

    fn start_session(&self, start: SessionStart) -> Reply<StartedSession> {
        NoControl.start_session(start)
    }

    fn command(&self, session: SessionId, command: SessionCommand) -> Reply<SessionInputTaken> {
        self.ask(|reply| Command::Session { session, command, reply })
    }

    fn search(&self, query: SearchQuery, session: Option<SessionId>) -> Reply<SearchPage> {
        NoControl.search(query, session)
    }

    fn index_status(&self) -> Reply<IndexStatus> {
        NoControl.index_status()
    }

    fn rebuild_index(&self) -> Reply<IndexStatus> {
        NoControl.rebuild_index()
    }

    fn telemetry(&self, message: Telemetry) -> BoxFuture<'static, Result<Vec<u8>, TelemetryRefusal>> {
        let command = |reply| Command::Telemetry { message, reply };
        self.send(command, TelemetryRefusal::Busy, TelemetryRefusal::Stuck)
    }
}
