//! The program: its process events, how it is ended, which agent it is, and the size of its terminal.

use std::time::Instant;

use host_protocol::screen::Size;
use rustix::{
    process::{Signal, kill_process_group},
    termios::Winsize,
};

use super::{KILL_AFTER, Relay};
use crate::host::{
    child::ChildEvent,
    guest::Role,
    observe::{RequestReply, ToScreen},
    pty::screen_size,
    wire::FromHost,
};

impl Relay {
    pub(super) fn apply_child_events(&mut self) {
        while let Ok(child_events) = self.child_events.try_recv() {
            match child_events {
                ChildEvent::Continued => self.state.stopped = false,
                ChildEvent::Exited(exit) => {
                    self.state.exited = Some((exit, Instant::now()));
                    self.state.kill_at = None;
                    self.pty.close_slave();
                }
                ChildEvent::Stopped(signal) => self.stopped(signal),
            }
        }
    }

    pub(super) fn stopped(&mut self, signal: i32) {
        self.state.stopped = true;
        if signal == Signal::TTIN.as_raw() || signal == Signal::TTOU.as_raw() {
            // A process it started took the foreground and did not return it; a shell would take it back.
            self.pty.put_in_foreground(self.program).ok();
            return self.continue_program();
        }
        // If the launcher is attached and can continue the program, it stops too; otherwise nothing would continue the
        // program.
        match self.guests.iter_mut().find(|g| g.launcher && g.live && g.role == Role::Writer) {
            Some(launcher) => {
                launcher.flush().ok();
                launcher.suspended = true;
                if launcher.control.send(&FromHost::Stopped).is_err() {
                    self.continue_program();
                }
            }
            None => self.continue_program(),
        }
    }

    pub(super) fn continue_program(&mut self) {
        self.state.stopped = false;
        kill_process_group(self.program, Signal::CONT).ok();
    }

    /// Asks the program to end, and kills it if it does not.
    pub(super) fn end_program(&mut self) {
        if self.has_exited() {
            return;
        }
        kill_process_group(self.program, Signal::TERM).ok();
        self.give_time_to_end();
    }

    /// Hangs up, as if the terminal was closed: the program and its foreground process group receive SIGHUP and get
    /// time to end on their own.
    pub(super) fn hang_up_program(&mut self) {
        if self.has_exited() {
            return;
        }
        kill_process_group(self.program, Signal::HUP).ok();
        if let Some(group) = self.pty.foreground().filter(|group| *group != self.program) {
            kill_process_group(group, Signal::HUP).ok();
        }
        self.give_time_to_end();
    }

    /// Whether the program has exited. If it has, the relay stops waiting for terminals that accept no output.
    fn has_exited(&mut self) -> bool {
        let has_exited = self.state.exited.is_some();
        self.state.abandoned |= has_exited;
        has_exited
    }

    /// Gives a program that was asked to end some time to do so.
    fn give_time_to_end(&mut self) {
        if self.state.stopped {
            self.continue_program();
        }
        self.state.kill_at.get_or_insert(Instant::now() + KILL_AFTER);
    }

    /// Kills the program and its foreground process group at once.
    pub(super) fn kill_program(&mut self) {
        if self.has_exited() {
            return;
        }
        self.state.kill_at = Some(Instant::now());
    }

    /// Checks which program is in the foreground: an agent started from a shell is read with its own rules.
    pub(super) fn check_foreground(&mut self, now: Instant) {
        self.state.look_at = None;
        self.state.looked = now;
        let Some(group) = self.pty.foreground() else { return };
        let Ok(pid) = u32::try_from(group.as_raw_nonzero().get()) else { return };
        let Some(provider) = processes::agent_in_group(pid) else { return };
        if provider != self.provider && self.screen.try_send(ToScreen::Provider(provider, (self.clock)())) {
            self.provider = provider;
        }
    }

    /// Sets the size of the program's terminal, the screen model and the recording.
    pub(super) fn resize(&mut self, size: Winsize) {
        let same = |a: Winsize, b: Winsize| {
            (a.ws_row, a.ws_col, a.ws_xpixel, a.ws_ypixel) == (b.ws_row, b.ws_col, b.ws_xpixel, b.ws_ypixel)
        };
        if same(size, self.size) {
            return;
        }
        if let Err(error) = self.pty.resize(size) {
            tracing::warn!(%error, "cannot set the size of the terminal");
            return;
        }
        self.size = size;
        let at = (self.clock)();
        self.screen.try_send(ToScreen::Resize(screen_size(size), at));
        if let Some(recorder) = &self.recorder {
            recorder.resize(at, screen_size(size));
        }
    }

    /// Sets the size requested by the server, or the size of the terminal that types.
    pub(super) fn resize_for(&mut self, size: Option<Size>, reply: RequestReply) {
        let writer = self.guests.iter().find(|g| g.role == Role::Writer && g.live).map(|g| g.id);
        match (size, writer) {
            (Some(Size { rows, columns }), _) => {
                if !(2..=500).contains(&rows) || !(2..=1000).contains(&columns) {
                    return reply(Err("a terminal has 2 to 500 rows and 2 to 1000 columns".into()));
                }
                self.resize(Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 });
            }
            (None, Some(writer)) => self.adopt_size(writer),
            // No terminal is attached: the size stays as it is.
            (None, None) => {}
        }
        reply(Ok(serde_json::Value::Null));
    }
}
