//! `capture agent drive`: runs an agent without its user interface, over the agent's own protocol.
//!
//! The thread that started the agent talks to it ([`driver`]); other threads read, wait for decisions and handle
//! signals, and send it events. Permission requests take the same path as a hook's: into the spool, and then the driver
//! waits for the server (`client`).
//!
//! The policy decides, or a person with the scope `control` whose process was not started by an agent. In this command,
//! a request can only be allowed by the user at its own terminal while the question is shown. That answer goes to the
//! server as a person's decision, and counts directly only if no server can be reached. The agent cannot give it: it
//! has no terminal (`protocols::program`), input typed before the question is discarded, and if this command was itself
//! started by an agent, it does not ask at all. Nothing in the environment or on the agent's pipes decides. In all
//! other cases the request is denied.

mod driver;
mod events;
mod hosted;
mod output;

use std::{
    ffi::OsString,
    io::IsTerminal,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use ::events::Provider;
use agents::{Agent, CannotRun};
use anyhow::Context as _;
use client::failure::{Failed, with_causes};
use home::paths;
use processes::{READS_PROCESSES, nearest_agent};
use protocols as protocol;
use protocols::program;
use terminal::host::child::resolve;

use super::{context::Context, number::seconds};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The agent.
    #[arg(long, value_name = "AGENT", value_parser = agent(), required_unless_present = "hosted")]
    agent: Option<Provider>,
    /// Working directory of the agent [default: the current directory].
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The agent's program [default: the one on the PATH].
    #[arg(long, value_name = "PROGRAM")]
    program: Option<OsString>,
    /// Extra argument for the agent's program; can be repeated.
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    agent_arg: Vec<OsString>,
    /// Deny a permission request that has no decision after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = seconds(1..=3_600))]
    wait: u32,
    /// Be the host of a session that the server started.
    #[arg(long, hide = true, conflicts_with_all = ["agent", "prompt"])]
    hosted: bool,
    /// The prompt.
    #[arg(
        required_unless_present = "hosted",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROMPT"
    )]
    prompt: Vec<String>,
}

fn agent() -> impl clap::builder::TypedValueParser<Value = Provider> {
    super::words::one_of(&Agent::providers_with(|agent| agent.drive.is_some()), Provider::as_str)
}

#[derive(Debug, clap::Args)]
pub(super) struct Child {
    driver: i32,
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Replaces this process with the agent.
pub(super) fn child(arguments: &Child) -> ExitCode {
    let error = program::become_program(arguments.driver, &arguments.command);
    printing::print_error_line(&format!("capture: {}", printing::safe(&error.to_string())));
    ExitCode::from(error.shell_code())
}

/// How to drive an agent in a directory.
struct PreparedAgent {
    codec: Box<dyn protocol::Codec>,
    words: Vec<OsString>,
    cwd: PathBuf,
    cwd_text: String,
}

/// Determines how to drive an agent in a directory.
fn prepare(
    agent: Provider,
    directory: &Path,
    program: Option<OsString>,
    more: Vec<OsString>,
) -> anyhow::Result<PreparedAgent> {
    // Agents report the directory with symbolic links resolved, so it is compared in that form.
    let cwd = directory
        .canonicalize()
        .with_context(|| format!("cannot use the working directory {}", directory.display()))?;
    if !cwd.is_dir() {
        return Err(Failed::Usage(format!("{} is not a directory", cwd.display())).into());
    }
    let cwd_text = cwd
        .to_str()
        .ok_or_else(|| {
            Failed::Usage(format!("the path of the working directory, {}, is not valid UTF-8", cwd.display()))
        })?
        .to_owned();
    let none = || Failed::Usage(format!("`capture agent drive` does not support {agent}"));
    let drive = protocol::drive(agent).ok_or_else(none)?;
    let codec = protocol::codec(drive.protocol, &cwd_text);
    let mut words: Vec<OsString> = drive.command.iter().map(OsString::from).collect();
    if let Some(program) = program {
        // The program is looked up from this directory, but runs in another one.
        let path = PathBuf::from(&program);
        words[0] = if path.components().count() > 1 { std::path::absolute(path)?.into_os_string() } else { program };
    }
    words.extend(more);
    let path = paths::variable("PATH").map(PathBuf::into_os_string);
    resolve(&words[0], path.as_deref())?;
    Ok(PreparedAgent { codec, words, cwd, cwd_text })
}

pub(super) fn run(context: Context, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let agent = match arguments.agent {
        Some(agent) if !arguments.hosted => agent,
        Some(_) | None => return hosted::run(context),
    };
    let directory = arguments.cwd.unwrap_or_else(|| PathBuf::from("."));
    let prepared = match prepare(agent, &directory, arguments.program, arguments.agent_arg) {
        Ok(prepared) => prepared,
        Err(error) => match error.downcast::<CannotRun>() {
            Ok(error) => {
                super::context::complain(&error.to_string());
                return Ok(ExitCode::from(error.shell_code()));
            }
            Err(error) => return Err(error),
        },
    };
    // Starts a server if the configuration allows it. The agent works without one.
    if let Err(error) = context.client() {
        super::context::complain(&format!(
            "cannot reach the server that decides permission requests: {}",
            with_causes(&error)
        ));
    }
    // If an agent may have started this command, the terminal may be the agent's and not a user's.
    let by_agent = !READS_PROCESSES
        || rustix::process::getppid()
            .and_then(|parent| u32::try_from(parent.as_raw_nonzero().get()).ok())
            .is_none_or(|parent| nearest_agent(parent).is_some());
    let input = std::io::stdin();
    // A shell stops background jobs that read from its terminal.
    let in_front = rustix::termios::tcgetpgrp(&input).is_ok_and(|group| group == rustix::process::getpgrp());
    let terminals = input.is_terminal() && std::io::stderr().is_terminal();
    let asks = !by_agent && !context.json && in_front && terminals;
    let talk = driver::DriverOptions {
        data: context.data.clone(),
        provider: agent,
        cwd: prepared.cwd_text,
        prompt: arguments.prompt.join(" "),
        patience: Duration::from_secs(u64::from(arguments.wait)),
        asks,
        json: context.json,
    };
    let code = driver::run(talk, prepared.codec, &prepared.words, &prepared.cwd, None)?;
    Ok(ExitCode::from(code))
}
