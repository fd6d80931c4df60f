//! Recorded terminals through the screen model.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use adapters::screen::Rules;
use tests::terminal::{self, DELIVERY_MS, Score, Terminal};

fn rules() -> Arc<Rules> {
    Arc::new(Rules::load(None).unwrap())
}

/// `SCREENS=<folder of recordings>`: how all of them are read, with the worst.
#[test]
#[ignore = "needs a folder of recordings"]
fn measure() {
    let Some(dir) = tests::text_from_env("SCREENS") else { return };
    let only = tests::text_from_env("ONLY").unwrap_or_default();
    let rules = rules();
    let mut sums: BTreeMap<String, Score> = BTreeMap::new();
    let mut each: Vec<(String, Score)> = Vec::new();
    for recording in Terminal::load_all(Path::new(&dir)).iter().filter(|r| r.name.contains(&only)) {
        let played = terminal::play(recording, &rules);
        let score = terminal::score(recording, &played, DELIVERY_MS);
        sums.entry(recording.provider.to_string()).or_default().add(&score);
        if !only.is_empty() {
            for (at, run, told) in &played.told {
                println!("  {:8.3} run {run} {told:?}", *at as f64 / 1000.0);
            }
            for said in &recording.truth {
                println!("  {:8.3} TRUE {:?} {:?}", said.at as f64 / 1000.0, said.state, said.reason);
            }
        }
        for (at, words) in &played.unexplained {
            println!("  unexplained at {at}: {words}");
        }
        each.push((recording.name.clone(), score));
    }
    each.sort_by(|a, b| a.1.agree().total_cmp(&b.1.agree()));
    for (name, score) in &each {
        println!("{name:45} {score}");
    }
    for (provider, score) in &sums {
        println!("{provider:45} {score}");
    }
}
