//! Reports a conversation to the server and waits for its decisions.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use api::{approvals::DecisionRequest, routes::DecideApproval};
use events::{ApprovalId, DeliveryId, Provider, Source, Timestamp};
use home::{clock, paths, redacted_only};
use hooks::delivery::{Agent, Delivery, SpoolError};
use processes::start_ticks;
use protocols::conversation::{PermissionPayload, ProtocolEvent, ProtocolEventKind};

use crate::{
    Client, ClientError, Connection,
    delivery::{DecisionOutcome, decision, notify_server},
};

/// Time in which a server that missed a delivery finds it and those behind it. Until then it is notified of
/// none, so that it reads them in order.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(5);

/// Why something could not be told or asked.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// It cannot be written as JSON.
    #[error("cannot encode what is reported: {0}")]
    Encode(#[from] serde_json::Error),
    /// There are no random bytes for its id.
    #[error("cannot read random bytes from the system: {0}")]
    Random(#[source] std::io::Error),
    /// There can be no thread for it.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
    /// It cannot be put into the spool.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The server refuses it, in its words.
    #[error(transparent)]
    Refused(#[from] ClientError),
}

/// Tells the server of one conversation.
#[derive(Debug)]
pub struct ServerReporter {
    data: PathBuf,
    provider: Provider,
    cwd: String,
    agent: Option<Agent>,
    /// Until when the server finds by itself what is delivered.
    behind: Cell<Option<Instant>>,
    /// When the last delivery was made: their ids are in its order.
    last: Cell<Timestamp>,
}

impl ServerReporter {
    /// For the agent that runs in this process.
    #[must_use]
    pub fn new(data: PathBuf, provider: Provider, cwd: String, pid: u32) -> Self {
        let agent = start_ticks(pid).map(|start_ticks| Agent { pid, start_ticks, shared: false });
        Self { data, provider, cwd, agent, behind: Cell::new(None), last: Cell::new(Timestamp::MIN) }
    }

    /// Tells something of a session. What cannot be told is lost, and nothing is allowed by it.
    ///
    /// # Errors
    /// When it cannot be put where the server finds it.
    pub fn report(&self, session: &str, what: ProtocolEventKind) -> Result<(), ReportError> {
        self.deliver(session, what).map(drop)
    }

    /// Delivers a request: what is decided is decided for just this delivery.
    ///
    /// # Errors
    /// As [`report`](Self::report).
    pub fn request(&self, session: &str, request: PermissionPayload) -> Result<Delivery, ReportError> {
        self.deliver(session, ProtocolEventKind::Asks(request))
    }

    /// Whether the server heard of the last delivery at once.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.behind.get().is_none()
    }

    fn deliver(&self, session: &str, what: ProtocolEventKind) -> Result<Delivery, ReportError> {
        // Its own hooks name the very process, where a script started it.
        let agent = self.agent.filter(|_| matches!(what, ProtocolEventKind::Began));
        let payload = ProtocolEvent { session_id: session.to_owned(), cwd: self.cwd.clone(), what }.payload()?;
        let at = clock::now().max(self.last.get().plus_ms(1));
        self.last.set(at);
        let delivery = Delivery {
            id: DeliveryId::mint(at, clock::random().map_err(ReportError::Random)?),
            provider: self.provider,
            source: Source::Protocol,
            at,
            agent,
            run: None,
            search_path: paths::variable("PATH").and_then(|path| path.to_str().map(str::to_owned)),
            redacted_from: None,
            payload,
        };
        redacted_only::put(&self.data, &delivery)?;
        let now = Instant::now();
        if self.behind.get().is_none_or(|until| until <= now) {
            let heard = notify_server(&self.data, delivery.id).is_ok();
            self.behind.set((!heard).then(|| now + CATCH_UP_WITHIN));
        }
        Ok(delivery)
    }

    /// Where the server's files are.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }
}

/// Waits for the decision on a delivery.
#[must_use]
pub fn wait_for_decision(data: &Path, delivery: &Delivery, patience: Duration) -> DecisionOutcome {
    decision(data, delivery, patience, true)
}

/// Waits for what rules and earlier decisions say of a delivery. Undecided as soon as they leave it to people.
#[must_use]
pub fn wait_for_rules(data: &Path, delivery: &Delivery, patience: Duration) -> DecisionOutcome {
    decision(data, delivery, patience, false)
}

/// A person's decision, from this process. False when no server can be reached.
///
/// # Errors
/// When the server refuses it, in its words.
pub fn decide(data: &Path, approval: &ApprovalId, decision: &DecisionRequest) -> Result<bool, ReportError> {
    let Ok(Some(client)) = Client::running(data, Connection::Unix) else { return Ok(false) };
    client.send::<DecideApproval>(approval.as_str(), decision)?;
    Ok(true)
}
