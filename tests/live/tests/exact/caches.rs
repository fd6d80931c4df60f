//! Tests of the simulated caches alone.

use serde_json::{Value, json};
use tests::models::{
    Api,
    cache::{CacheUsage, Caches},
};

const MINUTE: u64 = 60_000;

/// A text of `tokens` tokens; its block (`{"text":"…","type":"text"}`) adds about 7.
fn words(seed: &str, tokens: usize) -> String {
    seed.repeat(tokens * 4 / seed.len() + 1)[..tokens * 4].to_owned()
}

/// An Anthropic request with a system prompt of 5,000 tokens and `blocks` blocks of 100 tokens. The blocks whose
/// numbers are in `marked` have a cache marker; `system` is the marker at the end of the system prompt.
fn body(blocks: usize, marked: &[usize], system: Option<&str>) -> Value {
    let mark = |mut block: Value, ttl: &str| {
        block["cache_control"] = json!({ "type": "ephemeral", "ttl": ttl });
        block
    };
    let block = |n: usize| {
        let block = json!({ "type": "text", "text": words(&format!("block {n} "), 100) });
        if marked.contains(&n) { mark(block, "5m") } else { block }
    };
    let prompt = json!({ "type": "text", "text": words("system ", 5000) });
    let prompt = system.map_or(prompt.clone(), |ttl| mark(prompt, ttl));
    let content: Vec<Value> = (0..blocks).map(block).collect();
    json!({ "system": [prompt], "messages": [{ "role": "user", "content": content }] })
}

fn serve(caches: &mut Caches, body: &Value, now: u64) -> CacheUsage {
    caches.serve("claude-opus-4-5", body.to_string().as_bytes(), now)
}

#[test]
fn anthropic_writes_and_reads_the_cache_only_at_markers() {
    let mut caches = Caches::new(Api::Anthropic);
    let first = serve(&mut caches, &body(2, &[1], None), 0);
    assert_eq!((first.read, first.input), (0, 0));
    assert!(first.write_5m > 5200, "{first:?}");
    let second = serve(&mut caches, &body(4, &[3], None), 1);
    assert_eq!((second.read, second.input), (first.write_5m, 0));
    assert!((200..250).contains(&second.write_5m), "{second:?}");
    // Tokens after the last marker are neither read from the cache nor written to it.
    let third = serve(&mut caches, &body(5, &[3], None), 2);
    assert_eq!((third.read, third.write_5m), (first.write_5m + second.write_5m, 0));
    assert!((100..125).contains(&third.input), "{third:?}");
    // Without a marker nothing is read from the cache.
    let fourth = serve(&mut caches, &body(4, &[], None), 3);
    assert_eq!((fourth.read, fourth.write_5m), (0, 0));
}

#[test]
fn anthropic_searches_the_cache_at_most_twenty_blocks_back() {
    for (blocks, reads) in [(22, true), (23, false)] {
        let mut caches = Caches::new(Api::Anthropic);
        serve(&mut caches, &body(2, &[1], None), 0);
        let usage = serve(&mut caches, &body(blocks, &[blocks - 1], None), 1);
        assert_eq!(usage.read > 0, reads, "{blocks}: {usage:?}");
        // With one more marker the best possible read would have been reached.
        assert!(caches.report().best > 5000);
        assert_eq!(caches.report().of_best() > 0.99, reads);
    }
}

#[test]
fn anthropic_expires_cache_entries_five_minutes_after_their_last_use() {
    let mut caches = Caches::new(Api::Anthropic);
    let request = body(2, &[1], None);
    for (now, reads) in [(0, false), (4, true), (8, true), (12, true), (17, false), (21, true)] {
        let usage = serve(&mut caches, &request, now * MINUTE);
        assert_eq!(usage.read > 0, reads, "after {now} minutes");
    }
}

#[test]
fn anthropic_keeps_1h_cache_entries_for_more_than_five_minutes() {
    let mut caches = Caches::new(Api::Anthropic);
    let first = serve(&mut caches, &body(2, &[1], Some("1h")), 0);
    assert!(first.write_1h > 5000 && (200..250).contains(&first.write_5m), "{first:?}");
    let second = serve(&mut caches, &body(2, &[1], Some("1h")), 30 * MINUTE);
    assert_eq!((second.read, second.write_1h), (first.write_1h, 0));
    assert_eq!(second.write_5m, first.write_5m, "that was kept for five minutes only");
}

#[test]
fn anthropic_caches_nothing_below_its_minimum() {
    let request = json!({ "messages": [{ "role": "user", "content": [
        { "type": "text", "text": words("word ", 3000), "cache_control": { "type": "ephemeral" } },
    ]}]});
    for (model, written) in [("claude-opus-4-5", false), ("claude-sonnet-4-5", true)] {
        let mut caches = Caches::new(Api::Anthropic);
        let usage = caches.serve(model, request.to_string().as_bytes(), 0);
        assert_eq!(usage.write_5m > 0, written, "{model}");
    }
}

#[test]
fn a_change_of_thinking_effort_invalidates_the_cache() {
    let mut caches = Caches::new(Api::Anthropic);
    let mut request = body(2, &[1], Some("5m"));
    serve(&mut caches, &request, 0);
    request["output_config"] = json!({ "effort": "high" });
    assert_eq!(serve(&mut caches, &request, 1).read, 0);
}

fn chat(key: &str, texts: &[String]) -> Vec<u8> {
    let messages: Vec<Value> = texts.iter().map(|text| json!({ "role": "user", "content": text })).collect();
    json!({ "prompt_cache_key": key, "messages": messages }).to_string().into_bytes()
}

#[test]
fn openai_reads_in_steps_beyond_a_minimum() {
    let serve = |caches: &mut Caches, texts: &[String]| caches.serve("gpt-5.5", &chat("k", texts), 0);
    let mut caches = Caches::new(Api::Chat);
    let short = [words("short ", 900)];
    serve(&mut caches, &short);
    assert_eq!(serve(&mut caches, &short).read, 0, "below the minimum");
    let long = [words("long ", 1500)];
    assert_eq!(serve(&mut caches, &long).read, 0);
    let again = serve(&mut caches, &[long[0].clone(), words("more ", 500)]);
    assert_eq!((again.read, again.write_5m), (1408, 0), "whole steps only; writes are not billed");
}

#[test]
fn openai_bills_writes_of_newer_models() {
    let mut caches = Caches::new(Api::Responses);
    let body = json!({ "input": [{ "role": "user", "content": words("long ", 1500) }] }).to_string();
    for (model, written) in [("gpt-5.5", 0), ("gpt-5.6-codex", 1408), ("gpt-6", 1408)] {
        assert_eq!(caches.serve(model, body.as_bytes(), 0).write_5m, written, "{model}");
    }
}

#[test]
fn openai_routes_by_key_and_overflows() {
    let texts = [words("long ", 1500)];
    let mut caches = Caches::new(Api::Chat);
    assert_eq!(caches.serve("gpt-5.5", &chat("a", &texts), 0).read, 0);
    assert_eq!(caches.serve("gpt-5.5", &chat("b", &texts), 0).read, 0, "another route");
    let reads: Vec<bool> = (0..15).map(|_| caches.serve("gpt-5.5", &chat("a", &texts), 0).read > 0).collect();
    assert_eq!(reads[..14], [true; 14]);
    assert!(!reads[14], "the sixteenth request of a minute goes elsewhere");
    assert!(caches.serve("gpt-5.5", &chat("a", &texts), 2 * MINUTE).read > 0);
    assert_eq!(caches.serve("gpt-5.5", &chat("a", &texts), 8 * MINUTE).read, 0, "nobody used it for five minutes");
}

#[test]
fn best_possible_cache_read_is_the_prefix_shared_with_an_earlier_request() {
    let mut caches = Caches::new(Api::Anthropic);
    serve(&mut caches, &body(30, &[], None), 0);
    serve(&mut caches, &body(40, &[], None), 1);
    let report = caches.report();
    assert_eq!(report.read, 0);
    let whole = report.total;
    assert!(report.best > whole * 2 / 5 && report.best < whole / 2, "{report:?}");
}
