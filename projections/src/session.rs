//! The view of one session after an event.

use events::{ApprovalId, Confidence, Provider, Reason, RunId, SessionId, Source, State, Timestamp, TurnId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One session: a conversation of one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Ours.
    pub id: SessionId,
    /// The agent.
    pub provider: Provider,
    /// The agent's own id of it.
    pub provider_session_id: Option<String>,
    /// The run that hosts it, when capture started its process.
    #[schemars(with = "Option<String>")]
    pub run_id: Option<RunId>,
    /// The session whose helper this is.
    pub parent_session_id: Option<SessionId>,
    /// The session this one turned out to be; ask there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<SessionId>,
    /// The session whose history this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
    /// Title: the agent's or user's name for it, else what the last prompt that is a task of its own asks for.
    pub title: Option<String>,
    /// Working directory.
    pub cwd: Option<String>,
    /// Where it began: what is its own to work on. No `cd` and no record that comes later moves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_in: Option<String>,
    /// Git branch.
    pub git_branch: Option<String>,
    /// What the user labelled it with.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub labels: std::collections::BTreeMap<String, String>,
    /// How the user marked it for their lists; absent while it has no mark.
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
    /// Whether a program runs it and nobody can type into it (`claude -p`, `codex exec`): it never waits for a prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub headless: bool,
    /// Process id, while it is alive.
    pub pid: Option<u32>,
    /// First sign of it.
    pub started_at: Timestamp,
    /// Last event of it.
    pub last_event_at: Timestamp,
    /// Last prompt of a person.
    pub last_user_prompt_at: Option<Timestamp>,
    /// Last output of the model.
    pub last_assistant_output_at: Option<Timestamp>,
    /// What it is doing, and why we say so.
    pub status: SessionStatus,
    /// Ids of the approvals it waits for.
    pub pending_approvals: Vec<ApprovalId>,
    /// How long it waited for approvals that are closed, ms, one by one.
    #[serde(default)]
    pub approval_wait_ms: u64,
    /// The open turn.
    pub turn: Option<OpenTurn>,
    /// Turns so far, the open one included.
    pub turns: u32,
    /// Tokens so far.
    pub usage: Usage,
    /// What failed so far, by its sort: tool results and errors.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub failures: std::collections::BTreeMap<crate::FailureKind, u32>,
    /// What it is about, in three lines.
    pub summary: Summary,
    /// Its files.
    pub transcripts: Vec<TranscriptView>,
    /// Whether capture sees all of it.
    pub health: SessionHealth,
    /// Sequence of its last event.
    pub last_sequence: u64,
}

/// How the user marked a session for their lists. Of no meaning to its status, and to no rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Marks")]
pub struct SessionMarks {
    /// Whether it stands before others.
    pub pinned: bool,
    /// Until when it is hidden, unless it needs the user.
    pub snoozed_until: Option<Timestamp>,
    /// Whether it is put away.
    pub archived: bool,
}

/// A change of a session's marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkChange {
    /// Pins it, or takes the pin off.
    Pinned(bool),
    /// Hides it until then, or no longer.
    SnoozedUntil(Option<Timestamp>),
    /// Puts it away, or back.
    Archived(bool),
}

impl MarkChange {
    /// The change as an annotation has it.
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

    /// Reads a change; `None` when it is not one that this version knows.
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
    /// These marks with a change; `None` when there is none left.
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
    /// Why.
    pub reason: Option<Reason>,
    /// Since when, by the clock of the evidence.
    pub since: Timestamp,
    /// How sure we are.
    pub confidence: Confidence,
    /// What is going on, in one line: the command, the tool, the question.
    pub activity: Option<String>,
    /// The claims that decided.
    pub evidence: Vec<Evidence>,
    /// Claims that say otherwise and were overruled.
    pub disagreements: Vec<Evidence>,
}

/// A claim about the state and who made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Who.
    pub source: Source,
    /// What, in the source's words.
    pub claim: String,
    /// When.
    pub at: Timestamp,
    /// How far it can be trusted.
    pub strength: Confidence,
}

/// The turn that is going on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenTurn {
    /// Its id.
    pub id: TurnId,
    /// What was asked, shortened.
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
    /// Those of them that stay in the cache for an hour instead of five minutes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_hour_tokens: u64,
    /// Output tokens spent on thinking, as far as the agent tells.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub thinking_tokens: u64,
}

fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

/// What a session is about, without asking a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// What it is doing now.
    pub current: Option<String>,
    /// What it did lately, the newest turn first: files changed, commands, tests, approvals, errors.
    pub recent: Option<String>,
    /// What was asked last.
    pub last_prompt: Option<String>,
}

/// One file of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptView {
    /// Absolute path.
    pub path: String,
    /// Size when last looked at, bytes.
    pub size: u64,
    /// Read up to here, bytes.
    pub offset: u64,
    /// Which of the files that had this path, from 1.
    pub generation: u32,
    /// Records that were damaged or not understood.
    pub issues: u64,
}

/// Whether capture sees all of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Health")]
pub enum SessionHealth {
    /// All is read.
    #[default]
    Ok,
    /// There is more in its files than was read so far.
    Behind,
    /// Some of its records were damaged or not understood.
    Issues,
}
