//! The arguments of our own agent's commands: `capture agent run`, `rpc` and `cache`. `session_setup` implements the
//! commands. This module reads the environment and the working directory of the process.

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use client::failure::Failed;
use events::RunId;
use home::{hosted_session::HostSpec, paths};
use session_setup::{BY_COMMAND, CacheTable, RunError, SessionChoice, SessionOptions};
use settings::{AgentMode, AgentSettings, ModelName, ThinkingLevel};

use super::super::number::{positive, seconds};
use super::{
    hosted::{self, HostOptions},
    piped::piped_text,
    rpc::{self, RpcOptions},
    run::{self, RunOptions},
};

/// The inputs of a command that do not come from its arguments.
#[derive(Debug)]
pub(in crate::commands) struct CommandPlace {
    /// The data directory.
    pub(super) data: PathBuf,
    /// The agent's settings.
    pub(super) settings: AgentSettings,
    /// The path of the user's policy.
    pub(super) policy_file: PathBuf,
    /// Whether to print JSON.
    pub(super) json: bool,
}

/// Arguments of `capture agent run`.
#[derive(Debug, clap::Args)]
pub(super) struct RunArguments {
    #[command(flatten)]
    session: SessionArguments,
    /// The prompt. Options may follow it; text that begins with `-` goes after `--`.
    #[arg(value_name = "PROMPT")]
    prompt: Vec<String>,
}

/// Arguments of `capture agent rpc`.
#[derive(Debug, clap::Args)]
pub(super) struct RpcArguments {
    #[command(flatten)]
    session: SessionArguments,
    /// Name the session.
    #[arg(long, short, value_name = "NAME")]
    name: Option<String>,
}

/// Arguments of `capture agent cache`.
#[derive(Debug, clap::Args)]
pub(super) struct CacheArguments {
    /// The session: its id, at least 3 characters from the start or end of its id, or its file [default: the last
    /// session of this directory].
    session: Option<String>,
}

impl CacheArguments {
    /// Arguments that select this session.
    pub(super) fn of(session: String) -> Self {
        Self { session: Some(session) }
    }

    /// The session named in the arguments, if any.
    pub(super) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

impl RunArguments {
    /// Replaces the session id shown in lists by the agent's own id, which `own_id` looks up.
    pub(super) fn resolve_session(&mut self, place: &CommandPlace, own_id: impl FnOnce(&str) -> Option<String>) {
        self.session.resolve(place, own_id);
    }
}

impl RpcArguments {
    /// Like [`RunArguments::resolve_session`].
    pub(super) fn resolve_session(&mut self, place: &CommandPlace, own_id: impl FnOnce(&str) -> Option<String>) {
        self.session.resolve(place, own_id);
    }
}

#[derive(Debug, clap::Args)]
struct SessionArguments {
    /// Continue this session: its id, at least 3 characters from the start or end of its id, or its file.
    #[arg(long, value_name = "SESSION", conflicts_with = "continue_last")]
    session: Option<String>,
    /// Continue the last session of this directory.
    #[arg(long = "continue", short = 'c')]
    continue_last: bool,
    /// The model, such as anthropic/claude-sonnet-5 [default: agent.model in the configuration].
    #[arg(long, value_name = "PROVIDER/MODEL")]
    model: Option<ModelName>,
    /// How much the model thinks: off, minimal, low, medium, high, xhigh or max [default: agent.thinking in the
    /// configuration, otherwise the vendor's default].
    #[arg(long, value_name = "LEVEL")]
    thinking: Option<ThinkingLevel>,
    /// Which calls need no permission: plan, ask or accept-edits [default: agent.mode in the configuration].
    #[arg(long, value_name = "MODE")]
    mode: Option<AgentMode>,
    /// Stop when the session has cost this many US dollars.
    #[arg(long, value_name = "USD", value_parser = usd)]
    max_cost: Option<f64>,
    /// Stop the turn after this many answers of the model [default: 200].
    #[arg(long, value_name = "N", value_parser = positive)]
    max_turns: Option<u32>,
    /// Skip a call whose permission request has no answer after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = seconds(1..=3600))]
    wait: u32,
}

impl SessionArguments {
    fn resolve(&mut self, place: &CommandPlace, own_id: impl FnOnce(&str) -> Option<String>) {
        if let Some(given) = &self.session
            && !session_setup::is_session_known(&place.data, given)
            && let Some(own) = own_id(given)
        {
            self.session = Some(own);
        }
    }
}

fn usd(text: &str) -> Result<f64, String> {
    let amount: Option<f64> = text.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount > 0.0);
    amount.ok_or_else(|| format!("expected US dollars, such as 0.50, got `{text}`"))
}

/// Runs `capture agent run`. With `quiet`, only questions and problems are printed besides the answer.
pub(super) fn run(place: CommandPlace, quiet: bool, arguments: RunArguments) -> anyhow::Result<ExitCode> {
    let piped = piped_text().map_err(failed)?;
    let typed = arguments.prompt.join(" ");
    let (prompt, piped) = match (typed.trim().is_empty(), piped) {
        (false, piped) => (typed, piped),
        (true, Some(piped)) => (piped, None),
        (true, None) => return Err(Failed::Usage("no prompt: pass one, or pipe one in".to_owned()).into()),
    };
    let json = place.json;
    let options = RunOptions { session: options(place, arguments.session)?, json, quiet, context: piped, prompt };
    Ok(ExitCode::from(run::run(options).map_err(failed)?))
}

/// Runs `capture agent rpc`.
pub(super) fn rpc(place: CommandPlace, arguments: RpcArguments) -> anyhow::Result<ExitCode> {
    let options = RpcOptions { session: options(place, arguments.session)?, name: arguments.name };
    Ok(ExitCode::from(rpc::rpc(options).map_err(failed)?))
}

/// Hosts a session of our own agent that the server started. `begun` is called with its run once it accepts commands.
pub(in crate::commands) fn host(
    place: CommandPlace,
    spec: HostSpec,
    begun: impl FnOnce(RunId),
) -> anyhow::Result<ExitCode> {
    let model = spec.model.as_deref().map(str::parse::<ModelName>).transpose();
    let arguments = SessionArguments {
        session: spec.continues,
        continue_last: false,
        model: model.map_err(|error| Failed::Usage(error.to_string()))?,
        thinking: None,
        mode: Some(if spec.is_plan { AgentMode::Plan } else { AgentMode::Ask }),
        max_cost: None,
        max_turns: None,
        wait: spec.wait_s,
    };
    let session = SessionOptions { by: spec.by, ..options(place, arguments)? };
    let options = HostOptions { session, name: spec.name, prompt: spec.prompt };
    Ok(ExitCode::from(hosted::host(options, begun).map_err(failed)?))
}

/// The table that `capture agent cache` prints.
pub(super) fn cache(place: &CommandPlace, arguments: &CacheArguments) -> anyhow::Result<CacheTable> {
    let session = arguments.session.clone().map_or(SessionChoice::Last, SessionChoice::Named);
    session_setup::cache_table(&place.data, &std::env::current_dir()?, &session).map_err(failed)
}

/// Describes the configured model and the source of its API key, and returns whether they have no known problem.
pub(in crate::commands) fn model_in_words(settings: &AgentSettings) -> (bool, String) {
    let environment: Vec<_> = std::env::vars_os().collect();
    session_setup::model_in_words(settings, &environment)
}

fn options(place: CommandPlace, arguments: SessionArguments) -> anyhow::Result<SessionOptions> {
    let session = match (arguments.session, arguments.continue_last) {
        (Some(session), _) => SessionChoice::Named(session),
        (None, true) => SessionChoice::Last,
        (None, false) => SessionChoice::New,
    };
    Ok(SessionOptions {
        environment: std::env::vars_os().collect(),
        program: std::env::current_exe()?,
        cwd: std::env::current_dir()?,
        instructions_file: place.policy_file.with_file_name("AGENTS.md"),
        policy_file: place.policy_file,
        prices_file: paths::prices_file()?,
        facts: Arc::new(paths::policy_facts(&place.data)),
        data: place.data,
        settings: place.settings,
        session,
        model: arguments.model,
        thinking: arguments.thinking,
        mode: arguments.mode,
        max_cost_usd: arguments.max_cost,
        max_answers: arguments.max_turns,
        wait: Duration::from_secs(arguments.wait.into()),
        by: BY_COMMAND.to_owned(),
    })
}

pub(super) fn failed(error: RunError) -> anyhow::Error {
    match error {
        RunError::Usage(text) => Failed::Usage(text).into(),
        RunError::NotFound(text) => Failed::NotFound(text).into(),
        RunError::Refused(text) => Failed::Refused(text).into(),
        RunError::Session(error) => error.into(),
        RunError::Other(text) => Failed::Other(text).into(),
    }
}
