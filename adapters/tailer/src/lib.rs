//! Follows files that other programs write: finds, watches and tails them, and passes each record to a decoder.
//!
//! It sends [`events::NewEvent`]s with the cursor after them, and is independent of the agents' formats: a
//! [`collect::Recognize`] decides which files are read, a [`decode::Decoder`] decodes their records. Start at
//! [`collect`] for when files are checked, at [`tail`] for how bytes become records, at [`decode`] for the interface of
//! a format.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod collect;
pub mod decode;
mod os;
pub mod tail;
pub mod watch;
