//! Reports the activity of a session to the server: one claim at a time, made by the session itself.
//!
//! The session's file contains everything that matters; these reports only are faster. A server that is not running
//! receives them later, or reads the file.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use client::{DeltaSender, SessionLink};
use engine::{
    AskedPermission, CallClass, CallDecision, CallVerdict, EngineActivity, FailureKind, PauseReason, RuntimeFrame,
    SessionMode, TurnOutcome,
};
use events::{ApprovalKind, Confidence, Dialog, Reason, State, Timestamp};
use executor::{SessionClock as _, SessionHandle, SessionUpdate};
use host_protocol::claim::{CallDecided, ScreenClaim};
use session_tree::Json;
use tokio::{
    runtime::Handle,
    sync::{broadcast::error::RecvError, oneshot},
    task::JoinHandle,
};

use crate::{clock::SystemClock, permission::BY_ALLOWANCE};

/// The state reported for a session.
#[derive(Debug)]
pub(crate) struct SessionStatus {
    link: Mutex<Option<SessionLink>>,
    deltas: Option<DeltaSender>,
    session: String,
    claims: Mutex<SessionClaims>,
    reads: Mutex<AllowedReads>,
    /// The task that follows the session, and the signal to end it once all updates are reported.
    follower: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

/// Plain reads that were allowed and not reported yet, by rule: their number, and the time of the first.
type AllowedReads = BTreeMap<Option<String>, (u64, Timestamp)>;

#[derive(Debug, Default)]
struct SessionClaims {
    /// The claim about the machine's activity.
    base: Option<ScreenClaim>,
    /// The claims of waiting requests, oldest first.
    waiting: Vec<(u64, ScreenClaim)>,
    numbers: u64,
    /// The last reported claim.
    said: Option<ScreenClaim>,
    /// Why the last request failed.
    failure: Option<FailureKind>,
    /// Whether a turn ended and its outcome is still the reason why the session waits.
    has_ended: bool,
}

/// Claims that the session waits for a decision until it is dropped.
#[derive(Debug)]
pub(crate) struct WaitingClaim {
    status: Arc<SessionStatus>,
    number: u64,
}

impl Drop for WaitingClaim {
    fn drop(&mut self) {
        let mut claims = self.status.claims();
        claims.waiting.retain(|(number, _)| *number != self.number);
        self.status.say(&mut claims);
    }
}

impl SessionStatus {
    /// Reports over this connection; without one nothing is reported.
    pub(crate) fn new(link: Option<SessionLink>, deltas: Option<DeltaSender>, session: String) -> Arc<Self> {
        let claims = Mutex::new(SessionClaims::default());
        let (link, reads, follower) = (Mutex::new(link), Mutex::default(), Mutex::new(None));
        let status = Self { link, deltas, session, claims, reads, follower };
        status.base(claim(State::Waiting, Some(Reason::NewSession), "no prompt yet"));
        Arc::new(status)
    }

    /// Reports the session's activity until [finished](Self::finish).
    pub(crate) fn follow(self: &Arc<Self>, session: &SessionHandle, runtime: &Handle) {
        let (status, mut updates) = (Arc::clone(self), session.subscribe());
        let session = session.clone();
        let (end, mut ended) = oneshot::channel();
        let follower = runtime.spawn(async move {
            loop {
                let update = tokio::select! {
                    // Pending updates come first.
                    biased;
                    update = updates.recv() => update,
                    _ = &mut ended => return,
                };
                match update {
                    Ok(SessionUpdate::Frame(frame)) => status.apply(&frame),
                    Ok(SessionUpdate::Entry(_)) => {}
                    Err(RecvError::Closed) => return,
                    // Missed updates do not matter, only the resulting state.
                    Err(RecvError::Lagged(_)) => match session.snapshot().await {
                        Ok(now) => status.activity(now.activity),
                        Err(_) => return,
                    },
                }
            }
        });
        *self.follower() = Some((end, follower));
    }

    /// Whether a server receives the reports.
    pub(crate) fn is_connected(&self) -> bool {
        self.link().as_ref().is_some_and(SessionLink::is_connected)
    }

    /// Waits until all updates of a closed session are reported.
    pub(crate) async fn finish(&self) {
        let follower = self.follower().take();
        if let Some((end, follower)) = follower {
            drop(end);
            follower.await.ok();
        }
    }

    fn follower(&self) -> MutexGuard<'_, Option<(oneshot::Sender<()>, JoinHandle<()>)>> {
        self.follower.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports that the session waits for a person.
    pub(crate) fn waits(self: &Arc<Self>, asked: &AskedPermission) -> WaitingClaim {
        let kind = kind_of(asked.facts.kind);
        let (state, reason) = match kind {
            Some(ApprovalKind::Question) => (State::Waiting, Reason::Question),
            kind => (State::WaitingApproval, kind.map_or(Reason::Tool, ApprovalKind::reason)),
        };
        let dialog = Dialog {
            about: kind.filter(|kind| *kind != ApprovalKind::Question),
            subject: subject_of(asked),
            ..Dialog::default()
        };
        let waiting =
            ScreenClaim { dialog: Some(Box::new(dialog)), ..claim(state, Some(reason), "a call waits for a decision") };
        let mut claims = self.claims();
        claims.numbers += 1;
        let number = claims.numbers;
        claims.waiting.push((number, waiting));
        self.say(&mut claims);
        drop(claims);
        WaitingClaim { status: Arc::clone(self), number }
    }

    /// Reports that a person granted a mode.
    pub(crate) fn mode_granted(&self, mode: SessionMode, by: &str) {
        if let Some(link) = &*self.link() {
            link.mode_granted(mode.name(), by);
        }
    }

    /// Reports decisions made in process: denials, commands, and calls allowed by a mode, at once; the number of plain
    /// reads allowed by a rule, when the turn is over. Calls that concern only the session are not reported.
    pub(crate) fn decided(&self, asked: &AskedPermission, decision: &CallDecision) {
        let allowed = decision.verdict == CallVerdict::Allow;
        let is_read = matches!(asked.facts.kind, CallClass::Read | CallClass::ReadOutside);
        if allowed && decision.by == "policy" && is_read {
            let mut reads = self.reads();
            let (count, _) = reads
                .entry(decision.rule.clone())
                .or_insert_with(|| (0, Timestamp::from_millisecond(SystemClock.now().wall_ms)));
            *count += 1;
            return;
        }
        if allowed && decision.by == "session" {
            return;
        }
        if let Some(link) = &*self.link() {
            link.call_decided(CallDecided {
                call: asked.call.model_id.clone(),
                tool: asked.call.tool.clone(),
                about: kind_of(asked.facts.kind),
                subject: subject_of(asked),
                cwd: asked.facts.cwd.clone(),
                allowed,
                mode: match decision.by.as_str() {
                    "mode" => Some(asked.mode.name().to_owned()),
                    BY_ALLOWANCE => Some(SessionMode::AcceptEdits.name().to_owned()),
                    _ => None,
                },
                rule: decision.rule.clone(),
                reason: decision.reason.clone(),
            });
        }
    }

    /// Whether a server is running that could decide. `None` during the first attempt to connect, which may start a
    /// server.
    pub(crate) fn has_server(&self) -> Option<bool> {
        let link = self.link();
        let Some(link) = &*link else { return Some(false) };
        if link.has_server() { Some(true) } else { link.has_tried().then_some(false) }
    }

    /// Reports how many reads were allowed since the last report.
    fn say_reads(&self) {
        let reads = std::mem::take(&mut *self.reads());
        if let Some(link) = &*self.link() {
            for (rule, (count, since)) in reads {
                link.reads_allowed(rule, count, since);
            }
        }
    }

    /// Reports that the process ends with this code.
    pub(crate) fn end(&self, code: u8) {
        self.say_reads();
        if let Some(link) = self.link().take() {
            link.end(code);
        }
    }

    /// Stops reporting about the session; its process continues.
    pub(crate) fn leave(&self) {
        self.say_reads();
        if let Some(link) = self.link().take() {
            link.leave();
        }
    }

    fn link(&self) -> MutexGuard<'_, Option<SessionLink>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reads(&self) -> MutexGuard<'_, AllowedReads> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn claims(&self) -> MutexGuard<'_, SessionClaims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn base(&self, claim: ScreenClaim) {
        let mut claims = self.claims();
        claims.base = Some(claim);
        self.say(&mut claims);
    }

    /// Reports the current claim, if it has changed.
    fn say(&self, claims: &mut SessionClaims) {
        let now = claims.waiting.first().map(|(_, claim)| claim).or(claims.base.as_ref()).cloned();
        let Some(now) = now.filter(|now| claims.said.as_ref() != Some(now)) else { return };
        if let Some(link) = &*self.link() {
            link.claim(now.clone());
        }
        claims.said = Some(now);
    }

    fn apply(&self, frame: &RuntimeFrame) {
        match frame {
            RuntimeFrame::Activity(activity) => self.activity(*activity),
            RuntimeFrame::TurnStarted => {
                let mut claims = self.claims();
                claims.failure = None;
                claims.has_ended = false;
            }
            RuntimeFrame::TurnEnded { outcome, error } => {
                self.say_reads();
                self.ended(*outcome, error.as_deref());
            }
            RuntimeFrame::RequestEnded { failure, .. } => self.claims().failure = *failure,
            RuntimeFrame::Text(text) => {
                if let Some(deltas) = &self.deltas {
                    deltas.send(&self.session, text);
                }
            }
            RuntimeFrame::DiskTrouble { error: Some(error) } => {
                self.base(claim(State::Waiting, Some(Reason::Error), error));
            }
            RuntimeFrame::FileLost { error } => {
                let mut claims = self.claims();
                claims.failure = None;
                claims.has_ended = true;
                drop(claims);
                self.base(claim(State::Waiting, Some(Reason::Error), error));
            }
            RuntimeFrame::DiskTrouble { error: None }
            | RuntimeFrame::ContextFills { .. }
            | RuntimeFrame::SecretsMasked { .. }
            | RuntimeFrame::CompactionStarted { .. }
            | RuntimeFrame::Compacted { .. }
            | RuntimeFrame::CompactionFailed { .. }
            | RuntimeFrame::Block(_)
            | RuntimeFrame::Thinking(_)
            | RuntimeFrame::CallOpened { .. }
            | RuntimeFrame::CallDecided { .. }
            | RuntimeFrame::CallStarted { .. }
            | RuntimeFrame::CallEnded { .. }
            | RuntimeFrame::Message { .. }
            | RuntimeFrame::Refused { .. } => {}
        }
    }

    fn activity(&self, activity: EngineActivity) {
        let works = |reason, words| claim(State::Running, Some(reason), words);
        self.base(match activity {
            // The outcome of the turn is the reason why it waits.
            EngineActivity::Idle if self.claims().has_ended => return,
            EngineActivity::Idle => claim(State::Waiting, Some(Reason::NewSession), "no prompt yet"),
            EngineActivity::Waiting => works(Reason::Thinking, "a request was sent"),
            EngineActivity::Streaming => works(Reason::Streaming, "an answer is coming"),
            EngineActivity::Deciding | EngineActivity::Running => works(Reason::Tool, "tools are running"),
            EngineActivity::Compacting => works(Reason::Compacting, "the conversation is being summarized"),
            EngineActivity::Retrying { .. } => works(Reason::Retrying, "a request failed and will be repeated"),
            EngineActivity::Slowed { .. } => {
                works(Reason::Tool, "the next request is delayed, because the calls keep returning the same result")
            }
            EngineActivity::Paused(why) => paused(why),
        });
    }

    fn ended(&self, outcome: TurnOutcome, error: Option<&str>) {
        let mut claims = self.claims();
        let reason = match outcome {
            TurnOutcome::Done | TurnOutcome::Length | TurnOutcome::Rounds => Reason::TurnComplete,
            TurnOutcome::Aborted | TurnOutcome::Interrupted => Reason::Interrupted,
            TurnOutcome::Refused | TurnOutcome::Empty => Reason::Error,
            TurnOutcome::Failed => match claims.failure {
                Some(FailureKind::Auth) => Reason::Auth,
                Some(FailureKind::Quota | FailureKind::Rate) => Reason::Quota,
                Some(
                    FailureKind::Overloaded
                    | FailureKind::TooLong
                    | FailureKind::NoModel
                    | FailureKind::BadRequest
                    | FailureKind::Refused
                    | FailureKind::Network
                    | FailureKind::Stalled
                    | FailureKind::Unknown,
                )
                | None => Reason::Error,
            },
        };
        claims.has_ended = true;
        claims.base = Some(claim(State::Waiting, Some(reason), error.unwrap_or("the turn is over")));
        self.say(&mut claims);
    }
}

fn claim(state: State, reason: Option<Reason>, words: &str) -> ScreenClaim {
    ScreenClaim { state, reason, strength: Confidence::High, words: words.to_owned(), dialog: None }
}

fn paused(why: PauseReason) -> ScreenClaim {
    let (reason, words) = match why {
        PauseReason::Quota => (Reason::Quota, "paused: the provider's quota is used up for now"),
        PauseReason::Unavailable => (Reason::Error, "paused: the provider accepts no requests for now"),
        PauseReason::Requested => (Reason::Interrupted, "paused, as requested"),
        PauseReason::Loop => (Reason::Error, "paused: the same calls are repeated with the same results"),
        PauseReason::TokenLimit => (Reason::Error, "paused: the limit of tokens is reached"),
        PauseReason::CostLimit => (Reason::Error, "paused: the limit of costs is reached"),
        PauseReason::PriceUnknown => {
            (Reason::Error, "paused: costs are limited, and the price of the model is unknown")
        }
        PauseReason::TimeLimit => (Reason::Error, "paused: the limit of time is reached"),
        PauseReason::CallLimit => (Reason::Error, "paused: the limit of tool calls is reached"),
    };
    claim(State::Waiting, Some(reason), words)
}

/// The kind of approval for a call.
pub(crate) const fn kind_of(class: CallClass) -> Option<ApprovalKind> {
    match class {
        CallClass::Read | CallClass::ReadOutside => Some(ApprovalKind::Read),
        CallClass::Edit => Some(ApprovalKind::Edit),
        CallClass::Write => Some(ApprovalKind::Write),
        CallClass::Command => Some(ApprovalKind::Command),
        CallClass::Fetch => Some(ApprovalKind::Fetch),
        CallClass::Question => Some(ApprovalKind::Question),
        CallClass::Note | CallClass::Other => None,
    }
}

/// The subject of a call.
pub(crate) fn subject_of(asked: &AskedPermission) -> Option<String> {
    let (arguments, facts) = (&asked.call.arguments, &asked.facts);
    let of_class = match facts.kind {
        CallClass::Command => arguments.text("command"),
        CallClass::Question => arguments.text("question"),
        CallClass::Read
        | CallClass::ReadOutside
        | CallClass::Edit
        | CallClass::Write
        | CallClass::Fetch
        | CallClass::Note
        | CallClass::Other => None,
    };
    of_class.map(str::to_owned).or_else(|| facts.paths.first().cloned()).or_else(|| facts.url.clone())
}

/// The arguments as JSON.
pub(crate) fn arguments_of(asked: &AskedPermission) -> String {
    Json::from(asked.call.arguments.clone()).to_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(frames: impl IntoIterator<Item = RuntimeFrame>) -> (Option<Reason>, String) {
        let status = SessionStatus::new(None, None, "s".to_owned());
        frames.into_iter().for_each(|frame| status.apply(&frame));
        let said = status.claims().said.clone().unwrap();
        (said.reason, said.words)
    }

    #[test]
    fn a_session_file_error_stays_in_the_status_when_the_turn_ends() {
        let idle = || RuntimeFrame::Activity(EngineActivity::Idle);
        let error = || "cannot append to /s.jsonl".to_owned();
        let lost = || RuntimeFrame::FileLost { error: error() };
        let ended = |outcome| RuntimeFrame::TurnEnded { outcome, error: Some(error()) };
        let of_file = (Some(Reason::Error), error());
        assert_eq!(said([lost(), idle()]), of_file);
        let quota = RuntimeFrame::RequestEnded {
            request: engine::RequestNumber(1),
            usage: None,
            predicted: engine::cache::CachePrediction::default(),
            cause: None,
            failure: Some(FailureKind::Quota),
            error: None,
        };
        assert_eq!(said([RuntimeFrame::TurnStarted, quota, lost(), ended(TurnOutcome::Failed), idle()]), of_file);
        // Aborted while the disk is full.
        let full = RuntimeFrame::DiskTrouble { error: Some(error()) };
        let aborted = said([RuntimeFrame::TurnStarted, full, ended(TurnOutcome::Aborted), idle()]);
        assert_eq!(aborted, (Some(Reason::Interrupted), error()));
        assert_eq!(said([idle()]).1, "no prompt yet");
    }
}
