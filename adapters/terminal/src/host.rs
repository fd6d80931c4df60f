//! The terminal host of a run: owns the program's terminal, relays its bytes, reads its screen and reports to the
//! server. A process of its own, so that a server that is gone or replaced neither ends nor slows the agent.
//!
//! Three processes make a run. The *launcher* ([`launch`]) is what the user started: it makes the
//! terminal raw, hands it over, and then only forwards signals and waits. The *host* ([`start`],
//! [`relay`]) leads a session whose controlling terminal it made, and does all reading and writing.
//! The *program* runs in that session, in a group of its own: because the host is its parent in the
//! same session, Ctrl-Z stops it as it would below a shell. A run without a terminal has no host
//! ([`supervise`]).
//!
//! Start at [`start`] for how it begins, at [`relay`] for what it does all the time, at [`host_protocol::frame`]
//! for what it tells. Nothing here decides what a screen means ([`crate::screen`]).

pub mod child;
pub mod guest;
pub mod keys;
pub mod launch;
mod load_rules;
pub mod observe;
mod output_queue;
pub mod press_answer;
pub mod pty;
pub mod relay;
pub mod signals;
pub mod sink;
pub mod start;
pub mod supervise;
pub mod terminal;
pub mod type_prompt;
pub mod wire;
