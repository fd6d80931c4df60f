//! A12: how the agent's memory grows in a long session with large tool outputs.

use std::{
    process::Stdio,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::json;
use tests::{models::Api, within};

use crate::{
    Bench, Outcome,
    canned::{Canned, answer},
    peers::{end, pss_kib, tree},
    place::Place,
    report::Row,
    rpc::Rpc,
};

/// Number of 80-byte lines that make 16 KiB.
const LINES: usize = 205;
/// Turns before the first measurement, for warming up.
const WARM: usize = 20;
/// Rest before a measurement: the program returns memory that it has not used for ten seconds.
const REST: Duration = Duration::from_secs(12);
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

/// How many requests may be answered: the memory is measured while one is held back.
#[derive(Debug, Default)]
struct Gate {
    open: Mutex<usize>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self, n: usize) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Waiting requests are released when the measurement ends.
        drop(self.changed.wait_while(open, |open| *open <= n));
    }

    fn open(&self, up_to: usize) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = up_to;
        self.changed.notify_all();
    }
}

/// Opens the gate when dropped.
struct Opened(Arc<Gate>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.open(usize::MAX);
    }
}

pub(crate) fn growth(bench: &Bench, asked: &Growth) -> Outcome<Vec<Row>> {
    let told = |error: std::io::Error| error.to_string();
    let gate = Opened(Arc::default());
    let passed = Arc::clone(&gate.0);
    let say = move |n: usize| {
        passed.pass(n);
        if n % ROUNDS == ROUNDS - 1 {
            return Some(answer(n, "That is all.", &[]));
        }
        Some(answer(n, "", &[("read", json!({ "path": "lines.txt", "offset": 1 + n, "limit": LINES }))]))
    };
    let model = Canned::start(false, Box::new(say)).map_err(told)?;
    let place = Place::new(bench, Api::Anthropic, &model.url(), "", "")?;
    let lines: String = (0..asked.turns + LINES).map(|n| format!("{n:06} {}\n", "abcdefgh ".repeat(8))).collect();
    place.write("lines.txt", &lines)?;
    let began = Instant::now();
    let mut samples = Vec::new();
    let mut look = |pid: u32, turn: usize| -> Outcome<()> {
        // The request after this turn has arrived and waits.
        gate.0.open(turn);
        model.wait_for(turn, LIMIT * 10).ok_or_else(|| format!("turn {turn} did not come"))?;
        let busy = pss_kib(&tree(pid));
        let rested = Instant::now() + REST;
        within(REST, || (Instant::now() >= rested).then_some(()));
        samples.push((turn, busy, pss_kib(&tree(pid))));
        Ok(())
    };
    if Rpc::is_there(&place)? {
        let mut rpc = Rpc::start(place.command(&["rpc"]))?;
        for turn in 0..asked.turns {
            if turn % ROUNDS == 0 {
                if turn > 0 {
                    rpc.wait_for("agent_end", LIMIT)?;
                }
                rpc.send(&json!({ "type": "prompt", "message": format!("go on {turn}") }))?;
            }
            if turn == WARM || turn + 1 == asked.turns {
                look(rpc.pid(), turn)?;
            } else {
                gate.0.open(turn + 1);
                model.wait_for(turn, LIMIT).ok_or_else(|| format!("turn {turn} did not come"))?;
            }
        }
    } else {
        eprintln!("the program has no `agent rpc`: one prompt, {ROUNDS} turns");
        let mut command = place.command(&["run", "go on"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(told)?;
        let looked = [WARM, ROUNDS - 1].into_iter().try_for_each(|turn| look(child.id(), turn));
        end(&mut child);
        looked?;
    }
    let (Some((from, busy, least)), Some((to, busiest, most))) = (samples.first().copied(), samples.last().copied())
    else {
        return Err("too few turns".to_owned());
    };
    let each = (most as f64 - least as f64) / (to as f64 - from as f64).max(1.0);
    let mb = |kib: u64| kib as f64 / 1024.0;
    let value = format!(
        "{each:.1} KB a turn: {:.1} MB at turn {from}, {:.1} MB at turn {to}, each after a rest of {} s; {:.1} and {:.1} \
         MB before it; {:.0} s",
        mb(least),
        mb(most),
        REST.as_secs(),
        mb(busy),
        mb(busiest),
        began.elapsed().as_secs_f64()
    );
    let row = Row::new("A12", format!("growth of PSS over {to} turns of 16 KiB"), value);
    Ok(vec![row.must("20 KB a turn", each <= 20.0).stretch("flat", each <= 1.0)])
}
