//! Opens an address in the user's browser.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use home::paths;

/// Programs that open an address in the user's browser, on Linux and macOS.
const OPENERS: &[&str] = &["xdg-open", "open"];

/// The program that opens addresses; `None` without a display or over SSH, where no browser could be shown.
pub(super) fn browser() -> Option<PathBuf> {
    let is_set = |name: &str| paths::variable(name).is_some();
    if is_set("SSH_CONNECTION") || !(is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") || crate::os::ALWAYS_HAS_DISPLAY) {
        return None;
    }
    let path = paths::variable("PATH")?;
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut found = OPENERS.iter().flat_map(|name| directories.iter().map(move |dir| dir.join(name)));
    found.find(|program| program.is_file())
}

/// Starts the browser; returns false if it cannot be started or reports that it cannot open the address.
pub(super) fn open(program: &PathBuf, address: &str) -> bool {
    let status =
        Command::new(program).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
