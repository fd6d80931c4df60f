use super::*;
use crate::{
    entries::{EndedRequest, RequestRecord, SentRequest},
    ids::RequestNumber,
};

const MARKERS: CacheRules =
    CacheRules::Markers { lookback: 20, min_tokens: 1000, ttl_ms: 300_000, long_ttl_ms: 3_600_000 };
const PREFIX: CacheRules = CacheRules::Prefix { min_tokens: 1024, step: 128, ttl_ms: 600_000 };

/// A session reduced to its requests. A block is a number and has 4,000 bytes: 1,000 tokens.
struct Requests {
    history: CacheHistory,
    rules: CacheRules,
    chain: Vec<u64>,
    n: u64,
    model: &'static str,
}

struct Sent {
    forecast: CacheForecast,
    sent: SentRequest,
    at_ms: i64,
}

impl Requests {
    fn new(rules: CacheRules) -> Self {
        Self { history: CacheHistory::default(), rules, chain: Vec::new(), n: 0, model: "m1" }
    }

    /// Sends blocks; `marked` are the indices of those with a mark.
    fn send(&mut self, blocks: &[u32], marked: &[usize], at_ms: i64) -> Sent {
        let digest = RequestDigest {
            blocks: (0..)
                .zip(blocks)
                .map(|(at, block)| {
                    let origin = if at < 2 { BlockOrigin::System } else { BlockOrigin::Entry(format!("e{at}")) };
                    let mut digest = BlockDigest::of(&block.to_le_bytes(), origin);
                    digest.bytes = 4000;
                    digest.is_marked = marked.contains(&at);
                    digest
                })
                .collect(),
        };
        self.n += 1;
        let key = format!("p/{}", self.model);
        let forecast = forecast(&self.history, &self.rules, &key, &digest, &self.chain, at_ms);
        let sent = SentRequest {
            n: RequestNumber(self.n),
            retries: 0,
            provider: "p".to_owned(),
            model: self.model.to_owned(),
            bytes: digest.bytes(),
            blocks: digest.blocks.len(),
            chain: digest.points(),
            predicted: forecast.prediction,
            is_summary: false,
        };
        self.history.apply(RequestRecord::Sent(sent.clone()), at_ms);
        self.chain = digest.chain();
        Sent { forecast, sent, at_ms }
    }

    /// The answer. `tokens`: uncached, read and written.
    fn end(&mut self, sent: &Sent, tokens: [u64; 3]) -> Option<MissCause> {
        let [input, cache_read, cache_write_5m] = tokens;
        let usage = AnswerUsage { input, cache_read, cache_write_5m, ..AnswerUsage::default() };
        let cause = sent.forecast.cause(&usage);
        let (n, cause_told) = (sent.sent.n, cause.clone());
        let ended =
            EndedRequest { n, first_ms: None, total_ms: 1, usage: Some(usage), cause: cause_told, failure: None };
        self.history.apply(RequestRecord::Ended(ended), sent.at_ms);
        cause
    }

    /// Starts another process, which has only the data in the entry of the last request.
    fn reopen(&mut self) {
        self.chain.clear();
    }
}

fn blocks(n: u32) -> Vec<u32> {
    (0..n).collect()
}

#[test]
fn the_next_request_is_predicted_to_read_what_was_written() {
    let mut requests = Requests::new(MARKERS);
    let first = requests.send(&blocks(4), &[1, 3], 0);
    assert_eq!(first.forecast.prediction, CachePrediction { read: 0, write: 4000, hit: None });
    assert_eq!(requests.end(&first, [5, 0, 3990]), None);
    let second = requests.send(&blocks(7), &[1, 4, 6], 1000);
    assert_eq!(second.forecast.prediction.read, 3990, "what the provider counted, not what was estimated");
    assert_eq!(second.forecast.prediction.hit, Some(4));
    assert!((2900..3100).contains(&second.forecast.prediction.write), "{:?}", second.forecast.prediction);
    assert_eq!(requests.end(&second, [5, 3990, 3000]), None);
    requests.reopen();
    let third = requests.send(&blocks(9), &[1, 6, 8], 2000);
    assert_eq!(third.forecast.prediction.read, 6990, "also in another process");
    assert_eq!(requests.end(&third, [5, 6990, 2000]), None);
}

#[test]
fn a_retry_after_a_failed_request_predicts_the_same_cache_read() {
    let mut requests = Requests::new(MARKERS);
    let first = requests.send(&blocks(4), &[1, 3], 0);
    requests.end(&first, [0, 0, 4000]);
    let failed = requests.send(&blocks(6), &[1, 3, 5], 1000);
    let ended = EndedRequest {
        n: failed.sent.n,
        first_ms: None,
        total_ms: 1,
        usage: None,
        cause: None,
        failure: Some(crate::FailureKind::Network),
    };
    requests.history.apply(RequestRecord::Ended(ended), 1000);
    let again = requests.send(&blocks(6), &[1, 3, 5], 2000);
    assert_eq!(again.forecast.prediction.read, 4000);
    assert_eq!(requests.end(&again, [0, 4000, 2000]), None);
}

/// Sends a request of ten blocks, then one modified by `change`; returns the prediction and the cause of the miss.
fn miss(rules: CacheRules, change: impl Fn(&mut Requests) -> Sent) -> (CachePrediction, Option<MissCause>) {
    let mut requests = Requests::new(rules);
    let first = requests.send(&blocks(10), &[1, 7, 9], 0);
    requests.end(&first, if matches!(rules, PREFIX) { [10_000, 0, 0] } else { [0, 0, 10_000] });
    let second = change(&mut requests);
    let predicted = second.forecast.prediction;
    (predicted, requests.end(&second, [12_000, 0, 0]))
}

#[test]
fn every_miss_has_its_cause() {
    let (read, cause) = miss(MARKERS, |requests| {
        let mut changed = blocks(12);
        changed[5] = 77;
        requests.send(&changed, &[1, 9, 11], 1000)
    });
    assert_eq!(cause, Some(MissCause::PrefixChanged { block: 5, origin: BlockOrigin::Entry("e5".to_owned()) }));
    assert_eq!((read.read, read.hit), (2000, Some(2)), "the system prompt is still there");

    let (_, cause) = miss(MARKERS, |requests| {
        requests.reopen();
        let mut changed = blocks(12);
        changed[8] = 77;
        requests.send(&changed, &[1, 9, 11], 1000)
    });
    // Only the marks of the previous request are known.
    assert_eq!(cause, Some(MissCause::PrefixChanged { block: 8, origin: BlockOrigin::Entry("e8".to_owned()) }));

    let (read, cause) = miss(MARKERS, |requests| requests.send(&blocks(12), &[1, 9, 11], 300_001));
    assert_eq!((read.read, cause), (0, Some(MissCause::TtlPassed { gap_ms: 300_001 })));

    let (read, cause) = miss(MARKERS, |requests| requests.send(&blocks(40), &[1, 38, 39], 1000));
    assert_eq!(cause, Some(MissCause::LookbackExceeded { blocks: 29 }));
    assert_eq!(read.read, 2000);

    let (read, cause) = miss(MARKERS, |requests| {
        requests.model = "m2";
        requests.send(&blocks(12), &[1, 9, 11], 1000)
    });
    assert_eq!((read.read, cause), (0, Some(MissCause::ModelChanged)));

    let (read, cause) = miss(MARKERS, |requests| requests.send(&blocks(12), &[1, 9, 11], 1000));
    assert_eq!((read.read, cause), (10_000, Some(MissCause::EvictedByVendor)));

    let (read, cause) = miss(PREFIX, |requests| requests.send(&blocks(12), &[], 1000));
    assert_eq!((read.read, cause), (9984, Some(MissCause::EvictedByVendor)));
    // Many requests within a minute are routed to several machines.
    let many = |every_ms: i64| {
        miss(PREFIX, |requests| {
            for n in 1..15 {
                let sent = requests.send(&blocks(10), &[], n * every_ms);
                requests.end(&sent, [16, 9984, 0]);
            }
            requests.send(&blocks(12), &[], 15 * every_ms)
        })
    };
    assert_eq!(many(3999).1, Some(MissCause::RoutedElsewhere));
    assert_eq!(many(4001).1, Some(MissCause::EvictedByVendor));

    let (read, cause) = miss(CacheRules::None, |requests| requests.send(&blocks(12), &[], 1000));
    assert_eq!((read, cause), (CachePrediction::default(), None));
}

#[test]
fn a_prefix_below_the_minimum_is_reported_as_the_cause_of_a_miss() {
    let rules = CacheRules::Markers { lookback: 20, min_tokens: 4096, ttl_ms: 300_000, long_ttl_ms: 3_600_000 };
    let mut requests = Requests::new(rules);
    let first = requests.send(&blocks(2), &[1], 0);
    assert_eq!(first.forecast.prediction.write, 0);
    requests.end(&first, [2000, 0, 0]);
    let second = requests.send(&blocks(3), &[1, 2], 1000);
    let cause = requests.end(&second, [3000, 0, 0]);
    assert_eq!(cause, Some(MissCause::BelowMinimum { tokens: 2000, minimum: 4096 }));
    // Once the prefix is long enough, no cause is reported.
    let third = requests.send(&blocks(6), &[1, 5], 2000);
    assert_eq!(requests.end(&third, [0, 0, 6000]), None);
}

#[test]
fn small_shortfalls_of_cached_tokens_are_not_a_miss() {
    let mut requests = Requests::new(MARKERS);
    let first = requests.send(&blocks(100), &[1, 99], 0);
    requests.end(&first, [0, 0, 100_000]);
    let second = requests.send(&blocks(101), &[1, 99, 100], 1000);
    assert_eq!(requests.end(&second, [1000, 99_000, 1000]), None);
    let third = requests.send(&blocks(102), &[1, 100, 101], 2000);
    assert!(requests.end(&third, [3000, 97_900, 1000]).is_some());
}

#[test]
fn reading_a_cache_entry_extends_its_lifetime() {
    let mut requests = Requests::new(MARKERS);
    let first = requests.send(&blocks(10), &[1, 9], 0);
    requests.end(&first, [0, 0, 10_000]);
    // The same request again and again, for longer than the time to live.
    for n in 1..5 {
        let again = requests.send(&blocks(10), &[1, 9], n * 250_000);
        assert_eq!(again.forecast.prediction.read, 10_000);
        requests.end(&again, [0, 10_000, 0]);
    }
}

#[test]
fn prefixes_are_cached_in_steps() {
    let mut requests = Requests::new(PREFIX);
    let first = requests.send(&blocks(1), &[], 0);
    requests.end(&first, [1000, 0, 0]);
    let second = requests.send(&blocks(3), &[], 1000);
    assert_eq!(second.forecast.prediction.read, 0, "below the minimum");
    requests.end(&second, [3000, 0, 0]);
    let third = requests.send(&blocks(4), &[], 2000);
    assert_eq!(third.forecast.prediction.read, 2944);
    assert_eq!(requests.end(&third, [1056, 2944, 0]), None);
}

#[test]
fn recent_pauses_decide_whether_the_long_ttl_is_cheaper() {
    let with_pauses = |pauses: &[i64]| {
        let mut requests = Requests::new(MARKERS);
        let mut now_ms = 0;
        for pause in [0].iter().chain(pauses) {
            now_ms += pause;
            let sent = requests.send(&blocks(3), &[1, 2], now_ms);
            requests.end(&sent, [0, 0, 3000]);
        }
        requests.history.is_long_cache_cheaper()
    };
    let (short, long, very_long) = (60_000, 600_000, 7_200_000);
    assert!(!with_pauses(&[]));
    assert!(!with_pauses(&[short; 10]));
    assert!(with_pauses(&[long]), "a write less, 1.15, for 0.75");
    assert!(with_pauses(&[short, long, short, long]));
    assert!(!with_pauses(&[very_long; 10]), "an hour is not enough");
    // Only the most recent pauses count.
    let old: Vec<i64> = [long; 5].into_iter().chain([short; 20]).collect();
    assert!(!with_pauses(&old));
}

#[test]
fn a_request_stores_chain_points_for_prefix_markers_and_end() {
    let mut requests = Requests::new(MARKERS);
    let sent = requests.send(&blocks(9), &[4, 6], 0);
    let points: Vec<(usize, bool)> = sent.sent.chain.iter().map(|point| (point.at, point.is_marked)).collect();
    assert_eq!(points, [(2, false), (5, true), (7, true), (9, false)]);
    let text = serde_json::to_string(&sent.sent.chain[1]).unwrap();
    assert_eq!(serde_json::from_str::<ChainPoint>(&text).unwrap(), sent.sent.chain[1]);
    assert!(text.starts_with(r#"{"at":5,"hash":""#), "{text}");
}
