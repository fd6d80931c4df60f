//! `capture run-host` and `capture run-child`: the processes that `capture run` starts. Users do not run them.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io::{self, Write},
    os::{
        fd::AsFd,
        unix::{fs::OpenOptionsExt, net::UnixStream},
    },
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context as _;
use host_protocol::runs;
use redact::Redacting;
use terminal::host::{child, start, wire::Spec};

use super::run::outside;
use printing::{Screen, safe};

#[derive(Debug, clap::Args)]
pub(super) struct Child {
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Replaces this process with the program of a run.
pub(super) fn child(arguments: &Child) -> ExitCode {
    let error = child::become_program(&arguments.command);
    printing::print_error_line(&format!("capture: {}", safe(&error.to_string())));
    ExitCode::from(error.shell_code())
}

/// Runs as the terminal host of a run. The specification of the run arrives on standard input.
pub(super) fn host() -> anyhow::Result<ExitCode> {
    let input = io::stdin();
    let socket = input.as_fd().try_clone_to_owned().context("cannot use standard input")?;
    processes::seal_if_agents().context("cannot mark this process as started by an agent")?;
    let null = File::open("/dev/null").context("cannot open /dev/null")?;
    rustix::stdio::dup2_stdin(&null).context("cannot close standard input")?;
    start::host(UnixStream::from(socket), |spec| {
        log_to_file(spec);
        outside(spec)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Writes errors to the run's log file, because the terminal belongs to the program.
fn log_to_file(spec: &Spec) {
    let path = runs::dir(&spec.data).join(format!("{}.log", spec.run));
    let hook = path.clone();
    std::panic::set_hook(Box::new(move |panic| {
        // If this write fails too, there is nowhere left to report it.
        writeln!(Redacting(Screen::escaping(LazyLog(hook.clone()))), "panicked: {panic}").ok();
    }));
    tracing_subscriber::fmt()
        // On a full disk, drop the log line rather than abort the program.
        .log_internal_errors(false)
        .with_writer(move || Redacting(Screen::escaping(LazyLog(path.clone()))))
        .with_ansi(false)
        .with_max_level(tracing::Level::WARN)
        .init();
}

/// Maximum size of a run's log, bytes; further lines are dropped.
const LOG_BYTES: u64 = 1 << 20;

/// A file that is created on the first write.
struct LazyLog(PathBuf);

impl Write for LazyLog {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.0)?;
        // A run may continue for weeks.
        if file.metadata()?.len() >= LOG_BYTES { Ok(text.len()) } else { file.write(text) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
