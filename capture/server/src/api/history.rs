//! What happened: read from the store.

use std::sync::Arc;

use events::{Confidence, Event, Kind, Payload, Provider, Reason, State, Timestamp};
use projections::{Turn, Usage};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    app::App,
    body,
    call::{Call, Reply},
    error::ApiError,
};

use super::sessions::target;

const DEFAULT_LIMIT: usize = 200;
const MAX_LIMIT: usize = 1000;

/// `GET /api/v1/sessions/{id}/events`
pub(crate) fn events(app: &App, call: Call) -> Reply {
    #[derive(Serialize)]
    struct Page {
        events: Vec<Event>,
        next_after: u64,
    }
    let app = Arc::clone(app);
    Reply::later(async move {
        let query = call.query();
        let after = query.value("after")?.unwrap_or(0);
        let limit = query.limit(DEFAULT_LIMIT, MAX_LIMIT)?;
        let kinds: Vec<Kind> = query.list("kind")?;
        let id = target(&app, &call).await?;
        let events = app.read(move |reader| reader.events(id, after, limit, &kinds)).await?;
        let next_after = events.last().map_or(after, |event| event.sequence);
        body::json_of(&Page { events, next_after })
    })
}

/// `GET /api/v1/sessions/{id}/turns`
pub(crate) fn turns(app: &App, call: Call) -> Reply {
    #[derive(Serialize)]
    struct Page {
        turns: Vec<Turn>,
        next_after: u32,
    }
    let app = Arc::clone(app);
    Reply::later(async move {
        let query = call.query();
        let after = query.value("after")?.unwrap_or(0);
        let limit = query.limit(DEFAULT_LIMIT, MAX_LIMIT)?;
        let id = target(&app, &call).await?;
        let turns = app.read(move |reader| reader.turns(id, after, limit)).await?;
        let next_after = turns.last().map_or(after, |turn| turn.number);
        body::json_of(&Page { turns, next_after })
    })
}

/// One change of a session's status.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatusChange {
    /// When, by the clock of the evidence.
    at: Timestamp,
    /// When capture saw it.
    observed_at: Timestamp,
    /// The state before; absent for the first.
    from: Option<State>,
    /// The state from then on.
    to: State,
    /// Why.
    reason: Option<Reason>,
    /// How sure capture was.
    confidence: Confidence,
    /// The claims that decided, in their sources' words.
    evidence: Vec<String>,
}

impl StatusChange {
    /// The change an event tells of; `None` for events of other kinds.
    fn of(event: Event) -> Option<Self> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "one kind was asked for")]
        match event.payload {
            Payload::StatusChanged(change) => Some(Self {
                at: event.created_at,
                observed_at: event.observed_at,
                from: change.from,
                to: change.to,
                reason: change.reason,
                confidence: event.confidence,
                evidence: change.evidence,
            }),
            _ => None,
        }
    }
}

/// `GET /api/v1/sessions/{id}/status/history`
pub(crate) fn status(app: &App, call: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move {
        let query = call.query();
        let after: Option<u64> = query.value("after")?;
        let limit = query.limit(MAX_LIMIT, MAX_LIMIT)?;
        let id = target(&app, &call).await?;
        let kinds = [Kind::StatusChanged];
        let events = app
            .read(move |reader| match after {
                Some(after) => reader.events(id, after, limit, &kinds),
                None => reader.last_events(id, limit, &kinds),
            })
            .await?;
        let changes: Vec<_> = events.into_iter().filter_map(StatusChange::of).collect();
        app.redacted(&changes)
    })
}

/// `GET /api/v1/usage`
pub(crate) fn usage_of_all(app: &App, _: Call) -> Reply {
    #[derive(Serialize)]
    struct Answer {
        total: Usage,
        usage: Vec<Row>,
    }
    #[derive(Serialize)]
    struct Row {
        provider: Provider,
        model: Option<String>,
        #[serde(flatten)]
        usage: Usage,
    }
    let app = Arc::clone(app);
    Reply::later(async move {
        let rows = app.read(|reader| reader.usage()).await?;
        let mut total = Usage::default();
        for (_, _, usage) in &rows {
            total.input_tokens += usage.input_tokens;
            total.output_tokens += usage.output_tokens;
            total.cache_read_tokens += usage.cache_read_tokens;
            total.cache_write_tokens += usage.cache_write_tokens;
        }
        let usage = rows.into_iter().map(|(provider, model, usage)| Row { provider, model, usage }).collect();
        body::json_of(&Answer { total, usage })
    })
}

/// `GET /api/v1/texts/{hash}`
pub(crate) fn text(app: &App, call: Call) -> Reply {
    let app = Arc::clone(app);
    Reply::later(async move {
        let hash = call.segment()?.into_owned();
        if hash.is_empty() || hash.len() > 64 || !hash.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(ApiError::parameter("hash", "must be hexadecimal"));
        }
        let text = app.read(move |reader| reader.text(&hash)).await?;
        text.map(body::text).ok_or_else(|| {
            ApiError::not_found("no such text").hint("texts above the cap are not kept: see the event's origin")
        })
    })
}
