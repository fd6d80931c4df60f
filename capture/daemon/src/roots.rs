//! The agents' home directories on this machine: from the environment, the defaults, the configuration, and our own
//! agent's.

use std::path::Path;

use agents::{Agent, Homes, agent::ALL};
use events::Provider;

use crate::{config::Config, paths};

/// Finds the homes to read; `data` is the data directory.
///
/// # Errors
/// When neither HOME nor the agents' own variables are set.
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
    // Of an agent whose files are not read, none are looked for.
    ALL.iter().filter(|agent| agent.is_read()).map(of).chain([own]).collect()
}
