//! Encodes a decision as the answer of an agent's hook, written to the hook's standard output.
//!
//! Formats: tested with Claude Code 2.1.328, Codex 0.169.0 and Gemini CLI 0.61.0. A decision that the agent does not
//! accept is omitted: the agent then asks the user itself.

use agents::{AgentAnswer, hooks::HookAnswers};
use events::Provider;
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

/// The fields that determine the form of an answer.
#[derive(Deserialize)]
struct AnswerFields {
    hook_event_name: String,
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(default)]
    tool_input: Option<Map<String, Value>>,
}

/// Reason given to an agent when a denial has no message.
const DENIED: &str = "denied through capture";

/// The event whose hook can answer a permission request.
#[must_use]
pub fn asking_event(provider: Provider) -> Option<&'static str> {
    answers(provider).map(|answers| answers.asking_event)
}

fn answers(provider: Provider) -> Option<HookAnswers> {
    crate::facts::facts(provider).map(|hooks| hooks.answers)
}

/// Whether this hook call asks for a decision that its answer can express.
#[must_use]
pub fn asks_for_decision(provider: Provider, payload: &RawValue) -> bool {
    answer_fields(provider, payload).is_some()
}

/// The fields of the request; `None` if its answer cannot carry a decision.
fn answer_fields(provider: Provider, payload: &RawValue) -> Option<AnswerFields> {
    let asked: AnswerFields = serde_json::from_str(payload.get()).ok()?;
    (asking_event(provider) == Some(asked.hook_event_name.as_str())).then_some(asked)
}

/// Whether the directory in a hook's payload is the one the command would run in. Codex names the turn's directory, and
/// a call may have another.
#[must_use]
pub fn names_directory(provider: Provider) -> bool {
    answers(provider).is_some_and(|answers| answers.names_directory)
}

/// Whether the agent shows its dialog while its hook runs; otherwise nothing shows that it is waiting.
#[must_use]
pub fn shows_dialog_meanwhile(provider: Provider) -> bool {
    answers(provider).is_some_and(|answers| answers.dialog_meanwhile)
}

/// Whether a hook's answer can express this decision on a call of `tool`; `input` is the tool's input as JSON.
#[must_use]
pub fn can_express(provider: Provider, tool: Option<&str>, input: Option<&str>, given: &AgentAnswer) -> bool {
    let input = input.and_then(|input| serde_json::from_str::<Value>(input).ok());
    let asked = json!({ "hook_event_name": asking_event(provider), "tool_name": tool, "tool_input": input });
    RawValue::from_string(asked.to_string()).is_ok_and(|payload| answer(provider, &payload, given).is_some())
}

/// Whether the agent calls its hook for every tool, before checking its own rules.
#[must_use]
pub fn asks_before_rules(provider: Provider) -> bool {
    answers(provider).is_some_and(|answers| answers.before_rules)
}

/// Whether the agent accepts an allowance from a hook; otherwise it accepts only a denial.
#[must_use]
pub fn accepts_allowance(provider: Provider) -> bool {
    answers(provider).is_some_and(|answers| answers.allowance)
}

/// Whether the agent accepts a replacement for the command it asked for.
#[must_use]
pub fn accepts_rewrite(provider: Provider) -> bool {
    answers(provider).is_some_and(|answers| answers.rewrite)
}

/// The text for the hook's standard output; `None` if the agent's answer cannot express the decision.
#[must_use]
pub fn answer(provider: Provider, payload: &RawValue, answer: &AgentAnswer) -> Option<String> {
    let asked = answer_fields(provider, payload)?;
    let message = answer.message.as_deref().filter(|m| !m.is_empty()).unwrap_or(DENIED);
    if asks_before_rules(provider) {
        // The agent ignores an allowance, so none is written.
        return (!answer.allow).then(|| json!({ "decision": "deny", "reason": message }).to_string());
    }
    let decision = if !answer.allow {
        json!({ "behavior": "deny", "message": message })
    } else if accepts_rewrite(provider) {
        match asked.changed(answer)? {
            Some(input) => json!({ "behavior": "allow", "updatedInput": input }),
            None => json!({ "behavior": "allow" }),
        }
    } else if answer.rewrite.is_some() || answer.answers.is_some() {
        return None;
    } else {
        json!({ "behavior": "allow" })
    };
    let told = json!({ "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": decision } });
    Some(told.to_string())
}

impl AnswerFields {
    /// The input to return to Claude Code, if any; `None` if the decision does not fit the request.
    fn changed(mut self, answer: &AgentAnswer) -> Option<Option<Map<String, Value>>> {
        let tool = self.tool_name.take().unwrap_or_default();
        let mut input = self.tool_input.take().unwrap_or_default();
        match (tool.as_str(), &answer.rewrite, &answer.answers) {
            // An allowance without answers would not answer the question.
            ("AskUserQuestion", None, Some(answers)) => {
                input.insert("answers".into(), json!(answers));
                Some(Some(input))
            }
            // The agent ignores a plain allowance here; the plan must be returned.
            ("ExitPlanMode", None, None) => input.contains_key("plan").then_some(Some(input)),
            ("AskUserQuestion" | "ExitPlanMode", ..) => None,
            ("Bash", Some(command), None) => {
                input.insert("command".into(), json!(command));
                Some(Some(input))
            }
            (_, None, None) => Some(None),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const ALLOW: AgentAnswer = AgentAnswer { allow: true, message: None, rewrite: None, answers: None };

    fn deny(message: &str) -> AgentAnswer {
        AgentAnswer { allow: false, message: Some(message.into()), ..ALLOW }
    }

    #[track_caller]
    fn check(provider: Provider, asked: Value, given: &AgentAnswer, expected: Option<Value>) {
        let payload = RawValue::from_string(asked.to_string()).unwrap();
        let text = answer(provider, &payload, given);
        assert_eq!(text.map(|text| serde_json::from_str::<Value>(&text).unwrap()), expected);
    }

    fn decided(decision: Value) -> Option<Value> {
        Some(json!({ "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": decision } }))
    }

    fn request(tool: &str, input: Value) -> Value {
        json!({ "hook_event_name": "PermissionRequest", "session_id": "s", "tool_name": tool, "tool_input": input })
    }

    #[test]
    fn command_approvals_are_answered_in_each_agents_format() {
        let asked = || request("Bash", json!({ "command": "git status", "timeout": 5 }));
        let safe = AgentAnswer { rewrite: Some("git --no-pager status".into()), ..ALLOW };
        check(Provider::Claude, asked(), &ALLOW, decided(json!({ "behavior": "allow" })));
        check(
            Provider::Claude,
            asked(),
            &safe,
            decided(
                json!({ "behavior": "allow", "updatedInput": { "command": "git --no-pager status", "timeout": 5 } }),
            ),
        );
        check(Provider::Codex, asked(), &ALLOW, decided(json!({ "behavior": "allow" })));
        check(Provider::Codex, asked(), &safe, None);
        for provider in [Provider::Claude, Provider::Codex] {
            check(provider, asked(), &deny("no"), decided(json!({ "behavior": "deny", "message": "no" })));
            check(provider, asked(), &deny(""), decided(json!({ "behavior": "deny", "message": DENIED })));
        }
    }

    #[test]
    fn claude_questions_need_answers_and_plans_need_their_text() {
        let question = || request("AskUserQuestion", json!({ "questions": [{ "question": "Which?" }] }));
        let answers = BTreeMap::from([("Which?".to_owned(), "Red".to_owned())]);
        check(Provider::Claude, question(), &ALLOW, None);
        check(
            Provider::Claude,
            question(),
            &AgentAnswer { answers: Some(answers.clone()), ..ALLOW },
            decided(json!({ "behavior": "allow", "updatedInput": {
                "questions": [{ "question": "Which?" }], "answers": { "Which?": "Red" } } })),
        );
        let plan = || request("ExitPlanMode", json!({ "plan": "1. go" }));
        check(
            Provider::Claude,
            plan(),
            &ALLOW,
            decided(json!({ "behavior": "allow", "updatedInput": { "plan": "1. go" } })),
        );
        check(Provider::Claude, plan(), &AgentAnswer { answers: Some(answers), ..ALLOW }, None);
        check(Provider::Claude, request("ExitPlanMode", json!({})), &ALLOW, None);
        assert!(!can_express(Provider::Claude, Some("ExitPlanMode"), Some("{}"), &ALLOW));
        assert!(can_express(Provider::Claude, Some("ExitPlanMode"), Some(r#"{"plan":"1. go"}"#), &ALLOW));
        assert!(can_express(Provider::Codex, Some("Bash"), Some(r#"{"command":"ls"}"#), &ALLOW));
        assert!(!can_express(Provider::Gemini, Some("run_shell_command"), None, &ALLOW));
    }

    #[test]
    fn gemini_answers_can_deny_but_never_allow() {
        let asked = || json!({ "hook_event_name": "BeforeTool", "tool_name": "run_shell_command", "tool_input": {} });
        check(Provider::Gemini, asked(), &ALLOW, None);
        check(Provider::Gemini, asked(), &deny("no"), Some(json!({ "decision": "deny", "reason": "no" })));
        check(Provider::Gemini, request("x", json!({})), &deny("no"), None);
    }

    #[test]
    fn events_that_request_no_decision_are_not_answered() {
        for (provider, event) in
            [(Provider::Claude, "PreToolUse"), (Provider::Codex, "Stop"), (Provider::Unknown, "PermissionRequest")]
        {
            check(provider, json!({ "hook_event_name": event, "tool_name": "Bash" }), &deny("no"), None);
        }
        assert!(!asks_for_decision(Provider::Claude, &RawValue::from_string("[]".into()).unwrap()));
    }
}
