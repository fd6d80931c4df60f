//! The connection of a program that runs its session itself: the same as that of a terminal host, without a terminal.

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

/// Requests of the server that wait for the session.
const REQUESTS: usize = 32;

/// A session and the program that runs it, as the server lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionDescription {
    /// The agent.
    pub provider: Provider,
    /// The agent's own id of the session, from a program that runs it itself.
    pub session: Option<String>,
    /// The process of the agent, with its start in clock ticks, when it is another one than this.
    pub process: Option<(u32, u64)>,
    /// The name that a person gave it.
    pub name: Option<String>,
    /// The command that runs it, word by word.
    pub command: Vec<String>,
    /// The version of the agent.
    pub version: Option<String>,
    /// The working directory.
    pub cwd: String,
    /// The commands it takes.
    pub takes: &'static [&'static str],
}

/// The connection of a session. It reconnects by itself and keeps what it could not send; senders never wait.
pub struct SessionLink {
    host: HostLink,
    data: PathBuf,
    run: RunId,
    started_at: Timestamp,
}

impl std::fmt::Debug for SessionLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionLink").field("run", &self.run).finish_non_exhaustive()
    }
}

impl SessionLink {
    /// Connects in the background, and gives what the server requests. Where the configuration allows it, a server is
    /// started.
    ///
    /// # Errors
    /// There are no random bytes for its id, or there can be no thread for it.
    pub fn start(data: &Path, described: SessionDescription) -> io::Result<(Self, Receiver<PendingRequest>)> {
        let started_at = clock::now();
        let run = RunId::mint(started_at, clock::random()?);
        let (requests, requested) = bounded(REQUESTS);
        let host = HostLink::start(hello(run, started_at, described), find_socket(data.to_owned()), requests)?;
        Ok((Self { host, data: data.to_owned(), run, started_at }, requested))
    }

    /// The id under which the program is listed.
    #[must_use]
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Says that it runs another session from now on, or the same by another name.
    pub fn describe(&self, described: SessionDescription) {
        self.host.hello(hello(self.run, self.started_at, described));
    }

    /// Says what the session does.
    pub fn claim(&self, claim: ScreenClaim) {
        self.host.send_event(clock::now(), HostEvent::Claim(claim));
    }

    /// Says that a person granted a mode.
    pub fn mode_granted(&self, mode: &str, by: &str) {
        self.host.send_event(clock::now(), HostEvent::ModeGranted { mode: mode.to_owned(), by: by.to_owned() });
    }

    /// Says that a call was decided in process.
    pub fn call_decided(&self, decided: CallDecided) {
        self.host.send_event(clock::now(), HostEvent::CallDecided(Box::new(decided)));
    }

    /// Says that plain reads were allowed in process: how many by this rule since then.
    pub fn reads_allowed(&self, rule: Option<String>, count: u64, since: Timestamp) {
        self.host.send_event(clock::now(), HostEvent::ReadsAllowed { rule, count, since });
    }

    /// Whether a server is there, as far as is known: it is connected, or its process lives.
    #[must_use]
    pub fn has_server(&self) -> bool {
        self.host.is_connected()
            || Endpoint::load(&self.data).ok().flatten().is_some_and(|endpoint| endpoint.is_alive())
    }

    /// Whether the first attempt to connect is over, with which a server may be started.
    #[must_use]
    pub fn has_tried(&self) -> bool {
        self.host.has_tried()
    }

    /// Says nothing of the session any more, whose process goes on with another one.
    pub fn leave(self) {
        self.host.send_event(clock::now(), HostEvent::Withdrawn);
        self.host.close();
    }

    /// Says how the program ends, and waits for the server to have stored it, unless there is none.
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

/// Finds the server's socket, and starts a server where the configuration allows it.
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
