//! Usage according to the agents' own accounting, in addition to the reports of single calls. A row contains a
//! session's latest sums by model, or the sums of individually reported calls.

use std::collections::BTreeMap;

use events::{AccountScope, AccountedModel, Timestamp, UsageAccount, UsageReported};
use projections::Usage;
use rusqlite::{Connection, params};

use crate::{error::ReadError, reader::Reader, rows::lossy, session_row::SessionRow};

/// Maximum number of tokens in a row, and in the sum of a session and a model: a number in a transcript must not
/// overflow a sum.
pub(crate) const MOST_TOKENS: u64 = 1 << 48;

/// The sums for a session and a model according to the agent's own accounting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountedUse {
    /// The session.
    pub session: SessionRow,
    /// What the sums cover.
    pub scope: AccountScope,
    /// When the accounting began, ms; the same for all sessions of one process. 0 if not reported.
    pub began_at: i64,
    /// The model.
    pub model: String,
    /// When the sums were reported.
    pub at: Timestamp,
    /// The tokens.
    pub usage: Usage,
    /// The cost, billionths of a US dollar.
    pub cost_nano_usd: Option<u64>,
}

/// A row of session sums replaces the previous one; a call is added to the row.
const PUT: &str = "INSERT INTO accounts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) \
    ON CONFLICT DO UPDATE SET at = max(at, excluded.at), \
    input_tokens = excluded.input_tokens + iif(?2 = 2, input_tokens, 0), \
    output_tokens = excluded.output_tokens + iif(?2 = 2, output_tokens, 0), \
    cache_read_tokens = excluded.cache_read_tokens + iif(?2 = 2, cache_read_tokens, 0), \
    cache_write_tokens = excluded.cache_write_tokens + iif(?2 = 2, cache_write_tokens, 0), \
    cache_write_hour_tokens = excluded.cache_write_hour_tokens + iif(?2 = 2, cache_write_hour_tokens, 0), \
    thinking_tokens = excluded.thinking_tokens + iif(?2 = 2, thinking_tokens, 0), \
    cost_nano_usd = excluded.cost_nano_usd + iif(?2 = 2, cost_nano_usd, 0)";

/// Stores the sums of an agent's accounting.
pub(crate) fn put(
    connection: &Connection,
    row: SessionRow,
    at: Timestamp,
    account: &UsageAccount,
) -> rusqlite::Result<()> {
    let count = |n: u64| n.min(MOST_TOKENS) as i64;
    let began_at = account.began_at.map_or(0, Timestamp::as_millisecond);
    for sums in &account.models {
        let AccountedModel { model, cost_nano_usd, .. } = sums;
        connection.prepare_cached(PUT)?.execute(params![
            row.number(),
            account.scope.code(),
            began_at,
            model,
            at.as_millisecond(),
            count(sums.input_tokens),
            count(sums.output_tokens),
            count(sums.cache_read_tokens),
            count(sums.cache_write_tokens),
            count(sums.cache_write_hour_tokens),
            count(sums.thinking_tokens),
            cost_nano_usd.map(count),
        ])?;
    }
    Ok(())
}

/// Fills the table from the log.
pub(crate) fn put_all_from_log(connection: &Connection) -> rusqlite::Result<()> {
    // 17 is the code of `usage.reported`.
    let sql = "SELECT session, created_at, data FROM events \
               WHERE kind = 17 AND json_valid(data) AND data ->> '$.account' IS NOT NULL ORDER BY position";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (session, at) = (SessionRow::of(row.get(0)?), Timestamp::from_millisecond(row.get(1)?));
        let usage = serde_json::from_str::<UsageReported>(&lossy(row, 2)?.unwrap_or_default());
        if let Some(account) = usage.ok().and_then(|usage| usage.account) {
            put(connection, session, at, &account)?;
        }
    }
    Ok(())
}

impl Reader {
    /// The agents' own accounting, by session.
    ///
    /// # Errors
    /// When SQLite cannot read.
    pub fn accounts(&self) -> Result<BTreeMap<SessionRow, Vec<AccountedUse>>, ReadError> {
        self.with("accounts", |c| {
            let sqlite = |source| ReadError::Sqlite { what: "accounts", source };
            let mut statement = c.prepare_cached("SELECT * FROM accounts").map_err(sqlite)?;
            let rows = statement
                .query_map([], |row| {
                    let count = |index: usize| row.get::<_, i64>(index).map(|n| n.max(0) as u64);
                    Ok(AccountedUse {
                        session: SessionRow::of(row.get(0)?),
                        scope: AccountScope::from_code(row.get(1)?).unwrap_or_default(),
                        began_at: row.get(2)?,
                        model: lossy(row, 3)?.unwrap_or_default(),
                        at: Timestamp::from_millisecond(row.get(4)?),
                        usage: Usage {
                            input_tokens: count(5)?,
                            output_tokens: count(6)?,
                            cache_read_tokens: count(7)?,
                            cache_write_tokens: count(8)?,
                            cache_write_hour_tokens: count(9)?,
                            thinking_tokens: count(10)?,
                        },
                        cost_nano_usd: row.get::<_, Option<i64>>(11)?.map(|n| n.max(0) as u64),
                    })
                })
                .map_err(sqlite)?;
            let mut accounts: BTreeMap<SessionRow, Vec<AccountedUse>> = BTreeMap::new();
            for row in rows {
                let row = row.map_err(sqlite)?;
                accounts.entry(row.session).or_default().push(row);
            }
            Ok(accounts)
        })
    }
}

#[cfg(test)]
mod tests {
    use events::{Provider, SessionId};

    use super::*;
    use crate::{UsageEntry, Writer};

    fn account(scope: AccountScope, input_tokens: u64, cost_nano_usd: Option<u64>) -> UsageReported {
        let sums = AccountedModel { model: "m".into(), input_tokens, cost_nano_usd, ..AccountedModel::default() };
        let began_at = (scope == AccountScope::Session).then(|| Timestamp::from_millisecond(7));
        let account = Some(UsageAccount { scope, began_at, models: vec![sums] });
        UsageReported { account, ..UsageReported::default() }
    }

    #[test]
    fn session_accounts_replace_each_other_and_call_accounts_add_up() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(dir.path()).unwrap();
        let id = SessionId::mint(Timestamp::from_millisecond(5), Provider::Claude, "s");
        writer.begin().unwrap();
        let row = writer.add_session(id, Provider::Claude, "s").unwrap();
        let told = [
            account(AccountScope::Session, 10, Some(4)),
            account(AccountScope::Session, 25, Some(9)),
            account(AccountScope::Call, 3, Some(1)),
            account(AccountScope::Call, 4, None),
            account(AccountScope::Call, u64::MAX, None),
        ];
        for (position, usage) in (1..).zip(&told) {
            let at = Timestamp::from_millisecond(100 + position as i64);
            let entry = UsageEntry { provider: Provider::Claude, position, at, usage, is_first: true };
            writer.add_usage(row, &entry).unwrap();
        }
        writer.commit().unwrap();
        let reader = writer.reader();
        let accounts = reader.accounts().unwrap();
        let of = |index: usize| {
            let sums = &accounts[&row][index];
            (sums.scope, sums.began_at, sums.at.as_millisecond(), sums.usage.input_tokens, sums.cost_nano_usd)
        };
        assert_eq!(of(0), (AccountScope::Session, 7, 102, 25, Some(9)));
        assert_eq!(of(1), (AccountScope::Call, 0, 105, 7 + MOST_TOKENS, None), "a cost that is not whole is unknown");
        let mut calls = 0;
        reader.each_call(&crate::CallFilter::ALL, |_| calls += 1).unwrap();
        assert_eq!(calls, 0, "sums count as no call");
    }
}
