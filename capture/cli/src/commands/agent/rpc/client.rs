//! The program that drives a session, as the decider of permission requests.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use engine::CallDecision;
use executor::BoxFuture;
use rpc::{Dialog, DialogAnswer};
use session_setup::{AskerDecision, PermissionAsker, PermissionQuestion, allowed, answered, denied, unanswered};
use tokio::sync::{mpsc, oneshot};

/// The name of the decider in the session's file.
const BY: &str = "client";
/// Maximum number of questions waiting to be written.
const WAITING: usize = 64;

/// The program at the other end of standard input and output.
pub(super) struct RpcClient {
    questions: mpsc::Sender<String>,
    waiting: Arc<Waiting>,
    asked: AtomicU64,
}

/// The senders for pending answers, by the id of the question.
#[derive(Default)]
struct Waiting(Mutex<HashMap<String, oneshot::Sender<DialogAnswer>>>);

/// A question that is withdrawn when dropped unanswered.
struct AskedQuestion {
    waiting: Arc<Waiting>,
    id: String,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<DialogAnswer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AskedQuestion {
    fn drop(&mut self) {
        self.waiting.lock().remove(&self.id);
    }
}

impl RpcClient {
    /// Creates the client, and the receiver of the question lines to write to it.
    pub(super) fn new() -> (Self, mpsc::Receiver<String>) {
        let (questions, lines) = mpsc::channel(WAITING);
        (Self { questions, waiting: Arc::default(), asked: AtomicU64::new(0) }, lines)
    }

    /// Handles an answer of the client. An empty answer, or one to an unknown question, is ignored.
    pub(super) fn answered(&self, id: &str, answer: Option<DialogAnswer>) {
        let Some(answer) = answer else { return };
        if let Some(waiting) = self.waiting.lock().remove(id) {
            // The task that asked may be gone.
            let _ = waiting.send(answer);
        }
    }
}

impl PermissionAsker for RpcClient {
    fn ask(&self, question: PermissionQuestion, wait: Duration) -> BoxFuture<'static, Option<AskerDecision>> {
        let id = format!("permission-{}", self.asked.fetch_add(1, Ordering::Relaxed) + 1);
        let (questions, waiting) = (self.questions.clone(), Arc::clone(&self.waiting));
        Box::pin(async move {
            let (answer, received) = oneshot::channel();
            waiting.lock().insert(id.clone(), answer);
            let asked = AskedQuestion { waiting, id };
            let is_question = question.is_question;
            let timeout_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            questions.send(dialog(question).to_line(&asked.id, timeout_ms)).await.ok()?;
            let answer = tokio::time::timeout(wait, received).await.ok()?.ok()?;
            drop(asked);
            Some(AskerDecision::once(decision(is_question, answer)))
        })
    }
}

fn dialog(question: PermissionQuestion) -> Dialog {
    let PermissionQuestion { title, details, change, options, is_question, lasts: _, rule: _ } = question;
    let details = details + &change.map(|change| change.block).unwrap_or_default();
    match (is_question, options.is_empty()) {
        (false, _) => Dialog::Confirm { title, message: details },
        (true, true) => Dialog::Input { title },
        (true, false) => Dialog::Select { title, options },
    }
}

/// Only a yes to the question allows the call.
fn decision(is_question: bool, answer: DialogAnswer) -> CallDecision {
    match (is_question, answer) {
        (true, DialogAnswer::Value(text)) => answered(&text, BY),
        (true, DialogAnswer::Confirmed(_) | DialogAnswer::Cancelled) => unanswered(),
        (false, DialogAnswer::Confirmed(true)) => allowed(BY),
        (false, DialogAnswer::Confirmed(false) | DialogAnswer::Value(_) | DialogAnswer::Cancelled) => denied("", BY),
    }
}
