//! How programs speak with the server.
//!
//! [`connect`] reaches it for commands, starts one in the background if none is running, and [`stop()`] stops it. For a
//! program that runs an agent, [`ServerReporter`] delivers what happens in a conversation and waits for decisions on what
//! the agent asks for, [`DeltaSender`] sends text while it is said, and [`SessionLink`] is the connection of a program
//! that runs its session itself: it says what the session does, and takes requests in. Hooks use [`delivery`] alone.
//!
//! Must not decide what is allowed, print an answer, or hold an agent up: what cannot be told is lost or told later.

pub mod delivery;
mod deltas;
pub mod failure;
mod link;
mod os;
mod reporter;
mod start;
mod stop;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use api::Endpoint;
pub use api::{Client, ClientError, Connection};
use home::config::Config;
use semver::Version;

use crate::failure::Failed;
pub use deltas::DeltaSender;
pub use link::{SessionDescription, SessionLink, find_socket};
pub use reporter::{ReportError, ServerReporter, decide, wait_for_decision, wait_for_rules};
pub use stop::stop;

/// Connects to the running server, or starts one in the background where the configuration
/// allows it.
///
/// # Errors
/// When there is none and none can be started.
pub fn connect(data: &Path, config: &Config, connection: Connection) -> anyhow::Result<Client> {
    if let Some(client) = running(data, connection)? {
        return if is_to_be_replaced(client.endpoint()) { replaced(client, data, connection) } else { Ok(client) };
    }
    if !config.autostart {
        return Err(
            Failed::Other("no server is running; start one with `capture serve` (autostart is off)".into()).into()
        );
    }
    start::start(data, connection)
}

/// Time limit for a server that stopped answering to be gone.
const GONE_WITHIN: Duration = Duration::from_millis(500);
/// Interval between two looks at whether it is.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Connects to the running server. One that ends meanwhile, and so answers no more, is none.
fn running(data: &Path, connection: Connection) -> Result<Option<Client>, ClientError> {
    let silent = match Client::running(data, connection) {
        Err(error @ ClientError::Silent { .. }) => error,
        known => return known,
    };
    let until = Instant::now() + GONE_WITHIN;
    while Endpoint::load(data)?.is_some_and(|endpoint| endpoint.is_alive()) {
        if Instant::now() >= until {
            return Err(silent);
        }
        // Nobody sends on this channel: it is a wait.
        crossbeam_channel::after(LOOK_EVERY).recv().ok();
    }
    Ok(None)
}

/// Whether a server is of an older version and was started in the background by a command, which may restart it then.
/// One that a person or the system started is theirs, and an agent's commands stop none.
fn is_to_be_replaced(endpoint: &Endpoint) -> bool {
    endpoint.background
        && is_older(&endpoint.version, env!("CARGO_PKG_VERSION"))
        && processes::agent_descent(std::process::id()).is_none()
}

fn is_older(server: &str, program: &str) -> bool {
    match (Version::parse(server), Version::parse(program)) {
        (Ok(server), Ok(program)) => server < program,
        _ => false,
    }
}

/// Stops a server and starts this version of it. What is written meanwhile is read by the new one: agents' files are read
/// from where the old one stopped, and hooks wait in the spool.
fn replaced(client: Client, data: &Path, connection: Connection) -> anyhow::Result<Client> {
    let old = client.endpoint().version.clone();
    drop(client);
    stop(data, connection)?;
    let client = start::start(data, connection)?;
    printing::print_error_line(&format!(
        "capture: restarted the server, which was version {} and is now {}",
        printing::safe(&old),
        env!("CARGO_PKG_VERSION")
    ));
    Ok(client)
}

#[cfg(test)]
mod tests {
    use super::is_older;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(is_older("0.9.0", "0.10.0"));
        assert!(!is_older("0.10.0", "0.10.0") && !is_older("0.11.0", "0.10.0"));
        assert!(!is_older("", "0.10.0"), "a release that did not write its version is left alone");
    }
}
