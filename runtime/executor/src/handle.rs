//! The interface of a session for its clients.

use std::{fmt, sync::Arc};

use engine::{
    EngineActivity, EngineInput, ModelChoice, PauseReason, RuntimeFrame, SessionMode, SpendLimits, TurnOutcome,
    UserMessage,
};
use serde::Serialize;
use session_tree::{Entry, Session};
use tokio::sync::{broadcast, mpsc, oneshot};

/// The session is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session is closed")]
pub struct SessionClosed;

/// An open session. Clones refer to the same session, which ends when the last one is dropped.
#[derive(Debug, Clone)]
pub struct SessionHandle {
    pub(crate) inbox: mpsc::Sender<DriverMessage>,
    pub(crate) updates: broadcast::Sender<SessionUpdate>,
}

/// An update about a session, for subscribers.
#[derive(Debug, Clone)]
pub enum SessionUpdate {
    /// A notification of the machine.
    Frame(Arc<RuntimeFrame>),
    /// An entry was written to the file.
    Entry(Arc<Entry>),
}

/// The state of a session at one time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSnapshot {
    /// The session's id.
    pub session: String,
    /// Its file; it is created with the first user message.
    pub path: std::path::PathBuf,
    /// The current activity.
    pub activity: EngineActivity,
    /// The provider and the id of the model.
    pub model: (String, String),
    /// The mode.
    pub mode: SessionMode,
    /// The amount spent.
    pub spent: SpendLimits,
    /// The spending limits.
    pub limits: SpendLimits,
    /// Number of queued messages.
    pub queued: usize,
    /// Number of entries.
    pub entries: usize,
}

/// The outcome of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnReport {
    /// The turn ended.
    Ended {
        /// The outcome.
        outcome: TurnOutcome,
        /// The error, as text for the user.
        error: Option<String>,
        /// The text of the last answer.
        text: String,
    },
    /// The turn is paused.
    Paused {
        /// The reason.
        why: PauseReason,
        /// When it resumes automatically, in milliseconds since 1970.
        until_wall_ms: Option<i64>,
        /// The text of the last answer.
        text: String,
    },
    /// Another program modified the session's file, which ended the session. Contains the error with the file.
    FileLost(String),
    /// The prompt was not accepted.
    Refused(String),
}

/// A message to the thread of a session.
#[derive(Debug)]
pub(crate) enum DriverMessage {
    Input(EngineInput),
    Prompt(UserMessage, oneshot::Sender<TurnReport>),
    Finish(oneshot::Sender<Option<TurnReport>>),
    Snapshot(oneshot::Sender<SessionSnapshot>),
    Read(SessionReader),
    /// With the exit code of the process if it ends too.
    Close(Option<u8>, oneshot::Sender<()>),
}

/// A query of the entries of a session, run on its thread.
pub(crate) struct SessionReader(pub(crate) Box<dyn FnOnce(&Session) + Send>);

impl fmt::Debug for SessionReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionReader")
    }
}

impl SessionHandle {
    /// Subscribes to future updates. A slow reader loses the oldest ones.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<SessionUpdate> {
        self.updates.subscribe()
    }

    /// Sends an input to the machine.
    ///
    /// # Errors
    /// The session is closed.
    pub async fn input(&self, input: EngineInput) -> Result<(), SessionClosed> {
        self.inbox.send(DriverMessage::Input(input)).await.map_err(|_| SessionClosed)
    }

    /// Sends a prompt and waits until its turn ends or is paused.
    ///
    /// # Errors
    /// The session is closed.
    pub async fn prompt(&self, message: UserMessage) -> Result<TurnReport, SessionClosed> {
        let (done, report) = oneshot::channel();
        self.inbox.send(DriverMessage::Prompt(message, done)).await.map_err(|_| SessionClosed)?;
        report.await.map_err(|_| SessionClosed)
    }

    /// Waits until the turn of a queued message ends or is paused. If there is no such turn, returns `None`, and the
    /// session accepts no more messages.
    ///
    /// # Errors
    /// The session is closed.
    pub async fn finish(&self) -> Result<Option<TurnReport>, SessionClosed> {
        let (done, report) = oneshot::channel();
        self.inbox.send(DriverMessage::Finish(done)).await.map_err(|_| SessionClosed)?;
        report.await.map_err(|_| SessionClosed)
    }

    /// The current state of the session.
    ///
    /// # Errors
    /// The session is closed.
    pub async fn snapshot(&self) -> Result<SessionSnapshot, SessionClosed> {
        let (done, snapshot) = oneshot::channel();
        self.inbox.send(DriverMessage::Snapshot(done)).await.map_err(|_| SessionClosed)?;
        snapshot.await.map_err(|_| SessionClosed)
    }

    /// Runs a query of the session's entries, after all inputs sent before. The session does nothing else in the
    /// meantime.
    ///
    /// # Errors
    /// The session is closed.
    pub async fn read<T: Send + 'static>(
        &self,
        look_up: impl FnOnce(&Session) -> T + Send + 'static,
    ) -> Result<T, SessionClosed> {
        let (done, found) = oneshot::channel();
        let reader = SessionReader(Box::new(move |session| {
            // The caller may be gone.
            let _ = done.send(look_up(session));
        }));
        self.inbox.send(DriverMessage::Read(reader)).await.map_err(|_| SessionClosed)?;
        found.await.map_err(|_| SessionClosed)
    }

    /// Closes the session: aborts the turn, ends the tools, and releases the file.
    pub async fn close(&self) {
        self.close_with(None).await;
    }

    /// Like [`close`](Self::close), when the process ends with this code, which is recorded in the file.
    pub async fn end(&self, code: u8) {
        self.close_with(Some(code)).await;
    }

    async fn close_with(&self, exit: Option<u8>) {
        let (done, closed) = oneshot::channel();
        if self.inbox.send(DriverMessage::Close(exit, done)).await.is_ok() {
            // An error means that it is already gone.
            let _ = closed.await;
        }
    }
}

pub(crate) fn model_names(model: &ModelChoice) -> (String, String) {
    (model.provider.clone(), model.id.clone())
}
