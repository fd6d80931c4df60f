//! A run without a terminal of its own: the program inherits our streams and our process group, as if it was started
//! directly. This process only waits for it and reports to the server.

use std::{os::fd::AsFd, process::Command, time::Duration};

use agents::{CannotRun, RUN_VARIABLE};
use crossbeam_channel::{TryRecvError, bounded};
use host_protocol::{
    claim::HostEvent,
    link::{HostLink, PendingRequest},
};
use processes::wake;
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, Signal, kill_process},
};

use super::{
    child::{self, ChildEvent, Exit},
    signals::Signals,
    start::{Outside, hello},
    wire::Spec,
};

/// Maximum time for the server to store the end of the run; short, because the caller is waiting.
const DELIVER: Duration = Duration::from_millis(100);

/// Runs the command and waits for it.
///
/// # Errors
/// When the command cannot be started.
pub fn supervise(spec: &Spec, outside: Outside) -> Result<Exit, CannotRun> {
    let Some((word, rest)) = spec.words.split_first() else { return Err(CannotRun::NotFound("".into())) };
    let failed = |error: std::io::Error| CannotRun::of(word, &error);
    // The terminal sends its signals to the program too; we ignore them.
    let mut signals =
        Signals::watch(&[Signal::INT, Signal::QUIT, Signal::TERM, Signal::HUP, Signal::USR1, Signal::USR2])
            .map_err(failed)?;
    let (woke, woken) = wake::pair().map_err(failed)?;
    let (tell, child_events) = bounded(16);
    let started_at = (outside.clock)();
    let cwd = std::env::current_dir().map(|dir| dir.display().to_string()).unwrap_or_default();
    let mut command = Command::new(word);
    let run = spec.run.to_string();
    command.args(rest).env(RUN_VARIABLE, &run);
    let started = command.spawn().or_else(|error| {
        let script = error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error());
        if !script || !word.as_encoded_bytes().contains(&b'/') {
            return Err(error);
        }
        // A script without a `#!` line is run by the shell, as shells and `execvp` do.
        Command::new("/bin/sh").arg(word).args(rest).env(RUN_VARIABLE, &run).spawn()
    });
    let program = Pid::from_child(&started.map_err(failed)?);
    if let Err(error) = processes::mark_child(program) {
        tracing::warn!(%error, "cannot mark the program of this run as started by capture");
    }
    child::wait(program, move |screen_events| {
        // If more than 16 events arrive at once, the rest are stops and continuations, which are ignored.
        if matches!(screen_events, ChildEvent::Exited(_)) {
            tell.send(screen_events).ok();
        }
        woke.wake();
    })
    .map_err(failed)?;
    let (requests, questions) = bounded::<PendingRequest>(16);
    let hello = hello(spec, program, &cwd, started_at, None, None);
    let link = HostLink::start(hello, outside.find, requests);
    loop {
        let mut fds = [
            PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
        ];
        // An interrupted poll is treated as a wakeup.
        poll(&mut fds, None).ok();
        woken.drain();
        for signal in signals.received() {
            if signal != Signal::INT && signal != Signal::QUIT {
                kill_process(program, signal).ok();
            }
        }
        // There is no screen and no keyboard: dropping a request answers it.
        while questions.try_recv().is_ok() {}
        match child_events.try_recv() {
            Ok(ChildEvent::Exited(exit)) => {
                deliver(link.ok(), (outside.clock)(), exit);
                return Ok(exit);
            }
            Ok(ChildEvent::Stopped(_) | ChildEvent::Continued) | Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(Exit::default()),
        }
    }
}

fn deliver(link: Option<HostLink>, at: events::Timestamp, exit: Exit) {
    let Some(link) = link else { return };
    link.send_event(at, HostEvent::Exited { code: exit.code, signal: exit.signal });
    let (end, ended) = bounded::<()>(1);
    // The thread ends with the link or with the process.
    let waiting = std::thread::Builder::new().name("deliver".into()).spawn(move || {
        {
            let _until_stored = link;
        }
        end.try_send(()).ok();
    });
    if waiting.is_ok() {
        ended.recv_timeout(DELIVER).ok();
    }
}
