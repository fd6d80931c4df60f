//! Recorded terminals through the screen model.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Instant};

use ::terminal::screen::Rules;
use tests::terminal::{self, DELIVERY_MS, Score, Terminal};

fn rules() -> Arc<Rules> {
    Arc::new(Rules::load(None).unwrap())
}

/// The recordings that are kept, all of them or of one provider.
fn kept() -> Vec<Terminal> {
    let recordings = Terminal::load_all(&tests::recording::fixtures().join("terminal/recordings"));
    assert!(recordings.len() > 30, "{}", recordings.len());
    recordings
}

/// The signs a terminal can be without, and how well it must then be read: agreement in percent.
#[test]
fn recorded_terminals_are_read_right() {
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

/// However the bytes come: the same claims in the end, and none that is false on the way.
#[test]
fn pieces_of_a_recording_give_the_same_claims() {
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
        let begun = Instant::now();
        let played = terminal::play_as(recording, &rules, &|bytes| vec![without(bytes, &left_out)]);
        let took = begun.elapsed();
        let seconds = recording.truth.last().map_or(0.0, |t| t.at as f64 / 1000.0);
        let score = terminal::score(recording, &played, DELIVERY_MS);
        let share = took.as_secs_f64() / seconds * 100.0;
        println!(
            "{:45} {seconds:5.1} s took {:6.1} ms: {share:.2} % of a core",
            recording.name,
            took.as_secs_f64() * 1e3
        );
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

/// `SCREENS=<folder of recordings> DUMP=<folder>`: writes the screen of every claim, in
/// the form of `fixtures/terminal/screens`, to be looked at and kept.
#[test]
#[ignore = "needs a folder of recordings"]
fn dump() {
    let (Some(dir), Some(to)) = (tests::text_from_env("SCREENS"), tests::text_from_env("DUMP")) else { return };
    let rules = rules();
    for recording in &Terminal::load_all(Path::new(&dir)) {
        let played = terminal::play(recording, &rules);
        for (at, (picture, version)) in played.pictures.iter().enumerate() {
            let Some(claim) = &picture.claim else { continue };
            let rule = claim.words.split(['/', ':']).nth(1).unwrap_or_default();
            let path = Path::new(&to).join(format!("{}-{rule}-{at}.txt", recording.name));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let dialog = claim.dialog.clone().unwrap_or_default();
            let mut text =
                format!("provider: {}\nversion: {}\n", recording.provider, version.clone().unwrap_or_default());
            text += &format!("size: {} {}\n", picture.size.rows, picture.size.columns);
            text += &format!("title: {}\n", picture.title.clone().unwrap_or_default());
            text += &format!("agent_state: {}\n", picture.agent_state.clone().unwrap_or_default());
            text += &format!("claim: {} {}\n", claim.state, claim.reason.map_or("", |r| r.as_str()));
            for (name, value) in [("question", &dialog.question), ("subject", &dialog.subject)] {
                if let Some(value) = value {
                    text += &format!("{name}: {}\n", value.replace('\n', " | "));
                }
            }
            for option in &dialog.options {
                let mark = if option.selected { '>' } else { ' ' };
                let means = option.answer.and_then(|answer| serde_json::to_value(answer).ok());
                let means = means.as_ref().and_then(|m| m.as_str()).map_or(String::new(), |m| format!(" = {m}"));
                text += &format!("option:{mark}{} {}{means}\n", option.key.as_deref().unwrap_or("-"), option.label);
            }
            text += "---\n";
            text += picture.lines.join("\n").trim_end();
            std::fs::write(path, text + "\n").unwrap();
        }
    }
}
