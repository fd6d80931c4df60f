//! Decodes token usage, once for each response.

use events::{QuotaReported, Timestamp, UsageReported};

use super::{
    memory::CodexMemory,
    records::{CodexTokens, Field, RateLimit, RateLimits, TokenCount, TokenInfo, UsageRecord},
    writer::EventWriter,
};

/// `token_usage_record`: one for each response, with its id.
pub(super) fn record(record: &UsageRecord<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    memory.usage_records = true;
    if let Some(tokens) = record.usage.parse::<CodexTokens>() {
        let response = record.response_id.name();
        report(&tokens, response.as_deref(), Vec::new(), memory, w);
    }
}

/// `token_count`: after each response, and again without a new one, with the same total. Where there are
/// `token_usage_record`s, only the quotas are news.
pub(super) fn token_count(count: &TokenCount<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let quotas = new_quotas(count, memory, w.now());
    let response = if memory.usage_records { None } else { new_response(count, memory) };
    if let Some(tokens) = response.filter(|tokens| tokens.input_tokens > 0 || tokens.output_tokens > 0) {
        report(&tokens, None, quotas, memory, w);
    } else if !quotas.is_empty() {
        let event = w.event("quotas", None, UsageReported { quotas, ..UsageReported::default() });
        w.push(event);
    }
    if response.is_some() && memory.tells_no_ends() {
        // Version 0.60.1 writes the usage of a response before its calls are done, and the calls after that.
        w.likely_works("a response; calls are written once they are done".into());
    }
}

/// The tokens of the last response, when they were not told before.
fn new_response(count: &TokenCount<'_>, memory: &mut CodexMemory) -> Option<CodexTokens> {
    let info = count.info.parse::<TokenInfo<'_>>()?;
    let total = info.total_token_usage.parse::<CodexTokens>().map(|total| total.total_tokens);
    let last = info.last_token_usage.parse::<CodexTokens>()?;
    if total.is_some() && total == memory.total_tokens {
        return None;
    }
    memory.total_tokens = total;
    Some(last)
}

fn report(
    tokens: &CodexTokens,
    response: Option<&str>,
    quotas: Vec<QuotaReported>,
    memory: &CodexMemory,
    w: &mut EventWriter<'_, '_>,
) {
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
        thinking_tokens: tokens.reasoning_output_tokens.min(tokens.output_tokens),
        quotas,
        ..UsageReported::default()
    };
    let event = w.event("response", response, usage);
    w.push(event);
}

/// Differences between two times of a reset that are none: older versions tell it in seconds from the line on.
const SAME_RESET_MS: i64 = 60_000;

/// The quotas that the provider told the agent of, when they are not those told before.
fn new_quotas(count: &TokenCount<'_>, memory: &mut CodexMemory, at: Timestamp) -> Vec<QuotaReported> {
    let Some(limits) = count.rate_limits.parse::<RateLimits<'_>>() else { return Vec::new() };
    let told: Vec<QuotaReported> = [("primary", limits.primary), ("secondary", limits.secondary)]
        .into_iter()
        .filter_map(|(name, limit)| quota(name, limit.parse()?, at))
        .collect();
    let is_same = told.len() == memory.quotas.len() && told.iter().zip(&memory.quotas).all(|(a, b)| is_as_before(a, b));
    if is_same {
        return Vec::new();
    }
    memory.quotas.clone_from(&told);
    told
}

fn is_as_before(quota: &QuotaReported, before: &QuotaReported) -> bool {
    let is_same_reset = match (quota.resets_at, before.resets_at) {
        (Some(at), Some(before)) => at.since_ms(before).unsigned_abs() < SAME_RESET_MS.unsigned_abs(),
        (at, before) => at == before,
    };
    is_same_reset && QuotaReported { resets_at: before.resets_at, ..quota.clone() } == *before
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn quota(name: &str, limit: RateLimit, at: Timestamp) -> Option<QuotaReported> {
    let used_permille = (limit.used_percent? * 10.0).round();
    if !(0.0..=1e6).contains(&used_permille) {
        return None;
    }
    let resets_at = limit.resets_at.and_then(|seconds| seconds.checked_mul(1000)).map(Timestamp::from_millisecond);
    let resets_in = limit.resets_in_seconds.and_then(|seconds| seconds.checked_mul(1000));
    let resets_in = resets_in.and_then(|after| at.as_millisecond().checked_add(after));
    Some(QuotaReported {
        name: name.to_owned(),
        window_minutes: limit.window_minutes,
        used_permille: used_permille as u32,
        resets_at: resets_at.or_else(|| resets_in.map(Timestamp::from_millisecond)),
    })
}
