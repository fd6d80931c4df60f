//! `capture run`: runs a program in a terminal that capture observes.

mod recording;

use std::{
    ffi::OsString,
    io::IsTerminal,
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use api::{Client, routes::GetRun, runs::RunState};
use client::{
    self, Connection,
    failure::{Failed, with_causes},
};
use events::RunId;
use home::{clock, config::Config, paths, redacted_only};
use host_protocol::{runs, screen::Size};
use terminal::{
    host::{
        child,
        launch::{self, LaunchOutcome},
        start::Outside,
        supervise,
        terminal::{RawMode, Saved},
        wire::{Notify, OnHangup, RecordSpec, Spec, StreamTarget},
    },
    screen::ScreenRules,
};

use super::{export::CastVersionArgument, number::integer};

use printing::safe;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// A name for the run; no other active run may have it.
    #[arg(long, value_name = "NAME", value_parser = super::stop::run_name)]
    name: Option<String>,
    /// Start the program in the background and print the run's id.
    #[arg(long)]
    detach: bool,
    /// Size of the program's terminal while you are not attached.
    #[arg(long, value_name = "COLUMNSxROWS", default_value = "120x40", value_parser = size)]
    size: Size,
    /// Give the program a terminal even if standard output is redirected.
    #[arg(long, conflicts_with = "detach")]
    tty: bool,
    /// Key that detaches the terminal: `none`, or a ctrl- key such as `ctrl-]`.
    #[arg(long, value_name = "KEY", default_value = "none")]
    detach_key: super::detach_key::DetachKeyArgument,
    /// What to do with the program when the terminal closes.
    #[arg(long, value_name = "WHAT", default_value = "keep")]
    on_hangup: Hangup,
    /// Notify you in this terminal when a permission request is waiting.
    #[arg(long, value_name = "HOW")]
    notify: Option<NotifyBy>,
    /// Record the terminal [default FILE: recordings/RUN.cast in the data directory].
    ///
    /// Without `--detach`: if standard output is not a terminal, nothing is recorded unless you also pass `--tty`.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    record: Option<Option<PathBuf>>,
    /// The asciicast version of the recording.
    #[arg(long, value_enum, value_name = "VERSION", default_value = "v3")]
    record_format: CastVersionArgument,
    /// Maximum size of the recording in MiB; its oldest quarter is dropped to make room.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = integer::<u32>)]
    record_max_mib: u32,
    /// Run the program directly, without observing its terminal.
    #[arg(long)]
    no_capture: bool,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Hangup {
    /// Keep it running; `capture attach` reconnects to it.
    Keep,
    /// Terminate it.
    End,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum NotifyBy {
    /// Send a terminal notification (OSC 9).
    Osc9,
    /// Ring the terminal's bell.
    Bell,
}

impl Arguments {
    /// Arguments that run a program without any options.
    pub(super) fn of(words: Vec<String>) -> Self {
        Self {
            name: None,
            detach: false,
            size: Size { rows: 40, columns: 120 },
            tty: false,
            detach_key: super::detach_key::DetachKeyArgument(terminal::host::keys::DetachKey::NONE),
            on_hangup: Hangup::Keep,
            notify: None,
            record: None,
            record_format: CastVersionArgument::V3,
            record_max_mib: 64,
            no_capture: false,
            command: words.into_iter().map(OsString::from).collect(),
        }
    }
}

impl Arguments {
    /// Arguments that run a program in the background, with a name if one is given.
    pub(super) fn detached(words: Vec<String>, name: Option<String>) -> Self {
        Self { name, detach: true, ..Self::of(words) }
    }
}

fn size(text: &str) -> Result<Size, String> {
    let wrong = || "expected COLUMNSxROWS, such as 120x40".to_owned();
    let (columns, rows) = text.split_once('x').ok_or_else(wrong)?;
    let number = |text: &str| text.parse().ok().filter(|n| *n > 0).ok_or_else(wrong);
    Ok(Size { rows: number(rows)?, columns: number(columns)? })
}

/// Time limit for the server to list a run that was started without a terminal.
const KNOWN_WITHIN: Duration = Duration::from_secs(5);
/// Time limit for the server to list the session of a known run. In an ignored directory there is none.
const SESSION_WITHIN: Duration = Duration::from_secs(1);
/// Interval between polls.
const ASK_EVERY: Duration = Duration::from_millis(10);
/// The error when a run has no terminal host.
const CANNOT_HOST: &str = "cannot start the background process that holds the run's terminal";
/// Printed when `--record` has no effect.
const NOT_RECORDED: &str =
    "capture: nothing is recorded, because standard output is not a terminal; pass `--tty` to record anyway";
/// Exit code for an unusable configuration: nothing was run.
const USAGE: u8 = 2;

pub(super) fn run(data: Option<&Path>, json: bool, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let program = &arguments.command[0];
    if program.as_encoded_bytes().starts_with(b"-") {
        let program = safe(&program.to_string_lossy());
        let text = format!("`capture run` has no option `{program}`; `capture run --help` lists its options");
        return Err(Failed::Usage(text).into());
    }
    if arguments.no_capture {
        let error = child::replace(&arguments.command);
        return Ok(cannot_run(&error));
    }
    let path = paths::variable("PATH").map(PathBuf::into_os_string);
    if let Err(error) = child::resolve(&arguments.command[0], path.as_deref()) {
        return Ok(cannot_run(&error));
    }
    // A process an agent starts here stays marked as the agent's, even if it outlives the process that requested it.
    processes::seal_if_agents().context("cannot mark this process as started by an agent")?;
    let data = paths::data_dir(data)?;
    if let Err(error) = paths::config_file().and_then(|file| Config::load(&file)) {
        super::context::complain(&with_causes(&error));
        return Ok(ExitCode::from(USAGE));
    }
    let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let terminals = [input.is_terminal(), output.is_terminal(), error.is_terminal()];
    let spec = spec(data, &arguments, terminals)?;
    if let Some(name) = &spec.name
        && let Err(error) = runs::claim_name(&spec.data, name)
        && error.kind() == std::io::ErrorKind::AlreadyExists
    {
        return Err(Failed::Refused(error.to_string()).into());
    }
    if arguments.detach {
        return detached(spec, json);
    }
    if !arguments.tty && !terminals[1] {
        // There is no screen to observe, and part of a pipeline works best if it is left alone.
        if spec.record.is_some() {
            printing::print_error_line(NOT_RECORDED);
        }
        let outside = outside(&spec);
        return Ok(match supervise::supervise(&spec, outside) {
            Ok(exit) => ExitCode::from(exit.shell_code()),
            Err(error) => cannot_run(&error),
        });
    }
    let ours = [input.as_fd(), output.as_fd(), error.as_fd()];
    // Read typed input from the terminal even if standard input is a pipe: the program may ask its terminal, as a pager
    // does.
    let typed = if terminals[0] || arguments.tty { ours[0] } else { ours[1] };
    let mut descriptors: Vec<BorrowedFd<'_>> = vec![typed, ours[1]];
    descriptors.extend(ours.iter().zip(spec.streams).filter(|(_, s)| *s == StreamTarget::Inherited).map(|(fd, _)| *fd));
    let (run, data) = (spec.run, spec.data.clone());
    let raw = Saved::of(typed).or_else(|| Saved::of(ours[1])).map(RawMode::new);
    let started = launch::start(spec, &descriptors).context(CANNOT_HOST)?;
    finish(started.follow(raw)?, Some(run), &data)
}

/// Reports how the run ended if that is not obvious, and returns the exit code.
pub(super) fn finish(outcome: LaunchOutcome, run: Option<RunId>, data: &Path) -> anyhow::Result<ExitCode> {
    Ok(match outcome {
        LaunchOutcome::Exited(exit) => ExitCode::from(exit.shell_code()),
        LaunchOutcome::Detached(run) => {
            // The cursor may be in any column.
            let name = runs::list(data).into_iter().find(|listed| listed.run == run).and_then(|listed| listed.name);
            let name = name.map_or_else(|| run.to_string(), |name| quoted(&name));
            printing::print_error_line(&format!("\ncapture: detached; `capture attach {name}` attaches again"));
            ExitCode::SUCCESS
        }
        LaunchOutcome::HungUp => ExitCode::from(129),
        LaunchOutcome::Lost(exit) if run.is_some() => {
            // The modes the program enabled are no longer known.
            if std::io::stderr().is_terminal() {
                printing::stderr().control(super::fix_tty::LEAVE).ok();
            }
            printing::print_error_line(
                "capture: the background process that held the run's terminal ended unexpectedly; the program lost its terminal",
            );
            ExitCode::from(exit.shell_code().max(1))
        }
        LaunchOutcome::Lost(_) => {
            return Err(
                Failed::Other("the background process that held the run's terminal ended unexpectedly".into()).into()
            );
        }
        LaunchOutcome::Refused(why) if run.is_some() => return Err(Failed::Other(why).into()),
        LaunchOutcome::Refused(why) => return Err(Failed::Refused(why).into()),
    })
}

fn cannot_run(error: &agents::CannotRun) -> ExitCode {
    super::context::complain(&error.to_string());
    ExitCode::from(error.shell_code())
}

/// A name, quoted for a command line.
fn quoted(name: &str) -> String {
    safe(&shlex::try_quote(name).unwrap_or_default())
}

fn detached(spec: Spec, json: bool) -> anyhow::Result<ExitCode> {
    let (run, name, data) = (spec.run, spec.name.clone(), spec.data.clone());
    let started = launch::start(spec, &[]).context(CANNOT_HOST)?;
    let (pid, socket) = started.leave_alone().context("cannot start the run")?;
    wait_until_known(&data, run);
    if json {
        let value = serde_json::json!({ "run": run, "name": name, "pid": pid, "socket": socket });
        super::output::print_json(&value)?;
    } else {
        let word = name.as_deref().map_or_else(|| run.to_string(), quoted);
        let name = name.map(|name| format!(" ({})", safe(&name))).unwrap_or_default();
        super::context::print_line(&format!("run {run}{name}"))?;
        if std::io::stderr().is_terminal() {
            printing::print_error_line(&format!("capture: `capture attach {word}` opens it here; Ctrl-] detaches"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until the server lists the run and its session, so that the next command finds them by name. Without a server,
/// the run continues unobserved, and this returns immediately.
fn wait_until_known(data: &Path, run: RunId) {
    let autostart = paths::config_file().and_then(|file| Config::load(&file)).is_ok_and(|config| config.autostart);
    let (mut until, mut is_known) = (Instant::now() + KNOWN_WITHIN, false);
    while Instant::now() < until {
        let found = match Client::running(data, Connection::Unix) {
            Ok(Some(client)) => client.one::<GetRun>(&run.to_string()).ok(),
            Ok(None) if !autostart => return,
            Ok(None) | Err(_) => None,
        };
        if let Some(found) = found {
            if found.session_id.is_some() || found.state != RunState::Running {
                return;
            }
            if !is_known {
                until = Instant::now() + SESSION_WITHIN;
                is_known = true;
            }
        }
        // The channel never receives a message; this only waits.
        crossbeam_channel::after(ASK_EVERY).recv().ok();
    }
}

fn spec(data: PathBuf, arguments: &Arguments, terminals: [bool; 3]) -> anyhow::Result<Spec> {
    let mut environment = Vec::new();
    if arguments.detach && paths::variable("TERM").is_none() {
        environment.push(("TERM".to_owned(), "xterm-256color".to_owned()));
    }
    let own = arguments.detach || arguments.tty;
    let record = arguments.record.as_ref().map(|file| -> anyhow::Result<RecordSpec> {
        Ok(RecordSpec {
            file: file.as_deref().map(std::path::absolute).transpose()?,
            format: match arguments.record_format {
                CastVersionArgument::V2 => "v2".into(),
                CastVersionArgument::V3 => "v3".into(),
            },
            max_mib: arguments.record_max_mib,
        })
    });
    Ok(Spec {
        run: RunId::mint(clock::now(), clock::random().context("cannot read random bytes from the system")?),
        name: arguments.name.clone(),
        words: arguments.command.clone(),
        data,
        streams: terminals.map(|is| if is || own { StreamTarget::Terminal } else { StreamTarget::Inherited }),
        attached: !arguments.detach,
        size: arguments.size,
        environment,
        on_hangup: match arguments.on_hangup {
            Hangup::Keep => OnHangup::Keep,
            Hangup::End => OnHangup::End,
        },
        detach_key: arguments.detach_key.0,
        notify: arguments.notify.map(|how| match how {
            NotifyBy::Osc9 => Notify::Osc9,
            NotifyBy::Bell => Notify::Bell,
        }),
        record: record.transpose()?,
    })
}

/// What this crate provides to the terminal host: the clock, the rules, the server, the recording.
pub(super) fn outside(spec: &Spec) -> Outside {
    Outside {
        clock: clock::now,
        rules: Box::new(rules),
        find: client::find_socket(spec.data.clone()),
        record: recording::wanted(spec),
        written: if redacted_only::is_on(&spec.data) { redact::of_run } else { |_| () },
    }
}

/// The rules for screens. An invalid file of the user must not keep an agent from running, so it is reported here and
/// by `capture doctor`, and the built-in rules apply.
fn rules() -> Arc<ScreenRules> {
    let loaded = paths::screen_rules_dir().and_then(|dir| Ok(ScreenRules::load(Some(&dir))?));
    Arc::new(loaded.unwrap_or_else(|error| {
        tracing::warn!(
            error = with_causes(&error),
            "cannot use the screen rules of the configuration directory; using the built-in ones"
        );
        ScreenRules::load(None).unwrap_or_default()
    }))
}
