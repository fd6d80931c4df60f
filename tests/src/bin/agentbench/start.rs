//! A10: the time from the start of the program to the first byte of the request to the model.

use std::time::{Duration, Instant};

use clap::Args;

use crate::{
    Bench, Outcome,
    canned::Canned,
    peers::{Installed, Who, end, prompted, version},
    place::Place,
    report::{Row, at_share, median, ms},
};

/// How long a start may take before it counts as failed.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct Start {
    /// Starts of each agent.
    #[arg(long, default_value_t = 30)]
    n: usize,
    #[command(flatten)]
    peers: Installed,
}

pub(crate) fn start(bench: &Bench, asked: &Start) -> Outcome<Vec<Row>> {
    let mut agents = vec![(Who::Ours, vec![bench.binary.clone()])];
    agents.extend(asked.peers.found()?);
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); agents.len()];
    // Interleaved, so that other load on the machine affects all agents alike.
    for round in 0..=asked.n {
        for (at, (who, program)) in agents.iter().enumerate() {
            let model = Canned::start(false, Box::new(|_| None)).map_err(|error| error.to_string())?;
            let place = Place::new(bench, who.api(), &model.url(), "", "")?;
            let mut command = prompted(*who, program, &place, &model.url(), "hello")?;
            let began = Instant::now();
            let mut child = command.spawn().map_err(|error| format!("{}: {error}", who.name()))?;
            let first = model.wait_for(0, LIMIT);
            end(&mut child);
            let first = first.ok_or_else(|| format!("{} sent no request", who.name()))?;
            // The first start loads the program's files into memory.
            if round > 0 {
                times[at].push(ms(first.begun - began));
            }
        }
    }
    let fastest = times.iter().skip(1).map(|times| median(times)).fold(f64::INFINITY, f64::min);
    let home = bench.scratch.path();
    let mut rows = Vec::new();
    for ((who, program), times) in agents.iter().zip(&times) {
        let p50 = median(times);
        let what = format!("start to the first byte of a request, {} {}", who.name(), version(program, home));
        let value = format!("p50 {p50:.1} ms, p90 {:.1} ms, {} starts", at_share(times, 0.9), times.len());
        let row = Row::new("A10", what, value);
        rows.push(match who {
            Who::Ours if fastest.is_finite() => {
                let share = p50 / fastest;
                row.must(format!("0.5 × the fastest peer (is {share:.2})"), share <= 0.5).stretch("15 ms", p50 <= 15.0)
            }
            Who::Ours => row.stretch("15 ms", p50 <= 15.0),
            Who::Pi | Who::Codex | Who::Claude => row,
        });
    }
    Ok(rows)
}
