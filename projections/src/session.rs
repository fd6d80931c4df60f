//! The view of one session after an event.

use events::{ApprovalId, Confidence, Provider, Reason, RunId, SessionId, Source, State, Timestamp, TurnId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One session: a conversation of one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// capture's id.
    pub id: SessionId,
    /// The agent.
    pub provider: Provider,
    /// The agent's own id of the session.
    pub provider_session_id: Option<String>,
    /// The run that hosts it, if capture started its process.
    #[schemars(with = "Option<String>")]
    pub run_id: Option<RunId>,
    /// The parent session, if this is a sub-agent.
    pub parent_session_id: Option<SessionId>,
    /// The session into which this one was merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<SessionId>,
    /// The session whose history this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
    /// The title: the name that the agent or the user gave it, otherwise the subject of the last prompt that is a
    /// separate task.
    pub title: Option<String>,
    /// Working directory.
    pub cwd: Option<String>,
    /// The directory in which it began, which is the workspace. No later `cd` or record changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_in: Option<String>,
    /// Git branch.
    pub git_branch: Option<String>,
    /// The labels that the user set.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub labels: std::collections::BTreeMap<String, String>,
    /// The user's marks, such as pinned or archived; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<SessionMarks>,
    /// Model.
    pub model: Option<String>,
    /// Version of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cli_version: Option<String>,
    /// Permission mode, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// Whether a program runs it, so that no person can type into it (`claude -p`, `codex exec`): it never waits for a
    /// prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub headless: bool,
    /// Process id, while it is alive.
    pub pid: Option<u32>,
    /// When it was first observed.
    pub started_at: Timestamp,
    /// The time of its last event.
    pub last_event_at: Timestamp,
    /// Last prompt of a person.
    pub last_user_prompt_at: Option<Timestamp>,
    /// Last output of the model.
    pub last_assistant_output_at: Option<Timestamp>,
    /// Its status, and the evidence.
    pub status: SessionStatus,
    /// Ids of the approvals it waits for.
    pub pending_approvals: Vec<ApprovalId>,
    /// Time it waited for approvals that are closed, ms; the sum over the approvals.
    #[serde(default)]
    pub approval_wait_ms: u64,
    /// The open turn.
    pub turn: Option<OpenTurn>,
    /// Turns so far, the open one included.
    pub turns: u32,
    /// Tokens so far.
    pub usage: Usage,
    /// Its failures so far, by kind: tool results and errors.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub failures: std::collections::BTreeMap<crate::FailureKind, u32>,
    /// A description in three lines.
    pub summary: Summary,
    /// Its files.
    pub transcripts: Vec<TranscriptView>,
    /// Whether capture has read all of it.
    pub health: SessionHealth,
    /// Sequence of its last event.
    pub last_sequence: u64,
}

/// The user's marks on a session for their lists. They affect neither its status nor any rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Marks")]
pub struct SessionMarks {
    /// Whether it is listed before others.
    pub pinned: bool,
    /// Time until which it is hidden, unless it needs the user.
    pub snoozed_until: Option<Timestamp>,
    /// Whether it is archived.
    pub archived: bool,
}

/// A change of one label of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelChange {
    /// The label's key; it contains no `=`.
    pub key: String,
    /// The new value; `None` removes the label.
    pub value: Option<String>,
}

impl LabelChange {
    /// The value of the annotation that stores the change: `key=value`, or `key` if the label is removed.
    #[must_use]
    pub fn to_annotation(&self) -> String {
        match &self.value {
            Some(value) => format!("{}={value}", self.key),
            None => self.key.clone(),
        }
    }

    /// Reads the change from the value of an annotation.
    #[must_use]
    pub fn of_annotation(annotation: &str) -> Self {
        match annotation.split_once('=') {
            Some((key, value)) => Self { key: key.to_owned(), value: Some(value.to_owned()) },
            None => Self { key: annotation.to_owned(), value: None },
        }
    }
}

/// A change of a session's marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkChange {
    /// Pins or unpins the session.
    Pinned(bool),
    /// Hides the session until this time; `None` shows it again.
    SnoozedUntil(Option<Timestamp>),
    /// Archives or restores the session.
    Archived(bool),
}

impl MarkChange {
    /// The value of the annotation that records the change.
    #[must_use]
    pub fn value(self) -> String {
        match self {
            Self::Pinned(true) => "pinned".into(),
            Self::Pinned(false) => "-pinned".into(),
            Self::SnoozedUntil(Some(until)) => format!("snoozed_until={until}"),
            Self::SnoozedUntil(None) => "-snoozed_until".into(),
            Self::Archived(true) => "archived".into(),
            Self::Archived(false) => "-archived".into(),
        }
    }

    /// Parses a change; `None` if this version does not know it.
    #[must_use]
    pub fn read(value: &str) -> Option<Self> {
        match value {
            "pinned" => Some(Self::Pinned(true)),
            "-pinned" => Some(Self::Pinned(false)),
            "archived" => Some(Self::Archived(true)),
            "-archived" => Some(Self::Archived(false)),
            "-snoozed_until" => Some(Self::SnoozedUntil(None)),
            other => Some(Self::SnoozedUntil(Some(Timestamp::parse(other.strip_prefix("snoozed_until=")?)?))),
        }
    }
}

impl SessionMarks {
    /// Applies a change to these marks; `None` if no mark remains.
    #[must_use]
    pub fn changed(mut self, change: MarkChange) -> Option<Self> {
        match change {
            MarkChange::Pinned(on) => self.pinned = on,
            MarkChange::SnoozedUntil(until) => self.snoozed_until = until,
            MarkChange::Archived(on) => self.archived = on,
        }
        (self != Self::default()).then_some(self)
    }
}

/// The status of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Status")]
pub struct SessionStatus {
    /// The state.
    pub state: State,
    /// The reason.
    pub reason: Option<Reason>,
    /// When it began, by the clock of the evidence.
    pub since: Timestamp,
    /// The confidence in the state.
    pub confidence: Confidence,
    /// The current activity, in one line: the command, the tool, the question.
    pub activity: Option<String>,
    /// The claims that decided.
    pub evidence: Vec<Evidence>,
    /// Claims with another state, which were overruled.
    pub disagreements: Vec<Evidence>,
}

/// A claim about the state, and its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The source.
    pub source: Source,
    /// The claim, in the source's words.
    pub claim: String,
    /// When.
    pub at: Timestamp,
    /// How far it can be trusted.
    pub strength: Confidence,
}

/// The open turn of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenTurn {
    /// Its id.
    pub id: TurnId,
    /// The prompt, shortened.
    pub prompt: Option<String>,
    /// When.
    pub started_at: Timestamp,
}

/// Tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Input tokens that no cache served.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens read from a cache.
    pub cache_read_tokens: u64,
    /// Input tokens written to a cache.
    pub cache_write_tokens: u64,
    /// The part of `cache_write_tokens` that stays in the cache for an hour instead of five minutes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_hour_tokens: u64,
    /// Output tokens spent on thinking, if the agent reports them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub thinking_tokens: u64,
}

fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

/// A description of a session, made without a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// What it is doing now.
    pub current: Option<String>,
    /// Its recent work, newest turn first: changed files, commands, tests, approvals, errors.
    pub recent: Option<String>,
    /// The last prompt.
    pub last_prompt: Option<String>,
    /// What the checks of the last finished turn showed, while no turn is open: `tests 297 passed, then 5 edits · commit
    /// failed ×7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<String>,
}

/// One file of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptView {
    /// Absolute path.
    pub path: String,
    /// Size at the last check, bytes.
    pub size: u64,
    /// Number of bytes read so far.
    pub offset: u64,
    /// The generation of the file at this path, from 1.
    pub generation: u32,
    /// Number of records that were damaged or unknown.
    pub issues: u64,
}

/// Whether capture has read all of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Health")]
pub enum SessionHealth {
    /// Everything was read.
    #[default]
    Ok,
    /// Its files contain more than was read so far.
    Behind,
    /// Some of its records were damaged or unknown.
    Issues,
}
