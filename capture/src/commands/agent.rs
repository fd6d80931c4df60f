//! `capture agent`: our own agent.

mod session;

use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Look into a session's file, and change where it goes on.
    Session(session::Arguments),
}

pub(super) fn run(json: bool, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.verb {
        Verb::Session(arguments) => session::run(json, arguments),
    }
}
