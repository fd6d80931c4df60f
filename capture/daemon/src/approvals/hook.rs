//! Waiting hooks: they wait first for the request to be committed, then for the policy, then for the user.

use std::time::Duration;

use agents::AgentAnswer;
use events::{
    ApprovalId, ApprovalKind, ApprovalResolved, AuditKind, Confidence, DecidedBy, DeliveryId, SessionId, Source,
};
use hooks::delivery::{Delivery, decode::call_of};
use live_view::Refusal;
use projections::Approval;
use serde_json::{Value, json, value::RawValue};

use super::{
    ApprovalBroker, BrokerState, HookWait,
    accepted_answers::{allowance, denial, denial_by, denial_by_boundary, is_expressible, route_of},
    decision::{ClaimedDecision, shown},
    files::FileMarks,
    judge::Judged,
    pending::Admitted,
};

/// How long a hook waits for the commit of earlier events of its session.
const COMMIT_WITHIN: Duration = Duration::from_millis(500);

/// Removes a hook from the table when it stops waiting, for any reason.
struct HookGuard {
    broker: ApprovalBroker,
    delivery: DeliveryId,
    number: u64,
}

impl Drop for HookGuard {
    fn drop(&mut self) {
        self.broker.pending().remove_hook(self.delivery, self.number);
        self.broker.shared.waits_changed.notify_one();
    }
}

/// The next step of a hook after the policy was applied.
enum HookStep {
    /// It waits: for a decision in progress, for the user, or for its request to be closed.
    Wait,
    /// It does not wait for the user.
    Nobody,
}

impl ApprovalBroker {
    /// Waits for a decision of a rule or the user on exactly this delivery.
    pub(super) async fn wait_for_decision(&self, wait: HookWait) -> Option<AgentAnswer> {
        let delivery = wait.delivery;
        let Admitted { number, requested, mut answer } = self.admit(wait)?;
        let _waiting = HookGuard { broker: self.clone(), delivery, number };
        let considered = async {
            match requested.await {
                Ok(id) => self.consider(&id).await,
                Err(_) => HookStep::Nobody,
            }
        };
        tokio::select! {
            biased;
            answer = &mut answer => return answer.ok(),
            next = considered => match next {
                HookStep::Wait => {}
                HookStep::Nobody => return None,
            },
        }
        answer.await.ok()
    }

    fn admit(&self, wait: HookWait) -> Option<Admitted> {
        let mut pending = self.pending();
        if self.shared.stopping.is_cancelled() { None } else { pending.admit(wait) }
    }

    /// Handles a hook that waits for the decision on a pending approval: a grant or the policy decides, or it is left
    /// to the user.
    async fn consider(&self, id: &ApprovalId) -> HookStep {
        let (approval, judged) = {
            let mut table = self.pending();
            let Some(pending) = table.get(id) else { return HookStep::Wait };
            let (approval, judged, claimed) = (pending.approval.clone(), pending.judged.clone(), pending.claimed);
            if !table.is_held(&approval) {
                return HookStep::Wait;
            }
            if claimed {
                table.leave_to_person(&approval);
                self.shared.waits_changed.notify_one();
                return HookStep::Wait;
            }
            (approval, judged)
        };
        let decided = match self.mark_files(&approval).await {
            Ok(files) => self.decide_by_policy(&approval, judged, &files).await,
            Err(error) => Err(error),
        };
        match decided {
            Ok(Some(claimed)) => {
                self.shared.decisions.spawn(self.clone().execute(claimed));
                return HookStep::Wait;
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, approval = approval.id.as_str(), "cannot apply the policy"),
        }
        let waits = self.pending().leave_to_person(&approval);
        self.shared.waits_changed.notify_one();
        if waits { HookStep::Wait } else { HookStep::Nobody }
    }

    /// Claims an approval for a grant or rule that decides it; `None` if it is left to the user.
    async fn decide_by_policy(
        &self,
        approval: &Approval,
        judged: Option<Judged>,
        files: &FileMarks,
    ) -> Result<Option<ClaimedDecision>, Refusal> {
        let resolved = ApprovalResolved {
            approval_id: approval.id.clone(),
            via: Some(route_of(approval)),
            ..ApprovalResolved::default()
        };
        // First, because it can only deny.
        if let Some((judged, boundary)) = self.denied_by_boundary(approval).await? {
            let answer = denial_by_boundary(&judged);
            if !is_expressible(approval, &answer) {
                self.left_by_policy(approval, Judged { allow: None, ..judged }).await;
                return Ok(None);
            }
            let resolved = ApprovalResolved {
                allowed: Some(false),
                by: Some(DecidedBy::Policy),
                rule: Some(judged.rule),
                message: Some(judged.reason),
                ..resolved
            };
            return Ok(self.claim_for_hook(approval, resolved, json!({ "boundary": boundary }), answer));
        }
        if self.pending().grants.allow(approval, files) {
            let resolved = ApprovalResolved {
                allowed: Some(true),
                by: Some(DecidedBy::Grant),
                message: Some("allowed earlier for this session".into()),
                ..resolved
            };
            return Ok(self.claim_for_hook(approval, resolved, Value::Null, allowance(None, None)));
        }
        let judged = match judged {
            Some(judged) => judged,
            None => {
                let (shared, approval) = (self.shared.clone(), approval.clone());
                self.shared.judging.run(move || shared.judged(&approval)).await?
            }
        };
        // No rule may allow a request that is not known byte for byte.
        let is_sure = approval.exact && approval.confidence == Confidence::High;
        let Some(allow) = judged.allow.filter(|allow| !allow || is_sure) else {
            self.left_by_policy(approval, judged).await;
            return Ok(None);
        };
        let evidence = json!({
            "files": shown(files), "source": approval.source, "confidence": approval.confidence,
        });
        let resolved = ApprovalResolved {
            allowed: Some(allow),
            by: Some(DecidedBy::Policy),
            rule: Some(judged.rule.clone()),
            message: Some(judged.reason.clone()),
            rewrite: judged.rewrite.clone(),
            ..resolved
        };
        let answer = if allow { allowance(judged.rewrite, None) } else { denial_by(&judged.rule, &judged.reason) };
        Ok(self.claim_for_hook(approval, resolved, evidence, answer))
    }

    /// Stores and records, once, that the policy leaves an approval to the user.
    async fn left_by_policy(&self, approval: &Approval, judged: Judged) {
        let evidence = json!({ "rule": judged.rule, "reason": judged.reason });
        let is_first =
            self.pending().get_mut(&approval.id).is_some_and(|pending| pending.judged.replace(judged).is_none());
        if is_first {
            let (broker, approval) = (self.clone(), approval.clone());
            // In a separate task, because the hook may disconnect before the record is committed.
            let recorded = async move { drop(broker.record(AuditKind::Asked, &approval, evidence).await) };
            self.shared.decisions.spawn(recorded).await.ok();
        }
    }

    /// Judges a tool call before the agent's own permission check. Answers only with the denial of a rule, after
    /// recording it; everything else is left to the agent.
    pub(super) async fn forbid(&self, delivery: DeliveryId, whole: Box<RawValue>) -> Option<AgentAnswer> {
        let (session, mut approval) = called(delivery, &whole)?;
        let name = session.clone();
        let stored = self.read(move |reader| reader.find(&name)?.map_or(Ok(None), |id| reader.session(id))).await;
        if stored.ok().flatten().is_none_or(|session| session.began_in.is_none()) {
            // The session's start may still be uncommitted.
            tokio::time::timeout(COMMIT_WITHIN, self.shared.inputs.commit()).await.ok();
        }
        let shared = self.shared.clone();
        let judged = self.shared.judging.run(move || {
            let session = shared.reader.find(&session).ok().flatten().and_then(|id| shared.session(id));
            approval.session_id = session.as_ref().map_or(approval.session_id, |session| session.id);
            // If the prompts cannot be read, the policy alone decides.
            let (judged, boundary) = match shared.denied_by_boundary(&approval).ok().flatten() {
                Some((judged, boundary)) => (judged, Some(boundary)),
                None => (shared.judge.judge(&approval, session.as_ref()), None),
            };
            (approval, judged, boundary)
        });
        let (approval, judged, boundary) = judged.await.ok().filter(|(_, judged, _)| judged.allow == Some(false))?;
        if self.shared.stopping.is_cancelled() {
            return None;
        }
        let answer = match boundary {
            Some(_) => denial_by_boundary(&judged),
            None => denial_by(&judged.rule, &judged.reason),
        };
        let mut evidence = json!({ "rule": judged.rule, "reason": judged.reason, "answer": answer });
        if let Some(boundary) = boundary {
            evidence["boundary"] = json!(boundary);
        }
        let recorded = self.record(AuditKind::Forbidden, &approval, evidence).await;
        recorded.await.ok().map(|()| answer)
    }
}

impl BrokerState {
    /// The policy's judgement, restricted to answers that the agent accepts.
    fn judged(&self, approval: &Approval) -> Judged {
        let session = self.session(approval.session_id);
        let judged = self.judge.judge(approval, session.as_ref());
        let is_unanswerable = judged.allow.is_some_and(|allow| {
            let answer = if allow { allowance(judged.rewrite.clone(), None) } else { denial(None) };
            allow && matches!(approval.kind, None | Some(ApprovalKind::Question)) || !is_expressible(approval, &answer)
        });
        if is_unanswerable {
            let reason = "the policy allows it, but the agent cannot receive that answer".to_owned();
            return Judged { allow: None, rewrite: None, reason, ..judged };
        }
        judged
    }
}

/// The input of a hook that is called before every tool: the agent's id of the session, and the call as a request.
fn called(id: DeliveryId, whole: &RawValue) -> Option<(String, Approval)> {
    let delivery: Delivery = serde_json::from_str(whole.get()).ok()?;
    let (session, asked) = call_of(&delivery).filter(|_| delivery.id == id)?;
    let of = (SessionId::mint(delivery.at, delivery.provider, &session), delivery.provider);
    Some((session, Approval::of(&asked, of, None, (Source::Hook, Confidence::High), delivery.at)))
}
