//! The terminal host of a run: owns the program's terminal, relays its bytes, reads its screen and reports to the
//! server. It is a separate process, so that a stopped or replaced server neither ends nor slows the agent.
//!
//! A run has three processes. The *launcher* ([`launch`]) is the process the user started: it makes the terminal raw,
//! passes it to the host, and then only forwards signals and waits. The *host* ([`start`], [`relay`]) leads a session
//! whose controlling terminal it created, and does all reading and writing. The *program* runs in that session, in its
//! own process group: because its parent, the host, is in the same session, Ctrl-Z stops it as it would under a shell.
//! A run without a terminal has no host ([`supervise`]).
//!
//! Read [`start`] for how a run begins, [`relay`] for its main loop, and [`host_protocol::frame`] for its messages. The
//! meaning of a screen is decided in [`crate::screen`], not here.

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
