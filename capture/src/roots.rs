//! The agents' homes on this machine: the environment's, the usual ones, the configuration's.

use std::path::PathBuf;

use adapters::providers::Homes;

use crate::{config::Config, places};

/// Finds the homes to read.
///
/// # Errors
/// When neither HOME nor the agents' own variables are set.
pub fn homes(config: &Config) -> anyhow::Result<Homes> {
    let usual = |name: &str| places::home().map(|home| home.join(name));
    let with = |own: PathBuf, extra: &[PathBuf]| {
        let mut all = vec![own];
        all.extend(extra.iter().filter(|dir| **dir != all[0]).cloned().collect::<Vec<_>>());
        all
    };
    let claude = places::variable("CLAUDE_CONFIG_DIR").map_or_else(|| usual(".claude"), Ok)?;
    let codex = places::variable("CODEX_HOME").map_or_else(|| usual(".codex"), Ok)?;
    let gemini =
        places::variable("GEMINI_CLI_HOME").map_or_else(|| usual(".gemini"), |home| Ok(home.join(".gemini")))?;
    Ok(Homes {
        claude: with(claude, &config.roots.claude),
        codex: with(codex, &config.roots.codex),
        gemini: with(gemini, &config.roots.gemini),
    })
}
