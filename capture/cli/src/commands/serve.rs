//! `capture serve`

mod log;

use std::{
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

use anyhow::Context as _;
use client::{
    self, Connection,
    failure::{Failed, with_causes},
};
use daemon::serve::Options;
use home::{
    config::is_host,
    environment::Environment,
    paths::{self, log_file},
};
use log::ServerLog;
use redact::Redacting;
use tokio_util::sync::CancellationToken;

use super::context::Context;

/// The default log filter; `CAPTURE_LOG` overrides it. rmcp logs each message at level info.
const LOG_FILTER: &str = "info,rmcp=warn";
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Address and port to listen on; port 0 means any free port [default: 127.0.0.1 and the setting `server.port`].
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Permit `--listen` with an address that other machines can reach.
    #[arg(long)]
    expose: bool,
    /// Also accept requests whose `Host` header is this name or address, with or without a port; can be repeated. A
    /// proxy on this machine, such as `tailscale serve`, forwards the host name that its clients use.
    #[arg(long, value_name = "HOST", value_parser = host)]
    allowed_host: Vec<String>,
    /// Stop the running server and wait until it has stopped.
    #[arg(long, conflicts_with_all = ["listen", "expose"])]
    stop: bool,
    /// Stop the running server and start it again in the background.
    #[arg(long, conflicts_with_all = ["listen", "expose", "stop"])]
    restart: bool,
    /// Started by a command, with the environment that was recorded.
    #[arg(long, hide = true)]
    background: bool,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected ADDRESS:PORT, such as 127.0.0.1:4555".to_owned())
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.restart {
        stop(&context.data, context.connection)?;
        let client = client::connect(&context.data, &context.config, context.connection)?;
        printing::print_error_line(&format!("capture: the server was restarted (pid {})", client.endpoint().pid));
        return Ok(());
    }
    if arguments.expose || arguments.listen.is_some() || !arguments.allowed_host.is_empty() {
        super::context::refuse_agents("choosing where the server listens")?;
    }
    let filter = paths::variable("CAPTURE_LOG")
        .and_then(|v| v.into_os_string().into_string().ok())
        .unwrap_or_else(|| LOG_FILTER.into());
    let log = ServerLog::of_stderr(log_file(&context.data));
    tracing_subscriber::fmt()
        // On a full disk, drop the log line rather than abort the server.
        .log_internal_errors(false)
        .with_writer(move || {
            log.replace_if_full();
            Redacting(printing::stderr())
        })
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_new(&filter)
                .with_context(|| format!("CAPTURE_LOG={filter} is not a log filter"))?,
        )
        .init();
    // This also goes to the log, which must contain no secrets.
    std::panic::set_hook(Box::new(|panic| {
        writeln!(Redacting(std::io::stderr()), "panicked: {panic}").ok();
    }));
    let settings = &context.config.server;
    let options = Options {
        listen: arguments.listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, settings.port).into()),
        exposed: arguments.expose,
        background: arguments.background,
        allowed_hosts: [&settings.allowed_hosts[..], &arguments.allowed_host].concat(),
        data: context.data.clone(),
        config: context.config.clone(),
    };
    Environment::check(&context.data)?;
    let taken = || Environment::record_own(&context.data, arguments.background);
    daemon::serve::run(&options, taken, &CancellationToken::new()).map_err(in_use)
}

fn host(text: &str) -> Result<String, String> {
    if is_host(text) {
        return Ok(text.to_owned());
    }
    Err("expected a host such as dev.example or 192.0.2.7:8080".into())
}

impl Arguments {
    /// Whether the command stops the running server.
    pub(super) const fn stops(&self) -> bool {
        self.stop
    }
}

/// Returns a separate exit code if another server uses the data directory.
fn in_use(error: anyhow::Error) -> anyhow::Error {
    let held = error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(store::LockError::Held { .. }))
            || matches!(cause.downcast_ref(), Some(store::StoreOpenError::Lock(store::LockError::Held { .. })))
    });
    if held { Failed::InUse(with_causes(&error)).into() } else { error }
}

/// Stops the running server. Reads no configuration, because an invalid one may be the reason to stop the server.
pub(super) fn stop(data: &Path, connection: Connection) -> anyhow::Result<()> {
    super::context::refuse_agents("stopping the server")?;
    let pid = client::stop(data, connection)?;
    printing::print_error_line(&format!("capture: the server (pid {pid}) has stopped"));
    Ok(())
}
