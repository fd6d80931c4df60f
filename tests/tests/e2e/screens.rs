//! Replays recorded terminals through the screen model. For your own recordings use `src/bin/screens.rs`.

use std::{collections::BTreeMap, sync::Arc};

use ::terminal::screen::ScreenRules;
use events::Confidence;
use tests::terminal::{self, DELIVERY_MS, Score, Terminal, without};

fn rules() -> Arc<ScreenRules> {
    Arc::new(ScreenRules::load(None).unwrap())
}

/// The committed recordings, all of them or those of one provider.
fn kept() -> Vec<Terminal> {
    let recordings = Terminal::load_all(&tests::recording::fixtures().join("terminal/recordings"));
    assert!(recordings.len() > 30, "{}", recordings.len());
    recordings
}

/// For each set of missing signals, the minimum agreement with the truth in percent.
#[test]
fn claims_from_recorded_terminals_agree_with_the_truth() {
    let rules = rules();
    let recordings = kept();
    let cases: [(&[&str], f64); 5] =
        [(&[], 98.5), (&["title"], 97.0), (&["state"], 97.5), (&["title", "state"], 96.5), (&["colour", "sync"], 98.0)];
    for (left_out, least) in cases {
        let mut sums: BTreeMap<String, Score> = BTreeMap::new();
        for recording in &recordings {
            let played = terminal::play_as(recording, &rules, &|bytes| vec![without(bytes, left_out)]);
            assert_eq!(played.unexplained, [], "{}", recording.name);
            sums.entry(recording.provider.to_string()).or_default().add(&terminal::score(
                recording,
                &played,
                DELIVERY_MS,
            ));
        }
        for (provider, score) in sums {
            println!("{provider:8} without {left_out:?}: {score}");
            assert!(score.agree() >= least, "{provider} without {left_out:?}: {score}");
            assert_eq!(score.approvals.0, score.approvals.1, "{provider} without {left_out:?}: {score}");
            assert_eq!(score.false_approvals, 0, "{provider} without {left_out:?}: {score}");
            assert!(score.reason.1 * 100 >= score.reason.0 * 95, "{provider} without {left_out:?}: {score}");
            assert!(score.delay(0.5) - DELIVERY_MS <= 80, "{provider} without {left_out:?}: {score}");
        }
    }
}

/// Versions of the last years: no approval is missed or invented, and claims with high confidence are true.
#[test]
fn recorded_screens_of_older_versions_yield_no_false_confident_claims() {
    const NOTICED_MS: i64 = 2_000;
    let rules = rules();
    let recordings = Terminal::load_all(&tests::recording::fixtures().join("terminal/older"));
    assert!(recordings.len() >= 8, "{}", recordings.len());
    for recording in &recordings {
        let played = terminal::play(recording, &rules);
        let score = terminal::score(recording, &played, DELIVERY_MS);
        println!("{}: {score}", recording.name);
        assert_eq!(score.approvals.0, score.approvals.1, "{}: {score}", recording.name);
        assert_eq!(score.false_approvals, 0, "{}: {score}", recording.name);
        let least = if recording.name == "codex/0.60.1" { 75.0 } else { 99.0 };
        assert!(score.agree() >= least, "{}: {score}", recording.name);
        let end = recording.truth.last().map_or(0, |truth| truth.at);
        let claims: Vec<_> = played.claims().map(|(at, claim)| (at, claim.state, claim.strength)).collect();
        let until = claims.iter().skip(1).map(|claim| claim.0).chain([end]);
        for ((from, state, strength), to) in claims.iter().zip(until) {
            let spans = recording.truth.windows(2).map(|pair| (pair[0].at, pair[1].at, pair[0].state));
            let wrong = spans
                .filter(|(_, _, truth)| truth.is_some_and(|truth| truth != *state))
                .map(|(begin, end, _)| end.min(to) - begin.max(*from))
                .max();
            assert!(
                *strength < Confidence::High || wrong.is_none_or(|ms| ms <= NOTICED_MS),
                "{}: {state} at {from} was wrong for {wrong:?} ms",
                recording.name
            );
        }
    }
}

/// However the bytes are split, the final claims are the same and no intermediate claim is false.
#[test]
fn claims_do_not_depend_on_how_the_output_is_split() {
    let rules = rules();
    for recording in
        kept().iter().filter(|r| r.name.contains("approve") || r.name.contains("plan") || r.name.contains("trust"))
    {
        let claims = |way: &dyn Fn(&[u8]) -> Vec<Vec<u8>>| {
            let played = terminal::play_as(recording, &rules, way);
            played.claims().map(|(at, claim)| (at, claim.state, claim.reason, claim.dialog.clone())).collect::<Vec<_>>()
        };
        let whole = claims(&|bytes| vec![bytes.to_vec()]);
        assert_eq!(whole, claims(&|bytes| bytes.chunks(7).map(<[u8]>::to_vec).collect()), "{}", recording.name);
    }
}
