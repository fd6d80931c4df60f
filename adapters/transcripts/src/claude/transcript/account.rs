//! Lines of the type `cost-state`: the process's own accounting, written when it exits or switches to another session
//! (2.1.328, `fixtures/recordings/claude`).
//!
//! The sums include all calls since `startTime`, also those of sub-agents and those without a line in the transcript. A
//! process that resumes or forks the session continues its sums and keeps its `startTime`. The lines have no time.

use std::{collections::BTreeMap, sync::Arc};

use events::{AccountScope, AccountedModel, Identity, Timestamp, UsageAccount, UsageReported};
use serde::Deserialize;

use super::{CLAUDE, TranscriptDecoder};
use crate::cost::nano_usd;
use agents::borrowed::Text;
use tailer::decode::{Decoded, Record};

/// Maximum number of models read from a line.
const MODELS: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CostState<'a> {
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
    /// Milliseconds since 1970.
    start_time: Option<i64>,
    /// Whether the cost contains estimates.
    #[serde(default)]
    has_unknown_model_cost: bool,
    #[serde(default)]
    model_usage: BTreeMap<String, ModelUsage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ModelUsage {
    input_tokens: u64,
    output_tokens: u64,
    thinking_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_creation_ephemeral1h_input_tokens: u64,
    #[serde(rename = "costUSD")]
    cost_usd: Option<f64>,
}

impl ModelUsage {
    fn of(self, model: String, is_guessed: bool) -> AccountedModel {
        AccountedModel {
            model,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cache_read_tokens: self.cache_read_input_tokens,
            cache_write_tokens: self.cache_creation_input_tokens,
            cache_write_hour_tokens: self.cache_creation_ephemeral1h_input_tokens.min(self.cache_creation_input_tokens),
            thinking_tokens: self.thinking_tokens.min(self.output_tokens),
            cost_nano_usd: self.cost_usd.filter(|_| !is_guessed).and_then(nano_usd),
        }
    }
}

impl TranscriptDecoder {
    /// Emits the accounting in a line, once per set of sums; `false` if the line cannot be parsed.
    pub(super) fn account(&self, record: &Record<'_>, out: &mut Decoded) -> bool {
        let Ok(state) = serde_json::from_slice::<CostState<'_>>(record.bytes) else { return false };
        // A copy in a fork's file belongs to the session it was copied from.
        let is_own = state.session_id.is_none_or(|id| *id == *self.session);
        if !is_own || self.parent.is_some() || state.model_usage.is_empty() {
            return true;
        }
        let is_guessed = state.has_unknown_model_cost;
        let models: Vec<AccountedModel> =
            state.model_usage.into_iter().take(MODELS).map(|(model, usage)| usage.of(model, is_guessed)).collect();
        let began_at = state.start_time.map(Timestamp::from_millisecond);
        let sums = serde_json::to_vec(&models).unwrap_or_default();
        let began = state.start_time.unwrap_or_default().to_le_bytes();
        let owner = Arc::clone(&self.session);
        let identity = Identity::of(CLAUDE, "account", &[owner.as_bytes(), &began, &sums]);
        let account = Some(UsageAccount { scope: AccountScope::Session, began_at, models });
        let event = out.event(record, &owner, identity, UsageReported { account, ..UsageReported::default() });
        out.push(event);
        true
    }
}
