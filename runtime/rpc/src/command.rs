//! Parses the lines of a client: commands, and answers to questions.

use serde::Deserialize;
use session_tree::{Json, Object};

use crate::dialog::DialogAnswer;

/// A command and the id of its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcRequest {
    /// The id assigned by the client.
    pub id: Option<Json>,
    /// The command's name, repeated in the answer.
    pub name: String,
    /// The command.
    pub command: RpcCommand,
}

/// The commands of a client: those of pi 0.87.1, followed by our own.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum RpcCommand {
    /// Send a prompt; while a turn is running, queue it according to `streaming_behavior`.
    Prompt {
        /// The text.
        message: String,
        /// Images of the message.
        #[serde(default)]
        images: Vec<RpcImage>,
        /// What to do while a turn is running; `None` refuses the prompt.
        #[serde(default)]
        streaming_behavior: Option<StreamingBehavior>,
    },
    /// Queue a message for the next boundary between tools and requests.
    Steer {
        /// The text.
        message: String,
        /// Images of the message.
        #[serde(default)]
        images: Vec<RpcImage>,
    },
    /// Queue a message for the end of the turn.
    FollowUp {
        /// The text.
        message: String,
        /// Images of the message.
        #[serde(default)]
        images: Vec<RpcImage>,
    },
    /// End the turn.
    Abort,
    /// Withdraw the queued messages.
    ClearQueue,
    /// Start another session.
    NewSession {
        /// The file that the new session records as its parent.
        #[serde(default)]
        parent_session: Option<String>,
    },
    /// Return the state.
    GetState,
    /// Return the messages of the context.
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
    /// Return the models.
    GetAvailableModels,
    /// Change the thinking level.
    SetThinkingLevel {
        /// The level.
        level: String,
    },
    /// Use the next thinking level.
    CycleThinkingLevel,
    /// Return the thinking levels.
    GetAvailableThinkingLevels,
    /// Set how many steering messages land at once.
    SetSteeringMode {
        /// `all` or `one-at-a-time`.
        mode: String,
    },
    /// Set how many follow-up messages land at once.
    SetFollowUpMode {
        /// `all` or `one-at-a-time`.
        mode: String,
    },
    /// Compact the context.
    Compact {
        /// Instructions for the summary.
        #[serde(default)]
        custom_instructions: Option<String>,
    },
    /// Switch automatic compaction on or off.
    SetAutoCompaction {
        /// Whether to enable it.
        enabled: bool,
    },
    /// Switch retries of failed requests on or off.
    SetAutoRetry {
        /// Whether to enable them.
        enabled: bool,
    },
    /// Do not retry the failed request.
    AbortRetry,
    /// Run a command outside the conversation.
    Bash {
        /// The command.
        command: String,
        /// Whether to hide it from the model.
        #[serde(default)]
        exclude_from_context: bool,
    },
    /// End the command started by `bash`.
    AbortBash,
    /// Return the usage of the session.
    GetSessionStats,
    /// Export the session as HTML.
    ExportHtml {
        /// The output path.
        #[serde(default)]
        output_path: Option<String>,
    },
    /// Open another session.
    SwitchSession {
        /// Its file.
        session_path: String,
    },
    /// Continue in a new session that ends before a user message.
    Fork {
        /// The message's entry.
        entry_id: String,
    },
    /// Continue in a new session that is a copy of the branch.
    Clone,
    /// Return the messages that can be forked from.
    GetForkMessages,
    /// Return the entries.
    GetEntries {
        /// Only those after this one.
        #[serde(default)]
        since: Option<String>,
    },
    /// Return the tree of entries.
    GetTree,
    /// Return the text of the last answer.
    GetLastAssistantText,
    /// Name the session.
    SetSessionName {
        /// The name.
        name: String,
    },
    /// Return the commands that can start a prompt.
    GetCommands,
    /// Our own: pause at the next boundary.
    Pause,
    /// Our own: resume after a pause, or with messages that were held back.
    Resume,
    /// Our own: set the spending limits. A missing limit is unlimited.
    Limit {
        /// Input and output tokens.
        #[serde(default)]
        tokens: Option<u64>,
        /// Cost in US dollars.
        #[serde(default)]
        cost_usd: Option<f64>,
        /// Duration of turns, in minutes.
        #[serde(default)]
        minutes: Option<u64>,
        /// Tool calls.
        #[serde(default)]
        calls: Option<u64>,
    },
    /// Our own: return the cache use of each request.
    Cache,
    /// Our own: revert the files by one task.
    Undo,
    /// Our own: repeat an undone task.
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

/// An image in a message.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcImage {
    /// The bytes in base64.
    pub data: String,
    /// The type of the image, such as `image/png`.
    pub mime_type: String,
}

/// A line written by a client.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientLine {
    /// A command.
    Command(RpcRequest),
    /// The answer to a question; `None` if it contains no answer.
    Answer {
        /// The question's id.
        id: String,
        /// The answer.
        answer: Option<DialogAnswer>,
    },
}

/// Why a line is not a command, for the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandRefusal {
    /// The id, if there is one.
    pub id: Option<Json>,
    /// The command's name; `parse` if it is unknown.
    pub name: String,
    /// The error.
    pub error: String,
}

impl ClientLine {
    /// Parses a line, without its newline.
    ///
    /// # Errors
    /// It is not JSON, or not a known command.
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

/// Commands with a field that has a fixed set of values, so that an unknown value is not reported as an unknown
/// command.
const NAMED: [&str; 1] = ["prompt"];

fn command(fields: &Object) -> Result<RpcCommand, String> {
    let fields: Object =
        fields.iter().filter(|(key, _)| *key != "id").map(|(k, v)| (k.to_owned(), v.clone())).collect();
    // The position in this text differs from that in the client's line.
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
    fn malformed_commands_are_refused_with_the_reason_and_the_id() {
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
    fn client_lines_parse_as_commands_or_dialog_answers() {
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
        // Only `true` counts as yes.
        assert_eq!(of(r#""confirmed":"true""#), None);
        assert_eq!(of(r#""other":1"#), None);
    }
}
