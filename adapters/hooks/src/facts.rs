//! Facts about the agents' hooks.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use agents::{Agent, hooks::Hooks};
use events::Provider;

/// The agents that run hooks.
pub static AGENTS: LazyLock<Vec<Provider>> = LazyLock::new(|| Agent::providers_with(|agent| agent.hooks.is_some()));

/// The facts about an agent's hooks; `None` for an agent without hooks.
#[must_use]
pub fn facts(provider: Provider) -> Option<&'static Hooks> {
    Agent::of(provider)?.hooks.as_ref()
}

/// The events for which entries are installed.
#[must_use]
pub fn catalogue(provider: Provider) -> Vec<&'static str> {
    facts(provider).map_or_else(Vec::new, |hooks| hooks.versions.events.iter().map(|fact| fact.event).collect())
}

/// The path of the settings file below an agent's home; `None` for an agent without hooks.
#[must_use]
pub fn place(provider: Provider, home: &Path) -> Option<PathBuf> {
    facts(provider).map(|hooks| home.join(hooks.settings_file))
}
