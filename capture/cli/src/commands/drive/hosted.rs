//! `capture agent drive --hosted`: the host of a session that the server started. It reads what to run from standard
//! input as a line of JSON, and reports on standard output, as another line, that it has begun or why it could not.
//! After that it has no terminal and no streams, and communicates only with the server. Users do not run it.

use std::{
    cell::Cell,
    fs::File,
    io::{BufRead, Write},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use client::{SessionDescription, SessionLink, failure::with_causes};
use crossbeam_channel::Receiver;
use events::{Provider, RunId};
use home::hosted_session::{HostAnswer, HostSpec};
use host_protocol::link::PendingRequest;
use processes::start_ticks;

use super::{Context, driver};

/// The commands that an agent accepts over its protocol.
const TAKES: &[&str] = &["prompt", "abort", "end"];

/// How to connect a driver that accepts commands from the server.
pub(super) struct Hosting<'a> {
    /// The name of the run.
    pub(super) name: Option<String>,
    /// Called with the run once it accepts commands.
    pub(super) begun: &'a dyn Fn(RunId),
}

impl Hosting<'_> {
    /// Connects the driver of an agent's process.
    pub(super) fn connect(
        self,
        data: &Path,
        (provider, cwd): (Provider, &str),
        pid: u32,
    ) -> std::io::Result<(SessionLink, Receiver<PendingRequest>)> {
        let described = SessionDescription {
            provider,
            session: None,
            process: Some((pid, start_ticks(pid).unwrap_or_default())),
            name: self.name,
            command: ["capture", "agent", "drive", "--agent", provider.as_str()].map(str::to_owned).to_vec(),
            version: None,
            cwd: cwd.to_owned(),
            takes: TAKES,
        };
        let (link, requests) = SessionLink::start(data, described)?;
        (self.begun)(link.run());
        Ok((link, requests))
    }
}

/// Runs the host.
pub(super) fn run(context: Context) -> anyhow::Result<ExitCode> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("cannot read the settings of the new session")?;
    let spec: HostSpec = serde_json::from_str(&line).context("cannot decode the settings of the new session")?;
    // Signals from the server's terminal must not reach this process.
    rustix::process::setsid().context("cannot leave the server's terminal")?;
    let null = File::options().read(true).write(true).open("/dev/null").context("cannot open /dev/null")?;
    rustix::stdio::dup2_stdin(&null).context("cannot close standard input")?;
    let has_begun = Cell::new(false);
    let begun = |run: RunId| {
        has_begun.set(true);
        say(&HostAnswer::Begun { run });
        // The server does not read this pipe any more.
        rustix::stdio::dup2_stdout(&null).ok();
    };
    let ended = if spec.agent == Provider::Capture {
        super::super::agent::place(context).and_then(|place| super::super::agent::arguments::host(place, spec, begun))
    } else {
        host_agent(&context, spec, &begun)
    };
    match ended {
        Err(error) if !has_begun.get() => {
            say(&HostAnswer::Refused(with_causes(&error)));
            Ok(ExitCode::FAILURE)
        }
        ended => ended,
    }
}

/// Drives another agent.
fn host_agent(context: &Context, spec: HostSpec, begun: &dyn Fn(RunId)) -> anyhow::Result<ExitCode> {
    let prepared = super::prepare(spec.agent, &spec.cwd, None, Vec::new())?;
    let talk = driver::DriverOptions {
        data: context.data.clone(),
        provider: spec.agent,
        cwd: prepared.cwd_text.clone(),
        prompt: spec.prompt.unwrap_or_default(),
        patience: Duration::from_secs(spec.wait_s.into()),
        asks: false,
        json: false,
    };
    let hosting = Hosting { name: spec.name, begun };
    let code = driver::run(talk, prepared.codec, &prepared.words, &prepared.cwd, Some(hosting))?;
    Ok(ExitCode::from(code))
}

fn say(answer: &HostAnswer) {
    let mut out = printing::stdout();
    // A server that exited finds the session when it restarts.
    if let Ok(line) = serde_json::to_string(answer) {
        writeln!(out, "{line}").and_then(|()| out.flush()).ok();
    }
}
