//! The history of a session: events, turns, status changes, texts and tokens.

use std::borrow::Cow;

use events::{Confidence, Event, Provider, Reason, SessionId, Source, State, Timestamp, WireError};
use projections::{ConversationItem, Turn};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::list::{CommaList, Limit};

/// Which events of a session to list, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EventsQuery {
    /// Only events with a higher sequence (default 0).
    pub after: Option<u64>,
    /// The `next_cursor` of the previous page.
    pub cursor: Option<u64>,
    /// Events on a page (default 200, at most 1000).
    pub limit: Option<Limit>,
    /// Only events of these kinds.
    #[serde(skip_serializing_if = "CommaList::is_empty")]
    pub kind: CommaList<events::Kind>,
}

/// A page of events, as the server sends it and a client reads it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EventPage {
    /// The position of the log the page reflects.
    #[serde(default)]
    pub as_of: u64,
    /// The events.
    pub events: Vec<RawEvent>,
    /// Continues the list; `null` on the last page.
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// The sequence of the last event, to pass as `after`.
    pub next_after: u64,
}

/// Which notable events of all sessions to list, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TimelineQuery {
    /// Only this session. Any of its ids is accepted.
    pub session: Option<String>,
    /// Only sessions of these agents.
    #[serde(skip_serializing_if = "CommaList::is_empty")]
    pub agent: CommaList<Provider>,
    /// Only events of these kinds. Messages, tool calls and similar events are listed only per session, except
    /// failures, which are listed here whatever their kind.
    #[serde(skip_serializing_if = "CommaList::is_empty")]
    pub kind: CommaList<events::Kind>,
    /// Only sessions that work in this directory or below it; an absolute path.
    pub cwd: Option<String>,
    /// `true`: only errors, findings, and other events with a severity of at least `warning`, such as failed tools.
    pub failures: Option<bool>,
    /// Only events of this time or later.
    pub since: Option<Timestamp>,
    /// Only events before this time.
    pub until: Option<Timestamp>,
    /// The `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Events on a page (default 200, at most 1000).
    pub limit: Option<Limit>,
}

/// A page of events of all sessions, the newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TimelinePage {
    /// The position of the log the page reflects.
    pub as_of: u64,
    /// The events.
    pub events: Vec<RawEvent>,
    /// The sessions they belong to.
    pub sessions: Vec<TimelineSession>,
    /// Continues the list with older events; `null` on the last page.
    pub next_cursor: Option<String>,
}

/// A session that events on a page belong to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineSession {
    /// Its id.
    pub id: SessionId,
    /// Its agent.
    pub provider: Provider,
    /// Its title.
    pub title: Option<String>,
    /// Its working directory.
    pub cwd: Option<String>,
}

/// An event as JSON. Event kinds of a newer version are passed on unparsed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RawEvent(Box<RawValue>);

impl RawEvent {
    /// The JSON text.
    #[must_use]
    pub fn json(&self) -> &str {
        self.0.get()
    }

    /// Parses the event.
    ///
    /// # Errors
    /// If this version does not support its kind or format.
    pub fn event(&self) -> Result<Event, WireError> {
        Event::from_json(self.0.get())
    }
}

impl JsonSchema for RawEvent {
    fn schema_name() -> Cow<'static, str> {
        EVENT.into()
    }

    // The OpenAPI document replaces this with the full schema.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

/// The name of the schema for events.
pub(crate) const EVENT: &str = "Event";

/// Which turns of a session, or changes of its status, to list, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HistoryQuery {
    /// Only items after this one. For turns, pass a turn's number; for status changes, the sequence of the event that
    /// records the change.
    pub after: Option<u64>,
    /// The `next_cursor` of the previous page.
    pub cursor: Option<u64>,
    /// Items on a page (at most 1000).
    pub limit: Option<Limit>,
}

impl HistoryQuery {
    /// The position after which the page begins.
    #[must_use]
    pub fn begins_after(&self) -> Option<u64> {
        self.cursor.or(self.after)
    }
}

impl EventsQuery {
    /// The position after which the page begins.
    #[must_use]
    pub fn begins_after(&self) -> u64 {
        self.cursor.or(self.after).unwrap_or_default()
    }
}

/// Which part of a conversation to read, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConversationQuery {
    /// Only items that begin after this sequence.
    pub after: Option<u64>,
    /// The `next_cursor` of the previous page.
    pub cursor: Option<u64>,
    /// Items on a page (default 100, at most 1000).
    pub limit: Option<Limit>,
    /// `whole`: long texts in full, up to 16 MiB on a page. Otherwise only their beginnings and ends, with the hash
    /// under which `/api/v1/texts/{hash}` returns the whole text.
    pub texts: Option<ConversationTexts>,
}

/// The form in which long texts of a conversation are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConversationTexts {
    /// Only their beginnings and ends.
    #[default]
    Short,
    /// In full.
    Whole,
}

impl ConversationQuery {
    /// The position after which the page begins.
    #[must_use]
    pub fn begins_after(&self) -> u64 {
        self.cursor.or(self.after).unwrap_or_default()
    }
}

/// A page of a conversation, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConversationPage {
    /// The position of the log the page reflects.
    pub as_of: u64,
    /// The items.
    pub items: Vec<ConversationItem>,
    /// Continues the list; `null` on the last page.
    pub next_cursor: Option<String>,
}

/// A note for continuing a session's work, as printed by `capture handoff`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandoffNote {
    /// The note in Markdown, without secrets; times are in UTC.
    pub markdown: String,
}

/// A page of turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnPage {
    /// The position of the log the page reflects.
    #[serde(default)]
    pub as_of: u64,
    /// The turns.
    pub turns: Vec<Turn>,
    /// Continues the list; `null` on the last page.
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// The number of the last turn, to pass as `after`.
    pub next_after: u32,
}

/// Which turns of all sessions to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecentTurnsQuery {
    /// Only turns that ended at this time or later, or have no end (default: all).
    pub since: Option<Timestamp>,
    /// The `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Turns on a page (default 200, at most 1000).
    pub limit: Option<Limit>,
}

/// A page of turns of all sessions, grouped by session and in order within each session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecentTurnPage {
    /// The position of the log the page reflects.
    pub as_of: u64,
    /// The turns.
    pub turns: Vec<SessionTurn>,
    /// Continues the list; `null` on the last page.
    pub next_cursor: Option<String>,
}

/// A turn and its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionTurn {
    /// The session.
    pub session_id: SessionId,
    /// The turn.
    pub turn: Turn,
}

/// One change of a session's status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusChange {
    /// The time of the change, by the clock of the evidence.
    pub at: Timestamp,
    /// When capture observed the change.
    pub observed_at: Timestamp,
    /// The state before; `null` for the first.
    pub from: Option<State>,
    /// The state after the change.
    pub to: State,
    /// The reason for the new state.
    pub reason: Option<Reason>,
    /// The confidence in the new state.
    pub confidence: Confidence,
    /// The source of the claim that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The claims that decided, as their sources worded them.
    pub evidence: Vec<String>,
    /// The sequence of the event that records the change.
    #[serde(default)]
    pub sequence: u64,
}

/// A page of status changes of a session, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusChangePage {
    /// The position of the log the page reflects.
    pub as_of: u64,
    /// The changes.
    pub changes: Vec<StatusChange>,
    /// Continues the list; `null` on the last page.
    pub next_cursor: Option<String>,
}
