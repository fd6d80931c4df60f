//! The agents' homes on this machine: the environment's, the usual ones, the configuration's, and our own agent's.

use std::path::{Path, PathBuf};

use agents::{
    Agent, Homes,
    agent::{CLAUDE, CODEX, GEMINI, PI},
};

use crate::{config::Config, places};

/// Finds the homes to read; `data` is the data directory.
///
/// # Errors
/// When neither HOME nor the agents' own variables are set.
pub fn homes(config: &Config, data: &Path) -> anyhow::Result<Homes> {
    let all = |agent: &Agent, extra: &[PathBuf]| {
        let mut all = agent.home.directories(places::variable);
        anyhow::ensure!(
            !all.is_empty(),
            "neither HOME nor {} is set, so the files of {} cannot be found",
            agent.home.variable,
            agent.provider
        );
        for dir in extra {
            if !all.contains(dir) {
                all.push(dir.clone());
            }
        }
        Ok(all)
    };
    let roots = &config.roots;
    Ok(Homes {
        claude: all(&CLAUDE, &roots.claude)?,
        codex: all(&CODEX, &roots.codex)?,
        gemini: all(&GEMINI, &roots.gemini)?,
        pi: all(&PI, &roots.pi)?,
        capture: vec![data.join("agent")],
    })
}
