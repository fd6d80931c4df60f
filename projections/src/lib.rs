//! Pure reducers: events in; session status, turns, summary and usage out.
//!
//! No I/O, no clock (`now` is an argument), no provider's format. Folding the event log gives the
//! live state and the same transitions. Start at [`session`] for what can be asked about a
//! session.

pub mod session;
pub mod turn;

pub use session::{Evidence, Health, OpenTurn, Session, Status, Summary, TranscriptView, Usage};
pub use turn::Turn;
