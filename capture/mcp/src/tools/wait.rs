//! Waits for a session, with progress and within a time limit.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::{routes::WaitForState, sessions::WaitQuery};
use events::State;
use projections::Session;
use rmcp::{
    model::ProgressNotificationParam,
    service::{RequestContext, RoleServer},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ToolError, answered, parsed,
    sessions::{Needs, SessionRow, find},
};
use crate::{
    blocking::blocking,
    link::{Link, LinkError},
    text::NOTE,
};

/// Default time limit, seconds: below the shortest time limit of clients, a minute.
const LIMIT_S: u64 = 50;
/// Maximum time limit, seconds.
const MOST_S: u64 = 3_600;
/// Maximum duration of a request to the capture server: the interval of progress reports, and the delay after which a
/// cancelled wait ends.
const SLICE: Duration = Duration::from_secs(5);
/// How long after the end of a wait the capture server may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What to wait for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitArguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of its
    /// id.
    session: String,
    /// The states to wait for; the first that is reached ends the wait (default: every state in which the agent is not
    /// working: `waiting`, `waiting_approval`, `idle`, `exited`).
    #[serde(default)]
    until: Vec<State>,
    /// Time limit, seconds (default 50, at most 3600). Many clients give up after 60.
    #[serde(default)]
    timeout_s: Option<u64>,
}

/// How the wait ended.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WaitAnswer {
    /// How to read the texts of this answer.
    note: &'static str,
    /// Whether one of the states was reached; false if the time limit expired first.
    reached: bool,
    /// The session as it is now.
    session: SessionRow,
    /// How long the call waited, milliseconds.
    waited_ms: u64,
}

pub(crate) async fn run(
    link: &Arc<Link>,
    arguments: Value,
    context: &RequestContext<RoleServer>,
) -> Result<Value, ToolError> {
    let arguments: WaitArguments = parsed(arguments)?;
    let began = Instant::now();
    let limit = Duration::from_secs(arguments.timeout_s.unwrap_or(LIMIT_S).min(MOST_S));
    let given = arguments.session;
    let find_on = Arc::clone(link);
    let session = blocking(move || find(&find_on, &given)).await?;
    let until = match arguments.until {
        none if none.is_empty() => vec![State::Waiting, State::WaitingApproval, State::Idle, State::Exited],
        states => states,
    };
    let mut latest = session;
    loop {
        let left = limit.saturating_sub(began.elapsed());
        let slice = left.min(SLICE);
        let (on, id, states) = (Arc::clone(link), latest.id.to_string(), until.clone());
        let answer = tokio::select! {
            () = context.ct.cancelled() => return Err(ToolError::Cancelled),
            answer = blocking(move || wait(&on, &id, &states, slice)) => answer?,
        };
        let waited = began.elapsed();
        let (reached, session) = answer;
        if reached || waited >= limit {
            let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
            let on = Arc::clone(link);
            let needs = blocking(move || Needs::read(&on)).await?;
            return answered(WaitAnswer { note: NOTE, reached, session: SessionRow::of(&session, &needs), waited_ms });
        }
        latest = session;
        report(context, waited, limit, &latest).await;
    }
}

/// Waits for one slice; returns whether a state was reached, and the session at that time.
fn wait(link: &Link, id: &str, until: &[State], slice: Duration) -> Result<(bool, Session), ToolError> {
    let timeout_ms = u64::try_from(slice.as_millis()).ok();
    let query = WaitQuery { until: until.to_vec().into(), after: None, timeout_ms };
    match link.read(|client| client.get_within::<WaitForState>(id, &query, slice + ANSWER_WITHIN)) {
        Ok(session) => Ok((true, session)),
        Err(LinkError::Request(error)) if error.status() == Some(408) => Ok((false, find(link, id)?)),
        Err(error) => Err(error.into()),
    }
}

/// Reports the progress of a wait to a client that asked for it.
async fn report(context: &RequestContext<RoleServer>, waited: Duration, limit: Duration, session: &Session) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let message = format!("the session is {}", session.status.state);
    let progress = ProgressNotificationParam::new(token, waited.as_secs_f64())
        .with_total(limit.as_secs_f64())
        .with_message(message);
    // A disconnected client is detected by the end of the input.
    context.peer.notify_progress(progress).await.ok();
}
