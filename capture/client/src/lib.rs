//! How programs communicate with the server.
//!
//! [`connect`] connects commands to the server and starts one in the background if none is running; [`stop()`] stops
//! it. For a program that runs an agent, [`ServerReporter`] delivers the events of a conversation and waits for
//! decisions on the agent's requests, and [`DeltaSender`] sends text as it is written. [`SessionLink`] is the
//! connection of a program that runs its session itself: it reports the session's activity and receives requests. Hooks
//! use only [`delivery`].
//!
//! Must not decide what is allowed, print an answer, or delay an agent: reports that cannot be sent are dropped or sent
//! later.

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

/// Connects to the running server, or starts one in the background if the configuration allows it.
///
/// # Errors
/// If no server is running and none can be started.
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

/// Time limit for a server that stopped answering to exit.
const GONE_WITHIN: Duration = Duration::from_millis(500);
/// Interval between checks whether a server that stopped answering has exited.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Connects to the running server. A server that does not answer and exits within [`GONE_WITHIN`] counts as
/// not running.
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
        // The channel never receives a message; this only waits.
        crossbeam_channel::after(LOOK_EVERY).recv().ok();
    }
    Ok(None)
}

/// Whether a server has an older version and was started in the background by a command, so that a command may restart
/// it. A server that the user or the system started is left alone, and commands run by an agent never stop a server.
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

/// Stops a server and starts this version. The new server reads everything written in the meantime: it continues the
/// agents' files where the old one stopped, and hooks wait in the spool.
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
