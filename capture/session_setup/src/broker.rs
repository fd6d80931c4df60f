//! The broker of a session without the server: what needs nobody is decided in process, the rest by whoever can be
//! asked here (`PermissionAsker`), or by nobody.

use std::{sync::Arc, time::Duration};

use api::approvals::DecisionScope;
use engine::{AskedPermission, CallClass, CallDecision, CallVerdict};
use executor::{BoxFuture, PermissionBroker, SessionTools};
use tools::Preview;

use crate::{
    permission::InProcess,
    question::{PermissionQuestion, SessionOffer, unanswered},
};

/// What whoever was asked said.
#[derive(Debug, Clone, PartialEq)]
pub struct AskerDecision {
    /// What is decided.
    pub decision: CallDecision,
    /// What is allowed: this call, or also the same later in the session.
    pub scope: DecisionScope,
    /// Rules that are added to the user's policy, as they were shown.
    pub rule: Option<String>,
}

impl AskerDecision {
    /// About this call and no other.
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

/// Somebody who can be asked: a person here, or the program that drives a session.
pub trait PermissionAsker: Send + Sync {
    /// Asks, and waits for a decision at most `wait`. A future that is dropped withdraws the question.
    fn ask(&self, question: PermissionQuestion, wait: Duration) -> BoxFuture<'static, Option<AskerDecision>>;
}

/// A call as whoever decides about it sees it.
#[derive(Debug, Clone)]
pub(crate) struct PreviewedCall {
    pub(crate) asked: AskedPermission,
    /// What it would do as things were when its turn came; nothing where its arguments say it all.
    pub(crate) preview: Option<Preview>,
    /// Why a person is asked, where that is not clear from the call.
    pub(crate) why: Option<String>,
}

impl PreviewedCall {
    /// Looks at a call whose turn has come.
    pub(crate) async fn of(asked: AskedPermission, tools: Arc<SessionTools>) -> Self {
        let call = asked.call.call;
        // Without a preview the question shows the arguments.
        let preview = tokio::task::spawn_blocking(move || tools.preview(call)).await.ok().flatten();
        Self { asked, preview, why: None }
    }

    /// The same, with the reason for which a person decides it.
    pub(crate) fn with_reason(self, in_process: &InProcess) -> Self {
        let why = in_process.why_asked(&self.asked);
        Self { why, ..self }
    }

    /// The same while no server is running.
    pub(crate) fn without_server(self, in_process: &InProcess) -> Self {
        let why = in_process.why_asked_without_server(&self.asked);
        Self { why, ..self }
    }

    /// The question with everything that can be offered for it. Whoever is told that nothing changes allows no change,
    /// now or later, and a question of the agent has one answer.
    pub(crate) fn question(&self, in_process: &InProcess, has_server: bool) -> PermissionQuestion {
        let kind = self.asked.facts.kind;
        let can_last = !self.is_without_effect() && kind != CallClass::Question;
        let lasts = if matches!(kind, CallClass::Edit | CallClass::Write) {
            in_process.offers_edits(&self.asked).then_some(SessionOffer::Edits)
        } else {
            has_server.then_some(SessionOffer::SameCall)
        };
        let rule = if can_last && has_server { in_process.rule_for(&self.asked) } else { None };
        PermissionQuestion { lasts: lasts.filter(|_| can_last), rule, ..PermissionQuestion::of(self) }
    }

    /// Whether nothing would change as things are.
    pub(crate) fn is_without_effect(&self) -> bool {
        self.preview.as_ref().is_some_and(Preview::is_without_effect)
    }

    /// The decision as it is carried out. Who allowed a call has allowed the change that they were shown, or none, and no
    /// other.
    pub(crate) async fn as_shown(&self, mut decision: CallDecision, tools: Arc<SessionTools>) -> CallDecision {
        if decision.verdict == CallVerdict::Allow && (self.is_without_effect() || !self.would_do_the_same(tools).await)
        {
            decision.verdict = CallVerdict::NoEffect;
        }
        decision
    }

    /// Whether it would do now what it would have done when its turn came.
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
            let Some(asker) = asker else { return unanswered() };
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
