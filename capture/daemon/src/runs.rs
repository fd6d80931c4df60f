//! The connected terminal hosts of runs: receives their frames and forwards requests to them.
//!
//! There is one task per connection (`connection`). A host's reports go to ingest and are acknowledged after the
//! commit. The table here only lists the connected hosts and how the others ended.

mod command;
mod connection;
mod lines;
mod question;
#[cfg(test)]
mod tests;
mod typing;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::{
    part::{IdPart, PART_HINT, shown},
    runs::{Explanation, GridUpdate, Picture, Run, RunState, Scrollback, Size},
};
use events::{RunId, SessionId};
use host_protocol::frame::{Answered, DialogAnswer, HostRequest, Presence};
use ingest::{HostedSession, IngestHandle};
use live_view::{LiveView, Refusal, RunTarget};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

use self::question::{not_answered, question};
pub use self::typing::PromptOutcome;

/// How long to wait for runs from before a server start: their hosts reconnect within a second.
const RECONNECT_WITHIN: Duration = Duration::from_secs(2);

/// The runs. Clones share the state.
#[derive(Clone)]
pub struct Runs {
    table: Arc<Mutex<RunTable>>,
    /// Runs from before the start whose hosts have not reported their session again.
    missing: Arc<watch::Sender<HashSet<RunId>>>,
    inputs: IngestHandle,
    live_view: LiveView,
}

#[derive(Default)]
struct RunTable {
    live: HashMap<RunId, ConnectedRun>,
    ended: VecDeque<Run>,
    connections: u64,
}

struct ConnectedRun {
    described: Run,
    asks: mpsc::Sender<QueuedRequest>,
    /// Distinguishes a connection from an earlier one.
    connection: u64,
    /// The dialog on the run's screen.
    dialog: Option<Box<events::Dialog>>,
    /// Other ids of its session: one that is not committed yet, and one that was merged into it.
    other_ids: [Option<SessionId>; 2],
}

impl ConnectedRun {
    fn has_session(&self, session: SessionId) -> bool {
        self.described.session_id == Some(session) || self.other_ids.contains(&Some(session))
    }
}

struct QueuedRequest {
    ask: HostRequest,
    reply: HostReply,
}

/// Receives the host's answer to a request, or why there is none.
type HostReply = oneshot::Sender<Result<Value, String>>;

/// Requests a host has not answered yet, by number.
type AwaitedReplies = HashMap<u64, HostReply>;

/// The numbers of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCounts {
    /// Runs whose hosts are connected.
    pub connected: usize,
    /// Runs whose hosts disconnected without reporting an end.
    pub unreachable: usize,
    /// Frames the hosts had to drop while no server received them.
    pub frames_lost: u64,
}

/// Whether a run has this id or name.
fn is_named(run: &Run, given: &str) -> bool {
    run.id.to_string().eq_ignore_ascii_case(given) || run.hello.name.as_deref() == Some(given)
}

impl Runs {
    /// Creates an empty table. The reports of runs go to `inputs`; `live_view` shows which approvals their sessions
    /// wait for.
    #[must_use]
    pub fn new(inputs: IngestHandle, live_view: LiveView) -> Self {
        Self { table: Arc::default(), missing: Arc::default(), inputs, live_view }
    }

    /// Registers runs from before the server's start, whose hosts are about to reconnect.
    pub fn expect(&self, runs: impl IntoIterator<Item = RunId>) {
        self.missing.send_modify(|missing| missing.extend(runs));
    }

    /// Waits until the hosts of the expected runs have reconnected, at most two seconds and only once: later calls do
    /// not wait for hosts that took longer.
    pub async fn reconnected(&self) {
        let mut missing = self.missing.subscribe();
        if timeout(RECONNECT_WITHIN, missing.wait_for(HashSet::is_empty)).await.is_err() {
            self.missing.send_modify(HashSet::clear);
        }
    }

    fn table(&self) -> MutexGuard<'_, RunTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records which session a run is about to host: until that is committed, the run can be found by both sessions.
    pub fn will_host(&self, run: RunId, session: SessionId) {
        if let Some(live) = self.table().live.get_mut(&run) {
            live.other_ids[0] = Some(session);
        }
    }

    /// Records which session a run hosts.
    pub fn hosts(&self, HostedSession { run, session, merged }: HostedSession) {
        let mut table = self.table();
        if let Some(live) = table.live.get_mut(&run) {
            live.described.session_id = Some(session);
            live.other_ids = [None, merged];
        } else if let Some(ended) = table.ended.iter_mut().find(|d| d.id == run) {
            ended.session_id = Some(session);
        }
        drop(table);
        self.missing.send_if_modified(|missing| missing.remove(&run));
    }

    /// The runs: connected ones first, newest first.
    #[must_use]
    pub fn list(&self) -> Vec<Run> {
        let table = self.table();
        let mut runs: Vec<Run> = table.live.values().map(|live| live.described.clone()).collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.id));
        runs.extend(table.ended.iter().rev().cloned());
        runs
    }

    /// Counts the runs.
    #[must_use]
    pub fn census(&self) -> RunCounts {
        let table = self.table();
        let all = || table.live.values().map(|live| &live.described).chain(&table.ended);
        RunCounts {
            connected: table.live.len(),
            unreachable: table.ended.iter().filter(|run| run.state == RunState::Unreachable).count(),
            frames_lost: all().map(|run| run.frames_lost).sum(),
        }
    }

    /// One run.
    ///
    /// # Errors
    /// When there is none, or the name matches several.
    pub fn get(&self, target: &RunTarget) -> Result<Run, Refusal> {
        self.find(target).map(|(run, _)| run)
    }

    /// The screen of a run.
    ///
    /// # Errors
    /// When there is none, it has ended, or its host refuses.
    pub async fn screen(&self, target: &RunTarget) -> Result<Picture, Refusal> {
        self.request(target, HostRequest::Screen).await
    }

    /// The changes of a run's screen since a revision, as soon as there are any, or after this time.
    ///
    /// # Errors
    /// As [`screen`](Self::screen), and when the host is of an older version.
    pub async fn grid(&self, target: &RunTarget, since: u64, wait_ms: u32) -> Result<GridUpdate, Refusal> {
        self.request_drawn(target, HostRequest::Grid { since, wait_ms }).await
    }

    /// Lines that scrolled off the screen of a run.
    ///
    /// # Errors
    /// As [`grid`](Self::grid).
    pub async fn scrollback(&self, target: &RunTarget, before: u64, count: u32) -> Result<Scrollback, Refusal> {
        self.request_drawn(target, HostRequest::Scrollback { before, count }).await
    }

    /// Resizes the terminal of a run; without a size, it follows the terminal that has control.
    ///
    /// # Errors
    /// As [`grid`](Self::grid).
    pub async fn resize(&self, target: &RunTarget, size: Option<Size>) -> Result<(), Refusal> {
        self.request_drawn(target, HostRequest::Resize { size }).await
    }

    /// Sends a request that older hosts do not support.
    async fn request_drawn<T: DeserializeOwned>(&self, target: &RunTarget, ask: HostRequest) -> Result<T, Refusal> {
        let (run, asks) = self.find_reconnected(target).await?;
        if !run.hello.draws {
            return Err(Refusal::Conflict(
                "this run was started by an older version of capture that cannot show its terminal elsewhere; use \
                 `capture attach`, or start it again"
                    .into(),
            ));
        }
        let answer = question(&run, asks.as_ref(), ask).await?;
        serde_json::from_value(answer).map_err(|error| Refusal::Failed(error.to_string()))
    }

    /// Explains how the screen of a run was interpreted.
    ///
    /// # Errors
    /// As [`screen`](Self::screen).
    pub async fn explain_screen(&self, target: &RunTarget) -> Result<Explanation, Refusal> {
        self.request(target, HostRequest::Explain).await
    }

    async fn request<T: DeserializeOwned>(&self, target: &RunTarget, ask: HostRequest) -> Result<T, Refusal> {
        let (run, asks) = self.find_reconnected(target).await?;
        let answer = question(&run, asks.as_ref(), ask).await?;
        serde_json::from_value(answer).map_err(|error| Refusal::Failed(error.to_string()))
    }

    /// The live run that hosts a session; the newest if there are several.
    #[must_use]
    pub fn run_of(&self, session: SessionId) -> Option<RunId> {
        let table = self.table();
        let hosts = table.live.values().filter(|live| live.has_session(session));
        hosts.map(|live| live.described.id).max()
    }

    /// Answers the dialog with this mark by keys; the host presses them if the dialog is still open.
    ///
    /// # Errors
    /// The reason nothing was typed. If the host does not answer in time, it is unknown whether keys were pressed.
    /// There is no retry: the next state of the screen shows the outcome.
    pub async fn answer(&self, run: RunId, mark: String, answer: DialogAnswer) -> Result<Answered, Refusal> {
        // Only by id: a name may look like another run's id.
        let live = self.table().live.get(&run).map(|live| (live.described.clone(), live.asks.clone()));
        let Some((described, asks)) = live else {
            return Err(Refusal::Conflict(format!("run {run} has ended or its terminal host is not connected")));
        };
        if !described.hello.answers {
            return Err(Refusal::Conflict(
                "this run was started by an older version of capture that cannot answer dialogs; answer in its \
                 terminal (`capture attach`), or start it again"
                    .into(),
            ));
        }
        let told = question(&described, Some(&asks), HostRequest::Answer { mark, answer }).await;
        let told = told.map_err(|unanswered| not_answered(&described, unanswered))?;
        serde_json::from_value(told).map_err(|error| Refusal::Failed(error.to_string()))
    }

    /// Whether a user is at the terminal of a run.
    ///
    /// # Errors
    /// When the run has ended, or its host does not answer.
    pub async fn presence(&self, run: RunId) -> Result<Presence, Refusal> {
        self.request(&RunTarget::Run(run.to_string()), HostRequest::Presence).await
    }

    /// Writes bytes to the terminals that are attached to the run.
    ///
    /// # Errors
    /// When the run has ended, or its host does not answer.
    pub async fn announce(&self, run: RunId, bytes: String) -> Result<(), Refusal> {
        let (described, asks) = self.find(&RunTarget::Run(run.to_string()))?;
        question(&described, asks.as_ref(), HostRequest::Announce { bytes }).await?;
        Ok(())
    }

    /// Like [`find`](Self::find), but right after a start it waits for runs that are not known yet.
    async fn find_reconnected(
        &self,
        target: &RunTarget,
    ) -> Result<(Run, Option<mpsc::Sender<QueuedRequest>>), Refusal> {
        match self.find(target) {
            Err(Refusal::NotFound(_) | Refusal::Conflict(_)) => {
                self.reconnected().await;
                self.find(target)
            }
            found => found,
        }
    }

    fn find(&self, target: &RunTarget) -> Result<(Run, Option<mpsc::Sender<QueuedRequest>>), Refusal> {
        let table = self.table();
        let is_meant = |run: &Run| match target {
            RunTarget::Session(session) => run.session_id == Some(*session),
            RunTarget::Run(given) => is_named(run, given),
        };
        let is_live = |live: &&ConnectedRun| match target {
            RunTarget::Session(session) => live.has_session(*session),
            RunTarget::Run(given) => is_named(&live.described, given),
        };
        if let Some(live) = table.live.values().filter(is_live).max_by_key(|live| live.described.id) {
            return Ok((live.described.clone(), Some(live.asks.clone())));
        }
        if let Some(run) = table.ended.iter().rev().find(|run| is_meant(run)) {
            return Ok((run.clone(), None));
        }
        let given = match target {
            RunTarget::Session(session) => {
                let why = format!(
                    "session {session} was not started with `capture run`, so capture cannot reach its terminal"
                );
                return Err(Refusal::Conflict(why));
            }
            RunTarget::Run(given) => given,
        };
        let live = table.live.values().map(|live| (&live.described, Some(&live.asks)));
        let all = live.chain(table.ended.iter().map(|run| (run, None)));
        let part = IdPart::new(given);
        let mut fitting = all.filter(|(run, _)| part.as_ref().is_some_and(|part| part.fits(&run.id.to_string())));
        let shown = shown(given);
        match (fitting.next(), fitting.next()) {
            (Some((run, asks)), None) => Ok((run.clone(), asks.cloned())),
            (Some((a, _)), Some((b, _))) => {
                Err(Refusal::Ambiguous(format!("`{shown}` matches several runs, for instance {} and {}", a.id, b.id)))
            }
            (None, _) => Err(Refusal::NotFound(format!(
                "no run `{shown}`; `capture runs --all` lists the runs, and {PART_HINT}"
            ))),
        }
    }

    /// The dialog on the screen of a run.
    #[must_use]
    pub fn dialog_of(&self, run: RunId) -> Option<events::Dialog> {
        self.table().live.get(&run)?.dialog.as_deref().cloned()
    }
}
