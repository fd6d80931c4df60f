//! The activity of all sessions in a period, for charts: which agents worked when, how long they waited for people, and
//! the findings.

use events::{ApprovalId, Confidence, FindingId, FindingKind, Provider, SessionId, State, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::list::Limit;

/// The period to show.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OverviewQuery {
    /// Start of the period, inclusive (default: 24 hours before `until`).
    pub since: Option<Timestamp>,
    /// End of the period, exclusive (default: now). At most 90 days after `since`.
    pub until: Option<Timestamp>,
    /// The time zone of the days, such as `Europe/Berlin` (default: that of the server).
    pub tz: Option<String>,
    /// Sessions in `lanes` (default 100, at most 1000), most recent event first.
    pub limit: Option<Limit>,
}

/// The activity of all sessions in a period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overview {
    /// The position of the log it reflects.
    #[serde(default)]
    pub as_of: u64,
    /// Start of the period.
    pub since: Timestamp,
    /// End of the period.
    pub until: Timestamp,
    /// How the time of the sessions in `lanes` was spent, by day.
    pub days: Vec<DaySplit>,
    /// How long permission requests waited.
    pub approval_waits: ApprovalWaits,
    /// How often each kind of finding began, by day.
    pub findings: Vec<DayFindings>,
    /// The sessions, each with its states over time.
    pub lanes: Vec<Lane>,
    /// Sessions that were left out because of `limit`.
    pub more_lanes: u64,
}

/// How the time of a day was spent, summed over sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DaySplit {
    /// The day: `2026-11-23`.
    pub day: String,
    /// Seconds during which a model was working.
    pub agent_s: u64,
    /// Seconds during which a tool ran.
    pub tool_s: u64,
    /// Seconds during which agents waited for a person. Of each wait, only the first 30 minutes count; after that, the
    /// person is considered away.
    pub waiting_s: u64,
}

/// How long permission requests waited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalWaits {
    /// The number of requests by waiting time.
    pub buckets: Vec<WaitBucket>,
    /// Median waiting time of the requests that a person answered, seconds.
    pub p50_s: Option<f64>,
    /// 90th percentile of the waiting time of the requests that a person answered, seconds.
    pub p90_s: Option<f64>,
    /// Waiting times by tool, most frequent tool first.
    pub by_tool: Vec<ToolWaits>,
}

/// Requests with similar waiting times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitBucket {
    /// Upper bound of the wait in this bucket, inclusive, seconds; the previous bucket's bound is the lower bound.
    /// `null` for the last bucket.
    pub up_to_s: Option<u32>,
    /// Number of requests answered by a person.
    pub person: u64,
    /// Number of requests answered by a rule or by an allowance for the session.
    pub rule: u64,
    /// Number of requests that expired or were withdrawn without an answer.
    pub expired: u64,
}

/// How long requests for a tool waited for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolWaits {
    /// The tool.
    pub tool: String,
    /// Requests that a person answered.
    pub count: u64,
    /// Median waiting time, seconds.
    pub p50_s: f64,
    /// 90th percentile of the waiting time, seconds.
    pub p90_s: f64,
}

/// Findings of a kind that began on a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DayFindings {
    /// The day: `2026-11-23`.
    pub day: String,
    /// The kind.
    pub kind: FindingKind,
    /// Number of findings.
    pub count: u64,
}

/// The states of a session over time.
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
    /// Permission requests and beginnings of findings, by time.
    pub marks: Vec<LaneMark>,
}

/// A period in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LaneSegment {
    /// The state.
    pub state: State,
    /// Start of the period.
    pub from: Timestamp,
    /// End of the period.
    pub until: Timestamp,
    /// The confidence in the state.
    pub confidence: Confidence,
}

/// A permission request, or the beginning of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LaneMark {
    /// The time.
    pub at: Timestamp,
    /// Its kind.
    pub kind: LaneMarkKind,
    /// The permission request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    /// The finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<FindingId>,
}

/// The kind of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LaneMarkKind {
    /// The agent asked for permission.
    Approval,
    /// A finding began.
    Finding,
}
