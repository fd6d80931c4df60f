//! A session without its own terminal, in a process that the server started. It carries out the server's commands and
//! ends on a command or a signal.

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

/// Interval between checks for a new day, which is reported to the model.
const DAYS_EVERY: Duration = Duration::from_secs(60);

/// The options of a hosted session.
pub(super) struct HostOptions {
    /// The session.
    pub(super) session: SessionOptions,
    /// The name of the session's run.
    pub(super) name: Option<String>,
    /// The first prompt.
    pub(super) prompt: Option<String>,
}

/// Hosts a session; returns the exit code. `begun` is called with its run once it accepts commands.
///
/// # Errors
/// If the session cannot begin: an agent started this process, the settings are incomplete, the session cannot be
/// opened, or no connection to the server is possible.
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
                // An interrupt ends the turn, as at a terminal.
                _ = interrupted.recv() => drop(session.handle.input(EngineInput::Abort).await),
            }
        };
        // Viewers see an error here in the session's next turn.
        let _ = session.end(code).await;
        Ok(code)
    })
}

/// The place of a session that the server started.
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
        no_person: "the mode accept-edits needs you at a terminal, but the server started this session: use the mode \
                    ask",
    }
}
