//! The protocol by which a program drives a session: that of pi's RPC mode, so that pi's clients work.
//!
//! [`ClientLine::parse`] parses a line of a client; [`success`] and [`failure`] build the answer to a command;
//! [`EventStream`] reports the activity of a session as events of pi; [`session`] answers queries about its entries.
//! Sources: `docs/rpc.md`, `docs/rpc-commands.md`, `docs/json.md` and `dist/modes/rpc/rpc-types.d.ts` of
//! `@earendil-works/pi-coding-agent` 0.87.1, and a recording of it (`fixtures/pi-rpc`).
//!
//! The crate does no I/O and reads no clock: lines are passed as text, and times as arguments.

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
