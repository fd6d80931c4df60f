//! How a program that runs an agent speaks with the server.
//!
//! [`ServerReporter`] delivers what happens in a conversation and waits for decisions on what the agent asks for.
//! [`DeltaSender`] sends text while it is said. [`SessionLink`] is the connection of a program that runs its session
//! itself: it says what the session does, and takes requests in.
//!
//! Must not decide what is allowed, and must not hold up the agent: what cannot be told is lost or told later.

mod deltas;
mod link;
mod reporter;

pub use deltas::DeltaSender;
pub use hook_command::DecisionOutcome;
pub use link::{SessionDescription, SessionLink, find_socket};
pub use reporter::{ReportError, ServerReporter, decide, wait_for_decision, wait_for_rules};
