//! A tool call with parsed and checked arguments.

use serde::de::DeserializeOwned;

use crate::{
    arguments::{
        AskArguments, BashArguments, EditArguments, FetchArguments, GlobArguments, GrepArguments, ProcessAction,
        ProcessArguments, ReadArguments, TodoArguments, WriteArguments,
    },
    limits,
    tool::Tool,
};

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// Ask the user a question.
    Ask(AskArguments),
    /// Run a command.
    Bash(BashArguments),
    /// Replace text in a file.
    Edit(EditArguments),
    /// Fetch a page.
    Fetch(FetchArguments),
    /// Find files.
    Glob(GlobArguments),
    /// Find lines.
    Grep(GrepArguments),
    /// List, read or stop background commands.
    Process(ProcessArguments),
    /// Read a file.
    Read(ReadArguments),
    /// Replace the to-do list.
    Todo(TodoArguments),
    /// Write a whole file.
    Write(WriteArguments),
}

/// Why a call cannot be made. The text is for the model and names the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// There is no tool of this name.
    #[error("unknown tool `{0}`; the tools are {list}", list = names())]
    UnknownTool(String),
    /// The arguments do not fit the tool.
    #[error("invalid arguments for {tool}: {problem}")]
    Arguments {
        /// The tool.
        tool: Tool,
        /// The problem, with the name of the field.
        problem: String,
    },
}

fn names() -> String {
    Tool::ALL.map(Tool::name).join(", ")
}

impl Call {
    /// Parses the arguments of a call, a JSON object.
    ///
    /// # Errors
    /// When there is no such tool, the text is not JSON, a field is missing, unknown or of another type, or a value is
    /// outside its limits.
    pub fn parse(name: &str, arguments: &str) -> Result<Self, CallError> {
        let tool = Tool::from_name(name).ok_or_else(|| CallError::UnknownTool(name.chars().take(64).collect()))?;
        let call = match tool {
            Tool::Ask => Self::Ask(read(tool, arguments)?),
            Tool::Bash => Self::Bash(read(tool, arguments)?),
            Tool::Edit => Self::Edit(read(tool, arguments)?),
            Tool::Fetch => Self::Fetch(read(tool, arguments)?),
            Tool::Glob => Self::Glob(read(tool, arguments)?),
            Tool::Grep => Self::Grep(read(tool, arguments)?),
            Tool::Process => Self::Process(read(tool, arguments)?),
            Tool::Read => Self::Read(read(tool, arguments)?),
            Tool::Todo => Self::Todo(read(tool, arguments)?),
            Tool::Write => Self::Write(read(tool, arguments)?),
        };
        match call.problem() {
            Some(problem) => Err(CallError::Arguments { tool, problem }),
            None => Ok(call),
        }
    }

    /// The tool that is called.
    #[must_use]
    pub const fn tool(&self) -> Tool {
        match self {
            Self::Ask(_) => Tool::Ask,
            Self::Bash(_) => Tool::Bash,
            Self::Edit(_) => Tool::Edit,
            Self::Fetch(_) => Tool::Fetch,
            Self::Glob(_) => Tool::Glob,
            Self::Grep(_) => Tool::Grep,
            Self::Process(_) => Tool::Process,
            Self::Read(_) => Tool::Read,
            Self::Todo(_) => Tool::Todo,
            Self::Write(_) => Tool::Write,
        }
    }

    /// Describes a value outside its limits, if there is one.
    fn problem(&self) -> Option<String> {
        match self {
            Self::Ask(ask) => {
                let options = ask.options.as_deref().unwrap_or_default();
                let bytes = ask.question.len() + options.iter().map(String::len).sum::<usize>();
                within("question", ask.question.len(), 1, limits::ASK_BYTES, "bytes")
                    .or_else(|| within("options", options.len(), 0, limits::ASK_OPTIONS, "options"))
                    .or_else(|| within("options", bytes, 1, limits::ASK_BYTES, "bytes with the question"))
                    .or_else(|| options.iter().any(String::is_empty).then(|| "`options` has an empty option".into()))
            }
            Self::Bash(bash) => within("command", bash.command.len(), 1, limits::COMMAND_BYTES, "bytes")
                .or_else(|| without_nul("command", &bash.command))
                .or_else(|| bash.timeout_s.and_then(|s| range("timeout_s", s.into(), 1, limits::TIMEOUT_MAX_S.into())))
                .or_else(|| {
                    (bash.background == Some(true) && bash.timeout_s.is_some())
                        .then(|| "`timeout_s` does not apply to a background command; leave it out".into())
                }),
            Self::Edit(edit) => path("path", &edit.path)
                .or_else(|| within("edits", edit.edits.len(), 1, limits::EDITS, "edits"))
                .or_else(|| {
                    edit.edits.iter().enumerate().find_map(|(at, one)| {
                        if one.old.is_empty() {
                            Some(format!("`edits[{at}].old` is empty; use write to create or replace a whole file"))
                        } else if one.old == one.new {
                            Some(format!("`edits[{at}].old` and `edits[{at}].new` are equal; nothing would change"))
                        } else {
                            None
                        }
                    })
                }),
            Self::Fetch(fetch) => within("url", fetch.url.len(), 1, limits::URL_BYTES, "bytes")
                .or_else(|| crate::fetch::parse_url(&fetch.url).err().map(|why| format!("`url`: {why}"))),
            Self::Glob(glob) => within("pattern", glob.pattern.len(), 1, limits::PATTERN_BYTES, "bytes")
                .or_else(|| glob.path.as_deref().and_then(|at| path("path", at)))
                .or_else(|| crate::glob::matcher(&glob.pattern).err().map(|why| format!("`pattern`: {why}"))),
            Self::Grep(grep) => within("pattern", grep.pattern.len(), 1, limits::PATTERN_BYTES, "bytes")
                .or_else(|| grep.path.as_deref().and_then(|at| path("path", at)))
                .or_else(|| grep.context.and_then(|n| range("context", n.into(), 0, limits::GREP_CONTEXT.into())))
                .or_else(|| grep.limit.and_then(|n| range("limit", n.into(), 1, limits::GREP_MATCHES.into())))
                .or_else(|| crate::grep::matcher(&grep.pattern).err().map(|why| format!("`pattern`: {why}")))
                .or_else(|| {
                    let of = grep.glob.as_deref()?;
                    crate::glob::matcher(of).err().map(|why| format!("`glob`: {why}"))
                }),
            Self::Process(process) => match (process.action, &process.id) {
                (ProcessAction::Output | ProcessAction::Stop, None) => Some("missing field `id`".into()),
                (ProcessAction::List, Some(_)) => Some("`id` does not apply to `list`; leave it out".into()),
                (ProcessAction::List | ProcessAction::Output | ProcessAction::Stop, _) => None,
            },
            Self::Read(read) => path("path", &read.path)
                .or_else(|| read.offset.and_then(|n| range("offset", n, 1, u64::MAX)))
                .or_else(|| read.limit.and_then(|n| range("limit", n, 1, limits::READ_LINES))),
            Self::Todo(todo) => within("items", todo.items.len(), 0, limits::TODO_ITEMS, "items").or_else(|| {
                todo.items.iter().enumerate().find_map(|(at, item)| {
                    within(&format!("items[{at}].text"), item.text.chars().count(), 1, limits::TODO_CHARS, "characters")
                })
            }),
            Self::Write(write) => path("path", &write.path)
                .or_else(|| within("content", write.content.len(), 0, limits::FILE_BYTES_MEMORY, "bytes")),
        }
    }
}

/// Parses the arguments of one tool. Errors omit positions in the text, which are useless to a model that wrote fields.
fn read<T: DeserializeOwned>(tool: Tool, arguments: &str) -> Result<T, CallError> {
    let wrong = |problem: String| CallError::Arguments { tool, problem };
    // For a call without arguments, some providers send an empty text.
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| wrong(format!("not valid JSON: {error}")))?;
    if !value.is_object() {
        return Err(wrong("expected a JSON object".to_owned()));
    }
    // Parsed from the text, not from the value, so that a duplicate field is an error too.
    serde_json::from_str(text).map_err(|error| wrong(described(tool, &error, &value)))
}

/// An error of serde, with the name of the field.
fn described(tool: Tool, error: &serde_json::Error, value: &serde_json::Value) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    if text.contains('`') && !text.starts_with("invalid type") && !text.starts_with("invalid value") {
        return text.to_owned();
    }
    // serde names the type but not the field: the schema shows which field has the wrong type.
    crate::schema::mismatch(tool, value).map_or_else(|| text.to_owned(), |field| format!("`{field}`: {text}"))
}

fn within(field: &str, size: usize, least: usize, most: usize, unit: &str) -> Option<String> {
    if size < least {
        return Some(format!("`{field}` is empty"));
    }
    (size > most).then(|| format!("`{field}` has {size} {unit}; the limit is {most}"))
}

fn range(field: &str, value: u64, least: u64, most: u64) -> Option<String> {
    match (value < least || value > most, most) {
        (false, _) => None,
        (true, u64::MAX) => Some(format!("`{field}` is {value}; the least is {least}")),
        (true, _) => Some(format!("`{field}` is {value}; it must be between {least} and {most}")),
    }
}

fn path(field: &str, path: &str) -> Option<String> {
    within(field, path.len(), 1, limits::PATH_BYTES, "bytes").or_else(|| without_nul(field, path))
}

fn without_nul(field: &str, text: &str) -> Option<String> {
    text.contains('\0').then(|| format!("`{field}` contains a NUL character"))
}

#[cfg(test)]
mod tests;
