//! End-to-end tests. Recordings in virtual time: `replay`, `fold`, `screens`, `statusbench`. A user at a terminal:
//! `terminal`. The real program under kill -9: `ledger`. The map of crates: `arrows`. The requirements of
//! `docs/security.md`: `requirements`. The documentation: `docs`. The places in which agents are named: `providers`.
//! All other modules run the real program from outside and are named after their subject.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail by panicking and tell their figures")]

mod e2e {
    mod agentbench;
    mod approvals;
    mod arrows;
    mod audit;
    mod claims;
    mod clients;
    mod daemon;
    mod descent;
    mod docs;
    mod drift;
    mod everyday;
    mod explain;
    mod export;
    mod exports;
    mod faults;
    mod findings;
    mod first_look;
    mod fold;
    mod hooks_install;
    mod hooks_versions;
    mod hostile;
    mod labelled_sets;
    mod ledger;
    mod life;
    mod limits;
    mod mcp;
    mod metrics;
    mod needs;
    mod notices;
    mod otlp;
    mod own_agent;
    mod own_agent_rpc;
    mod own_agent_server;
    mod own_agent_sessions;
    mod own_agent_words;
    mod owned;
    mod ownership;
    mod packaging;
    mod page_files;
    mod providers;
    mod reading;
    mod recording;
    mod replay;
    mod requirements;
    mod resume;
    mod retention;
    mod runs;
    mod screens;
    mod search;
    mod secret_doors;
    mod secrets;
    mod statusbench;
    mod store_faults;
    mod streams;
    mod terminal;
    mod timeline;
    mod treatments;
    mod typing;
    mod usage;
    mod views;
    mod web;

    /// The program under test.
    const PROGRAM: &str = env!("CARGO_BIN_EXE_capture-e2e");
}
