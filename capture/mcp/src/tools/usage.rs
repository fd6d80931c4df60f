//! Tokens, costs and quotas.

use api::{
    routes::UsageOfAll,
    usage::{UsageBy, UsageQuery, UsageSums},
};
use events::{Provider, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ToolError,
    sessions::{find, limited},
};
use crate::{
    link::Link,
    text::{NOTE, line, maybe_line},
};

/// Default and maximum number of rows in an answer.
const ROWS: (usize, usize) = (20, 100);
/// Maximum length of the name of a model, a project or a quota, characters.
const NAME: usize = 240;
/// Maximum number of listed models without a price.
const UNPRICED: usize = 50;

/// Which model calls to sum up.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UsageArguments {
    /// What a row stands for (default `model`).
    by: Option<UsageBy>,
    /// Only calls from this time on, as `2026-11-23T09:00:00Z`.
    since: Option<Timestamp>,
    /// Only calls before this time.
    until: Option<Timestamp>,
    /// Only this session and its sub-agents: its id, the agent's id, the name of its run, or at least 3 characters from
    /// the start or end of its id.
    session: Option<String>,
    /// Only sessions of these agents.
    agent: Vec<Provider>,
    /// Only sessions that began in a directory with this name or path.
    project: Option<String>,
    /// Rows in the answer (default 20, at most 100).
    limit: Option<usize>,
}

/// Tokens and what they cost.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UsageAnswer {
    /// How to read the texts of this answer.
    note: &'static str,
    /// What a row stands for.
    by: UsageBy,
    /// The sum of all rows, including omitted ones.
    total: Sums,
    /// The rows: periods in order; other rows by cost and tokens, highest first.
    rows: Vec<SumsRow>,
    /// Number of rows omitted because of `limit`: the oldest periods, or the rows that cost least.
    more_rows: u64,
    /// Models whose price is not known, at most 50.
    unpriced_models: Vec<String>,
    /// The date of the prices.
    prices_date: String,
    /// The quotas, as last reported by agents.
    quotas: Vec<Quota>,
}

/// Sums over calls of models.
#[derive(Debug, Serialize, JsonSchema)]
struct Sums {
    /// Calls of models.
    calls: u64,
    /// Input tokens that no cache served.
    input_tokens: u64,
    /// Output tokens, including the model's thinking.
    output_tokens: u64,
    /// Input tokens that a cache served.
    cache_read_tokens: u64,
    /// Input tokens that were written into a cache.
    cache_write_tokens: u64,
    /// What the calls with a known price cost, US dollars; absent if no call has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    /// Calls without a known price; `cost_usd` does not include them.
    unpriced_calls: u64,
}

/// The sums of a day, a project, a model, a session or an agent.
#[derive(Debug, Serialize, JsonSchema)]
struct SumsRow {
    /// The day, as `2026-11-23`.
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    /// The directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionId>,
    /// The title of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<Provider>,
    /// The model; absent if the agent does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The sums; those of a session exclude its sub-agents, which have rows of their own.
    sums: Sums,
}

/// A quota and how far it is used.
#[derive(Debug, Serialize, JsonSchema)]
struct Quota {
    /// The agent that reported it.
    agent: Provider,
    /// The provider's name for the quota.
    name: String,
    /// Percentage used at the last report.
    used_percent: f64,
    /// Time of the last report.
    at: Timestamp,
    /// When its window ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    resets_at: Option<Timestamp>,
    /// Time at which the quota will be used up if usage continues at the average rate of its window so far; absent if
    /// that is after the end of the window, or cannot be estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    used_up_at: Option<Timestamp>,
}

impl Sums {
    const fn of(sums: &UsageSums) -> Self {
        Self {
            calls: sums.calls,
            input_tokens: sums.tokens.input_tokens,
            output_tokens: sums.tokens.output_tokens,
            cache_read_tokens: sums.tokens.cache_read_tokens,
            cache_write_tokens: sums.tokens.cache_write_tokens,
            cost_usd: sums.cost_usd,
            unpriced_calls: sums.unpriced_calls,
        }
    }
}

pub(super) fn report(link: &Link, arguments: UsageArguments) -> Result<UsageAnswer, ToolError> {
    let session = match &arguments.session {
        Some(given) => Some(find(link, given)?.id.to_string()),
        None => None,
    };
    let query = UsageQuery {
        by: arguments.by,
        since: arguments.since,
        until: arguments.until,
        session,
        agent: arguments.agent.into(),
        project: arguments.project,
        model: None,
        tz: None,
        limit: Some(limited(arguments.limit, ROWS)),
    };
    let report = link.read(|client| client.get::<UsageOfAll>("", &query))?;
    let rows = report.usage.iter().map(|row| SumsRow {
        day: row.day.clone(),
        project: maybe_line(row.project.as_deref(), NAME),
        session: row.session_id,
        title: maybe_line(row.title.as_deref(), NAME),
        agent: row.provider,
        model: maybe_line(row.model.as_deref(), NAME),
        sums: Sums::of(&row.sums),
    });
    let quotas = report.quotas.iter().map(|quota| Quota {
        agent: quota.provider,
        name: line(&quota.name, NAME),
        used_percent: quota.used_percent,
        at: quota.at,
        resets_at: quota.resets_at,
        used_up_at: quota.used_up_at,
    });
    Ok(UsageAnswer {
        note: NOTE,
        by: report.by,
        total: Sums::of(&report.total),
        rows: rows.collect(),
        more_rows: report.more_rows,
        unpriced_models: report.unpriced_models.iter().take(UNPRICED).map(|name| line(name, NAME)).collect(),
        prices_date: report.prices_date,
        quotas: quotas.collect(),
    })
}
