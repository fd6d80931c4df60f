//! Finds what a person should know about agents' sessions: a loop, a hang, a pending approval, a rejected API key,
//! finished work.
//!
//! [`Monitor`] takes the committed events of all sessions, in order, and the time; out come
//! [`events::Finding`]s, one for each change of one. [`DetectorLimits`] are its limits. What each kind means, when it
//! is raised and when it is over is in `README.md`.
//!
//! Owns the detectors and what they remember of each session, which is bounded. No I/O, no clock (`now` is an
//! argument), no provider's format; decides nothing and answers nobody. What it reads was written by agents
//! and by whoever wrote to them: it can bring about a wrong finding at worst, and never ends one about an
//! approval.
//!
//! Start at [`Monitor`]; `watch` is one session, `findings` its findings, `together` what several sessions show, and each
//! other module one sort of trouble.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

mod approvals;
mod conflict;
mod context;
mod ending;
mod errors;
mod failing;
mod findings;
mod loops;
mod monitor;
mod polling;
mod risk;
mod rules;
mod step;
mod stuck;
mod text;
mod together;
mod until;
mod watch;

pub use monitor::Monitor;
pub use risk::{RiskRequest, risk};
pub use rules::DetectorLimits;
