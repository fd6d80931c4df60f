//! Tokens, costs, quotas, and how well sessions went.

use api::{
    ErrorCode,
    list::MAX_LIMIT,
    routes::{QualityOfAll, UsageOfAll},
    usage::{PeriodQuery, UsageBy},
};
use usage::{QualityRequest, SessionPeriod, UsageRequest};

use crate::{answer::HandlerResult, app::App, call::Call, error::ApiError, lookup::named};

/// The sessions and the time that a query names.
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
