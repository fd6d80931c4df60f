//! The program: what happens to it, how it is ended, who it is and how large its terminal.

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
            // Somebody it started took the foreground and did not give it back; a shell would.
            self.pty.put_in_foreground(self.program).ok();
            return self.continue_program();
        }
        // With the one who would continue it we stop too; without, nobody would.
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

    /// Asks the program to end, and sees to it that it does.
    pub(super) fn end_program(&mut self) {
        if self.has_exited() {
            return;
        }
        kill_process_group(self.program, Signal::TERM).ok();
        self.give_time_to_end();
    }

    /// Hangs up, as when the terminal closes: the program and what it has in the foreground are told, and get time to end
    /// in their own way.
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

    /// Whether the program has exited. What a terminal does not take is not waited for any longer then.
    fn has_exited(&mut self) -> bool {
        let has_exited = self.state.exited.is_some();
        self.state.abandoned |= has_exited;
        has_exited
    }

    /// Lets a program that was told to end do so, for a while.
    fn give_time_to_end(&mut self) {
        if self.state.stopped {
            self.continue_program();
        }
        self.state.kill_at.get_or_insert(Instant::now() + KILL_AFTER);
    }

    /// Ends the program by force, and what it has in the foreground, at once.
    pub(super) fn kill_program(&mut self) {
        if self.has_exited() {
            return;
        }
        self.state.kill_at = Some(Instant::now());
    }

    /// Looks which program is in the foreground: an agent started from a shell is read by its own
    /// rules.
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

    /// The program's terminal gets this size, and whoever models it.
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

    /// Gives the program the size that somebody elsewhere wants, or that of the terminal that types.
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
            // Nobody's terminal is there: it stays as it is.
            (None, None) => {}
        }
        reply(Ok(serde_json::Value::Null));
    }
}
