//! Decodes token usage, once per response.

use events::{QuotaReported, Timestamp, UsageReported};

use super::{
    memory::CodexMemory,
    records::{CodexTokens, Field, RateLimit, RateLimits, TokenCount, TokenInfo, UsageRecord},
    writer::EventWriter,
};

/// `token_usage_record`: one per response, with its id.
pub(super) fn record(record: &UsageRecord<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    memory.usage_records = true;
    if let Some(tokens) = record.usage.parse::<CodexTokens>() {
        let call = ResponseUsage { tokens, total: None, response: record.response_id.name().map(Into::into) };
        report(call, Vec::new(), memory, w);
    }
}

/// `token_count`: written after each response, and again without a new one, with the same total. If there are
/// `token_usage_record`s, only the quotas are new.
pub(super) fn token_count(count: &TokenCount<'_>, memory: &mut CodexMemory, w: &mut EventWriter<'_, '_>) {
    let quotas = new_quotas(count, memory, w.now());
    let response = if memory.usage_records { None } else { new_response(count, memory) };
    let is_news = |call: &ResponseUsage| call.tokens.input_tokens > 0 || call.tokens.output_tokens > 0;
    let works_on = response.is_some() && memory.tells_no_ends();
    if let Some(call) = response.filter(is_news) {
        report(call, quotas, memory, w);
    } else if !quotas.is_empty() {
        let event = w.event("quotas", None, UsageReported { quotas, ..UsageReported::default() });
        w.push(event);
    }
    if works_on {
        // Version 0.60.1 records the usage of a response before its calls are done, and the calls after that.
        w.likely_works("a response; calls are written once they are done".into());
    }
}

/// A call to the model.
struct ResponseUsage {
    tokens: CodexTokens,
    /// The tokens of the thread up to and including this call.
    total: Option<CodexTokens>,
    /// The id of its response.
    response: Option<String>,
}

impl ResponseUsage {
    /// A name that is the same in each copy of the call's record and unique otherwise: forks and sub-agents begin with
    /// copies of their parent's records, with new times (up to 0.16x). Within a thread the total grows with each call.
    fn name(&self) -> Option<String> {
        let numbers = |t: &CodexTokens| {
            [t.input_tokens, t.cached_input_tokens, t.cache_write_input_tokens, t.output_tokens, t.total_tokens]
                .map(|count| count.to_string())
                .join(",")
        };
        let by_count = || self.total.as_ref().map(|total| format!("{}/{}", numbers(total), numbers(&self.tokens)));
        self.response.clone().or_else(by_count)
    }
}

/// The last call, if it was not reported before.
fn new_response(count: &TokenCount<'_>, memory: &mut CodexMemory) -> Option<ResponseUsage> {
    let info = count.info.parse::<TokenInfo<'_>>()?;
    let total = info.total_token_usage.parse::<CodexTokens>();
    let tokens = info.last_token_usage.parse::<CodexTokens>()?;
    let count = total.as_ref().map(|total| total.total_tokens);
    if count.is_some() && count == memory.total_tokens {
        return None;
    }
    memory.total_tokens = count;
    Some(ResponseUsage { tokens, total, response: None })
}

fn report(call: ResponseUsage, quotas: Vec<QuotaReported>, memory: &CodexMemory, w: &mut EventWriter<'_, '_>) {
    let name = call.name();
    let ResponseUsage { tokens, response, .. } = call;
    if tokens.input_tokens == 0 && tokens.output_tokens == 0 {
        return;
    }
    let cached = tokens.cached_input_tokens.saturating_add(tokens.cache_write_input_tokens);
    let usage = UsageReported {
        message_id: response,
        model: memory.model.clone(),
        input_tokens: tokens.input_tokens.saturating_sub(cached),
        output_tokens: tokens.output_tokens,
        cache_read_tokens: tokens.cached_input_tokens,
        cache_write_tokens: tokens.cache_write_input_tokens,
        thinking_tokens: tokens.reasoning_output_tokens.min(tokens.output_tokens),
        quotas,
        ..UsageReported::default()
    };
    let event = match name {
        Some(name) => w.event_of_family("response", memory.root.as_deref(), &name, usage),
        None => w.event("response", None, usage),
    };
    w.push(event);
}

/// Maximum difference between two reset times that count as equal: older versions record the seconds from the line's
/// time to the reset.
const SAME_RESET_MS: i64 = 60_000;

/// The quotas that the provider reported to the agent, if they differ from the last ones.
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
