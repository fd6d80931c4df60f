//! The models of this process: their addresses, keys, and the properties the machine needs.

use std::{
    collections::HashMap,
    ffi::OsString,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use engine::ModelChoice;
use executor::{ModelAnswers, ModelRoute, ModelRoutes, SessionClock};
use models::{
    Api, Secret, Target, Thinking,
    transport::{ClientOptions, ModelClient, ModelEndpoint, Patience},
};
use prices::{CallTokens, Prices};
use settings::{AddressSource, AgentSettings, ModelApi, ModelName, ProviderAddress, ProviderSettings, ThinkingLevel};

use crate::{
    RunError, keys,
    model_facts::{self, ModelFacts},
};

/// A model ready for requests.
pub(crate) struct SessionModel {
    pub(crate) choice: ModelChoice,
    pub(crate) route: ModelRoute,
}

/// The models allowed by the settings. Each key is read once.
pub struct ModelCatalog {
    settings: AgentSettings,
    environment: Vec<(OsString, OsString)>,
    prices: Arc<Prices>,
    clock: Arc<dyn SessionClock>,
    keys: Mutex<HashMap<String, Option<Secret>>>,
}

impl ModelCatalog {
    pub(crate) fn new(
        settings: AgentSettings,
        environment: Vec<(OsString, OsString)>,
        prices: Prices,
        clock: Arc<dyn SessionClock>,
    ) -> Self {
        Self { settings, environment, prices: Arc::new(prices), clock, keys: Mutex::default() }
    }

    /// The model of this name, with its key and this thinking level.
    pub(crate) fn model(&self, name: &ModelName, level: Option<ThinkingLevel>) -> Result<SessionModel, RunError> {
        let of_provider =
            |error: &dyn std::error::Error| RunError::Usage(format!("agent.providers.{}: {error}", name.provider));
        let provider = self.settings.provider(&name.provider).map_err(|error| RunError::Usage(error.to_string()))?;
        let Some(api) = provider.api else {
            return Err(RunError::Usage(format!("agent.providers.{}: api is missing", name.provider)));
        };
        let facts = ModelFacts::of(api, &name.model);
        let max_output = provider.max_output_tokens.or(facts.max_output);
        let mut target = Target::new(wire_api(api), &name.provider, &name.model, max_output);
        target.images = facts.images;
        target.thinking = match level {
            Some(level) => facts.thinking(level).ok_or_else(|| no_such_level(name, level, &facts))?,
            None if facts.reasons => Thinking::Default,
            None => Thinking::Absent,
        };
        target.chat.old_max_tokens = provider.old_max_tokens;
        target.chat.return_reasoning = provider.return_reasoning;
        target.check().map_err(|error| of_provider(&error))?;

        let key = self.key(name, &provider)?;
        let mut endpoint = endpoint(&self.settings, &name.provider, &self.environment, key)?.0;
        for (header, value) in &provider.headers {
            endpoint =
                endpoint.with_header(header, &Secret::new(value.clone())).map_err(|error| of_provider(&error))?;
        }
        if let Some(idle) = provider.idle_s.map(|idle| Duration::from_secs(idle.into())) {
            let first = idle.max(Patience::default().first);
            endpoint.patience = endpoint.patience.with_silence(first, idle).map_err(|error| of_provider(&error))?;
        }
        let user_agent = concat!("capture/", env!("CARGO_PKG_VERSION"));
        let client = if endpoint.is_loopback() {
            ModelClient::loopback(user_agent)
        } else {
            let proxy = proxy_of(&self.environment);
            let options = ClientOptions { proxy, user_agent: user_agent.to_owned(), ..ClientOptions::default() };
            ModelClient::new(&options)
        };
        let client = client.map_err(|error| of_provider(&error))?;
        let choice = ModelChoice {
            provider: name.provider.clone(),
            id: name.model.clone(),
            api: target.api.name().to_owned(),
            thinking: level.unwrap_or(ThinkingLevel::Off).name().to_owned(),
            window: facts.context_window,
            cache: model_facts::cache_rules(api, &name.model),
            is_priced: self.cost_nano_usd(name, &CallTokens::default()).is_some(),
        };
        let key_source = keys::source_in_words(&name.provider, &provider);
        Ok(SessionModel { choice, route: ModelRoute { target, endpoint, client, key_source } })
    }

    /// The settings of a model's provider; defaults if there are none.
    #[must_use]
    pub fn provider(&self, name: &ModelName) -> ProviderSettings {
        self.settings.provider(&name.provider).unwrap_or_default()
    }

    /// The name of the model's API.
    #[must_use]
    pub fn api_name(&self, name: &ModelName) -> &'static str {
        wire_api(self.provider(name).api.unwrap_or(ModelApi::Chat)).name()
    }

    /// The address of a model's provider.
    ///
    /// # Errors
    /// If neither the settings nor the environment have a valid address.
    pub fn address(&self, name: &ModelName) -> Result<ProviderAddress, RunError> {
        address(&self.settings, &name.provider, &self.environment)
    }

    /// The address of a model's provider as text, unless it is the vendor's own.
    ///
    /// # Errors
    /// The same as for [`Self::address`].
    pub fn other_address_in_words(&self, name: &ModelName) -> Result<Option<String>, RunError> {
        if matches!(self.address(name)?.source, AddressSource::Vendor) {
            return Ok(None);
        }
        // Whether it may get a key was already checked with the key.
        address_in_words(&self.settings, &name.provider, &self.environment, false).map(Some)
    }

    /// The properties of a model.
    #[must_use]
    pub fn facts(&self, name: &ModelName) -> ModelFacts {
        let api = self.settings.provider(&name.provider).ok().and_then(|provider| provider.api);
        ModelFacts::of(api.unwrap_or(ModelApi::Chat), &name.model)
    }

    /// The models offered for selection: the configured one, and those of vendors with an available key.
    #[must_use]
    pub fn known(&self) -> Vec<ModelName> {
        let mut known: Vec<ModelName> = self.settings.model.clone().into_iter().collect();
        for name in self.settings.provider_names() {
            let Ok(provider) = self.settings.provider(name) else { continue };
            let of_vendor = provider.key_env.as_ref().is_some_and(|key| self.has_variable(key));
            let is_reachable = of_vendor || provider.key_file.is_some() || !provider.key_command.is_empty();
            let models = provider.api.filter(|_| is_reachable).into_iter().flat_map(model_facts::known);
            known.extend(models.map(|model| ModelName { provider: name.to_owned(), model: model.to_owned() }));
        }
        known
    }

    fn has_variable(&self, name: &str) -> bool {
        self.environment.iter().any(|(of, value)| of == name && !value.is_empty())
    }

    /// Encodes and sends the requests of a session to these models.
    pub(crate) fn answers(&self, routes: ModelRoutes, session: String) -> ModelAnswers {
        ModelAnswers::new(routes, session, Arc::clone(&self.prices), Arc::clone(&self.clock))
    }

    /// The current price of tokens of a model, in billionths of a US dollar.
    #[must_use]
    pub fn cost_nano_usd(&self, name: &ModelName, tokens: &CallTokens) -> Option<u64> {
        self.prices.cost_nano_usd(&name.model, self.clock.now().wall_ms, tokens)
    }

    fn key(&self, name: &ModelName, provider: &ProviderSettings) -> Result<Option<Secret>, RunError> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = keys.get(&name.provider) {
            return Ok(key.clone());
        }
        let key = keys::key_of(&name.provider, provider, &self.environment)?;
        keys.insert(name.provider.clone(), key.clone());
        Ok(key)
    }
}

fn address(
    settings: &AgentSettings,
    provider: &str,
    environment: &[(OsString, OsString)],
) -> Result<ProviderAddress, RunError> {
    let variable = |name: &str| {
        let found = environment.iter().find(|(of, _)| of == name);
        // An address that is not UTF-8 is not a valid URL and is refused as such.
        found.map(|(_, value)| value.to_string_lossy().into_owned())
    };
    settings.address(provider, variable).map_err(|error| RunError::Usage(error.to_string()))
}

/// The endpoint of a provider with this key. Errors name the source of the address.
fn endpoint(
    settings: &AgentSettings,
    provider: &str,
    environment: &[(OsString, OsString)],
    key: Option<Secret>,
) -> Result<(ModelEndpoint, ProviderAddress), RunError> {
    let address = address(settings, provider, environment)?;
    let endpoint = ModelEndpoint::new(&address.base_url, key).map_err(|error| {
        RunError::Usage(match &address.source {
            AddressSource::Setting(key) => format!("{key}: {error}"),
            AddressSource::Variable(name) => format!("the variable {name}: {error}"),
            AddressSource::Vendor => format!("agent.providers.{provider}: {error}"),
        })
    })?;
    Ok((endpoint, address))
}

/// The address of a provider and its source, as text; `has_key` is whether it gets a key.
pub(crate) fn address_in_words(
    settings: &AgentSettings,
    provider: &str,
    environment: &[(OsString, OsString)],
    has_key: bool,
) -> Result<String, RunError> {
    // The check depends only on whether there is a key, not on its value.
    let key = has_key.then(|| Secret::new("-".to_owned()));
    let (endpoint, address) = endpoint(settings, provider, environment, key)?;
    Ok(match address.source {
        AddressSource::Variable(name) => format!("{} ({name})", endpoint.address()),
        AddressSource::Setting(_) | AddressSource::Vendor => endpoint.address(),
    })
}

fn no_such_level(name: &ModelName, level: ThinkingLevel, facts: &ModelFacts) -> RunError {
    let levels: Vec<&str> = facts.levels().map(ThinkingLevel::name).collect();
    RunError::Usage(if levels.is_empty() {
        format!("the model {name} does not support thinking; omit the level `{level}`")
    } else {
        format!("the model {name} has no thinking level `{level}`; expected {}", levels.join(", "))
    })
}

const fn wire_api(api: ModelApi) -> Api {
    match api {
        ModelApi::Anthropic => Api::Anthropic,
        ModelApi::Responses => Api::Responses,
        ModelApi::Chat => Api::Chat,
        ModelApi::Gemini => Api::Gemini,
    }
}

/// The proxy from the user's environment; its address may contain a password.
fn proxy_of(environment: &[(OsString, OsString)]) -> Option<Secret> {
    let named = |name: &&str| environment.iter().find(|(of, value)| of == name && !value.is_empty());
    let (_, address) = ["https_proxy", "HTTPS_PROXY"].iter().find_map(named)?;
    Some(Secret::new(address.to_str()?.to_owned()))
}
