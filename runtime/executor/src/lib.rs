//! Our own agent: performs what the machine of `engine` decides.
//!
//! A session has one owner, the thread of [`open`]: it holds the machine and the file, performs effects in their order,
//! and takes in what people ([`SessionHandle`]), models ([`AnswerSource`]), tools ([`ToolRunner`]) and whoever decides
//! about calls ([`PermissionBroker`]) report. What the session does is told to everybody who subscribed
//! ([`SessionUpdate`]); a slow reader loses updates and delays nobody.
//!
//! Must not decide what is allowed, and must not write to the server's store.

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
    PrintDetail, PrintExit, PrintFormat, PrintGate, PrintHold, PrintPass, PrintStreams, print, usd_in_words,
};
pub use session::{OpenError, SessionParts, open};
pub use session_tools::SessionTools;

#[cfg(test)]
mod tests;
