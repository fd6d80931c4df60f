//! The built-in agent: performs the effects decided by the machine of `engine`.
//!
//! A session has one owner, the thread started by [`open`]: it owns the machine and the file, performs effects in
//! order, and receives the inputs of users ([`SessionHandle`]), models ([`AnswerSource`]), tools ([`ToolRunner`]) and
//! the permission broker ([`PermissionBroker`]). Subscribers receive the updates of the session ([`SessionUpdate`]); a
//! slow reader loses updates and delays nothing.
//!
//! This crate must not decide what is allowed, and must not write to the server's store.

mod changed;
mod handle;
mod model_answers;
mod ports;
mod print;
mod session;
mod session_tools;

pub use handle::{SessionClosed, SessionHandle, SessionSnapshot, SessionUpdate, TurnReport};
pub use model_answers::{KeepRequest, ModelAnswers, ModelRoute, ModelRoutes};
pub use ports::{AnswerSource, AnswerStream, BoxFuture, PermissionBroker, PrepareFailure, SessionClock, ToolRunner};
pub use print::{
    PrintDetail, PrintExit, PrintFormat, PrintGate, PrintHold, PrintPass, PrintStreams, print, usd_in_words, way_on,
};
pub use session::{OpenError, SessionParts, open};
pub use session_tools::SessionTools;

#[cfg(test)]
mod tests;
