//! Findings: what a person should know of the sessions. Read from the store; that somebody knows is a
//! matter of capture.

use std::sync::Arc;

use events::{Finding, FindingKind, FindingState};
use serde::Serialize;
use store::KeptFilter;

use crate::{
    Command, FindingAsk,
    app::App,
    body,
    call::{Call, Reply},
    error::ApiError,
};

use super::{admin::ask, sessions::id_of};

const DEFAULT_LIMIT: usize = 100;
pub(super) const MAX_LIMIT: usize = 1_000;

/// `GET /api/v1/findings`
pub(crate) fn list(app: &App, call: Call) -> Reply {
    #[derive(Serialize)]
    struct Page {
        findings: Vec<Finding>,
    }
    let app = Arc::clone(app);
    Reply::later(async move {
        let query = call.query();
        let states = match query.value::<String>("state")?.as_deref() {
            None => Some(FindingState::Open..=FindingState::Acknowledged),
            Some("all") => None,
            Some(state) => {
                let state: FindingState = state.parse().map_err(|why: String| ApiError::parameter("state", why))?;
                Some(state..=state)
            }
        };
        let kinds: Vec<FindingKind> = query.list("kind")?;
        let limit = query.limit(DEFAULT_LIMIT, MAX_LIMIT)?;
        let session = named(&app, query.value("session")?).await?;
        // Kinds are told apart here: what there is of one kind may be far back.
        let among = if kinds.is_empty() { limit } else { MAX_LIMIT };
        let mut findings: Vec<Finding> =
            app.read(move |reader| reader.kept(&KeptFilter { states, session, limit: among })).await?;
        findings.retain(|finding| kinds.is_empty() || kinds.contains(&finding.kind));
        findings.truncate(limit);
        body::json_of(&Page { findings })
    })
}

/// The session a parameter names.
pub(super) async fn named(app: &App, name: Option<String>) -> Result<Option<events::SessionId>, ApiError> {
    match name {
        None => Ok(None),
        Some(name) => {
            let there_is_none = || ApiError::parameter("session", "there is no such session");
            Ok(Some(id_of(app, &name).await?.ok_or_else(there_is_none)?))
        }
    }
}

/// `GET /api/v1/findings/{id}`
pub(crate) fn one(app: &App, call: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move {
        let id = call.segment()?.into_owned();
        let found: Option<Finding> = app.read(move |reader| reader.one(&id)).await?;
        body::json_of(&found.ok_or_else(|| ApiError::not_found("there is no such finding"))?)
    })
}

/// `POST /api/v1/findings/{id}/ack`
pub(crate) fn acknowledge(app: &App, call: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move {
        let what = FindingAsk::Acknowledge(call.segment()?.into_owned());
        Ok(body::json(ask(&app, |reply| Command::Findings { ask: what, reply }).await?))
    })
}
