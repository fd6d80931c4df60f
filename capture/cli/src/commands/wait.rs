//! `capture wait`

use std::{io::Write, time::Duration};

use api::{routes::WaitForState, sessions::WaitQuery};
use events::State;

use super::{Context, Failed, find, meanings, number::seconds_or_part, style};
use crate::terminal;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The session: its id, the agent's id, the name of its run, or at least 3 characters from the start or end of
    /// its id.
    session: String,
    /// States to wait for.
    #[arg(long, value_delimiter = ',', value_name = "STATE", value_parser = super::one_of_explained(State::ALL, State::as_str, meanings::of_state), default_value = "waiting,waiting_approval,idle,exited")]
    until: Vec<State>,
    /// Give up after this many seconds (exit code 3) [default: wait indefinitely].
    #[arg(long, value_name = "SECONDS", value_parser = seconds_or_part)]
    timeout: Option<f64>,
}

/// Longest request to the server, ms, so that no connection stays open indefinitely.
const ASK_MS: u64 = 60_000;

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    let client = context.client()?;
    let id = find(&client, &arguments.session)?.id;
    let mut left_ms = arguments.timeout.map_or(u64::MAX, |seconds| (seconds * 1000.0) as u64);
    loop {
        let ask_ms = left_ms.min(ASK_MS);
        let query = WaitQuery { until: arguments.until.clone().into(), timeout_ms: Some(ask_ms) };
        let within = Duration::from_millis(ask_ms + 10_000);
        match client.get_within::<WaitForState>(&id.to_string(), &query, within) {
            Ok(session) => {
                if context.json {
                    return context.print_json(&session);
                }
                let mut out = terminal::stdout();
                writeln!(out, "{}", style::state(&session.status, style::colours()))?;
                return Ok(());
            }
            Err(error) if error.status() == Some(408) => {
                left_ms = if left_ms == u64::MAX { left_ms } else { left_ms - ask_ms };
                if left_ms == 0 {
                    let until: Vec<&str> = arguments.until.iter().map(|s| s.as_str()).collect();
                    let text = format!("timed out: session {id} did not reach {}", until.join(" or "));
                    return Err(Failed::TimedOut(text).into());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}
