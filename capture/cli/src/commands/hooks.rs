//! `capture hooks`: installs, removes and shows our entries in the agents' settings.
//!
//! Each change is shown first and made only after confirmation.

mod show;

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
};

use agents::Agent;
use anyhow::Context as _;
use api::{
    health::{SourceHealth, Sources},
    routes::HealthSources,
};
use client::failure::Failed;
use events::Provider;
use home::{clock, paths, roots};
use hooks::{
    AGENTS, Error, HookCommand, HookStatus, InstallState, Plan, ProgramSearch, RequestedChange, Unsupported,
    VersionUnknown, accepted_events, catalogue, facts,
};

use self::show::{AgentHooks, SettingsChange};
use super::{
    context::{Context, is_agreed, refuse_agents},
    number::seconds,
};
use printing::safe;

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: HooksCommand,
}

impl Arguments {
    /// Whether the output is a diff without a question after it.
    pub(super) const fn is_paged(&self) -> bool {
        match &self.verb {
            HooksCommand::Install(Install { change, .. }) | HooksCommand::Uninstall(change) => {
                change.diff && change.dry_run
            }
            HooksCommand::Status(_) => false,
        }
    }
}

#[derive(Debug, clap::Subcommand)]
enum HooksCommand {
    /// Add hook entries to the agents' settings.
    Install(Install),
    /// Remove capture's entries and leave everything else unchanged.
    Uninstall(ChangeArguments),
    /// Show which hooks are installed, and problems with them.
    Status(AgentSelection),
}

#[derive(Debug, clap::Args)]
struct AgentSelection {
    /// Only these agents [default: every agent whose directory exists, such as `~/.claude`].
    // Scripts use the option's former name.
    #[arg(long, alias = "provider", value_delimiter = ',', value_name = "AGENT", value_parser = super::words::one_of(&AGENTS, Provider::as_str))]
    agent: Vec<Provider>,
}

#[derive(Debug, clap::Args)]
struct Install {
    #[command(flatten)]
    change: ChangeArguments,
    /// Let capture answer permission requests with your policy or `capture approve`. The hook waits up to SECONDS for
    /// an answer [default: 600].
    ///
    /// With 0, only the policy answers. While the hook waits, Claude Code also shows its own dialog, and the first
    /// answer counts. Codex and Qwen Code show their dialogs only after the hook has stopped waiting. With Gemini CLI,
    /// the policy can only deny.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "600", value_parser = seconds(0..=3600))]
    approver: Option<u32>,
    /// Install entries for every event, regardless of the agent's version.
    ///
    /// Claude Code before 2.1.101 then ignores your whole settings file, including permission rules.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, clap::Args)]
struct ChangeArguments {
    #[command(flatten)]
    selection: AgentSelection,
    /// Show what would change without changing it.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long, short, conflicts_with = "dry_run")]
    yes: bool,
    /// Show the whole change as a diff. If the output is not a terminal, this is the default.
    #[arg(long)]
    diff: bool,
}

/// The change to make to the settings of all agents.
#[derive(Debug)]
pub(super) enum Purpose {
    /// Add entries that run this command, for the events each agent accepts, or for all events with `force`.
    Install { command: HookCommand, force: bool },
    /// Remove our entries.
    Uninstall,
}

/// What to do with the plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanFate {
    /// Carry them out.
    Ahead,
    /// Only show them (`--dry-run`).
    Shown,
    /// Drop them: the user did not confirm.
    No,
    /// Drop them: there is no terminal to ask for confirmation.
    Unasked,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.verb {
        HooksCommand::Install(install) => {
            refuse_changing(&install.change)?;
            let command = HookCommand { approver: install.approver, ..command(context)? };
            make(context, &install.change, &Purpose::Install { command, force: install.force }, PlansShown::Yes)
        }
        HooksCommand::Uninstall(change) => {
            refuse_changing(change)?;
            make(context, change, &Purpose::Uninstall, PlansShown::Yes)
        }
        HooksCommand::Status(selection) => status(context, selection),
    }
}

/// Refuses an agent that tries to change the agents' settings. A dry run is allowed.
fn refuse_changing(change: &ChangeArguments) -> anyhow::Result<()> {
    if change.dry_run { Ok(()) } else { refuse_agents("changing the agents' hooks") }
}

/// The selected agents, each with its home directory.
fn meant(context: &Context, selection: &AgentSelection) -> anyhow::Result<Vec<(Provider, PathBuf)>> {
    let homes = roots::homes(&context.config, &context.data)?;
    let named = |provider: &Provider| selection.agent.is_empty() || selection.agent.contains(provider);
    let mut all = Vec::new();
    for provider in AGENTS.iter().copied().filter(named) {
        // The first home is the one the agent itself uses; the others are only read.
        let Some(home) = homes.of(provider).first() else { continue };
        let home = std::path::absolute(home)?;
        if !selection.agent.is_empty() || home.is_dir() {
            all.push((provider, home));
        }
    }
    if all.is_empty() {
        let directories = AGENTS.iter().filter_map(|provider| homes.of(*provider).first());
        let directories: Vec<_> = directories.map(|dir| show::shown(dir)).collect();
        let text = format!("no supported agent has run here yet (none of {} exists)", directories.join(", "));
        return Err(Failed::NotFound(text).into());
    }
    Ok(all)
}

/// The command for the agents to run. It names the data directory, because the agents' environment may not identify the
/// right server.
fn command(context: &Context) -> anyhow::Result<HookCommand> {
    let program = std::env::current_exe().context("cannot determine the path of the capture program")?;
    let data = std::path::absolute(&context.data)?;
    Ok(HookCommand { program, data_dir: Some(data), approver: None })
}

/// Whether changes are shown before they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlansShown {
    Yes,
    No,
}

fn make(context: &Context, change: &ChangeArguments, purpose: &Purpose, plans_shown: PlansShown) -> anyhow::Result<()> {
    let mut all: Vec<SettingsChange> = Vec::new();
    let mut plans = Vec::new();
    let search = paths::agent_search();
    for (provider, home) in meant(context, &change.selection)? {
        match plan(context, provider, &home, purpose, &search) {
            Ok(plan) => {
                all.push(SettingsChange::planned(&plan));
                plans.push((all.len() - 1, plan));
            }
            Err(error) => all.push(SettingsChange::refused(provider, &error)),
        }
    }
    plans.retain(|(_, plan)| plan.changes());
    let is_patch = change.diff || !printing::is_seen();
    let shown = if context.json || plans_shown == PlansShown::No { Ok(()) } else { show::plans(&all, is_patch) };
    if !change.yes {
        shown?;
    }
    // Confirmed changes are made even if the reader of the output has gone.
    let go = if plans.is_empty() || change.dry_run {
        PlanFate::Shown
    } else if change.yes {
        PlanFate::Ahead
    } else if context.json || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        PlanFate::Unasked
    } else {
        confirm(plans.len())?
    };
    if go == PlanFate::Ahead {
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
        show::done(&all, purpose);
    }
    outcome(&all, go)
}

/// Removes our entries from the settings of all agents, without asking; shows the changes only if `diff` is set.
pub(super) fn remove_all(context: &Context, diff: bool) -> anyhow::Result<()> {
    let change = ChangeArguments { selection: AgentSelection { agent: Vec::new() }, dry_run: false, yes: true, diff };
    let homes = roots::homes(&context.config, &context.data)?;
    if !AGENTS.iter().any(|provider| homes.of(*provider).first().is_some_and(|home| home.is_dir())) {
        return Ok(());
    }
    make(context, &change, &Purpose::Uninstall, if diff { PlansShown::Yes } else { PlansShown::No })
}

/// Plans the change of one agent's settings.
fn plan(
    context: &Context,
    provider: Provider,
    home: &Path,
    purpose: &Purpose,
    search: &ProgramSearch,
) -> Result<Plan, Error> {
    let (wish, risk) = match purpose {
        Purpose::Uninstall => (RequestedChange::Uninstall, None),
        Purpose::Install { command, force } => {
            let installed = search.installed(provider);
            let absent = matches!(installed, Err(VersionUnknown::NotOnPath { .. })) && !was_used(provider, home);
            let accepted = installed
                .map_err(|why| Unsupported::Unknown { provider, why })
                .and_then(|installed| Ok((accepted_events(provider, &installed.version)?, installed.version)));
            let (events, risk) = match accepted {
                // The agent is not installed, so no settings in use can be weakened; once it is installed, every check
                // compares its version with the entries.
                Err(_) if absent && !force => (catalogue(provider), Some(unchecked(provider))),
                Ok((events, _)) if !force => (events, None),
                Err(why) if !force => return Err(Error::Unsupported(why)),
                Ok((events, version)) => {
                    let unknown: Vec<_> =
                        catalogue(provider).into_iter().filter(|event| !events.contains(event)).collect();
                    let why = format!("{provider} {version} does not support {}", listed(&unknown));
                    (catalogue(provider), (!unknown.is_empty()).then(|| forced(provider, &why)))
                }
                Err(why) => (catalogue(provider), Some(forced(provider, &why.to_string()))),
            };
            (RequestedChange::Install { command: command.clone(), events }, risk)
        }
    };
    let mut plan = Plan::new(provider, home, &context.data, &wish)?;
    plan.notes.extend(risk);
    Ok(plan)
}

/// The warning for an agent that is not installed yet.
fn unchecked(provider: Provider) -> String {
    format!(
        "`{provider}` is not on the PATH and none of its session files names its version, so the version was not checked; \
         run `capture hooks status` after you have installed {provider}"
    )
}

/// Maximum number of entries of a home directory searched for a conversation.
const LOOKED_AT: usize = 2_000;

/// Whether an agent was used with this home directory, which then contains a conversation. Such an agent may be started
/// by a path, an alias or an editor, in an unknown version.
fn was_used(provider: Provider, home: &Path) -> bool {
    let directories = Agent::of(provider).map_or(&[] as &[&str], |agent| agent.transcripts.directories);
    let mut open: Vec<PathBuf> = directories.iter().map(|dir| home.join(dir)).collect();
    let mut looked_at = 0;
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            looked_at += 1;
            let Ok(kind) = entry.file_type() else { return true };
            let conversation = kind.is_file()
                && entry.path().extension().is_some_and(|extension| extension == "jsonl" || extension == "json");
            if conversation || looked_at > LOOKED_AT {
                return true;
            }
            if kind.is_dir() {
                open.push(entry.path());
            }
        }
    }
    false
}

/// The warning about the risk of a forced install.
fn forced(provider: Provider, why: &str) -> String {
    let drops = facts(provider).and_then(|hooks| hooks.versions.reads_the_rest_since.as_ref());
    match drops {
        Some(since) => format!(
            "forced: {why}. Versions before {since} ignore your whole settings file, including permission rules, when \
             it names an event that they do not support, so commands that you denied may run. `capture hooks \
             uninstall` removes the entries"
        ),
        None => format!("forced: {why}. All tested versions skip events that they do not support"),
    }
}

fn listed(events: &[&str]) -> String {
    events.iter().map(|event| format!("`{event}`")).collect::<Vec<_>>().join(", ")
}

/// Asks the user at the terminal for confirmation.
fn confirm(files: usize) -> anyhow::Result<PlanFate> {
    let what = if files == 1 { "this file".into() } else { format!("these {files} files") };
    Ok(if is_agreed(&format!("Change {what}?"))? { PlanFate::Ahead } else { PlanFate::No })
}

fn outcome(all: &[SettingsChange], go: PlanFate) -> anyhow::Result<()> {
    let error = |changed: &SettingsChange| Some(format!("{}: {}", changed.provider, changed.error.as_deref()?));
    let errors: Vec<_> = all.iter().filter_map(error).collect();
    if !errors.is_empty() {
        return Err(Failed::Refused(errors.join("\n")).into());
    }
    match go {
        PlanFate::Ahead | PlanFate::Shown => Ok(()),
        PlanFate::No => Err(Failed::Refused("not confirmed; nothing was changed".into()).into()),
        PlanFate::Unasked => {
            let text = "cannot ask for confirmation without a terminal, so nothing was changed; pass --yes to confirm";
            Err(Failed::Refused(text.into()).into())
        }
    }
}

fn status(context: &Context, selection: &AgentSelection) -> anyhow::Result<()> {
    let command = command(context)?;
    let (heard, search) = (server_health(context), paths::agent_search());
    let all: Vec<AgentHooks> = meant(context, selection)?
        .into_iter()
        .map(|(provider, home)| hook_state(provider, &home, &command, &search).with_health(heard.as_deref()))
        .collect();
    if context.json { context.print_json(&show::states(&all)) } else { show::statuses(&all, clock::now()) }
}

/// Checks for each agent with our entries whether the version on the PATH accepts them. Returns the agent, the result,
/// and a description.
pub(super) fn accepted(context: &Context) -> anyhow::Result<Vec<(Provider, bool, String)>> {
    let (command, search) = (command(context)?, paths::agent_search());
    let homes = roots::homes(&context.config, &context.data)?;
    let mut all = Vec::new();
    for provider in AGENTS.iter().copied() {
        let Some(home) = homes.of(provider).first() else { continue };
        let Ok(status) = HookStatus::read(provider, home, &command, || search.installed(provider)) else { continue };
        if status.state != InstallState::NotInstalled {
            let version = status.version.map_or_else(String::new, |version| format!(" {version}"));
            let words = status.fit.in_words();
            let words = words.unwrap_or_else(|| format!("{provider}{version} supports all installed hook events"));
            all.push((provider, !status.fit.is_harmful(), words));
        }
    }
    Ok(all)
}

/// The agents used here that lack some of our entries, and the agents that have all of them.
pub(super) fn coverage(context: &Context) -> anyhow::Result<(Vec<Provider>, Vec<Provider>)> {
    let (command, search) = (command(context)?, paths::agent_search());
    let homes = roots::homes(&context.config, &context.data)?;
    let (mut missing, mut installed) = (Vec::new(), Vec::new());
    for provider in AGENTS.iter().copied() {
        let Some(home) = homes.of(provider).first().filter(|home| home.is_dir()) else { continue };
        let Ok(status) = HookStatus::read(provider, home, &command, || search.installed(provider)) else { continue };
        let all = if status.state == InstallState::Installed { &mut installed } else { &mut missing };
        all.push(provider);
    }
    Ok((missing, installed))
}

/// The sources that the running server reports; `None` if no server is running. Starts no server.
fn server_health(context: &Context) -> Option<Vec<SourceHealth>> {
    let client = context.running().ok()??;
    let Sources { sources } = client.one::<HealthSources>("").ok()?;
    Some(sources)
}

fn hook_state(provider: Provider, home: &Path, command: &HookCommand, search: &ProgramSearch) -> AgentHooks {
    match HookStatus::read(provider, home, command, || search.installed(provider)) {
        Ok(status) => AgentHooks::from(status),
        Err(error) => AgentHooks::unreadable(provider, home, &error),
    }
}

/// The error as shown to the user.
fn error_text(error: &Error) -> String {
    safe(&error.to_string())
}
