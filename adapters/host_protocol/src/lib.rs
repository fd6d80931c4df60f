//! The messages between the host of a run and the server: frames and requests ([`frame`]), the host's claims about its
//! run ([`claim`]) and its screen ([`screen`]), the host's end of the connection ([`link`]), and the runs of a data
//! directory ([`runs`]).
//!
//! The crate must not own a terminal, read a screen or interpret one; the crate `terminal` does.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod claim;
pub mod frame;
pub mod link;
pub mod runs;
pub mod screen;
