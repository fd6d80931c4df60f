//! The connection of a program that runs its session itself: like that of a terminal host, but without a terminal.

use std::{
    io,
    path::{Path, PathBuf},
};

use api::Endpoint;
use crossbeam_channel::{Receiver, bounded};
use events::{Provider, RunId, Timestamp};
use home::{clock, config::Config, paths};
use host_protocol::{
    claim::{CallDecided, HostEvent, ScreenClaim},
    frame::Hello,
    link::{FindSocket, HostLink, PendingRequest},
};
use processes::start_ticks;

use crate::{Connection, failure::with_causes};

/// Maximum number of server requests that wait for the session.
const REQUESTS: usize = 32;

/// A session and its program, as the server lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionDescription {
    /// The agent.
    pub provider: Provider,
    /// The agent's own id of the session, if the program runs the session itself.
    pub session: Option<String>,
    /// The agent's process and its start time in clock ticks, if it is not this process.
    pub process: Option<(u32, u64)>,
    /// The name the user gave it.
    pub name: Option<String>,
    /// The command that runs the session, as a list of words.
    pub command: Vec<String>,
    /// The agent's version.
    pub version: Option<String>,
    /// The working directory.
    pub cwd: String,
    /// The commands the session accepts.
    pub takes: &'static [&'static str],
}

/// The connection of a session. It reconnects automatically and keeps unsent events; senders never wait.
pub struct SessionLink {
    host: HostLink,
    data: PathBuf,
    run: RunId,
}

impl std::fmt::Debug for SessionLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionLink").field("run", &self.run).finish_non_exhaustive()
    }
}

impl SessionLink {
    /// Connects in the background, and returns the receiver of the server's requests. If the configuration allows it,
    /// this starts a server.
    ///
    /// # Errors
    /// If there are no random bytes for the id, or the thread cannot be created.
    pub fn start(data: &Path, described: SessionDescription) -> io::Result<(Self, Receiver<PendingRequest>)> {
        let started_at = clock::now();
        let run = RunId::mint(started_at, clock::random()?);
        let (requests, requested) = bounded(REQUESTS);
        let host = HostLink::start(hello(run, started_at, described), find_socket(data.to_owned()), requests)?;
        Ok((Self { host, data: data.to_owned(), run }, requested))
    }

    /// The id under which the program is listed.
    #[must_use]
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Reports the session's activity.
    pub fn claim(&self, claim: ScreenClaim) {
        self.host.send_event(clock::now(), HostEvent::Claim(claim));
    }

    /// Reports that a person granted a mode.
    pub fn mode_granted(&self, mode: &str, by: &str) {
        self.host.send_event(clock::now(), HostEvent::ModeGranted { mode: mode.to_owned(), by: by.to_owned() });
    }

    /// Reports that a call was decided in process.
    pub fn call_decided(&self, decided: CallDecided) {
        self.host.send_event(clock::now(), HostEvent::CallDecided(Box::new(decided)));
    }

    /// Reports that plain reads were allowed in process: the number allowed by this rule since `since`.
    pub fn reads_allowed(&self, rule: Option<String>, count: u64, since: Timestamp) {
        self.host.send_event(clock::now(), HostEvent::ReadsAllowed { rule, count, since });
    }

    /// Whether a server is connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.host.is_connected()
    }

    /// Whether a server is believed to be running: it is connected, or its process exists.
    #[must_use]
    pub fn has_server(&self) -> bool {
        self.host.is_connected()
            || Endpoint::load(&self.data).ok().flatten().is_some_and(|endpoint| endpoint.is_alive())
    }

    /// Whether the first attempt to connect, which may start a server, is over.
    #[must_use]
    pub fn has_tried(&self) -> bool {
        self.host.has_tried()
    }

    /// Stops reporting the session, because its process continues with another one.
    pub fn leave(self) {
        self.host.send_event(clock::now(), HostEvent::Withdrawn);
        self.host.close();
    }

    /// Reports the exit of the program, and waits until the server has stored it, unless there is no server.
    pub fn end(self, code: u8) {
        self.host.send_event(clock::now(), HostEvent::Exited { code: Some(code.into()), signal: None });
        self.host.close();
    }
}

fn hello(run: RunId, started_at: Timestamp, described: SessionDescription) -> Hello {
    let host_pid = std::process::id();
    let own = || (host_pid, start_ticks(host_pid).unwrap_or_default());
    let (pid, ticks) = described.process.unwrap_or_else(own);
    Hello {
        run,
        name: described.name,
        command: described.command,
        provider: described.provider,
        version: described.version,
        cwd: described.cwd,
        pid,
        start_ticks: ticks,
        host_pid,
        started_at,
        terminal: false,
        size: None,
        socket: None,
        recording: None,
        answers: false,
        draws: false,
        session: described.session,
        takes: described.takes.iter().map(|&name| name.to_owned()).collect(),
    }
}

/// Finds the server's socket, and starts a server if the configuration allows it.
#[must_use]
pub fn find_socket(data: PathBuf) -> FindSocket {
    Box::new(move |may_start| {
        if !may_start {
            return Endpoint::load(&data).ok().flatten().map(|endpoint| endpoint.socket);
        }
        let config = paths::config_file().and_then(|file| Config::load(&file)).ok()?;
        match crate::connect(&data, &config, Connection::Unix) {
            Ok(client) => Some(client.endpoint().socket.clone()),
            Err(error) => {
                tracing::debug!(error = with_causes(&error), "no server");
                Endpoint::load(&data).ok().flatten().map(|endpoint| endpoint.socket)
            }
        }
    })
}
