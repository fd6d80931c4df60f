//! How others reach a session.

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

/// A session that is open. Clones are handles of the same session, which ends with the last one.
#[derive(Debug, Clone)]
pub struct SessionHandle {
    pub(crate) inbox: mpsc::Sender<DriverMessage>,
    pub(crate) updates: broadcast::Sender<SessionUpdate>,
}

/// What happens in a session, for whoever watches.
#[derive(Debug, Clone)]
pub enum SessionUpdate {
    /// The machine told something.
    Frame(Arc<RuntimeFrame>),
    /// An entry is in the file.
    Entry(Arc<Entry>),
}

/// A session at a moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSnapshot {
    /// The session's id.
    pub session: String,
    /// Its file; it appears with the first message of a user.
    pub path: std::path::PathBuf,
    /// What it is doing.
    pub activity: EngineActivity,
    /// The provider and the id of the model.
    pub model: (String, String),
    /// The mode.
    pub mode: SessionMode,
    /// What it has spent.
    pub spent: SpendLimits,
    /// What it may spend.
    pub limits: SpendLimits,
    /// How many messages wait.
    pub queued: usize,
    /// How many entries it has.
    pub entries: usize,
}

/// The outcome of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnReport {
    /// The turn ended.
    Ended {
        /// How.
        outcome: TurnOutcome,
        /// What to show a person.
        error: Option<String>,
        /// The text of the last answer.
        text: String,
    },
    /// The turn is paused.
    Paused {
        /// Why.
        why: PauseReason,
        /// When it goes on by itself, in milliseconds since 1970.
        until_wall_ms: Option<i64>,
        /// The text of the last answer.
        text: String,
    },
    /// Another program touched the session's file, which ended the session. What happened, with the file.
    FileLost(String),
    /// The prompt was not accepted.
    Refused(String),
}

/// What is sent to the thread of a session.
#[derive(Debug)]
pub(crate) enum DriverMessage {
    Input(EngineInput),
    Prompt(UserMessage, oneshot::Sender<TurnReport>),
    Finish(oneshot::Sender<Option<TurnReport>>),
    Snapshot(oneshot::Sender<SessionSnapshot>),
    Read(SessionReader),
    Close(oneshot::Sender<()>),
}

/// What somebody looks up in the entries of a session, on its thread.
pub(crate) struct SessionReader(pub(crate) Box<dyn FnOnce(&Session) + Send>);

impl fmt::Debug for SessionReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionReader")
    }
}

impl SessionHandle {
    /// What happens from now on. Who reads too slowly loses the oldest updates.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<SessionUpdate> {
        self.updates.subscribe()
    }

    /// Hands something to the machine.
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

    /// Waits until the turn of a queued message ends or is paused. Without such a turn gives nothing, and the session
    /// accepts no more messages.
    ///
    /// # Errors
    /// The session is closed.
    pub async fn finish(&self) -> Result<Option<TurnReport>, SessionClosed> {
        let (done, report) = oneshot::channel();
        self.inbox.send(DriverMessage::Finish(done)).await.map_err(|_| SessionClosed)?;
        report.await.map_err(|_| SessionClosed)
    }

    /// The session as it is now.
    ///
    /// # Errors
    /// The session is closed.
    pub async fn snapshot(&self) -> Result<SessionSnapshot, SessionClosed> {
        let (done, snapshot) = oneshot::channel();
        self.inbox.send(DriverMessage::Snapshot(done)).await.map_err(|_| SessionClosed)?;
        snapshot.await.map_err(|_| SessionClosed)
    }

    /// Looks something up in the session's entries, after everything that was handed in before. The session does
    /// nothing else meanwhile.
    ///
    /// # Errors
    /// The session is closed.
    pub async fn read<T: Send + 'static>(
        &self,
        look_up: impl FnOnce(&Session) -> T + Send + 'static,
    ) -> Result<T, SessionClosed> {
        let (done, found) = oneshot::channel();
        let reader = SessionReader(Box::new(move |session| {
            // Who asked may be gone.
            let _ = done.send(look_up(session));
        }));
        self.inbox.send(DriverMessage::Read(reader)).await.map_err(|_| SessionClosed)?;
        found.await.map_err(|_| SessionClosed)
    }

    /// Ends the session: the turn is aborted, the tools are ended, and the file is free for others.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.inbox.send(DriverMessage::Close(done)).await.is_ok() {
            // Whether it told us or is gone already is the same.
            let _ = closed.await;
        }
    }
}

pub(crate) fn model_names(model: &ModelChoice) -> (String, String) {
    (model.provider.clone(), model.id.clone())
}
