//! The agents' homes on this machine: the environment's, the usual ones, the configuration's, and our own agent's.

use std::path::{Path, PathBuf};

use agents::Homes;

use crate::{config::Config, places};

/// Finds the homes to read; `data` is the data directory.
///
/// # Errors
/// When neither HOME nor the agents' own variables are set.
pub fn homes(config: &Config, data: &Path) -> anyhow::Result<Homes> {
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
    let mut pi = match places::variable("PI_CODING_AGENT_DIR") {
        Some(dir) => vec![dir],
        // oh-my-pi looks at the same variable.
        None => vec![usual(".pi/agent")?, usual(".omp/agent")?],
    };
    for extra in &config.roots.pi {
        if !pi.contains(extra) {
            pi.push(extra.clone());
        }
    }
    Ok(Homes {
        claude: with(claude, &config.roots.claude),
        codex: with(codex, &config.roots.codex),
        gemini: with(gemini, &config.roots.gemini),
        pi,
        capture: vec![data.join("agent")],
    })
}
