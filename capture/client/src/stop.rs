//! Stopping the background server.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal},
};
use store::lock::is_held;

use crate::failure::Failed;
use crate::os;
use crate::{Client, Connection};

/// Time limit for a server to exit after being asked to stop.
const STOP_WITHIN: Duration = Duration::from_secs(60);
/// Interval between checks of the lock after the process has exited.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Asks the server to stop, and waits until its process has exited and the data directory is free. Only the process
/// that proved to be the server receives the signal. Returns its pid.
///
/// # Errors
/// If no server is running, it cannot be signalled, or it does not exit in time.
pub fn stop(data: &Path, connection: Connection) -> anyhow::Result<u32> {
    let nobody = || Failed::NotFound("no server is running".into());
    // The connection proves that the process named in `endpoint.json` is the server.
    let client = Client::running(data, connection)?.ok_or_else(nobody)?;
    let endpoint = client.endpoint().clone();
    let pid = i32::try_from(endpoint.pid).ok().and_then(Pid::from_raw).ok_or_else(nobody)?;
    let process = os::process_descriptor(pid).with_context(|| format!("cannot open process {}", endpoint.pid))?;
    // Checked after opening the descriptor, which therefore refers to the process with this start time.
    if !endpoint.is_alive() {
        return Err(nobody().into());
    }
    drop(client);
    os::signal(&process, Signal::TERM)
        .with_context(|| format!("cannot signal the server (process {})", endpoint.pid))?;
    let until = Instant::now() + STOP_WITHIN;
    let late = || {
        Failed::Other(format!("the server (process {}) did not stop within {} s", endpoint.pid, STOP_WITHIN.as_secs()))
    };
    let within = Timespec { tv_sec: STOP_WITHIN.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: 0 };
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    if poll(&mut ended, Some(&within)).context("cannot wait for the server")? == 0 {
        return Err(late().into());
    }
    while is_held(&store::lock_file(data)) {
        if Instant::now() >= until {
            return Err(late().into());
        }
        // The channel never receives a message; this only waits.
        crossbeam_channel::after(LOOK_EVERY).recv().ok();
    }
    Ok(endpoint.pid)
}
