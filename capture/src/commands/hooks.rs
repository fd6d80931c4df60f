//! `capture hooks`: our entries in the agents' settings, put in, taken out, looked at.
//!
//! What a change would be is shown before it is made, and made only when somebody agreed.

mod show;

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
};

use adapters::hooks::{AGENTS, Command, Error, Plan, Status, Wish};
use anyhow::Context as _;
use events::Provider;

use self::show::{Changed, Looked};
use super::{
    Context, Failed,
    doctor::{Source, Sources},
    is_agreed, refuse_agents,
};
use crate::{clock, roots, terminal::safe};

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Put an entry for each event that tells something into the agents' settings.
    Install(Install),
    /// Take our entries out again; all else stays.
    Uninstall(Change),
    /// Say what is installed, and what keeps it from running.
    Status(Which),
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Only these agents; otherwise all that have a home here.
    #[arg(long, value_delimiter = ',', value_name = "AGENT", value_parser = super::one_of(AGENTS, |p: Provider| p.as_str()))]
    provider: Vec<Provider>,
}

#[derive(Debug, clap::Args)]
struct Install {
    #[command(flatten)]
    change: Change,
    /// Have requests for permission decided: by your policy (`capture policy`), and by `capture
    /// approve`, for which they wait so many seconds.
    ///
    /// Claude Code shows its dialog meanwhile; whoever answers first decides. Codex shows none while it
    /// waits; 0 asks only the policy. Gemini CLI can only be told to deny.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "600", value_parser = clap::value_parser!(u32).range(0..=3600))]
    approver: Option<u32>,
}

#[derive(Debug, clap::Args)]
struct Change {
    #[command(flatten)]
    which: Which,
    /// Show what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(long, short, conflicts_with = "dry_run")]
    yes: bool,
}

/// What becomes of the plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Go {
    /// They are carried out.
    Ahead,
    /// They were only to be shown.
    Shown,
    /// Nobody agreed.
    No,
    /// There is nobody to ask.
    Unasked,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.verb {
        Verb::Install(install) => {
            refuse_changing(&install.change)?;
            let command = Command { approver: install.approver, ..command(context)? };
            make(context, &install.change, &Wish::Install(command))
        }
        Verb::Uninstall(change) => {
            refuse_changing(change)?;
            make(context, change, &Wish::Uninstall)
        }
        Verb::Status(which) => status(context, which),
    }
}

/// Refuses a change of the agents' settings to agents; they may look at what it would be.
fn refuse_changing(change: &Change) -> anyhow::Result<()> {
    if change.dry_run { Ok(()) } else { refuse_agents("changing the agents' hooks") }
}

/// The agents that are meant, each with its home.
fn meant(context: &Context, which: &Which) -> anyhow::Result<Vec<(Provider, PathBuf)>> {
    let homes = roots::homes(&context.config, &context.data)?;
    let named = |provider: &Provider| which.provider.is_empty() || which.provider.contains(provider);
    let mut all = Vec::new();
    for provider in AGENTS.iter().copied().filter(named) {
        // The first is the one the agent itself uses; the others are read only.
        let Some(home) = homes.of(provider).first() else { continue };
        let home = std::path::absolute(home)?;
        if !which.provider.is_empty() || home.is_dir() {
            all.push((provider, home));
        }
    }
    if all.is_empty() {
        let names: Vec<_> = AGENTS.iter().map(|provider| provider.as_str()).collect();
        return Err(Failed::NotFound(format!("no agent has a home here ({})", names.join(", "))).into());
    }
    Ok(all)
}

/// What the agents are to run. They run it in an environment of theirs, in which nothing may lead it to
/// another server: the data directory is named.
fn command(context: &Context) -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("cannot find the program itself")?;
    let data = std::path::absolute(&context.data)?;
    Ok(Command { program, data_dir: Some(data), approver: None })
}

fn make(context: &Context, change: &Change, wish: &Wish) -> anyhow::Result<()> {
    let mut all: Vec<Changed> = Vec::new();
    let mut plans = Vec::new();
    for (provider, home) in meant(context, &change.which)? {
        match Plan::new(provider, &home, &context.data, wish) {
            Ok(plan) => {
                all.push(Changed::planned(&plan));
                plans.push((all.len() - 1, plan));
            }
            Err(error) => all.push(Changed::refused(provider, &error)),
        }
    }
    plans.retain(|(_, plan)| plan.changes());
    if !context.json {
        show::plans(&all)?;
    }
    let go = if plans.is_empty() || change.dry_run {
        Go::Shown
    } else if change.yes {
        Go::Ahead
    } else if context.json || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        Go::Unasked
    } else {
        ask(plans.len())?
    };
    if go == Go::Ahead {
        for (at, plan) in plans {
            match plan.apply(clock::now()) {
                Ok(done) => all[at].done(done),
                Err(error) => all[at].failed(&error),
            }
        }
    }
    if context.json {
        context.print_json(&show::changed(&all, change.dry_run))?;
    } else {
        show::done(&all, wish)?;
    }
    outcome(&all, go)
}

/// Asks the person at the terminal.
fn ask(files: usize) -> anyhow::Result<Go> {
    let what = if files == 1 { "this file".into() } else { format!("these {files} files") };
    Ok(if is_agreed(&format!("Change {what}?"))? { Go::Ahead } else { Go::No })
}

fn outcome(all: &[Changed], go: Go) -> anyhow::Result<()> {
    let errors: Vec<_> = all.iter().filter_map(|changed| changed.error.as_deref()).collect();
    if !errors.is_empty() {
        return Err(Failed::Refused(errors.join("\n")).into());
    }
    match go {
        Go::Ahead | Go::Shown => Ok(()),
        Go::No => Err(Failed::Refused("nothing was changed".into()).into()),
        Go::Unasked => {
            let text = "nothing was changed, since nobody is there to be asked; --yes says that you agree";
            Err(Failed::Refused(text.into()).into())
        }
    }
}

fn status(context: &Context, which: &Which) -> anyhow::Result<()> {
    let command = command(context)?;
    let heard = heard(context);
    let all: Vec<Looked> = meant(context, which)?
        .into_iter()
        .map(|(provider, home)| looked(provider, &home, &command).heard(heard.as_deref()))
        .collect();
    if context.json { context.print_json(&show::looked(&all)) } else { show::statuses(&all, clock::now()) }
}

/// What a server that runs has heard of; `None` when none does. It is not started for that.
fn heard(context: &Context) -> Option<Vec<Source>> {
    let client = context.running().ok()??;
    let Sources { sources } = client.get("/api/v1/health/sources").ok()?;
    Some(sources)
}

fn looked(provider: Provider, home: &Path, command: &Command) -> Looked {
    match Status::read(provider, home, command) {
        Ok(status) => Looked::from(status),
        Err(error) => Looked::unreadable(provider, home, &error),
    }
}

/// The error as a person may see it.
fn told(error: &Error) -> String {
    safe(&error.to_string())
}
