//! The agents' home directories on this machine: from the environment, the defaults and the configuration, and the one
//! of our own agent.

use std::{fs, os::unix::fs::DirBuilderExt, path::Path};

use agents::{Agent, Homes, agent::ALL};
use events::Provider;

use crate::{config::Config, paths};

/// Finds the homes to read; `data` is the data directory.
///
/// # Errors
/// If neither HOME nor the agents' own variables are set.
pub fn homes(config: &Config, data: &Path) -> anyhow::Result<Homes> {
    let of = |agent: &&Agent| {
        let mut all = agent.home.directories(paths::variable);
        anyhow::ensure!(
            !all.is_empty(),
            "neither HOME nor {} is set, so the files of {} cannot be found",
            agent.home.variable,
            agent.provider
        );
        for dir in config.roots.of(agent.provider) {
            if !all.contains(dir) {
                all.push(dir.clone());
            }
        }
        Ok((agent.provider, all))
    };
    let own = Ok((Provider::Capture, vec![data.join("agent")]));
    // Agents whose files are not read have no homes.
    ALL.iter().filter(|agent| agent.is_read()).map(of).chain([own]).collect()
}

/// Creates our own agent's session directory, so that it is watched before the first session begins. Otherwise the
/// first session is noticed only by polling.
pub fn make_session_directory(data: &Path) {
    let directory = data.join("agent/sessions");
    if let Err(error) = fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory) {
        tracing::warn!(%error, directory = %directory.display(), "cannot create the directory of the agent's sessions");
    }
}
