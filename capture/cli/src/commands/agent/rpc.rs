//! RPC mode: a program drives a session with lines of JSON: commands on standard input, answers and events on standard
//! output. The protocol is that of pi's RPC mode (`rpc`).
//!
//! One task does everything in order: it reads a command, passes it to the session, and answers after the events that
//! led to the answer. A client that does not read delays only itself: once it is more than 4096 updates behind, it gets
//! `events_lost` in their place. Permission requests go to the client, whose answer counts as that of the user who
//! started it. The session ends when standard input ends.

mod client;
mod commands;
mod lines;
mod model;

use std::{
    collections::{HashMap, HashSet},
    io::Write,
    sync::Arc,
};

use engine::{
    EngineInput, QueueOutcome, RuntimeFrame, TurnSettings,
    entries::{OWN_KEY, QueuedRecord, RuntimeEntry},
};
use executor::{SessionClosed, SessionUpdate};
use rpc::{AnswerModel, ClientLine, CommandRefusal, EventStream, RpcRequest, failure, success};
use session_setup::{OpenSession, RunError, SessionOpener, SessionOptions, SessionPlace, WORKERS};
use session_tree::{Entry, Json, Object, Session, SessionError};
use settings::{ModelName, ThinkingLevel};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
    sync::{
        broadcast::{self, error::RecvError, error::TryRecvError},
        mpsc,
    },
};
use tools::BackgroundState;

use self::{client::RpcClient, lines::InputLine};
use super::{
    run::{BY_INTERRUPT, BY_TERMINATE},
    warn,
};

/// Exit code a shell reports when the terminal is closed.
const BY_HANGUP: u8 = 129;

/// The options of RPC mode.
pub(super) struct RpcOptions {
    /// The first session.
    pub(super) session: SessionOptions,
    /// The session's name.
    pub(super) name: Option<String>,
}

/// Lets a program drive sessions until standard input ends; returns the exit code.
///
/// # Errors
/// If the session cannot begin (an agent started this process, the settings are incomplete, or the session cannot be
/// opened), or if standard output cannot be written to.
pub(super) fn rpc(options: RpcOptions) -> Result<u8, RunError> {
    let opener = SessionOpener::new(options.session, place(options.name.clone()))?;
    let file = opener.first_file()?;
    let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    runtime.block_on(async {
        let (client, questions) = RpcClient::new();
        let model = opener.model.clone();
        let mut server = RpcServer::open(opener, Arc::new(client), file, model).await?;
        if let Some(name) = options.name {
            server.input(EngineInput::SetName(name)).await.map_err(closed)?;
        }
        let ended = server.serve(questions).await;
        let stopped = server.session.end(*ended.as_ref().unwrap_or(&1)).await;
        if let (Ok(_), Some(line)) = (&ended, stopped_event(&stopped)) {
            // The program may have exited.
            let _ = write(&line);
        }
        ended
    })
}

/// The place of a session that a program drives.
const fn place(name: Option<String>) -> SessionPlace {
    const TAKES: &[&str] =
        &["prompt", "steer", "follow_up", "abort", "pause", "resume", "compact", "set_model", "limit"];
    SessionPlace {
        command: &["capture", "agent", "rpc"],
        name,
        takes: TAKES,
        end: None,
        warn,
        at_terminal: false,
        no_person: "the mode accept-edits needs you at a terminal, but a program drives this session: use --mode ask, \
                    and let the program answer permission requests",
    }
}

/// The data of the answer to a command, or the reason the command is refused.
type CommandAnswer = Result<Option<String>, String>;

/// A session and the program that drives it.
struct RpcServer {
    opener: SessionOpener,
    client: Arc<RpcClient>,
    session: OpenSession,
    updates: broadcast::Receiver<SessionUpdate>,
    events: EventStream,
    model: ModelName,
    thinking: Option<ThinkingLevel>,
    turns: TurnSettings,
    /// Messages that were sent but neither added to the session nor queued: the command of each, by the message's id.
    sent: HashMap<String, SentMessage>,
    /// Events to write after the answer to a prompt.
    held: Vec<String>,
    /// Messages that the client withdrew.
    withdrawn: HashSet<String>,
    /// The reason the last input was refused.
    refused: Option<String>,
}

struct SentMessage {
    id: Option<Json>,
    command: String,
    /// Whether the message begins a turn, whose events follow the answer.
    begins: bool,
    /// Whether that turn has begun.
    has_begun: bool,
}

impl RpcServer {
    async fn open(
        opener: SessionOpener,
        client: Arc<RpcClient>,
        file: Session,
        model: ModelName,
    ) -> Result<Self, RunError> {
        let thinking = opener.thinking;
        let session = opener.open(file, &model, thinking, Some(Arc::clone(&client) as _)).await?;
        let (turns, updates) = (opener.turns(), session.handle.subscribe());
        let events = EventStream::new(answer_model(&session), turns.retries);
        let (sent, held, withdrawn) = (HashMap::new(), Vec::new(), HashSet::new());
        Ok(Self {
            opener,
            client,
            session,
            updates,
            events,
            model,
            thinking,
            turns,
            sent,
            held,
            withdrawn,
            refused: None,
        })
    }

    /// Closes the current session and switches to another one.
    async fn switch_to(&mut self, file: Session) -> Result<(), String> {
        self.close().await?;
        self.open_next(file).await
    }

    /// Switches to a session made from the current one. If that fails, the current one is opened again.
    async fn switch_from<T>(
        &mut self,
        choose: impl FnOnce(&Session) -> Result<(Session, T), SessionError>,
    ) -> Result<T, String> {
        let path = self.session.handle.read(|file| file.is_saved().then(|| file.path().to_owned())).await;
        let path = path.map_err(|error| error.to_string())?;
        let path = path.ok_or_else(|| "the session has no messages yet".to_owned())?;
        self.close().await?;
        let same = self.opener.file_at(&path).map_err(|error| error.to_string())?;
        match choose(&same) {
            Ok((file, chosen)) => {
                drop(same);
                self.open_next(file).await.map(|()| chosen)
            }
            Err(error) => {
                self.open_next(same).await?;
                Err(error.to_string())
            }
        }
    }

    async fn close(&mut self) -> Result<(), String> {
        let stopped = self.session.close().await;
        self.drain().map_err(|error| error.to_string())?;
        if let Some(line) = stopped_event(&stopped) {
            write(&line).map_err(|error| error.to_string())?;
        }
        let unanswered: Vec<SentMessage> = self.sent.drain().map(|(_, sent)| sent).collect();
        for sent in unanswered {
            let line = failure(sent.id.as_ref(), &sent.command, "the session was closed");
            write(&line).map_err(|error| error.to_string())?;
        }
        self.held.drain(..).try_for_each(|line| write(&line)).map_err(|error| error.to_string())
    }

    async fn open_next(&mut self, file: Session) -> Result<(), String> {
        let asker = Arc::clone(&self.client);
        let session = self.opener.open(file, &self.model, self.thinking, Some(asker as _)).await;
        let session = session.map_err(|error| error.to_string())?;
        self.updates = session.handle.subscribe();
        self.events = EventStream::new(answer_model(&session), self.turns.retries);
        self.session = session;
        self.withdrawn.clear();
        // Settings of the previous session stay in effect.
        self.input(EngineInput::SetTurns(self.turns)).await.map_err(|error| error.to_string())
    }

    async fn serve(&mut self, mut questions: mpsc::Receiver<String>) -> Result<u8, RunError> {
        let mut lines = lines::of_stdin()?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut terminated = signal(SignalKind::terminate())?;
        let mut hung_up = signal(SignalKind::hangup())?;
        loop {
            tokio::select! {
                // Report past events before reading the next command.
                biased;
                _ = interrupted.recv() => return Ok(BY_INTERRUPT),
                _ = terminated.recv() => return Ok(BY_TERMINATE),
                _ = hung_up.recv() => return Ok(BY_HANGUP),
                update = self.updates.recv() => match update {
                    Ok(update) => self.update(&update)?,
                    Err(RecvError::Lagged(count)) => self.lost(count)?,
                    Err(RecvError::Closed) => return Err(closed(SessionClosed)),
                },
                Some(question) = questions.recv() => write(&question)?,
                line = lines.recv() => match line {
                    Some(line) => self.line(line).await?,
                    None => return Ok(0),
                },
            }
        }
    }

    async fn line(&mut self, line: InputLine) -> Result<(), RunError> {
        let line = match line {
            InputLine::Whole(line) => line,
            InputLine::TooLong => {
                let error = format!("the line is longer than {} MiB", lines::LINE_BYTES >> 20);
                return write(&failure(None, "parse", &error));
            }
        };
        if line.trim().is_empty() {
            return Ok(());
        }
        match ClientLine::parse(&line) {
            Ok(ClientLine::Command(RpcRequest { id, name, command })) => {
                match self.command(&id, &name, command).await {
                    Some(Ok(data)) => write(&success(id.as_ref(), &name, data.as_deref())),
                    Some(Err(error)) => write(&failure(id.as_ref(), &name, &error)),
                    // The answer is written when the session has accepted the command.
                    None => Ok(()),
                }
            }
            Ok(ClientLine::Answer { id, answer }) => {
                self.client.answered(&id, answer);
                Ok(())
            }
            Err(CommandRefusal { id, name, error }) => write(&failure(id.as_ref(), &name, &error)),
        }
    }

    /// Passes an input to the session and immediately reports all resulting events.
    async fn input(&mut self, input: EngineInput) -> Result<(), SessionClosed> {
        self.session.handle.input(input).await
    }

    /// Reports everything the session has done so far.
    async fn settle(&mut self) -> Result<(), String> {
        self.session.handle.read(|_| ()).await.map_err(|error| error.to_string())?;
        self.drain().map_err(|error| error.to_string())
    }

    /// Passes an input to the session and waits until the session has accepted it.
    async fn ask(&mut self, input: EngineInput) -> Result<(), String> {
        self.settle().await?;
        self.refused = None;
        self.input(input).await.map_err(|error| error.to_string())?;
        self.settle().await?;
        self.refused.take().map_or(Ok(()), Err)
    }

    fn drain(&mut self) -> Result<(), RunError> {
        loop {
            match self.updates.try_recv() {
                Ok(update) => self.update(&update)?,
                Err(TryRecvError::Lagged(count)) => self.lost(count)?,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(()),
            }
        }
    }

    /// Answers prompts whose turn has ended without writing their message to the file.
    fn ended_unwritten(&mut self, error: Option<&str>) -> Result<(), RunError> {
        let over = self.sent.extract_if(|_, sent| sent.has_begun).map(|(_, sent)| sent);
        for sent in over.collect::<Vec<_>>() {
            write(&failure(sent.id.as_ref(), &sent.command, error.unwrap_or("the turn has ended")))?;
        }
        Ok(())
    }

    fn lost(&mut self, count: u64) -> Result<(), RunError> {
        write(&format!(r#"{{"type":"events_lost","count":{count}}}"#))
    }

    fn update(&mut self, update: &SessionUpdate) -> Result<(), RunError> {
        let lines = match update {
            SessionUpdate::Entry(entry) => {
                if let Some(QueuedRecord::Withdrawn { id }) = QueuedRecord::of(entry) {
                    self.withdrawn.insert(id);
                }
                if let Some(sent) = message_id(entry).and_then(|id| self.sent.remove(id)) {
                    write(&success(sent.id.as_ref(), &sent.command, Some(&disposition(&sent.command, false))))?;
                }
                self.events.entry(entry)
            }
            SessionUpdate::Frame(frame) => {
                match &**frame {
                    RuntimeFrame::Message { id, outcome: QueueOutcome::Refused { reason } } => {
                        if let Some(sent) = self.sent.remove(id) {
                            write(&failure(sent.id.as_ref(), &sent.command, reason))?;
                        }
                    }
                    RuntimeFrame::Message { id, outcome: QueueOutcome::Queued } => {
                        if let Some(sent) = self.sent.remove(id) {
                            write(&success(sent.id.as_ref(), &sent.command, Some(&disposition(&sent.command, true))))?;
                        }
                    }
                    RuntimeFrame::Refused { reason, .. } => self.refused = Some(reason.clone()),
                    RuntimeFrame::TurnStarted => {
                        self.sent.values_mut().for_each(|sent| sent.has_begun = sent.begins);
                    }
                    RuntimeFrame::TurnEnded { error, .. } => self.ended_unwritten(error.as_deref())?,
                    RuntimeFrame::Message {
                        outcome: QueueOutcome::Landed { .. } | QueueOutcome::Withdrawn, ..
                    }
                    | RuntimeFrame::Activity(_)
                    | RuntimeFrame::Text(_)
                    | RuntimeFrame::Thinking(_)
                    | RuntimeFrame::CallOpened { .. }
                    | RuntimeFrame::Block(_)
                    | RuntimeFrame::CallDecided { .. }
                    | RuntimeFrame::CallStarted { .. }
                    | RuntimeFrame::CallEnded { .. }
                    | RuntimeFrame::RequestEnded { .. }
                    | RuntimeFrame::ContextFills { .. }
                    | RuntimeFrame::SecretsMasked { .. }
                    | RuntimeFrame::CompactionStarted { .. }
                    | RuntimeFrame::Compacted { .. }
                    | RuntimeFrame::CompactionFailed { .. }
                    | RuntimeFrame::FileLost { .. }
                    | RuntimeFrame::DiskTrouble { .. } => {}
                }
                self.events.frame(frame, self.opener.clock.now())
            }
        };
        self.held.extend(lines);
        if self.sent.values().any(|sent| sent.begins) {
            return Ok(());
        }
        self.held.drain(..).try_for_each(|line| write(&line))
    }
}

/// The word pi's clients expect in the answer to an accepted message: `started` for a prompt that began a turn,
/// `queued` for everything else. A steering message that began a turn is also `queued`, because pi's clients accept no
/// other word there.
fn disposition(command: &str, is_queued: bool) -> String {
    let word = if command == "prompt" && !is_queued { "started" } else { "queued" };
    Object::new().with("disposition", word).to_text()
}

/// The event for background commands that ended with a session; `None` if there were none.
fn stopped_event(stopped: &[BackgroundState]) -> Option<String> {
    let one = |one: &BackgroundState| Object::new().with("id", one.id.as_str()).with("command", one.command.as_str());
    let all: Vec<Json> = stopped.iter().map(one).map(Json::from).collect();
    let event = Object::new().with("type", "background_stopped").with("processes", all);
    (!stopped.is_empty()).then(|| event.to_text())
}

/// The id of a user message that was added to the session.
fn message_id(entry: &Entry) -> Option<&str> {
    let message = entry.message().filter(|message| message.text("role") == Some("user"))?;
    message.get(OWN_KEY)?.as_object()?.text("id")
}

fn answer_model(session: &OpenSession) -> AnswerModel {
    let choice = &session.choice;
    AnswerModel { api: choice.api.clone(), provider: choice.provider.clone(), id: choice.id.clone() }
}

/// Writes a line to standard output.
fn write(line: &str) -> Result<(), RunError> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    written.map_err(|error| RunError::Other(format!("cannot write to standard output: {error}")))
}

fn closed(error: SessionClosed) -> RunError {
    RunError::Other(error.to_string())
}
