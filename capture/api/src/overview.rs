//! The activity of all sessions in a period, for charts: which agents worked when, how long they waited for people, and
//! the findings.

use events::{ApprovalId, Confidence, FindingId, FindingKind, Provider, SessionId, State, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::list::Limit;

/// Which time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OverviewQuery {
    /// From this time on (default: 24 hours before `until`).
    pub since: Option<Timestamp>,
    /// Before this time (default: now). At most 90 days after `since`.
    pub until: Option<Timestamp>,
    /// The time zone of the days, such as `Europe/Berlin` (default: that of the server).
    pub tz: Option<String>,
    /// Lanes (default 100, at most 1000), those with the newest event first.
    pub limit: Option<Limit>,
}

/// What went on in all sessions over a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overview {
    /// The position of the log it reflects.
    #[serde(default)]
    pub as_of: u64,
    /// Its beginning.
    pub since: Timestamp,
    /// Its end.
    pub until: Timestamp,
    /// How the time of the sessions in `lanes` was spent, by day.
    pub days: Vec<DaySplit>,
    /// How long permission requests waited.
    pub approval_waits: ApprovalWaits,
    /// How often each kind of finding began, by day.
    pub findings: Vec<DayFindings>,
    /// The sessions and what each was doing when.
    pub lanes: Vec<Lane>,
    /// Sessions that were left out because of `limit`.
    pub more_lanes: u64,
}

/// How the time of a day was spent, summed over sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DaySplit {
    /// The day: `2026-11-23`.
    pub day: String,
    /// The model was at work, seconds.
    pub agent_s: u64,
    /// A tool ran, seconds.
    pub tool_s: u64,
    /// A person was waited for, seconds; of one wait at most the first 30 minutes, since then the person is away.
    pub waiting_s: u64,
}

/// How long permission requests waited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalWaits {
    /// The requests by how long they waited.
    pub buckets: Vec<WaitBucket>,
    /// Of those that a person answered, the median, seconds.
    pub p50_s: Option<f64>,
    /// Of those that a person answered, 90 percent waited no longer, seconds.
    pub p90_s: Option<f64>,
    /// The same by tool, the most frequent first.
    pub by_tool: Vec<ToolWaits>,
}

/// Requests that waited about as long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitBucket {
    /// They waited this long or less, seconds, and longer than those of the bucket before; `null` for the last.
    pub up_to_s: Option<u32>,
    /// A person answered.
    pub person: u64,
    /// A rule answered, or what a person allowed for the session.
    pub rule: u64,
    /// Nobody answered: they expired or were withdrawn.
    pub expired: u64,
}

/// How long requests for a tool waited for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolWaits {
    /// The tool.
    pub tool: String,
    /// Requests that a person answered.
    pub count: u64,
    /// The median, seconds.
    pub p50_s: f64,
    /// 90 percent waited no longer, seconds.
    pub p90_s: f64,
}

/// Findings of a kind that began on a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DayFindings {
    /// The day: `2026-11-23`.
    pub day: String,
    /// The kind.
    pub kind: FindingKind,
    /// How many.
    pub count: u64,
}

/// What a session was doing when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lane {
    /// The session.
    pub session_id: SessionId,
    /// Its agent.
    pub provider: Provider,
    /// Its title.
    pub title: Option<String>,
    /// Its states, one after another.
    pub segments: Vec<LaneSegment>,
    /// What happened at a moment.
    pub marks: Vec<LaneMark>,
}

/// A state for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LaneSegment {
    /// The state.
    pub state: State,
    /// Since when.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
    /// How sure that is.
    pub confidence: Confidence,
}

/// Something that happened at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LaneMark {
    /// When.
    pub at: Timestamp,
    /// What.
    pub kind: LaneMarkKind,
    /// The permission request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    /// The finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<FindingId>,
}

/// What happened at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LaneMarkKind {
    /// The agent asked for permission.
    Approval,
    /// A finding began.
    Finding,
}
