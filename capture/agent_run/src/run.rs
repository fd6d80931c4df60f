//! One prompt: the parts of a session are put together, and what comes of it is printed.

use std::{
    ffi::OsString,
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use agent::{
    AnswerSource, PrintExit, PrintFormat, SessionClock, SessionHandle, SessionParts, SessionTools, open, print,
};
use agent_settings::{AgentMode, AgentSettings, ModelName};
use approver::Facts;
use engine::{EngineInput, EngineSetup, MessageOrigin, ModeGrant, SessionFacts, SessionMode, SpendLimits, UserMessage};
use jiff::{Timestamp, tz::TimeZone};
use outbound::SystemLookup;
use session_tree::{Json, Object, Stamp};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};
use tools::{SCHEMAS, Settings, Tools, host};

use crate::{
    RunError, SANDBOX,
    answer_limit::{AnswersLeft, LimitedAnswers},
    broker::LocalBroker,
    clock::SystemClock,
    model::SessionModel,
    permission::InProcess,
    person::{Person, is_at_terminal},
    sessions,
};

/// The system prompt of new sessions. Sessions keep the one they began with.
const SYSTEM: &str = include_str!("system.md");
/// Threads of the runtime; the session's own thread does most of the work.
const WORKERS: usize = 2;
/// Exit codes as a shell gives them.
const BY_INTERRUPT: u8 = 130;
const BY_TERMINATE: u8 = 143;
/// Billionths of a dollar.
const NANO: f64 = 1e9;

/// Which session a prompt belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    /// A new one.
    New,
    /// The one of the working directory that was written last.
    Last,
    /// This one: its id, a part of it, or the path of its file.
    Named(String),
}

/// What is run.
pub struct RunOptions {
    /// The data directory.
    pub data: PathBuf,
    /// The settings.
    pub settings: AgentSettings,
    /// The environment of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// This program, which hosts the commands the agent runs.
    pub program: PathBuf,
    /// The working directory.
    pub cwd: PathBuf,
    /// The user's policy.
    pub policy_file: PathBuf,
    /// The user's own prices of models; the file need not be there.
    pub prices_file: PathBuf,
    /// What the policy is held against.
    pub facts: Box<dyn Facts + Send + Sync>,
    /// The session.
    pub session: SessionChoice,
    /// Another model than the configured one.
    pub model: Option<ModelName>,
    /// Another mode than the configured one.
    pub mode: Option<AgentMode>,
    /// Another limit of the session's costs, in US dollars.
    pub max_cost_usd: Option<f64>,
    /// Maximum number of answers of the model to this prompt.
    pub max_answers: Option<u32>,
    /// How long a permission request waits for the person at the terminal.
    pub wait: Duration,
    /// Whether lines of JSON are printed instead of text.
    pub json: bool,
    /// What was piped in.
    pub context: Option<String>,
    /// The prompt.
    pub prompt: String,
}

/// Runs one prompt and prints what comes of it; gives the exit code.
///
/// # Errors
/// It cannot begin: an agent started this process, the settings are not enough, or the session cannot be opened.
pub fn run(options: RunOptions) -> Result<u8, RunError> {
    if let Some(descent) = processes::agent_descent(std::process::id()) {
        return Err(RunError::Refused(format!("running our own agent is not allowed from this process: {descent}")));
    }
    let clock: Arc<dyn SessionClock> = Arc::new(SystemClock);
    let settings = &options.settings;
    let other = |error: std::io::Error| RunError::Other(error.to_string());
    let name = options.model.clone().or_else(|| settings.model.clone()).ok_or_else(|| {
        RunError::Usage("no model: pass --model PROVIDER/MODEL, or set agent.model in the configuration".to_owned())
    })?;
    let asks = is_at_terminal() && !options.json;
    let mode = match (options.mode, settings.mode) {
        (Some(AgentMode::AcceptEdits), _) if !asks => {
            let why = "the mode accept-edits needs you at the terminal: standard input and standard error must be one";
            return Err(RunError::Refused(format!("{why}, without --json")));
        }
        // What is only the default is lowered.
        (None, AgentMode::AcceptEdits) if !asks => AgentMode::Ask,
        (typed, default) => typed.unwrap_or(default),
    };
    let prices = usage::prices(Some(&options.prices_file)).map_err(|error| RunError::Usage(error.to_string()))?;
    let model = SessionModel::new(&name, settings, prices, &options.environment, clock.now())?;
    let cwd = options.cwd.canonicalize().map_err(other)?;
    let cwd_text = cwd.to_str().ok_or_else(|| {
        RunError::Usage(format!("the path of the working directory, {}, is not valid UTF-8", cwd.display()))
    })?;
    let workspace = policy::workspace_of(&cwd);
    let stamp = Stamp { now_ms: clock.now().wall_ms, random: clock.random() };
    let session = sessions::open(&options.data, cwd_text, &options.session, stamp)?;
    let id = session.tree().header().id().to_owned();

    let tools = Arc::new(Tools::new(tool_settings(&options, &id, &cwd, &workspace)).map_err(other)?);
    let session_tools = Arc::new(SessionTools::new(Arc::clone(&tools)));
    session_tools.restore(session.tree());
    let (in_process, refused) = InProcess::new(&options.policy_file, &workspace, options.facts);
    if let Some(why) = refused {
        printing::print_error_line(&format!("capture: your policy is not in force: {}", printing::safe(&why)));
    }
    let person = if asks { Some(Arc::new(Person::at_terminal().map_err(other)?)) } else { None };
    let broker = LocalBroker::new(in_process, person, Arc::clone(&session_tools), options.wait);

    let limits = limits_of(settings, options.max_cost_usd);
    let choice = model.choice.clone();
    let left = options.max_answers.map(AnswersLeft::new);
    let answers = model.answers(id.clone(), Arc::clone(&clock));
    let answers: Box<dyn AnswerSource> = match &left {
        Some(left) => Box::new(LimitedAnswers { inner: answers, left: left.clone() }),
        None => Box::new(answers),
    };
    let parts = SessionParts {
        setup: EngineSetup {
            session: id.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            system: SYSTEM.to_owned(),
            tools: schemas(),
            model: choice,
            limits,
        },
        session,
        facts: facts_of(cwd_text, clock.now().wall_ms),
        workspace,
        answers,
        tools: session_tools,
        broker: Arc::new(broker),
        clock: Arc::clone(&clock),
    };
    let header = format!("capture: session {id}, model {name}, mode {mode}; sandbox {SANDBOX}");
    printing::print_error_line(&printing::safe(&header));

    let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build().map_err(other)?;
    let session = open(parts, runtime.handle()).map_err(|error| RunError::Other(error.to_string()))?;
    let message = UserMessage {
        id: format!("{:032x}", clock.random()),
        content: content_of(options.prompt, options.context),
        origin: MessageOrigin::Person,
    };
    let format = if options.json { PrintFormat::JsonLines } else { PrintFormat::Text };
    let limits = options.max_cost_usd.is_some().then_some(limits);
    let ended = runtime.block_on(async {
        grant(&session, mode, limits).await;
        let ended = print_until_signal(&session, message, format).await;
        session.close().await;
        ended
    });
    tools.stop_background();
    let (exit, message) = ended.map_err(other)?;
    let (exit, message) = match (exit, left.filter(AnswersLeft::is_used_up)) {
        // The request that was not sent failed for this reason.
        (EndedBy::Turn(PrintExit::Failed), Some(left))
            if message.as_deref().is_some_and(|m| m.contains(&left.message())) =>
        {
            (EndedBy::Turn(PrintExit::OutOfBudget), Some(left.message()))
        }
        ended => (ended.0, message),
    };
    if let Some(message) = message {
        printing::print_error_line(&format!("capture: {}", printing::safe(&message)));
    }
    Ok(match exit {
        EndedBy::Turn(exit) => exit.code(),
        EndedBy::Signal(code) => code,
    })
}

/// What ended the printing.
#[derive(Debug, Clone, Copy)]
enum EndedBy {
    Turn(PrintExit),
    Signal(u8),
}

/// Prints until the turn ends. The first signal aborts the turn, the second one does not wait for it.
async fn print_until_signal(
    session: &SessionHandle,
    message: UserMessage,
    format: PrintFormat,
) -> std::io::Result<(EndedBy, Option<String>)> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut out = output();
    let printing = print(session, message, format, &mut *out);
    tokio::pin!(printing);
    let mut by_signal = None;
    loop {
        let code = tokio::select! {
            ended = &mut printing => {
                let (exit, message) = ended?;
                return Ok((by_signal.map_or(EndedBy::Turn(exit), EndedBy::Signal), message));
            }
            _ = interrupted.recv() => BY_INTERRUPT,
            _ = terminated.recv() => BY_TERMINATE,
        };
        if by_signal.replace(code).is_some() {
            return Ok((EndedBy::Signal(code), None));
        }
        // When it is closed, it is not running.
        let _ = session.input(EngineInput::Abort).await;
    }
}

/// Standard output, escaped where it is a terminal.
fn output() -> Box<dyn Write + Send> {
    let stdout = std::io::stdout();
    if stdout.is_terminal() { Box::new(printing::Screen::escaping(stdout)) } else { Box::new(stdout) }
}

/// The mode and the limits that the person who runs this wants.
async fn grant(session: &SessionHandle, mode: AgentMode, limits: Option<SpendLimits>) {
    let by = || "the person who ran the command".to_owned();
    let mode = match mode {
        AgentMode::Plan => Some(SessionMode::Plan),
        // Every process begins in it.
        AgentMode::Ask => None,
        AgentMode::AcceptEdits => Some(SessionMode::AcceptEdits),
    };
    let mode = mode.map(|mode| EngineInput::SetMode { mode, grant: ModeGrant { by: by(), audit: None } });
    let limits = limits.map(|limits| EngineInput::SetLimits { limits, by: by() });
    for input in mode.into_iter().chain(limits) {
        // A closed session says so when it gets the prompt.
        let _ = session.input(input).await;
    }
}

fn tool_settings(options: &RunOptions, id: &str, cwd: &Path, workspace: &Path) -> Settings {
    let keys = options.settings.key_variables();
    let is_key = |name: &OsString| keys.iter().any(|key| name == key.as_str());
    Settings {
        cwd: cwd.to_owned(),
        workspace: workspace.to_owned(),
        outputs: options.data.join("agent/outputs").join(id),
        environment: options.environment.iter().filter(|(name, _)| !is_key(name)).cloned().collect(),
        pass: options.settings.pass.clone(),
        host: vec![options.program.clone().into(), host::VERB.into()],
        allow_hosts: options.settings.allow_hosts.clone(),
        lookup: Arc::new(SystemLookup),
    }
}

/// The limits of a session; 0 in the settings is without a limit.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what is out of range is the largest")]
fn limits_of(settings: &AgentSettings, max_cost_usd: Option<f64>) -> SpendLimits {
    let budget = &settings.budget;
    let limit = |value: u64| (value > 0).then_some(value);
    let in_settings = (budget.cost_usd > 0.0).then_some(budget.cost_usd);
    SpendLimits {
        tokens: limit(budget.tokens),
        cost_nano_usd: max_cost_usd.or(in_settings).map(|usd| (usd * NANO) as u64),
        wall_ms: limit(u64::from(budget.minutes) * 60_000),
        calls: limit(budget.calls),
    }
}

fn schemas() -> Vec<Object> {
    let schemas = Json::parse(SCHEMAS).ok();
    let schemas = schemas.as_ref().and_then(Json::as_array).unwrap_or_default();
    schemas.iter().filter_map(Json::as_object).cloned().collect()
}

fn facts_of(cwd: &str, now_ms: i64) -> SessionFacts {
    let now = Timestamp::from_millisecond(now_ms).unwrap_or_default();
    SessionFacts {
        date: now.to_zoned(TimeZone::system()).date().to_string(),
        cwd: cwd.to_owned(),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        sandbox: SANDBOX.to_owned(),
        instructions: Vec::new(),
        skills: Vec::new(),
    }
}

/// The message: what was piped in is a block of its own before the prompt.
fn content_of(prompt: String, context: Option<String>) -> Json {
    let block = |text: String| Json::from(Object::new().with("type", "text").with("text", text));
    match context {
        None => Json::from(prompt),
        Some(context) => Json::from(vec![block(format!("Standard input of the command:\n{context}")), block(prompt)]),
    }
}
