//! `capture uninstall`: removes everything capture installed on this machine except the program.

use std::{fs, io::IsTerminal, path::Path};

use agents::Agent;
use anyhow::Context as _;
use client;
use client::failure::Failed;
use events::Provider;
use home::{paths, roots};
use host_protocol::runs;
use serde_json::Value;

use super::{
    active_run::name_of,
    context::{Context, is_agreed, print_line, refuse_agents},
    hooks, service,
};
use printing::safe;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Also delete the data directory with all recorded data, including the audit record.
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
            let why = "cannot ask for confirmation without a terminal; pass --yes to confirm";
            return Err(Failed::Refused(why.into()).into());
        }
        let what = if arguments.delete_data { " and delete all recorded data" } else { "" };
        if !is_agreed(&format!("Remove the hooks and the service, stop the server{what}?"))? {
            return Err(Failed::Refused("nothing was changed".into()).into());
        }
    }
    // The agents come first, because their settings must not name a command that no longer exists.
    hooks::remove_all(context, arguments.diff)?;
    if service::uninstall()? {
        print_line("removed the service")?;
    }
    if context.running()?.is_some() {
        client::stop(&context.data, context.connection)?;
        print_line("stopped the server")?;
    }
    // List the runs before deleting the directory that describes them.
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
        let (noun, them) = if alive.len() == 1 { ("run continues", "it") } else { ("runs continue", "them") };
        print_line(&format!("{} {noun}: {}; `capture stop NAME` ends {them}", alive.len(), alive.join(", ")))?;
    }
    let entries = mcp_entries(&roots::homes(&context.config, &context.data)?);
    for entry in &entries {
        print_line(&safe(entry))?;
    }
    if entries.is_empty() {
        print_line("found no entry of `capture mcp` in agents' settings")?;
    }
    let program = std::env::current_exe().context("cannot determine the path of the capture program")?;
    print_line(&format!("the program is {}", safe(&program.display().to_string())))
}

/// The entries of `capture mcp` in the settings of agents, each with the command that removes it. Files that cannot be
/// read or parsed have none.
fn mcp_entries(homes: &agents::Homes) -> Vec<String> {
    let mut entries = Vec::new();
    for provider in Provider::ALL {
        let Some(settings) = Agent::of(*provider).and_then(|agent| agent.mcp_settings.as_ref()) else { continue };
        let Some(home) = homes.of(*provider).first() else { continue };
        for file in settings.files {
            let path = home.join(file);
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let names = match path.extension() {
                Some(extension) if extension == "toml" => names_in_toml(&text, settings.servers),
                Some(_) | None => names_in_json(&text, settings.servers),
            };
            for name in names.unwrap_or_default() {
                let path = path.display();
                let remove = settings.remove;
                entries.push(format!("kept the MCP server {name} in {path}; `{remove} {name}` removes it"));
            }
        }
    }
    entries
}

fn names_in_json(text: &str, servers: &str) -> Option<Vec<String>> {
    let settings: Value = serde_json::from_str(text).ok()?;
    let is_ours = |server: &Value| is_capture(server.get("command")?.as_str()?, server.pointer("/args/0")?.as_str()?);
    let servers = settings.get(servers)?.as_object()?;
    let ours = servers.iter().filter(|(_, server)| is_ours(server) == Some(true));
    Some(ours.map(|(name, _)| name.clone()).collect())
}

fn names_in_toml(text: &str, servers: &str) -> Option<Vec<String>> {
    let settings: toml_edit::DocumentMut = text.parse().ok()?;
    let is_ours = |server: &toml_edit::Item| {
        is_capture(server.get("command")?.as_str()?, server.get("args")?.as_array()?.get(0)?.as_str()?)
    };
    let servers = settings.get(servers)?.as_table_like()?;
    let ours = servers.iter().filter(|(_, server)| is_ours(server) == Some(true));
    Some(ours.map(|(name, _)| name.to_owned()).collect())
}

/// Whether a command line runs `capture mcp`; `None` if the command names no program.
fn is_capture(command: &str, first: &str) -> Option<bool> {
    Some(Path::new(command).file_name()? == "capture" && first == "mcp")
}

/// Deletes the data directory if capture created it, so that a mistyped path cannot delete a home directory.
fn delete_data(context: &Context) -> anyhow::Result<()> {
    if !context.data.exists() {
        return Ok(());
    }
    if !context.data.join("capture.db").is_file() {
        return Err(Failed::Refused(format!(
            "{} was not deleted: it does not contain a capture database",
            context.data.display()
        ))
        .into());
    }
    fs::remove_dir_all(&context.data).with_context(|| format!("cannot delete {}", context.data.display()))
}
