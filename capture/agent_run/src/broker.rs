//! The broker of a session without the server: what needs nobody is decided in process, the rest by whoever can be
//! asked here (`PermissionAsker`), or by nobody.

use std::{sync::Arc, time::Duration};

use agent::{BoxFuture, PermissionBroker, SessionTools};
use engine::{AskedPermission, CallDecision};

use crate::{
    permission::InProcess,
    question::{PermissionQuestion, unanswered},
};

/// Somebody who can be asked: the person at the terminal, or the program that drives a session.
pub(crate) trait PermissionAsker: Send + Sync {
    /// Asks, and waits for a decision at most `wait`. A future that is dropped withdraws the question.
    fn ask(&self, question: PermissionQuestion, wait: Duration) -> BoxFuture<'static, Option<CallDecision>>;
}

/// Decides about the calls of a session.
pub struct LocalBroker {
    in_process: InProcess,
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
        Self { in_process, asker, tools, wait }
    }
}

impl PermissionBroker for LocalBroker {
    fn decide(&self, asked: AskedPermission) -> BoxFuture<'static, CallDecision> {
        if let Some(decision) = self.in_process.decide(&asked) {
            return Box::pin(std::future::ready(decision));
        }
        let Some(asker) = &self.asker else {
            return Box::pin(std::future::ready(unanswered()));
        };
        let question = PermissionQuestion::of(&asked, self.tools.diff(asked.call.call).as_deref());
        let decision = asker.ask(question, self.wait);
        Box::pin(async move { decision.await.unwrap_or_else(unanswered) })
    }
}
