//! Programs in a terminal: the terminal host of a run with its pty, the screen model, the rules that read the screen,
//! and the keys that answer a dialog.
//!
//! Bytes of the program never wait for its screen to be read. Start at [`host`] for a run, at [`screen`] for what is read
//! of it; [`host_protocol`] is what both tell.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod host;
mod os;
pub mod screen;
