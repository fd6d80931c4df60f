//! Models in the words of the mode.

use prices::CallTokens;
use session_setup::ModelCatalog;
use session_tree::{Json, Object};
use settings::ModelName;

/// What pi takes for the context of a model that says nothing of it, in tokens.
const UNKNOWN_WINDOW: u64 = 128_000;
/// The same for an answer.
const UNKNOWN_OUTPUT: u64 = 16_384;

/// A model as pi's clients know it; costs are in US dollars for a million tokens.
pub(super) fn object(models: &ModelCatalog, name: &ModelName) -> Object {
    const MANY: u64 = 1_000;
    let cost = |tokens: CallTokens| {
        let nano = models.cost_nano_usd(name, &tokens).unwrap_or_default();
        // Billionths of a dollar for a thousand tokens are millionths for a million.
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
