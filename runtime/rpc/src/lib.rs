//! The words by which a program drives a session: those of pi's RPC mode, so that pi's clients run.
//!
//! A line of a client is read by [`ClientLine::parse`]; [`success`] and [`failure`] write the answer to a command;
//! [`EventStream`] says what a session does as the events of pi; [`session`] answers what a client asks about its
//! entries. Sources: `docs/rpc.md`, `docs/rpc-commands.md`, `docs/json.md` and `dist/modes/rpc/rpc-types.d.ts` of
//! `@earendil-works/pi-coding-agent` 0.87.1, and a recording of it (`fixtures/pi-rpc`).
//!
//! No I/O and no clock: lines come and go as text, times are passed in.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

mod answer;
mod command;
mod dialog;
mod events;
pub mod session;

pub use answer::{failure, success};
pub use command::{ClientLine, CommandRefusal, RpcCommand, RpcImage, RpcRequest, StreamingBehavior};
pub use dialog::{Dialog, DialogAnswer};
pub use events::{AnswerModel, EventStream};
