//! `capture agent`: agents without their user interface, and session files in pi's format.

mod session;

use std::process::ExitCode;

use super::{Context, drive};

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: AgentCommand,
}

#[derive(Debug, clap::Subcommand)]
enum AgentCommand {
    /// Give an agent one prompt, without its user interface, and print what it writes.
    ///
    /// Your policy decides permission requests. If it leaves a request to you, answer at this terminal or with `capture
    /// approve` and `capture deny`.
    Drive(drive::Arguments),
    /// Inspect a session file in the format of the agent pi, or change where the session continues.
    Session(session::Arguments),
}

/// Runs it; what needs no configuration reads none.
pub(super) fn run(
    json: bool,
    arguments: Arguments,
    context: impl FnOnce() -> anyhow::Result<Context>,
) -> anyhow::Result<ExitCode> {
    match arguments.verb {
        AgentCommand::Drive(arguments) => drive::run(&context()?, arguments),
        AgentCommand::Session(arguments) => session::run(json, &arguments),
    }
}
