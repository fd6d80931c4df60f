//! Starting a server in the background.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Seek, SeekFrom},
    os::unix::{
        fs::{DirBuilderExt, OpenOptionsExt},
        process::CommandExt,
    },
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context;
use home::{environment::Environment, paths::log_file};
use store::lock::is_held;

use crate::{
    Client, Connection,
    failure::{Failed, IN_USE},
};

/// Time limit for a background server to answer, and for a stopping one to release the data directory.
const START_WITHIN: Duration = Duration::from_secs(30);
/// Interval between attempts to reach a starting server.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// Number of bytes at the end of the log that are searched for its last line.
const LOG_TAIL: u64 = 4 << 10;

/// Starts a server in the background. Of several concurrent callers, one starts it and the others wait. If a server is
/// still stopping, this waits for it first.
pub(crate) fn start(data: &Path, connection: Connection) -> anyhow::Result<Client> {
    let environment = Environment::of_background(data)?;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data)
        .with_context(|| format!("cannot create {}", data.display()))?;
    let lock = data.join("start.lock");
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&lock)
        .with_context(|| format!("cannot open {}", lock.display()))?;
    lock.lock().context("cannot wait for the server start that is already in progress")?;
    let log = log_file(data);
    let until = Instant::now() + START_WITHIN;
    let mut child: Option<Child> = None;
    loop {
        if let Some(client) = crate::running(data, connection)? {
            return Ok(client);
        }
        match child.as_mut().map(Child::try_wait) {
            // The process that holds the data directory either starts answering or exits.
            None if !is_held(&store::lock_file(data)) => {
                let output = OpenOptions::new()
                    .create(true)
                    .append(true)
                    .mode(0o600)
                    .open(&log)
                    .with_context(|| format!("cannot write {}", log.display()))?;
                child = Some(background(data, &environment, &output)?);
            }
            Some(Ok(Some(status))) if !status.success() && status.code() != Some(i32::from(IN_USE)) => {
                let why = last_line(&log);
                return Err(Failed::Other(format!("the server exited during startup ({status}): {why}")).into());
            }
            // The server found the data directory in use, or was told to stop; wait for the process that holds the
            // directory.
            Some(Ok(Some(_)) | Err(_)) => child = None,
            None | Some(Ok(None)) => {}
        }
        anyhow::ensure!(
            Instant::now() < until,
            "the server did not answer within {} s; see {}",
            START_WITHIN.as_secs(),
            log.display()
        );
        // The channel never receives a message; this only waits.
        crossbeam_channel::after(ASK_EVERY).recv().ok();
    }
}

fn background(data: &Path, environment: &Environment, output: &File) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("cannot determine the path of the capture program")?;
    let mut command = Command::new(program);
    command.arg("serve").arg("--background").arg("--data-dir").arg(data).current_dir("/").stdin(Stdio::null());
    command.env_clear().envs(environment.variables());
    // A separate process group, so that signals from the terminal do not reach the server.
    command.stdout(output.try_clone()?).stderr(output.try_clone()?).process_group(0);
    command.spawn().context("cannot start the server")
}

fn last_line(log: &Path) -> String {
    let tail = || -> std::io::Result<String> {
        let mut file = File::open(log)?;
        let from = file.metadata()?.len().saturating_sub(LOG_TAIL);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    tail().unwrap_or_default().lines().last().unwrap_or("its log is empty").to_owned()
}
