//! Tool calls: their kind, one-line title and outcome.

use events::{QuestionAnswered, QuestionAsked, ToolCall, ToolKind, ToolOutcome, ToolResult};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    record::{Metadata, Part, Text, ToolState, shape, words},
    transcript::{OpencodeRecordWriter, OpencodeState},
};

/// Block numbers of the identities of a call's events.
const CALL: u32 = 0;
const QUESTION: u32 = 1;
const RESULT: u32 = 2;
const ANSWER: u32 = 3;

/// The beginning of the error after the user's refusal; if the user wrote feedback for the model, more text follows and
/// the turn continues (1.18.33).
const REJECTED: &str = "The user rejected permission to use this specific tool call";
const FEEDBACK: &str = " with the following feedback";
/// The error of a question that was closed without an answer.
const DISMISSED: &str = "The user dismissed this question";
/// The error of a call forbidden by a rule of the configuration.
const FORBIDDEN: &str = "The user has specified a rule which prevents you";
/// The error of a call that was aborted.
const ABORTED: &str = "Tool execution aborted";

/// The arguments that can serve as a title of the call.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Input<'a> {
    #[serde(borrow)]
    command: Option<Text<'a>>,
    #[serde(borrow)]
    file_path: Option<Text<'a>>,
    #[serde(borrow)]
    path: Option<Text<'a>>,
    #[serde(borrow)]
    pattern: Option<Text<'a>>,
    #[serde(borrow)]
    url: Option<Text<'a>>,
    #[serde(borrow)]
    query: Option<Text<'a>>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    questions: Vec<Question<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Question<'a> {
    #[serde(borrow)]
    question: Option<Text<'a>>,
    #[serde(borrow)]
    options: Vec<QuestionOption<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct QuestionOption<'a> {
    #[serde(borrow)]
    label: Option<Text<'a>>,
}

impl OpencodeRecordWriter<'_, '_> {
    pub(super) fn tool(&mut self, id: &str, message: &str, part: &Part<'_>, carried: &mut OpencodeState) {
        let (Some(call), Some(state)) = (part.call.as_deref(), &part.state) else {
            return self.unrecognized("part/tool");
        };
        let name = part.tool.as_deref().unwrap_or_default();
        match state.status.as_deref().unwrap_or_default() {
            // The input follows.
            "pending" => {}
            // Repeated with each piece of output; only the first record counts.
            "running" => self.call(id, call, name, state.input),
            "completed" => self.returned(id, call, name, state, ToolOutcome::Ok),
            "error" => {
                let error = state.error.as_deref().unwrap_or_default();
                let outcome = outcome(error);
                if outcome == ToolOutcome::Denied && !error.contains(FEEDBACK) {
                    carried.message(message).denied = true;
                }
                self.returned(id, call, name, state, outcome);
            }
            other => self.unrecognized(&format!("part/tool/{other}")),
        }
    }

    fn call(&mut self, id: &str, call_id: &str, name: &str, raw: Option<&RawValue>) {
        let tool = kind(name);
        let input: Input<'_> = shape(raw);
        let call = ToolCall {
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            tool,
            title: title(tool, &input),
            may_ask: tool.is_asked_for(),
            ..ToolCall::default()
        };
        self.emit(id, CALL, call, raw.map(|raw| raw.get().to_owned()));
        if tool == ToolKind::Question {
            let first = input.questions.first();
            let options = first.map(|asked| asked.options.iter().filter_map(|o| words(o.label.as_ref())).collect());
            let asked = QuestionAsked { call_id: Some(call_id.to_owned()), options: options.unwrap_or_default() };
            let questions: Vec<String> = input.questions.iter().filter_map(|q| words(q.question.as_ref())).collect();
            self.emit(id, QUESTION, asked, Some(questions.join("\n")).filter(|text| !text.is_empty()));
        }
    }

    fn returned(&mut self, id: &str, call_id: &str, name: &str, state: &ToolState<'_>, outcome: ToolOutcome) {
        // A call that ended immediately was never recorded as running.
        self.call(id, call_id, name, state.input);
        let exit_code = shape::<Metadata>(state.metadata).exit.filter(|_| kind(name) == ToolKind::Execute);
        let failed = outcome == ToolOutcome::Ok && exit_code.is_some_and(|code| code != 0);
        let outcome = if failed { ToolOutcome::Error } else { outcome };
        let duration = state.time.end.zip(state.time.start).and_then(|(end, start)| u64::try_from(end - start).ok());
        let result = ToolResult {
            call_id: call_id.to_owned(),
            outcome,
            exit_code,
            duration_ms: duration,
            ..ToolResult::default()
        };
        self.emit(id, RESULT, result, words(state.output.as_ref()).or_else(|| words(state.error.as_ref())));
        if kind(name) == ToolKind::Question && outcome == ToolOutcome::Ok {
            let answer = QuestionAnswered { call_id: Some(call_id.to_owned()) };
            self.emit(id, ANSWER, answer, words(state.output.as_ref()));
        }
    }
}

/// The kind of a tool. Covers the tools of 1.18; those of MCP servers are prefixed with the server's name and an
/// underscore, and cannot be distinguished from others.
fn kind(name: &str) -> ToolKind {
    match name {
        "bash" => ToolKind::Execute,
        "edit" | "write" | "multiedit" | "patch" | "apply_patch" => ToolKind::Edit,
        "read" | "grep" | "glob" | "list" | "lsp" => ToolKind::Read,
        "webfetch" | "websearch" | "codesearch" => ToolKind::Fetch,
        "question" => ToolKind::Question,
        "plan_exit" => ToolKind::Plan,
        "task" => ToolKind::Subagent,
        _ => ToolKind::Other,
    }
}

fn title(tool: ToolKind, input: &Input<'_>) -> Option<String> {
    let question = || input.questions.first().and_then(|first| first.question.as_ref());
    let said = match tool {
        ToolKind::Execute => input.command.as_ref(),
        ToolKind::Edit => input.file_path.as_ref(),
        ToolKind::Read => input.pattern.as_ref().or(input.file_path.as_ref()).or(input.path.as_ref()),
        ToolKind::Fetch => input.url.as_ref().or(input.query.as_ref()),
        ToolKind::Question => question(),
        ToolKind::Mcp | ToolKind::Plan | ToolKind::Subagent | ToolKind::Other => {
            input.description.as_ref().or(input.name.as_ref())
        }
    };
    words(said).map(|said| crate::gemini::content::one_line(&said)).filter(|line| !line.is_empty())
}

fn outcome(error: &str) -> ToolOutcome {
    if error.starts_with(REJECTED) || error.starts_with(DISMISSED) {
        ToolOutcome::Denied
    } else if error.starts_with(FORBIDDEN) {
        ToolOutcome::Blocked
    } else if error.starts_with(ABORTED) {
        ToolOutcome::Cancelled
    } else {
        ToolOutcome::Error
    }
}
