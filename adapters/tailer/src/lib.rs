//! Follows files that other programs write: finds, watches and tails them, and passes each record to a decoder.
//!
//! It hands out [`events::NewEvent`]s with the cursor they lead to, and knows no agent's format: which
//! files are of interest is said by a [`collect::Recognize`], what a record means by a [`decode::Decoder`].
//! Start at [`collect`] for when files are looked at, at [`tail`] for how bytes become records, at
//! [`decode`] for the interface of a format.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod collect;
pub mod decode;
mod os;
pub mod tail;
pub mod watch;
