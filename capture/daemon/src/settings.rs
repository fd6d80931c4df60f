//! Applies changes of the configuration file while the server runs, where possible.
//!
//! An invalid file changes nothing.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use home::config::{Config, LOOK_EVERY};

use crate::{approvals::ApprovalBroker, findings::Findings, notices::Notices, supervisor::Supervisor};

/// Name of the thread that watches the file.
pub const THREAD: &str = "settings";

/// The parts whose settings can change while they run.
pub struct LiveParts {
    /// Uses the limits of the detectors, and the actions.
    pub findings: Findings,
    /// Uses the channels and their rules.
    pub notices: Notices,
    /// Uses the effect of the user's own prohibitions.
    pub approvals: ApprovalBroker,
}

/// Follows the file. The thread ends when the returned sender is dropped.
///
/// # Errors
/// When the thread cannot be started.
pub fn follow(file: PathBuf, config: Config, parts: LiveParts, supervisor: &Supervisor) -> anyhow::Result<Sender<()>> {
    let (stop, stopped) = bounded::<()>(1);
    let mut current = config;
    // Unknown at first, so that changes since the settings were read are applied too.
    let mut seen = None;
    // After a restart the thread continues with the settings in force.
    supervisor.spawn_restarting(THREAD, move || {
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK_EVERY) {
            let stamp = stamp(&file);
            if seen.replace(stamp) == Some(stamp) {
                continue;
            }
            match Config::load(&file) {
                Ok(config) => {
                    apply(&current, &config, &parts);
                    current = config;
                }
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::warn!(error, "the configuration is not valid; the previous settings stay in force");
                }
            }
        }
    })?;
    Ok(stop)
}

fn apply(before: &Config, after: &Config, parts: &LiveParts) {
    if (&before.monitor, &before.actions) != (&after.monitor, &after.actions) {
        parts.findings.configure(after.monitor.clone(), after.actions.clone());
        tracing::info!("the settings of findings and actions have changed and are in force");
    }
    if before.approvals != after.approvals {
        parts.approvals.configure(after.approvals.boundaries);
        tracing::info!("the settings of approvals have changed and are in force");
    }
    if before.notify != after.notify {
        parts.notices.configure(after.notify.clone());
        tracing::info!("the settings of notifications have changed and are in force");
    }
}

/// Changes whenever the file is changed or replaced; `None` without a file.
type Stamp = Option<(SystemTime, u64, u64)>;

fn stamp(file: &Path) -> Stamp {
    let about = file.metadata().ok()?;
    Some((about.modified().ok()?, about.size(), about.ino()))
}
