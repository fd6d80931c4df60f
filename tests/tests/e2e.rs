//! End to end. Recordings in virtual time: `replay`, `fold`. The real program from outside:
//! `export`, `life`, `reading`, `streams`, `faults`. The real program under kill -9: `ledger`. The map of
//! `life`, `reading`, `run`, `streams`, `faults`. The real program under kill -9: `ledger`. The map of
//! crates: `arrows`.
//! `export`, `life`, `reading`, `streams`, `faults`, and at a terminal: `terminal`. The real program
//! under kill -9: `ledger`. The map of crates: `arrows`.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail by panicking and tell their figures")]

mod e2e {
    mod arrows;
    mod export;
    mod faults;
    mod fold;
    mod ledger;
    mod life;
    mod reading;
    mod recording;
    mod replay;
    mod run;
    mod screens;
    mod streams;
    mod terminal;

    /// The program.
    const PROGRAM: &str = env!("CARGO_BIN_EXE_capture-e2e");
}
