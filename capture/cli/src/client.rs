//! Connects to the server, starts one in the background if none is running, and stops it.

mod start;
mod stop;

use std::path::Path;

pub use api::{Client, ClientError, Connection};
use daemon::config::Config;

use crate::failure::Failed;
pub use stop::stop;

/// Connects to the running server, or starts one in the background where the configuration
/// allows it.
///
/// # Errors
/// When there is none and none can be started.
pub fn connect(data: &Path, config: &Config, connection: Connection) -> anyhow::Result<Client> {
    if let Some(client) = Client::running(data, connection)? {
        return Ok(client);
    }
    if !config.autostart {
        return Err(
            Failed::Other("no server is running; start one with `capture serve` (autostart is off)".into()).into()
        );
    }
    start::start(data, connection)
}
