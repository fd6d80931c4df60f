//! The table of pending approvals and waiting hooks. Nothing here blocks, reads files or computes hashes.

use std::{collections::HashMap, sync::Arc};

use agents::AgentAnswer;
use events::{ApprovalId, DecidedVia, DeliveryId, SessionId};
use hooks::delivery::answer::shows_dialog_meanwhile;
use projections::Approval;
use tokio::sync::{OnceCell, oneshot};

use super::{
    HookWait,
    accepted_answers::{route_of, why_not_allowed},
    files::FileMarks,
    grants::{Grant, Grants},
    judge::Judged,
};

/// Maximum number of hooks that wait at once; further ones get no answer.
const HOOKS: usize = 256;
/// Maximum number of pending approvals; further ones are not decided here.
const APPROVALS: usize = 4_096;

/// All pending state. It is lost when the server stops.
#[derive(Default)]
pub(super) struct PendingApprovals {
    approvals: HashMap<ApprovalId, PendingApproval>,
    hooks: HashMap<DeliveryId, WaitingHook>,
    hooks_admitted: u64,
    /// Requests that are allowed again without asking.
    pub grants: Grants,
}

/// A pending approval.
pub(super) struct PendingApproval {
    pub approval: Approval,
    /// The files of the request as they were when it was made; empty until they are hashed.
    pub files: Arc<OnceCell<FileMarks>>,
    /// Whether the files were hashed at the time of the request, rather than at a later start of the server.
    pub looked_at: bool,
    /// The judgement of the policy.
    pub judged: Option<Judged>,
    /// Whether a decision is in progress.
    pub claimed: bool,
    /// The last announcement for the session's status: whether a hook waits for the user. `None` if an earlier server
    /// may have announced either.
    wait_announced: Option<bool>,
}

/// Since when an approval is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownSince {
    /// Since it was requested.
    Request,
    /// Since the server started.
    Start,
}

struct WaitingHook {
    /// Distinguishes this hook from another one for the same delivery.
    number: u64,
    digest: String,
    people: bool,
    /// Whether the policy was applied and left the request to the user.
    left_to_person: bool,
    /// Receives the approval's id once it is known.
    requested: Option<oneshot::Sender<ApprovalId>>,
    /// Receives the answer; dropped if there is none.
    answer: oneshot::Sender<AgentAnswer>,
}

/// The entry of an admitted hook: its number and the channels it receives from.
pub(super) struct Admitted {
    pub number: u64,
    pub requested: oneshot::Receiver<ApprovalId>,
    pub answer: oneshot::Receiver<AgentAnswer>,
}

/// The state of an approval at one moment.
pub(super) struct PendingSummary {
    pub is_pending: bool,
    /// `None` until the files are hashed.
    pub files: Option<FileMarks>,
    pub judged: Option<Judged>,
    /// Whether a hook waits for the user's decision.
    pub waits_for_person: bool,
    /// Whether nothing else is pending in the session.
    pub is_alone: bool,
}

impl PendingApprovals {
    /// Adds an approval; false if it is already known or the table is full.
    pub(super) fn open(&mut self, approval: &Approval, known: KnownSince) -> bool {
        let is_new = !self.approvals.contains_key(&approval.id);
        if is_new {
            if self.approvals.len() >= APPROVALS {
                tracing::warn!(
                    approval = approval.id.as_str(),
                    "too many pending permission requests; this one is left to the agent's own dialog"
                );
                return false;
            }
            let pending = PendingApproval {
                approval: approval.clone(),
                files: Arc::default(),
                looked_at: known == KnownSince::Request,
                judged: None,
                claimed: false,
                wait_announced: (known == KnownSince::Request).then_some(false),
            };
            self.approvals.insert(approval.id.clone(), pending);
        }
        let hook = approval.delivery.as_ref().and_then(|delivery| self.hooks.get_mut(delivery));
        if let Some(requested) = hook.and_then(|hook| hook.requested.take()) {
            requested.send(approval.id.clone()).ok();
        }
        is_new
    }

    /// Removes an approval that was closed. If it was decided here, the decision answers the hook.
    pub(super) fn close(&mut self, approval: &Approval) {
        self.approvals.remove(&approval.id);
        if approval.by.is_none() {
            self.dismiss_hook(approval);
        }
    }

    /// Removes an approval that was decided here.
    pub(super) fn remove(&mut self, id: &ApprovalId) {
        self.approvals.remove(id);
    }

    pub(super) fn get(&self, id: &ApprovalId) -> Option<&PendingApproval> {
        self.approvals.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &ApprovalId) -> Option<&mut PendingApproval> {
        self.approvals.get_mut(id)
    }

    /// The pending approvals whose id matches.
    pub(super) fn matching(&self, fits: impl Fn(&str) -> bool) -> Vec<Approval> {
        let approvals = self.approvals.values().map(|pending| &pending.approval);
        approvals.filter(|approval| fits(approval.id.as_str())).cloned().collect()
    }

    /// The other pending approvals that ask for exactly the same, in any session.
    pub(super) fn same_as(&self, approval: &Approval) -> Vec<ApprovalId> {
        let same = |other: &&Approval| {
            let parts = |approval: &Approval| {
                let Approval { provider, kind, tool, input, cwd, .. } = approval.clone();
                (provider, kind, tool, input, cwd)
            };
            other.id != approval.id && other.exact && parts(other) == parts(approval)
        };
        let pending = self.approvals.values().map(|pending| &pending.approval);
        let mut ids: Vec<ApprovalId> =
            pending.filter(|_| approval.exact).filter(same).map(|other| other.id.clone()).collect();
        ids.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        ids
    }

    pub(super) fn standing(&self, approval: &Approval) -> PendingSummary {
        let pending = self.get(&approval.id);
        let hook = self.hook_of(approval);
        PendingSummary {
            is_pending: pending.is_some(),
            files: pending.and_then(|pending| pending.files.get().cloned()),
            judged: pending.and_then(|pending| pending.judged.clone()),
            waits_for_person: hook.is_some_and(|hook| hook.left_to_person),
            is_alone: self.is_alone(approval.session_id),
        }
    }

    /// Whether at most one approval is pending in a session.
    pub(super) fn is_alone(&self, session: SessionId) -> bool {
        self.approvals.values().filter(|pending| pending.approval.session_id == session).count() < 2
    }

    /// Admits a hook; `None` if too many are waiting. Replaces an earlier hook for the same delivery.
    pub(super) fn admit(&mut self, wait: HookWait) -> Option<Admitted> {
        let delivery = wait.delivery;
        if self.hooks.len() >= HOOKS && !self.hooks.contains_key(&delivery) {
            return None;
        }
        self.hooks_admitted += 1;
        let number = self.hooks_admitted;
        let (request, requested) = oneshot::channel();
        let (reply, answer) = oneshot::channel();
        let mut hook = WaitingHook {
            number,
            digest: wait.digest,
            people: wait.people,
            left_to_person: false,
            requested: None,
            answer: reply,
        };
        let asked = self.approvals.values().find(|p| p.approval.delivery == Some(delivery));
        match asked {
            Some(pending) => drop(request.send(pending.approval.id.clone())),
            None => hook.requested = Some(request),
        }
        self.hooks.insert(delivery, hook);
        Some(Admitted { number, requested, answer })
    }

    /// Removes a hook that disconnected.
    pub(super) fn remove_hook(&mut self, delivery: DeliveryId, number: u64) {
        if self.hooks.get(&delivery).is_some_and(|hook| hook.number == number) {
            self.hooks.remove(&delivery);
        }
    }

    /// The hook that waits for the decision on exactly this request.
    fn hook_of(&self, approval: &Approval) -> Option<&WaitingHook> {
        let hook = self.hooks.get(&approval.delivery?)?;
        // The committed delivery must be identical to the hook's input.
        (!hook.answer.is_closed() && approval.digest.as_deref() == Some(&hook.digest)).then_some(hook)
    }

    /// Whether a hook waits for the decision on exactly this request.
    pub(super) fn is_held(&self, approval: &Approval) -> bool {
        self.hook_of(approval).is_some()
    }

    /// Leaves the decision to the user. Returns false if the hook should not wait: neither for the user nor for a
    /// decision in progress. A hook also does not wait for a request that cannot be allowed here, because the agent's
    /// own dialog shows all of it.
    pub(super) fn leave_to_person(&mut self, approval: &Approval) -> bool {
        let is_claimed = self.get(&approval.id).is_some_and(|pending| pending.claimed);
        let is_decidable = why_not_allowed(approval).is_none() || route_of(approval) == DecidedVia::Protocol;
        let hook = approval.delivery.as_ref().and_then(|delivery| self.hooks.get_mut(delivery));
        hook.is_some_and(|hook| {
            hook.left_to_person = hook.people && is_decidable;
            hook.left_to_person || is_claimed
        })
    }

    /// Answers the hook that waits for the decision on exactly this request, and stores the grant, if any. Returns
    /// false if no hook received the answer.
    pub(super) fn deliver(&mut self, approval: &Approval, answer: AgentAnswer, grant: Option<Grant>) -> bool {
        self.approvals.remove(&approval.id);
        let held = self.is_held(approval);
        let hook = approval.delivery.as_ref().and_then(|delivery| self.hooks.remove(delivery));
        let delivered = hook.filter(|_| held).is_some_and(|hook| hook.answer.send(answer).is_ok());
        if let Some(grant) = grant.filter(|_| delivered) {
            self.grants.add(grant);
        }
        delivered
    }

    /// Dismisses the hook of an approval without an answer.
    pub(super) fn dismiss_hook(&mut self, approval: &Approval) {
        if let Some(delivery) = approval.delivery {
            self.hooks.remove(&delivery);
        }
    }

    /// Forgets sessions and dismisses their hooks without an answer.
    pub(super) fn forget(&mut self, sessions: &[SessionId]) {
        let (hooks, grants) = (&mut self.hooks, &mut self.grants);
        self.approvals.retain(|_, pending| {
            let is_forgotten = sessions.contains(&pending.approval.session_id);
            if let Some(delivery) = pending.approval.delivery.filter(|_| is_forgotten) {
                hooks.remove(&delivery);
            }
            !is_forgotten
        });
        grants.forget(sessions);
    }

    /// Dismisses all hooks without a decision in progress.
    pub(super) fn dismiss_unclaimed(&mut self) {
        let claimed = self.approvals.values().filter(|pending| pending.claimed);
        let claimed: Vec<DeliveryId> = claimed.filter_map(|pending| pending.approval.delivery).collect();
        self.hooks.retain(|delivery, _| claimed.contains(delivery));
    }

    /// Dismisses all hooks.
    pub(super) fn dismiss_all(&mut self) {
        self.hooks.clear();
    }

    /// The next change for the sessions' statuses: the session, the approval, and whether a hook waits for the user.
    pub(super) fn next_wait_change(&mut self) -> Option<(SessionId, ApprovalId, bool)> {
        let hooks = &self.hooks;
        let pending = self.approvals.values_mut().filter(|pending| is_shown_by_us(&pending.approval));
        for PendingApproval { approval, wait_announced, .. } in pending {
            let hook = approval.delivery.as_ref().and_then(|delivery| hooks.get(delivery));
            let waits = hook.is_some_and(|hook| hook.left_to_person);
            if wait_announced.replace(waits) != Some(waits) {
                return Some((approval.session_id, approval.id.clone(), waits));
            }
        }
        None
    }
}

/// Whether the agent shows no sign of waiting, so that capture's status has to.
fn is_shown_by_us(approval: &Approval) -> bool {
    route_of(approval) == DecidedVia::Protocol || !shows_dialog_meanwhile(approval.provider)
}
