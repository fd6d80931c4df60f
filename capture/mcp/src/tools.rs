//! The tools. Each module defines the argument and answer types of its tools.

mod approvals;
mod conversation;
mod findings;
mod search;
mod sessions;
mod usage;
pub(crate) mod wait;
mod write;

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::link::{Link, LinkError};

/// A tool that changes something, which the user must allow by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteTool {
    /// Queues a prompt for a session.
    SendPrompt,
    /// Sets and removes labels of a session.
    SetLabels,
}

/// Why a tool has no answer. A model reads the text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// The arguments do not match the schema.
    #[error("invalid arguments: {0}")]
    Arguments(#[from] serde_json::Error),
    /// An argument is not valid.
    #[error("invalid arguments: {0}")]
    Argument(String),
    /// The capture server did not answer.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The call was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// A bug in capture.
    #[error("the tool failed because of a bug in capture")]
    Failed,
}

/// The function called with a tool's arguments.
type RunOnce = fn(&Link, Value) -> Result<Value, ToolError>;

/// How a tool produces its answer.
pub(crate) enum ToolRun {
    /// With requests that are answered immediately.
    Once(RunOnce),
    /// By waiting for an event. Progress is reported meanwhile.
    Wait,
}

/// A tool.
pub(crate) struct Entry {
    pub name: &'static str,
    title: &'static str,
    about: &'static str,
    input: fn() -> JsonObject,
    output: fn() -> JsonObject,
    pub run: ToolRun,
    /// What it changes; `None` if it only reads.
    pub writes: Option<WriteTool>,
}

/// All tools.
static TOOLS: &[Entry] = &[
    Entry {
        name: "list_sessions",
        title: "List sessions",
        about: "Lists coding-agent sessions, most recent event first: what each is doing, where, and since when.",
        input: input_of::<sessions::ListArguments>,
        output: output_of::<sessions::SessionList>,
        run: ToolRun::Once(|link, given| answered(sessions::list(link, &parsed(given)?)?)),
        writes: None,
    },
    Entry {
        name: "get_session",
        title: "Show a session",
        about: "Shows one session: its status and the evidence for it, labels, tokens, failures.",
        input: input_of::<sessions::SessionArguments>,
        output: output_of::<sessions::SessionDetails>,
        run: ToolRun::Once(|link, given| answered(sessions::details(link, &parsed(given)?)?)),
        writes: None,
    },
    Entry {
        name: "get_summary",
        title: "Summarize a session",
        about: "Summarizes a session: what it is about, what it is doing now, the files it changed, the commands it \
                ran and its last answer.",
        input: input_of::<sessions::SessionArguments>,
        output: output_of::<sessions::SummaryAnswer>,
        run: ToolRun::Once(|link, given| answered(sessions::summary(link, &parsed(given)?)?)),
        writes: None,
    },
    Entry {
        name: "read_conversation",
        title: "Read a conversation",
        about: "Reads a session's conversation, oldest first: prompts, answers, tool calls with their results, \
                permission requests, errors. Long texts are cut; read on with `after`, `limit` 1 and `offset`.",
        input: input_of::<conversation::ReadArguments>,
        output: output_of::<conversation::ConversationAnswer>,
        run: ToolRun::Once(|link, given| answered(conversation::read(link, &parsed(given)?)?)),
        writes: None,
    },
    Entry {
        name: "search",
        title: "Search all sessions",
        about: "Searches prompts, answers, commands, outputs and errors of all sessions. All words must occur; put \
                phrases in double quotes. `word*` matches prefixes, `word~1` spellings one letter off, `-word` \
                excludes.",
        input: input_of::<search::SearchArguments>,
        output: output_of::<search::SearchAnswer>,
        run: ToolRun::Once(|link, given| answered(search::search(link, &parsed(given)?)?)),
        writes: None,
    },
    Entry {
        name: "wait_for_status",
        title: "Wait for a session",
        about: "Waits until a session reaches one of the given states, or the time limit. Reports progress every 5 s \
                if the client asks for it.",
        input: input_of::<wait::WaitArguments>,
        output: output_of::<wait::WaitAnswer>,
        run: ToolRun::Wait,
        writes: None,
    },
    Entry {
        name: "list_approvals",
        title: "List permission requests",
        about: "Lists permission requests of agents, newest first. This tool cannot decide them.",
        input: input_of::<approvals::ApprovalsArguments>,
        output: output_of::<approvals::ApprovalsAnswer>,
        run: ToolRun::Once(|link, given| answered(approvals::list(link, &parsed(given)?)?)),
        writes: None,
    },
    Entry {
        name: "list_findings",
        title: "List findings",
        about: "Lists what capture noticed about sessions, newest first: stuck, looping, failing, waiting, done.",
        input: input_of::<findings::FindingsArguments>,
        output: output_of::<findings::FindingsAnswer>,
        run: ToolRun::Once(|link, given| answered(findings::list(link, &parsed(given)?)?)),
        writes: None,
    },
    Entry {
        name: "usage",
        title: "Sum up tokens and costs",
        about: "Sums up the tokens that sessions used and what they cost, by model, day, project, session or agent, \
                and reports how much of the agents' quotas is used.",
        input: input_of::<usage::UsageArguments>,
        output: output_of::<usage::UsageAnswer>,
        run: ToolRun::Once(|link, given| answered(usage::report(link, parsed(given)?)?)),
        writes: None,
    },
    Entry {
        name: "send_prompt",
        title: "Queue a prompt",
        about: "Queues a prompt for a session that runs under `capture run`: it is typed when the agent waits for \
                one. Not available to agents and the processes they start.",
        input: input_of::<write::PromptArguments>,
        output: output_of::<write::PromptAnswer>,
        run: ToolRun::Once(|link, given| answered(write::prompt(link, parsed(given)?)?)),
        writes: Some(WriteTool::SendPrompt),
    },
    Entry {
        name: "set_labels",
        title: "Set labels",
        about: "Sets or removes labels of a session. Not available to agents and the processes they start, because \
                rules of the policy can require labels.",
        input: input_of::<write::LabelsArguments>,
        output: output_of::<write::LabelsAnswer>,
        run: ToolRun::Once(|link, given| answered(write::labels(link, parsed(given)?)?)),
        writes: Some(WriteTool::SetLabels),
    },
];

/// The tools to offer: the reading ones, and those the user allowed.
pub(crate) fn all(allowed: &[WriteTool]) -> impl Iterator<Item = &'static Entry> {
    TOOLS.iter().filter(move |entry| entry.writes.is_none_or(|tool| allowed.contains(&tool)))
}

impl Entry {
    /// The tool in the protocol's format.
    pub(crate) fn describe(&self) -> Tool {
        let annotations = ToolAnnotations::from_raw(
            Some(self.title.to_owned()),
            Some(self.writes.is_none()),
            // A prompt makes an agent act; a label is only stored with the session.
            Some(self.writes == Some(WriteTool::SendPrompt)),
            Some(self.writes != Some(WriteTool::SendPrompt)),
            Some(self.writes == Some(WriteTool::SendPrompt)),
        );
        Tool::new(self.name, self.about, Arc::new((self.input)()))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new((self.output)()))
            .with_annotations(annotations)
    }
}

fn parsed<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    Ok(serde_json::from_value(arguments)?)
}

fn answered<T: Serialize>(answer: T) -> Result<Value, ToolError> {
    serde_json::to_value(answer).map_err(|_| ToolError::Failed)
}

fn input_of<T: JsonSchema>() -> JsonObject {
    schema_of::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

fn output_of<T: JsonSchema>() -> JsonObject {
    schema_of::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// A schema without references, because not all clients follow them.
fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> JsonObject {
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let mut schema = match settings.into_generator().into_root_schema_for::<T>().to_value() {
        Value::Object(schema) => schema,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => JsonObject::new(),
    };
    // The name of our type means nothing to the reader.
    schema.remove("title");
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(value: &Value, path: &str, missing: &mut Vec<String>) {
        let properties = value.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let path = format!("{path}.{name}");
            if property.get("description").is_none() {
                missing.push(path.clone());
            }
            described(property, &path, missing);
            if let Some(items) = property.get("items") {
                described(items, &path, missing);
            }
        }
    }

    #[test]
    fn every_tool_argument_and_field_has_a_description() {
        let mut missing = Vec::new();
        for entry in TOOLS {
            let tool = entry.describe();
            let (input, output) = (Value::from((entry.input)()), Value::from((entry.output)()));
            assert_eq!(input["type"], "object", "{}", entry.name);
            assert_eq!(output["type"], "object", "{}", entry.name);
            assert_eq!(input["additionalProperties"], false, "{}", entry.name);
            described(&input, entry.name, &mut missing);
            described(&output, entry.name, &mut missing);
            let annotations = tool.annotations.unwrap();
            assert_eq!(annotations.read_only_hint, Some(entry.writes.is_none()));
            assert!(!input.to_string().contains("$ref"), "{}: {input}", entry.name);
        }
        assert!(missing.is_empty(), "no description: {missing:?}");
    }

    #[test]
    fn write_tools_are_offered_only_when_allowed() {
        assert!(all(&[]).all(|entry| entry.writes.is_none()));
        let names: Vec<_> = all(&[WriteTool::SetLabels]).map(|entry| entry.name).collect();
        assert!(names.contains(&"set_labels") && !names.contains(&"send_prompt"));
        // No tool decides a permission request, whatever is allowed.
        let every = [WriteTool::SendPrompt, WriteTool::SetLabels];
        assert!(all(&every).all(|entry| !entry.name.contains("approve") && !entry.name.contains("decide")));
    }

    #[test]
    fn invalid_arguments_are_named_in_the_error() {
        let error = |given: Value| parsed::<sessions::ListArguments>(given).unwrap_err().to_string();
        assert!(error(serde_json::json!({"sate": "idle"})).contains("unknown field `sate`"));
        assert!(error(serde_json::json!({"state": ["sleeping"]})).contains("sleeping"));
    }
}
