//! End to end. Recordings in virtual time: `replay`, `fold`, `screens`. The real program from outside:
//! `daemon`, `export`, `hooks_install`, `life`, `reading`, `recording`, `runs`, `statusbench`,
//! `streams`, `faults`, and with a
//! person at a terminal: `terminal`. The real program under kill -9: `ledger`. The map of crates:
//! `arrows`.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail by panicking and tell their figures")]

mod e2e {
    mod arrows;
    mod daemon;
    mod export;
    mod faults;
    mod fold;
    mod hooks_install;
    mod ledger;
    mod life;
    mod reading;
    mod recording;
    mod replay;
    mod runs;
    mod screens;
    mod statusbench;
    mod streams;
    mod terminal;

    /// The program.
    const PROGRAM: &str = env!("CARGO_BIN_EXE_capture-e2e");
}
