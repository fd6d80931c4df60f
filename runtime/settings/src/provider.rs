//! Providers: how and where models are reached.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::SettingError;

/// A provider of models. Missing fields default to those of the vendor of that name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderSettings {
    /// The API it speaks.
    pub api: Option<ModelApi>,
    /// The base of request URLs: `https://api.openai.com/v1`. See [`ProviderAddress`] for the default.
    pub base_url: Option<String>,
    /// The variable that contains the key.
    pub key_env: Option<String>,
    /// A program, with its arguments, that prints the key.
    pub key_command: Vec<String>,
    /// A file that contains the key and that only its owner can read.
    pub key_file: Option<PathBuf>,
    /// Further headers of requests. Their values are treated like keys.
    pub headers: BTreeMap<String, String>,
    /// Longest silence before and within an answer, in seconds.
    pub idle_s: Option<u32>,
    /// Maximum number of tokens in an answer.
    pub max_output_tokens: Option<u64>,
    /// Send the limit of an answer as `max_tokens`, for older servers of Chat Completions.
    pub old_max_tokens: bool,
    /// Send thinking back in the field it came in, for servers of Chat Completions that require that.
    pub return_reasoning: bool,
}

/// The supported model APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelApi {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions, which many servers imitate.
    Chat,
    /// Gemini's streamGenerateContent.
    Gemini,
}

/// A vendor whose provider need not be configured.
pub(crate) struct Vendor {
    name: &'static str,
    api: ModelApi,
    base_url: &'static str,
    base_url_env: &'static str,
    pub(crate) key_env: &'static str,
}

impl Vendor {
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }
}

/// The address of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderAddress {
    /// The base of request URLs.
    pub base_url: String,
    /// The source of the address.
    pub source: AddressSource,
}

/// The source of a provider's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressSource {
    /// The settings, with this key.
    Setting(String),
    /// This variable, which the vendor's own libraries read.
    Variable(&'static str),
    /// The vendor's default.
    Vendor,
}

impl ProviderAddress {
    /// The settings first, then the vendor's variable, then the vendor's own address.
    pub(crate) fn resolve(
        name: &str,
        written: Option<&ProviderSettings>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingError> {
        let key = format!("agent.providers.{name}.base_url");
        if let Some(base_url) = written.and_then(|written| written.base_url.clone()) {
            return Ok(Self { base_url, source: AddressSource::Setting(key) });
        }
        let Some(vendor) = VENDORS.iter().find(|vendor| vendor.name == name) else {
            return Err(SettingError::new(key, "missing"));
        };
        let of_variable = variable(vendor.base_url_env).filter(|value| !value.trim().is_empty());
        Ok(match of_variable {
            Some(base_url) => Self { base_url, source: AddressSource::Variable(vendor.base_url_env) },
            None => Self { base_url: vendor.base_url.to_owned(), source: AddressSource::Vendor },
        })
    }
}

/// Addresses and variables as in the vendors' own libraries: <https://platform.claude.com/docs/en/api/overview>,
/// <https://platform.openai.com/docs/api-reference/introduction>, <https://ai.google.dev/gemini-api/docs/api-key>.
pub(crate) const VENDORS: [Vendor; 3] = [
    Vendor {
        name: "anthropic",
        api: ModelApi::Anthropic,
        base_url: "https://api.anthropic.com",
        base_url_env: "ANTHROPIC_BASE_URL",
        key_env: "ANTHROPIC_API_KEY",
    },
    Vendor {
        name: "openai",
        api: ModelApi::Responses,
        base_url: "https://api.openai.com/v1",
        base_url_env: "OPENAI_BASE_URL",
        key_env: "OPENAI_API_KEY",
    },
    Vendor {
        name: "gemini",
        api: ModelApi::Gemini,
        base_url: "https://generativelanguage.googleapis.com",
        base_url_env: "GOOGLE_GEMINI_BASE_URL",
        key_env: "GEMINI_API_KEY",
    },
];

/// Maximum configurable silence, in seconds.
const IDLE_MAX_S: u32 = 900;

impl ProviderSettings {
    pub(crate) fn check(&self, name: &str) -> Result<(), SettingError> {
        let wrong = |key: &str, problem: &str| Err(SettingError::new(format!("agent.providers.{name}.{key}"), problem));
        let sources = [self.key_env.is_some(), !self.key_command.is_empty(), self.key_file.is_some()].map(usize::from);
        if sources.iter().sum::<usize>() > 1 {
            return wrong("key_env", "set only one of key_env, key_command and key_file");
        }
        if self.key_file.as_ref().is_some_and(|file| !file.is_absolute()) {
            return wrong("key_file", "expected an absolute path");
        }
        if self.idle_s.is_some_and(|idle| idle == 0 || idle > IDLE_MAX_S) {
            return wrong("idle_s", "expected 1 to 900");
        }
        if self.max_output_tokens == Some(0) {
            return wrong("max_output_tokens", "expected at least 1");
        }
        Ok(())
    }

    pub(crate) fn resolve(name: &str, written: Option<&Self>) -> Result<Self, SettingError> {
        let vendor = VENDORS.iter().find(|vendor| vendor.name == name);
        let mut provider = match (written, vendor) {
            (Some(written), _) => written.clone(),
            (None, Some(_)) => Self::default(),
            (None, None) => {
                let known = VENDORS.map(|vendor| vendor.name).join(", ");
                let problem = format!("`{name}` is not configured; these need no configuration: {known}");
                return Err(SettingError::new("agent.providers", problem));
            }
        };
        if let Some(vendor) = vendor {
            provider.api.get_or_insert(vendor.api);
            if provider.key_command.is_empty() && provider.key_file.is_none() {
                provider.key_env.get_or_insert_with(|| vendor.key_env.to_owned());
            }
        }
        let missing = [("api", provider.api.is_none()), ("base_url", vendor.is_none() && provider.base_url.is_none())];
        match missing.into_iter().find(|(_, is_missing)| *is_missing) {
            Some((key, _)) => Err(SettingError::new(format!("agent.providers.{name}.{key}"), "missing")),
            None => Ok(provider),
        }
    }
}
