//! Decodes tool calls and their results.
//!
//! A call and its output are `response_item`s with the same `call_id`. The end of its command, patch or MCP call is
//! also recorded by an item, see `ends`.

use events::{Confidence, QuestionAnswered, QuestionAsked, ToolCall, ToolKind, ToolOutcome, ToolResult};

use super::{
    memory::{CodexMemory, OpenCall},
    outcome,
    patch::{self, Patch},
    records::{Answered, Arguments, Call, CodexOutput, Field, Question, RawField, VerifiedAnswer},
    script,
    writer::EventWriter,
};

/// `function_call`, `custom_tool_call`, `local_shell_call` (read), `tool_search_call` (read).
pub(super) fn call(tag: &str, call: &Call<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let Some(id) = call.call_id.name().or_else(|| call.id.name()) else {
        w.unrecognized(&format!("response_item/{tag}"));
        return;
    };
    let name = call.name.name().unwrap_or(tag.trim_end_matches("_call").into());
    let text = call
        .input
        .or(call.arguments)
        .or(call.action)
        .map(|raw| raw.text().unwrap_or_else(|| raw.json().to_owned()))
        .unwrap_or_default();
    let scripted = tag == "custom_tool_call" && name == "exec";
    let said = if scripted {
        let script::Script { tool, title, files, escalated } = script::scan(&text);
        CallSummary { tool, title, files, escalated, questions: Vec::new() }
    } else {
        CallSummary::read(&name, call.namespace, &text)
    };

    memory.open(OpenCall {
        id: id.clone().into_owned(),
        at_ms: w.now().as_millisecond(),
        script: scripted,
        escalated: said.escalated,
        asks: said.title.clone().filter(|_| scripted && said.escalated),
        question: said.tool == ToolKind::Question,
        ..OpenCall::default()
    });
    let data = ToolCall {
        call_id: id.clone().into_owned(),
        name: match call.namespace.name() {
            Some(space) => format!("{space}.{name}"),
            None => name.into_owned(),
        },
        tool: said.tool,
        title: said.title,
        files: said.files,
        may_ask: said.escalated,
        ..ToolCall::default()
    };
    let mut event = w.event("call", Some(&id), data);
    event.text = Some(text);
    w.push(event);
    if said.tool == ToolKind::Question {
        put_questions(&id, &said.questions, w);
    }
}

/// Emits one event for all questions of a call, because they are one dialog. The options are those of the first
/// question.
fn put_questions(call: &str, questions: &[CodexQuestion], w: &mut EventWriter<'_, '_>) {
    let data = QuestionAsked {
        call_id: Some(call.to_owned()),
        options: questions.first().map(|first| first.options.clone()).unwrap_or_default(),
    };
    let mut event = w.event("question", Some(call), data);
    event.parent = Some(w.call_identity(call));
    event.text = Some(join(questions));
    w.push(event);
}

struct CodexQuestion {
    text: String,
    options: Vec<String>,
}

fn join(questions: &[CodexQuestion]) -> String {
    questions.iter().map(|asked| asked.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// The relevant parts of the name and arguments of a function call.
struct CallSummary {
    tool: ToolKind,
    title: Option<String>,
    files: Vec<String>,
    escalated: bool,
    questions: Vec<CodexQuestion>,
}

impl CallSummary {
    fn read(name: &str, namespace: Option<RawField<'_>>, text: &str) -> Self {
        let space = namespace.name().unwrap_or_default();
        let tool = if space.starts_with("mcp__") { ToolKind::Mcp } else { script::kind(name) };
        let arguments: Arguments<'_> = serde_json::from_str(text).unwrap_or_default();
        let escalated = arguments.sandbox_permissions.name().is_some_and(|said| said == "require_escalated")
            || arguments.with_escalated_permissions.is_true();
        let (mut questions, mut files) = (Vec::new(), Vec::new());
        let title = match tool {
            ToolKind::Execute => {
                arguments.cmd.or(arguments.command).and_then(command).or_else(|| arguments.chars.text())
            }
            ToolKind::Edit => {
                let patch = Patch::of(&arguments.input.text().unwrap_or_else(|| text.to_owned()));
                files = patch.files;
                patch.title
            }
            ToolKind::Mcp => Some(script::full_name(&match space.as_ref() {
                "" => name.to_owned(),
                space => format!("{}__{name}", space.trim_end_matches("__")),
            })),
            ToolKind::Question => {
                questions = questions_in(arguments.questions);
                Some(join(&questions))
            }
            ToolKind::Subagent => arguments.task_name.or(arguments.message).text(),
            ToolKind::Read | ToolKind::Fetch => arguments.path.or(arguments.query).or(arguments.url).text(),
            ToolKind::Plan | ToolKind::Other => None,
        };
        Self { tool, title: title.and_then(|title| patch::title(&title)), files, escalated, questions }
    }
}

/// A command is a string, or a list of words; if the words run a shell, the last word is the command.
pub(super) fn command(raw: RawField<'_>) -> Option<String> {
    if let Some(text) = raw.text() {
        return Some(text);
    }
    let words: Vec<String> = raw.parse()?;
    match words.as_slice() {
        [_, flag, command] if flag.starts_with('-') && flag.ends_with('c') => Some(command.clone()),
        words => Some(words.join(" ")),
    }
}

fn questions_in(questions: Option<RawField<'_>>) -> Vec<CodexQuestion> {
    let questions: Vec<Question<'_>> = questions.parse().unwrap_or_default();
    questions
        .iter()
        .map(|question| CodexQuestion {
            text: question.question.text().unwrap_or_default(),
            options: question
                .options
                .parse::<Vec<Question<'_>>>()
                .unwrap_or_default()
                .iter()
                .filter_map(|option| option.label.text())
                .collect(),
        })
        .collect()
}

/// `web_search_call`, `image_generation_call` (read): run by the model's provider and recorded when done, so call and
/// result are one record. A call without an id gets the id of the event that ended it just before, or is named after
/// its line.
pub(super) fn served(tag: &str, call: &Call<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let text = call.action.map(|action| action.json().to_owned());
    let arguments: Arguments<'_> = call.action.parse().unwrap_or_default();
    let id = call.id.name().or_else(|| call.call_id.name());
    let failed = call.status.name().is_some_and(|status| status == "failed");
    let ended = memory.search.take().filter(|_| tag == "web_search_call");
    let shown = id.as_deref().map(str::to_owned).or(ended).unwrap_or_else(|| w.line_name(tag));
    let data = ToolCall {
        call_id: shown.clone(),
        name: tag.trim_end_matches("_call").to_owned(),
        tool: script::kind(tag),
        title: served_title(&arguments).and_then(|title| patch::title(&title)),
        ..ToolCall::default()
    };
    let mut event = w.event("call", id.as_deref(), data);
    event.text = text;
    let parent = event.identity;
    w.push(event);
    let data = ToolResult {
        call_id: shown,
        outcome: if failed { ToolOutcome::Error } else { ToolOutcome::Ok },
        ..ToolResult::default()
    };
    let mut event = w.event("result", id.as_deref(), data);
    event.parent = id.is_some().then_some(parent);
    w.push(event);
}

/// The search query, or the opened page and the pattern searched in it.
fn served_title(arguments: &Arguments<'_>) -> Option<String> {
    let what = arguments.query.or(arguments.url).text();
    match (what, arguments.pattern.text()) {
        (Some(page), Some(pattern)) => Some(format!("{pattern} in {page}")),
        (what, pattern) => what.or(pattern),
    }
}

/// `function_call_output`, `custom_tool_call_output`, `tool_search_output` (read).
pub(super) fn output(output: CodexOutput<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let Some(id) = output.call_id.name().or_else(|| output.id.name()) else {
        w.unrecognized("response_item/output");
        return;
    };
    let call = memory.close(&id);
    let returned = outcome::read(output.output, call.as_ref());
    if call.as_ref().is_some_and(|call| call.question && !call.answered) {
        let answer = (returned.outcome == ToolOutcome::Ok).then(|| returned.text.clone());
        put_answer(&id, answer, w);
    }
    let refused = returned.outcome == ToolOutcome::Denied;
    match &mut memory.turn {
        Some(turn) => turn.denied |= refused,
        None => memory.refused = refused,
    }
    let data = ToolResult {
        call_id: id.clone().into_owned(),
        outcome: returned.outcome,
        exit_code: returned.exit_code,
        duration_ms: returned.duration_ms,
        ..ToolResult::default()
    };
    let mut event = w.event("result", Some(&id), data);
    event.parent = Some(w.call_identity(&id));
    event.text = Some(returned.text);
    if returned.outcome == ToolOutcome::Denied {
        event.confidence = Confidence::Medium;
    }
    w.push(event);
}

/// `retained_context/verified_answer`: written when the user presses the key, before the output.
pub(super) fn verified_answer(answer: &VerifiedAnswer<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let Some(id) = answer.call_id.name() else {
        return;
    };
    if let Some(call) = memory.call(&id)
        && std::mem::replace(&mut call.answered, true)
    {
        return;
    }
    let answers: Vec<Answered<'_>> = answer.questions.parse().unwrap_or_default();
    let texts: Vec<String> = answers.iter().filter_map(|answered| answered.answer.text()).collect();
    put_answer(&id, Some(texts.join("\n")), w);
}

fn put_answer(call: &str, text: Option<String>, w: &mut EventWriter<'_, '_>) {
    let mut event = w.event("answer", Some(call), QuestionAnswered { call_id: Some(call.to_owned()) });
    event.parent = Some(w.identity("question", call));
    event.text = text;
    w.push(event);
}
