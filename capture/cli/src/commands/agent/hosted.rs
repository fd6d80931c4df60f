//! A session without a terminal of its own, in a process that the server started: it takes what the server tells it,
//! and ends when it is told to, or by a signal.

use std::{sync::Arc, time::Duration};

use engine::{EngineInput, MessageOrigin, UserMessage};
use events::RunId;
use session_setup::{RunError, SessionOpener, SessionOptions, SessionPlace, WORKERS};
use session_tree::Json;
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
    sync::Notify,
};

use super::{run::BY_TERMINATE, warn};

/// Interval between looks at whether it is another day, which the model is told.
const DAYS_EVERY: Duration = Duration::from_secs(60);

/// A session that is hosted.
pub(super) struct HostOptions {
    /// The session.
    pub(super) session: SessionOptions,
    /// The name of its run.
    pub(super) name: Option<String>,
    /// The first prompt.
    pub(super) prompt: Option<String>,
}

/// Hosts a session; gives the exit code. `begun` is called with its run once it takes commands.
///
/// # Errors
/// It cannot begin: an agent started this process, the settings are not enough, the session cannot be opened, or there
/// can be no connection to the server.
pub(super) fn host(options: HostOptions, begun: impl FnOnce(RunId)) -> Result<u8, RunError> {
    let HostOptions { session, name, prompt } = options;
    let end = Arc::new(Notify::new());
    let opener = SessionOpener::new(session, place(name, Arc::clone(&end)))?;
    let file = opener.first_file()?;
    let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut session = opener.open(file, &opener.model, opener.thinking, None).await?;
        let run = session.run.ok_or_else(|| RunError::Other("cannot connect to the server".to_owned()))?;
        if let Some(prompt) = prompt {
            let message = UserMessage {
                id: format!("{:032x}", opener.clock.random()),
                content: Json::from(prompt),
                origin: MessageOrigin::Person,
            };
            let sent = session.handle.input(EngineInput::Prompt(message)).await;
            sent.map_err(|error| RunError::Other(error.to_string()))?;
        }
        begun(run);
        let mut days = tokio::time::interval(DAYS_EVERY);
        let code = loop {
            tokio::select! {
                _ = days.tick() => session.refresh(&opener).await,
                () = end.notified() => break 0,
                _ = terminated.recv() => break BY_TERMINATE,
                // It ends the turn, as at a terminal.
                _ = interrupted.recv() => drop(session.handle.input(EngineInput::Abort).await),
            }
        };
        // Whoever watches sees it in the session's next turn.
        let _ = session.end(code).await;
        Ok(code)
    })
}

/// The server started it.
const fn place(name: Option<String>, end: Arc<Notify>) -> SessionPlace {
    const TAKES: &[&str] =
        &["prompt", "steer", "follow_up", "abort", "pause", "resume", "compact", "set_model", "limit", "end"];
    SessionPlace {
        command: &["capture", "agent", "drive"],
        name,
        takes: TAKES,
        end: Some(end),
        warn,
        at_terminal: false,
        no_person: "the mode accept-edits needs you at a terminal, and here the server starts the session: use \
                    the mode ask",
    }
}
