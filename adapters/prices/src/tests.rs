use super::*;

const DAY: i64 = DAY_MS;

fn million(tokens: CallTokens) -> CallTokens {
    let times = |n: u64| n * 1_000_000;
    CallTokens {
        input: times(tokens.input),
        output: times(tokens.output),
        cache_read: times(tokens.cache_read),
        cache_write: times(tokens.cache_write),
        cache_write_hour: times(tokens.cache_write_hour),
        thinking: times(tokens.thinking),
    }
}

fn usd(prices: &Prices, model: &str, day: i64, tokens: CallTokens) -> Option<f64> {
    prices.cost_nano_usd(model, day * DAY, &tokens).map(|nano| nano as f64 / 1e9)
}

#[test]
fn each_kind_of_tokens_has_its_price() {
    let prices = Prices::shipped().unwrap();
    assert_eq!((prices.date(), prices.sources().len()), ("2026-11-23", 2));
    let of = |tokens| usd(&prices, "claude-opus-5-5", 20_000, million(tokens));
    let none = CallTokens::default();
    assert_eq!(of(CallTokens { input: 1, ..none }), Some(4.0));
    assert_eq!(of(CallTokens { output: 1, thinking: 1, ..none }), Some(20.0));
    assert_eq!(of(CallTokens { cache_read: 1, ..none }), Some(0.2));
    assert_eq!(of(CallTokens { cache_write: 1, ..none }), Some(5.0));
    assert_eq!(of(CallTokens { cache_write: 2, cache_write_hour: 1, ..none }), Some(13.0));
    assert_eq!(of(none), Some(0.0));
}

#[test]
fn model_name_variants_resolve_to_price_table_entries() {
    let prices = Prices::shipped().unwrap();
    for (name, like) in [
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("claude-opus-5-5[1m]", "claude-opus-5-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("Claude-Sonnet-4@20250514", "claude-sonnet-4-0"),
        ("claude-opus-4-20250514", "claude-opus-4-0"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("gpt-5.2-codex", "gpt-5.2"),
        ("gpt-5.4-2026-03-05", "gpt-5.4"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("global.anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("eu.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4-0"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5",
        ),
        ("claude-sonnet-4-5-20250929-thinking", "claude-sonnet-4-5"),
        ("gpt-5.2-codex-high", "gpt-5.2"),
    ] {
        let of = |name| usd(&prices, name, 20_000, CallTokens { input: 1000, output: 1000, ..CallTokens::default() });
        assert!(of(name).is_some() && of(name) == of(like), "{name}: {:?}, {like}: {:?}", of(name), of(like));
    }
    for unknown in [
        "claude-opus-9",
        "us.anthropic.claude-opus-9-v1:0",
        "claude-opus-4-6-v1",
        "elsewhere.claude-opus-4-6",
        "gpt-5.2-codex-nova",
        "gpt-test",
        "",
        "-",
        "gpt-5.4-2026-03",
    ] {
        assert_eq!(usd(&prices, unknown, 20_000, CallTokens::default()), None, "{unknown}");
    }
}

#[test]
fn prices_depend_on_request_length_and_date() {
    let prices = Prices::shipped().unwrap();
    let request = |input| CallTokens { input, cache_read: 100_000, cache_write: 50_000, ..CallTokens::default() };
    // 200,000 tokens do not exceed 200,000. Day 20,525 is 2026-03-13.
    let sonnet = |day, input| usd(&prices, "claude-sonnet-4-6", day, request(input));
    assert_eq!(sonnet(20_524, 50_000), Some(0.15 + 0.03 + 0.1875));
    assert_eq!(sonnet(20_524, 50_001), Some(0.300_006 + 0.06 + 0.375));
    assert_eq!(sonnet(20_525, 50_001), Some(0.150_003 + 0.03 + 0.1875));
}

#[test]
fn fast_model_variants_use_the_fast_price() {
    let prices = Prices::shipped().unwrap();
    let tokens = million(CallTokens { input: 1, output: 1, ..CallTokens::default() });
    for (name, cost) in [
        ("claude-opus-4-7-fast", Some(180.0)),
        ("claude-opus-4-6-20260205-fast", Some(180.0)),
        ("anthropic/claude-opus-5-fast", Some(60.0)),
        ("claude-opus-4-8-fast", Some(60.0)),
        ("claude-haiku-4-5-fast", None),
    ] {
        assert_eq!(usd(&prices, name, 20_800, tokens), cost, "{name}");
    }
    assert_eq!(plain_name("claude-opus-5-fast"), plain_name("claude-opus-5"));
    let own = "[[model]]\nname = \"house\"\nfast = 3\n[[model.price]]\ninput = 1\noutput = 2\n";
    let prices = prices.with(own).unwrap();
    assert_eq!(usd(&prices, "house-fast", 1, tokens), Some(9.0));
    assert_eq!(usd(&prices, "house", 1, tokens), Some(3.0));
}

#[test]
fn user_prices_override_the_built_in_table() {
    let own = "[[model]]\nname = \"claude-opus-5.5\"\n[[model.price]]\ninput = 1\noutput = 2\n\n\
               [[model]]\nname = \"house\"\naliases = [\"house-large\"]\n[[model.price]]\nfrom = \"2026-01-01\"\n\
               input = 0\noutput = 0\n";
    let prices = Prices::shipped().unwrap().with(own).unwrap();
    let tokens = million(CallTokens { input: 1, cache_read: 1, ..CallTokens::default() });
    assert_eq!(usd(&prices, "claude-opus-5-5", 20_000, tokens), Some(2.0), "what is cached costs as much as input");
    assert_eq!(usd(&prices, "house-large", 1, tokens), Some(0.0), "free, which is not unknown");
    assert_eq!(prices.date(), "2026-11-23");
}

#[test]
fn price_file_errors_name_the_line() {
    let model = "[[model]]\nname = \"a\"\n";
    let price = "[[model.price]]\ninput = 1\noutput = 1\n";
    for (text, expected) in [
        ("x = 1".to_owned(), "line 1: unknown field `x`"),
        ("\n[[model]]\nname = 1\n".to_owned(), "line 3: invalid type"),
        (model.to_owned(), "line 2: `a` has no prices"),
        (format!("{model}[[model.price]]\ninput = 1\n"), "line 3: missing field `output`"),
        (format!("{model}[[model.price]]\ninput = -1\noutput = 1\n"), "line 4: expected US dollars per million tokens"),
        (format!("{model}[[model.price]]\ninput = nan\noutput = 1\n"), "line 4: expected US dollars"),
        (format!("{model}[[model.price]]\nfrom = \"soon\"\ninput = 1\noutput = 1\n"), "line 4: expected a date"),
        (format!("{model}{price}{model}{price}"), "line 7: `a` has prices already, on line 2"),
        (format!("{model}{price}{price}"), "line 2: prices must be sorted by date"),
        (format!("{model}{price}[model"), "line 6: "),
    ] {
        let error = Prices::default().with(&text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}\nexpected {expected}");
    }
}
