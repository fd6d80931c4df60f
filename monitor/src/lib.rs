//! Finds problems and results in agents' sessions that the user should know about: a loop, a hang, a pending approval,
//! a rejected API key, finished work.
//!
//! [`Monitor`] gets the committed events of all sessions, in order, and the time. It returns [`events::Finding`]s, one
//! for each change of a finding. [`DetectorLimits`] are its limits. `README.md` describes each kind, when it is raised
//! and when it is over.
//!
//! Owns the detectors and their memory of each session, which is bounded. The crate does no I/O, reads no clock (`now`
//! is an argument), and does not depend on the format of a provider; it decides and answers nothing. Its input was
//! written by agents and by other people: at worst it can cause a wrong finding, and it never ends a finding about an
//! approval.
//!
//! Start at [`Monitor`]. `watch` is one session, `findings` its findings, `together` the findings about several
//! sessions, and each other module handles one kind of trouble.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

mod approvals;
mod boundaries;
mod cause;
mod claims;
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

pub use boundaries::{Boundaries, Boundary, BoundaryRequest};
pub use cause::{HangCause, hang_cause};
pub use monitor::Monitor;
pub use risk::{RiskRequest, risk};
pub use rules::DetectorLimits;
