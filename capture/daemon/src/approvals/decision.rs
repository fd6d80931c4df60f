//! The steps of a decision: claim the approval exclusively; press the keys, if keys answer it; commit; answer the hook;
//! record the outcome.

use std::sync::Arc;

use agents::AgentAnswer;
use api::approvals::{DecisionScope, Verdict};
use events::{ApprovalKind, ApprovalResolved, ApprovalState, AuditKind, DecidedBy, DecidedVia, RunId};
use host_protocol::frame::DialogAnswer;
use ingest::{ApprovalRecord, DecisionCommit, IngestInput, Undecided};
use live_view::{Decision, Refusal};
use projections::Approval;
use serde_json::{Value, json};
use tokio::sync::{OnceCell, oneshot};

use super::{
    ApprovalBroker, CHANGED, FileView,
    accepted_answers::{accepts_decisions, answer_of, is_expressible, route_of, why_not_allowed, wrong_answers},
    dialog::dialog_of,
    files::FileMarks,
    grants::Grant,
    pending::PendingApproval,
    revision_of, with_dialog,
};

/// A decision on an approval that was claimed for it.
pub(super) struct ClaimedDecision {
    pub claim: ClaimedApproval,
    pub resolved: ApprovalResolved,
    /// Who decided, and on what grounds.
    pub evidence: Value,
    pub route: AnswerRoute,
    /// The grant to remember, if the same request should be allowed again.
    pub grant: Option<Grant>,
}

/// How a decision reaches the agent.
pub(super) enum AnswerRoute {
    /// Through the waiting hook or driver, with this answer.
    Hook(AgentAnswer),
    /// Through keys that answer the dialog with this mark.
    Keys { run: RunId, mark: String, answer: DialogAnswer },
}

/// Prevents any other decision on an approval while it exists.
pub(super) struct ClaimedApproval {
    broker: ApprovalBroker,
    approval: Approval,
}

impl Drop for ClaimedApproval {
    fn drop(&mut self) {
        if let Some(pending) = self.broker.pending().get_mut(&self.approval.id) {
            pending.claimed = false;
        }
    }
}

impl ApprovalBroker {
    /// Carries out a decision; a request that ends up unanswered is left to the agent's dialog.
    ///
    /// # Errors
    /// The reason nothing was decided, or the agent was not answered.
    pub(super) async fn execute(self, claimed: ClaimedDecision) -> Result<Approval, Refusal> {
        let ClaimedDecision { claim, resolved, evidence, route, grant } = claimed;
        let evidence = match &route {
            AnswerRoute::Hook(_) => evidence,
            AnswerRoute::Keys { run, mark, answer } => {
                self.press_keys(&claim.approval, evidence, (*run, mark.clone()), *answer).await?
            }
        };
        let approval = match self.commit(&claim.approval, resolved, evidence).await {
            Ok(approval) => approval,
            Err(why) => {
                self.pending().dismiss_hook(&claim.approval);
                return Err(why);
            }
        };
        let AnswerRoute::Hook(answer) = route else {
            let mut pending = self.pending();
            pending.remove(&approval.id);
            // A hook that connected while the keys were pressed has nothing left to answer.
            pending.dismiss_hook(&approval);
            return Ok(approval);
        };
        let delivered = self.pending().deliver(&approval, answer.clone(), grant);
        let what = if delivered { AuditKind::Delivered } else { AuditKind::Undelivered };
        self.record(what, &approval, json!({ "answer": answer })).await;
        if !delivered {
            return conflict(
                "the hook stopped waiting before the answer arrived; answer the request in the agent \
                itself",
            );
        }
        Ok(approval)
    }

    /// Presses the keys that answer a dialog, after recording the attempt; returns the evidence, including the pressed
    /// keys.
    async fn press_keys(
        &self,
        approval: &Approval,
        who: Value,
        (run, mark): (RunId, String),
        answer: DialogAnswer,
    ) -> Result<Value, Refusal> {
        self.record(AuditKind::Attempted, approval, who.clone()).await.await.map_err(|_| stopping())?;
        if self.shared.stopping.is_cancelled() {
            return Err(stopping());
        }
        match self.shared.runs.answer(run, mark, answer).await {
            Ok(pressed) if pressed.applied => Ok(json!({ "who": who, "keys": pressed })),
            Ok(pressed) => {
                self.record(AuditKind::Unclear, approval, json!({ "keys": pressed })).await;
                let why = pressed.why.map(|why| format!(" ({why})")).unwrap_or_default();
                conflict(format!(
                    "keys were pressed, but the dialog is still open{why}; answer in the terminal (`capture attach {run}`)"
                ))
            }
            Err(why) => {
                self.record(AuditKind::Refused, approval, json!({ "why": why.to_string() })).await;
                Err(why)
            }
        }
    }

    /// Commits a decision with its audit row; returns the approval as committed.
    async fn commit(
        &self,
        approval: &Approval,
        resolved: ApprovalResolved,
        evidence: Value,
    ) -> Result<Approval, Refusal> {
        let (reply, committed) = oneshot::channel();
        let decide = DecisionCommit::new(approval.session_id, resolved, evidence, reply);
        // If ingest has stopped, the uncommitted input drops its reply channel.
        self.shared.inputs.send_async(IngestInput::Decide(Box::new(decide))).await.ok();
        match committed.await.map_err(|_| stopping())? {
            Ok(approval) => Ok(approval),
            Err(undecided) => {
                self.pending().remove(&approval.id);
                Err(closed(approval, undecided))
            }
        }
    }

    /// Adds an audit row that is not a decision; the returned receiver resolves after the commit.
    pub(super) async fn record(&self, what: AuditKind, approval: &Approval, evidence: Value) -> oneshot::Receiver<()> {
        let (done, recorded) = oneshot::channel();
        let record = ApprovalRecord { what, approval: Box::new(approval.clone()), evidence, done };
        self.shared.inputs.send_async(IngestInput::Record(Box::new(record))).await.ok();
        recorded
    }

    /// Claims an approval for a decision of the user.
    ///
    /// # Errors
    /// The reason it cannot be decided here and now.
    pub(super) async fn claim_for_person(
        &self,
        approval: &Approval,
        decision: Decision,
    ) -> Result<ClaimedDecision, Refusal> {
        if approval.state != ApprovalState::Pending {
            return Err(closed(approval, Undecided::Closed(approval.state)));
        }
        // A denial does not wait for a file system.
        let files_now = match decision.verdict {
            Verdict::Allow => {
                self.mark_files(approval).await?;
                Some(self.marks_now(approval).await?)
            }
            Verdict::Deny => None,
        };
        let (route, files) = self.check_and_claim(approval, &decision, files_now)?;
        let claim = ClaimedApproval { broker: self.clone(), approval: approval.clone() };
        let via = match &route {
            AnswerRoute::Hook(_) => route_of(approval),
            AnswerRoute::Keys { .. } => DecidedVia::Keys,
        };
        let resolved = ApprovalResolved {
            approval_id: approval.id.clone(),
            allowed: Some(decision.verdict == Verdict::Allow),
            by: Some(DecidedBy::Person),
            device: decision.who.device_name.clone(),
            via: Some(via),
            message: decision.message.clone(),
            ..ApprovalResolved::default()
        };
        let evidence = json!({
            "who": decision.who, "scope": decision.scope, "answers": decision.answers, "files": shown(&files),
            "saves_rule": decision.rule,
        });
        let grant = (decision.scope == DecisionScope::Session).then(|| Grant::of(approval, &files)).flatten();
        Ok(ClaimedDecision { claim, resolved, evidence, route, grant })
    }

    /// Claims an approval for the answer of a rule or grant to its hook; `None` if the hook disconnected or another
    /// decision is in progress.
    pub(super) fn claim_for_hook(
        &self,
        approval: &Approval,
        resolved: ApprovalResolved,
        evidence: Value,
        answer: AgentAnswer,
    ) -> Option<ClaimedDecision> {
        {
            let mut pending = self.pending();
            if self.shared.stopping.is_cancelled() || !pending.is_held(approval) {
                return None;
            }
            let pending = pending.get_mut(&approval.id).filter(|pending| !pending.claimed)?;
            pending.claimed = true;
        }
        let claim = ClaimedApproval { broker: self.clone(), approval: approval.clone() };
        Some(ClaimedDecision { claim, resolved, evidence, route: AnswerRoute::Hook(answer), grant: None })
    }

    /// Checks a decision of the user against the current state and claims the approval atomically; returns how the
    /// decision reaches the agent, and its files.
    fn check_and_claim(
        &self,
        approval: &Approval,
        decision: &Decision,
        files_now: Option<FileMarks>,
    ) -> Result<(AnswerRoute, FileMarks), Refusal> {
        let mut table = self.pending();
        if self.shared.stopping.is_cancelled() {
            return Err(stopping());
        }
        if let Some(why) = why_not_allowed(approval).filter(|_| decision.verdict == Verdict::Allow) {
            return conflict(why);
        }
        let (is_held, is_alone) = (table.is_held(approval), table.is_alone(approval.session_id));
        let is_full = table.grants.is_full();
        let Some(pending) = table.get_mut(&approval.id) else {
            return conflict("the request is no longer pending; `capture approvals` shows the current ones");
        };
        if pending.claimed {
            return conflict("another client is deciding this request right now");
        }
        let files = match files_now {
            Some(now) => pending.unchanged_files(now)?,
            None => pending.files.get().cloned().unwrap_or_default(),
        };
        let is_question = approval.kind == Some(ApprovalKind::Question);
        if is_question && decision.verdict == Verdict::Allow && decision.answers.is_none() {
            return conflict("this request is a question: answer it with --answer");
        }
        if let Some(why) = decision.answers.as_ref().and_then(|answers| wrong_answers(approval, answers)) {
            return conflict(why);
        }
        if decision.answers.is_some() && !is_question {
            return conflict("this request is not a question, so --answer does not apply");
        }
        if decision.scope == DecisionScope::Session && Grant::of(approval, &files).is_none() {
            return conflict(
                "this request cannot be allowed for the session: capture recognizes a repetition only if the request \
                 names all its files and changes none of them; use `--scope once`",
            );
        }
        if decision.scope == DecisionScope::Session && is_full {
            return conflict(
                "too many requests are already allowed for their sessions; use `--scope once` or `--scope rule`",
            );
        }
        let route = if is_held && accepts_decisions(approval) {
            hook_route(approval, decision)?
        } else {
            self.keys_route(approval, decision, is_alone)?
        };
        pending.claimed = true;
        Ok((route, files))
    }

    fn keys_route(&self, approval: &Approval, decision: &Decision, is_alone: bool) -> Result<AnswerRoute, Refusal> {
        if decision.answers.is_some() || decision.scope == DecisionScope::Session {
            return conflict(
                "no hook is waiting for this request, so capture can only press keys in the agent's dialog: allow it \
                 once (`--scope once`), deny it, or answer in the agent itself",
            );
        }
        let (run, mark) = dialog_of(&self.shared.runs, approval, is_alone).or_else(conflict)?;
        // A dialog with the same text may belong to another change.
        let shown = with_dialog(&revision_of(approval), &mark);
        if decision.verdict == Verdict::Allow && decision.revision.as_ref() != Some(&shown) {
            return conflict(if decision.revision.is_some() {
                CHANGED
            } else {
                "capture would answer this request by pressing keys: also send the `revision` of the request that you \
                 displayed, so that the keys cannot answer another dialog"
            });
        }
        let answer = match decision.verdict {
            Verdict::Allow => DialogAnswer::AllowOnce,
            Verdict::Deny => DialogAnswer::Deny,
        };
        Ok(AnswerRoute::Keys { run, mark, answer })
    }
}

fn hook_route(approval: &Approval, decision: &Decision) -> Result<AnswerRoute, Refusal> {
    let answer = answer_of(decision);
    if is_expressible(approval, &answer) {
        return Ok(AnswerRoute::Hook(answer));
    }
    conflict(match route_of(approval) {
        DecidedVia::Protocol => {
            "the agent's protocol cannot express this answer; use `--scope once` or deny the request"
        }
        DecidedVia::Hook | DecidedVia::Keys => {
            "the agent does not accept this answer from its hook; answer in the \
            agent itself"
        }
    })
}

impl PendingApproval {
    /// The files of the request, if they have not changed since it was made. If they changed, or the request predates
    /// the server's start, it has to be reviewed again.
    fn unchanged_files(&mut self, now: FileMarks) -> Result<FileMarks, Refusal> {
        if !std::mem::replace(&mut self.looked_at, true) {
            return conflict("the server was restarted since the request; check the request and decide again");
        }
        let Some(before) = self.files.get().cloned() else {
            return conflict("the files of this request are still being checked; try again in a moment");
        };
        if now == before {
            return Ok(before);
        }
        let changed = now.iter().find(|mark| !before.contains(mark)).or_else(|| before.first());
        let path = changed.map(|mark| mark.path.display().to_string()).unwrap_or_default();
        self.files = Arc::new(OnceCell::new_with(Some(now)));
        conflict(format!("{path} changed since the request; check the file and decide again"))
    }
}

/// Files in the form that is shown and recorded.
pub(super) fn shown(files: &FileMarks) -> Vec<FileView> {
    files.iter().map(FileView::from).collect()
}

fn conflict<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Conflict(why.into()))
}

fn stopping() -> Refusal {
    Refusal::Unavailable
}

fn closed(approval: &Approval, undecided: Undecided) -> Refusal {
    let id = &approval.id;
    let how = match undecided {
        Undecided::Unknown => return Refusal::NotFound(format!("permission request {id} no longer exists")),
        Undecided::Closed(ApprovalState::Pending) => "closed",
        Undecided::Closed(ApprovalState::Allowed) => "allowed",
        Undecided::Closed(ApprovalState::Denied) => "denied",
        Undecided::Closed(ApprovalState::AnsweredElsewhere) => "answered in the agent",
        Undecided::Closed(ApprovalState::Expired) => "closed: it expired",
        Undecided::Closed(ApprovalState::Withdrawn) => "withdrawn by the agent",
    };
    Refusal::Conflict(format!("permission request {id} was already {how}"))
}
