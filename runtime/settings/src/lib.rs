//! The settings of the built-in agent: `[agent]` in the configuration file.
//!
//! Parses and validates the settings. Must not read a key, a file or the environment: `session_setup` does that.

mod provider;
mod thinking;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

pub use provider::{AddressSource, ModelApi, ProviderAddress, ProviderSettings};
pub use thinking::ThinkingLevel;

/// Why modes and options that need a sandbox are refused.
pub const NO_SANDBOX: &str = "it needs a sandbox, which capture does not have yet";

/// Maximum number of retries that can be configured.
const RETRIES_MAX: u32 = 20;

/// Default number of retries of a failed request.
pub const DEFAULT_RETRIES: u32 = 12;

/// The settings of the built-in agent.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentSettings {
    /// The model, as PROVIDER/MODEL.
    pub model: Option<ModelName>,
    /// The thinking level; `None` leaves it to the vendor.
    pub thinking: Option<ThinkingLevel>,
    /// Number of retries of a failed request.
    pub retries: u32,
    /// Whether secrets in messages are replaced before they are stored and sent.
    pub mask_prompts: bool,
    /// Whether the conversation is compacted when the model's context is almost full.
    pub compact: bool,
    /// Which calls are allowed without asking.
    pub mode: AgentMode,
    /// The spending limits of a session.
    pub budget: BudgetSettings,
    /// Names of instruction files to read in a directory without AGENTS.md; by default `CLAUDE.md`.
    pub instructions: Vec<String>,
    /// Names of further variables passed to commands.
    pub pass: Vec<String>,
    /// Hosts on this machine or in a private network that may be fetched from: `host` or `host:port`.
    pub allow_hosts: Vec<String>,
    /// Providers by name.
    pub providers: BTreeMap<String, ProviderSettings>,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            model: None,
            thinking: None,
            retries: DEFAULT_RETRIES,
            mask_prompts: true,
            compact: true,
            mode: AgentMode::default(),
            budget: BudgetSettings::default(),
            instructions: vec!["CLAUDE.md".to_owned()],
            pass: Vec::new(),
            allow_hosts: Vec::new(),
            providers: BTreeMap::new(),
        }
    }
}

/// A model of a provider: `anthropic/claude-sonnet-5`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct ModelName {
    /// The provider's name in the settings.
    pub provider: String,
    /// The model's name at the provider.
    pub model: String,
}

/// Which calls are allowed without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentMode {
    /// Reads only; every other call is denied.
    Plan,
    /// The policy and the user decide.
    #[default]
    Ask,
    /// Edits in the workspace are allowed.
    AcceptEdits,
}

/// The spending limits of a session; 0 is unlimited.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetSettings {
    /// Input and output tokens.
    pub tokens: u64,
    /// Cost in US dollars.
    pub cost_usd: f64,
    /// Duration of turns, in minutes.
    pub minutes: u32,
    /// Tool calls.
    pub calls: u64,
}

/// An invalid setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct SettingError {
    /// The setting, with the tables it is in.
    pub key: String,
    /// The problem, and the expected value.
    pub problem: String,
}

impl SettingError {
    fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }
}

impl AgentMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Plan, Self::Ask, Self::AcceptEdits];

    /// The name, as written in the settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
        }
    }
}

impl std::fmt::Display for AgentMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for AgentMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Err(format!("the mode `auto` is not available: {NO_SANDBOX}; use plan, ask or accept-edits"));
        }
        let unknown = || format!("expected plan, ask or accept-edits, got `{text}`");
        Self::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(unknown)
    }
}

impl<'de> Deserialize<'de> for AgentMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl std::str::FromStr for ModelName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Names of models may contain slashes.
        match text.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
                Ok(Self { provider: provider.to_owned(), model: model.to_owned() })
            }
            Some(_) | None => Err(format!("expected PROVIDER/MODEL, such as anthropic/claude-sonnet-5, got `{text}`")),
        }
    }
}

impl<'de> Deserialize<'de> for ModelName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl std::fmt::Display for ModelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

impl From<ModelName> for String {
    fn from(name: ModelName) -> Self {
        name.to_string()
    }
}

impl AgentSettings {
    /// Checks constraints that the types do not express.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn check(&self) -> Result<(), SettingError> {
        let cost = self.budget.cost_usd;
        if !cost.is_finite() || cost < 0.0 {
            return Err(SettingError::new("agent.budget.cost_usd", format!("expected US dollars, got {cost}")));
        }
        if self.retries > RETRIES_MAX {
            return Err(SettingError::new("agent.retries", format!("expected 0 to {RETRIES_MAX}")));
        }
        if let Some(name) = self.instructions.iter().find(|name| name.is_empty() || name.contains('/')) {
            return Err(SettingError::new("agent.instructions", format!("expected names of files, got `{name}`")));
        }
        for (name, provider) in &self.providers {
            if name.is_empty() || name.contains('/') {
                return Err(SettingError::new("agent.providers", format!("expected a name without `/`, got `{name}`")));
            }
            provider.check(name)?;
        }
        Ok(())
    }

    /// The effective settings of a provider, including the defaults of the vendor of this name.
    ///
    /// # Errors
    /// There is no such provider, or its API or address is missing.
    pub fn provider(&self, name: &str) -> Result<ProviderSettings, SettingError> {
        ProviderSettings::resolve(name, self.providers.get(name))
    }

    /// The address of a provider: from the settings, the variable of the vendor's own libraries, or the vendor's
    /// default. `variable` reads a variable.
    ///
    /// # Errors
    /// It is not a vendor, and the settings have no address.
    pub fn address(
        &self,
        name: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<ProviderAddress, SettingError> {
        ProviderAddress::resolve(name, self.providers.get(name), variable)
    }

    /// Names of the usable providers: the configured ones and the vendors.
    pub fn provider_names(&self) -> impl Iterator<Item = &str> {
        let vendors = provider::VENDORS.iter().map(|vendor| vendor.name());
        let others = self.providers.keys().map(String::as_str);
        vendors.chain(others.filter(|name| provider::VENDORS.iter().all(|vendor| vendor.name() != *name)))
    }

    /// Names of variables that contain keys; commands never get them.
    #[must_use]
    pub fn key_variables(&self) -> Vec<String> {
        let vendors = provider::VENDORS.iter().map(|vendor| vendor.key_env.to_owned());
        vendors.chain(self.providers.values().filter_map(|provider| provider.key_env.clone())).collect()
    }
}

#[cfg(test)]
mod tests;
