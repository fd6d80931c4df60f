//! The arguments of each tool, as models write them. An unknown or missing field is an error that names the field;
//! nothing is repaired.
//!
//! Models read the comments on the fields: they become the descriptions in `schemas.json`, the frozen list of tools.
//! After changing a comment, update that file with `UPDATE_SCHEMA=1` (see `schema::tests`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Arguments of `ask`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskArguments {
    /// The question, at most 4096 bytes.
    pub question: String,
    /// Up to 4 answers to choose from. Without them the person answers freely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
}

/// Arguments of `bash`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashArguments {
    /// The command line, run by `bash -c` in the working directory of the session.
    pub command: String,
    /// Seconds after which the command is ended, 1 to 600. 120 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u32>,
    /// Return at once and leave the command running; read and stop it with `process`. A background command has no time
    /// limit. It ends with the agent's process: after this turn where a command runs one prompt, else with the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
}

/// Arguments of `edit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditArguments {
    /// The file, relative to the working directory or absolute.
    pub path: String,
    /// 1 to 100 replacements. All are matched against the file as it is now, not against the result of the one before;
    /// they must not overlap. Either all are made or none.
    pub edits: Vec<Replacement>,
}

/// One replacement of an edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// The text to replace, exactly as it is in the file, without line numbers. It must occur once: add surrounding
    /// lines until it does.
    pub old: String,
    /// The text to put in its place.
    pub new: String,
    /// Replace every exact occurrence instead of exactly one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
}

/// Arguments of `fetch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FetchArguments {
    /// The address, http or https.
    pub url: String,
}

/// Arguments of `glob`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobArguments {
    /// The pattern, as `*.rs`, `src/**/*.ts` or `{a,b}/*.md`. A pattern without a slash matches names at any depth.
    pub pattern: String,
    /// The directory to look in. The working directory when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Arguments of `grep`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepArguments {
    /// The regular expression, in the syntax of ripgrep.
    pub pattern: String,
    /// The file or directory to search. The working directory when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Search only files that match this pattern, as `*.rs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// What to return: matching lines (`lines`, when absent), names of files that match (`files`), or the number of
    /// matching lines in each file (`count`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<GrepMode>,
    /// Lines to show before and after each match, at most 20. 0 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// Most matching lines or files to return, 1 to 250. 250 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// What `grep` returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum GrepMode {
    /// Matching lines.
    #[default]
    Lines,
    /// Names of files.
    Files,
    /// Numbers of matching lines.
    Count,
}

/// Arguments of `process`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessArguments {
    /// List background commands, return what one has printed since it was last read, or stop one.
    pub action: ProcessAction,
    /// The id that `bash` returned. Needed for `output` and `stop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// What `process` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ProcessAction {
    /// List background commands.
    List,
    /// Return new output.
    Output,
    /// Stop one.
    Stop,
}

/// Arguments of `read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArguments {
    /// The file, relative to the working directory or absolute.
    pub path: String,
    /// The first line to return, counted from 1. 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Most lines to return, 1 to 2000. 2000 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Arguments of `todo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoArguments {
    /// The whole list, at most 50 items. It replaces the list before.
    pub items: Vec<TodoItem>,
}

/// A task on the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoItem {
    /// What to do, at most 500 characters.
    pub text: String,
    /// How far it is.
    pub state: TodoState,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum TodoState {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Done,
}

/// Arguments of `write`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteArguments {
    /// The file, relative to the working directory or absolute. Missing directories are made.
    pub path: String,
    /// The whole content.
    pub content: String,
}
