//! Sessions: their current state, and the changes a client can make to them.

use std::collections::BTreeMap;

use events::{Provider, Reason, SessionId, State, Timestamp};
use projections::{Account, MarkChange, Session, SessionStatus, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::list::{CommaList, Limit};

/// Which sessions to list, most recent event first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SessionsQuery {
    /// Only sessions in these states; `active` then defaults to `all`.
    #[serde(skip_serializing_if = "CommaList::is_empty")]
    pub state: CommaList<State>,
    /// Only sessions of these agents.
    #[serde(skip_serializing_if = "CommaList::is_empty")]
    pub provider: CommaList<Provider>,
    /// Only sessions with exactly this working directory.
    pub cwd: Option<String>,
    /// Only the sub-agents of this session, and the sessions that continue its history.
    pub parent: Option<String>,
    /// `true` (default): sessions that have not exited and were not idle or unknown for long; `all`: every session.
    pub active: Option<ActiveFilter>,
    /// The `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Sessions on a page (default 100, at most 1000).
    pub limit: Option<Limit>,
}

/// The active sessions, or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ActiveFilter {
    /// Only active sessions.
    #[serde(rename = "true")]
    Active,
    /// Every session.
    #[serde(rename = "all")]
    All,
}

/// A page of sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionPage {
    /// The position of the log the page reflects.
    pub as_of: u64,
    /// The sessions.
    pub sessions: Vec<Session>,
    /// Continues the list; `null` on the last page.
    pub next_cursor: Option<String>,
}

/// A short summary of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// The session.
    pub id: SessionId,
    /// Its title.
    pub title: Option<String>,
    /// Its state.
    pub state: State,
    /// Why it is in that state.
    pub reason: Option<Reason>,
    /// What it is doing, in one word.
    pub activity: Option<String>,
    /// What it is doing, in one line.
    pub current: Option<String>,
    /// What it did last, in one line.
    pub recent: Option<String>,
    /// The last prompt, shortened.
    pub last_prompt: Option<String>,
    /// What the checks of the last finished turn showed: `tests 297 passed, then 5 edits · commit failed ×7`. Absent while
    /// a turn is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<String>,
    /// Several lines for a tooltip.
    pub tooltip: String,
    /// When its last event happened.
    pub last_event_at: Timestamp,
}

/// The tokens of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionUsage {
    /// The session.
    pub id: SessionId,
    /// Its model.
    pub model: Option<String>,
    /// The tokens.
    #[serde(flatten)]
    pub usage: Usage,
}

/// The time for which a session's status is requested.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StatusQuery {
    /// The status at this time (RFC 3339); without it, the present status. A future time gives the status the
    /// session will have if nothing happens until then.
    pub at: Option<Timestamp>,
}

/// A session's status at a time, and the claims from which it was derived.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusAt {
    /// The session.
    pub session_id: SessionId,
    /// The requested time; `null` for the present.
    pub at: Option<Timestamp>,
    /// The status then.
    pub status: SessionStatus,
    /// Every claim in force at that time, and the rule that decided.
    pub account: Account,
}

/// Which state to wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitQuery {
    /// States to wait for; the first that is reached ends the wait.
    pub until: CommaList<State>,
    /// Ignore states before this position, which the answer to input contains. `waiting` and `idle` end the wait only
    /// once a turn has begun after the position.
    #[serde(default)]
    pub after: Option<u64>,
    /// Answer 408 after this time, ms (default 30000, at most 3600000).
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// Turns the capture of a session on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureRequest {
    /// Whether the session is to be captured.
    pub enabled: bool,
}

/// Whether a session is captured from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureAnswer {
    /// The session.
    pub id: SessionId,
    /// Whether it is captured.
    pub enabled: bool,
}

/// Labels to set on a session or to remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Labels {
    /// Values by key; `null` removes a label. At most 32, each key and value at most 100 characters.
    pub labels: BTreeMap<String, Option<String>>,
}

/// A note on a session, written by a person or by one of the user's rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// The sequence of its event.
    pub sequence: u64,
    /// When it was written.
    pub at: Timestamp,
    /// Its text.
    pub text: String,
}

/// The notes among a session's last 5,000 annotations, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notes {
    /// The notes.
    pub notes: Vec<Note>,
}

/// A note to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteRequest {
    /// Its text, 1 to 2,000 characters.
    pub text: String,
}

/// Changes of the marks of a session; absent fields are left unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MarksRequest {
    /// Whether it is listed before others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// Time until which it is hidden, unless it needs the user; `null` shows it again.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(with = "Option<Timestamp>")]
    pub snoozed_until: Option<Option<Timestamp>>,
    /// Whether it is archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
}

impl MarksRequest {
    /// The individual changes.
    #[must_use]
    pub fn changes(&self) -> Vec<MarkChange> {
        let pinned = self.pinned.map(MarkChange::Pinned);
        let snoozed = self.snoozed_until.map(MarkChange::SnoozedUntil);
        let archived = self.archived.map(MarkChange::Archived);
        pinned.into_iter().chain(snoozed).chain(archived).collect()
    }
}

/// Distinguishes a present field from an absent one; `null` counts as present.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marks_request_changes_only_the_fields_it_contains() {
        let changes = |text: &str| serde_json::from_str::<MarksRequest>(text).unwrap().changes();
        assert_eq!(changes("{}"), []);
        assert_eq!(changes(r#"{"snoozed_until":null}"#), [MarkChange::SnoozedUntil(None)]);
        let until = Timestamp::parse("2026-11-23T18:00:00Z");
        assert_eq!(
            changes(r#"{"pinned":false,"snoozed_until":"2026-11-23T18:00:00Z","archived":true}"#),
            [MarkChange::Pinned(false), MarkChange::SnoozedUntil(until), MarkChange::Archived(true)]
        );
    }
}
