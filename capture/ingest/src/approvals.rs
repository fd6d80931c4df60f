//! Records decisions on approvals: the event that closes the approval and its row of the audit record are one
//! transaction. The caller learns of the decision after the commit, and only then is the agent answered: a decision
//! that is not recorded is not delivered.

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

/// A decision that is to be made.
pub struct DecisionCommit {
    /// Whose approval.
    pub session: SessionId,
    /// What was decided; names the approval.
    pub resolved: ApprovalResolved,
    /// Who decided, from where, on what grounds: for the record.
    pub evidence: Value,
    /// Receives, after the commit, the approval in its state then, or why there was nothing to decide.
    /// Dropped when the server ends before the commit.
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
    /// A decision.
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
        // Whoever decided may have ended meanwhile.
        self.reply.send(outcome.unwrap_or(Err(Undecided::Unknown))).ok();
    }
}

/// Something of an approval that is only recorded.
pub struct ApprovalRecord {
    /// What happened.
    pub what: AuditKind,
    /// The approval it is about.
    pub approval: Box<Approval>,
    /// The grounds.
    pub evidence: Value,
    /// Is sent to after the commit.
    pub done: oneshot::Sender<()>,
}

/// A row of the record.
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

    /// That a hook waits is a claim of ours: the agent shows that it works.
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

    /// Adds a row to the record.
    pub(super) fn record(
        &mut self,
        what: AuditKind,
        approval: &Approval,
        evidence: &Value,
    ) -> Result<(), TransactionFailure> {
        let row = AuditRow { at: (self.clock)(), what, approval, evidence };
        let body = if self.redacted_only {
            // What the agent asked and what people said of it comes from whoever waits, as it was.
            let mut row = serde_json::to_value(&row).unwrap_or_default();
            redact::of_strings(&mut row);
            row.to_string()
        } else {
            serde_json::to_string(&row).unwrap_or_default()
        };
        Ok(self.transaction.audit(&body)?)
    }

    /// Keeps an approval that an event of the log opened or closed.
    pub(super) fn store_approval_of(&mut self, slot: usize, event: &Event) -> Result<(), TransactionFailure> {
        let id = if let Payload::ApprovalRequested(asked) = &event.payload {
            &asked.approval_id
        } else if let Payload::ApprovalResolved(resolved) = &event.payload {
            &resolved.approval_id
        } else {
            return Ok(());
        };
        let approval = self.sessions.loaded(slot).and_then(|state| state.approval(id)).cloned();
        // What was closed by what follows from it is kept with that.
        let asked = matches!(event.payload, Payload::ApprovalRequested(_));
        let approval = approval.filter(|approval| !asked || approval.state == ApprovalState::Pending);
        approval.map_or(Ok(()), |approval| self.store_approval(slot, approval, &event.payload, event.history))
    }

    /// Stores the current state of an approval, and records how it ended when nobody decided it here.
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

/// Whether it only tells how the call ended that was asked for.
fn is_outcome(news: &Payload) -> bool {
    matches!(news, Payload::ApprovalResolved(resolved) if resolved.state.is_none() && resolved.outcome.is_some())
}
