//! The command line: its arguments, and the command each one runs.

use std::{io::Write, path::PathBuf, process::ExitCode};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use client::{
    ClientError, Connection,
    failure::{Failed, REFUSED, code_of, with_causes},
};
use home::{config::Config, environment, paths};
use printing::style;

use super::{
    agent, approvals, attach, audit, check, complete, config,
    context::{Context, complain},
    dataset, doctor, drift, drive, events, explain, export, findings, fix_tty, hooks, host, jump, label, log, man, mcp,
    next, note, notify, output, overview, policy, ps, queue, redact, report, resume, retention, run, runs, screen,
    search, send, serve, service, shell, show, statusline, stop, telemetry, uninstall, usage, wait, web,
};

/// Watch coding agents: what each session is doing, and which one needs you.
#[derive(Debug, Parser)]
#[command(name = "capture", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Data directory [default: $CAPTURE_DATA_DIR, $XDG_DATA_HOME/capture or ~/.local/share/capture].
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
    /// Print ids only.
    #[arg(long, short, global = true, conflicts_with = "json", hide = true)]
    quiet: bool,
    /// Connect to the server over TCP instead of its Unix socket.
    #[arg(long, global = true)]
    tcp: bool,
    /// Do not show long output in a pager.
    #[arg(long, global = true)]
    no_pager: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List sessions and what each is doing.
    #[command(
        visible_alias = "status",
        after_help = "Examples:
  capture ps
  capture ps --watch
  capture ps --all --agent codex --json"
    )]
    Ps(ps::Arguments),
    /// Show one session: what it is doing, its turns, its files.
    #[command(after_help = "Example:
  capture show 7K3M9QXT")]
    Show(show::Arguments),
    /// Explain why a session has its status, now or at a past time.
    #[command(after_help = "Examples:
  capture explain 7K3M9QXT
  capture explain 7K3M9QXT --at 5m")]
    Explain(explain::Arguments),
    /// Compare what an agent said with what its commands showed.
    ///
    /// Agents end a turn with "all tests pass, committed and pushed". For the last finished turn of a session, this
    /// shows which checks ran last, how they ended, and what the agent said about them. A statement is supported, stale
    /// (files were edited after the check), contradicted (the last run failed), unsupported (no such check ran) or
    /// undecided. Exits with 1 if a statement is stale, contradicted or unsupported.
    #[command(after_help = "Examples:
  capture check
  capture check 7K3M9QXT --all
  capture check --stale-ok")]
    Check(check::Arguments),
    /// Show how far a session's edits are from what you named in your prompts.
    ///
    /// Lists each prompt with the files that were changed for it. A file is named (you named it or its directory), near
    /// (in the directory of a named file, its test, a manifest), read first (in the same turn) or elsewhere. If several
    /// edits in a row are far from everything you named, the first one is where the session left its subject.
    #[command(after_help = "Examples:
  capture drift
  capture drift 7K3M9QXT --json")]
    Drift(drift::Arguments),
    /// Explain what is wrong with a session, and what to do about it.
    #[command(after_help = "Examples:
  capture why
  capture why 7K3M9QXT")]
    Why(check::Why),
    /// Wait until a session reaches a state.
    #[command(after_help = "Example:
  capture wait 7K3M9QXT --until waiting,waiting_approval --timeout 600")]
    Wait(wait::Arguments),
    /// Print a session's events.
    #[command(after_help = "Examples:
  capture events 7K3M9QXT --follow
  capture events 7K3M9QXT --kind tool.call,tool.result --json")]
    Events(events::Arguments),
    /// Search prompts, answers, commands, outputs and errors of all sessions.
    ///
    /// A text must contain all words of the query. Put phrases in double quotes, and the whole query in single quotes
    /// for the shell. The fields are session, agent, kind, tool, time, cwd, project, model, outcome, file and text.
    #[command(after_help = "Examples:
  capture search connection refused --since 7d
  capture search '\"connection refused\" -kind:output' --agent claude
  capture search 'parseQuery* outcome:error file:src/lib.rs'
  capture search 'tokenzier~1 time:2026-11-01..2026-11-05' --sort time
  capture search --status")]
    Search(search::Arguments),
    /// List the sessions that need you, most urgent first.
    ///
    /// Permission requests and questions come first, then failures, stuck sessions and finished turns. Within each
    /// kind, risky requests come first, then the sessions that have waited longest.
    #[command(after_help = "Examples:
  capture next
  capture next 1 --json")]
    Next(next::Arguments),
    /// Show what happened in all sessions, in chronological order.
    ///
    /// The log contains prompts, ends of turns, permission requests and their answers, questions, errors, failed tools,
    /// findings, and starts and ends of sessions. `capture events` shows all events of one session.
    #[command(after_help = "Examples:
  capture log --since 2h
  capture log --failures --agent claude,codex
  capture log --kind approval.requested,approval.resolved --follow")]
    Log(log::Arguments),
    /// Add labels to a session or remove them.
    ///
    /// Policy rules and automatic actions (`[[actions]]` in the configuration) can require a label.
    #[command(after_help = "Examples:
  capture label 7K3M9QXT team=web
  capture label 7K3M9QXT team-")]
    Label(label::Arguments),
    /// Write a note on a session, or list its notes.
    ///
    /// Notes are stored as events of the session: searches find them, and they cannot be deleted.
    #[command(after_help = "Examples:
  capture note 7K3M9QXT \"waits for the review of #214\"
  capture note 7K3M9QXT")]
    Note(note::Arguments),
    /// Bring the terminal of a session to the front (in tmux, kitty or WezTerm).
    #[command(after_help = "Example:
  capture jump 7K3M9QXT")]
    Jump(jump::Arguments),
    /// Print how many sessions need you, for a shell prompt, tmux or the window title.
    #[command(after_help = "Examples:
  capture statusline
  capture statusline --for tmux")]
    Statusline(statusline::Arguments),
    /// Summarize recent work by project.
    #[command(after_help = "Example:
  capture standup --since 24h --cwd ~/src")]
    Standup(report::Standup),
    /// Sum up tokens and costs, or show how well sessions went.
    #[command(after_help = "Examples:
  capture usage
  capture usage --by project --since 7d
  capture usage --quality")]
    Usage(usage::Arguments),
    /// Write a handoff note: what a session did and how to continue it.
    #[command(after_help = "Example:
  capture handoff 7K3M9QXT > NOTE.md")]
    Handoff(report::HandoffOf),
    /// Resume a session with its agent, in its directory, under `capture run`.
    #[command(after_help = "Examples:
  capture resume 7K3M9QXT
  capture resume 7K3M9QXT --print
  capture resume --last")]
    Resume(resume::Arguments),

    /// Remove all data of sessions and their sub-agents. capture never reads these sessions again.
    #[command(after_help = "Examples:
  capture forget 7K3M9QXT --dry-run
  capture forget 7K3M9QXT --yes")]
    Forget(retention::ForgetArguments),
    /// Remove old sessions to save space, but never running ones. capture does not read removed sessions again.
    #[command(after_help = "Examples:
  capture prune --older-than 90d --dry-run
  capture prune --larger-than 5GB --project ~/src/old --yes")]
    Prune(retention::PruneArguments),
    /// Copy the database to a file, even while the server is running.
    #[command(after_help = "Example:
  capture backup ~/capture-backup.db")]
    Backup(retention::BackupArguments),
    /// Replace the database with a backup. The server must be stopped.
    #[command(after_help = "Example:
  capture restore ~/capture-backup.db")]
    Restore(retention::RestoreArguments),

    /// Run a program, such as an agent, in a terminal that capture observes.
    #[command(after_help = "Examples:
  capture run -- claude
  capture run --name fix-login --detach -- codex")]
    Run(Box<run::Arguments>),
    /// List runs: the programs started with `capture run`.
    #[command(after_help = "Examples:
  capture runs
  capture runs --all --json")]
    Runs(runs::Arguments),
    /// Attach this terminal to a run; Ctrl-] detaches it.
    #[command(after_help = "Example:
  capture attach fix-login")]
    Attach(attach::Arguments),
    /// Show the screen of a run.
    #[command(after_help = "Example:
  capture screen fix-login")]
    Screen(screen::Arguments),
    /// Type into a run: text, keys or an interrupt.
    #[command(after_help = "Examples:
  capture send fix-login \"run the tests again\"
  capture send fix-login --keys esc")]
    Send(send::Arguments),
    /// Stop a run: ask its program to end, and kill it after 5 seconds.
    ///
    /// The program receives SIGHUP, as if its terminal had closed. If the program is still running after 5 seconds, it
    /// is killed.
    #[command(after_help = "Examples:
  capture stop fix-login
  capture stop fix-login --now")]
    Stop(stop::Arguments),
    /// Stop a run and start it again in the background, in its directory and under its name.
    ///
    /// If the agent can resume the session, capture resumes it without the options of the first start. Otherwise
    /// capture runs the same command line again.
    #[command(after_help = "Examples:
  capture restart fix-login
  capture restart fix-login --fresh")]
    Restart(stop::Restart),
    /// Give a run another name.
    #[command(after_help = "Example:
  capture rename fix-login login")]
    Rename(stop::Rename),
    /// Queue a prompt. capture types it when the agent is ready.
    #[command(after_help = "Examples:
  capture queue fix-login \"then update the changelog\"
  capture queue fix-login
  capture queue --cancel 9QXT7K3M")]
    Queue(queue::Arguments),
    /// Export the recording of a run's terminal, or a session's conversation.
    #[command(after_help = "Examples:
  capture export fix-login --output session.cast
  capture export 7K3M9QXT --output session.md
  capture export 7K3M9QXT --format otlp")]
    Export(export::Arguments),
    /// Export prompts, tool calls and outputs of many sessions for evaluation and training, with secrets removed.
    #[command(after_help = "Examples:
  capture dataset --since 7d --out dataset
  capture dataset --agent claude --out - > turns.jsonl")]
    Dataset(dataset::Arguments),
    /// Restore a terminal that a program left in a bad state.
    ///
    /// Sets line editing, echo and signals as `stty sane` does, and turns off the alternate screen, mouse
    /// reports, bracketed paste and keyboard protocols. If the terminal does not show what you type, type
    /// the command anyway and press Ctrl-J.
    FixTty,

    /// List permission requests.
    #[command(after_help = "Examples:
  capture approvals --watch
  capture approvals 3M9QXT7K")]
    Approvals(approvals::Arguments),
    /// Allow a permission request.
    #[command(after_help = "Examples:
  capture approve 3M9QXT7K
  capture approve 3M9QXT7K --scope rule")]
    Approve(approvals::Approve),
    /// Deny a permission request.
    #[command(after_help = "Example:
  capture deny 3M9QXT7K --message \"use the staging database\"")]
    Deny(approvals::Deny),
    /// Edit, check and try the rules that decide permission requests.
    #[command(after_help = "Examples:
  capture policy show
  capture policy preset read-only
  capture policy explain \"git push --force\"")]
    Policy(policy::Arguments),
    /// Verify, show or export the audit record: every permission request, and who or what decided it.
    #[command(after_help = "Examples:
  capture audit verify
  capture audit show 3M9QXT7K")]
    Audit(audit::Arguments),

    /// List findings: sessions that are stuck, looping, failing or waiting.
    #[command(after_help = "Examples:
  capture findings --watch
  capture findings fd2fba31d46fd80d6 --ack")]
    Findings(findings::Arguments),
    /// List and test notification channels.
    #[command(
        long_about = notify::EXPLAINED,
        after_help = "Examples:
  capture notify channels
  capture notify test team"
    )]
    Notify(notify::Arguments),

    /// Install, remove or check agent hooks.
    #[command(after_help = "Examples:
  capture hooks install --dry-run
  capture hooks status")]
    Hooks(hooks::Arguments),
    /// Print the settings that make an agent send its telemetry to capture.
    #[command(after_help = "Example:
  capture telemetry env claude")]
    Telemetry(telemetry::Arguments),
    /// Run capture's own agent, or another agent without its user interface; inspect and edit session files.
    #[command(after_help = "Examples:
  capture agent run --model anthropic/claude-sonnet-5 \"fix the failing test\"
  capture agent drive --agent codex \"fix the failing test\"
  capture agent session tree session.jsonl")]
    Agent(agent::Arguments),
    /// Serve MCP on standard input and output: tools that let an agent follow other sessions.
    ///
    /// The tools read sessions, conversations, searches, permission requests and findings. Tools that change something
    /// must be allowed by name with `--allow`, and processes that an agent started cannot use them. Add the server to
    /// an agent once, and the agent starts it when needed: `claude mcp add --scope user capture -- capture mcp`, `codex
    /// mcp add capture -- capture mcp`, `gemini mcp add --scope user capture capture mcp`.
    #[command(after_help = "Examples:
  capture mcp
  capture mcp --allow label")]
    Mcp(mcp::Arguments),
    /// Remove secrets from text.
    #[command(after_help = "Example:
  capture redact < build.log")]
    Redact(redact::Arguments),

    /// Run the server, which observes all sessions and serves the HTTP API.
    #[command(after_help = "Examples:
  capture serve
  capture serve --stop")]
    Serve(serve::Arguments),
    /// Open the web page in the browser, pair other devices, and list or revoke them.
    #[command(after_help = "Examples:
  capture web
  capture web pair --qr --url https://box.tailnet.ts.net
  capture web devices")]
    Web(web::Arguments),
    /// Check the configuration, the agents, the hooks, the server and the policy.
    #[command(after_help = "Examples:
  capture doctor
  capture doctor --deep")]
    Doctor(doctor::Arguments),
    /// Show and change the configuration.
    #[command(after_help = "Examples:
  capture config show
  capture config set status.idle_after_s 60")]
    Config(config::Arguments),
    /// Print completions for a shell and where to put them.
    #[command(
        visible_alias = "completions",
        after_help = "Example:
  capture init bash"
    )]
    Init(shell::Arguments),
    /// Have systemd start the server when you log in.
    #[command(after_help = "Examples:
  capture service install
  capture service status")]
    Service(service::Arguments),
    /// Remove the hooks and the service, and stop the server.
    #[command(after_help = "Example:
  capture uninstall")]
    Uninstall(uninstall::Arguments),
    /// Show which parts are set up and which are not: hooks, notifications, completions.
    #[command(after_help = "Examples:
  capture setup
  capture setup --dismiss")]
    Setup(overview::SetupArguments),

    /// Print manual pages.
    #[command(hide = true)]
    Man(man::Arguments),
    #[command(hide = true, name = agents::HOST)]
    RunHost,
    #[command(hide = true, name = agents::RUN_CHILD)]
    RunChild(host::Child),
    #[command(hide = true, name = agents::DRIVE_CHILD)]
    DriveChild(drive::Child),
}

impl Command {
    /// Whether the output may be long and should go to a pager.
    fn is_paged(&self) -> bool {
        matches!(self, Self::Show(_) | Self::Explain(_) | Self::Standup(_) | Self::Handoff(_))
            || matches!(self, Self::Events(arguments) if !arguments.follow)
            || matches!(self, Self::Approvals(arguments) if arguments.id.is_some())
            || matches!(self, Self::Findings(arguments) if arguments.id.is_some())
            || matches!(self, Self::Policy(arguments) if arguments.is_paged())
            || matches!(self, Self::Hooks(arguments) if arguments.is_paged())
    }
}

/// The groups of commands in `--help`.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Sessions",
        &[
            "ps",
            "next",
            "show",
            "explain",
            "check",
            "drift",
            "why",
            "wait",
            "log",
            "events",
            "search",
            "label",
            "note",
            "jump",
            "statusline",
            "standup",
            "usage",
            "handoff",
            "dataset",
            "resume",
        ],
    ),
    (
        "Terminals",
        &["run", "runs", "attach", "screen", "send", "stop", "restart", "rename", "queue", "export", "fix-tty"],
    ),
    ("Approvals", &["approvals", "approve", "deny", "policy", "audit"]),
    ("Findings", &["findings", "notify"]),
    ("Retention", &["forget", "prune", "backup", "restore"]),
    ("Agents", &["hooks", "telemetry", "agent", "mcp", "redact"]),
    ("Server", &["serve", "web", "doctor", "config", "service", "setup", "init", "uninstall"]),
];

/// The command line with its commands in groups. clap can only list them in one block.
pub(super) fn command_line() -> clap::Command {
    let command = output::with_template(complete::with_candidates(Arguments::command()));
    let command = without_tcp(command);
    let width = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or_default();
    let heading = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let mut groups = String::new();
    for (title, names) in GROUPS {
        groups += &format!("{heading}{title}:{heading:#}\n");
        for name in *names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            groups += &format!("  {literal}{name:width$}{literal:#}  {}\n", about.trim_end_matches('.'));
        }
        groups.push('\n');
    }
    let template = format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{{all-args}}{{after-help}}");
    let help = "Run `capture COMMAND --help` for options and examples.";
    // `{all-args}` would list the commands a second time.
    let template = template.replace("{all-args}", &format!("{heading}Options:{heading:#}\n{{options}}\n\n{help}\n"));
    command.help_template(template)
}

/// The commands that connect to no server, or only through its Unix socket.
const WITHOUT_TCP: &[&str] = &[
    "run", "cache", "attach", "export", "fix-tty", "policy", "audit", "session", "redact", "serve", "config", "init",
    "service", "setup",
];

/// Hides `--tcp` in the help of the commands that ignore it.
fn without_tcp(command: clap::Command) -> clap::Command {
    fn hidden(command: clap::Command, tcp: &clap::Arg) -> clap::Command {
        command.mut_subcommands(|command| hidden(command, tcp)).arg(tcp.clone())
    }
    fn below(command: clap::Command, tcp: &clap::Arg) -> clap::Command {
        command.mut_subcommands(|command| {
            if WITHOUT_TCP.contains(&command.get_name()) { hidden(command, tcp) } else { below(command, tcp) }
        })
    }
    let tcp = command.get_arguments().find(|argument| argument.get_id() == "tcp").cloned();
    match tcp {
        Some(tcp) => below(command, &tcp.hide(true)),
        None => command,
    }
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    // If the shell requested completion candidates, this prints them and exits.
    clap_complete::CompleteEnv::with_factory(command_line).var(shell::VARIABLE).complete();
    let parsed = command_line().try_get_matches().and_then(|matches| {
        let template = output::template_of(&matches);
        Ok((Arguments::from_arg_matches(&matches)?, template))
    });
    let (arguments, template) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return explain_usage(&error),
    };
    match run(arguments, template) {
        Ok(code) => code,
        // The reader closed the pipe, which is not an error. Errors of the command itself are still reported.
        Err(error) if printing::is_reader_gone() && !error.is::<Failed>() && !error.is::<ClientError>() => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(&with_causes(&error));
            let refused = error.downcast_ref::<environment::Refused>().map(|_| REFUSED);
            let failed = || error.downcast_ref().map(Failed::code);
            let client = || error.downcast_ref().map(code_of);
            ExitCode::from(refused.or_else(failed).or_else(client).unwrap_or(1))
        }
    }
}

/// Prints help, the version, or the error in the command line.
fn explain_usage(error: &clap::Error) -> ExitCode {
    let text = error.render();
    if error.use_stderr() {
        printing::print_usage_error(&text.to_string());
    } else if style::colours() {
        write!(printing::stdout(), "{}", text.ansi()).ok();
    } else {
        write!(printing::stdout(), "{text}").ok();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn run(mut arguments: Arguments, template: Option<String>) -> anyhow::Result<ExitCode> {
    // Our own agent prints no ids; with `--quiet` it prints less instead.
    let is_quiet_agent = arguments.quiet && matches!(&arguments.command, Some(Command::Agent(agent)) if agent.is_run());
    let template = template.or_else(|| (arguments.quiet && !is_quiet_agent).then(|| "{{ id }}".to_owned()));
    if let Some(template) = template {
        output::use_template(template)?;
        // Templates are filled from the JSON values.
        arguments.json = true;
    }
    let data = arguments.data_dir.as_deref();
    // Loaded only by commands that need it, so that the program of a run does not wait for it.
    let config = || -> anyhow::Result<Config> {
        let loaded = Config::load(&paths::config_file()?);
        Ok(loaded.map_err(|error| Failed::Usage(with_causes(&error)))?)
    };
    let connection = if arguments.tcp { Connection::Tcp } else { Connection::Unix };
    let context_with = |config| -> anyhow::Result<Context> {
        Ok(Context { data: paths::data_dir(data)?, config, json: arguments.json, connection })
    };
    let context = || -> anyhow::Result<Context> { context_with(config()?) };
    let json = arguments.json;
    let Some(command) = arguments.command else {
        overview::run(&context()?)?;
        return Ok(ExitCode::SUCCESS);
    };
    // If the configuration cannot be read, the command reports that.
    let is_paged = command.is_paged() && !json && !arguments.no_pager && config().is_ok_and(|config| config.pager);
    let _pager = if is_paged { printing::Pager::start() } else { None };
    match command {
        Command::Run(run) => return run::run(data, arguments.json, *run),
        Command::Attach(arguments) => return attach::run(data, &arguments),
        Command::FixTty => return fix_tty::run(),
        Command::Resume(arguments) => return resume::run(&context()?, &arguments),
        Command::Restart(arguments) => return stop::restart(&context()?, &arguments),
        Command::Agent(agent) => return agent::run((arguments.json, arguments.quiet), agent, context),
        Command::Config(arguments) => config::run(data, json, &arguments),
        Command::RunHost => return host::host(),
        Command::RunChild(arguments) => return Ok(host::child(&arguments)),
        Command::DriveChild(arguments) => return Ok(drive::child(&arguments)),
        Command::Stop(arguments) => stop::stop(&context()?, &arguments),
        Command::Rename(arguments) => stop::rename(&context()?, &arguments),
        Command::Serve(arguments) if arguments.stops() => serve::stop(&paths::data_dir(data)?, connection),
        Command::Serve(arguments) => serve::run(&context()?, &arguments),
        Command::Ps(arguments) => ps::run(&context()?, &arguments),
        Command::Show(arguments) => show::run(&context()?, &arguments),
        Command::Events(arguments) => events::run(&context()?, &arguments),
        Command::Search(arguments) => search::run(&context()?, &arguments),
        Command::Log(arguments) => log::run(&context()?, &arguments),
        Command::Next(arguments) => next::run(&context()?, &arguments),
        Command::Label(arguments) => label::run(&context()?, &arguments),
        Command::Note(arguments) => note::run(&context()?, &arguments),
        Command::Wait(arguments) => wait::run(&context()?, &arguments),
        Command::Explain(arguments) => explain::run(&context()?, &arguments),
        Command::Check(arguments) => check::run(&context()?, &arguments),
        Command::Drift(arguments) => drift::run(&context()?, &arguments),
        Command::Why(arguments) => check::why(&context()?, &arguments),
        Command::Approvals(arguments) => approvals::list(&context()?, &arguments),
        Command::Approve(arguments) => approvals::approve(&context()?, &arguments),
        Command::Deny(arguments) => approvals::deny(&context()?, &arguments),
        Command::Audit(arguments) => audit::run(&context()?, &arguments),
        Command::Findings(arguments) => findings::run(&context()?, &arguments),
        Command::Queue(arguments) => queue::run(&context()?, &arguments),
        Command::Standup(arguments) => report::standup_of_all(&context()?, &arguments),
        Command::Usage(arguments) => usage::run(&context()?, &arguments),
        Command::Handoff(arguments) => report::handoff(&context()?, &arguments),
        Command::Notify(arguments) => notify::run(&context()?, &arguments),
        Command::Screen(arguments) => screen::run(&context()?, &arguments),
        Command::Send(arguments) => send::run(&context()?, &arguments),
        Command::Export(arguments) => export::run(&context()?, &arguments),
        Command::Redact(arguments) => redact::run(json, &arguments),
        Command::Dataset(arguments) => dataset::run(&context()?, &arguments),
        Command::Mcp(arguments) => mcp::run(context()?, &arguments),
        Command::Hooks(arguments) => hooks::run(&context()?, &arguments),
        Command::Telemetry(arguments) => telemetry::run(&context()?, &arguments),
        Command::Policy(arguments) => policy::run(&context()?, &arguments),
        Command::Web(arguments) => web::run(&context()?, &arguments),
        Command::Doctor(arguments) => {
            // `doctor` reports an invalid configuration as one of its checks.
            let (config, wrong) =
                config().map_or_else(|error| (Config::default(), Some(error)), |config| (config, None));
            doctor::run(&context_with(config)?, &arguments, wrong.as_ref())
        }
        Command::Runs(arguments) => runs::run(&context()?, &arguments),
        Command::Forget(arguments) => retention::forget(&context()?, &arguments),
        Command::Prune(arguments) => retention::prune(&context()?, &arguments),
        Command::Backup(arguments) => retention::backup(&context()?, &arguments),
        Command::Restore(arguments) => retention::restore(&context()?, &arguments),
        Command::Jump(arguments) => jump::run(&context()?, &arguments),
        Command::Statusline(arguments) => statusline::run(&context()?, &arguments),
        Command::Service(arguments) => service::run(&context()?, &arguments),
        Command::Uninstall(arguments) => uninstall::run(&context()?, &arguments),
        Command::Setup(arguments) => overview::setup(&context()?, &arguments),
        Command::Init(arguments) => shell::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
