//! Findings of the monitor, read from the store. The daemon acknowledges them.

use api::{
    findings::FindingPage,
    list::MAX_LIMIT,
    part::{IdPart, PART_HINT, shown},
    routes::{AcknowledgeFinding, GetFinding, ListFindings},
};
use events::{Finding, FindingState};
use live_view::Refusal;
use store::{Entity, EntityFilter};

use crate::{
    answer::HandlerResult,
    app::App,
    call::Call,
    error::ApiError,
    lookup::named,
    page::{self, Cursor},
};

/// The word for a finding in errors, and the command that lists findings.
const FINDING: (&str, &str) = ("finding", "capture findings --all");

/// `GET /api/v1/findings`
pub(crate) async fn list(call: Call<ListFindings>) -> HandlerResult {
    let (app, query) = (&call.app, &call.query);
    let states = match query.state {
        None => Some(FindingState::Open..=FindingState::Acknowledged),
        Some(filter) => filter.state().map(|state| state..=state),
    };
    let limit = page::limit(query.limit);
    let mut behind = Cursor::read(query.cursor.as_deref())?.map(Into::into);
    let session = named(app, query.session.as_deref()).await?;
    let as_of = app.live_view.mark().position;
    let kinds = &query.kind.0;
    let mut findings: Vec<Finding> = Vec::new();
    // The findings of one kind may be far back.
    loop {
        let page = if kinds.is_empty() { limit + 1 } else { MAX_LIMIT };
        let filter = EntityFilter { states: states.clone(), session, limit: page, behind: behind.take() };
        let found: Vec<Finding> = app.read(move |reader| reader.entities(&filter)).await?;
        let last_page = found.len() < page;
        behind = found.last().map(|finding| Cursor::of(finding).into());
        findings.extend(found.into_iter().filter(|finding| kinds.is_empty() || kinds.contains(&finding.kind)));
        if findings.len() > limit || last_page {
            break;
        }
    }
    let next_cursor = page::cut(&mut findings, limit, Cursor::of);
    call.answer(&FindingPage { as_of, findings, next_cursor })
}

/// `GET /api/v1/findings/{id}`
pub(crate) async fn one(call: Call<GetFinding>) -> HandlerResult {
    let finding: Finding = by_id(&call.app, &call.segment, FINDING).await?;
    call.answer(&finding)
}

/// `POST /api/v1/findings/{id}/ack`
pub(crate) async fn acknowledge(call: Call<AcknowledgeFinding>) -> HandlerResult {
    let finding: Finding = by_id(&call.app, &call.segment, FINDING).await?;
    let finding = call.app.ask(call.app.control.acknowledge(finding.id)).await?;
    call.answer(&finding)
}

/// Finds a stored object by its id, or by the beginning or end of the id of a recent one.
pub(super) async fn by_id<T: Entity<Id: Send> + Send + 'static>(
    app: &App,
    given: &str,
    (what, list): (&str, &str),
) -> Result<T, ApiError> {
    let (id, part) = (given.parse::<T::Id>().ok(), IdPart::new(given));
    let found = app
        .read(move |reader| {
            if let Some(id) = &id
                && let Some(found) = reader.entity(id)?
            {
                return Ok(vec![found]);
            }
            let Some(part) = part else { return Ok(Vec::new()) };
            let filter = EntityFilter { states: None, session: None, limit: MAX_LIMIT, behind: None };
            let mut last: Vec<T> = reader.entities(&filter)?;
            last.retain(|item| part.fits(&item.id().to_string()));
            Ok(last)
        })
        .await?;
    let given = shown(given);
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => {
            Err(Refusal::Ambiguous(format!("`{given}` matches several {what}s; give more characters of the id")).into())
        }
        (None, _) => Err(ApiError::not_found(format!("no {what} `{given}`; `{list}` lists them, and {PART_HINT}"))),
    }
}
