//! `capture serve`

use std::{io::Write as _, net::SocketAddr};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use tokio_util::sync::CancellationToken;

use super::{Context, Failed};
use crate::{client::Client, places, redaction::Redacting, serve::Options};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Allow an address that other machines can reach.
    #[arg(long)]
    expose: bool,
    /// End the server that runs in the background.
    #[arg(long, conflicts_with_all = ["listen", "expose"])]
    stop: bool,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.stop {
        return stop(context);
    }
    let filter = places::variable("CAPTURE_LOG")
        .and_then(|v| v.into_os_string().into_string().ok())
        .unwrap_or_else(|| "info".into());
    tracing_subscriber::fmt()
        .with_writer(|| Redacting(std::io::stderr()))
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_new(&filter)
                .with_context(|| format!("CAPTURE_LOG={filter} is not a log filter"))?,
        )
        .init();
    // It goes to the log too, which holds no secrets.
    std::panic::set_hook(Box::new(|panic| {
        writeln!(Redacting(std::io::stderr()), "panicked: {panic}").ok();
    }));
    let options = Options {
        listen: arguments.listen,
        exposed: arguments.expose,
        data: context.data.clone(),
        config: context.config.clone(),
    };
    crate::serve::run(&options, &CancellationToken::new())
}

fn stop(context: &Context) -> anyhow::Result<()> {
    let Some(client) = Client::running(&context.data)? else {
        return Err(Failed::NotFound("no server is running".into()).into());
    };
    let pid = client.endpoint().pid;
    let target = i32::try_from(pid).ok().and_then(Pid::from_raw).context("the endpoint names no process")?;
    kill_process(target, Signal::TERM).with_context(|| format!("cannot end process {pid}"))?;
    eprintln!("capture: asked the server (pid {pid}) to end");
    Ok(())
}
