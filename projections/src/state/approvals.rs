//! The approvals of a session. A hook's or protocol's request, or a dialog on the screen, opens an approval. It is
//! closed by a decision, or when the agent continues, no matter who answered.

use events::{
    ApprovalId, ApprovalKind, ApprovalRequested, ApprovalResolved, ApprovalState, Confidence, DecidedVia, Dialog,
    Event, Payload, Provider, Reason, Source, State, Timestamp, ToolKind, ToolOutcome, TurnId, TurnOutcome,
};

use super::{Conclusion, SessionState, happened_at};
use crate::{
    Approval,
    conversation::{OpenCall, Phase, approval_reason},
    shorten::verbatim_line,
    status::{StandingClaim, is_momentary},
};

/// A request that no source reports any more is closed after this time, because no dialog is visible for a moment
/// between two dialogs, ms.
const GONE_MS: i64 = 1_000;
/// How long a dialog may stay visible after a hook's answer closed it, ms.
const AFTERGLOW_MS: i64 = 800;
/// Time after a request within which its other signals arrive, ms.
const FIRST_MS: i64 = 250;
/// Longest time between the disappearance of a dialog and the return of the call that was refused there, ms.
const REFUSED_MS: i64 = 500;
/// How long after the end of a request a source may still report that it was denied, ms.
const CORRECTED_MS: i64 = 3_000;
/// How long after a part of history was read more of it may follow, ms.
const NAMED_MS: i64 = 500;
/// How long an answered dialog may stay visible, ms.
const STILL_MS: i64 = 3_000;
/// Maximum number of approvals kept with a session, closed ones included.
const APPROVALS: usize = 48;
/// Maximum number of closed approvals kept with a session, to learn the outcome of their calls.
const CLOSED: usize = 16;

impl StandingClaim {
    /// Whether the claim means that the agent waits for an answer.
    fn is_request(&self) -> bool {
        self.state != State::Idle && self.state.awaits_answer(self.reason)
    }
}

/// Whether the claim means that a hook waits for a decision on this approval.
fn is_waited_for(claim: &StandingClaim, approval: &ApprovalId) -> bool {
    claim.source == Source::Runtime && claim.key.as_deref() == Some(approval.as_str())
}

/// Whether the decision reached the agent through a hook or protocol, and not at its dialog. A source that watches the
/// screen may still see the dialog.
fn is_answered_unseen(via: Option<DecidedVia>) -> bool {
    match via {
        Some(DecidedVia::Hook | DecidedVia::Protocol) => true,
        Some(DecidedVia::Keys) | None => false,
    }
}

impl Approval {
    pub(super) fn is_pending(&self) -> bool {
        self.state == ApprovalState::Pending
    }

    /// Whether the approval is known only from a visible dialog.
    fn is_only_seen(&self) -> bool {
        self.input.is_none() && self.command.is_none() && self.delivery.is_none()
    }

    /// Whether the claim belongs to this request.
    fn is_claimed_by(&self, claim: &StandingClaim) -> bool {
        !self.is_only_seen() && claim.source == self.source && claim.key == self.key && claim.is_request()
    }

    /// Whether the approval is about this call.
    fn is_about(&self, call: &OpenCall) -> bool {
        match &self.call_id {
            Some(id) => *id == call.call_id,
            None => {
                // The dialog of a plan or question shows its text, and the call contains its tool.
                let of_kind = matches!(
                    (self.kind, call.tool),
                    (Some(ApprovalKind::Plan), ToolKind::Plan) | (Some(ApprovalKind::Question), ToolKind::Question)
                );
                of_kind || self.subject.is_some() && self.subject == call.title
            }
        }
    }
}

impl SessionState {
    /// The remembered approvals, oldest first; closed ones are remembered only for a short time.
    pub fn approvals(&self) -> impl Iterator<Item = &Approval> {
        self.approvals.iter()
    }

    /// A remembered approval.
    #[must_use]
    pub fn approval(&self, id: &ApprovalId) -> Option<&Approval> {
        self.approvals.iter().find(|a| a.id == *id)
    }

    /// The pending request to run a command, if it is the only request and no other call is open. A command that begins
    /// now is the requested one.
    #[must_use]
    pub fn pending_command(&self) -> Option<&Approval> {
        if self.conversation.calls.len() > 1 {
            return None;
        }
        self.only_request().filter(|only| matches!(only.kind, Some(ApprovalKind::Command) | None))
    }

    /// The pending permission request, if it is the only one.
    #[must_use]
    pub fn only_request(&self) -> Option<&Approval> {
        let mut pending = self.approvals.iter().filter(|approval| approval.is_pending());
        pending.next().filter(|_| pending.next().is_none())
    }

    pub(super) fn apply_request(
        &mut self,
        event: &Event,
        asked: &ApprovalRequested,
        at: Timestamp,
        out: &mut Vec<Conclusion>,
    ) {
        if self.approvals.iter().any(|a| a.id == asked.approval_id) {
            return;
        }
        // The request describes the dialog better than the earlier sight of it.
        let turn_id = self.turn.as_ref().map(|t| t.id);
        for seen in self.approvals.iter_mut().filter(|a| a.is_pending() && a.is_only_seen()) {
            let resolved = ApprovalResolved {
                approval_id: seen.id.clone(),
                state: Some(ApprovalState::Withdrawn),
                message: Some(format!("its request is {}", asked.approval_id)),
                ..ApprovalResolved::default()
            };
            self.session.approval_wait_ms += seen.close(&resolved, at);
            out.push(concluded(seen, resolved, turn_id, at));
        }
        let of = (self.session.id, self.session.provider);
        let agent = event.agent_id.as_deref();
        let mut approval = Approval::of(asked, of, agent, (event.source, event.confidence), at);
        approval.cwd = approval.cwd.or_else(|| self.session.cwd.clone());
        if self.is_answered_already(event, at) {
            self.unseen.insert(approval.id.clone(), Timestamp::MIN);
        }
        self.open_approval(approval);
    }

    /// Whether a request that a hook reports was answered before the report arrived: its call has returned.
    pub(super) fn is_answered_already(&self, event: &Event, at: Timestamp) -> bool {
        event.source == Source::Hook && self.conversation.was_answered(happened_at(event, at))
    }

    fn open_approval(&mut self, approval: Approval) {
        if let Some(turn) = &mut self.turn {
            turn.approvals += 1;
        }
        self.approvals.push(approval);
        let closed = self.approvals.iter().filter(|a| !a.is_pending()).count();
        let leaves = if closed > CLOSED || self.approvals.len() > APPROVALS && closed > 0 {
            self.approvals.iter().position(|a| !a.is_pending())
        } else {
            (self.approvals.len() > APPROVALS).then_some(0)
        };
        if let Some(leaves) = leaves {
            self.approvals.remove(leaves);
        }
    }

    /// Applies a decision, or the end of a reported request.
    pub(super) fn apply_resolution(&mut self, resolved: &ApprovalResolved, at: Timestamp) {
        let Some(approval) = self.approvals.iter_mut().find(|a| a.id == resolved.approval_id) else { return };
        if let Some(outcome) = resolved.outcome {
            approval.outcome = Some(outcome);
            return;
        }
        if approval.was_left_open(resolved.via) {
            // This report only adds whose key press made the agent continue.
            let (closed_at, waited_ms) = (approval.closed_at, approval.waited_ms);
            approval.close(resolved, at);
            (approval.closed_at, approval.waited_ms) = (closed_at, waited_ms);
            return;
        }
        if !approval.is_pending() {
            return;
        }
        self.session.approval_wait_ms += approval.close(resolved, at);
        let approval = approval.clone();
        self.claims.retain(|h| !approval.is_claimed_by(h) && !is_waited_for(h, &approval.id));
        // Sources that watch the screen still see the answered dialog for a moment.
        if is_answered_unseen(approval.via) && !self.approvals.iter().any(Approval::is_pending) {
            for claim in self.claims.iter_mut().filter(|h| h.state == State::WaitingApproval && h.agent.is_none()) {
                claim.holds_from = Some(at.plus_ms(AFTERGLOW_MS));
            }
        }
    }

    /// When a dialog that is seen now begins to count. Usually immediately; but shortly after the agent's hook received
    /// a decision, the dialog may be the one that was decided.
    pub(super) fn dialog_counts_from(&self, source: Source, at: Timestamp) -> Option<Timestamp> {
        let decided = |a: &&Approval| is_answered_unseen(a.via) && !a.is_pending();
        let last = self.approvals.iter().filter(decided).filter_map(|a| a.closed_at).max()?;
        let pending = self.approvals.iter().any(Approval::is_pending);
        let looks_on = !is_momentary(source) && source != Source::Runtime;
        (looks_on && !pending && at.since_ms(last) < AFTERGLOW_MS).then(|| last.plus_ms(AFTERGLOW_MS))
    }

    /// Marks the request that this hook or protocol claimed under this key as answered.
    pub(super) fn request_answered(&mut self, source: Source, key: Option<&str>) {
        let its_own = |a: &&Approval| a.is_pending() && a.source == source && a.key.as_deref() == key;
        for approval in self.approvals.iter().filter(its_own) {
            self.unseen.insert(approval.id.clone(), Timestamp::MIN);
        }
    }

    /// Applies the return of a call: its pending requests are answered, and its decided requests get this outcome. `by`
    /// is when the call returned, which may be reported late: later requests are about another call.
    pub(super) fn call_returned(
        &mut self,
        call: Option<&OpenCall>,
        outcome: ToolOutcome,
        (by, at): (Timestamp, Timestamp),
        out: &mut Vec<Conclusion>,
    ) {
        let last = self.conversation.calls.is_empty();
        let turn_id = self.turn.as_ref().map(|t| t.id);
        self.refused = self.is_refused(call, outcome, (by, at));
        for approval in self.approvals.iter_mut().filter(|a| a.opened_at <= by) {
            let its_own = call.is_some_and(|c| approval.is_about(c));
            let resolved = if approval.is_pending() && (its_own || last) {
                let refused = its_own && self.refused == Some(true);
                let allowed = if refused { Some(false) } else { allowed_by(outcome) };
                let state = if allowed.is_some() { ApprovalState::AnsweredElsewhere } else { ApprovalState::Withdrawn };
                let resolved = ApprovalResolved {
                    approval_id: approval.id.clone(),
                    allowed: allowed.filter(|_| its_own),
                    state: Some(state),
                    ..ApprovalResolved::default()
                };
                self.session.approval_wait_ms += approval.close(&resolved, at);
                approval.outcome = its_own.then_some(outcome);
                resolved
            } else if its_own && approval.outcome.is_none() && approval.was_answered() {
                approval.outcome = Some(outcome);
                if approval.by.is_none() {
                    approval.allowed = allowed_by(outcome);
                }
                ApprovalResolved {
                    approval_id: approval.id.clone(),
                    outcome: Some(outcome),
                    ..ApprovalResolved::default()
                }
            } else {
                continue;
            };
            out.push(concluded(approval, resolved, turn_id, at));
        }
    }

    /// Whether the returned call was refused, judged by its dialog: agents write the same record for a call that is
    /// stopped at its dialog and for one that is stopped later.
    fn is_refused(
        &self,
        call: Option<&OpenCall>,
        outcome: ToolOutcome,
        (by, at): (Timestamp, Timestamp),
    ) -> Option<bool> {
        let stopped = match outcome {
            ToolOutcome::Cancelled => !self.reports_refusals(),
            ToolOutcome::Denied => true,
            ToolOutcome::Ok | ToolOutcome::Error | ToolOutcome::Blocked => false,
        };
        let about = |a: &&Approval| a.opened_at <= by && call.is_some_and(|call| a.is_about(call));
        let approval = self.approvals.iter().rev().find(about).filter(|_| stopped)?;
        if approval.is_pending() {
            return Some(self.was_open(approval, at));
        }
        let now = approval.closed_at.is_some_and(|closed| at.since_ms(closed) < REFUSED_MS);
        match approval.state {
            ApprovalState::Denied => Some(true),
            // Gemini CLI 0.30 reports the end first, and then the call with its result.
            ApprovalState::AnsweredElsewhere if approval.allowed == Some(false) => now.then_some(true),
            ApprovalState::Allowed | ApprovalState::AnsweredElsewhere => Some(false),
            ApprovalState::Pending | ApprovalState::Withdrawn | ApprovalState::Expired => None,
        }
    }

    /// Whether the session's agent distinguishes a refused call from an ended turn, so that the dialog is not needed to
    /// decide. Our own agent does; other agents write the same record for both.
    fn reports_refusals(&self) -> bool {
        self.session.provider == Provider::Capture
    }

    /// Whether the dialog of a pending approval was open until a moment ago.
    fn was_open(&self, approval: &Approval, at: Timestamp) -> bool {
        self.unseen.get(&approval.id).is_none_or(|gone| *gone > Timestamp::MIN && at.since_ms(*gone) < REFUSED_MS)
    }

    /// Whether a permission dialog was open until a moment ago and no source reports that it was allowed.
    pub(super) fn was_asked(&self, at: Timestamp) -> bool {
        let gone = |a: &Approval| {
            let now = a.closed_at.is_some_and(|closed| at.since_ms(closed) < REFUSED_MS);
            a.state == ApprovalState::Withdrawn && a.is_only_seen() && now
        };
        let asks = |a: &&Approval| a.kind != Some(ApprovalKind::Question);
        self.approvals.iter().filter(asks).any(|a| if a.is_pending() { self.was_open(a, at) } else { gone(a) })
    }

    /// The outcome of a turn that was interrupted or denied, judged by the dialog that was open at that time.
    pub(super) fn end_at_dialog(&mut self, outcome: TurnOutcome, certain: bool, at: Timestamp) -> TurnOutcome {
        let refused = self.refused.take();
        if self.reports_refusals() {
            return outcome;
        }
        let open = self.was_asked(at);
        match outcome {
            TurnOutcome::Interrupted if open || refused == Some(true) => TurnOutcome::Denied,
            TurnOutcome::Denied if refused == Some(false) && !certain => TurnOutcome::Interrupted,
            TurnOutcome::Completed
            | TurnOutcome::Interrupted
            | TurnOutcome::Denied
            | TurnOutcome::Failed
            | TurnOutcome::Exited
            | TurnOutcome::Superseded
            | TurnOutcome::TimedOut
            | TurnOutcome::TakenBack => outcome,
        }
    }

    /// A source reports only now that the turn ended because its request was denied: the request was denied, not
    /// withdrawn.
    pub(super) fn correct_approval(&mut self, turn_id: TurnId, at: Timestamp, out: &mut Vec<Conclusion>) {
        let withdrawn = |a: &&mut Approval| {
            let now = a.closed_at.is_some_and(|closed| at.since_ms(closed) < CORRECTED_MS);
            a.state == ApprovalState::Withdrawn && a.kind != Some(ApprovalKind::Question) && a.by.is_none() && now
        };
        let Some(approval) = self.approvals.iter_mut().rev().find(withdrawn) else { return };
        approval.state = ApprovalState::AnsweredElsewhere;
        approval.allowed = Some(false);
        let resolved = ApprovalResolved {
            approval_id: approval.id.clone(),
            state: Some(ApprovalState::AnsweredElsewhere),
            allowed: Some(false),
            ..ApprovalResolved::default()
        };
        out.push(concluded(approval, resolved, Some(turn_id), at));
    }

    /// Whether a dialog is known without its subject, which an open call contains: some sources report only that a
    /// dialog is open, and may be read before the call.
    fn is_nameless(&self, approval: &Approval) -> bool {
        let named = approval.subject.is_some() || approval.tool.is_some() || approval.question.is_some();
        approval.is_pending() && approval.is_only_seen() && !named && self.conversation.likely_asker().is_some()
    }

    /// Schedules [`Self::name_dialog`] after an event that may name a dialog; in history, only after all of it was
    /// read.
    pub(super) fn note_nameless(&mut self, event: &Event) {
        let waits = if event.history { NAMED_MS } else { 0 };
        let nameless = self.approvals.iter().any(|a| self.is_nameless(a));
        self.named_from = nameless.then(|| event.observed_at.max(self.clock).plus_ms(waits));
    }

    /// Adds the description of the call to a dialog that was seen before its call was read.
    pub(super) fn name_dialog(&mut self, at: Timestamp, out: &mut Vec<Conclusion>) {
        self.named_from = None;
        let Some(index) = self.approvals.iter().position(|a| self.is_nameless(a)) else { return };
        let Some(asker) = self.conversation.likely_asker() else { return };
        let approval = &mut self.approvals[index];
        approval.subject = in_one_line(asker.title.as_deref());
        approval.tool = Some(asker.name.clone());
        approval.call_id = (self.conversation.calls.len() == 1).then(|| asker.call_id.clone());
        approval.kind = approval_reason(asker.tool).facts().approval.or(approval.kind);
        let asked = ApprovalRequested {
            approval_id: approval.id.clone(),
            about: approval.kind,
            call_id: approval.call_id.clone(),
            tool: approval.tool.clone(),
            cwd: approval.cwd.clone(),
            dialog: Some(Box::new(Dialog { subject: approval.subject.clone(), ..Dialog::default() })),
            ..ApprovalRequested::default()
        };
        out.push(concluded(approval, asked, self.turn.as_ref().map(|t| t.id), at));
    }

    /// When requests that are no longer visible are closed.
    pub(super) fn approvals_due(&self) -> Option<Timestamp> {
        self.unseen.values().filter(|at| **at > Timestamp::MIN).map(|at| at.plus_ms(GONE_MS)).min()
    }

    /// Updates the approvals to match the status.
    pub(super) fn settle_approvals(&mut self, at: Timestamp, out: &mut Vec<Conclusion>) {
        let waits = self.session.status.state == State::WaitingApproval;
        if waits {
            self.see_dialog(at, out);
        }
        if self.approvals.is_empty() {
            return;
        }
        let question = self.session.status.reason == Some(Reason::Question);
        let over = self.is_gone() || !self.conversation.is_open();
        let denied = matches!(self.conversation.phase, Phase::Ended { outcome: TurnOutcome::Denied, .. });
        let lost = self.session.status.state == State::Unknown;
        let turn_id = self.turn.as_ref().map(|t| t.id);
        for approval in self.approvals.iter_mut().filter(|a| a.is_pending()) {
            let seen = waits
                || question && approval.kind == Some(ApprovalKind::Question)
                || self.claims.iter().any(|h| approval.is_claimed_by(h));
            if seen {
                self.unseen.remove(&approval.id);
                continue;
            }
            let gone_at = *self.unseen.entry(approval.id.clone()).or_insert(at);
            // A request arrives shortly before its claim, and possibly before its turn.
            let over = over && at.since_ms(approval.opened_at) > FIRST_MS;
            // A hook reported the answer, so the request ends now.
            let told = gone_at == Timestamp::MIN;
            let went_on = told || gone_at.plus_ms(GONE_MS) <= at;
            if !over && !went_on {
                continue;
            }
            let state = if lost {
                ApprovalState::Expired
            } else if went_on || denied {
                ApprovalState::AnsweredElsewhere
            } else {
                ApprovalState::Withdrawn
            };
            let resolved = ApprovalResolved {
                approval_id: approval.id.clone(),
                allowed: (over && denied).then_some(false),
                state: Some(state),
                ..ApprovalResolved::default()
            };
            self.session.approval_wait_ms +=
                approval.close(&resolved, if told { at } else { gone_at.max(approval.opened_at) });
            out.push(concluded(approval, resolved, turn_id, at));
        }
        let pending = || self.approvals.iter().filter(|a| a.is_pending()).map(|a| &a.id);
        self.unseen.retain(|id, _| pending().any(|p| p == id));
        let over = |h: &StandingClaim| {
            h.source == Source::Runtime && h.key.as_ref().is_some_and(|key| !pending().any(|p| p == key.as_str()))
        };
        if self.claims.iter().any(over) {
            self.claims.retain(|h| !over(h));
        }
        if !pending().eq(&self.session.pending_approvals) {
            self.session.pending_approvals = pending().cloned().collect();
        }
    }

    /// Opens an approval for a dialog on a screen, even if no hook reported it.
    fn see_dialog(&mut self, at: Timestamp, out: &mut Vec<Conclusion>) {
        if self.approvals.iter().any(|a| a.is_pending() && !a.is_only_seen()) {
            return;
        }
        let counts = |h: &&StandingClaim| {
            h.state == State::WaitingApproval && h.agent.is_none() && h.holds_from.is_none_or(|t| t <= at)
        };
        let claims = || self.claims.iter().filter(counts);
        // A claim with the dialog's content is preferred to one that only reports a dialog.
        let Some(claim) = claims().find(|h| h.dialog.is_some()).or_else(|| claims().next()) else { return };
        let dialog = claim.dialog.clone();
        let (claimed_by, said_at) = (claim.source, claim.said_at.unwrap_or(claim.at));
        let id = ApprovalId::from(claim.event);
        let turn_id = self.turn.as_ref().map(|t| t.id);
        // A dialog that remains on the screen for a moment was already answered.
        let last = self.approvals.iter().filter_map(|a| a.closed_at).max();
        let afterglow = last.is_some_and(|last| said_at < last && at.since_ms(last) < STILL_MS);
        if let Some(before) = self.approvals.iter_mut().find(|a| a.is_pending()) {
            let Some(dialog) = &dialog else { return };
            if before.source != claimed_by && before.options.is_empty() && before.question.is_none() {
                // The same dialog with more detail: it is visible now, and was only known to be open before.
                before.subject = in_one_line(dialog.subject.as_deref()).or_else(|| before.subject.take());
                before.question.clone_from(&dialog.question);
                before.options.clone_from(&dialog.options);
                before.kind = dialog.about.or(before.kind);
                before.source = claimed_by;
                let asked = ApprovalRequested {
                    approval_id: before.id.clone(),
                    about: before.kind,
                    dialog: Some(dialog.clone()),
                    ..ApprovalRequested::default()
                };
                out.push(concluded(before, asked, turn_id, at));
                return;
            }
            if in_one_line(dialog.subject.as_deref()) == before.subject {
                return;
            }
            // Another dialog, directly after the first.
            let resolved = ApprovalResolved {
                approval_id: before.id.clone(),
                state: Some(ApprovalState::AnsweredElsewhere),
                ..ApprovalResolved::default()
            };
            self.session.approval_wait_ms += before.close(&resolved, at);
            out.push(concluded(before, resolved, turn_id, at));
        } else if afterglow {
            return;
        }
        let subject = dialog.as_ref().and_then(|d| d.subject.as_deref());
        if self.approvals.iter().any(|a| a.id == id) {
            return;
        }
        let asker = self.conversation.likely_asker();
        let about = dialog.as_ref().and_then(|d| d.about).or_else(|| self.session.status.reason?.facts().approval);
        let asked = ApprovalRequested {
            approval_id: id,
            about,
            call_id: asker.filter(|_| self.conversation.calls.len() == 1).map(|c| c.call_id.clone()),
            tool: asker.map(|c| c.name.clone()),
            cwd: self.session.cwd.clone(),
            dialog: Some(Box::new(Dialog {
                subject: subject.map(str::to_owned).or_else(|| asker.and_then(|c| c.title.clone())),
                ..dialog.as_deref().cloned().unwrap_or_default()
            })),
            ..ApprovalRequested::default()
        };
        let of = (self.session.id, self.session.provider);
        // Read from a screen or inferred from a call: never exact, and of medium confidence at most.
        let approval = Approval::of(&asked, of, None, (claimed_by, Confidence::Medium), at);
        out.push(concluded(&approval, asked, turn_id, at));
        self.open_approval(approval);
    }
}

/// Whether a call with this outcome was allowed; `None` if the outcome does not show it.
const fn allowed_by(outcome: ToolOutcome) -> Option<bool> {
    match outcome {
        ToolOutcome::Ok | ToolOutcome::Error => Some(true),
        ToolOutcome::Denied | ToolOutcome::Blocked => Some(false),
        ToolOutcome::Cancelled => None,
    }
}

/// A conclusion about an approval, with the approval in its current state.
fn concluded(approval: &Approval, told: impl Into<Payload>, turn_id: Option<TurnId>, at: Timestamp) -> Conclusion {
    let payload = told.into();
    // A request has the confidence of the source that showed it; its end has the confidence of the report.
    let basis = matches!(payload, Payload::ApprovalRequested(_)).then_some((approval.source, approval.confidence));
    Conclusion { at, turn_id, payload, turn: None, approval: Some(Box::new(approval.clone())), basis }
}

/// The subject of a request in one line, verbatim, because the user decides by its text.
fn in_one_line(subject: Option<&str>) -> Option<String> {
    subject.map(|s| verbatim_line(s, 200))
}
