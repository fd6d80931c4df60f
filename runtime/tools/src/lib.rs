//! The tools of the built-in agent: files, search, shell, processes, fetch.
//!
//! A call has three steps. [`Call::parse`] parses its arguments strictly. [`Tools::intent`] returns its effects: the
//! kind of action, the paths with links resolved, the address; the caller decides on these or asks for approval.
//! [`Tools::preview`] returns the changes to files without changing or recording anything. [`Tools::run`] performs the
//! call, touches only what the intent names, and returns the result for the model, without secrets or control sequences
//! and bounded in size.
//!
//! This crate must not decide what is allowed, depend on a model or a conversation, read a clock or the environment,
//! repair arguments, or follow a link that was created after the intent.
//!
//! See `edit` for replacing text, [`host`] for ending commands with all their processes, `workspace` for opening files,
//! and [`schema`] for the list of tools sent to models.

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
pub use text::masked;
pub use tool::Tool;
pub use toolbox::{PersonAnswer, Settings, Tools, answer};
