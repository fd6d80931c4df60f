//! Reports a conversation to the server and waits for its decisions.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use api::{
    approvals::{DecisionRequest, DecisionScope, Verdict},
    routes::DecideApproval,
};
use events::{ApprovalId, DeliveryId, Provider, Source, Timestamp};
use hooks::delivery::{Agent, Delivery};
use processes::start_ticks;
use protocols::{
    PermissionRequest,
    conversation::{PermissionPayload, ProtocolEvent, ProtocolEventKind},
};

use client::failure::with_causes;
use client::{Client, Connection};
use daemon::{clock, paths, redacted_only};
use hook_command::{self as hook, DecisionOutcome};

/// Time in which a server that missed a delivery finds it and those behind it. Until then it is notified of
/// none, so that it reads them in order.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(5);

/// Tells the server of one conversation.
#[derive(Debug)]
pub(super) struct ServerReporter {
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
    pub(super) fn new(data: PathBuf, provider: Provider, cwd: String, pid: u32) -> Self {
        let agent = start_ticks(pid).map(|start_ticks| Agent { pid, start_ticks, shared: false });
        Self { data, provider, cwd, agent, behind: Cell::new(None), last: Cell::new(Timestamp::MIN) }
    }

    /// Tells something of a session. What cannot be told is lost, and nothing is allowed by it.
    pub(super) fn report(&self, session: &str, what: ProtocolEventKind) {
        if let Err(error) = self.deliver(session, what) {
            super::super::complain(&format!("cannot report to the server: {}", with_causes(&error)));
        }
    }

    /// Delivers a request: what is decided is decided for just this delivery.
    pub(super) fn request(&self, request: &PermissionRequest) -> anyhow::Result<Delivery> {
        self.deliver(&request.session, ProtocolEventKind::Asks(PermissionPayload::of(request)))
    }

    fn deliver(&self, session: &str, what: ProtocolEventKind) -> anyhow::Result<Delivery> {
        // Its own hooks name the very process, where a script started it.
        let agent = self.agent.filter(|_| matches!(what, ProtocolEventKind::Began));
        let payload = ProtocolEvent { session_id: session.to_owned(), cwd: self.cwd.clone(), what }.payload()?;
        let at = clock::now().max(self.last.get().plus_ms(1));
        self.last.set(at);
        let delivery = Delivery {
            id: DeliveryId::mint(at, clock::random().context("cannot read random bytes from the system")?),
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
            let heard = hook::notify_server(&self.data, delivery.id).is_ok();
            self.behind.set((!heard).then(|| now + CATCH_UP_WITHIN));
        }
        Ok(delivery)
    }

    /// Where the server's files are.
    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    /// What the user at the terminal says, as a person's decision. False when no server can be reached.
    ///
    /// # Errors
    /// When the server refuses it, in its words.
    pub(super) fn decide(&self, approval: &ApprovalId, allow: bool) -> anyhow::Result<bool> {
        let Ok(Some(client)) = Client::running(&self.data, Connection::Unix) else { return Ok(false) };
        let decision = if allow { Verdict::Allow } else { Verdict::Deny };
        let request = DecisionRequest { decision, message: None, scope: DecisionScope::Once, answers: None };
        client.send::<DecideApproval>(approval.as_str(), &request)?;
        Ok(true)
    }
}

/// Waits for the decision on a delivery.
pub(super) fn wait(data: &Path, delivery: &Delivery, patience: Duration) -> DecisionOutcome {
    hook::decision(data, delivery, patience, true)
}
