//! Decodes token usage, once for each response.

use events::UsageReported;

use super::{
    memory::CodexMemory,
    records::{CodexTokens, Field, TokenCount, TokenInfo, UsageRecord},
    writer::EventWriter,
};

/// `token_usage_record`: one for each response, with its id.
pub(super) fn record(record: &UsageRecord<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    memory.usage_records = true;
    if let Some(tokens) = record.usage.parse::<CodexTokens>() {
        let response = record.response_id.name();
        report(&tokens, response.as_deref(), memory, w);
    }
}

/// `token_count`: after each response, and again without a new one, with the same total.
pub(super) fn token_count(count: &TokenCount<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let Some(info) = count.info.parse::<TokenInfo<'_>>() else {
        return;
    };
    let total = info.total_token_usage.parse::<CodexTokens>().map(|total| total.total_tokens);
    let Some(last) = info.last_token_usage.parse::<CodexTokens>() else {
        return;
    };
    if total.is_some() && total == memory.total_tokens {
        return;
    }
    memory.total_tokens = total;
    report(&last, None, memory, w);
    if memory.tells_no_ends() {
        // Version 0.60.1 writes the usage of a response before its calls are done, and the calls after that.
        w.likely_works("a response; calls are written once they are done".into());
    }
}

fn report(tokens: &CodexTokens, response: Option<&str>, memory: &CodexMemory, w: &mut EventWriter<'_, '_>) {
    if tokens.input_tokens == 0 && tokens.output_tokens == 0 {
        return;
    }
    let cached = tokens.cached_input_tokens.saturating_add(tokens.cache_write_input_tokens);
    let usage = UsageReported {
        message_id: response.map(str::to_owned),
        model: memory.model.clone(),
        input_tokens: tokens.input_tokens.saturating_sub(cached),
        output_tokens: tokens.output_tokens,
        cache_read_tokens: tokens.cached_input_tokens,
        cache_write_tokens: tokens.cache_write_input_tokens,
    };
    let event = w.event("response", response, usage);
    w.push(event);
}
