//! The usage of each model call: one row per report of tokens, beside the log. The rows of a session are stored
//! together, so that a period is read session by session; the sessions are found by their last event.

use std::collections::BTreeMap;

use events::{Provider, QuotaReported, SessionId, Timestamp, UsageReported};
use projections::Usage;
use rusqlite::{Row, params};
use serde::Deserialize;

use crate::{
    accounts::{self, MOST_TOKENS},
    error::{CommitError, ReadError},
    reader::Reader,
    rows::{bits, lossy},
    session_row::SessionRow,
    writer::Writer,
};

/// A report of tokens to store.
#[derive(Debug, Clone, Copy)]
pub struct UsageEntry<'a> {
    /// The agent.
    pub provider: Provider,
    /// The position of its event.
    pub position: u64,
    /// When the call was made.
    pub at: Timestamp,
    /// The report.
    pub usage: &'a UsageReported,
    /// Whether this is the first report of tokens for its call.
    pub is_first: bool,
}

/// A stored report of tokens.
#[derive(Debug, Clone, Copy)]
pub struct ModelCall<'a> {
    /// The session.
    pub session: SessionRow,
    /// When the call was made.
    pub at: Timestamp,
    /// The model; empty if the agent does not report it.
    pub model: &'a str,
    /// The tokens.
    pub usage: Usage,
    /// The cost according to the agent, billionths of a US dollar.
    pub cost_nano_usd: Option<u64>,
    /// Whether this is the first report of tokens for its call.
    pub is_first: bool,
}

/// Selects reports.
#[derive(Debug, Clone, Copy)]
pub struct CallFilter {
    /// Only reports from this time on.
    pub since: Timestamp,
    /// Only reports before this time.
    pub until: Timestamp,
    /// Only reports of this session.
    pub session: Option<SessionRow>,
}

impl CallFilter {
    /// All reports.
    pub const ALL: Self = Self {
        since: Timestamp::from_millisecond(i64::MIN),
        until: Timestamp::from_millisecond(i64::MAX),
        session: None,
    };
}

/// The facts about a session that used tokens.
#[derive(Debug, Clone)]
pub struct SessionFacts {
    /// Its row.
    pub row: SessionRow,
    /// Its id.
    pub id: SessionId,
    /// The agent.
    pub provider: Provider,
    /// Its title.
    pub title: Option<String>,
    /// The directory it began in.
    pub directory: Option<String>,
    /// The session's parent, if it is a sub-agent.
    pub parent: Option<SessionId>,
    /// The agent's id of the session.
    pub provider_session_id: String,
    /// The agent's id of the session whose history it continues.
    pub forked_from: Option<String>,
}

/// The used part of a quota at a given time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaUse {
    /// The agent.
    pub provider: Provider,
    /// When the agent received it.
    pub at: Timestamp,
    /// The reported quota.
    pub quota: QuotaReported,
}

impl Writer {
    /// Stores a report of tokens and its quotas; for an agent's accounting, stores the sums.
    ///
    /// # Errors
    /// When SQLite cannot write.
    pub fn add_usage(&mut self, row: SessionRow, entry: &UsageEntry<'_>) -> Result<(), CommitError> {
        let failed = |source| CommitError { what: "usage", source };
        let usage = entry.usage;
        for quota in &usage.quotas {
            self.connection()
                .prepare_cached("INSERT OR IGNORE INTO quotas VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
                .and_then(|mut s| {
                    s.execute(params![
                        entry.provider.code(),
                        quota.name,
                        entry.at.as_millisecond(),
                        quota.window_minutes,
                        quota.used_permille,
                        quota.resets_at.map(Timestamp::as_millisecond)
                    ])
                })
                .map_err(failed)?;
        }
        if let Some(account) = &usage.account {
            return accounts::put(self.connection(), row, entry.at, account).map_err(failed);
        }
        let count = |n: u64| n.min(MOST_TOKENS) as i64;
        let counts = [
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.cache_write_hour_tokens,
            usage.thinking_tokens,
        ]
        .map(count);
        if counts == [0; 6] && usage.cost_nano_usd.is_none() && !usage.quotas.is_empty() {
            return Ok(());
        }
        let [input, output, read, write, hour, thinking] = counts;
        self.connection()
            .prepare_cached("INSERT OR REPLACE INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")
            .and_then(|mut s| {
                s.execute(params![
                    row.number(),
                    entry.position as i64,
                    entry.at.as_millisecond(),
                    usage.model.as_deref().unwrap_or(""),
                    input,
                    output,
                    read,
                    write,
                    hour,
                    thinking,
                    usage.cost_nano_usd.map(count),
                    // Only a report with tokens counts as a call.
                    entry.is_first && counts != [0; 6]
                ])
            })
            .map_err(failed)?;
        Ok(())
    }
}

const CALLS: &str = "SELECT session, at, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, \
    cache_write_hour_tokens, thinking_tokens, cost_nano_usd, first FROM usage";

impl Reader {
    /// Reads the reports of a period; those of a session are in log order.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn each_call(&self, filter: &CallFilter, mut each: impl FnMut(&ModelCall<'_>)) -> Result<(), ReadError> {
        self.with("usage", |c| {
            let sqlite = |source| ReadError::Sqlite { what: "usage", source };
            let sessions = match filter.session {
                Some(_) => "session = ?3",
                None => "session IN (SELECT key FROM sessions WHERE last_event_at >= ?1) AND ?3 IS NULL",
            };
            let sql = format!("{CALLS} WHERE {sessions} AND at >= ?1 AND at < ?2");
            let mut statement = c.prepare_cached(&sql).map_err(sqlite)?;
            let (since, until) = (filter.since.as_millisecond(), filter.until.as_millisecond());
            let mut rows =
                statement.query(params![since, until, filter.session.map(SessionRow::number)]).map_err(sqlite)?;
            while let Some(row) = rows.next().map_err(sqlite)? {
                each(&call(row).map_err(sqlite)?);
            }
            Ok(())
        })
    }

    /// The sessions with an event since a given time.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn session_facts(&self, since: Timestamp) -> Result<Vec<SessionFacts>, ReadError> {
        /// The fields of a session's view that are read here.
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Naming {
            title: Option<String>,
            cwd: Option<String>,
            began_in: Option<String>,
            parent_session_id: Option<SessionId>,
            forked_from: Option<String>,
        }
        self.with("sessions", |c| {
            let sqlite = |source| ReadError::Sqlite { what: "sessions", source };
            let mut statement = c
                .prepare_cached(
                    "SELECT key, id, provider, view, provider_session_id FROM sessions WHERE last_event_at >= ?1",
                )
                .map_err(sqlite)?;
            let rows = statement
                .query_map([since.as_millisecond()], |row| {
                    let id = SessionId::from_bytes(bits(row.get_ref(1)?.as_blob()?));
                    let text = |index| lossy(row, index).map(Option::unwrap_or_default);
                    Ok((SessionRow::of(row.get(0)?), id, row.get(2)?, text(3)?, text(4)?))
                })
                .map_err(sqlite)?;
            let mut sessions = Vec::new();
            for row in rows {
                let (row, id, provider, view, provider_session_id) = row.map_err(sqlite)?;
                // An unreadable view is shown without a title.
                let view: Naming = serde_json::from_str(&view).unwrap_or_default();
                let provider = Provider::from_code(provider).unwrap_or(Provider::Unknown);
                let directory = view.began_in.or(view.cwd);
                let (title, parent, forked_from) = (view.title, view.parent_session_id, view.forked_from);
                sessions.push(SessionFacts {
                    row,
                    id,
                    provider,
                    title,
                    directory,
                    parent,
                    provider_session_id,
                    forked_from,
                });
            }
            Ok(sessions)
        })
    }

    /// The usage of quotas, as last reported by agents.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn quotas(&self) -> Result<Vec<QuotaUse>, ReadError> {
        self.with("quotas", |c| {
            let sqlite = |source| ReadError::Sqlite { what: "quotas", source };
            let mut statement = c
                .prepare_cached(
                    "SELECT provider, max(at), name, window_minutes, used_permille, resets_at FROM quotas \
                     GROUP BY provider, name",
                )
                .map_err(sqlite)?;
            let rows = statement
                .query_map([], |row| {
                    Ok(QuotaUse {
                        provider: Provider::from_code(row.get(0)?).unwrap_or(Provider::Unknown),
                        at: Timestamp::from_millisecond(row.get(1)?),
                        quota: QuotaReported {
                            name: lossy(row, 2)?.unwrap_or_default(),
                            window_minutes: row.get(3)?,
                            used_permille: row.get(4)?,
                            resets_at: row.get::<_, Option<i64>>(5)?.map(Timestamp::from_millisecond),
                        },
                    })
                })
                .map_err(sqlite)?;
            rows.collect::<Result<_, _>>().map_err(sqlite)
        })
    }

    /// Tokens of all sessions, by provider and model.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn usage(&self) -> Result<Vec<(Provider, Option<String>, Usage)>, ReadError> {
        self.usage_of(None)
    }

    /// Tokens of one session, by model.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn session_usage(&self, id: SessionId) -> Result<Vec<(Provider, Option<String>, Usage)>, ReadError> {
        self.usage_of(Some(id))
    }

    fn usage_of(&self, id: Option<SessionId>) -> Result<Vec<(Provider, Option<String>, Usage)>, ReadError> {
        let facts = self.session_facts(CallFilter::ALL.since)?;
        let mut sums: BTreeMap<(Provider, Option<String>), Usage> = BTreeMap::new();
        for session in facts.iter().filter(|session| id.is_none_or(|id| session.id == id)) {
            let mut of_session: BTreeMap<String, Usage> = BTreeMap::new();
            self.each_call(&CallFilter { session: Some(session.row), ..CallFilter::ALL }, |call| {
                match of_session.get_mut(call.model) {
                    Some(sum) => sum.add_all(&call.usage),
                    None => drop(of_session.insert(call.model.to_owned(), call.usage)),
                }
            })?;
            for (model, usage) in of_session {
                let model = (!model.is_empty()).then_some(model);
                sums.entry((session.provider, model)).or_default().add_all(&usage.at_most(MOST_TOKENS));
            }
        }
        Ok(sums.into_iter().map(|((provider, model), usage)| (provider, model, usage)).collect())
    }
}

fn call<'a>(row: &'a Row<'_>) -> rusqlite::Result<ModelCall<'a>> {
    let count = |index: usize| row.get::<_, i64>(index).map(|n| n.max(0) as u64);
    Ok(ModelCall {
        session: SessionRow::of(row.get(0)?),
        at: Timestamp::from_millisecond(row.get(1)?),
        model: row.get_ref(2)?.as_str().unwrap_or_default(),
        usage: Usage {
            input_tokens: count(3)?,
            output_tokens: count(4)?,
            cache_read_tokens: count(5)?,
            cache_write_tokens: count(6)?,
            cache_write_hour_tokens: count(7)?,
            thinking_tokens: count(8)?,
        },
        cost_nano_usd: row.get::<_, Option<i64>>(9)?.map(|n| n.max(0) as u64),
        is_first: row.get(10)?,
    })
}

#[cfg(test)]
mod tests;
