//! Pure reducers: events in; session status, turns, summary and usage out.
//!
//! The crate does no I/O, reads no clock (`now` is an argument), and does not depend on the format of a provider.
//! Folding the event log results in the live state and the same transitions. [`state::SessionState`] is the reducer of
//! one session, [`session::Session`] is its view, and [`status`] contains the rules that decide between claims.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod approval;
mod attention;
mod claims;
pub mod conversation;
pub mod failure;
pub mod items;
pub mod prompt;
pub mod receipt;
pub mod rules;
pub mod scope;
mod session;
pub mod shorten;
pub mod state;
pub mod status;
pub mod subagents;
pub mod summary;
mod test_loops;
pub mod title;
pub mod turn;
mod turn_work;
pub mod work;

pub use approval::Approval;
pub use attention::{AttentionItem, attention};
pub use failure::FailureKind;
pub use items::{CallResult, ConversationItem, ConversationItems, ItemBody, ItemText, PageOfItems};
pub use prompt::Prompt;
pub use receipt::runs_tests;
pub use rules::StatusRules;
pub use scope::{Ask, Distance, Drift, Left, ScopedFile};
pub use session::{
    Evidence, LabelChange, MarkChange, OpenTurn, Session, SessionHealth, SessionMarks, SessionStatus, Summary,
    TranscriptView, Usage,
};
pub use state::{Conclusion, LABELS, SessionState};
pub use status::{Account, WeighedClaim};
pub use subagents::{StartedSubagent, Subagent};
pub use turn::Turn;
pub use turn_work::TurnWork;
pub use work::{CommandRun, WorkLog};
