//! The terminals: attaching, choosing the one that types, and detaching.

use std::time::{Duration, Instant};

use host_protocol::runs;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, geteuid},
};

use super::{GUESTS, Relay};
use crate::host::{
    guest::{Guest, Role},
    observe::ToScreen,
    wire::{Attach, FromHost, LauncherSocket, OnHangup, ToHost},
};

/// Maximum wait for the bytes that undo the program's modes.
const RESTORE: Duration = Duration::from_millis(300);
/// Maximum time for a detaching terminal to accept its last bytes.
const LEAVE: Duration = Duration::from_millis(200);

impl Relay {
    /// Accepts a connection to the run's socket.
    pub(super) fn accept_visitor(&mut self) {
        let Some(Ok((socket, _))) = self.listener.as_ref().map(|l| l.accept()) else { return };
        if self.guests.len() >= GUESTS || socket.set_nonblocking(true).is_err() {
            return;
        }
        let control = LauncherSocket::new(socket);
        if let Err(why) = may_attach(&control, self.program) {
            control.send(&FromHost::Refused { why: why.into() }).ok();
            return;
        }
        let id = self.state.next_guest;
        self.state.next_guest += 1;
        self.guests.push(Guest::visitor(id, control));
    }

    /// Reads messages from a connection.
    pub(super) fn read_messages(&mut self, id: u64) {
        loop {
            let Some(guest) = self.guests.iter_mut().find(|g| g.id == id) else { return };
            match guest.control.receive::<ToHost>() {
                Ok(Some(message)) => self.apply_message(id, message),
                Ok(None) if guest.control.is_closed() => return self.process_gone(id),
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot decode a message from an attached terminal; disconnecting it");
                    return self.process_gone(id);
                }
            }
        }
    }

    fn apply_message(&mut self, id: u64, message: ToHost) {
        let Some(guest) = self.guests.iter_mut().find(|g| g.id == id) else { return };
        match message {
            ToHost::Run(_) => {
                guest.control.send(&FromHost::Refused { why: "this terminal host already has a run".into() }).ok();
            }
            ToHost::Attach(attach) => self.attach(id, &attach),
            ToHost::Go { foreground } => {
                guest.live = true;
                guest.foreground = foreground;
                if guest.role == Role::Writer {
                    self.adopt_size(id);
                }
            }
            ToHost::Resized => self.adopt_size(id),
            ToHost::Signal { number } => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    self.signal(signal);
                }
            }
            ToHost::Suspended => guest.suspended = true,
            ToHost::Continued { foreground } => {
                guest.suspended = false;
                guest.foreground = foreground;
                let launcher = guest.launcher;
                if !launcher {
                    // The shell has overwritten the screen.
                    guest.want_paint();
                }
                if guest.flush().is_err() {
                    return self.terminal_gone(id);
                }
                self.adopt_size(id);
                if launcher {
                    self.continue_program();
                }
            }
            ToHost::Hangup => self.terminal_gone(id),
            ToHost::Detach => self.detach(id),
            ToHost::End { now: true } => self.kill_program(),
            ToHost::End { now: false } => self.hang_up_program(),
            ToHost::Rename { name } => {
                let answer = self.rename(name);
                if let Some(guest) = self.guests.iter().find(|g| g.id == id) {
                    guest
                        .control
                        .send(&answer.map_or_else(|why| FromHost::Refused { why }, |()| FromHost::Renamed))
                        .ok();
                }
            }
        }
    }

    /// Renames the run: in its description, for the next start of its host's connection, and on the server.
    fn rename(&mut self, name: String) -> Result<(), String> {
        runs::rename(&self.spec.data, self.spec.run, &name, self.written)
            .map_err(|error| format!("cannot write the description of the run: {error}"))?;
        self.spec.name = Some(name.clone());
        if self.screen.try_send(ToScreen::Rename(name)) {
            Ok(())
        } else {
            Err("the run was renamed, but the server does not know the new name until it restarts".to_owned())
        }
    }

    fn signal(&mut self, signal: Signal) {
        if signal == Signal::TERM {
            return self.end_program();
        }
        self.pty.signal(signal, self.program);
    }

    fn attach(&mut self, id: u64, attach: &Attach) {
        let has_writer = self.guests.iter().any(|g| g.role == Role::Writer && g.live);
        let Some(at) = self.guests.iter().position(|g| g.id == id) else { return };
        let guest = &mut self.guests[at];
        let (Some(input), Some(output)) = (guest.control.descriptor(), guest.control.descriptor()) else {
            guest.control.send(&FromHost::Refused { why: "no terminal was passed with the request".into() }).ok();
            return self.drop_guest(id);
        };
        guest.bring(input, output);
        guest.read_only = attach.read_only;
        guest.key = attach.detach_key;
        guest.want_paint();
        let writes = !attach.read_only && (attach.take || !has_writer);
        if writes {
            for other in &mut self.guests {
                other.role = if other.id == id { Role::Writer } else { Role::Viewer };
            }
        }
        let guest = &self.guests[at];
        if guest.control.send(&FromHost::Ready { watches: !writes && !attach.read_only }).is_err() {
            self.drop_guest(id);
        }
    }

    /// Sets the run's size to that of the terminal that types.
    pub(super) fn adopt_size(&mut self, id: u64) {
        let writer = self.guests.iter().find(|g| g.id == id && g.role == Role::Writer);
        if let Some(size) = writer.and_then(Guest::size) {
            self.resize(size);
        }
    }

    /// The process that owns a terminal is gone. If it was killed, it could not restore its terminal.
    fn process_gone(&mut self, id: u64) {
        let Some(guest) = self.guests.iter().find(|g| g.id == id) else { return };
        let (live, launcher) = (guest.live, guest.launcher);
        if live {
            self.leave(id);
            if let Some(saved) = self.guests.iter().find(|g| g.id == id).and_then(|g| g.saved.as_ref()) {
                saved.restore();
            }
        }
        self.drop_guest(id);
        if launcher && self.state.stopped {
            self.continue_program();
        }
    }

    /// A terminal is gone.
    pub(super) fn terminal_gone(&mut self, id: u64) {
        let Some(guest) = self.guests.iter().find(|g| g.id == id) else { return };
        let (launcher, terminal) = (guest.launcher, guest.saved.is_some());
        if !terminal {
            // A pipe without a reader: the program would have received SIGPIPE at its next write. Its end is still
            // awaited.
            if let Some(guest) = self.guests.iter_mut().find(|g| g.id == id) {
                guest.forget();
                guest.input = None;
            }
            self.pty.signal(Signal::HUP, self.program);
            return;
        }
        guest.control.send(&FromHost::Detached { run: self.spec.run }).ok();
        self.drop_guest(id);
        if launcher {
            match self.spec.on_hangup {
                OnHangup::Keep if self.state.stopped => self.continue_program(),
                OnHangup::Keep => {}
                OnHangup::End => {
                    self.pty.signal(Signal::HUP, self.program);
                    self.end_program();
                }
            }
        }
    }

    /// Detaches a terminal; the program keeps running. A program that was stopped stays stopped while its launcher is
    /// attached: the user who stopped it continues it from their shell.
    pub(super) fn detach(&mut self, id: u64) {
        self.leave(id);
        if let Some(guest) = self.guests.iter().find(|g| g.id == id) {
            guest.control.send(&FromHost::Detached { run: self.spec.run }).ok();
        }
        self.drop_guest(id);
        if self.state.stopped && !self.guests.iter().any(|guest| guest.launcher) {
            self.continue_program();
        }
    }

    /// Undoes, in this terminal, the modes the program turned on.
    fn leave(&mut self, id: u64) {
        let restore = self.screen.restore(RESTORE);
        let Some(guest) = self.guests.iter_mut().find(|g| g.id == id && g.saved.is_some()) else { return };
        if guest.role == Role::Viewer {
            guest.skip();
        }
        guest.queue(&restore);
        flush(std::slice::from_mut(guest), LEAVE);
    }

    /// Removes a terminal; if it was the one that typed, another one may type.
    fn drop_guest(&mut self, id: u64) {
        let Some(at) = self.guests.iter().position(|g| g.id == id) else { return };
        let was = self.guests.remove(at).role;
        if was != Role::Writer || self.guests.iter().any(|g| g.role == Role::Writer) {
            return;
        }
        let next = self.guests.iter_mut().filter(|g| g.live && !g.read_only).min_by_key(|g| (!g.launcher, g.id));
        if let Some(next) = next {
            next.role = Role::Writer;
            let id = next.id;
            self.adopt_size(id);
        }
    }

    /// The bytes that restore a terminal, needed when the relay finishes.
    pub(super) fn restore_bytes(&self) -> Vec<u8> {
        self.screen.restore(RESTORE)
    }

    pub(super) fn send_to_screen(&self, thing: ToScreen) {
        if !self.screen.try_send(thing) {
            tracing::warn!("cannot report the end of the program");
        }
    }
}

/// Whether the process at the other end may attach: it must belong to our user and not be started by an agent, because
/// an agent's shell must not type its approvals. A process inside the run itself is refused, because it would copy its
/// output into its output forever.
fn may_attach(control: &LauncherSocket, program: Pid) -> Result<(), &'static str> {
    let peer =
        processes::local_socket::peer(control.socket()).map_err(|_| "cannot identify the process that attaches")?;
    if peer.uid != geteuid().as_raw() {
        return Err("the run belongs to another user");
    }
    let pid = peer.pid;
    if processes::descends_from_agent(pid) {
        return Err("processes started by an agent may not attach to a run");
    }
    let program = u32::try_from(program.as_raw_nonzero().get()).unwrap_or_default();
    if processes::descends_from(pid, program) {
        return Err("cannot attach to a run from within itself");
    }
    Ok(())
}

/// Writes queued bytes until the terminals accept no more or the time is over.
pub(super) fn flush(guests: &mut [Guest], within: Duration) {
    let until = Instant::now() + within;
    loop {
        for guest in guests.iter_mut() {
            if guest.flush().is_err() {
                guest.forget();
            }
        }
        let left = until.saturating_duration_since(Instant::now());
        let waiting: Vec<&Guest> = guests.iter().filter(|g| !g.is_flushed() && !g.suspended).collect();
        if waiting.is_empty() || left.is_zero() {
            return;
        }
        let mut fds: Vec<PollFd<'_>> =
            waiting.iter().filter_map(|g| Some(PollFd::new(g.output.as_ref()?, PollFlags::OUT))).collect();
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        if poll(&mut fds, Some(&timeout)).is_err() {
            return;
        }
    }
}
