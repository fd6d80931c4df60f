//! The connection of a terminal host: identifies the host, forwards its frames to ingest, sends it requests and
//! acknowledgements, and updates the table of runs.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use api::runs::{Run, RunState};
use events::RunId;
use host_protocol::{
    claim::HostEvent,
    frame::{Hello, HostFrame, HostMessage, ServerMessage},
};
use ingest::{HostInput, IngestInput};
use live_view::{HostConnection, HostStream, Peer};
use processes::agent_descent;
use tokio::{
    io::AsyncWriteExt,
    sync::{mpsc, watch},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    AwaitedReplies, ConnectedRun, QueuedRequest, Runs,
    lines::BoundedLines,
    question::{ANSWER_WITHIN, described},
};

/// Maximum number of pending requests to one terminal host.
const ASKS: usize = 32;
/// How long a disconnected host may stay away before its run counts as unreachable.
const BACK_WITHIN: Duration = Duration::from_secs(3);
/// Maximum number of ended runs remembered.
const ENDED: usize = 100;

impl Runs {
    /// Serves a terminal host until it disconnects or the server stops.
    pub async fn attend(self, connection: HostConnection, peer: Peer, cancel: CancellationToken) {
        tokio::select! {
            run = self.converse(connection.0, peer) => {
                let Some((run, connection)) = run else { return };
                tokio::select! {
                    () = tokio::time::sleep(BACK_WITHIN) => self.lost(run, connection).await,
                    () = cancel.cancelled() => {}
                }
            }
            () = cancel.cancelled() => {}
        }
    }

    /// Handles a terminal host that did not reconnect.
    async fn lost(&self, run: RunId, connection: u64) {
        {
            let mut table = self.table();
            if table.live.get(&run).is_none_or(|live| live.connection != connection) {
                return;
            }
            if let Some(mut live) = table.live.remove(&run) {
                if live.described.ended_at.is_none() {
                    live.described.state = RunState::Unreachable;
                }
                table.ended.push_back(live.described);
                if table.ended.len() > ENDED {
                    table.ended.pop_front();
                }
            }
        }
        // If ingest has stopped, the report can be dropped.
        self.inputs.send_async(IngestInput::Host(HostInput::Lost(run))).await.ok();
    }

    async fn converse(&self, stream: Box<dyn HostStream>, peer: Peer) -> Option<(RunId, u64)> {
        let (read, mut write) = tokio::io::split(stream);
        let mut lines = BoundedLines::new(read);
        let hello = match lines.next().await? {
            HostMessage::Hello(hello) => *hello,
            HostMessage::Frame(_) | HostMessage::Answer { .. } => {
                tracing::warn!(
                    pid = peer.pid,
                    "a process connected as the terminal host of a run, but did not begin with `hello`; its connection was closed"
                );
                return None;
            }
        };
        let run = hello.run;
        // The kernel identifies the peer; the host's own statement is not trusted.
        if peer.pid.and_then(|pid| u32::try_from(pid).ok()) != Some(hello.host_pid) {
            tracing::warn!(
                %run,
                "the terminal host of a run claims to be process {}, but is {}; its connection was closed",
                hello.host_pid,
                peer.pid.map_or_else(|| "an unknown process".to_owned(), |pid| format!("process {pid}"))
            );
            return None;
        }
        // No other process may speak for our own agent or receive its commands: neither the programs it runs nor any
        // other agent.
        if (hello.session.is_some() || !hello.takes.is_empty())
            && let Some(descent) = agent_descent(hello.host_pid)
        {
            tracing::warn!(%run, "a process that claims to run a session was {descent}; its connection was closed");
            return None;
        }
        let (asks, mut asked) = mpsc::channel(ASKS);
        let (acked, mut acks) = watch::channel(0_u64);
        let acked = Arc::new(acked);
        let connection = self.register(&hello, asks);
        self.inputs.send_async(IngestInput::Host(HostInput::Hello(Box::new(hello)))).await.ok()?;
        let mut waiting = AwaitedReplies::new();
        let mut next = 0;
        loop {
            let down = tokio::select! {
                line = lines.next() => {
                    let Some(up) = line else { break };
                    if self.receive(run, up, &acked, &mut waiting).await.is_break() {
                        break;
                    }
                    continue;
                }
                question = asked.recv() => {
                    let QueuedRequest { ask, reply } = question?;
                    if reply.is_closed() {
                        // The requester has given up and was informed.
                        continue;
                    }
                    waiting.retain(|_, reply| !reply.is_closed());
                    next += 1;
                    waiting.insert(next, reply);
                    ServerMessage::Ask { id: next, ask }
                }
                changed = acks.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    ServerMessage::Ack { n: *acks.borrow_and_update() }
                }
            };
            let Ok(mut text) = serde_json::to_string(&down) else { continue };
            text.push('\n');
            match timeout(ANSWER_WITHIN, write.write_all(text.as_bytes())).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => break,
            }
        }
        Some((run, connection))
    }

    /// Receives a message from a terminal host. Breaks if it speaks for another run, or ingest has stopped.
    async fn receive(
        &self,
        run: RunId,
        up: HostMessage,
        acked: &Arc<watch::Sender<u64>>,
        waiting: &mut AwaitedReplies,
    ) -> ControlFlow<()> {
        let input = match up {
            HostMessage::Hello(hello) if hello.run == run => {
                self.renew(&hello);
                HostInput::Hello(hello)
            }
            HostMessage::Hello(_) => return ControlFlow::Break(()),
            HostMessage::Frame(frame) => {
                self.record_frame(run, &frame);
                let acked = Arc::clone(acked);
                let stored = Box::new(move |n: u64| {
                    acked.send_if_modified(|last| {
                        let is_newer = n > *last;
                        *last = n.max(*last);
                        is_newer
                    });
                });
                HostInput::Frame { run, frame, stored }
            }
            HostMessage::Answer { id, answer } => {
                if let Some(reply) = waiting.remove(&id) {
                    // The requester may be gone.
                    reply.send(answer).ok();
                }
                return ControlFlow::Continue(());
            }
        };
        match self.inputs.send_async(IngestInput::Host(input)).await {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn register(&self, hello: &Hello, asks: mpsc::Sender<QueuedRequest>) -> u64 {
        let mut table = self.table();
        table.connections += 1;
        let connection = table.connections;
        let before = table.live.remove(&hello.run);
        let other_ids = before.as_ref().map(|live| live.other_ids).unwrap_or_default();
        let before = before.map(|live| live.described).or_else(|| {
            let at = table.ended.iter().position(|run| run.id == hello.run)?;
            table.ended.remove(at)
        });
        let mut described = described(hello.clone());
        if let Some(before) = before {
            described = Run { hello: described.hello, state: RunState::Running, ..before };
        }
        table.live.insert(hello.run, ConnectedRun { described, asks, connection, dialog: None, other_ids });
        connection
    }

    fn renew(&self, hello: &Hello) {
        if let Some(live) = self.table().live.get_mut(&hello.run) {
            live.described.hello = hello.clone();
        }
    }

    fn record_frame(&self, run: RunId, frame: &HostFrame) {
        let mut table = self.table();
        let Some(live) = table.live.get_mut(&run) else { return };
        let described = &mut live.described;
        match &frame.event {
            HostEvent::Claim(claim) => {
                described.screen_state = Some(claim.state);
                live.dialog.clone_from(&claim.dialog);
            }
            HostEvent::Withdrawn => {
                described.screen_state = None;
                live.dialog = None;
            }
            HostEvent::Gap { frames } => described.frames_lost += frames,
            HostEvent::Exited { code, signal } => {
                described.state = RunState::Exited;
                described.exit_code = *code;
                described.exit_signal = *signal;
                described.ended_at = Some(frame.at);
                described.screen_state = None;
                live.dialog = None;
            }
            HostEvent::Notification { .. }
            | HostEvent::Bell
            | HostEvent::Answered { .. }
            | HostEvent::Prompt { .. }
            | HostEvent::Text { .. }
            | HostEvent::Alive
            | HostEvent::ModeGranted { .. }
            | HostEvent::CallDecided(_)
            | HostEvent::ReadsAllowed { .. }
            | HostEvent::Unknown => {}
        }
    }
}
