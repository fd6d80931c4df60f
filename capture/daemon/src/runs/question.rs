//! Requests to a host with its answer, or the reason there is none; and the description of a run whose host connected.

use std::time::Duration;

use api::runs::{Run, RunState};
use host_protocol::frame::{Hello, HostRequest};
use live_view::Refusal;
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::QueuedRequest;

/// How long a host may take to answer before it counts as busy.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Why a host did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// The request was not sent, or the host refused it: it did nothing.
    Refused(Refusal),
    /// The request was sent, and it is unknown whether the host did anything.
    Unknown(Refusal),
}

impl From<Unanswered> for Refusal {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Refused(refusal) | Unanswered::Unknown(refusal) => refusal,
        }
    }
}

/// Sends a request to a host and waits for the answer.
pub(super) async fn question(
    run: &Run,
    asks: Option<&mpsc::Sender<QueuedRequest>>,
    ask: HostRequest,
) -> Result<Value, Unanswered> {
    question_within(run, asks, ask, ANSWER_WITHIN).await
}

/// The name of a run, or its id if it has none.
pub(super) fn name_of(run: &Run) -> String {
    run.hello.name.clone().unwrap_or_else(|| run.id.to_string())
}

/// Sends a request that may take the host this long.
pub(super) async fn question_within(
    run: &Run,
    asks: Option<&mpsc::Sender<QueuedRequest>>,
    ask: HostRequest,
    within: Duration,
) -> Result<Value, Unanswered> {
    let name = name_of(run);
    let asks = asks.filter(|_| run.ended_at.is_none()).ok_or_else(|| {
        Unanswered::Refused(Refusal::Conflict(if run.ended_at.is_some() {
            format!("run {name} has ended")
        } else {
            format!("run {name} is not connected to the server; its background process may have ended")
        }))
    })?;
    let (reply, answer) = oneshot::channel();
    let busy = || {
        Refusal::Conflict(format!("run {name} did not answer in time; it may be ending: check `capture screen {name}`"))
    };
    asks.try_send(QueuedRequest { ask, reply }).map_err(|_| Unanswered::Refused(busy()))?;
    match timeout(within, answer).await {
        Ok(Ok(Ok(value))) => Ok(value),
        Ok(Ok(Err(why))) => Err(Unanswered::Refused(Refusal::Conflict(why))),
        Ok(Err(_)) | Err(_) => Err(Unanswered::Unknown(busy())),
    }
}

/// Why a dialog was not answered by keys, and what to do.
pub(super) fn not_answered(run: &Run, unanswered: Unanswered) -> Refusal {
    match unanswered {
        Unanswered::Refused(Refusal::Conflict(why)) => Refusal::Conflict(format!(
            "not answered: {why}; try again, or answer in the terminal (`capture attach {}`)",
            name_of(run)
        )),
        Unanswered::Refused(refusal) | Unanswered::Unknown(refusal) => refusal,
    }
}

/// A run whose host just connected.
pub(super) fn described(hello: Hello) -> Run {
    Run {
        id: hello.run,
        hello,
        state: RunState::Running,
        exit_code: None,
        exit_signal: None,
        ended_at: None,
        session_id: None,
        frames_lost: 0,
        screen_state: None,
    }
}
