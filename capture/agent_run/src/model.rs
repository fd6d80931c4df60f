//! The model of a session: how it is reached, and what the machine has to know of it.

use std::{ffi::OsString, sync::Arc, time::Duration};

use agent::{ModelAnswers, ModelRoute, SessionClock};
use agent_settings::{AgentSettings, ModelApi, ModelName};
use engine::{ModelChoice, StepTime};
use models::{
    Api, Secret, Target, Thinking,
    transport::{ClientOptions, ModelClient, ModelEndpoint, Patience},
};
use prices::{CallTokens, Prices};

use crate::{RunError, keys, model_facts};

/// A model that can be sent requests.
pub(crate) struct SessionModel {
    pub(crate) choice: ModelChoice,
    client: ModelClient,
    route: ModelRoute,
    prices: Arc<Prices>,
}

impl SessionModel {
    /// The model of this name, with its key.
    pub(crate) fn new(
        name: &ModelName,
        settings: &AgentSettings,
        prices: Prices,
        environment: &[(OsString, OsString)],
        now: StepTime,
    ) -> Result<Self, RunError> {
        let usage = |error: &dyn std::error::Error| RunError::Usage(error.to_string());
        let of_provider =
            |error: &dyn std::error::Error| RunError::Usage(format!("agent.providers.{}: {error}", name.provider));
        let provider = settings.provider(&name.provider).map_err(|error| usage(&error))?;
        let (Some(api), Some(base_url)) = (provider.api, &provider.base_url) else {
            return Err(RunError::Usage(format!("agent.providers.{}: api or base_url is missing", name.provider)));
        };
        let max_output = provider.max_output_tokens.unwrap_or_else(|| model_facts::max_output_tokens(api, &name.model));
        let mut target = Target::new(wire_api(api), &name.provider, &name.model, max_output);
        if model_facts::is_without_reasoning(api, &name.model) {
            target.thinking = Thinking::Absent;
        }
        target.chat.old_max_tokens = provider.old_max_tokens;
        target.chat.return_reasoning = provider.return_reasoning;
        target.check().map_err(|error| of_provider(&error))?;

        let key = keys::key_of(&name.provider, &provider, environment)?;
        let mut endpoint = ModelEndpoint::new(base_url, key).map_err(|error| of_provider(&error))?;
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
            let proxy = proxy_of(environment);
            let options = ClientOptions { proxy, user_agent: user_agent.to_owned(), ..ClientOptions::default() };
            ModelClient::new(&options)
        };
        let prices = Arc::new(prices);
        let choice = ModelChoice {
            provider: name.provider.clone(),
            id: name.model.clone(),
            api: target.api.name().to_owned(),
            thinking: "off".to_owned(),
            cache: model_facts::cache_rules(api, &name.model),
            is_priced: prices.cost_nano_usd(&name.model, now.wall_ms, &CallTokens::default()).is_some(),
        };
        let client = client.map_err(|error| of_provider(&error))?;
        Ok(Self { choice, client, route: ModelRoute { target, endpoint }, prices })
    }

    /// Encodes and sends the requests of a session.
    pub(crate) fn answers(self, session: String, clock: Arc<dyn SessionClock>) -> ModelAnswers {
        ModelAnswers::new(self.client, vec![self.route], session, self.prices, clock)
    }
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
