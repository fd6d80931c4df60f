//! Opens the sessions of this process: the options shared by all front ends, and the assembly of a session.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use approver::Facts;
use engine::{EngineInput, EngineSetup, ModeGrant, ModelChoice, SessionFacts, SessionMode, SpendLimits, TurnSettings};
use events::RunId;
use executor::{ModelRoutes, SessionClock, SessionHandle, SessionParts, SessionTools, ToolRunner, open, usd_in_words};
use jiff::{Timestamp, tz::TimeZone};
use outbound::SystemLookup;
use session_tree::{Json, Object, Session, Stamp};
use settings::{AgentMode, AgentSettings, ModelName, ThinkingLevel};
use tokio::{
    runtime::Handle,
    time::{sleep, timeout},
};
use tools::{BackgroundState, SCHEMAS, Settings, Tools, host};

use crate::{
    PolicyState, RunError, SANDBOX,
    broker::PermissionAsker,
    clock::SystemClock,
    instructions::{self, InstructionPlaces},
    model::ModelCatalog,
    permission::InProcess,
    place::{PlacedSession, SessionPlace},
    refused_request, rules_in_short, rules_of, sessions,
    status::SessionStatus,
};

/// The system prompt of new sessions. Sessions keep the one they started with.
const SYSTEM: &str = include_str!("system.md");
/// How long the header waits to learn whether a server is running. A server that is starting counts as running.
const SERVER_WITHIN: Duration = Duration::from_millis(300);
/// Interval of checks whether the first attempt to reach a server has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Billionths of a dollar.
const NANO: f64 = 1e9;
/// The grantor of modes and limits set on the command line.
pub const BY_COMMAND: &str = "the person who ran the command";

/// Selects a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    /// A new one.
    New,
    /// The most recently written one of the working directory.
    Last,
    /// The one with this id, part of an id, or file path.
    Named(String),
}

/// The options for opening a session.
pub struct SessionOptions {
    /// The data directory.
    pub data: PathBuf,
    /// The settings.
    pub settings: AgentSettings,
    /// The environment of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// This program, which hosts the agent's commands.
    pub program: PathBuf,
    /// The working directory.
    pub cwd: PathBuf,
    /// The file of the user's policy.
    pub policy_file: PathBuf,
    /// The file of the user's own instructions; it may not exist.
    pub instructions_file: PathBuf,
    /// The file of the user's own model prices; it may not exist.
    pub prices_file: PathBuf,
    /// The facts the policy is evaluated with.
    pub facts: Arc<dyn Facts + Send + Sync>,
    /// The session.
    pub session: SessionChoice,
    /// Overrides the configured model.
    pub model: Option<ModelName>,
    /// Overrides the configured thinking level.
    pub thinking: Option<ThinkingLevel>,
    /// Overrides the configured mode.
    pub mode: Option<AgentMode>,
    /// Overrides the cost limit of the session, in US dollars.
    pub max_cost_usd: Option<f64>,
    /// Maximum number of answers to a prompt.
    pub max_answers: Option<u32>,
    /// How long a permission request waits for an answer.
    pub wait: Duration,
    /// The grantor of the mode and the limits, as text.
    pub by: String,
}

/// Opens the sessions of this process.
pub struct SessionOpener {
    options: SessionOptions,
    cwd: PathBuf,
    cwd_text: String,
    workspace: PathBuf,
    /// The model of the first session.
    pub model: ModelName,
    /// Its thinking level.
    pub thinking: Option<ThinkingLevel>,
    /// The mode in which the sessions start.
    pub mode: AgentMode,
    /// The available models.
    pub models: Arc<ModelCatalog>,
    /// The clock of the sessions.
    pub clock: Arc<dyn SessionClock>,
    pub(crate) session_place: SessionPlace,
}

/// An open session.
pub struct OpenSession {
    /// Its machine.
    pub handle: SessionHandle,
    /// Its id.
    pub id: String,
    /// The model of the next request.
    pub choice: ModelChoice,
    routes: ModelRoutes,
    tools: Arc<Tools>,
    session_tools: Arc<SessionTools>,
    /// The date of its facts.
    date: String,
    /// The run by which the server identifies its process; `None` without a connection.
    pub run: Option<RunId>,
    status: Arc<SessionStatus>,
    /// Whether the user's policy is in force.
    is_policy_in_force: bool,
}

impl SessionOpener {
    /// Checks the requirements shared by all sessions of this process. At a terminal, the user can be asked.
    ///
    /// # Errors
    /// An agent started this process, or the settings are insufficient.
    pub fn new(options: SessionOptions, session_place: SessionPlace) -> Result<Self, RunError> {
        let at_terminal = session_place.at_terminal;
        if let Some(descent) = processes::agent_descent(std::process::id()) {
            let why = format!("running capture's own agent is not allowed from this process: {descent}");
            return Err(RunError::Refused(why));
        }
        let clock: Arc<dyn SessionClock> = Arc::new(SystemClock);
        let settings = &options.settings;
        let model = options.model.clone().or_else(|| settings.model.clone()).ok_or_else(|| {
            let example = example_model(&options.environment);
            RunError::Usage(format!(
                "no model: pass --model, such as `--model {example}`, or set a default with `capture config set \
                 agent.model {example}`"
            ))
        })?;
        let mode = match (options.mode, settings.mode) {
            (Some(AgentMode::AcceptEdits), _) if !at_terminal => {
                return Err(RunError::Refused(session_place.no_person.to_owned()));
            }
            // A mode that is only the default is lowered.
            (None, AgentMode::AcceptEdits) if !at_terminal => AgentMode::Ask,
            (typed, default) => typed.unwrap_or(default),
        };
        let prices = usage::prices(Some(&options.prices_file)).map_err(|error| RunError::Usage(error.to_string()))?;
        let models = ModelCatalog::new(settings.clone(), options.environment.clone(), prices, Arc::clone(&clock));
        let models = Arc::new(models);
        let cwd = options.cwd.canonicalize()?;
        let cwd_text = cwd.to_str().map(str::to_owned).ok_or_else(|| {
            RunError::Usage(format!("the path of the working directory, {}, is not valid UTF-8", cwd.display()))
        })?;
        let workspace = policy_files::workspace_of(&cwd);
        let thinking = options.thinking.or(options.settings.thinking);
        Ok(Self { options, cwd, cwd_text, workspace, model, thinking, mode, models, clock, session_place })
    }

    /// The data directory.
    pub fn data(&self) -> &Path {
        &self.options.data
    }

    /// The working directory.
    pub fn cwd_text(&self) -> &str {
        &self.cwd_text
    }

    /// How long a permission request waits for an answer.
    pub fn wait(&self) -> Duration {
        self.options.wait
    }

    /// The id and time for data written now.
    pub fn stamp(&self) -> Stamp {
        Stamp { now_ms: self.clock.now().wall_ms, random: self.clock.random() }
    }

    /// The file of the chosen session, or a new one.
    pub fn file(&self, choice: &SessionChoice) -> Result<Session, RunError> {
        sessions::open(&self.options.data, &self.cwd_text, choice, self.stamp(), self.session_place.warn)
    }

    /// The file of a new session.
    pub fn new_file(&self, parent: Option<&str>) -> Session {
        sessions::create(&self.options.data, &self.cwd_text, parent, self.stamp())
    }

    /// The file of a session that was open before.
    pub fn file_at(&self, path: &Path) -> Result<Session, RunError> {
        Ok(Session::open(path, &self.cwd_text, self.stamp())?)
    }

    /// The limits as text; `None` without a limit.
    pub fn limits_in_words(&self) -> Option<String> {
        let limits = limits_of(&self.options.settings, self.options.max_cost_usd);
        let of_session = [
            limits.cost_nano_usd.map(|nano| format!("{} US dollars", usd_in_words(nano))),
            limits.tokens.map(|tokens| format!("{tokens} tokens")),
            limits.wall_ms.map(|ms| format!("{} minutes", ms / 60_000)),
            limits.calls.map(|calls| format!("{calls} tool calls")),
        ];
        let of_session: Vec<String> = of_session.into_iter().flatten().collect();
        let of_session = (!of_session.is_empty()).then(|| format!("at most {} a session", of_session.join(" and ")));
        let of_prompt = self
            .options
            .max_answers
            .map(|answers| format!("at most {answers} answer{} a prompt", if answers == 1 { "" } else { "s" }));
        let both: Vec<String> = of_session.into_iter().chain(of_prompt).collect();
        (!both.is_empty()).then(|| both.join(", "))
    }

    /// The limits of a turn.
    pub fn turns(&self) -> TurnSettings {
        let default = TurnSettings::default();
        TurnSettings {
            rounds: self.options.max_answers.unwrap_or(default.rounds),
            retries: self.options.settings.retries,
            compacts: self.options.settings.compact,
        }
    }

    /// The file of the session chosen in the options.
    pub fn first_file(&self) -> Result<Session, RunError> {
        self.file(&self.options.session)
    }

    /// Opens a session with a model, in the mode and with the limits of the options. `asker` is asked about calls that
    /// are not decided in process.
    pub async fn open(
        &self,
        file: Session,
        model: &ModelName,
        thinking: Option<ThinkingLevel>,
        asker: Option<Arc<dyn PermissionAsker>>,
    ) -> Result<OpenSession, RunError> {
        let id = file.tree().header().id().to_owned();
        let routes = ModelRoutes::default();
        let model = self.models.model(model, thinking)?;
        routes.add(model.route);
        let tools = Arc::new(Tools::new(self.tool_settings(&id))?);
        let session_tools = Arc::new(SessionTools::new(Arc::clone(&tools)));
        session_tools.restore(file.tree());
        let (in_process, refused) = self.in_process();
        if let Some(why) = refused {
            (self.session_place.warn)(&format!("your policy is not in force: {why}"));
        }
        let cleaning = Arc::clone(&session_tools);
        let keep = refused_request::keep_in(self.outputs(&id), move |text| cleaning.clean(text));
        let answers = self
            .models
            .answers(routes.clone(), sessions::root_of(file.tree().header(), &id))
            .keeping(keep)
            .spilling_to(crate::spill::file_in(self.outputs(&id)));
        let facts = self.facts(&in_process, &session_tools);
        let is_policy_in_force = in_process.is_in_force();
        let mut placed = self.place(&id);
        let broker = self.broker(&id, &placed, in_process, asker, Arc::clone(&session_tools));
        let limits = limits_of(&self.options.settings, self.options.max_cost_usd);
        let parts = SessionParts {
            setup: EngineSetup {
                session: id.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                system: SYSTEM.to_owned(),
                tools: schemas(),
                model: model.choice.clone(),
                limits,
                turns: self.turns(),
            },
            session: file,
            facts,
            workspace: self.workspace.clone(),
            answers: Box::new(answers),
            tools: Arc::clone(&session_tools) as _,
            broker,
            clock: Arc::clone(&self.clock),
            masks_messages: self.options.settings.mask_prompts,
        };
        let handle = open(parts, &Handle::current()).map_err(|error| RunError::Other(error.to_string()))?;
        self.serve(&mut placed, &handle, &routes);
        let PlacedSession { run, status, .. } = placed;
        let (choice, date) = (model.choice, self.date());
        let session =
            OpenSession { handle, id, choice, routes, tools, session_tools, date, run, status, is_policy_in_force };
        session.grant(&self.options.by, self.mode, self.options.max_cost_usd.is_some().then_some(limits)).await;
        Ok(session)
    }

    /// The directory for outputs of a session that are too long for its file.
    fn outputs(&self, id: &str) -> PathBuf {
        self.options.data.join("agent/outputs").join(id)
    }

    fn tool_settings(&self, id: &str) -> Settings {
        let options = &self.options;
        let keys = options.settings.key_variables();
        let is_key = |name: &OsString| keys.iter().any(|key| name == key.as_str());
        Settings {
            cwd: self.cwd.clone(),
            workspace: self.workspace.clone(),
            outputs: self.outputs(id),
            environment: options.environment.iter().filter(|(name, _)| !is_key(name)).cloned().collect(),
            pass: options.settings.pass.clone(),
            host: vec![options.program.clone().into(), host::VERB.into()],
            allow_hosts: options.settings.allow_hosts.clone(),
            lookup: Arc::new(SystemLookup),
        }
    }

    /// The in-process decisions, and why the policy is not in force.
    fn in_process(&self) -> (InProcess, Option<String>) {
        InProcess::new(&self.options.policy_file, &self.workspace, Arc::clone(&self.options.facts))
    }

    /// The user's local date.
    fn date(&self) -> String {
        let now = Timestamp::from_millisecond(self.clock.now().wall_ms).unwrap_or_default();
        now.to_zoned(TimeZone::system()).date().to_string()
    }

    /// How the mode handles calls, as text for the model. It does not depend on the server, since it is stored in the
    /// session's file.
    fn rules(&self, in_process: &InProcess) -> &'static str {
        rules_of(self.mode, if in_process.is_in_force() { PolicyState::Served } else { PolicyState::NotInForce })
    }

    /// The facts for the session context.
    fn facts(&self, in_process: &InProcess, tools: &SessionTools) -> SessionFacts {
        let places = InstructionPlaces {
            own: &self.options.instructions_file,
            workspace: &self.workspace,
            cwd: &self.cwd,
            names: &self.options.settings.instructions,
        };
        let found = instructions::find(&places, |path| in_process.may_read(&self.cwd, path), |text| tools.clean(text));
        for note in &found.notes {
            (self.session_place.warn)(note);
        }
        SessionFacts {
            date: self.date(),
            cwd: self.cwd_text.clone(),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            sandbox: SANDBOX.to_owned(),
            permission: format!("mode {}: {}", self.mode, self.rules(in_process)),
            instructions: found.files,
        }
    }
}

impl OpenSession {
    /// How a mode handles calls in this session, in a few words for the header. Waits briefly for the first attempt to
    /// reach a server.
    pub async fn rules_in_short(&self, mode: AgentMode) -> &'static str {
        let policy = if !self.is_policy_in_force {
            PolicyState::NotInForce
        } else if self.has_server_within(SERVER_WITHIN).await == Some(false) {
            PolicyState::NoServer
        } else {
            PolicyState::Served
        };
        rules_in_short(mode, policy)
    }

    async fn has_server_within(&self, limit: Duration) -> Option<bool> {
        let tried = async {
            loop {
                match self.status.has_server() {
                    Some(is_there) => return is_there,
                    None => sleep(LOOK_EVERY).await,
                }
            }
        };
        timeout(limit, tried).await.ok()
    }

    /// Applies the mode and the limits requested by the user.
    async fn grant(&self, by: &str, mode: AgentMode, limits: Option<SpendLimits>) {
        let mode = match mode {
            AgentMode::Plan => Some(SessionMode::Plan),
            // Every process starts in this mode.
            AgentMode::Ask => None,
            AgentMode::AcceptEdits => Some(SessionMode::AcceptEdits),
        };
        let grant = ModeGrant { by: by.to_owned(), audit: None };
        if let Some(mode) = mode {
            self.status.mode_granted(mode, by);
        }
        let mode = mode.map(|mode| EngineInput::SetMode { mode, grant });
        let limits = limits.map(|limits| EngineInput::SetLimits { limits, by: by.to_owned() });
        for input in mode.into_iter().chain(limits) {
            // A closed session reports that when it gets the prompt.
            let _ = self.handle.input(input).await;
        }
    }

    /// Updates the facts before a prompt if the date has changed.
    pub async fn refresh(&mut self, opener: &SessionOpener) {
        let date = opener.date();
        if date != self.date {
            let (in_process, _) = opener.in_process();
            let facts = opener.facts(&in_process, &self.session_tools);
            // A closed session reports that when it gets the prompt.
            let _ = self.handle.input(EngineInput::Facts(facts)).await;
            self.date = date;
        }
    }

    /// Changes the model, starting with the next request.
    pub async fn set_model(
        &mut self,
        opener: &SessionOpener,
        name: &ModelName,
        thinking: Option<ThinkingLevel>,
    ) -> Result<(), RunError> {
        let model = opener.models.model(name, thinking)?;
        self.routes.add(model.route);
        let set = self.handle.input(EngineInput::SetModel(model.choice.clone())).await;
        set.map_err(|error| RunError::Other(error.to_string()))?;
        self.choice = model.choice;
        Ok(())
    }

    /// Ends the session with everything it runs; the process continues with another one. Returns the background
    /// commands that were stopped.
    pub async fn close(&self) -> Vec<BackgroundState> {
        self.handle.close().await;
        let stopped = self.stop_background();
        self.status.finish().await;
        self.status.leave();
        stopped
    }

    /// Like [`close`](Self::close), when the process ends with this code.
    pub async fn end(&self, code: u8) -> Vec<BackgroundState> {
        // A connected server learns of the end by the report; otherwise, the next server reads it in the file.
        if self.status.is_connected() {
            self.handle.close().await;
        } else {
            self.handle.end(code).await;
        }
        let stopped = self.stop_background();
        self.status.finish().await;
        self.status.end(code);
        stopped
    }

    fn stop_background(&self) -> Vec<BackgroundState> {
        let running = self.tools.background().into_iter().filter(|one| one.exit.is_none()).collect();
        self.tools.stop_background();
        running
    }
}

/// An example model of the first vendor whose key is in the environment.
fn example_model(environment: &[(OsString, OsString)]) -> &'static str {
    const EXAMPLES: [(&str, &str); 3] = [
        ("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-5"),
        ("OPENAI_API_KEY", "openai/gpt-5"),
        ("GEMINI_API_KEY", "gemini/gemini-3-flash-preview"),
    ];
    let has = |variable: &str| environment.iter().any(|(name, value)| name == variable && !value.is_empty());
    let found = EXAMPLES.iter().find(|(variable, _)| has(variable));
    found.map_or(EXAMPLES[0].1, |(_, model)| model)
}

/// US dollars in billionths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what is out of range is the largest")]
#[must_use]
pub fn nano_usd(usd: f64) -> u64 {
    (usd * NANO) as u64
}

/// The limits of a session; 0 in the settings is unlimited.
fn limits_of(settings: &AgentSettings, max_cost_usd: Option<f64>) -> SpendLimits {
    let budget = &settings.budget;
    let limit = |value: u64| (value > 0).then_some(value);
    let in_settings = (budget.cost_usd > 0.0).then_some(budget.cost_usd);
    SpendLimits {
        tokens: limit(budget.tokens),
        cost_nano_usd: max_cost_usd.or(in_settings).map(nano_usd),
        wall_ms: limit(u64::from(budget.minutes) * 60_000),
        calls: limit(budget.calls),
    }
}

fn schemas() -> Vec<Object> {
    let schemas = Json::parse(SCHEMAS).ok();
    let schemas = schemas.as_ref().and_then(Json::as_array).unwrap_or_default();
    schemas.iter().filter_map(Json::as_object).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_model_is_one_whose_api_key_is_set() {
        let variable = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let both = [variable("ANTHROPIC_API_KEY", ""), variable("GEMINI_API_KEY", "k")];
        assert_eq!(example_model(&both), "gemini/gemini-3-flash-preview");
        assert_eq!(example_model(&[]), "anthropic/claude-sonnet-5");
    }
}
