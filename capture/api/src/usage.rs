//! Tokens and costs, quotas, and the quality of sessions.

use std::{collections::BTreeMap, fmt, str::FromStr};

use events::{Provider, SessionId, Timestamp};
use projections::{FailureKind, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::list::{CommaList, Limit};

/// What a row of a report stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageBy {
    /// A day.
    Day,
    /// A week, which begins on Monday.
    Week,
    /// A month.
    Month,
    /// A block of five hours, as in the quotas of subscriptions. It begins with the hour of its first call; the next
    /// block begins with the first call after five hours, or after five hours without a call.
    Block,
    /// A directory in which sessions began.
    Project,
    /// A model of an agent.
    Model,
    /// A session.
    Session,
    /// An agent.
    Agent,
}

impl UsageBy {
    /// All kinds of rows.
    pub const ALL: &'static [Self] =
        &[Self::Day, Self::Week, Self::Month, Self::Block, Self::Project, Self::Model, Self::Session, Self::Agent];

    /// Whether rows represent periods.
    #[must_use]
    pub const fn is_time(self) -> bool {
        matches!(self, Self::Day | Self::Week | Self::Month | Self::Block)
    }

    /// The name in all interfaces.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Block => "block",
            Self::Project => "project",
            Self::Model => "model",
            Self::Session => "session",
            Self::Agent => "agent",
        }
    }
}

impl fmt::Display for UsageBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for UsageBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|by| by.as_str() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|by| by.as_str()).collect();
            format!("unknown value `{}`; expected one of {}", crate::part::shown(text), names.join(", "))
        })
    }
}

/// The sessions and the period that a query selects.
#[derive(Debug, Clone)]
pub struct PeriodQuery {
    /// Start of the period, inclusive.
    pub since: Option<Timestamp>,
    /// End of the period, exclusive.
    pub until: Option<Timestamp>,
    /// Only this session. Any of its ids is accepted.
    pub session: Option<String>,
    /// Only sessions of these agents; if empty, all agents.
    pub agents: Vec<Provider>,
    /// Only sessions that began in a directory with this name or path.
    pub project: Option<String>,
}

/// Queries that select sessions and a period, plus fields of their own. The common fields are repeated in each struct,
/// because query strings cannot be nested.
macro_rules! session_queries {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty,)* })*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct $name {
            $($(#[$fdoc])* pub $field: $ty,)*
            /// Only calls made, or turns ended, from this time on.
            pub since: Option<Timestamp>,
            /// Only calls made, or turns ended, before this time.
            pub until: Option<Timestamp>,
            /// Only this session and its sub-agents. Any id of the session is accepted.
            pub session: Option<String>,
            /// Only sessions of these agents.
            #[serde(skip_serializing_if = "CommaList::is_empty")]
            pub agent: CommaList<Provider>,
            /// Only sessions that began in a directory with this name or path.
            pub project: Option<String>,
            /// Rows (default and at most 1000).
            pub limit: Option<Limit>,
        }

        impl $name {
            /// The sessions and the period.
            #[must_use]
            pub fn period(&self) -> PeriodQuery {
                let Self { since, until, session, agent, project, .. } = self.clone();
                PeriodQuery { since, until, session, agents: agent.0, project }
            }
        }
    )* };
}

session_queries! {
    /// Which tokens to sum up.
    UsageQuery {
        /// What a row stands for (default `model`).
        by: Option<UsageBy>,
        /// Only calls of this model, with the name used in rows by `model`.
        model: Option<String>,
        /// The time zone of days, weeks and months, as `Europe/Berlin` (default: that of the server).
        tz: Option<String>,
    }
    /// Which sessions to judge, most recent turn first.
    QualityQuery {}
}

/// Tokens and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageSums {
    /// The tokens.
    #[serde(flatten)]
    pub tokens: Usage,
    /// Calls of models. Usage that an agent reports beyond the calls in its transcripts counts as one call per session
    /// and model.
    pub calls: u64,
    /// What the calls with a known price cost, US dollars; `null` when no call has one.
    pub cost_usd: Option<f64>,
    /// The part of `cost_usd` that agents reported themselves.
    pub reported_cost_usd: f64,
    /// Calls without a known price; `cost_usd` does not include them.
    pub unpriced_calls: u64,
    /// The part of the input that a cache served, 0 to 1; `null` without input.
    pub cache_hit_rate: Option<f64>,
}

/// Tokens and costs in a period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReport {
    /// What a row stands for.
    pub by: UsageBy,
    /// Start of the period; `null` when it has none.
    #[serde(default)]
    pub since: Option<Timestamp>,
    /// End of the period; `null` when it has none.
    #[serde(default)]
    pub until: Option<Timestamp>,
    /// The sum.
    pub total: UsageSums,
    /// The rows: periods in order; other rows by cost and tokens, sub-agents included, highest first.
    pub usage: Vec<UsageRow>,
    /// Number of rows omitted because of `limit`: the oldest periods, or the rows that cost least.
    pub more_rows: u64,
    /// Models whose price is not known.
    pub unpriced_models: Vec<String>,
    /// The date of the prices.
    pub prices_date: String,
    /// The quotas, as last reported by agents.
    pub quotas: Vec<QuotaView>,
}

/// The tokens of a period, a project, a model, a session or an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageRow {
    /// The day, as `2026-11-23`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The week, by its Monday (`2026-11-23`); the month (`2026-11`); or the start of the block, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The session whose sub-agent this session is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<SessionId>,
    /// The title of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// The model; `null` if the agent does not report it, and in rows by anything else.
    pub model: Option<String>,
    /// The sums; those of a session exclude its sub-agents.
    #[serde(flatten)]
    pub sums: UsageSums,
    /// The sums of the session's sub-agents, which have rows of their own too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagents: Option<UsageSums>,
}

/// A quota and how far it is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaView {
    /// The agent that reported it.
    pub provider: Provider,
    /// The provider's name for the quota.
    pub name: String,
    /// Length of its window, minutes.
    pub window_minutes: Option<u32>,
    /// Percentage used at the last report.
    pub used_percent: f64,
    /// Time of the last report.
    pub at: Timestamp,
    /// When its window ends.
    pub resets_at: Option<Timestamp>,
    /// Time at which the quota will be used up if usage continues at the average rate of its window so far; `null` if
    /// that is after the end of the window, or cannot be estimated.
    pub used_up_at: Option<Timestamp>,
}

/// How well work went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quality {
    /// Turns that have ended.
    pub turns: u64,
    /// Turns that the agent finished.
    pub completed_turns: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Tool calls that failed.
    pub failed_calls: u64,
    /// Number of failures, by kind.
    pub failures: BTreeMap<FailureKind, u64>,
    /// How often a test failed, files were edited, and the same test ran again; `null` if capture did not count this
    /// yet when the turns ran.
    pub test_fix_loops: Option<u64>,
    /// Duration of the turns without the time they waited for approvals, ms.
    pub active_ms: u64,
    /// How long the agent waited for the user, ms: for approvals, and in gaps of at most 30 minutes between two turns.
    pub waiting_ms: u64,
    /// Sum of the gaps between two turns that are longer than 30 minutes, ms.
    pub idle_ms: u64,
}

/// How well a session went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionQuality {
    /// The session.
    pub session_id: SessionId,
    /// The agent.
    pub provider: Provider,
    /// Its title.
    pub title: Option<String>,
    /// The end of its last turn.
    pub last_turn_at: Timestamp,
    /// The figures.
    #[serde(flatten)]
    pub quality: Quality,
}

/// How long people took to answer requests for permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalLatency {
    /// The tool; absent for all tools together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Requests that people answered.
    pub answered: u64,
    /// Half of them were answered within this time, ms.
    pub p50_ms: u64,
    /// Nine of ten were answered within this time, ms.
    pub p90_ms: u64,
}

/// How well sessions went. A sub-agent counts only through the figures in its parent's turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QualityReport {
    /// Start of the period; `null` when it has none.
    #[serde(default)]
    pub since: Option<Timestamp>,
    /// End of the period; `null` when it has none.
    #[serde(default)]
    pub until: Option<Timestamp>,
    /// All sessions together.
    pub total: Quality,
    /// The sessions.
    pub sessions: Vec<SessionQuality>,
    /// Sessions that were left out because of `limit`.
    pub more_sessions: u64,
    /// How long requests waited for people: all tools together, then each tool, the most frequent first.
    pub approvals: Vec<ApprovalLatency>,
}
