//! The models of this process: how each is reached, with which key, and what the machine has to know of it.

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

/// A model that can be sent requests.
pub(crate) struct SessionModel {
    pub(crate) choice: ModelChoice,
    pub(crate) route: ModelRoute,
}

/// The models that the settings allow. A key is read once.
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

    /// The model of this name, with its key, that thinks as much as this.
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

    /// What the settings say of a model's provider; nothing of one they do not have.
    #[must_use]
    pub fn provider(&self, name: &ModelName) -> ProviderSettings {
        self.settings.provider(&name.provider).unwrap_or_default()
    }

    /// The name of the API that a model is reached by.
    #[must_use]
    pub fn api_name(&self, name: &ModelName) -> &'static str {
        wire_api(self.provider(name).api.unwrap_or(ModelApi::Chat)).name()
    }

    /// Where a model is reached.
    ///
    /// # Errors
    /// When the settings or the environment name no address that can be used.
    pub fn address(&self, name: &ModelName) -> Result<ProviderAddress, RunError> {
        address(&self.settings, &name.provider, &self.environment)
    }

    /// Where a model is reached, in words, unless that is its vendor's own address.
    ///
    /// # Errors
    /// As [`Self::address`].
    pub fn other_address_in_words(&self, name: &ModelName) -> Result<Option<String>, RunError> {
        if matches!(self.address(name)?.source, AddressSource::Vendor) {
            return Ok(None);
        }
        // Whether it may get a key was checked with the key itself.
        address_in_words(&self.settings, &name.provider, &self.environment, false).map(Some)
    }

    /// What is known of a model.
    #[must_use]
    pub fn facts(&self, name: &ModelName) -> ModelFacts {
        let api = self.settings.provider(&name.provider).ok().and_then(|provider| provider.api);
        ModelFacts::of(api.unwrap_or(ModelApi::Chat), &name.model)
    }

    /// The models that can be chosen without naming them: the configured one, and those of the vendors there is a key of.
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

    /// What tokens of a model cost now, in billionths of a US dollar.
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
        // What is not UTF-8 is not a URL, and is refused as that.
        found.map(|(_, value)| value.to_string_lossy().into_owned())
    };
    settings.address(provider, variable).map_err(|error| RunError::Usage(error.to_string()))
}

/// Where requests to a provider go with this key. The error names what says so.
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

/// Where a provider is reached and what says so, in words; `has_key` is whether it gets a key.
pub(crate) fn address_in_words(
    settings: &AgentSettings,
    provider: &str,
    environment: &[(OsString, OsString)],
    has_key: bool,
) -> Result<String, RunError> {
    // The address is checked for a key, of which it need not be known here.
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
        format!("the model {name} does not think; leave out the level `{level}`")
    } else {
        format!("the model {name} has no level of thinking `{level}`; expected {}", levels.join(", "))
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

/// The proxy that the user's environment names; its address may hold a password.
fn proxy_of(environment: &[(OsString, OsString)]) -> Option<Secret> {
    let named = |name: &&str| environment.iter().find(|(of, value)| of == name && !value.is_empty());
    let (_, address) = ["https_proxy", "HTTPS_PROXY"].iter().find_map(named)?;
    Some(Secret::new(address.to_str()?.to_owned()))
}
