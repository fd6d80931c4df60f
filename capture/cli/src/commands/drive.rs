//! `capture agent drive`: an agent without a screen, spoken to over its own protocol.
//!
//! One thread, the one that started the agent, speaks with it ([`driver`]); others read, wait for
//! decisions and mind signals, and hand it what they hear. Requests for permission go the way of a
//! hook's: into the spool, and then whoever asked waits for the server ([`server`]).
//!
//! Who decides: the policy, or a person with the scope `control` at whose back there is no agent. Here
//! there is no other yes but the one of the user at our own terminal, while the question is shown: it
//! goes to the server as a person's decision, and is taken as it is only when no server can be reached.
//! The agent cannot give it: it has no terminal (`protocols::program`), what was typed before
//! the question is thrown away, and when we were started by an agent ourselves nobody is asked here.
//! Nothing in our environment or on the agent's pipes decides. Whatever else happens is a denial.

mod driver;
mod events;
mod output;
mod server;

use std::{ffi::OsString, io::IsTerminal, path::PathBuf, process::ExitCode, time::Duration};

use ::events::Provider;
use ::terminal::host::child::resolve;
use agents::Agent;
use anyhow::Context as _;
use processes::nearest_agent;
use protocols as protocol;
use protocols::program;

use super::{Context, Failed};
use crate::terminal;
use daemon::paths;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The agent.
    #[arg(long, value_name = "AGENT", value_parser = agent())]
    agent: Provider,
    /// Where it works [default: here].
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The agent's program, when it is not the one on the PATH.
    #[arg(long, value_name = "PROGRAM")]
    program: Option<OsString>,
    /// A further argument for the agent's program; may be given again.
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    agent_arg: Vec<OsString>,
    /// How long a request waits for a decision before it is denied, seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    wait: u32,
    /// What the agent is to do.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROMPT")]
    prompt: Vec<String>,
}

fn agent() -> impl clap::builder::TypedValueParser<Value = Provider> {
    super::one_of(&Agent::providers_with(|agent| agent.drive.is_some()), Provider::as_str)
}

#[derive(Debug, clap::Args)]
pub(super) struct Child {
    driver: i32,
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Becomes the agent.
pub(super) fn child(arguments: &Child) -> ExitCode {
    let error = program::become_program(arguments.driver, &arguments.command);
    terminal::print_error_line(&format!("capture: {}", terminal::safe(&error.to_string())));
    ExitCode::from(error.shell_code())
}

pub(super) fn run(context: &Context, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let given = arguments.cwd.unwrap_or_else(|| PathBuf::from("."));
    // Agents tell the directory without links, and so it is compared.
    let cwd = given.canonicalize().with_context(|| format!("cannot work in {}", given.display()))?;
    if !cwd.is_dir() {
        return Err(Failed::Usage(format!("{} is not a directory", cwd.display())).into());
    }
    let told = cwd.to_str().ok_or_else(|| Failed::Usage(format!("{} is not valid UTF-8", cwd.display())))?.to_owned();
    let none = || Failed::Usage(format!("{} has no protocol that is spoken here", arguments.agent));
    let drive = protocol::drive(arguments.agent).ok_or_else(none)?;
    let codec = protocol::codec(drive.protocol, &told);
    let mut words: Vec<OsString> = drive.command.iter().map(OsString::from).collect();
    if let Some(program) = arguments.program {
        // Looked for from here, and run from there.
        let path = PathBuf::from(&program);
        words[0] = if path.components().count() > 1 { std::path::absolute(path)?.into_os_string() } else { program };
    }
    words.extend(arguments.agent_arg);
    let path = paths::variable("PATH").map(PathBuf::into_os_string);
    if let Err(error) = resolve(&words[0], path.as_deref()) {
        super::complain(&error.to_string());
        return Ok(ExitCode::from(error.shell_code()));
    }
    // Where the configuration allows it, this starts a server. Without one the agent works all the same.
    if let Err(error) = context.client() {
        super::complain(&format!("nobody can be asked for permission: {error:#}"));
    }
    // A terminal that an agent made is not a user's.
    let by_agent = rustix::process::getppid()
        .and_then(|parent| u32::try_from(parent.as_raw_nonzero().get()).ok())
        .is_none_or(|parent| nearest_agent(parent).is_some());
    let input = std::io::stdin();
    // A shell stops those that read from its terminal in the background.
    let in_front = rustix::termios::tcgetpgrp(&input).is_ok_and(|group| group == rustix::process::getpgrp());
    let terminals = input.is_terminal() && std::io::stderr().is_terminal();
    let asks = !by_agent && !context.json && in_front && terminals;
    let talk = driver::DriverOptions {
        data: context.data.clone(),
        provider: arguments.agent,
        cwd: told,
        prompt: arguments.prompt.join(" "),
        patience: Duration::from_secs(u64::from(arguments.wait)),
        asks,
        json: context.json,
    };
    let code = driver::run(talk, codec, &words, &cwd)?;
    Ok(ExitCode::from(code))
}
