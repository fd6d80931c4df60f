//! `capture wait`

use std::{io::Write, time::Duration};

use api::{Client, routes::WaitForState, sessions::WaitQuery};
use client::failure::Failed;
use events::{SessionId, State};
use printing::style;
use projections::Session;

use super::{
    context::{Context, find},
    meanings,
    number::seconds_or_part,
};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id.
    session: String,
    /// States to wait for.
    #[arg(long, value_delimiter = ',', value_name = "STATE", value_parser = super::words::one_of_explained(State::ALL, State::as_str, meanings::of_state), default_value = UNTIL)]
    until: Vec<State>,
    /// Ignore states before this position, which `capture send` prints. `waiting` and `idle` end the wait only once a
    /// turn has begun after that position.
    #[arg(long, value_name = "POSITION")]
    after: Option<u64>,
    /// Give up after this many seconds (exit code 3) [default: wait indefinitely].
    #[arg(long, value_name = "SECONDS", value_parser = seconds_or_part)]
    timeout: Option<f64>,
}

/// The states to wait for by default.
pub(super) const UNTIL: &str = "waiting,waiting_approval,idle,exited";
/// Longest request to the server, ms, so that no connection stays open indefinitely.
const ASK_MS: u64 = 60_000;

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let client = context.client()?;
    let id = find(&client, &arguments.session)?.id;
    let limit = arguments.timeout.map(Duration::try_from_secs_f64).transpose()?;
    let session = until(&client, id, &arguments.until, arguments.after, limit)?;
    if context.json {
        return context.print_json(&session);
    }
    Ok(writeln!(printing::stdout(), "{}", style::state(&session.status, style::colours()))?)
}

/// Waits until a session reaches one of the states, after a position in the event log if one is given.
///
/// # Errors
/// If it does not within the limit, or if the server cannot be queried.
pub(super) fn until(
    client: &Client,
    id: SessionId,
    states: &[State],
    after: Option<u64>,
    limit: Option<Duration>,
) -> anyhow::Result<Session> {
    let mut left_ms = limit.map_or(u64::MAX, |limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
    loop {
        let ask_ms = left_ms.min(ASK_MS);
        let query = WaitQuery { until: states.to_vec().into(), after, timeout_ms: Some(ask_ms) };
        let within = Duration::from_millis(ask_ms + 10_000);
        match client.get_within::<WaitForState>(&id.to_string(), &query, within) {
            Ok(session) => return Ok(session),
            Err(error) if error.status() == Some(408) => {
                left_ms = if left_ms == u64::MAX { left_ms } else { left_ms - ask_ms };
                if left_ms == 0 {
                    let states: Vec<&str> = states.iter().map(|s| s.as_str()).collect();
                    let since = after.map_or_else(String::new, |after| format!(" after position {after}"));
                    let states = match states.as_slice() {
                        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
                        states => states.concat(),
                    };
                    let text = format!("timed out: session {id} did not reach {states}{since}");
                    return Err(Failed::TimedOut(text).into());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}
