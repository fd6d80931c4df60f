//! Measures observation, from the agents' files to the clients: G1 to G9 and G14 to G17, each next to its limit
//! measured in the same run. The benchmark drives the real program as a user would: a home, a data directory, HTTP and
//! WebSockets.
//!
//! `CORPUS=/some/home cargo bench -p capture --bench observe -- g2 g4` measures these two on a corpus directory: a home
//! with `.claude`, `.codex`, `.gemini` and, optionally, `corpus-manifest.json` with the counts the store must contain.
//! The corpus files are only linked and read, never written. `CORPORA=/small:/larger:/largest … -- g15` measures how
//! cost grows. Without `CORPUS`, a small corpus is generated. No time is asserted.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a measuring program, not a service"
)]

#[path = "observe/cold.rs"]
mod cold;
#[path = "observe/corpus.rs"]
mod corpus;
#[path = "observe/figures.rs"]
mod figures;
#[path = "observe/growth.rs"]
mod growth;
#[path = "observe/idle.rs"]
mod idle;
#[path = "observe/latency.rs"]
mod latency;
#[path = "observe/limit.rs"]
mod limit;
#[path = "observe/lines.rs"]
mod lines;
#[path = "observe/program.rs"]
mod program;
#[path = "observe/restart.rs"]
mod restart;
#[path = "observe/search.rs"]
mod search;
#[path = "observe/socket.rs"]
mod socket;
#[path = "observe/streaming.rs"]
mod streaming;

use corpus::World;
use figures::Report;

type Section = fn(&mut World, &mut Report);

/// Sections that write to the home come last.
const SECTIONS: &[(&[&str], Section)] = &[
    (&["g2", "g7"], cold::measure),
    (&["g1", "g8", "g9"], search::measure),
    (&["g3"], restart::measure),
    (&["g6"], idle::measure),
    (&["g4"], latency::watched),
    (&["g5"], latency::polled),
    (&["g14"], streaming::measure),
    (&["g15", "g16", "g17"], growth::measure),
];

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let known = |name: &String| SECTIONS.iter().any(|(names, _)| names.contains(&name.as_str()));
    if let Some(unknown) = asked.iter().find(|name| !known(name)) {
        println!("unknown section `{unknown}`, expected some of g1 g2 g3 g4 g5 g6 g7 g8 g9 g14 g15 g16 g17");
        return;
    }
    let mut world = World::open();
    let mut report = Report::default();
    for (names, section) in SECTIONS {
        if asked.is_empty() || asked.iter().any(|arg| names.contains(&arg.as_str())) {
            section(&mut world, &mut report);
        }
    }
    report.table();
}
