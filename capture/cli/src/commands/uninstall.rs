//! `capture uninstall`: removes what capture has put on this machine, but for the program.

use std::{fs, io::IsTerminal};

use anyhow::Context as _;

use ::terminal::host::runs;

use super::{Context, Failed, active_run::name_of, hooks, is_agreed, print_line, refuse_agents, service};
use crate::terminal::safe;
use client;
use daemon::paths;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Also delete the data directory: everything that was recorded, the audit record too.
    #[arg(long)]
    delete_data: bool,
    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,
    /// Show what changes in the agents' settings, as a diff.
    #[arg(long)]
    diff: bool,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    refuse_agents("uninstalling capture")?;
    if !arguments.yes {
        if context.json || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Err(Failed::Refused("cannot ask for confirmation without a terminal; pass --yes".into()).into());
        }
        let what = if arguments.delete_data { " and delete all recorded data" } else { "" };
        if !is_agreed(&format!("Remove the hooks and the service, stop the server{what}?"))? {
            return Err(Failed::Refused("nothing was changed".into()).into());
        }
    }
    // The agents first: what they call must not be gone before their settings no longer name it.
    hooks::remove_all(context, arguments.diff)?;
    if service::uninstall()? {
        print_line("removed the service")?;
    }
    if context.running()?.is_some() {
        client::stop(&context.data, context.connection)?;
        print_line("stopped the server")?;
    }
    // Listed before the directory that describes them is deleted.
    let alive: Vec<String> = runs::list(&context.data).iter().map(name_of).collect();
    let data = safe(&context.data.display().to_string());
    if arguments.delete_data {
        delete_data(context)?;
        print_line(&format!("deleted {data}"))?;
    } else if context.data.exists() {
        print_line(&format!("kept the recorded data in {data}; --delete-data deletes it"))?;
    }
    let config = paths::config_file()?;
    if let Some(dir) = config.parent().filter(|dir| dir.exists()) {
        print_line(&format!("kept your configuration and policy in {}", safe(&dir.display().to_string())))?;
    }
    if !alive.is_empty() {
        let (noun, them) = if alive.len() == 1 { ("run goes", "it") } else { ("runs go", "them") };
        print_line(&format!("{} {noun} on: {}; `capture stop NAME` ends {them}", alive.len(), alive.join(", ")))?;
    }
    print_line(
        "kept entries of `capture mcp` in agents' settings: an agent's `mcp remove capture` command removes one",
    )?;
    let program = std::env::current_exe().context("cannot determine the path of the capture program")?;
    print_line(&format!("the program is {}", safe(&program.display().to_string())))
}

/// Deletes the data directory, if it is one of capture's: a path typed by mistake must not cost a home.
fn delete_data(context: &Context) -> anyhow::Result<()> {
    if !context.data.exists() {
        return Ok(());
    }
    if !context.data.join("capture.db").is_file() {
        return Err(Failed::Refused(format!(
            "{} was not deleted: it holds no database of capture",
            context.data.display()
        ))
        .into());
    }
    fs::remove_dir_all(&context.data).with_context(|| format!("cannot delete {}", context.data.display()))
}
