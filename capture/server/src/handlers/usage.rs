//! Tokens, costs, quotas, and the quality of sessions.

use api::{
    ErrorCode,
    list::MAX_LIMIT,
    routes::{GetOverview, QualityOfAll, UsageOfAll},
    usage::{PeriodQuery, UsageBy},
};
use events::Timestamp;
use usage::{OverviewRequest, QualityRequest, SessionPeriod, UsageRequest};

use crate::{answer::HandlerResult, app::App, call::Call, error::ApiError, lookup::named, page};

/// The sessions and the period that a query selects.
async fn period(app: &App, query: PeriodQuery) -> Result<SessionPeriod, ApiError> {
    let PeriodQuery { since, until, session, agents, project } = query;
    Ok(SessionPeriod { since, until, session: named(app, session.as_deref()).await?, agents, project })
}

/// `GET /api/v1/usage`
pub(crate) async fn report(call: Call<UsageOfAll>) -> HandlerResult {
    let query = &call.query;
    let request = UsageRequest {
        by: query.by.unwrap_or(UsageBy::Model),
        of: period(&call.app, query.period()).await?,
        model: query.model.clone(),
        zone: usage::time_zone(query.tz.as_deref()).map_err(|why| ApiError::parameter("tz", why))?,
        limit: query.limit.map_or(MAX_LIMIT, |limit| limit.get()),
    };
    let own_prices = call.app.prices_file.clone();
    let report = call
        .app
        .read(move |reader| match usage::prices(own_prices.as_deref()) {
            Ok(prices) => usage::report(reader, &request, &prices).map(Ok),
            Err(error) => Ok(Err(error)),
        })
        .await?;
    match report {
        Ok(report) => call.app.redacted(&report),
        Err(error) => Err(ApiError::new(ErrorCode::Conflict, error.to_string()).hint("correct the file and retry")),
    }
}

/// `GET /api/v1/usage/quality`
pub(crate) async fn quality(call: Call<QualityOfAll>) -> HandlerResult {
    let query = &call.query;
    let request = QualityRequest {
        of: period(&call.app, query.period()).await?,
        limit: query.limit.map_or(MAX_LIMIT, |limit| limit.get()),
    };
    let report = call.app.read(move |reader| usage::quality(reader, &request)).await?;
    call.app.redacted(&report)
}

/// The default period without `since`, ms.
const OVERVIEW_MS: i64 = 24 * 3_600 * 1_000;
/// Maximum period, ms.
const LONGEST_OVERVIEW_MS: i64 = 90 * OVERVIEW_MS;

/// `GET /api/v1/overview`
pub(crate) async fn overview(call: Call<GetOverview>) -> HandlerResult {
    let query = &call.query;
    let until = query.until.unwrap_or_else(|| call.app.now());
    let since = query.since.unwrap_or(until.plus_ms(-OVERVIEW_MS)).max(Timestamp::MIN);
    if !(0..=LONGEST_OVERVIEW_MS).contains(&until.since_ms(since)) {
        return Err(ApiError::parameter("since", "must be before `until`, and at most 90 days before it"));
    }
    let request = OverviewRequest {
        since,
        until,
        zone: usage::time_zone(query.tz.as_deref()).map_err(|why| ApiError::parameter("tz", why))?,
        limit: page::limit(query.limit),
    };
    let overview = call.app.read(move |reader| usage::overview(reader, &request)).await?;
    call.app.redacted(&overview)
}
