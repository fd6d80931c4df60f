//! Decides which answers an agent accepts, through its hook or its protocol.

use std::collections::BTreeMap;

use agents::AgentAnswer;
use api::approvals::Verdict;
use events::{ApprovalKind, DecidedVia, Source};
use hooks::delivery::answer::{accepts_allowance, can_express};
use live_view::Decision;
use projections::Approval;
use protocols as protocol;
use serde::Deserialize;

use super::{dialog::is_cut_off, judge::Judged};

/// How an answer reaches the hook or driver that waits for it.
pub(super) fn route_of(approval: &Approval) -> DecidedVia {
    if approval.source == Source::Protocol { DecidedVia::Protocol } else { DecidedVia::Hook }
}

/// Whether the agent accepts both an allowance and a denial.
pub(super) fn accepts_decisions(approval: &Approval) -> bool {
    route_of(approval) == DecidedVia::Protocol || accepts_allowance(approval.provider)
}

/// Whether the answer can be expressed in the agent's hook response or protocol.
pub(super) fn is_expressible(approval: &Approval, answer: &AgentAnswer) -> bool {
    let (tool, input) = (approval.tool.as_deref(), approval.input.as_deref());
    if route_of(approval) == DecidedVia::Protocol {
        return protocol::can_express(approval.provider, tool, input, answer);
    }
    can_express(approval.provider, tool, input, answer)
}

/// Why a request's questions cannot be answered here, and what to do instead: an answer identifies its question by the
/// question's text.
pub(super) fn unanswerable_questions(approval: &Approval) -> Option<String> {
    let questions = questions_of(approval);
    let is_twice = |(index, question): (usize, &String)| questions[..index].contains(question);
    questions.iter().enumerate().any(is_twice).then(|| {
        "two questions of this request have the same text, so an answer cannot name one of them: answer in the agent \
         itself, or deny the request"
            .into()
    })
}

/// Why answers do not match a request: one of its questions is unanswered, or an answer is for another question.
pub(super) fn wrong_answers(approval: &Approval, answers: &BTreeMap<String, String>) -> Option<String> {
    let questions = questions_of(approval);
    if questions.is_empty() {
        return None;
    }
    let open = questions.iter().find(|question| !answers.contains_key(*question));
    let foreign = answers.keys().find(|question| !questions.contains(question));
    match (open, foreign) {
        (Some(open), _) => Some(format!("the question `{open}` is not answered: answer every question")),
        (None, Some(foreign)) => Some(format!("the request has no question `{foreign}`")),
        (None, None) => None,
    }
}

/// The texts of a request's questions; empty if it asks for something else, or in an unknown form.
fn questions_of(approval: &Approval) -> Vec<String> {
    #[derive(Deserialize)]
    struct QuestionsInput {
        questions: Vec<OneQuestion>,
    }
    #[derive(Deserialize)]
    struct OneQuestion {
        question: String,
    }
    let input = approval.input.as_deref().filter(|_| approval.kind == Some(ApprovalKind::Question));
    let input = input.and_then(|input| serde_json::from_str::<QuestionsInput>(input).ok());
    input.into_iter().flat_map(|input| input.questions).map(|one| one.question).collect()
}

pub(super) const fn allowance(rewrite: Option<String>, answers: Option<BTreeMap<String, String>>) -> AgentAnswer {
    AgentAnswer { allow: true, message: None, rewrite, answers }
}

pub(super) const fn denial(message: Option<String>) -> AgentAnswer {
    AgentAnswer { allow: false, message, rewrite: None, answers: None }
}

/// The denial by a rule, with the rule and its reason.
pub(super) fn denial_by(rule: &str, reason: &str) -> AgentAnswer {
    denial(Some(format!("{reason} (rule `{rule}` of the user's policy; do not try to get around it)")))
}

/// The denial by a boundary, with the words of the user.
pub(super) fn denial_by_boundary(judged: &Judged) -> AgentAnswer {
    denial(Some(format!("{} (do not try to get around it; ask the user)", judged.reason)))
}

/// The answer for a decision of the user.
pub(super) fn answer_of(decision: &Decision) -> AgentAnswer {
    match decision.verdict {
        Verdict::Allow => allowance(None, decision.answers.clone()),
        Verdict::Deny => denial(decision.message.clone()),
    }
}

/// Why a request cannot be allowed here, and what to do instead: the request is not completely known, because it is too
/// long, its secrets were removed or its dialog shows only the beginning; or its questions cannot be told apart.
pub(super) fn why_not_allowed(approval: &Approval) -> Option<String> {
    if let Some(excerpt) = &approval.excerpt {
        return Some(format!(
            "capture kept {} of the {} bytes of this request, so you cannot allow it here: read the whole request in \
             the agent and answer there, or deny it",
            excerpt.kept(),
            excerpt.bytes
        ));
    }
    if approval.masked {
        return Some(
            "capture removed secrets from this request (`store.redacted_only`), so capture cannot show the whole \
             request and you cannot allow it here: read the request in the agent and answer there, or deny it"
                .into(),
        );
    }
    unanswerable_questions(approval).or_else(|| {
        is_cut_off(approval).then(|| {
            "the screen shows only the beginning of this request: read the whole request in its terminal (`capture attach`) and \
             answer there, or deny it"
                .into()
        })
    })
}
