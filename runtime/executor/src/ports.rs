//! What a session needs of others.

use std::{future::Future, pin::Pin};

use engine::{
    AnswerEvent, AnswerFailure, AskedPermission, CallDecision, CallFacts, CallOutput, CallRun, RequestNumber,
    RequestPlan, StepTime, cache::RequestDigest,
};
use session_tree::Tree;

/// A future that is somebody else's.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The time and random numbers.
pub trait SessionClock: Send + Sync {
    /// Now.
    fn now(&self) -> StepTime;
    /// Random bits, for ids.
    fn random(&self) -> u128;
}

/// Decides about calls: by policy, by grants, by asking a person.
pub trait PermissionBroker: Send + Sync {
    /// Decides. A future that is dropped withdraws the request. It must come to an end: when nobody answers in time,
    /// with [`CallVerdict::Unanswered`](engine::CallVerdict::Unanswered).
    fn decide(&self, asked: AskedPermission) -> BoxFuture<'static, CallDecision>;
}

/// Why a request is not prepared.
#[derive(Debug, Clone, PartialEq)]
pub enum PrepareFailure {
    /// The tree has to be [whole](session_tree::Session::whole_tree).
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
    /// Encodes a request from what the session holds now ([`engine::wire::outline`]) and keeps it.
    ///
    /// # Errors
    /// It needs texts that were [released](session_tree::Entry::is_released), or why it cannot be sent, for instance
    /// because the key is missing.
    fn prepare(&mut self, plan: &RequestPlan, tree: &Tree) -> Result<RequestDigest, PrepareFailure>;

    /// Sends the request that was prepared last, and forgets it. Nothing when it was another one.
    fn send(&mut self, request: RequestNumber) -> Option<Box<dyn AnswerStream>>;
}

/// An answer on its way. One that is dropped is cancelled.
pub trait AnswerStream: Send {
    /// The next event; nothing after the answer ended or failed.
    fn next(&mut self) -> BoxFuture<'_, Option<AnswerEvent>>;
}

/// Runs tools.
pub trait ToolRunner: Send + Sync {
    /// What a call would do, or the error for the model. Changes nothing.
    ///
    /// # Errors
    /// The arguments are refused; the text names the field.
    fn inspect(&self, run: &CallRun) -> Result<CallFacts, String>;

    /// Runs a call that was inspected, and blocks until it has ended. `run.arguments` are those that were allowed.
    fn run(&self, run: &CallRun) -> CallOutput;

    /// Answers a call that was inspected and changes nothing as things are, and blocks until it has ended. A call that
    /// would change something by now is not made, and the result says so.
    fn run_without_effect(&self, run: &CallRun) -> CallOutput;

    /// Ends a call with all its processes: [`run`](Self::run) returns soon. Does not block.
    fn cancel(&self, call: engine::CallId);

    /// A person's answer to a question as the model may see it: without secrets and control characters.
    fn clean(&self, text: &str) -> String;
}
