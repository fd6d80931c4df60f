//! The interfaces a session depends on.

use std::{future::Future, pin::Pin};

use engine::{
    AnswerEvent, AnswerFailure, AskedPermission, CallDecision, CallFacts, CallOutput, CallRun, RequestNumber,
    RequestPlan, StepTime, cache::RequestDigest,
};
use session_tree::Tree;

/// A boxed future of another component.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The time and random numbers.
pub trait SessionClock: Send + Sync {
    /// The current time.
    fn now(&self) -> StepTime;
    /// Random bits, for ids.
    fn random(&self) -> u128;
}

/// Decides about calls: by policy, by grants, by asking the user.
pub trait PermissionBroker: Send + Sync {
    /// Decides. Dropping the future withdraws the request. It must complete: without an answer in time, with
    /// [`CallVerdict::Unanswered`](engine::CallVerdict::Unanswered).
    fn decide(&self, asked: AskedPermission) -> BoxFuture<'static, CallDecision>;
}

/// Why a request was not prepared.
#[derive(Debug, Clone, PartialEq)]
pub enum PrepareFailure {
    /// The tree must be [whole](session_tree::Session::whole_tree).
    Released,
    /// It cannot be sent.
    Failed(AnswerFailure),
}

impl From<AnswerFailure> for PrepareFailure {
    fn from(failure: AnswerFailure) -> Self {
        Self::Failed(failure)
    }
}

/// Encodes requests and sends them.
pub trait AnswerSource: Send {
    /// Encodes a request from the current entries ([`engine::wire::outline`]) and keeps it.
    ///
    /// # Errors
    /// It needs texts that were [released](session_tree::Entry::is_released), or it cannot be sent, for instance
    /// because the key is missing.
    fn prepare(&mut self, plan: &RequestPlan, tree: &Tree) -> Result<RequestDigest, PrepareFailure>;

    /// Sends the request that was prepared last, and drops it. `None` if another one was prepared.
    fn send(&mut self, request: RequestNumber) -> Option<Box<dyn AnswerStream>>;
}

/// A streaming answer. Dropping it cancels the request.
pub trait AnswerStream: Send {
    /// The next event; `None` after the answer ended or failed.
    fn next(&mut self) -> BoxFuture<'_, Option<AnswerEvent>>;
}

/// Runs tools.
pub trait ToolRunner: Send + Sync {
    /// The effects a call would have, or the error for the model. Changes nothing.
    ///
    /// # Errors
    /// The arguments are refused; the text names the field.
    fn inspect(&self, run: &CallRun) -> Result<CallFacts, String>;

    /// Runs an inspected call, and blocks until it has ended. `run.arguments` are the approved ones.
    fn run(&self, run: &CallRun) -> CallOutput;

    /// Answers an inspected call that changes nothing in the current state, and blocks until it has ended. A call that
    /// would now change something is not made, and the result says so.
    fn run_without_effect(&self, run: &CallRun) -> CallOutput;

    /// Ends a call with all its processes: [`run`](Self::run) returns soon. Does not block.
    fn cancel(&self, call: engine::CallId);

    /// Cleans a user's answer to a question for the model: removes secrets and control characters.
    fn clean(&self, text: &str) -> String;

    /// A message without secrets, and the number of secrets that were replaced.
    fn mask(&self, text: &str) -> (String, usize);
}
