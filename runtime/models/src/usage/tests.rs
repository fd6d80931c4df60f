use prices::Prices;

use super::*;

const USAGE: Usage = Usage { input: 1000, read: 8000, write_5m: 600, write_1h: 400, output: 200, reasoning: Some(50) };

#[test]
fn hit_rate_and_cost_units_are_computed_over_all_input_tokens() {
    assert_eq!(USAGE.total_input(), 10_000);
    assert_eq!(USAGE.hit_rate(), Some(0.8));
    assert_eq!(Usage::default().hit_rate(), None);
    assert!((USAGE.cost_units() - (1000.0 + 750.0 + 800.0 + 800.0 + 1000.0)).abs() < 1e-9);
}

#[test]
fn cost_is_priced_per_kind_of_token_and_none_for_an_unknown_model() {
    let prices = Prices::shipped().unwrap();
    let cost = prices.cost_nano_usd("claude-opus-4-5", 1_780_000_000_000, &USAGE.tokens());
    // 5, 25, 0.5, 6.25 and 10 dollars per million tokens.
    assert_eq!(cost, Some(5_000_000 + 5_000_000 + 4_000_000 + 3_750_000 + 4_000_000));
    assert_eq!(prices.cost_nano_usd("scripted", 0, &USAGE.tokens()), None);
}
