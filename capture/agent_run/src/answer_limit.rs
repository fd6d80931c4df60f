//! A limit on how many answers of the model one prompt gets.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use agent::{AnswerSource, AnswerStream, BoxFuture};
use engine::{AnswerEvent, AnswerFailure, AnswerFailureKind, RequestNumber, RequestPlan, cache::RequestDigest};
use session_tree::Tree;

/// How many answers may still come. Clones share the number.
#[derive(Debug, Clone)]
pub(crate) struct AnswersLeft {
    left: Arc<AtomicU32>,
    limit: u32,
}

impl AnswersLeft {
    pub(crate) fn new(limit: u32) -> Self {
        Self { left: Arc::new(AtomicU32::new(limit)), limit }
    }

    /// Whether no more answers may come.
    pub(crate) fn is_used_up(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }

    /// What is told when one more was wanted.
    pub(crate) fn message(&self) -> String {
        format!("the limit of answers ({}) is reached", self.limit)
    }
}

/// Requests of which none is sent once the limit is reached. Repeats of a request that failed do not count.
pub(crate) struct LimitedAnswers<A> {
    pub(crate) inner: A,
    pub(crate) left: AnswersLeft,
}

impl<A: AnswerSource> AnswerSource for LimitedAnswers<A> {
    fn prepare(&mut self, plan: &RequestPlan, tree: &Tree) -> Result<RequestDigest, AnswerFailure> {
        if self.left.is_used_up() {
            return Err(AnswerFailure {
                kind: AnswerFailureKind::BadRequest,
                retry_after_ms: None,
                should_retry: Some(false),
                message: self.left.message(),
            });
        }
        self.inner.prepare(plan, tree)
    }

    fn send(&mut self, request: RequestNumber) -> Option<Box<dyn AnswerStream>> {
        let inner = self.inner.send(request)?;
        Some(Box::new(CountedStream { inner, left: self.left.clone() }))
    }
}

struct CountedStream {
    inner: Box<dyn AnswerStream>,
    left: AnswersLeft,
}

impl AnswerStream for CountedStream {
    fn next(&mut self) -> BoxFuture<'_, Option<AnswerEvent>> {
        Box::pin(async move {
            let event = self.inner.next().await;
            if matches!(event, Some(AnswerEvent::Ended(_))) {
                let one_less = |left: u32| left.checked_sub(1);
                self.left.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).ok();
            }
            event
        })
    }
}
