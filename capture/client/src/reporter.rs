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

/// Time in which a server that missed a notification finds the delivery and those after it. Until then it is not
/// notified, so that it reads the deliveries in order.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(5);

/// Why a report or a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The event cannot be written as JSON.
    #[error("cannot encode the report: {0}")]
    Encode(#[from] serde_json::Error),
    /// There are no random bytes for the id.
    #[error("cannot read random bytes from the system: {0}")]
    Random(#[source] std::io::Error),
    /// The thread cannot be created.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
    /// The delivery cannot be written to the spool.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The server refused, with its message.
    #[error(transparent)]
    Refused(#[from] ClientError),
}

/// Reports one conversation to the server.
#[derive(Debug)]
pub struct ServerReporter {
    data: PathBuf,
    provider: Provider,
    cwd: String,
    agent: Option<Agent>,
    /// Until when the server finds deliveries without being notified.
    behind: Cell<Option<Instant>>,
    /// The time of the last delivery, so that ids increase in the order of delivery.
    last: Cell<Timestamp>,
}

impl ServerReporter {
    /// A reporter for the agent that runs as process `pid`.
    #[must_use]
    pub fn new(data: PathBuf, provider: Provider, cwd: String, pid: u32) -> Self {
        let agent = start_ticks(pid).map(|start_ticks| Agent { pid, start_ticks, shared: false });
        Self { data, provider, cwd, agent, behind: Cell::new(None), last: Cell::new(Timestamp::MIN) }
    }

    /// Reports an event of a session. A report that fails is lost, and nothing is allowed because of it.
    ///
    /// # Errors
    /// If the delivery cannot be written to the spool.
    pub fn report(&self, session: &str, what: ProtocolEventKind) -> Result<(), ReportError> {
        self.deliver(session, what).map(drop)
    }

    /// Delivers a request. The decision applies to exactly this delivery.
    ///
    /// # Errors
    /// As [`report`](Self::report).
    pub fn request(&self, session: &str, request: PermissionPayload) -> Result<Delivery, ReportError> {
        self.deliver(session, ProtocolEventKind::Asks(request))
    }

    fn deliver(&self, session: &str, what: ProtocolEventKind) -> Result<Delivery, ReportError> {
        // If a script started the agent, the agent's own hooks identify the exact process.
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

    /// The data directory.
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

/// Waits for a decision by rules or earlier decisions; undecided as soon as they leave the delivery to people.
#[must_use]
pub fn wait_for_rules(data: &Path, delivery: &Delivery, patience: Duration) -> DecisionOutcome {
    decision(data, delivery, patience, false)
}

/// Sends a person's decision from this process. Returns false if no server can be reached.
///
/// # Errors
/// If the server refuses it, with its message.
pub fn decide(data: &Path, approval: &ApprovalId, decision: &DecisionRequest) -> Result<bool, ReportError> {
    let Ok(Some(client)) = Client::running(data, Connection::Unix) else { return Ok(false) };
    client.send::<DecideApproval>(approval.as_str(), decision)?;
    Ok(true)
}
