//! What the host of a run and the server say to each other: frames and requests ([`frame`]), what a host claims of its
//! run ([`claim`]) and what it tells of its screen ([`screen`]), the host's end of the connection ([`link`]), and the
//! runs of a data directory ([`runs`]).
//!
//! Must not own a terminal, read a screen or decide what one means: that is `terminal`'s.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod claim;
pub mod frame;
pub mod link;
pub mod runs;
pub mod screen;
