//! `capture service`: makes the system start the server when the user logs in.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::Context as _;
use client::failure::Failed;
use home::{environment::Environment, paths};
use serde::Serialize;

use super::context::{Context, print_line, refuse_agents};
use printing::safe;

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: ServiceCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ServiceCommand {
    /// Install a systemd user unit and start it.
    Install {
        /// Print the unit instead of installing it.
        #[arg(long)]
        dry_run: bool,
    },
    /// Stop the unit and remove it.
    Uninstall,
    /// Show whether the unit is installed and running.
    Status,
}

/// The name of the unit.
const UNIT: &str = "capture.service";

/// The state of the unit.
#[derive(Debug, Serialize)]
struct ServiceStatus {
    unit: PathBuf,
    installed: bool,
    /// The state as systemd names it: `active`, `inactive`, `failed`; `None` without systemd.
    state: Option<String>,
    /// Whether the unit starts before the user logs in.
    lingers: Option<bool>,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    match arguments.verb {
        ServiceCommand::Install { dry_run: true } => print_line(unit(context)?.trim_end()),
        ServiceCommand::Install { dry_run: false } => install(context),
        ServiceCommand::Uninstall => {
            refuse_agents("removing the service")?;
            if !uninstall()? {
                return Err(Failed::NotFound(format!("{} is not installed", unit_file()?.display())).into());
            }
            printing::print_error_line("capture: the service was removed; commands start a server when they need one");
            Ok(())
        }
        ServiceCommand::Status => status(context),
    }
}

fn install(context: &Context) -> anyhow::Result<()> {
    refuse_agents("installing a service")?;
    if !has_systemd() {
        return Err(Failed::Other(format!(
            "systemd does not manage this login session; have your system run `{} serve` at login, or let commands \
             start the server (`autostart`, the default)",
            std::env::current_exe().map_or_else(|_| "capture".into(), |program| program.display().to_string())
        ))
        .into());
    }
    let (file, text) = (unit_file()?, unit(context)?);
    let dir = file.parent().context("the unit's path has no parent directory")?;
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    // The unit replaces the running server, because two servers cannot share the data directory.
    if let Some(client) = context.running()? {
        drop(client);
        client::stop(&context.data, context.connection)?;
    }
    atomic_file::replace(&file, text.as_bytes(), atomic_file::Durability::Synced)
        .with_context(|| format!("cannot write {}", file.display()))?;
    systemctl(&["daemon-reload"])?;
    systemctl(&["enable", "--now", UNIT])?;
    print_line(&format!("installed and started {}", safe(&file.display().to_string())))?;
    if lingers() == Some(false) {
        printing::print_error_line(
            "capture: the server runs while you are logged in; `loginctl enable-linger` starts it at boot",
        );
    }
    Ok(())
}

/// Removes the unit if it exists; returns whether it did.
pub(super) fn uninstall() -> anyhow::Result<bool> {
    let file = unit_file()?;
    if !file.exists() {
        return Ok(false);
    }
    if has_systemd() {
        // A unit that never ran cannot be stopped; remove it anyway.
        systemctl(&["disable", "--now", UNIT]).ok();
    }
    fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
    if has_systemd() {
        systemctl(&["daemon-reload"])?;
    }
    Ok(true)
}

fn status(context: &Context) -> anyhow::Result<()> {
    let unit = unit_file()?;
    let state = has_systemd().then(|| output("systemctl", &["--user", "is-active", UNIT])).flatten();
    let status = ServiceStatus { installed: unit.exists(), unit, state, lingers: lingers() };
    if context.json {
        return context.print_json(&status);
    }
    let file = safe(&status.unit.display().to_string());
    match (status.installed, status.state.as_deref()) {
        (false, _) => print_line("not installed; commands start a server when they need one"),
        (true, Some(state)) => print_line(&format!("{}: {file}", safe(state))),
        (true, None) => print_line(&format!("installed, but systemd does not manage this login session: {file}")),
    }
}

fn unit_file() -> anyhow::Result<PathBuf> {
    let config = paths::variable("XDG_CONFIG_HOME").filter(|dir| dir.is_absolute());
    let config = config.map_or_else(|| paths::home().map(|home| home.join(".config")), Ok)?;
    Ok(config.join("systemd/user").join(UNIT))
}

/// The text of the unit. The server gets the same environment as when a command starts it.
fn unit(context: &Context) -> anyhow::Result<String> {
    let program = std::env::current_exe().context("cannot determine the path of the capture program")?;
    let data = std::path::absolute(&context.data)?;
    let environment = Environment::of_background(&data)?;
    let line = |(name, value): (&str, &str)| format!("Environment={}\n", quoted(&format!("{name}={value}")));
    // In commands, systemd also replaces `$NAME` inside quotes.
    let word = |text: &str| quoted(text).replace('$', "$$");
    let lines: String = environment.variables().map(line).collect();
    Ok(format!(
        "[Unit]\nDescription=capture: observes coding-agent sessions\nDocumentation=man:capture(1)\n\n[Service]\n\
         ExecStart={} serve --data-dir {}\n{lines}Restart=on-failure\nRestartSec=2\nKillMode=process\n\n[Install]\nWantedBy=default.target\n",
        word(&program.display().to_string()),
        word(&data.display().to_string()),
    ))
}

/// Quotes a word for a unit file and doubles the characters that systemd would expand.
fn quoted(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!("\"{escaped}\"")
}

fn has_systemd() -> bool {
    paths::variable("XDG_RUNTIME_DIR").is_some_and(|dir| dir.join("systemd").is_dir())
}

/// Whether the user's units run without a login; `None` if this is unknown.
fn lingers() -> Option<bool> {
    let said = output("loginctl", &["show-user", "--property=Linger", "--value"])?;
    Some(said == "yes")
}

fn systemctl(arguments: &[&str]) -> anyhow::Result<()> {
    let done = Command::new("systemctl").arg("--user").args(arguments).stdin(Stdio::null()).output();
    let done = done.context("cannot run `systemctl`")?;
    if done.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&done.stderr);
    Err(Failed::Other(format!("`systemctl --user {}` failed: {}", arguments.join(" "), safe(why.trim()))).into())
}

/// The first line of a program's output, whatever its exit code.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let done = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    String::from_utf8(done.stdout).ok()?.lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_in_a_unit_file_argument_are_escaped() {
        assert_eq!(quoted("/home/me/100%/$x \"y\""), r#""/home/me/100%%/$x \"y\"""#);
    }
}
