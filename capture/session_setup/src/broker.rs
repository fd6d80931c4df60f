//! The broker of a session without a server: decisions that need no approval are made in process, others by an
//! available `PermissionAsker`; without one the call is not run.

use std::{sync::Arc, time::Duration};

use api::approvals::DecisionScope;
use engine::{AskedPermission, CallClass, CallDecision, CallVerdict};
use executor::{BoxFuture, PermissionBroker, SessionTools};
use tools::Preview;

use crate::{
    permission::InProcess,
    question::{PermissionQuestion, SessionOffer, unanswered, unasked},
};

/// The decision of an asker.
#[derive(Debug, Clone, PartialEq)]
pub struct AskerDecision {
    /// The decision.
    pub decision: CallDecision,
    /// Its scope: this call only, or also the same call later in the session.
    pub scope: DecisionScope,
    /// Rules to add to the user's policy, as they were shown.
    pub rule: Option<String>,
}

impl AskerDecision {
    /// A decision for this call only.
    #[must_use]
    pub const fn once(decision: CallDecision) -> Self {
        Self { decision, scope: DecisionScope::Once, rule: None }
    }

    /// Whether this answer to a question also allows edits of the workspace for the rest of the session.
    pub(crate) fn allows_edits(&self, question: &PermissionQuestion) -> bool {
        self.decision.verdict == CallVerdict::Allow
            && self.scope == DecisionScope::Session
            && question.lasts == Some(SessionOffer::Edits)
    }
}

/// A source of decisions: the user here, or the program that drives a session.
pub trait PermissionAsker: Send + Sync {
    /// Asks, and waits for a decision at most `wait`. Dropping the future withdraws the question.
    fn ask(&self, question: PermissionQuestion, wait: Duration) -> BoxFuture<'static, Option<AskerDecision>>;
}

/// A call with the preview shown to the approver.
#[derive(Debug, Clone)]
pub(crate) struct PreviewedCall {
    pub(crate) asked: AskedPermission,
    /// The preview at the time of the call's turn; `None` if its arguments describe it fully.
    pub(crate) preview: Option<Preview>,
    /// Why the user is asked, if the call does not show it.
    pub(crate) why: Option<String>,
}

impl PreviewedCall {
    /// Previews a call whose turn has come.
    pub(crate) async fn of(asked: AskedPermission, tools: Arc<SessionTools>) -> Self {
        let call = asked.call.call;
        // Without a preview the question shows the arguments.
        let preview = tokio::task::spawn_blocking(move || tools.preview(call)).await.ok().flatten();
        Self { asked, preview, why: None }
    }

    /// Adds the reason why the user decides.
    pub(crate) fn with_reason(self, in_process: &InProcess) -> Self {
        let why = in_process.why_asked(&self.asked);
        Self { why, ..self }
    }

    /// Adds the reason why the user decides while no server is running.
    pub(crate) fn without_server(self, in_process: &InProcess) -> Self {
        let why = in_process.why_asked_without_server(&self.asked);
        Self { why, ..self }
    }

    /// The question with all available offers. If nothing would change, the approver cannot allow any change, now or
    /// later; and a question of the agent has a single answer.
    pub(crate) fn question(&self, in_process: &InProcess, has_server: bool) -> PermissionQuestion {
        let kind = self.asked.facts.kind;
        let can_last = !self.is_without_effect() && kind != CallClass::Question;
        let lasts = if kind.changes_files() {
            in_process.offers_edits(&self.asked).then_some(SessionOffer::Edits)
        } else {
            // The server would not recognize a repetition of a command whose files its text does not name.
            let command = self.asked.call.arguments.text("command").filter(|_| kind == CallClass::Command);
            let is_recognizable = !command.is_some_and(approver::may_expand);
            (has_server && is_recognizable).then_some(SessionOffer::SameCall)
        };
        let rule = if can_last && has_server { in_process.rule_for(&self.asked) } else { None };
        PermissionQuestion { lasts: lasts.filter(|_| can_last), rule, ..PermissionQuestion::of(self) }
    }

    /// Whether the call would change nothing at present.
    pub(crate) fn is_without_effect(&self) -> bool {
        self.preview.as_ref().is_some_and(Preview::is_without_effect)
    }

    /// The decision to carry out. An approver has allowed only the change that was shown, if any, and no other.
    pub(crate) async fn as_shown(&self, mut decision: CallDecision, tools: Arc<SessionTools>) -> CallDecision {
        if decision.verdict == CallVerdict::Allow && (self.is_without_effect() || !self.would_do_the_same(tools).await)
        {
            decision.verdict = CallVerdict::NoEffect;
        }
        decision
    }

    /// Whether the call would still do what the preview showed.
    async fn would_do_the_same(&self, tools: Arc<SessionTools>) -> bool {
        self.preview.is_none() || Self::of(self.asked.clone(), tools).await.preview == self.preview
    }
}

/// Decides about the calls of a session.
pub struct LocalBroker {
    in_process: Arc<InProcess>,
    asker: Option<Arc<dyn PermissionAsker>>,
    tools: Arc<SessionTools>,
    wait: Duration,
}

impl LocalBroker {
    pub(crate) fn new(
        in_process: InProcess,
        asker: Option<Arc<dyn PermissionAsker>>,
        tools: Arc<SessionTools>,
        wait: Duration,
    ) -> Self {
        Self { in_process: Arc::new(in_process), asker, tools, wait }
    }
}

impl PermissionBroker for LocalBroker {
    fn decide(&self, asked: AskedPermission) -> BoxFuture<'static, CallDecision> {
        if let Some(decision) = self.in_process.decide(&asked) {
            return Box::pin(std::future::ready(decision));
        }
        let (in_process, tools) = (Arc::clone(&self.in_process), Arc::clone(&self.tools));
        let (asker, wait) = (self.asker.clone(), self.wait);
        Box::pin(async move {
            let call = PreviewedCall::of(asked, Arc::clone(&tools)).await.with_reason(&in_process);
            if let Some(decision) = in_process.without_effect(&call) {
                return decision;
            }
            let Some(asker) = asker else { return unasked() };
            let call = call.without_server(&in_process);
            let question = call.question(&in_process, false);
            match asker.ask(question.clone(), wait).await {
                Some(said) => {
                    if said.allows_edits(&question) {
                        in_process.allow_edits();
                    }
                    call.as_shown(said.decision, tools).await
                }
                None => unanswered(),
            }
        })
    }
}
