//! Which answers an agent accepts, by its hook or by its protocol.

use std::collections::BTreeMap;

use agents::AgentAnswer;
use api::approvals::Verdict;
use events::{DecidedVia, Source};
use hooks::delivery::answer::{accepts_allowance, can_express};
use projections::Approval;
use protocols as protocol;
use server::Decision;

/// How an answer reaches whoever waits for the decision on a request.
pub(super) fn route_of(approval: &Approval) -> DecidedVia {
    if approval.source == Source::Protocol { DecidedVia::Protocol } else { DecidedVia::Hook }
}

/// Whether the agent accepts both an allowance and a denial.
pub(super) fn accepts_decisions(approval: &Approval) -> bool {
    route_of(approval) == DecidedVia::Protocol || accepts_allowance(approval.provider)
}

/// Whether this can be expressed in the answer of the agent's hook, or in its protocol.
pub(super) fn is_expressible(approval: &Approval, answer: &AgentAnswer) -> bool {
    let (tool, input) = (approval.tool.as_deref(), approval.input.as_deref());
    if route_of(approval) == DecidedVia::Protocol {
        return protocol::can_express(approval.provider, tool, input, answer);
    }
    can_express(approval.provider, tool, input, answer)
}

pub(super) const fn allowance(rewrite: Option<String>, answers: Option<BTreeMap<String, String>>) -> AgentAnswer {
    AgentAnswer { allow: true, message: None, rewrite, answers }
}

pub(super) const fn denial(message: Option<String>) -> AgentAnswer {
    AgentAnswer { allow: false, message, rewrite: None, answers: None }
}

/// The denial of a rule, with the rule and its reason.
pub(super) fn denial_by(rule: &str, reason: &str) -> AgentAnswer {
    denial(Some(format!("{reason} (rule `{rule}` of the user's policy; do not try to get around it)")))
}

/// The answer that a person's decision gives.
pub(super) fn answer_of(decision: &Decision) -> AgentAnswer {
    match decision.verdict {
        Verdict::Allow => allowance(None, decision.answers.clone()),
        Verdict::Deny => denial(decision.message.clone()),
    }
}
