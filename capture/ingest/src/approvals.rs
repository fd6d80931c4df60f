//! Records decisions on approvals: the event that closes the approval and its audit row are written in one transaction.
//! The caller learns of the decision after the commit, and only then is the agent answered, so an unrecorded decision
//! is never delivered.

use std::sync::{Mutex, PoisonError};

use events::{
    ApprovalId, ApprovalKind, ApprovalResolved, ApprovalState, AuditKind, Claim, Confidence, Event, Payload, Reason,
    SessionId, Signal, Source, State, Timestamp,
};
use projections::Approval;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;

use super::{Ingest, TransactionFailure};

/// A request to decide an approval.
pub struct DecisionCommit {
    /// The session the approval belongs to.
    pub session: SessionId,
    /// The decision; names the approval.
    pub resolved: ApprovalResolved,
    /// Who decided, from where and on what grounds, for the audit record.
    pub evidence: Value,
    /// After the commit, receives the approval in its new state, or the reason nothing was decided. Dropped if the
    /// server ends before the commit.
    pub reply: oneshot::Sender<Result<Approval, Undecided>>,
    outcome: Mutex<Option<Result<Approval, Undecided>>>,
}

/// Why nothing was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undecided {
    /// There is no such approval.
    Unknown,
    /// It is closed already.
    Closed(ApprovalState),
}

impl DecisionCommit {
    /// Creates a request to decide.
    #[must_use]
    pub fn new(
        session: SessionId,
        resolved: ApprovalResolved,
        evidence: Value,
        reply: oneshot::Sender<Result<Approval, Undecided>>,
    ) -> Self {
        Self { session, resolved, evidence, reply, outcome: Mutex::default() }
    }

    fn settle(&self, outcome: Result<Approval, Undecided>) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }

    pub(super) fn send_reply(self) {
        let outcome = self.outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        // The receiver may be gone.
        self.reply.send(outcome.unwrap_or(Err(Undecided::Unknown))).ok();
    }
}

/// An audit row about an approval that does not change the approval.
pub struct ApprovalRecord {
    /// What happened.
    pub what: AuditKind,
    /// The approval the row is about.
    pub approval: Box<Approval>,
    /// The grounds.
    pub evidence: Value,
    /// Notified after the commit.
    pub done: oneshot::Sender<()>,
}

/// A row of the audit record.
#[derive(Serialize)]
struct AuditRow<'a> {
    at: Timestamp,
    what: AuditKind,
    approval: &'a Approval,
    #[serde(skip_serializing_if = "Value::is_null")]
    evidence: &'a Value,
}

impl Ingest {
    pub(super) fn apply_decide(&mut self, decide: &DecisionCommit) -> Result<(), TransactionFailure> {
        let id = &decide.resolved.approval_id;
        let Some(slot) = self.sessions.find(decide.session) else {
            decide.settle(Err(Undecided::Unknown));
            return Ok(());
        };
        let state = self.state(slot)?;
        let approval = state.approval(id);
        let open = approval.is_some_and(|a| a.was_left_open(decide.resolved.via));
        match approval.map(|approval| approval.state) {
            None => decide.settle(Err(Undecided::Unknown)),
            Some(state) if state == ApprovalState::Pending || open => {
                let now = (self.clock)();
                self.inject(slot, Source::Runtime, now, "decision", decide.resolved.clone().into())?;
                match self.state(slot)?.approval(id).cloned() {
                    Some(approval) => {
                        self.record(AuditKind::Decided, &approval, &decide.evidence)?;
                        decide.settle(Ok(approval));
                    }
                    None => decide.settle(Err(Undecided::Unknown)),
                }
            }
            Some(closed) => decide.settle(Err(Undecided::Closed(closed))),
        }
        Ok(())
    }

    pub(super) fn apply_record(&mut self, record: &ApprovalRecord) -> Result<(), TransactionFailure> {
        self.record(record.what, &record.approval, &record.evidence)
    }

    /// Records that a hook waits for the decision. This is a claim by capture: the agent itself reports that it is
    /// working.
    pub(super) fn apply_wait(
        &mut self,
        session: SessionId,
        approval: &ApprovalId,
        on: bool,
    ) -> Result<(), TransactionFailure> {
        let Some(slot) = self.sessions.find(session) else { return Ok(()) };
        let state = self.state(slot)?;
        let Some(kind) = state.approval(approval).filter(|a| a.state == ApprovalState::Pending).map(|a| a.kind) else {
            return Ok(());
        };
        let claim = if on {
            let reason = kind.map_or(Reason::Tool, ApprovalKind::reason);
            let is_question = kind == Some(ApprovalKind::Question);
            let state = if is_question { State::Waiting } else { State::WaitingApproval };
            Claim::State { state, reason: Some(reason) }
        } else {
            Claim::Withdrawn
        };
        let words = Some("a hook or protocol is waiting for the decision".to_owned());
        let signal = Signal { key: Some(approval.to_string()), ..Signal::new(claim, Confidence::High, words) };
        self.inject(slot, Source::Runtime, (self.clock)(), "hook-waits", signal.into())
    }

    /// Adds a row to the audit record.
    pub(super) fn record(
        &mut self,
        what: AuditKind,
        approval: &Approval,
        evidence: &Value,
    ) -> Result<(), TransactionFailure> {
        let row = AuditRow { at: (self.clock)(), what, approval, evidence };
        let body = if self.redacted_only {
            // The agent's request and the answers arrive unredacted from the waiting hook.
            let mut row = serde_json::to_value(&row).unwrap_or_default();
            redact::of_strings(&mut row);
            row.to_string()
        } else {
            serde_json::to_string(&row).unwrap_or_default()
        };
        Ok(self.transaction.audit(&body)?)
    }

    /// Stores an approval that an event of the log opened or closed.
    pub(super) fn store_approval_of(&mut self, slot: usize, event: &Event) -> Result<(), TransactionFailure> {
        let id = if let Payload::ApprovalRequested(asked) = &event.payload {
            &asked.approval_id
        } else if let Payload::ApprovalResolved(resolved) = &event.payload {
            &resolved.approval_id
        } else {
            return Ok(());
        };
        let approval = self.sessions.loaded(slot).and_then(|state| state.approval(id)).cloned();
        // If a derived event closed the approval, that event stores it.
        let asked = matches!(event.payload, Payload::ApprovalRequested(_));
        let approval = approval.filter(|approval| !asked || approval.state == ApprovalState::Pending);
        approval.map_or(Ok(()), |approval| self.store_approval(slot, approval, &event.payload, event.history))
    }

    /// Stores the current state of an approval, and audits how it ended if it was not decided in capture.
    pub(super) fn store_approval(
        &mut self,
        slot: usize,
        approval: Approval,
        news: &Payload,
        history: bool,
    ) -> Result<(), TransactionFailure> {
        if !history && approval.state != ApprovalState::Pending {
            match (approval.by, is_outcome(news)) {
                (_, true) => self.record(AuditKind::Outcome, &approval, &Value::Null)?,
                (None, false) => self.record(AuditKind::Closed, &approval, &Value::Null)?,
                (Some(_), false) => {}
            }
        }
        Ok(self.transaction.put_approval(self.sessions.known(slot).row, approval)?)
    }
}

/// Whether the payload only reports the outcome of the call that needed approval.
fn is_outcome(news: &Payload) -> bool {
    matches!(news, Payload::ApprovalResolved(resolved) if resolved.state.is_none() && resolved.outcome.is_some())
}
