//! Programs in a terminal: the terminal host of a run with its pty, the screen model, the rules that read the screen,
//! and the keys that answer a dialog.
//!
//! The program's output is relayed without waiting for its screen to be read. Start at [`host`] for a run, at
//! [`screen`] for reading its screen; [`host_protocol`] defines their messages.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod host;
mod os;
pub mod screen;
