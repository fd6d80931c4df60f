//! The directories and files that capture uses. The environment is read here and nowhere else.

use std::path::{Path, PathBuf};

use events::RunId;
use hooks::ProgramSearch;
use policy_files::OnDisk;

/// A variable of the environment; `None` when unset or empty.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the home of the environment")]
pub fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// Where agents' programs are looked for, and the environment in which one is asked for its version: what
/// a program, or the version manager in front of it, needs to be found, and nothing that tells it what to do.
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
/// When HOME is not set.
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
/// When neither XDG_CONFIG_HOME nor HOME is set.
pub fn config_file() -> anyhow::Result<PathBuf> {
    Ok(config_dir()?.join("config.toml"))
}

/// `$XDG_CONFIG_HOME/capture/screen-rules`: the user's rules for reading screens.
///
/// # Errors
/// When neither XDG_CONFIG_HOME nor HOME is set.
pub fn screen_rules_dir() -> anyhow::Result<PathBuf> {
    Ok(config_dir()?.join("screen-rules"))
}

/// `$XDG_CONFIG_HOME/capture/prices.toml`: the user's prices of models.
///
/// # Errors
/// When neither XDG_CONFIG_HOME nor HOME is set.
pub fn prices_file() -> anyhow::Result<PathBuf> {
    Ok(config_dir()?.join("prices.toml"))
}

/// `$XDG_CONFIG_HOME/capture/policy.toml`: the user's rules for approvals.
///
/// # Errors
/// When neither XDG_CONFIG_HOME nor HOME is set.
pub fn policy_file() -> anyhow::Result<PathBuf> {
    Ok(policy_file_in(&config_dir()?))
}

/// The user's rules for approvals in a directory of configuration.
#[must_use]
pub fn policy_file_in(config_dir: &Path) -> PathBuf {
    config_dir.join("policy.toml")
}

/// What policies are judged by, with the PATH of this process. What lies in `data` and in the configuration
/// directory is private.
#[must_use]
pub fn policy_facts(data: &Path) -> OnDisk {
    let path = variable("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let config = policy_file().ok().and_then(|file| file.parent().map(Path::to_path_buf));
    OnDisk::new(path, std::iter::once(data.to_owned()).chain(config), home().ok())
}

fn config_dir() -> anyhow::Result<PathBuf> {
    config_dir_in(&variable)
}

/// The directory of the configuration in an environment.
pub(crate) fn config_dir_in(variable: &dyn Fn(&str) -> Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let base = match variable("XDG_CONFIG_HOME") {
        Some(dir) if dir.is_absolute() => dir,
        _ => home_in(variable)?.join(".config"),
    };
    Ok(base.join("capture"))
}

/// The data directory: what was typed, else CAPTURE_DATA_DIR, else `$XDG_DATA_HOME/capture`.
///
/// # Errors
/// When none of them, nor HOME, is set, something else than a directory is there, or a directory that holds other
/// things and none of capture's: it would become private.
pub fn data_dir(typed: Option<&Path>) -> anyhow::Result<PathBuf> {
    let chosen = typed.map(Path::to_path_buf).or_else(|| variable("CAPTURE_DATA_DIR"));
    let dir = chosen.map_or_else(|| data_dir_in(&variable), |dir| Ok(std::path::absolute(dir)?))?;
    // What is not there yet is made below the nearest directory that is.
    let nearest = dir.ancestors().find(|part| part.symlink_metadata().is_ok());
    if let Some(file) = nearest.filter(|part| part.metadata().is_ok_and(|there| !there.is_dir())) {
        anyhow::bail!("cannot use {} as data directory: {} is not a directory", dir.display(), file.display());
    }
    anyhow::ensure!(
        is_ours(&dir),
        "cannot use {} as data directory: it is not empty and holds no data of capture; choose another directory",
        dir.display()
    );
    Ok(dir)
}

/// The log file of a server started in the background.
#[must_use]
pub fn log_file(data: &Path) -> PathBuf {
    data.join("serve.log")
}

/// The directory of the recordings nobody gave a file for.
#[must_use]
pub fn recordings(data: &Path) -> PathBuf {
    data.join("recordings")
}

/// The first file of the recording of a run that nobody gave a file for.
#[must_use]
pub fn recording(data: &Path, run: RunId) -> PathBuf {
    recordings(data).join(format!("{run}.cast"))
}

/// The file of the paired devices, in the data directory.
pub const DEVICES: &str = "devices.json";

/// The file of the browsers that are subscribed to messages, in the data directory.
pub const PUSH: &str = "push.json";

/// Names in a data directory that nothing else has.
const MARKS: &[&str] = &["audit.head", "endpoint.json", "environment.json", "start.lock", "serve.log", "spool"];
/// Further names in it, which other programs may use too.
const COMMON: &[&str] = &["agent", "backups", DEVICES, PUSH, "recordings", "runs", "setup.json", "tokens"];

/// Whether a directory is a data directory, or can become one: it is not there, is empty, or holds what capture puts into
/// one. One that cannot be read is looked at by whoever uses it.
fn is_ours(dir: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(dir) else { return true };
    let names: Vec<_> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let is_marked = |name: &String| name.starts_with("capture.") || MARKS.contains(&name.as_str());
    names.iter().any(is_marked) || names.iter().all(|name| COMMON.contains(&name.as_str()))
}

/// The data directory in an environment, when none was named.
pub(crate) fn data_dir_in(variable: &dyn Fn(&str) -> Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let dir = match variable("XDG_DATA_HOME") {
        Some(dir) if dir.is_absolute() => dir.join("capture"),
        _ => home_in(variable)?.join(".local/share/capture"),
    };
    Ok(std::path::absolute(dir)?)
}
