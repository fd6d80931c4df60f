//! Models in the format of RPC mode.

use prices::CallTokens;
use session_setup::ModelCatalog;
use session_tree::{Json, Object};
use settings::ModelName;

/// The context window pi assumes if a model does not specify one, tokens.
const UNKNOWN_WINDOW: u64 = 128_000;
/// The output limit pi assumes if a model does not specify one, tokens.
const UNKNOWN_OUTPUT: u64 = 16_384;

/// A model in the format of pi's clients; costs are in US dollars per million tokens.
pub(super) fn object(models: &ModelCatalog, name: &ModelName) -> Object {
    const MANY: u64 = 1_000;
    let cost = |tokens: CallTokens| {
        let nano = models.cost_nano_usd(name, &tokens).unwrap_or_default();
        // Nanodollars per thousand tokens equal microdollars per million tokens.
        #[expect(clippy::cast_precision_loss, reason = "a price has few digits")]
        rpc::session::number(nano as f64 / 1e6)
    };
    let none = CallTokens::default();
    let cost = Object::new()
        .with("input", cost(CallTokens { input: MANY, ..none }))
        .with("output", cost(CallTokens { output: MANY, ..none }))
        .with("cacheRead", cost(CallTokens { cache_read: MANY, ..none }))
        .with("cacheWrite", cost(CallTokens { cache_write: MANY, ..none }));
    let facts = models.facts(name);
    let sees = ["text", "image"].into_iter().take(if facts.images { 2 } else { 1 });
    Object::new()
        .with("id", name.model.as_str())
        .with("name", name.model.as_str())
        .with("api", models.api_name(name))
        .with("provider", name.provider.as_str())
        .with_some("baseUrl", models.address(name).ok().map(|address| address.base_url))
        .with("reasoning", facts.reasons)
        .with("input", sees.map(Json::from).collect::<Vec<Json>>())
        .with("contextWindow", facts.context_window.unwrap_or(UNKNOWN_WINDOW))
        .with("maxTokens", models.provider(name).max_output_tokens.or(facts.max_output).unwrap_or(UNKNOWN_OUTPUT))
        .with("cost", cost)
}
