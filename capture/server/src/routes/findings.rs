//! Findings: what the monitor noticed. Read from the store; acknowledging is the daemon's.

use std::{fmt, str::FromStr};

use api::{
    findings::{FindingPage, StateFilter},
    list::MAX_LIMIT,
    routes::{AcknowledgeFinding, GetFinding, ListFindings},
};
use events::{Finding, FindingState, Timestamp};
use store::{Entity, EntityFilter};

use crate::{Refusal, answer::Answer, app::App, call::Call, error::ApiError, lookup::named};

/// Items on a page, when the client does not say.
pub(super) const DEFAULT_LIMIT: usize = 100;
/// The shortest part of an id that is looked for.
const SHORTEST_PART: usize = 4;

/// `GET /api/v1/findings`
pub(crate) async fn list(call: Call<ListFindings>) -> Answer {
    let (app, query) = (&call.app, &call.query);
    let states = match query.state {
        None => Some(FindingState::Open..=FindingState::Acknowledged),
        Some(filter @ (StateFilter::Open | StateFilter::Acknowledged | StateFilter::Resolved | StateFilter::All)) => {
            filter.state().map(|state| state..=state)
        }
    };
    let limit = query.limit.map_or(DEFAULT_LIMIT, |limit| limit.get());
    let mut behind = Cursor::read(query.cursor.as_deref())?.map(Into::into);
    let session = named(app, query.session.as_deref()).await?;
    let as_of = app.board.mark().position;
    let kinds = &query.kind.0;
    let mut findings: Vec<Finding> = Vec::new();
    // What there is of one kind may be far back.
    let more = loop {
        let page = if kinds.is_empty() { limit + 1 } else { MAX_LIMIT };
        let filter = EntityFilter { states: states.clone(), session, limit: page, behind: behind.take() };
        let found: Vec<Finding> = app.read(move |reader| reader.entities(&filter)).await?;
        let last_page = found.len() < page;
        behind = found.last().map(|finding| Cursor::of(finding).into());
        findings.extend(found.into_iter().filter(|finding| kinds.is_empty() || kinds.contains(&finding.kind)));
        if findings.len() > limit || last_page {
            break findings.len() > limit;
        }
    };
    findings.truncate(limit);
    let last = findings.last().filter(|_| more);
    let next_cursor = last.map(|finding| Cursor::of(finding).to_string());
    call.answer(&FindingPage { as_of, findings, next_cursor })
}

/// `GET /api/v1/findings/{id}`
pub(crate) async fn one(call: Call<GetFinding>) -> Answer {
    let finding: Finding = by_id(&call.app, &call.segment, "finding").await?;
    call.answer(&finding)
}

/// `POST /api/v1/findings/{id}/ack`
pub(crate) async fn acknowledge(call: Call<AcknowledgeFinding>) -> Answer {
    let finding: Finding = by_id(&call.app, &call.segment, "finding").await?;
    let finding = call.app.ask(call.app.control.acknowledge(finding.id)).await?;
    call.answer(&finding)
}

/// Finds one of what the store keeps by its id, or by a beginning or end of it that fits one of the last.
pub(super) async fn by_id<T: Entity<Id: Send> + Send + 'static>(
    app: &App,
    given: &str,
    what: &str,
) -> Result<T, ApiError> {
    let (id, wanted) = (given.parse::<T::Id>().ok(), given.to_ascii_uppercase());
    let found = app
        .read(move |reader| {
            if let Some(id) = &id
                && let Some(found) = reader.entity(id)?
            {
                return Ok(vec![found]);
            }
            if wanted.len() < SHORTEST_PART {
                return Ok(Vec::new());
            }
            let filter = EntityFilter { states: None, session: None, limit: MAX_LIMIT, behind: None };
            let mut last: Vec<T> = reader.entities(&filter)?;
            last.retain(|kept| {
                let id = kept.id().to_string().to_ascii_uppercase();
                id.starts_with(&wanted) || id.ends_with(&wanted)
            });
            Ok(last)
        })
        .await?;
    let given: String = given.chars().take(64).collect();
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(Refusal::Ambiguous(format!("`{given}` fits several; give more of the id")).into()),
        (None, _) => Err(ApiError::not_found(format!("no {what} `{given}`"))),
    }
}

/// A place in a list that is sorted by when its items began, and by their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor<Id> {
    began_at: Timestamp,
    id: Id,
}

impl<Id: Clone> Cursor<Id> {
    pub(super) fn of<T: Entity<Id = Id>>(item: &T) -> Self {
        Self { began_at: item.began_at(), id: item.id().clone() }
    }
}

impl<Id: FromStr> Cursor<Id> {
    pub(super) fn read(text: Option<&str>) -> Result<Option<Self>, ApiError> {
        let parse = |text: &str| {
            let (at, id) = text.split_once('.')?;
            Some(Self { began_at: Timestamp::from_millisecond(at.parse().ok()?), id: id.parse().ok()? })
        };
        let wrong = || ApiError::parameter("cursor", "not a `next_cursor` of this list");
        text.map(|text| parse(text).ok_or_else(wrong)).transpose()
    }
}

impl<Id: fmt::Display> fmt::Display for Cursor<Id> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.began_at.as_millisecond(), self.id)
    }
}

impl<Id> From<Cursor<Id>> for (Timestamp, Id) {
    fn from(cursor: Cursor<Id>) -> Self {
        (cursor.began_at, cursor.id)
    }
}
