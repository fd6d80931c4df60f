//! The host of a run: owns the program's terminal, passes its bytes on, reads its screen and tells
//! the server. A process of its own, so that a server that is gone or replaced neither ends nor
//! slows the agent.
//!
//! Start at [`frame`] for what it tells.

pub mod frame;
pub mod link;
