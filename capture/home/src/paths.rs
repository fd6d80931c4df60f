//! The directories and files that capture uses. Only this module reads the environment.

use std::path::{Path, PathBuf};

use events::RunId;
use hooks::ProgramSearch;
use policy_files::OnDisk;

/// An environment variable; `None` if unset or empty.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the home of the environment")]
pub fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// Where to look for agents' programs, and the environment for asking one for its version: the variables that a
/// program, or a version manager in front of it, needs to be found, and none that change its behaviour.
#[must_use]
pub fn agent_search() -> ProgramSearch {
    const PASSED_ON: [&str; 11] = [
        "HOME",
        "USER",
        "LANG",
        "TMPDIR",
        "VOLTA_HOME",
        "ASDF_DIR",
        "ASDF_DATA_DIR",
        "MISE_DATA_DIR",
        "MISE_CONFIG_DIR",
        "NODENV_ROOT",
        "PNPM_HOME",
    ];
    let passed = PASSED_ON.iter().filter_map(|name| Some((name.into(), variable(name)?.into_os_string())));
    ProgramSearch::new(variable("PATH").unwrap_or_default().into_os_string(), passed.collect())
}

/// The user's home directory.
///
/// # Errors
/// If HOME is not set.
pub fn home() -> anyhow::Result<PathBuf> {
    home_in(&variable)
}

fn home_in(variable: &dyn Fn(&str) -> Option<PathBuf>) -> anyhow::Result<PathBuf> {
    variable("HOME")
        .ok_or_else(|| anyhow::anyhow!("HOME is not set, so neither configuration nor agents' files can be found"))
}

/// `$XDG_CONFIG_HOME/capture/config.toml`.
///
/// # Errors
/// If neither XDG_CONFIG_HOME nor HOME is set.
pub fn config_file() -> anyhow::Result<PathBuf> {
    Ok(config_dir()?.join("config.toml"))
}

/// `$XDG_CONFIG_HOME/capture/screen-rules`: the user's rules for reading screens.
///
/// # Errors
/// If neither XDG_CONFIG_HOME nor HOME is set.
pub fn screen_rules_dir() -> anyhow::Result<PathBuf> {
    Ok(config_dir()?.join("screen-rules"))
}

/// `$XDG_CONFIG_HOME/capture/prices.toml`: the user's model prices.
///
/// # Errors
/// If neither XDG_CONFIG_HOME nor HOME is set.
pub fn prices_file() -> anyhow::Result<PathBuf> {
    Ok(config_dir()?.join("prices.toml"))
}

/// `$XDG_CONFIG_HOME/capture/policy.toml`: the user's rules for approvals.
///
/// # Errors
/// If neither XDG_CONFIG_HOME nor HOME is set.
pub fn policy_file() -> anyhow::Result<PathBuf> {
    Ok(policy_file_in(&config_dir()?))
}

/// The file of the user's approval rules in a configuration directory.
#[must_use]
pub fn policy_file_in(config_dir: &Path) -> PathBuf {
    config_dir.join("policy.toml")
}

/// The facts for evaluating policies, with the PATH of this process. The data and configuration directories count as
/// private.
#[must_use]
pub fn policy_facts(data: &Path) -> OnDisk {
    let path = variable("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let config = policy_file().ok().and_then(|file| file.parent().map(Path::to_path_buf));
    OnDisk::new(path, std::iter::once(data.to_owned()).chain(config), home().ok())
}

fn config_dir() -> anyhow::Result<PathBuf> {
    config_dir_in(&variable)
}

/// The configuration directory according to an environment.
pub(crate) fn config_dir_in(variable: &dyn Fn(&str) -> Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let base = match variable("XDG_CONFIG_HOME") {
        Some(dir) if dir.is_absolute() => dir,
        _ => home_in(variable)?.join(".config"),
    };
    Ok(base.join("capture"))
}

/// The data directory: the given one, otherwise CAPTURE_DATA_DIR, otherwise `$XDG_DATA_HOME/capture`.
///
/// # Errors
/// If none of these and no HOME is set, if the path is not a directory, or if the directory contains other files and
/// none of capture's: using it would make it private.
pub fn data_dir(typed: Option<&Path>) -> anyhow::Result<PathBuf> {
    let chosen = typed.map(Path::to_path_buf).or_else(|| variable("CAPTURE_DATA_DIR"));
    let dir = chosen.map_or_else(|| data_dir_in(&variable), |dir| Ok(std::path::absolute(dir)?))?;
    // A missing directory is created below its nearest existing ancestor.
    let nearest = dir.ancestors().find(|part| part.symlink_metadata().is_ok());
    if let Some(file) = nearest.filter(|part| part.metadata().is_ok_and(|there| !there.is_dir())) {
        anyhow::bail!("cannot use {} as data directory: {} is not a directory", dir.display(), file.display());
    }
    anyhow::ensure!(
        is_ours(&dir),
        "cannot use {} as data directory: it is not empty and contains no data of capture; choose another directory",
        dir.display()
    );
    Ok(dir)
}

/// The log file of a background server.
#[must_use]
pub fn log_file(data: &Path) -> PathBuf {
    data.join("serve.log")
}

/// The directory of recordings without an explicit file.
#[must_use]
pub fn recordings(data: &Path) -> PathBuf {
    data.join("recordings")
}

/// The first file of a run's recording without an explicit file.
#[must_use]
pub fn recording(data: &Path, run: RunId) -> PathBuf {
    recordings(data).join(format!("{run}.cast"))
}

/// The file of the paired devices, in the data directory.
pub const DEVICES: &str = "devices.json";

/// The file of the browsers with push subscriptions, in the data directory.
pub const PUSH: &str = "push.json";

/// File names that occur only in a data directory of capture.
const MARKS: &[&str] = &["audit.head", "endpoint.json", "environment.json", "start.lock", "serve.log", "spool"];
/// Further file names in it, which other programs may use too.
const COMMON: &[&str] = &["agent", "backups", DEVICES, PUSH, "recordings", "runs", "setup.json", "tokens"];

/// Whether a directory is a data directory or can become one: it does not exist, is empty, or contains capture's files.
/// Returns true if it cannot be read, which the caller will report.
fn is_ours(dir: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(dir) else { return true };
    let names: Vec<_> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let is_marked = |name: &String| name.starts_with("capture.") || MARKS.contains(&name.as_str());
    names.iter().any(is_marked) || names.iter().all(|name| COMMON.contains(&name.as_str()))
}

/// The default data directory according to an environment.
pub(crate) fn data_dir_in(variable: &dyn Fn(&str) -> Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let dir = match variable("XDG_DATA_HOME") {
        Some(dir) if dir.is_absolute() => dir.join("capture"),
        _ => home_in(variable)?.join(".local/share/capture"),
    };
    Ok(std::path::absolute(dir)?)
}
