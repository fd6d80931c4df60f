//! Recorded terminals through the screen model.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use adapters::screen::Rules;
use tests::terminal::{self, DELIVERY_MS, Score, Terminal};

fn rules() -> Arc<Rules> {
    Arc::new(Rules::load(None).unwrap())
}

/// What a program writes without some of its signs: `title` (OSC 0 and 2), `state` (OSC 7501),
/// `colour` (SGR), `sync` (mode 2026).
fn without(bytes: &[u8], signs: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        let length = match rest {
            [0x1b, b']', ..] => match rest.iter().position(|b| *b == 0x07) {
                Some(bell) if !rest[2..bell].contains(&0x1b) => bell + 1,
                _ => rest.windows(2).position(|w| w == b"\x1b\\").map_or(rest.len(), |at| at + 2),
            },
            [0x1b, b'[', body @ ..] => {
                body.iter().position(|b| (0x40..=0x7e).contains(b)).map_or(rest.len(), |at| at + 3)
            }
            _ => 1,
        };
        let (sequence, after) = rest.split_at(length);
        let sign = match sequence {
            [0x1b, b']', b'0' | b'2', b';', ..] => "title",
            [0x1b, b']', b'7', b'5', b'0', b'1', ..] => "state",
            [0x1b, b'[', .., b'm'] => "colour",
            b"\x1b[?2026h" | b"\x1b[?2026l" => "sync",
            _ => "",
        };
        if sign.is_empty() || !signs.contains(&sign) {
            out.extend_from_slice(if length == 1 { std::slice::from_ref(&first) } else { sequence });
        }
        rest = after;
    }
    out
}

/// `SCREENS=<folder of recordings>`: how all of them are read, with the worst.
#[test]
#[ignore = "needs a folder of recordings"]
fn measure() {
    let Some(dir) = tests::text_from_env("SCREENS") else { return };
    let only = tests::text_from_env("ONLY").unwrap_or_default();
    let left_out = tests::text_from_env("WITHOUT").unwrap_or_default();
    let left_out: Vec<&str> = left_out.split(',').collect();
    let rules = rules();
    let mut sums: BTreeMap<String, Score> = BTreeMap::new();
    let mut each: Vec<(String, Score)> = Vec::new();
    for recording in Terminal::load_all(Path::new(&dir)).iter().filter(|r| r.name.contains(&only)) {
        let played = terminal::play_as(recording, &rules, &|bytes| vec![without(bytes, &left_out)]);
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
