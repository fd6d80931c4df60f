//! Lines of a client: commands, and answers to what it was asked.

use serde::Deserialize;
use session_tree::{Json, Object};

use crate::dialog::DialogAnswer;

/// A command and the id by which its answer is found.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcRequest {
    /// The id that the client gave it.
    pub id: Option<Json>,
    /// The command's name, as the answer repeats it.
    pub name: String,
    /// The command.
    pub command: RpcCommand,
}

/// What a client wants: the commands of pi 0.87.1, and below them our own.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum RpcCommand {
    /// Send a prompt; while a turn is running, queue it as `streaming_behavior` says.
    Prompt {
        /// The text.
        message: String,
        /// Images beside it.
        #[serde(default)]
        images: Vec<RpcImage>,
        /// What to do while a turn is running; nothing refuses it then.
        #[serde(default)]
        streaming_behavior: Option<StreamingBehavior>,
    },
    /// Queue a message for the next boundary between tools and requests.
    Steer {
        /// The text.
        message: String,
        /// Images beside it.
        #[serde(default)]
        images: Vec<RpcImage>,
    },
    /// Queue a message for the end of the turn.
    FollowUp {
        /// The text.
        message: String,
        /// Images beside it.
        #[serde(default)]
        images: Vec<RpcImage>,
    },
    /// End the turn.
    Abort,
    /// Take the queued messages back.
    ClearQueue,
    /// Begin another session.
    NewSession {
        /// The file that the new session names as its parent.
        #[serde(default)]
        parent_session: Option<String>,
    },
    /// Tell the state.
    GetState,
    /// Tell the messages of the context.
    GetMessages,
    /// Use another model.
    SetModel {
        /// The provider.
        provider: String,
        /// The model.
        model_id: String,
    },
    /// Use the next model.
    CycleModel,
    /// Tell the models.
    GetAvailableModels,
    /// Think more or less.
    SetThinkingLevel {
        /// The level.
        level: String,
    },
    /// Use the next level of thinking.
    CycleThinkingLevel,
    /// Tell the levels of thinking.
    GetAvailableThinkingLevels,
    /// Say how many steering messages land at once.
    SetSteeringMode {
        /// `all` or `one-at-a-time`.
        mode: String,
    },
    /// Say how many follow-up messages land at once.
    SetFollowUpMode {
        /// `all` or `one-at-a-time`.
        mode: String,
    },
    /// Compact the context.
    Compact {
        /// What the summary is to look at.
        #[serde(default)]
        custom_instructions: Option<String>,
    },
    /// Switch automatic compaction on or off.
    SetAutoCompaction {
        /// Whether it is to be on.
        enabled: bool,
    },
    /// Switch the repetition of failed requests on or off.
    SetAutoRetry {
        /// Whether it is to be on.
        enabled: bool,
    },
    /// Do not repeat the request that failed.
    AbortRetry,
    /// Run a command outside the conversation.
    Bash {
        /// The command.
        command: String,
        /// Whether the model is not to see it.
        #[serde(default)]
        exclude_from_context: bool,
    },
    /// End the command that `bash` runs.
    AbortBash,
    /// Tell what the session has used.
    GetSessionStats,
    /// Write the session as HTML.
    ExportHtml {
        /// Where to.
        #[serde(default)]
        output_path: Option<String>,
    },
    /// Open another session.
    SwitchSession {
        /// Its file.
        session_path: String,
    },
    /// Continue in a new session before a message of the user.
    Fork {
        /// The message's entry.
        entry_id: String,
    },
    /// Continue in a new session that is a copy of the branch.
    Clone,
    /// Tell the messages that can be forked from.
    GetForkMessages,
    /// Tell the entries.
    GetEntries {
        /// Only those after this one.
        #[serde(default)]
        since: Option<String>,
    },
    /// Tell the tree of entries.
    GetTree,
    /// Tell the text of the last answer.
    GetLastAssistantText,
    /// Name the session.
    SetSessionName {
        /// The name.
        name: String,
    },
    /// Tell the commands that a prompt may begin with.
    GetCommands,
    /// Our own: stop at the next boundary.
    Pause,
    /// Our own: go on after a pause, or with messages that were held back.
    Resume,
    /// Our own: set what the session may spend. What is absent has no limit.
    Limit {
        /// Tokens in and out.
        #[serde(default)]
        tokens: Option<u64>,
        /// Costs in US dollars.
        #[serde(default)]
        cost_usd: Option<f64>,
        /// Time in turns, in minutes.
        #[serde(default)]
        minutes: Option<u64>,
        /// Tool calls.
        #[serde(default)]
        calls: Option<u64>,
    },
    /// Our own: tell what each request read from the provider's cache.
    Cache,
    /// Our own: take the files back by a task.
    Undo,
    /// Our own: do an undone task again.
    Redo,
    /// Our own: list the tasks.
    Tasks,
}

/// What to do with a prompt while a turn is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamingBehavior {
    /// Queue it for the next boundary.
    Steer,
    /// Queue it for the end of the turn.
    FollowUp,
}

/// An image of a message.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcImage {
    /// The bytes in base64.
    pub data: String,
    /// The type of the image, such as `image/png`.
    pub mime_type: String,
}

/// What a client wrote.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientLine {
    /// A command.
    Command(RpcRequest),
    /// The answer to a question; nothing when it says nothing.
    Answer {
        /// The question's id.
        id: String,
        /// The answer.
        answer: Option<DialogAnswer>,
    },
}

/// Why a line is not a command, for the answer to it.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandRefusal {
    /// The id, when there is one.
    pub id: Option<Json>,
    /// The command's name; `parse` when it cannot be told.
    pub name: String,
    /// What is wrong.
    pub error: String,
}

impl ClientLine {
    /// Reads a line, without its end.
    ///
    /// # Errors
    /// It is not JSON, or not a command that is known.
    pub fn parse(line: &str) -> Result<Self, CommandRefusal> {
        let parse = |error: String| CommandRefusal { id: None, name: "parse".to_owned(), error };
        let json = Json::parse(line).map_err(|error| parse(format!("Failed to parse command: {error}")))?;
        let fields = json.as_object().ok_or_else(|| parse("Failed to parse command: expected an object".to_owned()))?;
        let id = fields.get("id").filter(|id| **id != Json::Null).cloned();
        let Some(name) = fields.text("type").map(str::to_owned) else {
            let error = "Failed to parse command: expected a field `type`".to_owned();
            return Err(CommandRefusal { id, ..parse(error) });
        };
        if name == "extension_ui_response" {
            let id = fields.text("id").unwrap_or_default().to_owned();
            return Ok(Self::Answer { id, answer: DialogAnswer::of(fields) });
        }
        match command(fields) {
            Ok(command) => Ok(Self::Command(RpcRequest { id, name, command })),
            Err(error) if error.contains("unknown variant `") && !NAMED.contains(&name.as_str()) => {
                Err(CommandRefusal { id, error: format!("Unknown command: {name}"), name })
            }
            Err(error) => Err(CommandRefusal { id, name, error }),
        }
    }
}

/// Commands with a field whose value is one of several, so that an unknown value is not taken for an unknown command.
const NAMED: [&str; 1] = ["prompt"];

fn command(fields: &Object) -> Result<RpcCommand, String> {
    let fields: Object =
        fields.iter().filter(|(key, _)| *key != "id").map(|(k, v)| (k.to_owned(), v.clone())).collect();
    // The position in the text is not that in the client's line.
    serde_json::from_str(&fields.to_text()).map_err(|error| {
        let text = error.to_string();
        text.split(" at line ").next().unwrap_or_default().to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(line: &str, name: &str, told: &str) {
        let refusal = ClientLine::parse(line).unwrap_err();
        assert_eq!(refusal.name, name, "{refusal:?}");
        assert!(refusal.error.contains(told), "{refusal:?}");
    }

    #[track_caller]
    fn command(line: &str) -> RpcCommand {
        match ClientLine::parse(line).unwrap() {
            ClientLine::Command(request) => request.command,
            ClientLine::Answer { .. } => panic!("{line}"),
        }
    }

    #[test]
    fn what_cannot_be_meant_is_named_with_its_id() {
        refused("not json", "parse", "Failed to parse command");
        refused("[]", "parse", "expected an object");
        refused(r#"{"id":"1"}"#, "parse", "`type`");
        refused(r#"{"id":"1","type":"nonsense"}"#, "nonsense", "Unknown command: nonsense");
        refused(r#"{"id":"1","type":"prompt"}"#, "prompt", "missing field `message`");
        refused(r#"{"type":"prompt","message":"x","streamingBehavior":"y"}"#, "prompt", "unknown variant `y`");
        refused(r#"{"type":"limit","tokens":-1}"#, "limit", "invalid value");
        let id = ClientLine::parse(r#"{"id":7,"type":"nonsense"}"#).unwrap_err().id;
        assert_eq!(id, Some(Json::from(7_u64)));
    }

    #[test]
    fn commands_and_answers_are_told_apart() {
        let prompt = command(r#"{"id":"1","type":"prompt","message":"a","streamingBehavior":"followUp","x":1}"#);
        let expected = RpcCommand::Prompt {
            message: "a".to_owned(),
            images: Vec::new(),
            streaming_behavior: Some(StreamingBehavior::FollowUp),
        };
        assert_eq!(prompt, expected);
        assert_eq!(command(r#"{"type":"get_state"}"#), RpcCommand::GetState);
        let limit = RpcCommand::Limit { tokens: Some(5), cost_usd: None, minutes: None, calls: None };
        assert_eq!(command(r#"{"id":"1","type":"limit","tokens":5}"#), limit);
        let answer = |line: &str| match ClientLine::parse(line).unwrap() {
            ClientLine::Answer { id, answer } => (id, answer),
            ClientLine::Command(_) => panic!("{line}"),
        };
        let of = |rest: &str| answer(&format!(r#"{{"type":"extension_ui_response","id":"q",{rest}}}"#)).1;
        assert_eq!(of(r#""confirmed":true"#), Some(DialogAnswer::Confirmed(true)));
        assert_eq!(of(r#""value":"left""#), Some(DialogAnswer::Value("left".to_owned())));
        assert_eq!(of(r#""cancelled":true,"confirmed":true"#), Some(DialogAnswer::Cancelled));
        // Only `true` is a yes.
        assert_eq!(of(r#""confirmed":"true""#), None);
        assert_eq!(of(r#""other":1"#), None);
    }
}
