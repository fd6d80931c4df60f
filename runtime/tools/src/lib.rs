//! What the tools of our own agent do: files, search, shell, processes, fetch.
//!
//! A call goes through three steps. [`Call::parse`] reads its arguments, strictly. [`Tools::intent`] says what it would
//! do: the kind of action, the paths with their links resolved, the address; the caller decides on that, or asks whoever
//! decides; [`Tools::preview`] says what files would become, and changes and records nothing. [`Tools::run`] does it, touches nothing but what the intent names, and returns what the model gets: without
//! secrets, without control sequences, and bounded.
//!
//! What this crate must not do: decide what is allowed, know a model or a conversation, read a clock or the environment,
//! repair arguments, follow a link that was put in the way after the intent was made.
//!
//! Read `edit` next for how text is replaced, [`host`] for how commands are ended to the last process, `workspace` for
//! how files are opened, [`schema`] for the list that models get.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod arguments;
mod call;
mod cancel;
mod commands;
mod edit;
mod environment;
mod fetch;
mod files;
mod glob;
mod grep;
pub mod host;
mod intent;
pub mod limits;
mod os;
mod output;
mod preview;
mod replace;
mod result;
pub mod schema;
mod seen;
mod shell;
mod text;
mod tool;
mod toolbox;
mod workspace;

pub use call::{Call, CallError};
pub use cancel::Cancel;
pub use commands::BackgroundState;
pub use edit::edited;
pub use intent::{Intent, IntentKind};
pub use preview::Preview;
pub use result::{Content, Details, Exit, OutputFile, ToolResult};
pub use schema::SCHEMAS;
pub use seen::SeenFile;
pub use tool::Tool;
pub use toolbox::{PersonAnswer, Settings, Tools, answer};
