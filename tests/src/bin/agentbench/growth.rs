//! A12: how the memory of an agent grows in a long session whose tools print much.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::json;
use tests::models::Api;

use crate::{
    Bench, Outcome,
    canned::{Canned, answer},
    peers::{end, pss_kib, tree},
    place::Place,
    report::Row,
    rpc::Rpc,
};

/// Lines of 80 bytes that make 16 KiB.
const LINES: usize = 205;
/// Turns between two looks, and turns before the first: until then the program warms up.
const EVERY: usize = 50;
/// Answers to one prompt, below the limit of the agent.
const ROUNDS: usize = 100;
/// How long a turn may take.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct Growth {
    /// Turns.
    #[arg(long, default_value_t = 1000)]
    turns: usize,
}

pub(crate) fn growth(bench: &Bench, asked: &Growth) -> Outcome<Vec<Row>> {
    let told = |error: std::io::Error| error.to_string();
    let model = Canned::start(
        false,
        Box::new(|n| {
            if n % ROUNDS == ROUNDS - 1 {
                return Some(answer(n, "That is all.", &[]));
            }
            Some(answer(n, "", &[("read", json!({ "path": "lines.txt", "offset": 1 + n, "limit": LINES }))]))
        }),
    )
    .map_err(told)?;
    let place = Place::new(bench, Api::Anthropic, &model.url(), "", "")?;
    let lines: String = (0..asked.turns + LINES).map(|n| format!("{n:06} {}\n", "abcdefgh ".repeat(8))).collect();
    place.write("lines.txt", &lines)?;
    let mut samples = Vec::new();
    let began = Instant::now();
    if Rpc::is_there(&place)? {
        let mut rpc = Rpc::start(place.command(&["rpc"]))?;
        let mut prompts = 0;
        for turn in (EVERY..=asked.turns).step_by(EVERY) {
            while prompts * ROUNDS < turn {
                if prompts > 0 {
                    rpc.wait_for("agent_end", LIMIT * 10)?;
                }
                rpc.send(&json!({ "type": "prompt", "message": format!("go on {prompts}") }))?;
                prompts += 1;
            }
            model.wait_for(turn - 1, LIMIT * 10).ok_or_else(|| format!("turn {turn} did not come"))?;
            samples.push((model.count(), pss_kib(&tree(rpc.pid()))));
        }
    } else {
        eprintln!("the program has no `agent rpc`: one prompt, {} turns", ROUNDS);
        let mut command = place.command(&["run", "go on"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(told)?;
        for turn in (EVERY / 5..ROUNDS).step_by(EVERY / 5) {
            let came = model.wait_for(turn - 1, LIMIT);
            samples.push((model.count(), pss_kib(&tree(child.id()))));
            if came.is_none() {
                end(&mut child);
                return Err(format!("turn {turn} did not come"));
            }
        }
        end(&mut child);
    }
    let (Some((from, least)), Some((to, most))) = (samples.first().copied(), samples.last().copied()) else {
        return Err("too few turns".to_owned());
    };
    let each = (most as f64 - least as f64) / (to as f64 - from as f64).max(1.0);
    let value = format!(
        "{each:.1} KB a turn: {:.1} MB at turn {from}, {:.1} MB at turn {to}; {:.1} s",
        least as f64 / 1024.0,
        most as f64 / 1024.0,
        began.elapsed().as_secs_f64()
    );
    let row = Row::new("A12", format!("growth of PSS over {to} turns of 16 KiB"), value);
    Ok(vec![row.must("20 KB a turn", each <= 20.0).stretch("flat", each <= 1.0)])
}
