//! `capture attach`: attaches this terminal to a run.

use std::{io::IsTerminal, os::fd::AsFd, path::Path, process::ExitCode, time::Duration};

use anyhow::Context as _;
use client::failure::Failed;
use home::paths;
use terminal::host::{
    launch,
    terminal::{RawMode, Saved},
    wire::Attach,
};

use super::{active_run, detach_key::DetachKeyArgument, run::finish, seen};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its name, its id, at least 3 characters from the start or end of its id, or the session that it hosts.
    run: String,
    /// Watch without typing.
    #[arg(long)]
    read_only: bool,
    /// Take over typing and the terminal size from the terminal that is already attached. Without `--take`, this
    /// terminal only watches.
    #[arg(long, conflicts_with = "read_only")]
    take: bool,
    /// Key that detaches the terminal: `none`, or a ctrl- key such as `ctrl-]`.
    #[arg(long, value_name = "KEY", default_value = "ctrl-]")]
    detach_key: DetachKeyArgument,
}

/// How long the notice is shown before the run's screen covers it.
const NOTICE: Duration = Duration::from_millis(1500);

/// Explains why input typed here does not reach the run.
fn say_that_it_watches() {
    printing::print_error_line(
        "capture: another terminal is attached, so this one only watches; `--take` takes control",
    );
    // The channel never receives a message; this only waits.
    crossbeam_channel::after(NOTICE).recv().ok();
}

pub(super) fn run(data: Option<&Path>, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let data = paths::data_dir(data)?;
    let run = active_run::find(&data, &arguments.run)?;
    let (input, output) = (std::io::stdin(), std::io::stdout());
    if !input.is_terminal() || !output.is_terminal() {
        return Err(
            Failed::Other("`capture attach` needs a terminal as standard input and standard output".into()).into()
        );
    }
    let (seen_in, seen_run) = (data.clone(), run.run);
    // Best effort: the server may be busy or not running.
    std::thread::spawn(move || seen::completion_of_run(&seen_in, seen_run));
    let attach = Attach { read_only: arguments.read_only, take: arguments.take, detach_key: arguments.detach_key.0 };
    let raw = Saved::of(input.as_fd()).map(RawMode::new);
    let outcome = launch::attach(&run.socket, attach, [input.as_fd(), output.as_fd()], raw, say_that_it_watches)
        .with_context(|| format!("cannot attach to {}", run.run))?;
    finish(outcome, None, &data)
}
