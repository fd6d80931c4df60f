//! Tests the monitor from outside: events pass through the reducer and the monitor as in the program, in virtual time.
//! `cases` tests each kind of finding, `boundaries` plays `fixtures/advisor`, `traces` plays `fixtures/monitor`, `livelocks` and `healthy` measure on
//! generated sessions, `properties` contains invariants.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail by panicking and tell their figures")]
#![allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for")]

mod boundaries;
mod cases;
mod every_kind;
mod healthy;
mod livelocks;
mod properties;
mod script;
mod stage;
mod together;
mod traces;
