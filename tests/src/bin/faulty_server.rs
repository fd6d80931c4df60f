//! A server whose ingest panics once a file `panic` exists in its data directory. It shows what happens to a service
//! that loses a thread.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test double fails by panicking")]

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use daemon::serve::{Options, run_with};
use home::{clock, config::Config};
use tokio_util::sync::CancellationToken;

/// Accepts the same arguments as `capture serve` in the harness.
fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let data = std::env::args_os().skip_while(|argument| argument != "--data-dir").nth(1).map(PathBuf::from).unwrap();
    let marker = data.join("panic");
    let clock = move || {
        assert!(!marker.exists(), "the clock stands still");
        clock::now()
    };
    let listen = "127.0.0.1:0".parse().unwrap();
    let options = Options {
        listen,
        exposed: false,
        background: false,
        allowed_hosts: Vec::new(),
        data,
        config: Config::default(),
    };
    match run_with(&options, Arc::new(clock), || Ok(()), &CancellationToken::new()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
