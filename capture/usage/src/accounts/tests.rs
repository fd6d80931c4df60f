use api::usage::{UsageBy, UsageReport};
use events::{AccountedModel, Provider, SessionId, UsageAccount, UsageReported};

use super::*;
use crate::{
    SessionPeriod,
    report::tests::{OPUS, World, at, by, of, rows, spent},
};

const DAY: &str = "2026-11-01T10:00:00Z";
const NEXT: &str = "2026-11-02T10:00:00Z";

fn model(name: &str, output_tokens: u64, cost_nano_usd: Option<u64>) -> AccountedModel {
    AccountedModel { model: name.into(), output_tokens, cost_nano_usd, ..AccountedModel::default() }
}

/// The account of a process that began at this time.
fn account(began_at: i64, models: &[AccountedModel]) -> UsageReported {
    let began_at = Some(Timestamp::from_millisecond(began_at));
    let account = UsageAccount { scope: AccountScope::Session, began_at, models: models.to_vec() };
    UsageReported { account: Some(account), ..UsageReported::default() }
}

/// The usage of one call, as reported by telemetry.
fn told(model: AccountedModel) -> UsageReported {
    let account = UsageAccount { scope: AccountScope::Call, began_at: None, models: vec![model] };
    UsageReported { account: Some(account), ..UsageReported::default() }
}

/// Output tokens, cost, and the reported part of the cost.
fn total(report: &UsageReport) -> (u64, Option<f64>, f64) {
    (report.total.tokens.output_tokens, report.total.cost_usd, report.total.reported_cost_usd)
}

fn one() -> (World, SessionId) {
    let mut world = World::new();
    let id = world.session(Provider::Claude, "s", "/p", None);
    world.call(id, DAY, &spent(OPUS, 1_000_000));
    (world, id)
}

#[test]
fn session_usage_beyond_its_calls_is_counted_once() {
    let (mut world, id) = one();
    let helper = world.session(Provider::Claude, "helper", "/p", Some(id));
    world.call(helper, DAY, &spent(OPUS, 500_000));
    let sums = [model(OPUS, 1_750_000, None), model("claude-haiku-4-5-20251001", 100_000, None)];
    world.call(id, NEXT, &account(1, &sums));
    world.call(id, NEXT, &account(1, &sums));
    let report = world.report(&by(UsageBy::Day));
    let row = |day: &str, tokens, cost| (day.to_owned(), tokens, Some(cost));
    assert_eq!(rows(&report), [row("2026-11-01", 1_500_000, 30.0), row("2026-11-02", 350_000, 5.5)]);
    assert_eq!(total(&report), (1_850_000, Some(35.5), 0.0));
    // A dated and a plain name denote the same model.
    let models = [model("claude-haiku-4-5", 200_000, None), model("claude-opus-5-5[1m]", 1_750_000, None)];
    world.call(id, NEXT, &account(1, &models));
    assert_eq!(total(&world.report(&by(UsageBy::Day))).0, 1_950_000);
    // The excess is counted in the period of its report, whatever share of the calls that period has.
    let late = world.report(&of(SessionPeriod { since: Some(at(NEXT)), ..SessionPeriod::default() }));
    assert_eq!(total(&late).0, 450_000);
    let early = world.report(&of(SessionPeriod { until: Some(at(NEXT)), ..SessionPeriod::default() }));
    assert_eq!(total(&early).0, 1_500_000);
    let session = world.report(&by(UsageBy::Session));
    assert_eq!(session.usage[0].sums.tokens.output_tokens, 1_450_000, "it is the session's own");
    assert_eq!(session.usage[0].subagents.unwrap().tokens.output_tokens, 500_000);
}

#[test]
fn the_cost_of_an_account_is_spread_over_its_calls() {
    let (mut world, id) = one();
    world.call(id, NEXT, &spent(OPUS, 1_000_000));
    // Fast processing costs more than the list price.
    world.call(id, NEXT, &account(1, &[model(OPUS, 2_500_000, Some(100_000_000_000))]));
    let report = world.report(&by(UsageBy::Day));
    assert_eq!(total(&report), (2_500_000, Some(100.0), 100.0));
    assert_eq!(rows(&report)[0], ("2026-11-01".to_owned(), 1_000_000, Some(40.0)));
}

#[test]
fn a_model_without_a_price_uses_the_cost_of_the_account() {
    let mut world = World::new();
    let id = world.session(Provider::Claude, "s", "/p", None);
    world.call(id, DAY, &spent("mystery", 100));
    world.call(id, NEXT, &spent("mystery", 300));
    let unknown = world.report(&by(UsageBy::Day));
    assert_eq!((unknown.total.unpriced_calls, &*unknown.unpriced_models), (2, &["mystery".to_owned()][..]));
    world.call(id, NEXT, &account(1, &[model("mystery", 400, Some(2_000_000_000))]));
    let report = world.report(&by(UsageBy::Day));
    assert_eq!((report.total.unpriced_calls, report.unpriced_models.len()), (0, 0));
    let costs: Vec<Option<f64>> = rows(&report).iter().map(|(_, _, cost)| *cost).collect();
    assert_eq!(costs, [Some(0.5), Some(1.5)]);
    // Usage outside the calls has no price either, if the account contains no cost.
    world.call(id, NEXT, &account(1, &[model("mystery", 500, None), model("enigma", 7, None)]));
    let report = world.report(&by(UsageBy::Day));
    assert_eq!(report.unpriced_models, ["enigma", "mystery"]);
    assert_eq!((report.total.cost_usd, total(&report).0), (None, 507));
}

#[test]
fn account_sums_that_do_not_cover_the_calls_are_ignored() {
    let (mut world, id) = one();
    world.call(id, DAY, &account(1, &[model(OPUS, 999_999, Some(1))]));
    assert_eq!(total(&world.report(&by(UsageBy::Day))), (1_000_000, Some(20.0), 0.0), "it went on after them");
    // The account and the transcript may use different names for the model.
    let (mut world, id) = one();
    world.call(id, DAY, &account(2, &[model("eu.anthropic.opus-v1", 1_000_000, Some(1))]));
    assert_eq!(total(&world.report(&by(UsageBy::Day))), (1_000_000, Some(20.0), 0.0));
}

#[test]
fn a_fork_in_the_same_process_counts_only_usage_beyond_its_origin() {
    let (mut world, id) = one();
    world.call(id, DAY, &account(7, &[model(OPUS, 1_000_000, None)]));
    let fork = world.session(Provider::Claude, "fork", "/p", None);
    world.call(fork, NEXT, &spent(OPUS, 500_000));
    world.call(fork, NEXT, &account(7, &[model(OPUS, 1_600_000, None)]));
    let report = world.report(&by(UsageBy::Session));
    assert_eq!(rows(&report)[1], ("fork".to_owned(), 600_000, Some(12.0)));
    assert_eq!(total(&report).0, 1_600_000);
    // Another process of the fork, with its own sums, and a third session in that process.
    world.call(fork, NEXT, &account(8, &[model(OPUS, 100_000, None)]));
    assert_eq!(total(&world.report(&by(UsageBy::Session))).0, 1_600_000);
    let third = world.session(Provider::Claude, "third", "/p", None);
    world.call(third, NEXT, &account(8, &[model(OPUS, 1_700_000, None)]));
    let report = world.report(&by(UsageBy::Session));
    assert_eq!(total(&report).0, 1_700_000, "one group of three sessions");
}

#[test]
fn the_account_of_a_fork_includes_the_calls_of_its_origin() {
    let (mut world, id) = one();
    let fork = world.fork(Provider::Claude, "fork", "s");
    world.call(fork, NEXT, &account(7, &[model(OPUS, 1_250_000, None)]));
    assert_eq!(total(&world.report(&by(UsageBy::Day))).0, 1_250_000);
    assert_ne!(fork, id);
}

#[test]
fn telemetry_calls_missing_from_the_transcript_are_counted() {
    let (mut world, id) = one();
    for n in [1_000_000, 50_000] {
        world.call(id, DAY, &told(model(OPUS, n, Some(n * 20_000))));
    }
    let report = world.report(&by(UsageBy::Day));
    assert_eq!(total(&report), (1_050_000, Some(21.0), 21.0));
    // The session's own sums cover the same calls.
    world.call(id, NEXT, &account(1, &[model(OPUS, 1_060_000, Some(21_200_000_000))]));
    assert_eq!(total(&world.report(&by(UsageBy::Day))), (1_060_000, Some(21.2), 21.2));
}
