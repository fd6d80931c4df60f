//! Starts a terminal host: receives what to run from its launcher, opens the terminal, starts the program, and then
//! relays bytes until it ends.

use std::{
    io,
    os::{
        fd::OwnedFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::Path,
    time::Instant,
};

use agents::RUN_VARIABLE;
use crossbeam_channel::bounded;
use events::{Provider, Timestamp};
use host_protocol::{
    frame::Hello,
    link::{FindSocket, HostLink},
    runs::{self, Description, NameClaim},
    screen::Size,
};
use processes::{local_socket::AddressPath, wake};
use rustix::{
    process::{Pid, Signal, setsid},
    termios::Winsize,
};

use super::{
    child,
    guest::{Guest, Role},
    observe::{ScreenHandle, ScreenThreadConfig},
    pty::{Pty, screen_size, winsize},
    relay::{Loop, Relay},
    signals::{Signals, block_background_stops},
    sink::{Recorder, RecordingSink},
    wire::{FromHost, LauncherSocket, Spec, StreamTarget, ToHost},
};

/// Maximum number of the server's requests that are queued.
const REQUESTS: usize = 64;
/// Maximum number of the screen thread's messages that are queued.
const SCREEN_EVENTS: usize = 256;

pub use crate::host::load_rules::LoadRules;

/// A recording that was started, and its file as shown to the user.
pub type Recording = (Box<dyn RecordingSink>, String);

/// Starts a recording of a screen of this size.
pub type StartRecording = Box<dyn FnOnce(Size) -> io::Result<Recording> + Send>;

/// The dependencies that the caller provides to a run.
pub struct Outside {
    /// The clock.
    pub clock: fn() -> Timestamp,
    /// The rules for reading its screen.
    pub rules: LoadRules,
    /// Finds the server.
    pub find: FindSocket,
    /// Starts the recording, if one is requested; called before the program starts.
    pub record: Option<StartRecording>,
    /// Redacts a description before it is written.
    pub written: fn(&mut Description),
}

/// Hosts one run and returns when it has ended.
///
/// # Errors
/// When the run could not start; the reason was sent to the launcher.
pub fn host(socket: UnixStream, outside: impl FnOnce(&Spec) -> Outside) -> io::Result<()> {
    let mut control = LauncherSocket::new(socket);
    let spec = loop {
        match control.receive::<ToHost>()? {
            Some(ToHost::Run(spec)) => break *spec,
            Some(_) => return Err(io::Error::other("the first message to a terminal host must be `run`")),
            None if control.is_closed() => return Ok(()),
            None => {}
        }
    };
    let outside = outside(&spec);
    let mut guest = None;
    let prepared = prepare(control, &spec, &mut guest);
    let begun = prepared.and_then(|prepared| begin(spec, prepared, &mut guest, outside));
    let mut relay = begun.inspect_err(|error| {
        if let Some(guest) = guest {
            guest.control.send(&FromHost::Refused { why: error.to_string() }).ok();
        }
    })?;
    let exit = relay.run();
    relay.finish(exit);
    Ok(())
}

/// A terminal, and the streams that are not connected to it.
struct PreparedTerminal {
    pty: Pty,
    size: Winsize,
    inherited: Vec<OwnedFd>,
}

/// Becomes the leader of a new session and creates the terminal.
fn prepare(mut control: LauncherSocket, spec: &Spec, guest: &mut Option<Guest>) -> io::Result<PreparedTerminal> {
    let terminal = if spec.attached { control.descriptor().zip(control.descriptor()) } else { None };
    let inherited = std::iter::from_fn(|| control.descriptor()).collect();
    let launcher = guest.insert(match terminal {
        Some((input, output)) => Guest::new(0, control, input, output),
        None => Guest::visitor(0, control),
    });
    launcher.launcher = true;
    launcher.role = Role::Writer;
    launcher.key = spec.detach_key;
    setsid()?;
    block_background_stops();
    let size = launcher.size().unwrap_or_else(|| winsize(spec.size));
    let pty = Pty::open(size, launcher.saved.as_ref().map(super::terminal::Saved::settings))?;
    Ok(PreparedTerminal { pty, size, inherited })
}

/// Starts the program and everything that watches it.
fn begin(spec: Spec, prepared: PreparedTerminal, guest: &mut Option<Guest>, outside: Outside) -> io::Result<Relay> {
    let PreparedTerminal { pty, size, inherited } = prepared;
    let gone = || io::Error::other("the process that started the run is gone");
    let launcher = guest.as_mut().ok_or_else(gone)?;
    launcher.control.send(&FromHost::Ready { watches: false })?;
    launcher.foreground = loop {
        match launcher.control.receive::<ToHost>()? {
            Some(ToHost::Go { foreground }) => break foreground,
            None if launcher.control.is_closed() => return Err(gone()),
            Some(_) | None => {}
        }
    };
    launcher.live = spec.attached;
    launcher.control.socket().set_nonblocking(true)?;

    let signals = Signals::watch(&[Signal::TERM, Signal::HUP, Signal::INT])?;
    let listener = listen(&spec);
    let cwd = std::env::current_dir().map(|dir| dir.display().to_string()).unwrap_or_default();
    let started_at = (outside.clock)();
    let mut inherited = inherited.into_iter();
    let mut streams = Vec::with_capacity(3);
    for stream in spec.streams {
        streams.push(match stream {
            StreamTarget::Terminal => pty.slave()?,
            StreamTarget::Inherited => inherited.next().ok_or_else(|| {
                io::Error::other(
                    "a standard stream was not \
                passed",
                )
            })?,
        });
    }
    let streams =
        <[OwnedFd; 3]>::try_from(streams).map_err(|_| io::Error::other("a standard stream was not passed"))?;
    let mut environment = spec.environment.clone();
    environment.push((RUN_VARIABLE.into(), spec.run.to_string()));
    let name = claim_name(&spec)?;
    let recording = outside.record.map(|begin| begin(screen_size(size))).transpose()?;
    child::adopt_orphans()?;
    let program = child::spawn(&spec.words, streams, &environment)?;
    child::reap_orphans(program)?;

    let (woke, woken) = wake::pair()?;
    let (tell, child_events) = bounded(16);
    let wake_for_child = woke.clone();
    child::wait(program, move |screen_events| {
        // The relay receives these in every iteration.
        tell.send(screen_events).ok();
        wake_for_child.wake();
    })?;
    // The program's directory is no longer needed.
    std::env::set_current_dir("/").ok();

    let socket = listener.is_some().then(|| runs::socket(&spec.data, spec.run));
    let mut hello = hello(&spec, program, &cwd, started_at, Some(size), socket.as_deref());
    let recorder = match recording {
        Some((sink, file)) => {
            hello.recording = Some(file);
            Some(Recorder::start(sink)?)
        }
        None => None,
    };
    if listener.is_some() {
        describe(&spec, &hello, outside.written);
    }
    drop(name);
    launcher.control.send(&FromHost::Started { pid: hello.pid, socket }).ok();

    let provider = hello.provider;
    let (requests, questions) = bounded(REQUESTS);
    let link = HostLink::start(hello.clone(), outside.find, requests)?;
    let (tell, screen_events) = bounded(SCREEN_EVENTS);
    let begin = ScreenThreadConfig {
        hello,
        link,
        requests: questions,
        size: screen_size(size),
        clock: outside.clock,
        wake: woke,
    };
    let screen = ScreenHandle::start(begin, outside.rules, tell)?;
    let guests = if spec.attached { guest.take().into_iter().collect() } else { Vec::new() };
    *guest = None;
    Ok(Relay {
        spec,
        clock: outside.clock,
        written: outside.written,
        pty,
        program,
        child_events,
        woken,
        signals,
        listener,
        guests,
        screen,
        screen_events,
        recorder,
        size,
        provider,
        state: Loop::new(Instant::now()),
    })
}

/// Claims the name of the run. If names cannot be compared, the run starts anyway.
fn claim_name(spec: &Spec) -> io::Result<Option<NameClaim>> {
    let Some(name) = &spec.name else { return Ok(None) };
    match runs::claim_name(&spec.data, name) {
        Ok(claim) => Ok(Some(claim)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(error) => {
            tracing::warn!(%error, "cannot check whether another run has this name");
            Ok(None)
        }
    }
}

/// The socket for attaching. If it cannot be created, the run works, but no terminal can attach.
fn listen(spec: &Spec) -> Option<UnixListener> {
    let path = runs::socket(&spec.data, spec.run);
    let made = runs::make_dir(&spec.data).and_then(|_| {
        let listener = UnixListener::bind(AddressPath::of(&path)?.as_ref())?;
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    made.inspect_err(|error| {
        tracing::warn!(%error, path = %path.display(), "cannot open the socket of this run; attaching will \
            fail")
    })
    .ok()
}

/// The first message about a run to the server. A run without a size has no terminal of ours.
pub(super) fn hello(
    spec: &Spec,
    program: Pid,
    cwd: &str,
    started_at: Timestamp,
    size: Option<Winsize>,
    socket: Option<&Path>,
) -> Hello {
    let pid = u32::try_from(program.as_raw_nonzero().get()).unwrap_or_default();
    let size = size.map(screen_size);
    Hello {
        run: spec.run,
        name: spec.name.clone(),
        command: spec.words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        provider: processes::agent_of_words(&spec.words).unwrap_or(Provider::Unknown),
        version: None,
        cwd: cwd.to_owned(),
        pid,
        start_ticks: processes::start_ticks(pid).unwrap_or_default(),
        host_pid: std::process::id(),
        started_at,
        terminal: size.is_some(),
        size: size.map(|size| (size.rows, size.columns)),
        socket: socket.map(|path| path.display().to_string()),
        recording: None,
        answers: true,
        session: None,
        takes: Vec::new(),
        draws: true,
    }
}

fn describe(spec: &Spec, hello: &Hello, written: fn(&mut Description)) {
    let mut description = Description {
        run: spec.run,
        name: spec.name.clone(),
        pid: hello.pid,
        host_pid: hello.host_pid,
        host_start_ticks: processes::start_ticks(hello.host_pid).unwrap_or_default(),
        socket: runs::socket(&spec.data, spec.run),
        command: hello.command.clone(),
        cwd: hello.cwd.clone(),
        started_at: hello.started_at,
    };
    written(&mut description);
    if let Err(error) = description.store(&spec.data) {
        tracing::warn!(%error, "cannot write the description of this run; attaching by name will fail");
    }
}
