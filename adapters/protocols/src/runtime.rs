//! Permission requests of the built-in agent.
//!
//! A request contains everything the decision is based on: the kind of call, the working directory, the files, and the
//! exact bytes of the arguments. It is therefore always complete, and rules decide on it.

use std::collections::BTreeMap;

use agents::AgentAnswer;
use events::ApprovalKind;
use hooks::delivery::permission::PermissionDetails;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};

/// The tool that runs commands.
const SHELL: &str = "bash";
/// The tool that asks the user.
const QUESTION: &str = "ask";

/// The text before the reason why a call would change nothing.
const NO_EFFECT: &str = "the call would change nothing now; if you allow it, the agent only gets this text";

/// A permission request as delivered by the built-in agent.
#[derive(Debug, Serialize, Deserialize)]
pub struct RuntimeRequest {
    /// The model's id of the call, used in the session file.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// The kind of permission; `None` if it is none of these.
    pub kind: Option<ApprovalKind>,
    /// The directory in which it would run.
    pub cwd: String,
    /// The files it would touch.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The address it would connect to.
    #[serde(default)]
    pub url: Option<String>,
    /// The arguments of the call as exact bytes; for a question, [`question_input`].
    pub arguments: Box<RawValue>,
    /// The mode of the session.
    pub mode: String,
    /// How commands are sandboxed.
    pub sandbox: String,
    /// Why the call would change nothing at present, if known: the text that the model would get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_effect: Option<String>,
}

impl RuntimeRequest {
    /// The request as delivered.
    ///
    /// # Errors
    /// If it cannot be serialized to JSON.
    pub fn to_raw(&self) -> Result<Box<RawValue>, serde_json::Error> {
        serde_json::value::to_raw_value(self)
    }
}

/// The input of a question in the form shared by all agents, whose questions are answered by their text.
#[must_use]
pub fn question_input(question: &str, options: &[&str]) -> Value {
    let options: Vec<Value> = options.iter().map(|label| json!({ "label": label })).collect();
    json!({ "questions": [{ "question": question, "options": options }] })
}

/// The answer to the only question of an input made by [`question_input`].
#[must_use]
pub fn answer_to<'a>(question: &str, answers: &'a BTreeMap<String, String>) -> Option<&'a str> {
    answers.get(question).map(String::as_str)
}

#[derive(Deserialize)]
struct QuestionInput {
    questions: Vec<OneQuestion>,
}

#[derive(Deserialize)]
struct OneQuestion {
    question: String,
}

/// The details of a request; `None` if it cannot be decoded.
pub(crate) fn details(request: &RawValue) -> Option<PermissionDetails> {
    let request: RuntimeRequest = serde_json::from_str(request.get()).ok()?;
    let input = request.arguments.get();
    let command = if request.tool == SHELL { Some(command_of(input)?) } else { None };
    let question = questions(input).into_iter().next();
    let subject = command.clone().or_else(|| request.paths.first().cloned()).or_else(|| request.url.clone());
    Some(PermissionDetails {
        about: request.kind,
        call_id: Some(request.call),
        tool: Some(request.tool),
        command,
        paths: Some(request.paths),
        url: request.url,
        input: Some(input.to_owned()),
        cwd: Some(request.cwd),
        sandbox: Some(request.sandbox),
        subject: subject.or(question),
        question: request.no_effect.map(|why| format!("{NO_EFFECT}: {why}")),
        ..PermissionDetails::default()
    })
}

/// Whether a request for this tool with this input can be given this decision.
pub(crate) fn can_express(tool: Option<&str>, input: Option<&str>, given: &AgentAnswer) -> bool {
    if !given.allow {
        return true;
    }
    let asked = || input.map(questions).unwrap_or_default();
    match (tool, &given.rewrite, &given.answers) {
        // An allowance without answers would not answer the question.
        (Some(QUESTION), None, Some(answers)) => asked().iter().any(|question| answers.contains_key(question)),
        (Some(QUESTION), ..) | (_, _, Some(_)) => false,
        (tool, Some(_), None) => tool == Some(SHELL),
        (_, None, None) => true,
    }
}

/// Whether the input of a command asks only to run it, with a time limit.
pub(crate) fn is_plain(input: &str) -> bool {
    const KNOWN: [&str; 2] = ["command", "timeout_s"];
    let input = serde_json::from_str::<Map<String, Value>>(input);
    input.is_ok_and(|input| input.keys().all(|key| KNOWN.contains(&key.as_str())))
}

fn command_of(input: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct ShellInput {
        command: String,
    }
    serde_json::from_str::<ShellInput>(input).ok().map(|input| input.command)
}

fn questions(input: &str) -> Vec<String> {
    let input = serde_json::from_str::<QuestionInput>(input);
    input.map(|input| input.questions.into_iter().map(|asked| asked.question).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(tool: &str, kind: ApprovalKind, arguments: Value) -> Box<RawValue> {
        let request = RuntimeRequest {
            call: "c1".into(),
            tool: tool.into(),
            kind: Some(kind),
            cwd: "/w".into(),
            paths: Vec::new(),
            url: None,
            arguments: RawValue::from_string(arguments.to_string()).unwrap(),
            mode: "ask".into(),
            sandbox: "none".into(),
            no_effect: None,
        };
        request.to_raw().unwrap()
    }

    const ALLOW: AgentAnswer = AgentAnswer { allow: true, message: None, rewrite: None, answers: None };

    #[test]
    fn a_bash_request_includes_its_complete_command_and_input() {
        let arguments = json!({ "command": "git  status\n", "timeout_s": 5 });
        let details = details(&request("bash", ApprovalKind::Command, arguments.clone())).unwrap();
        assert_eq!((details.command.as_deref(), details.cut), (Some("git  status\n"), false));
        assert_eq!((details.input, details.cwd.as_deref()), (Some(arguments.to_string()), Some("/w")));
        assert_eq!(details.call_id.as_deref(), Some("c1"));
        assert!(super::details(&request("bash", ApprovalKind::Command, json!({ "cmd": "ls" }))).is_none());
        assert!(super::details(&RawValue::from_string("{}".into()).unwrap()).is_none());
    }

    #[test]
    fn an_edit_without_effect_adds_an_explanation_to_its_request() {
        let mut request: Value =
            serde_json::from_str(request("edit", ApprovalKind::Edit, json!({ "path": "a" })).get()).unwrap();
        let question =
            |request: &Value| details(&RawValue::from_string(request.to_string()).unwrap()).unwrap().question;
        assert_eq!(question(&request), None);
        request["no_effect"] = "a is a binary file".into();
        assert!(question(&request).unwrap().ends_with("only gets this text: a is a binary file"));
    }

    #[test]
    fn rewrites_and_answers_are_accepted_only_by_the_matching_tool() {
        let rewrite = AgentAnswer { rewrite: Some("git --no-pager status".into()), ..ALLOW };
        assert!(can_express(Some("bash"), Some(r#"{"command":"git status"}"#), &rewrite));
        assert!(!can_express(Some("edit"), Some("{}"), &rewrite));
        assert!(can_express(Some("edit"), None, &ALLOW));
        let input = question_input("Which?", &["left", "right"]).to_string();
        let answers = |question: &str| Some(BTreeMap::from([(question.to_owned(), "left".to_owned())]));
        assert!(can_express(Some("ask"), Some(&input), &AgentAnswer { answers: answers("Which?"), ..ALLOW }));
        assert!(!can_express(Some("ask"), Some(&input), &AgentAnswer { answers: answers("What?"), ..ALLOW }));
        assert!(!can_express(Some("ask"), Some(&input), &ALLOW));
        assert!(!can_express(Some("bash"), Some(&input), &AgentAnswer { answers: answers("Which?"), ..ALLOW }));
        assert!(can_express(Some("ask"), None, &AgentAnswer { allow: false, ..ALLOW }));
    }

    #[test]
    fn only_command_and_timeout_arguments_are_plain() {
        assert!(is_plain(r#"{"command":"ls","timeout_s":600}"#));
        assert!(!is_plain(r#"{"command":"ls","background":true}"#) && !is_plain("[]"));
    }
}
