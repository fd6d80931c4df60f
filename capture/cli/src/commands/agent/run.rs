//! `capture agent run` and `capture agent cache`: our own agent. What they do is `agent_run`'s.

use std::{io::Write, process::ExitCode, time::Duration};

use agent_run::{RunError, RunOptions, SessionChoice};
use agent_settings::{AgentMode, ModelName};

use super::super::{Context, Failed, number::seconds};
use crate::terminal;
use daemon::paths;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Continue this session: its id, at least 3 characters from the start or end of it, or its file.
    #[arg(long, value_name = "SESSION", conflicts_with = "continue_last")]
    session: Option<String>,
    /// Continue the last session of this directory.
    #[arg(long = "continue", short = 'c')]
    continue_last: bool,
    /// The model, such as anthropic/claude-sonnet-5 [default: agent.model in the configuration].
    #[arg(long, value_name = "PROVIDER/MODEL")]
    model: Option<ModelName>,
    /// What is allowed without a question: plan, ask or accept-edits [default: agent.mode in the configuration].
    #[arg(long, value_name = "MODE")]
    mode: Option<AgentMode>,
    /// Stop when the session has cost this many US dollars.
    #[arg(long, value_name = "USD", value_parser = usd)]
    max_cost: Option<f64>,
    /// Stop after this many answers of the model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_turns: Option<u32>,
    /// Leave a permission request undone that you have not answered after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = seconds(1..=3_600))]
    wait: u32,
    /// The prompt.
    #[arg(trailing_var_arg = true, value_name = "PROMPT")]
    prompt: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Cache {
    /// The session: its id, at least 3 characters from the start or end of it, or its file [default: the last one of
    /// this directory].
    session: Option<String>,
}

fn usd(text: &str) -> Result<f64, String> {
    let amount: Option<f64> = text.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount > 0.0);
    amount.ok_or_else(|| format!("expected US dollars, such as 0.50, got `{text}`"))
}

pub(super) fn run(context: Context, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let piped = agent_run::piped_text().map_err(failed)?;
    let typed = arguments.prompt.join(" ");
    let (prompt, piped) = match (typed.trim().is_empty(), piped) {
        (false, piped) => (typed, piped),
        (true, Some(piped)) => (piped, None),
        (true, None) => return Err(Failed::Usage("no prompt: pass one, or pipe one in".to_owned()).into()),
    };
    let session = match (arguments.session, arguments.continue_last) {
        (Some(session), _) => SessionChoice::Named(session),
        (None, true) => SessionChoice::Last,
        (None, false) => SessionChoice::New,
    };
    let options = RunOptions {
        environment: std::env::vars_os().collect(),
        program: std::env::current_exe()?,
        cwd: std::env::current_dir()?,
        policy_file: context.policy_file()?,
        prices_file: paths::prices_file()?,
        facts: Box::new(paths::policy_facts(&context.data)),
        data: context.data,
        settings: context.config.agent,
        session,
        model: arguments.model,
        mode: arguments.mode,
        max_cost_usd: arguments.max_cost,
        max_answers: arguments.max_turns,
        wait: Duration::from_secs(arguments.wait.into()),
        json: context.json,
        context: piped,
        prompt,
    };
    Ok(ExitCode::from(agent_run::run(options).map_err(failed)?))
}

pub(super) fn cache(context: &Context, arguments: &Cache) -> anyhow::Result<ExitCode> {
    let session = arguments.session.clone().map_or(SessionChoice::Last, SessionChoice::Named);
    let table = agent_run::cache_table(&context.data, &std::env::current_dir()?, &session).map_err(failed)?;
    if context.json {
        context.print_json(&table)?;
    } else {
        write!(terminal::stdout(), "{}", table.to_text())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn failed(error: RunError) -> anyhow::Error {
    match error {
        RunError::Usage(text) => Failed::Usage(text).into(),
        RunError::NotFound(text) => Failed::NotFound(text).into(),
        RunError::Refused(text) => Failed::Refused(text).into(),
        RunError::Session(error) => error.into(),
        RunError::Other(text) => Failed::Other(text).into(),
    }
}
